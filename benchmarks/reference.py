"""Loss A on Breast Cancer against the times of the paper's reference implementation, which are in the golden file.

The same network, rows, bounds and settings: 5 values of c, 500 steps each. The reference took its rows one at a time
on a comparable machine; its times are fixed numbers, so the ratios also depend on the machine this runs on. One thread:
the network is tiny, and a second thread would only wait for the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import reference_network as networks

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / "bcw_fista.npz"
REPEATS = 5


def seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """The median and the best of a few runs: on a shared machine the median also measures its other work."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), min(times)


def loss_a() -> dict[str, Any]:
    """The settings of the golden file for an explainer."""
    with np.load(GOLDEN) as golden:
        low, high = golden["feature_min"][0].tolist(), golden["feature_max"][0].tolist()
    search = SearchConfig(method="fista", beta=0.01, c_init=1.0, c_steps=5, max_iterations=500, theta=0, fallback=False)
    return {"features": Features(scale=None, ranges=dict(enumerate(zip(low, high, strict=True)))), "search": search}


def measure() -> list[dict[str, Any]]:
    """One line per adapter."""
    with np.load(GOLDEN) as golden:
        layers = [(golden[f"w{i}"], golden[f"b{i}"]) for i in (1, 2, 3)]
        x, train, reference = golden["x"], golden["x_train"], golden["seconds_A"]
    lines = []
    for name, build in {
        "scikit-learn MLPClassifier": networks.in_sklearn,
        "PyTorch": networks.in_torch,
        "Keras on TensorFlow": networks.in_keras,
    }.items():
        explainer = CounterfactualExplainer(build(layers), **loss_a()).fit(train)
        explainer.explain(x)  # compile and warm up
        batch = seconds(lambda: explainer.explain(x))  # noqa: B023 called at once
        rows = [seconds(lambda: explainer.explain(row)) for row in x]  # noqa: B023 called at once
        median, best = np.transpose(rows)
        lines.append(
            {
                "model": name,
                "found": int((explainer.explain(x).status == "found").sum()),
                "reference_batch_s": float(reference.sum()),
                "batch_median_s": batch[0],
                "batch_best_s": batch[1],
                "batch_ratio_median": float(reference.sum() / batch[0]),
                "batch_ratio_best": float(reference.sum() / batch[1]),
                "row_ratio_median": float(reference.mean() / median.mean()),
                "row_ratio_best": float(reference.mean() / best.mean()),
                "slowest_row_ratio_median": float(reference.mean() / median.max()),
            }
        )
    return lines
