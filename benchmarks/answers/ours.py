"""Our own answers, by setting: their cells, what the library says of them, and whether they can be typed back."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from tables import Judged

from cfproto_plugin import CounterfactualExplainer, Explanation, SearchConfig


def config(preset: str, changed: dict[str, Any]) -> SearchConfig:
    """A preset by its name, the default by an empty one, with some fields changed."""
    return getattr(SearchConfig, preset)(**changed) if preset else SearchConfig(**changed)


def answered(judged: Judged, preset: str, changed: dict[str, Any]) -> dict[str, Any]:
    """All rows in one call."""
    explainer = CounterfactualExplainer(judged.model, search=config(preset, changed)).fit(judged.train)
    start = time.perf_counter()
    e = explainer.explain(judged.rows, progress=False)
    seconds = time.perf_counter() - start
    cells = np.asarray(e.counterfactual, dtype=object).tolist()
    return {
        "cells": [row if found else None for row, found in zip(cells, e.found.tolist(), strict=True)],
        "ms": 1000 * seconds / len(e),
        "changed": e.n_changes.tolist(),
        "distance": e.distance.tolist(),
        "typicality": e.typicality.tolist(),
        "stability": e.stability.tolist(),
        "typed": typed_back(judged.model, e),
    }


def filled(judged: Judged, n: int = 3) -> dict[str, float]:
    """The share of n lines a row that have an answer, and the mean diversity of the lines."""
    e = CounterfactualExplainer(judged.model).fit(judged.train).explain(judged.rows, n=n, progress=False)
    return {"filled": float(e.found.mean()), "diversity": float(np.nanmean(e.diversity))}


def typed_back(model: Any, e: Explanation) -> dict[str, list[bool]]:
    """Whether the model gives the claimed class to rows with the printed text typed into their cells.

    changes: the text of every `after` of `e.changes()`. frame: the columns `<feature>_after` as `e.to_frame()` prints.
    """
    e = e[e.found]
    names = list(e.column_names or ())
    place = {row: line for line, row in enumerate(e.row.tolist())}
    from_changes = e.original.copy()
    for change in e.changes():
        _type(from_changes, place[change.row], names.index(str(change.feature)), str(change.after))
    from_frame, frame = e.original.copy(), e.to_frame()
    for column, name in enumerate(names):
        printed = frame[f"{name}_after"].to_string(header=False, index=False).split("\n")
        for line, text in enumerate(printed):
            _type(from_frame, line, column, text.strip())
    return {
        "changes": (np.asarray(model.predict(from_changes)) == e.counterfactual_class).tolist(),
        "frame": (np.asarray(model.predict(from_frame)) == e.counterfactual_class).tolist(),
    }


def _type(x: Any, line: int, column: int, text: str) -> None:
    """Write a text into a cell as its column reads it."""
    if isinstance(x, np.ndarray):
        x[line, column] = float(text)
        return
    number = x.dtypes.iloc[column].kind in "iuf"
    missing = text in {"NaN", "nan", "None"}
    value: Any = np.nan if missing else float(text) if number else text
    if number and not missing and x.dtypes.iloc[column].kind in "iu":
        value = int(value) if value == int(value) else value
    x.iloc[line, column] = value
