"""Breast Cancer over all that the paper leaves open: `python benchmarks/paper/breast_cancer_grid.py`.

Loss B against A for every combination of the weight of L1, k, theta, the steps per c, the rule for c, momentum and the
start of the networks' weights: a surface instead of one cell. Two seeds by default. A cell is written to
benchmarks/results/paper/breast_cancer_grid.csv as soon as it is done, and one that stands there with the same number of
seeds is not searched again; every search has a file of its own below .cache/paper, too. Writes
docs/paper-breast-cancer-grid.md with its picture.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from breast_cancer import Method, measured, method, search
from breast_cancer_networks import Data, Start, networks
from breast_cancer_report import PAPER
from common import Places, about, markdown, number, per_cent, write_csv, write_page
from paired import change
from protocol import TEXT, Protocol
from store import Arrays, Store
from tqdm import tqdm

MEASURES = {"n_steps": "gradient steps", "im1": "IM1", "im2": "IM2", "elastic_net": "EN"}
INTRODUCTION = """# Breast Cancer: what the open settings decide

The paper names beta, kappa and c of this experiment and leaves the rest open. Here loss B is compared with loss A for
every combination of {choices}: {cells} cells, {rows} rows and {seeds} seeds each, paired on the rows that both find.
The weight of L1 is either what shrinking by beta in steps of 0.01 amounts to, beta / 0.01, or beta as it is written."""
SURFACE = """The change of IM1 from A to B by theta (down) and k (across), one panel for every combination of the other
settings. The paper has -55 %."""


class Cell(NamedTuple):
    """One combination; theta and k are those of B."""

    start: Start
    beta: float
    momentum: bool
    first_c: bool
    steps: int
    theta: float
    k: int

    @property
    def protocol(self) -> Protocol:
        """How both losses are run."""
        return replace(TEXT, name="grid", momentum=self.momentum, first_c=self.first_c, steps=self.steps)

    def method(self, loss: str) -> Method:
        """Loss A or B of this cell."""
        own = {"theta": self.theta, "k": self.k} if loss == "B" else {}
        return method(loss, self.protocol, loss, beta=self.beta, **own)

    def place(self, loss: str) -> str:
        """The file of a loss; A is the same for all theta and k."""
        words = [self.start, f"beta{self.beta:g}", f"m{self.momentum:d}", f"f{self.first_c:d}", f"n{self.steps}"]
        return "-".join([loss, *words, *([f"t{self.theta:g}", f"k{self.k}"] if loss == "B" else [])])


@dataclass(frozen=True)
class Size:
    """How much is run."""

    seeds: int = 2
    rows: int = 19
    epochs: int = 500
    starts: tuple[Start, ...] = ("keras", "torch")
    betas: tuple[float, ...] = (0.1, 0.001)
    steps: tuple[int, ...] = (500, 1000)
    thetas: tuple[float, ...] = (20, 50, 100, 200)
    ks: tuple[int, ...] = (1, 2, 5, 10)

    @property
    def per_cell(self) -> dict[str, int]:
        """What a cell depends on beside its own settings."""
        return {"seeds": self.seeds, "rows": self.rows, "epochs": self.epochs}

    def cells(self) -> Iterator[Cell]:
        """Every combination."""
        flags = (True, False)
        for values in product(self.starts, self.betas, flags, flags, self.steps, self.thetas, self.ks):
            yield Cell(*values)


def line(cell: Cell, parts: dict[str, list[Arrays]], size: Size) -> dict[str, Any]:
    """The effects of B against A in one cell, over all seeds."""
    found: dict[str, Any] = {**cell._asdict(), **size.per_cell}
    at = np.tile(np.arange(size.rows), size.seeds)
    for metric in MEASURES:
        a, b = (np.concatenate([part[metric] for part in parts[loss]]) for loss in "AB")
        effect = change(b, a, at)
        found |= {"n": effect.n, metric: effect.mean, f"{metric}_low": effect.lower, f"{metric}_high": effect.upper}
    return found


def recorded(file: Path, size: Size) -> dict[Cell, dict[str, Any]]:
    """The lines of an earlier run of this size; none if there is no such file."""
    if not file.exists():
        return {}
    with file.open() as opened:
        lines = list(csv.DictReader(opened))
    words = {"start": str, "momentum": "True".__eq__, "first_c": "True".__eq__}
    whole = {"steps", "k", "n", *size.per_cell}
    read = [
        {name: words.get(name, int if name in whole else float)(text or "nan") for name, text in one.items()}
        for one in lines
    ]
    same = [one for one in read if size.per_cell.items() <= one.items()]
    return {Cell(*(one[name] for name in Cell._fields)): one for one in same}


def run(store: Store, size: Size, file: Path, *, progress: bool = True) -> list[dict[str, Any]]:
    """A line for every cell; the file has all that are known, from the first new one on."""
    data = Data.load(size.rows)
    found, known = recorded(file, size), dict[tuple[str, int], Arrays]()
    trained = cache(lambda start, seed: networks(store, data, seed, size.epochs, start))

    def values(cell: Cell, loss: str, seed: int) -> Arrays:
        key = cell.place(loss), seed
        if key not in known:
            own, one = cell.method(loss), trained(cell.start, seed)
            settings = {"epochs": size.epochs, "rows": size.rows, "powers": own.powers, **asdict(own.search())}
            kept = store.get(f"grid/seed{seed}/{key[0]}", settings, lambda: search(data, one.classifier, own))
            known[key] = measured(kept, data, one, None)
        return known[key]

    cells = list(size.cells())
    for cell in tqdm(cells, desc="grid", unit="cell", disable=not progress):
        if cell not in found:
            parts = {loss: [values(cell, loss, seed) for seed in range(size.seeds)] for loss in "AB"}
            found[cell] = line(cell, parts, size)
            write_csv(file, [found[each] for each in cells if each in found])
    return [found[cell] for cell in cells]


def by_setting(lines: Sequence[dict[str, Any]]) -> str:
    """For every value of every setting the median effects over all cells that have it."""
    body = []
    for name in Cell._fields:
        for value in dict.fromkeys(one[name] for one in lines):
            mine = [one for one in lines if one[name] == value]
            shown = [per_cent(float(np.nanmedian([one[metric] for one in mine]))) for metric in MEASURES]
            body.append([name, str(value), str(len(mine)), *shown])
    return markdown(["setting", "value", "cells", *MEASURES.values()], body)


def spread(lines: Sequence[dict[str, Any]]) -> str:
    """How far the effects range, beside the paper's."""
    body = []
    for metric, word in MEASURES.items():
        effects = np.array([one[metric] for one in lines])
        known = metric in PAPER["A"]
        paper = per_cent(PAPER["B"][metric] / PAPER["A"][metric] - 1) if known else "more"
        cuts = [per_cent(float(np.nanquantile(effects, share))) for share in (0, 0.25, 0.5, 0.75, 1)]
        body.append([word, paper, *cuts])
    return markdown(["measure", "paper", "least", "a quarter below", "median", "three quarters below", "most"], body)


def picture(lines: Sequence[dict[str, Any]], size: Size, file: Path) -> None:
    """A panel of theta by k for every combination of the others."""
    others = list(dict.fromkeys(tuple(one[name] for name in Cell._fields[:5]) for one in lines))
    columns = min(8, len(others))
    rows = -(-len(others) // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(1.6 * columns + 1, 1.9 * rows), layout="constrained", squeeze=False
    )
    shown = None
    for axes, other in zip(grid.flat, others, strict=False):
        effect = {(one["theta"], one["k"]): one["im1"] for one in lines if tuple(one.values())[:5] == other}
        image = [[100 * effect[theta, k] for k in size.ks] for theta in size.thetas]
        shown = axes.imshow(image, cmap="RdYlGn_r", vmin=-60, vmax=60)
        axes.set_xticks(range(len(size.ks)), map(str, size.ks), fontsize=6)
        axes.set_yticks(range(len(size.thetas)), [f"{theta:g}" for theta in size.thetas], fontsize=6)
        start, beta, momentum, first_c, steps = other
        title = f"{start}, L1 {'x 100' if beta > 0.01 else 'as written'}\n"
        title += f"{'momentum' if momentum else 'no mom.'}, {'first c' if first_c else 'all c'}, {steps}"
        axes.set_title(title, fontsize=6)
    figure.colorbar(shown, ax=grid, label="IM1 of B against A, %", shrink=0.6)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(places: Places, size: Size, *, progress: bool = True) -> None:
    """Search what is not there yet, then write the results and the page."""
    torch.set_num_threads(1)
    store = Store(places.cache / "breast_cancer")
    lines = run(store, size, places.results / "breast_cancer_grid.csv", progress=progress)
    picture(lines, size, places.picture("paper-bcw-grid.png"))
    choices = "the start of the weights, the weight of L1, momentum, the rule for c, steps per c, theta and k"
    holding = sum(one["im1_high"] < 0 for one in lines)
    share = f"in {holding} of {len(lines)} cells ({number(100 * holding / len(lines))} %)"
    parts = [
        INTRODUCTION.format(choices=choices, cells=len(lines), rows=size.rows, seeds=size.seeds),
        spread(lines),
        f"IM1 of B is below that of A beyond the bounds {share}.",
        "## The surface",
        SURFACE,
        "![IM1 of B against A over all open settings](pictures/paper-bcw-grid.png)",
        "## By setting",
        "The median change over all cells with a value, the others running through all of theirs.",
        by_setting(lines),
        about("python benchmarks/paper/breast_cancer_grid.py", store.seconds),
    ]
    write_page(places.docs / "paper-breast-cancer-grid.md", parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=Size().seeds, help="how often the networks are trained anew")
    parser.add_argument("--cache", type=Path, default=Places().cache, help="folder of networks and single results")
    arguments = parser.parse_args()
    main(Places(cache=arguments.cache), Size(seeds=arguments.seeds))
