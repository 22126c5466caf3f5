"""Where answers are kept: the peers' beside the results, as changed cells; ours, which are quickly asked, in .cache.

A stored answer belongs to one model. Its probabilities of the rows are kept beside the peers' answers, and answers to
another model are refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from score import Scorer
from tables import CATEGORIES, Judged
from tools import PEERS

TOP = Path(__file__).resolve().parents[2]
PEER_ANSWERS = TOP / "benchmarks" / "results" / "answers"
OURS = TOP / ".cache" / "answers"
WORK = TOP / ".venv-peers" / "answers"

Records = dict[str, Any]


def read_ours(judged: Judged) -> Records:
    """By setting; empty if nothing was asked."""
    file = OURS / f"{judged.data}-{judged.kind}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def write_ours(judged: Judged, records: Records) -> None:
    """Every time a setting was answered."""
    OURS.mkdir(parents=True, exist_ok=True)
    (OURS / f"{judged.data}-{judged.kind}.json").write_text(json.dumps(records, default=str))


def read_peer(judged: Judged, peer: str) -> Records:
    """By method, with whole rows again."""
    file = _file(judged, peer)
    if not file.exists():
        return {}
    stored = json.loads(file.read_text())
    if not np.allclose(stored["model"], judged.model.predict_proba(judged.rows), atol=1e-3):
        raise RuntimeError(f"{file.name} has answers to another model; ask {peer} again: --tools {peer}")
    for record in stored["methods"].values():
        record["cells"] = [whole(row, each) for row, each in zip(judged.rows, record["cells"], strict=False)]
    return dict(stored["methods"])


def write_peer(judged: Judged, peer: str, methods: Records) -> None:
    """Only the cells that differ."""
    PEER_ANSWERS.mkdir(parents=True, exist_ok=True)
    short = {
        name: record | {"cells": [part(row, cells) for row, cells in zip(judged.rows, record["cells"], strict=False)]}
        for name, record in methods.items()
    }
    model = np.round(judged.model.predict_proba(judged.rows).astype(float), 4).tolist()
    _file(judged, peer).write_text(json.dumps({"model": model, "methods": short}, separators=(",", ":")) + "\n")


def scores_of(judged: Judged) -> dict[str, dict[str, list[Any]]]:
    """The scores of every setting of ours and every method of the peers; tables with categories have none."""
    if judged.data in CATEGORIES:
        return {}
    scorer = Scorer(judged)
    found = {f"ours, {name}": scorer(record["cells"]) for name, record in _answers(judged)}
    found["the rows themselves"] = scorer.of_rows()
    for peer in PEERS if hasattr(judged.model, "predict_proba") else ():
        found |= {name: scorer(record["cells"]) for name, record in read_peer(judged, peer).items()}
    return found


def kept(data: str, kind: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `make` gives for a case; kept until its answers or the code that judges them change. Empty if unasked."""
    inputs = [OURS / f"{data}-{kind}.json", *sorted(PEER_ANSWERS.glob(f"{data}-{kind}-*.json"))]
    if not inputs[0].exists():
        return {}
    code = [
        Path(__file__).with_name(f"{name}.py") for name in ("fronts", "score", "store", "summary", "tables", "tools")
    ]
    key = hashlib.sha256(b"".join(file.read_bytes() for file in (*inputs, *code))).hexdigest()
    file = OURS / "scores" / f"{data}-{kind}.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    if known.get("key") != key:
        known = {"key": key, **make()}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(known))
    return known


def _answers(judged: Judged) -> list[tuple[str, dict[str, Any]]]:
    """Our records by setting, without what is no setting."""
    return [(name, each) for name, each in read_ours(judged).items() if isinstance(each, dict) and "cells" in each]


def _file(judged: Judged, peer: str) -> Path:
    return PEER_ANSWERS / f"{judged.data}-{judged.kind}-{peer}.json"


def part(row: np.ndarray, cells: list[float] | None) -> list[list[float]] | None:
    """The places and values of the cells that differ from the row."""
    if cells is None:
        return None
    at = np.flatnonzero(np.asarray(cells) != row)
    return [at.tolist(), [cells[j] for j in at]]


def whole(row: np.ndarray, changed: list[list[Any]] | None) -> list[float] | None:
    """The answer again, from the row and what `part` kept."""
    if changed is None:
        return None
    cells = row.astype(float).copy()
    cells[changed[0]] = changed[1]
    return cells.tolist()
