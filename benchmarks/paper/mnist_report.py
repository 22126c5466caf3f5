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
from mnist_searches import DEFAULTS, LOSSES, Found
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
        joined = {metric: np.concatenate([part[metric] for part in parts]) for metric in parts[0] if metric != "image"}
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


def why(lines: Mapping[str, Sequence[Arrays]], change: str) -> str:
    """Losses with one thing changed, each below the same images unchanged."""
    metrics = (("n_steps", 1), ("im1", 1), ("im2", 10), ("elastic_net", 1), ("l0", 1))
    body = []
    for name in (name for name in lines if name.endswith(f", {change}")):
        part, whole = lines[name][0], lines[name.split(",", maxsplit=1)[0]][0]
        same = np.isin(whole["image"], part["image"])
        pair = {name.split(",", maxsplit=1)[0]: [{m: v[same] for m, v in whole.items()}], name: [part]}
        table = pooled(pair)
        for one in pair:
            valid = table.select(one, "validity")
            numbers = [number(factor * table.select(one, metric).mean) for metric, factor in metrics]
            body.append([one, f"{valid.mean * valid.n:.0f} of {valid.n}", *numbers])
    return markdown(["loss", "found", "gradient steps", "IM1", "IM2 (x10)", "EN", "L0"], body)


def medians(lines: Mapping[str, Sequence[Arrays]]) -> str:
    """Of EN, which has a long tail."""
    body = []
    for name in (*NAMES, *PRODUCT):
        en = np.concatenate([part["elastic_net"] for part in lines[name]])
        en = en[~np.isnan(en)] if len(en) > np.isnan(en).sum() else np.array([np.nan])
        body.append([name, *(number(float(np.quantile(en, share))) for share in (0.25, 0.5, 0.75, 1))])
    return markdown(["loss", "a quarter below", "median", "three quarters below", "largest"], body)


def agreement(found: Mapping[str, Found]) -> str:
    """For how many images losses end in the same class."""
    pairs = (("C", "E"), ("D", "F"), ("A", "C"), ("A", "B"))
    same = [(one, other, found[one].counterfactual_class == found[other].counterfactual_class) for one, other in pairs]
    return "; ".join(f"{one} and {other}: {equal.sum()} of {len(equal)}" for one, other, equal in same)


def write(lines: Mapping[str, Sequence[Arrays]], first: Experiment, places: Places, seeds: int) -> None:
    """The CSV files, the pictures and the page."""
    table = pooled(lines)
    write_csv(places.results / "mnist.csv", [asdict(record) for record in table.records])
    rows = [
        {"setting": name, **{metric: part[metric][i].item() for metric in part}}
        for name, parts in lines.items()
        for part in parts
        for i in range(len(part["validity"]))
    ]
    write_csv(places.results / "mnist_rows.csv", rows)
    bars.measures(table, NAMES, NAMES, places.picture("paper-mnist-losses.png"), PAPER)
    pictures.grid(first, places.picture("paper-mnist-grid.png"))
    pictures.reconstructions(first, places.picture("paper-mnist-reconstructions.png"))
    write_page(places.docs / "paper-mnist.md", page(table, lines, first, seeds))


def page(table: MetricTable, lines: Mapping[str, Sequence[Arrays]], first: Experiment, seeds: int) -> list[str]:
    """The parts of the page."""
    found = all_claims(table)
    size = first.size
    steep = first.curvature()
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
        text.NO_MOMENTUM.format(images=len(lines["A, no momentum"][0]["image"])),
        why(lines, "no momentum"),
        text.ALL_C.format(images=len(lines["A, all c"][0]["image"])),
        why(lines, "all c"),
        "## Behind the means",
        text.MEDIANS,
        medians(lines),
        text.AGREEMENT.format(pairs=agreement(first.find(LOSSES))),
        text.CURVATURE.format(images=len(steep["reconstruction"]), **{n: _range(v) for n, v in steep.items()}),
        about(COMMAND + size.flags, first.store.seconds) + text.ABOUT,
    ]


def _range(values: Arrays) -> str:
    return f"{number(float(np.min(values)))} to {number(float(np.max(values)))}"
