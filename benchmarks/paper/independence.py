"""ABDM under independence, beside MVDM: `python benchmarks/paper/independence.py`.

The paper says that ABDM "can break down if there is independence between categories" and that MVDM can be used then.
Here a column of eight categories decides the class, and another column repeats it in a share of the rows: 0 is
independence. Writes benchmarks/results/paper/independence.csv and docs/paper-independence.md with its picture.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from common import Places, about, markdown, number, plus_minus, write_csv, write_page
from scipy.stats import kendalltau

from cfproto_plugin.distances import ABDM, MVDM, bin_context
from cfproto_plugin.metrics import MetricTable, summarise
from cfproto_plugin.tables.embedding import embed

CATEGORIES = 8
DISTANCES = {"ABDM": ABDM, "MVDM": MVDM}
COLOURS = {"ABDM": "#b8562b", "MVDM": "#1c7a54"}
TEXT = """# ABDM under independence

ABDM knows a category by what the other columns say about it. The paper warns that it "can break down if there is
independence between categories", and names MVDM, which looks at the predicted class, for such cases. Here the column
`grade` has {categories} categories, and the probability of the class rises from 0.05 to 0.95 with the grade. A second
column repeats the grade in a share of the rows and is random in the others; a third one and a number are noise. With a
share of 0 nothing but the class depends on the grade. {rows} rows, {draws} draws for every share.

*Order* is the absolute value of Kendall's tau between the embedded numbers and the grades: 1 is the order of the
grades, {chance:.2f} is the mean of a random order. *Distance over chance* is the mean distance between grades divided
by the same after the column was shuffled: 1 means that the distances are noise."""


@dataclass(frozen=True)
class Size:
    """How much is run."""

    draws: int = 10
    rows: int = 2000
    shares: tuple[float, ...] = (0.0, 0.1, 0.3, 1.0)


class Table(NamedTuple):
    """Codes (n, 3) of grade, echo and noise, one binned number (n, 1), and the class (n,)."""

    codes: Any
    context: Any
    labels: Any

    @classmethod
    def draw(cls, rows: int, share: float, seed: int) -> Table:
        """The echo repeats the grade in that share of the rows."""
        rng = np.random.default_rng(seed)
        grade, other, noise = rng.integers(0, CATEGORIES, (3, rows))
        echo = np.where(rng.random(rows) < share, grade, other)
        labels = (rng.random(rows) < 0.05 + 0.9 * grade / (CATEGORIES - 1)).astype(int)
        return cls(np.stack([grade, echo, noise], axis=1), bin_context(rng.normal(size=(rows, 1))), labels)

    def shuffled(self, seed: int) -> Table:
        """The same with the grades in another order: nothing depends on them."""
        codes = self.codes.copy()
        np.random.default_rng(seed).shuffle(codes[:, 0])
        return self._replace(codes=codes)


def between_grades(name: str, table: Table) -> Any:
    """Distances (8, 8) of the first column."""
    return DISTANCES[name]()(table.codes, [CATEGORIES] * 3, table.context, table.labels)[0]


def measured(name: str, share: float, seed: int, rows: int) -> dict[str, float]:
    """Order and distance over chance of one draw."""
    table = Table.draw(rows, share, seed)
    distances = between_grades(name, table)
    tau = kendalltau(np.arange(CATEGORIES), embed([distances])[0]).statistic
    return {"order": abs(float(tau)), "over_chance": float(distances.mean() / by_chance(name, table, seed))}


def by_chance(name: str, table: Table, seed: int) -> float:
    """The mean distance after shuffling."""
    return float(between_grades(name, table.shuffled(seed)).mean())


def random_order(draws: int = 2000) -> float:
    """The mean absolute tau of a random order."""
    rng = np.random.default_rng(0)
    ranks = np.arange(CATEGORIES)
    upper = np.triu_indices(CATEGORIES, 1)
    signs = [np.sign(np.subtract.outer(p, p)[upper]).mean() for p in (rng.permutation(ranks) for _ in range(draws))]
    return float(np.abs(signs).mean())


def summary(size: Size) -> MetricTable:
    """Of every distance and share."""
    records = []
    for name, share in product(DISTANCES, size.shares):
        draws = [measured(name, share, seed, size.rows) for seed in range(size.draws)]
        values = {metric: np.array([draw[metric] for draw in draws]) for metric in draws[0]}
        records += summarise(values, name=f"{name} {share:g}")
    return MetricTable(tuple(records), 0.95)


def picture(table: MetricTable, shares: Sequence[float], chance: float, file: Path) -> None:
    """Order and distance over chance by share, with 95 % bounds."""
    figure, pair = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    titles = {"order": "order of the grades, |tau|", "over_chance": "distance over chance"}
    for axes, (metric, title) in zip(pair, titles.items(), strict=True):
        for name, colour in COLOURS.items():
            records = [table.select(f"{name} {share:g}", metric) for share in shares]
            error = [(record.upper - record.lower) / 2 for record in records]
            means = [record.mean for record in records]
            axes.errorbar(range(len(shares)), means, yerr=error, color=colour, marker="o", capsize=3, label=name)
        axes.axhline(chance if metric == "order" else 1, color="#999999", lw=1, ls="--", label="chance")
        axes.set_xticks(range(len(shares)), [f"{share:g}" for share in shares])
        axes.set_xlabel("share of rows in which another column repeats the grade", fontsize=9)
        axes.set_title(title, fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    pair[0].set_ylim(0, 1.05)
    pair[1].set_yscale("log")
    pair[0].legend(loc="center right", frameon=False)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def verdict(table: MetricTable, shares: Sequence[float], chance: float) -> str:
    """The paper's two sentences, judged beyond the bounds."""
    least = f"{min(shares):g}"
    abdm, mvdm = (table.select(f"{name} {least}", "order") for name in DISTANCES)
    breaks = abdm.lower <= chance and abdm.upper < mvdm.lower
    stays = mvdm.lower > max(abdm.upper, chance)
    words = {True: "holds", False: "does not hold"}
    return (
        f"With a share of {least} the order of ABDM is {number(abdm.mean)} ({number(abdm.lower)} to "
        f"{number(abdm.upper)}), where chance gives {number(chance)}, and that of MVDM {number(mvdm.mean)} "
        f"({number(mvdm.lower)} to {number(mvdm.upper)}). ABDM breaks down under independence: {words[breaks]}. MVDM "
        f"does not: {words[stays]}. n = {abdm.n} draws."
    )


def main(places: Places, size: Size) -> None:
    """Measure, and write the results and the page."""
    start = time.process_time()
    table, chance = summary(size), random_order()
    lines = [
        {
            "distance": name,
            "share": share,
            "metric": r.metric,
            "n": r.n,
            "mean": r.mean,
            "low": r.lower,
            "high": r.upper,
        }
        for name, share in product(DISTANCES, size.shares)
        for r in table.records
        if r.name == f"{name} {share:g}"
    ]
    write_csv(places.results / "independence.csv", lines)
    picture(table, size.shares, chance, places.picture("paper-independence.png"))
    body = [
        [name, f"{share:g}", *(plus_minus(table.select(f"{name} {share:g}", m)) for m in ("order", "over_chance"))]
        for name, share in product(DISTANCES, size.shares)
    ]
    parts = [
        TEXT.format(categories=CATEGORIES, rows=size.rows, draws=size.draws, chance=chance),
        "![Order and distance over chance of ABDM and MVDM](pictures/paper-independence.png)",
        markdown(["distance", "share", "order", "distance over chance"], body),
        verdict(table, size.shares, chance),
        about("python benchmarks/paper/independence.py", time.process_time() - start),
    ]
    write_page(places.docs / "paper-independence.md", parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--draws", type=int, default=Size().draws, help="tables drawn for every share")
    main(Places(), Size(draws=parser.parse_args().draws))
