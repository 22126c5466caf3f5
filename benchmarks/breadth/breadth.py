"""Every tool on many tables: `make bench-breadth`, which goes on where it was stopped."""

from __future__ import annotations

import argparse
import os
import warnings

from cells import CASES, METHODS, ONE_THREAD, ask
from matrices import build, names


def main() -> None:
    """Build the cases, ask, score, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", nargs="*", choices=METHODS, default=list(METHODS), help="ask only these")
    given = parser.parse_args()
    os.environ.update(ONE_THREAD)
    warnings.simplefilter("ignore")
    for data in names():
        build(data, CASES)
    for tool in given.tools:
        ask(tool)


if __name__ == "__main__":
    main()
