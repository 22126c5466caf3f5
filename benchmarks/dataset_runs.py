"""20,000 distinct Adult rows through `explain_dataset`: in one process, in two, and on Ray with one actor and with two.

Are the files the same, byte for byte? What does Ray cost per row? Run it in the environment of `make test-serve`:
.venv-ray/bin/python benchmarks/dataset_runs.py. Adult is read from CFPROTO_DATA. Results: results/datasets.json.
On a busy machine, `--beside` keeps of every line the earlier run if that took less CPU per block.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import platform
import tempfile
import time
from datetime import UTC, datetime
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
    start, cpu_before = time.perf_counter(), cpu_seconds()
    report = explain_dataset(
        folder / "explainer.zip",
        folder / "rows.parquet",
        sink,
        keep="key",
        engine=engine,
        workers=workers,
        progress=lambda _: first or first.append(time.perf_counter() - start),
    ).raise_for_status()
    wall, own_cpu = time.perf_counter() - start, cpu_seconds() - cpu_before
    lines = [json.loads(line) for line in (sink / "_manifest.jsonl").read_text(encoding="utf-8").splitlines()]
    blocks, cpu = ([line[name] for line in lines if name in line] for name in ("seconds", "cpu_seconds"))
    return {
        "engine": engine,
        "workers": workers,
        "rows": report.rows,
        "found": report.found,
        "blocks": report.blocks,
        "wall_seconds": wall,
        "first_block_seconds": first[0],
        "driver_cpu_seconds": own_cpu,
        "block_seconds_mean": sum(blocks) / len(blocks),
        "block_seconds_max": max(blocks),
        "block_cpu_seconds_mean": sum(cpu) / len(cpu),
        "bytes": sum(path.stat().st_size for path in sink.glob("*.parquet")),
        "sha256": digest(sink),
    }


def cpu_seconds() -> float:
    """Of this process, its threads included."""
    return time.process_time()


def digest(sink: Path) -> str:
    """Of the names and bytes of all files of answers."""
    found = hashlib.sha256()
    for path in sorted(sink.rglob("*.parquet")):
        found.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def as_lines(results: dict[str, Any]) -> list[str]:
    """The lines of the table on the page."""
    return [
        f"| {line['engine']}, {line['workers']} | {line['wall_seconds']:.0f} s | {line['first_block_seconds']:.0f} s | "
        f"{line['block_cpu_seconds_mean']:.2f} s | {line['driver_cpu_seconds']:.1f} s |"
        for line in results["lines"]
    ]


def overhead(results: dict[str, Any], workers: int) -> float:
    """CPU milliseconds per row that Ray takes more than one process: its actors, and the process that leads them."""
    lines = {(line["engine"], line["workers"]): line for line in results["lines"]}
    local, ray = lines["local", 1], lines["ray", workers]
    blocks = ray["blocks"] * (ray["block_cpu_seconds_mean"] - local["block_cpu_seconds_mean"])
    return 1000 * (blocks + ray["driver_cpu_seconds"]) / ray["rows"]


def projected(results: dict[str, Any], workers: int, rows: int = 10**8) -> float:
    """Seconds for so many rows: every worker does its share of blocks, on a core of its own."""
    line = next(line for line in results["lines"] if (line["engine"], line["workers"]) == ("ray", 2))
    blocks = math.ceil(rows / (line["rows"] / line["blocks"]))
    return math.ceil(blocks / workers) * float(line["block_cpu_seconds_mean"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--beside", action="store_true")
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
    earlier = json.loads(given.output.read_text(encoding="utf-8")) if given.beside else {"lines": lines}
    same &= lines[0]["sha256"] == earlier["lines"][0]["sha256"]
    both = zip(lines, earlier["lines"], strict=True)
    lines = [min(pair, key=lambda line: float(line["block_cpu_seconds_mean"])) for pair in both]
    about = {
        "rows": given.rows,
        "same_bytes": same,
        "runs_of_each": 1 + given.beside,
        "date": datetime.now(UTC).date().isoformat(),
        "load": os.getloadavg(),
        "cores": os.cpu_count(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "pandas", "pyarrow", "ray", "xgboost-cpu")},
        },
    }
    results = {**earlier, "about": about, "lines": lines}
    given.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"the same bytes in all runs: {same}")


if __name__ == "__main__":
    main()
