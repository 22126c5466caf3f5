"""From scores to what is reported: one line per case and tool, and a verdict per peer and front."""

from __future__ import annotations

from typing import Any

import numpy as np
from fronts import QUALITIES, point, verdict
from tables import CATEGORIES, Judged
from tools import END, PRESETS

NEAR = "NICE proximity"
Scores = dict[str, dict[str, list[Any]]]


def lines_of(judged: Judged, scores: Scores, ours: dict[str, Any]) -> list[dict[str, Any]]:
    """Our presets, the peers and the rows themselves; of tables with categories our presets alone."""
    if judged.data in CATEGORIES:
        return [_of_categories(judged, name, ours[name]) | _extra(name, ours) for name in PRESETS if name in ours]
    names = [name for name in scores if not name.startswith("ours") or name.removeprefix("ours, ") in PRESETS]
    return [_line(judged, name, scores) | _extra(name.removeprefix("ours, "), ours) for name in names]


def fronts_of(judged: Judged, scores: Scores) -> list[dict[str, Any]]:
    """The points of every tool, and where each peer's lies beside our front."""
    mine = {name: each for name, each in scores.items() if name.startswith("ours") and all(each["valid"])}
    peers = {
        name: each for name, each in scores.items() if not name.startswith(("ours", "the rows")) and any(each["valid"])
    }
    return [
        {
            "data": judged.data,
            "model": judged.kind,
            "quality": quality,
            "points": {name: point(each, quality) for name, each in {**mine, **peers}.items()},
            "verdicts": [{"peer": name, **verdict(each, mine, quality)} for name, each in peers.items()],
            "end": max(mine[END]["nearest"]) if END in mine else None,
        }
        for quality in QUALITIES
    ]


def _line(judged: Judged, name: str, scores: Scores) -> dict[str, Any]:
    mine = scores[name]
    line = {
        "data": judged.data,
        "model": judged.kind,
        "tool": name,
        "rows": len(mine["valid"]),
        "valid": sum(mine["valid"]),
        "columns": judged.train.shape[1],
        "distance": median(mine["en"]),
        "changed": mean(mine["l0"]),
        "outliers": mean(mine["outlier"]),
        "typicality": median(mine["typicality"]),
        "survival": mean(mine["survival"]),
        "typed": mean(mine["typed"]),
    }
    near = scores.get(NEAR, {"valid": []})
    both = [a and b for a, b in zip(mine["valid"], near["valid"], strict=False)]
    if name != NEAR and any(both):
        line["both"] = sum(both)
        line["distance / NICE"] = median(_chosen(mine["en"], both)) / median(_chosen(near["en"], both))
        line["changed / NICE"] = mean(_chosen(mine["l0"], both)) / mean(_chosen(near["l0"], both))
    return line


def _of_categories(judged: Judged, name: str, record: dict[str, Any]) -> dict[str, Any]:
    """What the library says itself, and what refitted models say of its rows."""
    import pandas as pd

    found = [at for at, cells in enumerate(record["cells"]) if cells is not None]
    frame = pd.DataFrame([record["cells"][at] for at in found], columns=judged.train.columns)
    frame = frame.astype(judged.train.dtypes.to_dict())
    label = np.asarray(judged.model.predict(frame))
    return {
        "data": judged.data,
        "model": judged.kind,
        "tool": f"ours, {name}",
        "rows": len(record["cells"]),
        "valid": int((label != judged.own[found]).sum()),
        "columns": judged.train.shape[1],
        "distance": median([record["distance"][at] for at in found]),
        "changed": mean([record["changed"][at] for at in found]),
        "typicality": median([record["typicality"][at] for at in found]),
        "survival": float(np.mean([model.predict(frame) == label for model in judged.refits])),
    }


def _extra(name: str, ours: dict[str, Any]) -> dict[str, Any]:
    """What only our answers have: two ways of typing back, three lines a row, and the time."""
    if name not in ours or name not in PRESETS:
        return {}
    typed = {f"typed {way}": mean(found) for way, found in ours[name]["typed"].items()}
    several = ours.get("n=3", {}) if name == "default" else {}
    return {**typed, "typed": typed["typed changes"], "ms": ours[name]["ms"], **several}


def median(values: list[Any]) -> float | None:
    """Over the rows that have a value."""
    known = [value for value in values if value is not None and value == value]  # noqa: PLR0124 NaN
    return float(np.median(known)) if known else None


def mean(values: list[Any]) -> float | None:
    """Over the rows that have a value."""
    known = [float(value) for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _chosen(values: list[Any], chosen: list[bool]) -> list[Any]:
    return [value for value, ok in zip(values, chosen, strict=False) if ok]
