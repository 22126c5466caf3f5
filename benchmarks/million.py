"""A row against a million training rows beside one against a thousand.

20 columns, default settings, the typicality floor included. `Gaussian` columns are independent, the hard case for a
search of neighbours; `correlated` ones are five factors and a tenth of noise. One model, fitted on the first 20,000
rows, for both explainers; XGBoost has 100 trees of depth 4. `alone` is the mean of 60 rows in calls of their own, the
two explainers in turn, `thousand` the mean row of one call with 1,000 rows: processor time in ms, one thread. Memory is
the most that the process held: with the data alone, after fitting (both explainers) and after explaining.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from cfproto_plugin import CounterfactualExplainer

MANY, FEW, COLUMNS, SEEN = 1_000_000, 1000, 20, 20_000
ALONE, TOGETHER = 60, 1000
KINDS, MODELS = ("Gaussian", "correlated"), ("LogisticRegression", "XGBClassifier")


def measure() -> list[dict[str, Any]]:
    """One line per kind of columns and model, each from a process of its own."""
    return [in_child(Path(__file__), kind, model) for kind in KINDS for model in MODELS]


def in_child(script: Path, *arguments: str) -> dict[str, Any]:
    """What a script prints as JSON; its own lines on stderr stay visible."""
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows_of(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, 20) and their classes (n,)."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, COLUMNS))
    if kind == "correlated":
        mixed = rng.standard_normal((5, COLUMNS))
        x *= 0.1
        for start in range(0, n, SEEN):
            part = x[start : start + SEEN]
            part += rng.standard_normal((len(part), 5)) @ mixed
    score, product = x @ rng.standard_normal(COLUMNS), x[:, 0] * x[:, 1]
    noise = 0.3 * rng.standard_normal(n)
    return x, (score / score.std() + 0.5 * product / product.std() + noise > 0).astype(int)


def model_of(name: str) -> Any:
    """A model that is not fitted yet."""
    from sklearn.linear_model import LogisticRegression
    from xgboost import XGBClassifier

    return (
        LogisticRegression() if name == "LogisticRegression" else XGBClassifier(n_estimators=100, max_depth=4, n_jobs=1)
    )


def peak_gb() -> float:
    """The most that this process held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _line(kind: str, name: str) -> dict[str, Any]:
    x, y = rows_of(kind, MANY + TOGETHER)
    model = model_of(name).fit(x[:SEEN], y[:SEEN])
    test, before = x[MANY:], peak_gb()
    start = time.process_time()
    many = CounterfactualExplainer(model).fit(x[:MANY])
    fitting = time.process_time() - start
    few, fitted = CounterfactualExplainer(model).fit(x[:FEW]), peak_gb()
    alone = _alone(few, many, test)
    together, found = zip(*[_together(explainer, test) for explainer in (few, many)], strict=True)
    return {
        "columns": kind,
        "model": name,
        "fit_s": fitting,
        "alone_few": alone[0],
        "alone_many": alone[1],
        "alone_ratio": alone[1] / alone[0],
        "thousand_few": together[0],
        "thousand_many": together[1],
        "thousand_ratio": together[1] / together[0],
        "found": min(found),
        "data_gb": before,
        "fitted_gb": fitted,
        "explained_gb": peak_gb(),
    }


def _alone(few: CounterfactualExplainer, many: CounterfactualExplainer, test: np.ndarray) -> tuple[float, float]:
    """Milliseconds of a row, by mean."""
    times = np.zeros((2, ALONE))
    for explainer in (few, many):
        explainer.explain(test[:1])
    for at in range(ALONE):
        for number, explainer in enumerate((few, many)):
            start = time.process_time()
            explainer.explain(test[at])
            times[number, at] = 1000 * (time.process_time() - start)
    return float(times[0].mean()), float(times[1].mean())


def _together(explainer: CounterfactualExplainer, test: np.ndarray) -> tuple[float, float]:
    """Milliseconds of a row of one call, and the share that is found."""
    start = time.process_time()
    explanation = explainer.explain(test)
    taken = time.process_time() - start
    return 1000 * taken / len(test), float(np.mean(explanation.status == "found"))


if __name__ == "__main__":
    print(json.dumps(_line(*sys.argv[1:])))
