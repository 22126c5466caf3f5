"""Proofs beside OCEAN's: `python benchmarks/proofs_ocean.py <python>`.

<python> is the interpreter of an environment with `oceanpy` and `xgboost-cpu`, which needs Python 3.12. OCEAN's CP
backend (OR-tools, one worker) and ours get the same models, the same twenty held-back rows of Breast Cancer, the same
objective and 20 s a row, one row of each in turn, each in a process and on a thread of its own. The objective is L1 of
columns that OCEAN scales to one from the smallest to the largest value. J of ours is 1000·L1 + L2, and no column moves
by more than 1.5, so that L1 decides but for some 0.1 %. Writes benchmarks/results/proofs_ocean.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "proofs_ocean.json"
ROWS, SECONDS, BETA = 20, 20, 1000.0
MODELS = ("xgboost", "forest, 20 trees of depth 4", "forest, 100 trees")
REACH = 1.0  # OCEAN lets columns go half a range beyond the data, which lies from -0.5 to 0.5


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and labels and held-back rows, scaled as OCEAN's parse_features does."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0)) - 0.5
    train, test, labels, _ = train_test_split(x, y, test_size=1 / 3, random_state=0, stratify=y)
    return train, labels, test[:ROWS]


def fitted(name: str, train: Any, labels: np.ndarray) -> Any:
    """A model; both environments train it, and `main` compares what the two predict."""
    if name == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=100, max_depth=4, n_jobs=1).fit(train, labels)
    from sklearn.ensemble import RandomForestClassifier

    small = {"n_estimators": 20, "max_depth": 4} if "20" in name else {"n_estimators": 100}
    return RandomForestClassifier(**small, random_state=0).fit(train, labels)


def by_ocean(name: str) -> Any:
    """OCEAN's row -> (status is optimal, counterfactual), and the model's probabilities of the rows."""
    import pandas as pd
    from ocean import ConstraintProgrammingExplainer
    from ocean.feature import parse_features

    warnings.simplefilter("ignore", UserWarning)
    train, labels, rows = data()
    columns = [f"x{i}" for i in range(train.shape[1])]
    frame = pd.DataFrame(np.concatenate([train, rows]), columns=columns)
    _, mapper = parse_features(frame, scale=False)
    model = fitted(name, frame.iloc[: len(train)], labels)
    explainer = ConstraintProgrammingExplainer(model, mapper=mapper)

    def explain(row: np.ndarray) -> tuple[bool, Any]:
        own = int(model.predict(pd.DataFrame(row[None], columns=columns))[0])
        found = explainer.explain(row, y=1 - own, norm=1, max_time=SECONDS, num_workers=1)
        return explainer.get_solving_status() == "OPTIMAL", None if found is None else found.to_numpy()

    return explain, model.predict_proba(frame.iloc[len(train) :])


def by_us(name: str) -> Any:
    """Ours likewise."""
    from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig

    train, labels, rows = data()
    model = fitted(name, train, labels)
    rules = Features(scale=None, decimals=None, ranges=dict.fromkeys(range(train.shape[1]), (-REACH, REACH)))
    search = SearchConfig.close(certify="optimal", beta=BETA)
    explainer = CounterfactualExplainer(model, features=rules, search=search).fit(train)

    def explain(row: np.ndarray) -> tuple[bool, Any]:
        e = explainer.explain(row, time_budget=SECONDS)
        return bool(e.gap[0] == 0), e.counterfactual[0] if e.found[0] else None

    return explain, model.predict_proba(rows)


def work(who: str, name: str, output: Path) -> None:
    """All rows of one side: one line of input for each, so that the two take turns."""
    explain, proba = (by_ocean if who == "ocean" else by_us)(name)
    rows, lines = data()[2], []
    print("ready", flush=True)
    for row in rows:
        sys.stdin.readline()
        start, begin = time.perf_counter(), time.process_time()
        proved, found = explain(row)
        seconds, processor = time.perf_counter() - start, time.process_time() - begin
        l1 = None if found is None else float(np.abs(found - row).sum())
        lines.append({"proved": proved, "l1": l1, "s": seconds, "cpu": processor})
        print("done", flush=True)
    package = "oceanpy" if who == "ocean" else "cfproto-plugin"
    output.write_text(json.dumps({"rows": lines, "proba": proba.tolist(), "version": f"{package} {version(package)}"}))


def side_by_side(name: str, pythons: dict[str, str], folder: Path) -> dict[str, Any]:
    """One model: a row of each side in turn."""
    workers = {}
    for who, python in pythons.items():
        command = [python, str(HERE / "proofs_ocean.py"), who, name, str(folder / f"{who}.json")]
        workers[who] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
        _wait(workers[who], "ready")
    for _ in range(ROWS):
        for worker in workers.values():
            worker.stdin.write("\n")
            worker.stdin.flush()
            _wait(worker, "done")
    for worker in workers.values():
        worker.wait()
    return {who: json.loads((folder / f"{who}.json").read_text()) for who in pythons}


def _wait(worker: Any, word: str) -> None:
    """Until a worker says the word; what its libraries print before is skipped."""
    while (line := worker.stdout.readline()).strip() != word:
        if not line:
            sys.exit(f"{worker.args} ended without {word!r}")


def lines_of(name: str, sides: dict[str, Any]) -> list[dict[str, Any]]:
    """One line of the table for each side; `ratio` is L1 divided by the smaller of the two."""
    if not np.allclose(*(side["proba"] for side in sides.values()), atol=1e-6):
        sys.exit(f"the two environments train different models: {name}")
    l1 = {who: np.array([row["l1"] or np.inf for row in side["rows"]]) for who, side in sides.items()}
    best = np.minimum(*l1.values())
    found = []
    for who, side in sides.items():
        seconds, processor = ([row[key] for row in side["rows"]] for key in ("s", "cpu"))
        proved = [row["proved"] for row in side["rows"]]
        ratio = l1[who] / best
        line = {"model": name, "by": side["version"], "rows": ROWS, "proved": sum(proved)}
        line |= {"s": float(np.median(seconds)), "cpu": float(np.median(processor)), "slowest": max(seconds)}
        found.append({**line, "ratio": float(np.median(ratio)), "worst": float(ratio.max())})
        print(found[-1], flush=True)
    return found


def main(python: str) -> None:
    """Measure both sides and write the result."""
    with tempfile.TemporaryDirectory() as folder:
        pythons = {"ours": sys.executable, "ocean": python}
        lines = [line for name in MODELS for line in lines_of(name, side_by_side(name, pythons, Path(folder)))]
    RESULT.write_text(
        json.dumps({"command": "python benchmarks/proofs_ocean.py <python>", "lines": lines}, indent=1) + "\n"
    )


if __name__ == "__main__":
    if len(sys.argv) == 4:
        work(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit(__doc__)
