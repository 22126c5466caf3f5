"""The way of one row through the code, as a reader with a debugger would walk it: `python benchmarks/trace.py`.

One row of three columns through a pipeline of a scaler and a forest. Counted are the calls of functions of
cfproto_plugin and cfproto_adapters while `explain` runs, the files they are in, and how often the next call is in
another file than the last. The second call is counted, since the first fills caches. `--files` lists the files in
the order in which the row first meets them.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cfproto_plugin import CounterfactualExplainer

PACKAGES = ("cfproto_plugin", "cfproto_adapters")


def fitted() -> tuple[CounterfactualExplainer, pd.DataFrame]:
    """An explainer and a row of a frame: a whole number and two others."""
    x = np.random.default_rng(0).normal(size=(300, 3))
    good = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(int)
    age, income, debt = (40 + 12 * x[:, 0]).astype(int), 30_000 + 9_000 * x[:, 1], 1_000 * x[:, 2]
    rows = pd.DataFrame({"age": age, "income": income, "debt": debt})
    model = make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=0)).fit(rows, good)
    return CounterfactualExplainer(model).fit(rows), rows[:1]


def traced(work: Any) -> list[str]:
    """The file of every call of ours, in order, as a path from the package."""
    files: list[str] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        parts = Path(frame.f_code.co_filename).parts
        package = next((name for name in PACKAGES if name in parts), None)
        if event == "call" and package is not None:
            files.append("/".join(parts[len(parts) - 1 - parts[::-1].index(package) :]))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return files


def main(arguments: list[str]) -> None:
    """Print the figures."""
    explainer, row = fitted()
    explainer.explain(row, progress=False)
    files = traced(lambda: explainer.explain(row, progress=False))
    switches = sum(last != following for last, following in pairwise(files))
    print(f"{len(files)} calls in {len(set(files))} files with {switches} switches from file to file")
    if "--files" in arguments:
        print("\n".join(f"{files.count(file):5d}  {file}" for file in dict.fromkeys(files)))


if __name__ == "__main__":
    main(sys.argv[1:])
