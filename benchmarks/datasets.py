"""20,000 distinct Adult rows through `explain_dataset`: in one process, in two, and on Ray with one actor and with two.

Are the files the same, byte for byte? What does Ray cost per row? Run it in the environment of `make test-serve`:
.venv-ray/bin/python benchmarks/datasets.py. Adult is read from CFPROTO_DATA. Results: benchmarks/results/datasets.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.datasets import load_adult
from cfproto_plugin.integrations.datasets import explain_dataset

RESULTS = Path(__file__).parent / "results" / "datasets.json"
TRAIN = 5_000
RUNS = (("local", 1), ("local", 2), ("ray", 1), ("ray", 2))


def prepare(folder: Path, rows: int) -> None:
    """A saved explainer of an XGBoost model, and the rows to explain as one Parquet file of ten row groups."""
    frame, labels = load_adult()
    texts = [name for name in frame if frame[name].dtype.kind not in "iuf"]
    distinct = frame.drop_duplicates().sample(frac=1, random_state=0).index
    coded = frame.astype(dict.fromkeys(texts, "category"))
    train = distinct[rows:]
    model = xgboost.XGBClassifier(n_estimators=50, max_depth=4, enable_categorical=True, n_jobs=1, random_state=0)
    model.fit(coded.loc[train], (labels.loc[train] == ">50K").astype(int))
    rules = Features(immutable=("sex", "race", "native-country"), increasing="age")
    explainer = CounterfactualExplainer(model, features=rules, search=SearchConfig.close())
    explainer.fit(coded.loc[train[:TRAIN]]).save(folder / "explainer.zip")
    chosen = frame.loc[distinct[:rows]].reset_index(drop=True)
    chosen.assign(key=np.arange(rows)).to_parquet(folder / "rows.parquet", row_group_size=max(1, rows // 10))


def run(folder: Path, engine: Any, workers: int) -> dict[str, Any]:
    """One job into a new folder."""
    sink = folder / f"{engine}-{workers}"
    first: list[float] = []
    start = time.perf_counter()
    report = explain_dataset(
        folder / "explainer.zip",
        folder / "rows.parquet",
        sink,
        keep="key",
        engine=engine,
        workers=workers,
        progress=lambda _: first or first.append(time.perf_counter() - start),
    ).raise_for_status()
    wall = time.perf_counter() - start
    lines = [json.loads(line) for line in (sink / "_manifest.jsonl").read_text(encoding="utf-8").splitlines()]
    blocks = [line["seconds"] for line in lines if "seconds" in line]
    return {
        "engine": engine,
        "workers": workers,
        "rows": report.rows,
        "found": report.found,
        "blocks": report.blocks,
        "wall_seconds": wall,
        "first_block_seconds": first[0],
        "block_seconds_mean": sum(blocks) / len(blocks),
        "block_seconds_max": max(blocks),
        "bytes": sum(path.stat().st_size for path in sink.glob("*.parquet")),
        "sha256": digest(sink),
    }


def digest(sink: Path) -> str:
    """Of the names and bytes of all files of answers."""
    found = hashlib.sha256()
    for path in sorted(sink.rglob("*.parquet")):
        found.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")  # as the processes it is compared with
    import ray

    lines = []
    with tempfile.TemporaryDirectory(prefix="cf", ignore_cleanup_errors=True) as name:
        prepare(Path(name), given.rows)
        for engine, workers in RUNS:
            if engine == "ray" and not ray.is_initialized():
                ray.init("local", num_cpus=2, include_dashboard=False, logging_level="ERROR")
                ray.data.DataContext.get_current().enable_progress_bars = False
            lines.append(run(Path(name), engine, workers))
            print(json.dumps(lines[-1]), flush=True)
        ray.shutdown()
    same = len({line["sha256"] for line in lines}) == 1
    about = {
        "rows": given.rows,
        "same_bytes": same,
        "load": os.getloadavg(),
        "cores": os.cpu_count(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "pandas", "pyarrow", "ray", "xgboost-cpu")},
        },
    }
    given.output.write_text(json.dumps({"about": about, "lines": lines}, indent=1) + "\n", encoding="utf-8")
    print(f"the same bytes in all runs: {same}")


if __name__ == "__main__":
    main()
