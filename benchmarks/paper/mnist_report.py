"""The tables and the page of the MNIST experiment, from its results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import breast_cancer_pictures as bars
import claims
import mnist_pictures as pictures
import mnist_text as text
import numpy as np
from claims import Claim, compared
from common import Places, about, markdown, number, plus_minus, write_csv, write_page
from mnist_searches import DEFAULTS, LOSSES
from store import Arrays

from cfproto_plugin.metrics import MetricTable, summarise

if TYPE_CHECKING:
    from mnist import Experiment

COMMAND = "python benchmarks/paper/mnist.py"
PAPER: dict[str, dict[str, float]] = {  # its table 1; IM2 is written times ten there, and here
    "A": {"seconds": 13.06, "n_steps": 5158, "im1": 1.56, "im2": 1.65},
    "B": {"seconds": 8.40, "n_steps": 2380, "im1": 1.36, "im2": 1.60},
    "C": {"seconds": 3.06, "n_steps": 835, "im1": 1.16, "im2": 1.09},
    "D": {"seconds": 2.31, "n_steps": 497, "im1": 1.21, "im2": 1.26},
    "E": {"seconds": 1.93, "n_steps": 777, "im1": 1.10, "im2": 1.10},
    "F": {"seconds": 4.01, "n_steps": 1116, "im1": 1.19, "im2": 1.27},
}
NAMES = tuple(setting.name for setting in LOSSES)
PRODUCT = tuple(setting.name for setting in DEFAULTS)


def pooled(lines: Mapping[str, Sequence[Arrays]]) -> MetricTable:
    """All seeds and images of a setting together, as in the paper."""
    records = []
    for name, parts in lines.items():
        joined = {metric: np.concatenate([part[metric] for part in parts]) for metric in parts[0]}
        records += summarise(joined, name=name)
    return MetricTable(tuple(records), 0.95)


def all_claims(table: MetricTable) -> list[Claim]:
    """What the paper says about losses A to F, beside what was found."""

    def against_a(claim: str, metric: str, loss: str, **other: Any) -> Claim:
        return compared(claim, table.select(loss, metric), table.select("A", metric), **other)

    found = []
    for metric, word in (("seconds", "time"), ("n_steps", "gradient steps"), ("im1", "IM1"), ("im2", "IM2")):
        for loss in NAMES[1:]:
            paper = PAPER[loss][metric] / PAPER["A"][metric] - 1
            found.append(against_a(f"{word} of {loss} against A", metric, loss, paper=paper))
    found += [
        against_a(f"EN of {loss} against A: A is the sparsest", "elastic_net", loss, direction=1) for loss in NAMES[1:]
    ]
    for loss in NAMES[1:]:
        paper = PAPER[loss]["seconds"] / PAPER["A"]["seconds"] - 1
        found.append(against_a(f"waiting time of {loss} against A, images alone", "alone_seconds", loss, paper=paper))
    sparser = [("C", "B"), ("E", "B")]
    return found + [
        compared(
            f"EN of {one} against {other}: L_proto is sparser than L_AE",
            table.select(one, "elastic_net"),
            table.select(other, "elastic_net"),
            direction=-1,
        )
        for one, other in sparser
    ]


def table_one(table: MetricTable) -> str:
    """Ours beside the paper's, and the product's own settings."""
    body = []
    for name in (*NAMES, *PRODUCT):
        valid = table.select(name, "validity")
        line = [name, f"{valid.mean * valid.n:.0f} of {valid.n}"]
        for metric, factor in (("seconds", 1), ("n_steps", 1), ("im1", 1), ("im2", 10)):
            steps = metric == "n_steps" and not table.select(name, metric).mean
            line += ["-" if steps else plus_minus(table.select(name, metric), factor)]
            line += [number(PAPER[name][metric]) if name in PAPER else ""]
        body.append([*line, plus_minus(table.select(name, "elastic_net")), number(table.select(name, "l0").mean)])
    columns = ("time, s", "paper", "gradient steps", "paper", "IM1", "paper", "IM2 (x10)", "paper", "EN", "L0")
    return markdown(["loss", "found", *columns], body)


def times(table: MetricTable) -> str:
    """What a user waits for."""
    body = [
        [name, *(number(table.select(name, metric).mean) for metric in ("alone_seconds", "batch_seconds"))]
        for name in (*NAMES, *PRODUCT)
    ]
    return markdown(["loss", "one image alone, s", "50 images in one call, s per image"], body)


def closeness(table: MetricTable) -> str:
    """Other ways to see how close an image is to its class."""
    metrics = (("neighbour_distance", 1), ("im2_ink", 10), ("im2_small", 10))
    body = [[name, *(plus_minus(table.select(name, m), f) for m, f in metrics)] for name in (*NAMES, *PRODUCT)]
    columns = (
        "distance to 5 nearest of the class",
        "IM2 (x10), images in [0, 1]",
        "IM2 (x10), AE as small as the AE_i",
    )
    return markdown(["loss", *columns], body)


def why(table: MetricTable, base: MetricTable) -> str:
    """Losses with one thing changed, beside the same images unchanged."""
    body = []
    for name in dict.fromkeys(record.name for record in table.records):
        if name in PRODUCT:
            continue
        source = base if name in NAMES else table
        metrics = (("n_steps", 1), ("im1", 1), ("im2", 10), ("elastic_net", 1), ("l0", 1))
        valid = source.select(name, "validity")
        numbers = [number(factor * source.select(name, metric).mean) for metric, factor in metrics]
        body.append([name, f"{valid.mean * valid.n:.0f} of {valid.n}", *numbers])
    body.sort(key=lambda line: line[0])
    return markdown(["loss", "found", "gradient steps", "IM1", "IM2 (x10)", "EN", "L0"], body)


def write(lines: Mapping[str, Sequence[Arrays]], first: Experiment, places: Places, seeds: int) -> None:
    """The CSV files, the pictures and the page."""
    table, seconds = pooled(lines), first.store.seconds
    extra = min(len(parts[0]["validity"]) for parts in lines.values())
    base = pooled({name: [{m: v[:extra] for m, v in lines[name][0].items()}] for name in NAMES})
    write_csv(places.results / "mnist.csv", [asdict(record) for record in table.records])
    rows = [
        {"setting": name, "image": i, **{metric: part[metric][i].item() for metric in part}}
        for name, parts in lines.items()
        for part in parts
        for i in range(len(part["validity"]))
    ]
    write_csv(places.results / "mnist_rows.csv", rows)
    bars.measures(table, NAMES, NAMES, places.picture("paper-mnist-losses.png"), PAPER)
    pictures.grid(first, places.picture("paper-mnist-grid.png"))
    pictures.reconstructions(first, places.picture("paper-mnist-reconstructions.png"))
    write_page(places.docs / "paper-mnist.md", page(table, base, first, seeds, seconds))


def page(table: MetricTable, base: MetricTable, first: Experiment, seeds: int, seconds: float) -> list[str]:
    """The parts of the page."""
    found = all_claims(table)
    size = first.size
    images = table.select("A", "validity").n
    checks = {name: float(value) for name, value in first.checks().items()}
    checks["accuracy"] *= 100
    return [
        text.INTRODUCTION.format(images=images, seeds=seeds, **checks),
        "## Table 1",
        table_one(table),
        text.TABLE.format(iterations=size.iterations),
        "![Time, gradient steps, IM1, IM2 and EN of losses A to F](pictures/paper-mnist-losses.png)",
        "## The paper's claims",
        claims.RULE + " The verdicts are computed from the table above: " + claims.tally(found) + ".",
        claims.table(found),
        "## Pictures",
        text.GRID,
        "![Originals, counterfactuals of losses A to F and reconstructions](pictures/paper-mnist-grid.png)",
        text.RECONSTRUCTIONS,
        "![Counterfactuals of A and C with reconstructions](pictures/paper-mnist-reconstructions.png)",
        "## What a user waits for",
        text.TIMES,
        times(table),
        "## Closeness to the class",
        text.CLOSENESS,
        closeness(table),
        "## One thing changed at a time",
        text.WHY.format(images=base.select("A", "validity").n),
        text.ALL_C if any("all c" in record.name for record in table.records) else text.KEPT,
        why(table, base),
        about(COMMAND + size.flags, seconds) + text.ABOUT,
    ]
