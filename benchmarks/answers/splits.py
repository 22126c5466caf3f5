"""Does a verdict hang on one split? Ten further ones beside NICE proximity: `python benchmarks/answers/splits.py`.

Breast Cancer and sonar, boosted trees and forests, sixty held-back rows of each split, with which nothing was chosen.
Writes benchmarks/results/answers_splits.json and its table in docs/answers.md; goes on where it was stopped, and ours
is asked again after a change of the package's code. `--page` only writes the page.
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
from environments import ONE_THREAD, code_of_ours, environment
from judge import PACKAGES
from ours import answered
from page import fill, table
from picture import MODELS, NAMES
from score import Scorer
from store import WORK
from summary import NEAR
from tables import ROWS, TREES, Judged, load, write
from targets import NAMED
from tools import PRESETS, SECONDS

HERE = Path(__file__).resolve().parent
RESULT = HERE.parent / "results" / "answers_splits.json"
SEEDS = range(31, 41)
OURS = ("default", "stable")
KEPT = ("en", "l0", "outlier", "survival")

Scores = dict[str, list[float | None]]


def asked_nice(judged: Judged) -> list[list[float] | None]:
    """The cells of NICE proximity's answers, found in its own environment."""
    folder = WORK / f"split{judged.seed}"
    write(judged, folder)
    output = folder / f"{judged.data}-{judged.kind}.answers.json"
    given = {
        "peer": "nice",
        "folder": str(folder),
        "data": judged.data,
        "kind": judged.kind,
        "methods": {NEAR: ROWS},
        "seconds": SECONDS,
        "output": str(output),
    }
    subprocess.run([environment("nice"), HERE / "ask.py", json.dumps(given)], check=True, env=os.environ | ONE_THREAD)
    cells: list[list[float] | None] = json.loads(output.read_text())["methods"][NEAR]["cells"]
    return cells


def measured(data: str, kind: str, seed: int, known: dict[str, Any]) -> dict[str, Any]:
    """One split: the scores row by row of NICE, which are kept, and of ours, kept for the same code."""
    code = code_of_ours()
    if NEAR in known and known.get("code") == code:
        return known
    print(f"{data}, {kind}, split {seed}", flush=True)
    judged = load(data, kind, seed)
    scorer = Scorer(judged)
    found = {NEAR: known.get(NEAR) or _short(scorer(asked_nice(judged))), "code": code}
    for name in OURS:
        answers = answered(judged, *PRESETS[name])
        found[name] = _short(scorer(answers["cells"])) | {"typed": answers["typed"]["changes"]}
    return found


def _short(scores: dict[str, list[Any]]) -> Scores:
    return {name: [None if each is None else float(f"{each:.5g}") for each in scores[name]] for name in KEPT}


def rows_of(result: dict[str, Any]) -> list[list[str]]:
    """A row of the table per case: over all splits together, and the range of the splits."""
    rows = []
    for data in NAMED:
        for kind in TREES:
            splits = [result["splits"][f"{data}-{kind}-{seed}"] for seed in SEEDS]
            near, mine = ([each[name] for each in splits] for name in (NEAR, "default"))
            rows.append(
                [
                    NAMES.get(data, data),
                    MODELS[kind],
                    f"{sum(len(each['en']) for each in mine)}",
                    _ratio(near, mine, "en", np.nanmedian),
                    _ratio(near, mine, "l0", np.nanmean),
                    _share(mine, "outlier"),
                    _share(near, "outlier"),
                    _share(mine, "survival"),
                    _share(near, "survival"),
                    _share([each["stable"] for each in splits], "survival"),
                    _share(mine, "typed"),
                ]
            )
    return rows


def _ratio(near: list[Scores], mine: list[Scores], name: str, middle: Any) -> str:
    """Ours by NICE's, on the rows of all splits; in brackets the least and the most of a split."""
    by_split = [middle(_array([a], name)) / middle(_array([b], name)) for a, b in zip(mine, near, strict=True)]
    return f"{middle(_array(mine, name)) / middle(_array(near, name)):.2f} ({min(by_split):.2f} to {max(by_split):.2f})"


def _share(parts: list[Scores], name: str) -> str:
    by_split = [100 * float(np.nanmean(_array([each], name))) for each in parts]
    return f"{100 * np.nanmean(_array(parts, name)):.0f} ({min(by_split):.0f} to {max(by_split):.0f})"


def _array(parts: list[Scores], name: str) -> np.ndarray:
    return np.array([np.nan if each is None else each for part in parts for each in part[name]], dtype=float)


def write_page(result: dict[str, Any]) -> None:
    """The table of docs/answers.md."""
    header = ["data", "model", "rows", "distance / NICE", "changed / NICE", "outliers, %", "NICE's", "refits agree, %"]
    text = table([*header, "with NICE", "with `stable()`", "typed, %"], rows_of(result))
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    codes = sorted({each["code"] for each in result["splits"].values()})
    footer = f"{result['date']}, `python benchmarks/answers/splits.py`; {versions}; code {', '.join(codes)}."
    fill({"splits": f"{text}\n\n{footer}"})


def main() -> None:
    """Ask, score, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="ask nothing")
    given = parser.parse_args()
    os.environ.update(ONE_THREAD)
    np.seterr(all="ignore")
    result: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {"splits": {}}
    for name, seed in () if given.page else [((d, k), seed) for seed in SEEDS for d in NAMED for k in TREES]:
        key = f"{name[0]}-{name[1]}-{seed}"
        result["splits"][key] = measured(*name, seed, result["splits"].get(key, {}))
        result["date"] = dt.datetime.now(tz=dt.UTC).date().isoformat()
        result["versions"] = {"python": platform.python_version(), **{each: version(each) for each in PACKAGES}}
        RESULT.write_text(json.dumps(result, separators=(",", ":")) + "\n")
    write_page(result)


if __name__ == "__main__":
    main()
