"""Judge the answers of every tool on held-back rows: `python benchmarks/answers/judge.py`.

Asks what has not been asked yet, so that a run that was stopped goes on; then scores everything and writes
benchmarks/results/answers.json, the figures of docs/answers.md and docs/pictures/answers.png. Ours is asked again after
a change of the package's code, the peers only if `--tools` names them: their answers are stored with all cells in
benchmarks/results/answers, so that `--tools ours` needs none of their environments. `--data` and `--models` choose
cases, `--score` only scores.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))

import numpy as np
import page
import store
from environments import ONE_THREAD, code_of_ours, environment
from ours import answered, filled
from summary import fronts_of, lines_of
from tables import CATEGORIES, NUMERIC, SEED, SMOOTH, TREES, Judged, available, load, write
from tools import FRONTS, PEERS, PRESETS, SECONDS, methods_of, settings

HERE = Path(__file__).resolve().parent
RESULT = HERE.parent / "results" / "answers.json"
PACKAGES = ("cfproto-plugin", "numpy", "scipy", "scikit-learn", "xgboost-cpu")


def cases(data: list[str], models: list[str]) -> list[tuple[str, str]]:
    """Smooth models take part with three tables only: they are there for the number of columns."""
    found = [(name, kind) for name in available() for kind in (*TREES, *SMOOTH)]
    return [
        (name, kind)
        for name, kind in found
        if (kind in TREES or name in ("breast_cancer", "wine", "sonar"))
        and (not data or name in data)
        and (not models or kind in models)
    ]


def ask_ours(judged: Judged) -> None:
    """Every setting that has no record yet: all where there are fronts, else the presets; three answers by default."""
    records, code = store.read_ours(judged), code_of_ours()
    if records.get("code") != code:
        records = {"code": code}
    front = judged.data in FRONTS and judged.kind in TREES
    for name, (preset, changed) in (settings() if front else PRESETS).items():
        if name not in records:
            records[name] = answered(judged, preset, changed)
            store.write_ours(judged, records)
    if "n=3" not in records:
        records["n=3"] = filled(judged)
        store.write_ours(judged, records)


def ask_peer(judged: Judged, peer: str, again: bool) -> None:
    """Every method of the peer that has no record yet, in its own environment."""
    known = {} if again else store.read_peer(judged, peer)
    wanted = methods_of(peer, judged.data, judged.kind)
    methods = {name: rows for name, rows in wanted.items() if len(known.get(name, {"cells": []})["cells"]) < rows}
    if not methods:
        return
    write(judged, store.WORK)
    output = store.WORK / f"{judged.data}-{judged.kind}-{peer}.json"
    given = {
        "peer": peer,
        "folder": str(store.WORK),
        "data": judged.data,
        "kind": judged.kind,
        "methods": methods,
        "seconds": SECONDS,
        "output": str(output),
    }
    command = [environment(peer), HERE / "ask.py", json.dumps(given)]
    subprocess.run(command, check=True, env=os.environ | ONE_THREAD)
    store.write_peer(judged, peer, known | json.loads(output.read_text())["methods"])


def ask(judged: Judged, chosen: list[str]) -> None:
    """Ours and the peers; peers that were chosen are asked again."""
    name = f"{judged.data}, {judged.kind}"
    if not chosen or "ours" in chosen:
        print(f"{name}: ours", flush=True)
        ask_ours(judged)
    for peer in PEERS:
        if judged.data in NUMERIC and (not chosen or peer in chosen):
            print(f"{name}: {peer}", flush=True)
            ask_peer(judged, peer, peer in chosen)


def scored(found: list[tuple[str, str]]) -> dict[str, Any]:
    """Everything that was asked, judged; cases of this split that were not asked here stay as they were."""
    before = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    if before.get("seed") != SEED:
        before = {"code": {}, "lines": [], "fronts": []}
    result: dict[str, Any] = {
        "seed": SEED,
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
        "code": {},
        "lines": [],
        "fronts": [],
    }
    for data, kind in found:
        name = f"{data}, {kind}"
        part = store.kept(data, kind, lambda data=data, kind=kind: _scored(load(data, kind))) or {
            "code": before["code"].get(name),
            **{field: [each for each in before[field] if _is(each, data, kind)] for field in ("lines", "fronts")},
        }
        result["lines"] += part["lines"]
        result["fronts"] += part["fronts"]
        result["code"] |= {name: part["code"]} if part["lines"] else {}
    return result


def _is(line: dict[str, Any], data: str, kind: str) -> bool:
    return bool(line["data"] == data and line["model"] == kind)


def _scored(judged: Judged) -> dict[str, Any]:
    print(f"{judged.data}, {judged.kind}: scores", flush=True)
    scores = store.scores_of(judged)
    front = judged.data in FRONTS and judged.kind in TREES
    return {
        "lines": lines_of(judged, scores, store.read_ours(judged)),
        "fronts": fronts_of(judged, scores) if front else [],
        "code": store.read_ours(judged).get("code"),
    }


def main() -> None:
    """Ask, score, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", nargs="+", choices=("ours", *PEERS), default=[], help="ask only these; peers again")
    parser.add_argument("--data", nargs="+", choices=(*NUMERIC, *CATEGORIES), default=[])
    parser.add_argument("--models", nargs="+", choices=(*TREES, *SMOOTH), default=[])
    parser.add_argument("--score", action="store_true", help="ask nothing")
    given = parser.parse_args()
    os.environ.update(ONE_THREAD)
    np.seterr(all="ignore")
    if not given.score:
        for data, kind in cases(given.data, given.models):
            ask(load(data, kind), given.tools)
    result = scored(cases([], []))
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    page.write(result)


if __name__ == "__main__":
    main()
