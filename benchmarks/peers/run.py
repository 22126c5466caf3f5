"""Side by side with other libraries, on the same models and rows: `make bench-peers`.

`run.py dice treecf` measures only those again and keeps the others, `run.py "treecf exact"` only that method of its
peer; `run.py --page` writes the page anew.

Every peer lives in an environment of its own under .venv-peers and runs in a process of its own. The quick ones are
measured in three rounds that take turns, so that other work on the machine does not fall on one of them alone. Writes
benchmarks/results/peers.json, docs/peers.md and docs/pictures/peers.png.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import subprocess
import sys
import venv
from collections import defaultdict
from pathlib import Path
from typing import Any

from cases import build, load
from report import write
from scores import merge

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
ENVIRONMENTS = TOP / ".venv-peers"
WORK = ENVIRONMENTS / "work"
RESULT = TOP / "benchmarks" / "results" / "peers.json"
PEERS = ("ours", "nice", "treecf", "dice", "alibi")
ROUNDS = 3
ONCE = ("dice", "alibi")  # slow
# one thread for all: BLAS and OpenMP, treecf's Rust, alibi's TensorFlow
THREADS = ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1") | {"TF_CPP_MIN_LOG_LEVEL": "3"}


def environment(peer: str) -> Path:
    """The Python of a peer, made anew when its requirements changed; ours is the one that runs this."""
    if peer == "ours":
        return Path(sys.executable)
    folder, needs = ENVIRONMENTS / peer, HERE / f"requirements-{peer}.txt"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists() or ready.stat().st_mtime < needs.stat().st_mtime:
        print(f"installing {peer} ...", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-compile", "-r", needs], check=True)
        ready.touch()
    return python


def measure(peer: str, python: Path, number: int, methods: list[str]) -> dict[str, Any]:
    """One round of one peer, in its own process."""
    print(f"{peer}, round {number + 1}", flush=True)
    output = WORK / f"{peer}.json"
    command = [python, HERE / "worker.py", peer, WORK, str(number), output, *methods]
    subprocess.run(command, check=True, env=os.environ | ONE_THREAD)
    return json.loads(output.read_text())


def run(names: list[str]) -> dict[str, Any]:
    """All rounds of the named peers and methods, judged."""
    peers = list(dict.fromkeys(map(peer_of, names)))
    methods = [name for name in names if name not in PEERS]
    pythons = {peer: environment(peer) for peer in peers}
    build(WORK)
    rounds: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    versions = {"python": platform.python_version()}
    for number in range(ROUNDS):
        for peer, python in pythons.items():
            if number and peer in ONCE:
                continue
            answer = measure(peer, python, number, methods)
            versions |= {f"{peer}: {package}": found for package, found in answer["versions"].items()}
            for line in answer["results"]:
                rounds[line["data"], line["model"], line["method"]].append(line)
    return {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "command": " ".join(["python benchmarks/peers/run.py", *(map(repr, names) if len(peers) < len(PEERS) else ())]),
        "versions": versions,
        "lines": [merge(load(WORK, data, kind), lines) for (data, kind, _), lines in rounds.items()],
    }


def peer_of(name: str) -> str:
    """The peer of that name, or the one whose methods begin with its name."""
    return next((peer for peer in PEERS if name.lower().replace(",", " ").split()[0] == peer), name)


def renewed(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The old result with what was measured again in its place."""

    def key(line: dict[str, Any]) -> tuple[str, str, str]:
        return line["data"], line["model"], line["method"]

    lines = {key(line): line for line in old["lines"]} | {key(line): line for line in new["lines"]}
    command = "; ".join(dict.fromkeys([*old["command"].split("; "), new["command"]]))
    return new | {"versions": old["versions"] | new["versions"], "command": command, "lines": list(lines.values())}


def main(names: list[str]) -> None:
    """Run those named, all without a name."""
    os.environ.update(ONE_THREAD)
    if names != ["--page"]:
        unknown = [name for name in names if peer_of(name) not in PEERS]
        if unknown:
            sys.exit(f"there is no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
        result = run(names or list(PEERS))
        if names and RESULT.exists():
            result = renewed(json.loads(RESULT.read_text()), result)
        RESULT.write_text(json.dumps(result) + "\n")
    write(json.loads(RESULT.read_text()), TOP / "docs")


if __name__ == "__main__":
    main(sys.argv[1:])
