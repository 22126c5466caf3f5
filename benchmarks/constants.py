"""The constants of polishing, one changed at a time.

They were chosen on ten data sets apart from those of [the comparison](peers.md), or split otherwise, with XGBoost and a
random forest of 100 trees on each, 60 held-back rows: `EN` is the ratio of 0.1·L1 + L2 to that of the constants as they
are, the geometric mean over all rows, none counting for more than a factor of two: some rows lie on a split, and their
EN is next to nothing. `worst` is that of the data set and model where it is largest. `EN again` is the same on other
splits with other models, which had no part in the choice. `predicted` is the ratio of predicted rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.search.tuning import Tuning

ROWS, CHOSEN, AGAIN = 60, 1, 2  # seeds of the splits, the made data and the models
CHANGES: dict[str, Tuning] = {
    "as they are": Tuning(),
    "2 starts instead of 4": Tuning(starts=2),
    "6 starts": Tuning(starts=6, kept=(6, 1)),
    "2 points in the second round instead of 1": Tuning(kept=(4, 2, 1)),
    "6 points on every path instead of 8": Tuning(rough=6),
    "12 points on every path": Tuning(rough=12),
    "4 places inwards instead of 8": Tuning(inward=4, outward_every=2),
    "12 places inwards": Tuning(inward=12, outward_every=6),
    "1 place outwards instead of 2": Tuning(outward_every=8),
    "4 places outwards": Tuning(outward_every=2),
    "moves that add half the cost, not a fifth": Tuning(largest_rise=0.5),
    "16 prices instead of 24": Tuning(prices=16),
    "32 prices": Tuning(prices=32),
    "rounds as long as they gain a fifth, not 35 %": Tuning(worth=0.2),
    "rounds as long as they gain half": Tuning(worth=0.5),
}


def measure() -> list[dict[str, Any]]:
    """One line per change."""
    groups = [_cases(CHOSEN), _cases(AGAIN)]
    standard = [_explained(group, Tuning()) for group in groups]
    lines = []
    for name, tuning in CHANGES.items():
        chosen, again = (_ratios(_explained(g, tuning), s) for g, s in zip(groups, standard, strict=True))
        lines.append(
            {
                "constants": name,
                "EN": float(np.exp(np.mean(np.log(chosen[0])))),
                "worst": float(chosen[0].max()),
                "EN again": float(np.exp(np.mean(np.log(again[0])))),
                "predicted": float(chosen[1].mean()),
            }
        )
    return lines


def _tables(seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    from sklearn import datasets

    yield datasets.load_breast_cancer(return_X_y=True)
    yield datasets.load_wine(return_X_y=True)
    yield datasets.load_iris(return_X_y=True)
    pixels, digit = datasets.load_digits(return_X_y=True)
    blocks = pixels.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    yield blocks, digit < 5
    yield blocks, digit
    yield pixels, digit % 3 == 0
    x, y = datasets.load_diabetes(return_X_y=True)
    yield x, y > np.median(y)
    yield datasets.make_classification(1500, 20, n_informative=8, n_redundant=4, random_state=seed)
    yield datasets.make_classification(1500, 12, n_informative=6, n_classes=3, random_state=seed + 1)
    yield datasets.make_moons(800, noise=0.25, random_state=seed)


def _cases(seed: int) -> list[tuple[CounterfactualExplainer, np.ndarray]]:
    """Fitted explainers and the rows to explain."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier

    cases = []
    for x, y in _tables(seed):
        train, rest, labels, _ = train_test_split(x, y.astype(int), test_size=1 / 3, random_state=seed, stratify=y)
        scaler = StandardScaler().fit(train)
        train, rest = scaler.transform(train), scaler.transform(rest)
        for model in (
            XGBClassifier(n_estimators=100, random_state=seed),
            RandomForestClassifier(100, random_state=seed),
        ):
            search = SearchConfig.close(beta=0.1)
            explainer = CounterfactualExplainer(model.fit(train, labels), search=search).fit(train)
            cases.append((explainer, rest[:ROWS]))
    return cases


def _explained(
    cases: list[tuple[CounterfactualExplainer, np.ndarray]], tuning: Tuning
) -> list[tuple[np.ndarray, float]]:
    """EN of every row and how many rows were predicted, per case."""
    found = []
    for explainer, rows in cases:
        if explainer.fitted_ is not None:
            explainer.fitted_ = replace(explainer.fitted_, tuning=tuning)
        e = explainer.explain(rows, progress=False)
        delta = np.abs(e.counterfactual - rows)
        found.append(((0.1 * delta + delta**2).sum(axis=1), e.meta["n_predicted_rows"]))
    return found


def _ratios(now: list[tuple[np.ndarray, float]], standard: list[tuple[np.ndarray, float]]) -> np.ndarray:
    """(2, cases): of EN, the geometric mean over the rows, and of predicted rows."""
    return np.array(
        [
            (np.exp2(np.clip(np.log2(en / usual), -1, 1).mean()), count / usual_count)
            for (en, count), (usual, usual_count) in zip(now, standard, strict=True)
        ]
    ).T
