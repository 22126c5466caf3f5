"""Breast Cancer over all that the paper leaves open: `python benchmarks/paper/breast_cancer_grid.py`.

Loss B against A for every combination of the weight of L1, k, theta, the steps per c, the rule for c, momentum and the
start of the networks' weights: a surface instead of one cell. Two seeds by default. A cell is written to
benchmarks/results/paper/breast_cancer_grid.csv as soon as it is done, and one that stands there with the same number of
seeds is not searched again, unless `--fresh` says so; every search has a file of its own below .cache/paper, too.
Writes docs/paper-breast-cancer-grid.md with its picture.
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
from claims import Claim, tally
from common import Places, about, markdown, number, per_cent, write_csv, write_page
from paired import change
from protocol import TEXT, Protocol
from store import Arrays, Store
from tqdm import tqdm

from cfproto_plugin import Explanation

MEASURES = {"n_steps": "gradient steps", "im1": "IM1", "im2": "IM2", "elastic_net": "EN"}
INTRODUCTION = """# Breast Cancer: what the open settings decide

The paper names beta, kappa and c of [this experiment](paper-breast-cancer.md) and leaves the rest open. Here loss B is
compared with loss A for every combination of {choices}: {cells} cells, {rows} rows and {seeds} seeds each, paired on
the rows that both find. The weight of L1 is either beta as it is written, or what shrinking by beta in steps of 0.01
amounts to, beta / 0.01. *Holds*, *stronger* and *weaker* are by the rule of [the other pages](paper.md), the 95 %
bounds those of a cell; a row counts once, with both networks."""
SURFACE = """The change of IM1 from A to B in per cent by theta (down) and k (across), one panel for every combination
of the other settings. The paper has {paper}. Bold: the bounds do not contain 0."""
READING = """Gradient steps and IM2 fall beyond the bounds in every cell; IM1 hangs on what the paper does not say.
The weight of L1, k and the start of the weights move it most; momentum, the rule for c and the steps per c matter
little. With L1 as it is written and weights that start as in Keras, in which the reference is written, all three hold
in {good} of {cells} cells, with the opposite choices in {bad} of {others}."""
PROTOTYPES = """With L1 as it is written A stays nearer to its row and looks less like the new class, so that B gains
more. Theta = 50 stands out there, for a reason that has nothing to do with interpretability: a step of 0.01 along the
gradient 2 theta (x - prototype) is then the whole way, so that the first iterate is the prototype itself and the search
sees nothing between. The last column says so: the distance of B's counterfactual to the nearest training row, as a
share of its distance to the row that is explained (median of the rows, then of the cells)."""
SETTINGS = {
    "start": "start of the weights",
    "beta": "weight of L1",
    "momentum": "momentum",
    "first_c": "rule for c",
    "steps": "steps per c",
    "theta": "theta",
    "k": "k",
}
WORDS: dict[tuple[str, Any], str] = {  # of values that are not numbers to a reader
    ("start", "keras"): "as Keras",
    ("start", "torch"): "as PyTorch",
    ("beta", 0.1): "beta / 0.01",
    ("beta", 0.001): "beta, as written",
    ("momentum", True): "with",
    ("momentum", False): "without",
    ("first_c", True): "the first that works",
    ("first_c", False): "ten with bisection",
}


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
    nearness = np.concatenate([part["nearness"] for part in parts["B"]])
    return {**found, "nearness": float(np.nanmedian(nearness))}


def nearness(kept: Arrays, data: Data) -> np.ndarray:
    """The distance (n,) of a counterfactual to the nearest training row, as a share of that to its own row."""
    e = Explanation.from_json(str(kept["explanation"]))
    x = np.where((e.status == "found")[:, None], e.counterfactual.astype(float), np.nan)
    nearest = np.sqrt(np.square(x[:, None] - data.train).sum(axis=2)).min(axis=1)
    return np.asarray(nearest / np.sqrt(np.square(x - data.x).sum(axis=1)))


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


def run(store: Store, size: Size, file: Path, *, fresh: bool = False, progress: bool = True) -> list[dict[str, Any]]:
    """A line for every cell; the file has all that are known, from the first new one on."""
    data = Data.load(size.rows)
    found, known = {} if fresh else recorded(file, size), dict[tuple[str, int], Arrays]()
    trained = cache(lambda start, seed: networks(store, data, seed, size.epochs, start))

    def values(cell: Cell, loss: str, seed: int) -> Arrays:
        key = cell.place(loss), seed
        if key not in known:
            own, one = cell.method(loss), trained(cell.start, seed)
            settings = {"epochs": size.epochs, "rows": size.rows, "powers": own.powers, **asdict(own.search())}
            kept = store.get(f"grid/seed{seed}/{key[0]}", settings, lambda: search(data, one.classifier, own))
            known[key] = {**measured(kept, data, one, None), "nearness": nearness(kept, data)}
        return known[key]

    cells = list(size.cells())
    for cell in tqdm(cells, desc="grid", unit="cell", disable=not progress):
        if cell not in found:
            before = store.seconds
            parts = {loss: [values(cell, loss, seed) for seed in range(size.seeds)] for loss in "AB"}
            found[cell] = {**line(cell, parts, size), "seconds": store.seconds - before}
            write_csv(file, [found[each] for each in cells if each in found])
    return [found[cell] for cell in cells]


def claim(one: dict[str, Any], metric: str) -> Claim:
    """What the paper says about B against A, beside one cell."""
    known = metric in PAPER["A"]
    paper = PAPER["B"][metric] / PAPER["A"][metric] - 1 if known else None
    bounds = one[metric], one[f"{metric}_low"], one[f"{metric}_high"]
    return Claim(MEASURES[metric], paper, *bounds, one["n"], direction=0 if known else 1)


def holding(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cells in which gradient steps, IM1 and IM2 all hold."""
    return [
        one for one in lines if all(claim(one, metric).verdict == "holds" for metric in PAPER["A"] & MEASURES.keys())
    ]


def medians(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Of the effects, over cells."""
    return [per_cent(float(np.nanmedian([one[metric] for one in lines]))) for metric in MEASURES]


def by_setting(lines: Sequence[dict[str, Any]]) -> str:
    """For every value of every setting the median effects over all cells that have it."""
    body = []
    for name, word in SETTINGS.items():
        for value in dict.fromkeys(one[name] for one in lines):
            mine = [one for one in lines if one[name] == value]
            shown = WORDS.get((name, value), f"{value:g}" if isinstance(value, float) else str(value))
            body.append([word, shown, *medians(mine), f"{len(holding(mine))} of {len(mine)}"])
    return markdown(["setting", "value", *MEASURES.values(), "cells in which steps, IM1 and IM2 hold"], body)


def by_theta(lines: Sequence[dict[str, Any]]) -> str:
    """The median effects for every theta and weight of L1, and how near B comes to a training row."""
    body = []
    for beta, theta in dict.fromkeys((one["beta"], one["theta"]) for one in lines):
        mine = [one for one in lines if (one["beta"], one["theta"]) == (beta, theta)]
        share = number(100 * float(np.median([one["nearness"] for one in mine])))
        body.append([WORDS["beta", beta], f"{theta:g}", *medians(mine), f"{share} %"])
    return markdown(["weight of L1", "theta", *MEASURES.values(), "to a training row"], body)


def spread(lines: Sequence[dict[str, Any]]) -> str:
    """How far the effects range, beside the paper's, and the verdicts."""
    body = []
    for metric, word in MEASURES.items():
        effects, judged = [one[metric] for one in lines], [claim(one, metric) for one in lines]
        paper = "more" if judged[0].paper is None else per_cent(judged[0].paper)
        cuts = [per_cent(float(np.nanquantile(effects, share))) for share in (0, 0.25, 0.5, 0.75, 1)]
        body.append([word, paper, *cuts, tally(judged)])
    cuts = ["least", "a quarter below", "median", "three quarters below", "most"]
    return markdown(["measure", "paper", *cuts, "cells"], body)


def picture(lines: Sequence[dict[str, Any]], size: Size, file: Path) -> None:
    """A panel of theta by k for every combination of the others: momentum, c and steps across, the rest down."""
    across = list(dict.fromkeys((one["momentum"], one["first_c"], one["steps"]) for one in lines))
    down = list(dict.fromkeys((one["start"], one["beta"]) for one in lines))
    figure, grid = plt.subplots(
        len(down), len(across), figsize=(1.7 * len(across) + 1.6, 1.75 * len(down) + 0.5), squeeze=False, sharex=True,
        sharey=True, layout="constrained",
    )  # fmt: skip
    by_cell = {Cell(*(one[name] for name in Cell._fields)): one for one in lines}
    shown = None
    for i, (start, beta) in enumerate(down):
        for j, (momentum, first, steps) in enumerate(across):
            axes, effects = grid[i, j], np.full((len(size.thetas), len(size.ks)), np.nan)
            for (m, theta), (n, k) in product(enumerate(size.thetas), enumerate(size.ks)):
                one = by_cell[Cell(start, beta, momentum, first, steps, theta, k)]
                effects[m, n] = 100 * one["im1"]
                clear = "bold" if one["im1_low"] > 0 or one["im1_high"] < 0 else "normal"
                colour = "white" if abs(effects[m, n]) > 45 else "black"
                axes.text(
                    n, m, f"{effects[m, n]:+.0f}", ha="center", va="center", fontsize=7, weight=clear, color=colour
                )
            shown = axes.imshow(effects, cmap="RdYlGn_r", vmin=-70, vmax=70)
            axes.set_xticks(range(len(size.ks)), [f"{k}" for k in size.ks], fontsize=7)
            axes.set_yticks(range(len(size.thetas)), [f"{theta:g}" for theta in size.thetas], fontsize=7)
        rule = "L1: " + WORDS["beta", beta]
        grid[i, 0].set_ylabel(f"weights {WORDS['start', start]}\n{rule}\ntheta", fontsize=8)
    for j, (momentum, first, steps) in enumerate(across):
        words = f"{WORDS['momentum', momentum]} momentum\nc: {WORDS['first_c', first]}\n{steps:,} steps"
        grid[0, j].set_title(words, fontsize=8)
        grid[-1, j].set_xlabel("k", fontsize=8)
    figure.colorbar(shown, ax=grid, shrink=0.6).set_label("IM1 of B against A, %", fontsize=8)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main(places: Places, size: Size, *, fresh: bool = False, progress: bool = True) -> None:
    """Search what is not there yet, then write the results and the page."""
    torch.set_num_threads(1)
    store = Store(places.cache / "breast_cancer")
    lines = run(store, size, places.results / "breast_cancer_grid.csv", fresh=fresh, progress=progress)
    picture(lines, size, places.picture("paper-bcw-grid.png"))
    write_page(places.docs / "paper-breast-cancer-grid.md", page(lines, size), kept=not store.seconds)


def reading(lines: Sequence[dict[str, Any]]) -> str:
    """How much the weight of L1 and the start of the weights decide together."""
    near = [one for one in lines if (one["start"], one["beta"]) == ("keras", 0.001)]
    far = [one for one in lines if (one["start"], one["beta"]) == ("torch", 0.1)]
    return READING.format(good=len(holding(near)), cells=len(near), bad=len(holding(far)), others=len(far))


def page(lines: Sequence[dict[str, Any]], size: Size) -> list[str]:
    """The parts of the page."""
    names = list(SETTINGS.values())
    choices = "the " + ", ".join(names[:-1]) + " and " + names[-1]
    good = len(holding(lines))
    return [
        INTRODUCTION.format(choices=choices, cells=len(lines), rows=size.rows, seeds=size.seeds),
        spread(lines),
        f"Gradient steps, IM1 and IM2 all hold in {good} of {len(lines)} cells ({number(100 * good / len(lines))} %).",
        reading(lines),
        "## The surface",
        SURFACE.format(paper=per_cent(PAPER["B"]["im1"] / PAPER["A"]["im1"] - 1)),
        "![IM1 of B against A over all open settings](pictures/paper-bcw-grid.png)",
        "## The weight of L1 and theta",
        PROTOTYPES,
        by_theta(lines),
        "## By setting",
        "The median change over all cells with a value, the others running through all of theirs.",
        by_setting(lines),
        about("python benchmarks/paper/breast_cancer_grid.py", sum(one["seconds"] for one in lines)),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=Size().seeds, help="how often the networks are trained anew")
    parser.add_argument("--cache", type=Path, default=Places().cache, help="folder of networks and single results")
    parser.add_argument("--fresh", action="store_true", help="do not go on from the committed cells")
    arguments = parser.parse_args()
    main(Places(cache=arguments.cache), Size(seeds=arguments.seeds), fresh=arguments.fresh)
