"""alibi's CounterfactualProto with the loss L1 + L2 + proto: k-d tree prototypes, theta 100, no prediction term.

500 iterations, half its default, which is kinder to its times; the learning rate is its default. It searches in
standard deviations.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import BETA, Case
from method import Explain, Method

tf.compat.v1.disable_v2_behavior()  # as its documentation asks

from alibi.explainers import CounterfactualProto  # noqa: E402

PACKAGES = ("alibi", "tensorflow", "numpy", "scikit-learn", "xgboost-cpu")


def _prepare(case: Case) -> Explain:
    mean, scale = case.train.mean(axis=0), case.scale
    train = (case.train - mean) / scale
    low, high = (bound.reshape(1, -1).astype(np.float32) for bound in (train.min(axis=0), train.max(axis=0)))
    explainer = CounterfactualProto(
        lambda z: case.proba(mean + scale * z),
        (1, case.train.shape[1]),
        beta=BETA,
        theta=100.0,
        c_init=0.0,
        c_steps=1,
        max_iterations=500,
        use_kdtree=True,
        feature_range=(low, high),
    )
    explainer.fit(train)

    def explain(row: np.ndarray) -> np.ndarray | None:
        found = explainer.explain(((row - mean) / scale)[None]).cf
        return None if found is None else mean + scale * np.asarray(found["X"], dtype=float)[0]

    return explain


METHODS = (Method("alibi L1+L2+proto", _prepare),)
