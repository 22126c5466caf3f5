"""A network on Breast Cancer against the paper's reference implementation.

The network and the 19 rows of the golden file. EN is 0.01·L1 + L2, on all rows found and on the eleven that the
reference's loss A solves; `ms` is the time per row of one call with all rows, best of five, through PyTorch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from reference import GOLDEN, seconds
from reference_network import in_torch

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig

BETA = 0.01
_SEARCHES = {
    "default": SearchConfig(),
    "close": SearchConfig.close(),
    "theta=5, not polished": SearchConfig.close(theta=5.0, polish=False),
}


def measure() -> list[dict[str, Any]]:
    """The reference's answers and ours."""
    with np.load(GOLDEN) as golden:
        layers = [(golden[f"w{i}"], golden[f"b{i}"]) for i in (1, 2, 3)]
        x, train, taken = golden["x"], golden["x_train"], golden["seconds_A"].mean()
        theirs = golden["cf_A"].reshape(x.shape)
    solved = ~np.isnan(theirs).any(axis=1)
    lines = [_line("reference, loss A", x, theirs, solved, taken)]
    for name, settings in _SEARCHES.items():
        search = replace(settings, beta=BETA)
        model = in_torch(layers)
        explainer = CounterfactualExplainer(model, features=Features(scale=None), search=search).fit(train)
        found = np.asarray(explainer.explain(x).counterfactual)
        best = seconds(lambda: explainer.explain(x))[1]  # noqa: B023 called at once
        lines.append(_line(f"ours, {name}", x, found, solved, best / len(x)))
    return lines


def _line(name: str, x: np.ndarray, found: np.ndarray, solved: np.ndarray, taken: float) -> dict[str, Any]:
    delta = np.abs(found - x)
    cost = BETA * delta.sum(axis=1) + np.square(delta).sum(axis=1)
    return {
        "method": name,
        "found": int((~np.isnan(cost)).sum()),
        "EN": float(np.nanmean(cost)),
        "EN_of_eleven": float(cost[solved].mean()),
        "ms": 1000 * float(taken),
    }
