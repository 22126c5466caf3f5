"""Run drawn cases: `python -m tests.fuzz --seed 7` one, `python -m tests.fuzz --rows 20000` many.

A long run can be made in parts: without `--start` it goes on after the last seed of the file of results. `--tables` is
for the thirty tables, and `--page` writes the figures of both into docs/promises.md. The exit status is 1 if anything
was found.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(TOP / "benchmarks"))

from . import page  # noqa: E402
from .campaign import campaign, on_tables, one  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, help="run one case and print it")
    parser.add_argument("--rows", type=int, default=20_000, help="stop after so many explained rows")
    parser.add_argument("--start", type=int, help="the first seed; default: after the last one in the results")
    parser.add_argument("--batch", type=int, default=50, help="the most rows of a case")
    parser.add_argument("--results", type=Path, default=page.RESULTS / "fuzz.json")
    parser.add_argument("--tables", action="store_true", help="100 rows of each of the thirty tables in CFPROTO_DATA")
    parser.add_argument("--page", action="store_true", help="write the figures of docs/promises.md from the results")
    options = parser.parse_args()
    if options.page:
        page.PAGE.write_text(page.page())
        return 0
    if options.tables:
        return on_tables(100, page.RESULTS / "tables.json")
    if options.seed is not None:
        return one(options.seed, options.batch)
    return campaign(options.rows, options.start, options.batch, options.results)


if __name__ == "__main__":
    sys.exit(main())
