"""The tables and the page of the MNIST experiment, from its results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import breast_cancer_pictures as bars
import claims
import mnist_pictures as pictures
import mnist_rows
import mnist_text as text
import numpy as np
from common import Places, about, markdown, number, plus_minus, write_csv, write_page
from mnist_rows import Recorded, joined
from mnist_searches import DEFAULTS, LOSSES
from mnist_tables import NAMES, PAPER, all_claims, pooled, table_one
from protocol import REFERENCE, TEXT
from store import Arrays

from cfproto_plugin.metrics import MetricTable

if TYPE_CHECKING:
    from mnist import Experiment

COMMAND = "python benchmarks/paper/mnist.py"
PRODUCT = tuple(setting.name for setting in DEFAULTS)


def times(table: MetricTable) -> str:
    """What a user waits for."""
    body = [
        [name, *(number(table.select(name, metric).mean) for metric in ("alone_seconds", "batch_seconds"))]
        for name in (*NAMES, *PRODUCT)
    ]
    return markdown(["loss", "one image alone, s", "50 images in one call, s per image"], body)


def closeness(table: MetricTable) -> str:
    """Other ways to see how close an image is to its class."""
    metrics = (("neighbour_distance", 1), ("im2_small", 10))
    body = [[name, *(plus_minus(table.select(name, m), f) for m, f in metrics)] for name in (*NAMES, *PRODUCT)]
    columns = ("distance to 5 nearest of the class", "IM2 (x10), AE as small as the AE_i")
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


def agreement(lines: Mapping[str, Sequence[Arrays]]) -> str:
    """For how many images losses end in the same class, of those whose class is on record."""
    pairs, same = (("C", "E"), ("D", "F"), ("A", "C"), ("A", "B")), []
    for pair in pairs:
        one, other = (joined(lines[loss]).get("counterfactual_class", np.empty(0)) for loss in pair)
        known = ~(np.isnan(one) | np.isnan(other))
        if known.any():
            same.append(f"{' and '.join(pair)}: {(one == other)[known].sum()} of {known.sum()}")
    return text.AGREEMENT.format(pairs="; ".join(same)) if same else ""


def write(
    lines: Mapping[str, Sequence[Arrays]],
    first: Experiment,
    places: Places,
    recorded: Recorded,
    *,
    in_time: bool = True,
) -> None:
    """The CSV files, the facts, the pictures and the page. in_time: images that pictures need may be searched.

    Where all was on record the pictures stay as they are: their images would have to be searched again.
    """
    lines = mnist_rows.as_written(lines)
    table = pooled(lines)
    parts = page(table, lines, first, recorded)
    kept = not first.store.seconds
    write_csv(places.results / "mnist.csv", [asdict(record) for record in table.records])
    mnist_rows.write(places.results / "mnist_rows.csv", lines)
    mnist_rows.write_facts(places.results / "mnist_facts.json", recorded.facts)
    bars.measures(
        table, NAMES, NAMES, places.picture("paper-mnist-losses.png"), PAPER, "MNIST, the paper's losses A to F"
    )
    for draw, file, settings in (
        (pictures.grid, "paper-mnist-grid.png", (*LOSSES, *DEFAULTS)),
        (pictures.reconstructions, "paper-mnist-reconstructions.png", (LOSSES[0], LOSSES[2])),
        (pictures.failure_and_success, "paper-mnist-figure-2.png", (LOSSES[1], LOSSES[3])),
    ):
        there = kept and places.picture(file).exists()
        if not there and (in_time or all(first.has(setting) for setting in settings)):
            draw(first, places.picture(file))
    write_page(places.docs / "paper-mnist.md", parts, kept=kept)


def page(table: MetricTable, lines: Mapping[str, Sequence[Arrays]], first: Experiment, recorded: Recorded) -> list[str]:
    """The parts of the page."""
    found = all_claims(lines)
    size, seeds = first.size, len(lines["A"])
    steep = recorded.fact("curvature", lambda: curvature(first))
    trained = recorded.fact(f"networks of {seeds} seeds", lambda: checks(first, seeds))
    accuracy = listed([f"{100 * share:.2f}" for share in trained.pop("accuracy")])
    images = table.select("A", "validity").n
    return [
        text.INTRODUCTION.format(images=f"{images:,}", parts=drawn(lines["A"]), accuracy=accuracy, **trained),
        "## Table 1",
        f"By the text of the paper: {replace(TEXT, steps=size.iterations).words}.",
        table_one(table, TEXT, PRODUCT),
        text.TABLE.format(iterations=size.iterations),
        text.LOSSES_PICTURE,
        "## The paper's claims",
        claims.RULE + text.GROUPS + " The verdicts are of the table by the text: " + claims.tally(found) + ".",
        claims.table(found),
        *by_seed(lines),
        "## Table 1 as the reference runs",
        *by_reference(table, lines),
        "## Pictures",
        text.GRID,
        "![Originals, counterfactuals of losses A to F and reconstructions](pictures/paper-mnist-grid.png)",
        text.RECONSTRUCTIONS,
        "![Counterfactuals of A and C with reconstructions](pictures/paper-mnist-reconstructions.png)",
        text.FIGURE_TWO,
        "![A counterfactual of B and one of D with reconstructions](pictures/paper-mnist-figure-2.png)",
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
        *filter(None, [agreement(lines)]),
        text.CURVATURE.format(**steep),
        about(COMMAND + size.flags + f" --seeds {seeds}" * (seeds > 1), first.store.seconds) + text.ABOUT,
    ]


def drawn(parts: Sequence[Arrays]) -> str:
    """Which images and networks the counterfactuals of a loss are of, one part per seed."""
    counts, seeds = [str(len(part["image"])) for part in parts], [str(seed) for seed in range(len(parts))]
    each = "test images, equally many of every class, drawn in one order"
    if len(parts) == 1:
        return f"{counts[0]} {each}, with the networks of one seed"
    return f"{listed(counts)} {each}, with the networks of seeds {listed(seeds)}"


def listed(words: Sequence[str]) -> str:
    """With "and" before the last."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def checks(first: Experiment, seeds: int) -> Arrays:
    """The accuracy of every seed's classifier, and the means of the autoencoders' errors over all seeds."""
    found = [replace(first, size=replace(first.size, seed=seed)).checks() for seed in range(seeds)]
    errors = {name: np.mean([one[name] for one in found]) for name in found[0] if name != "accuracy"}
    return {**errors, "accuracy": [one["accuracy"] for one in found]}


def curvature(first: Experiment) -> Arrays:
    """The range of every curvature, and at how many images it was taken."""
    found = {name: values.ravel() for name, values in first.curvature().items()}
    ranges = {name: f"{number(values.min())} to {number(values.max())}" for name, values in found.items()}
    return {"images": len(found["reconstruction"]), **ranges}


def by_seed(lines: Mapping[str, Sequence[Arrays]]) -> list[str]:
    """The claims that have images enough, with the networks of every seed alone; nothing for a single seed."""
    seeds = range(len(lines["A"]))
    if len(seeds) == 1:
        return []
    parts = [all_claims({name: [lines[name][seed]] for name in NAMES}) for seed in seeds]
    body = [
        [same[0].name, same[0].stated, *(cell for one in same for cell in (one.found, str(one.n), one.verdict))]
        for same in zip(*parts, strict=True)
        if "waiting" not in same[0].name
    ]
    columns = [cell for seed in seeds for cell in (f"seed {seed} (95 % bounds)", "n", "verdict")]
    return ["## By seed", text.BY_SEED, markdown(["claim", "paper", *columns], body)]


def by_reference(table: MetricTable, lines: Mapping[str, Sequence[Arrays]]) -> list[str]:
    """The second table; its time is not taken, and where it was not run that is said."""
    if f"A{REFERENCE.suffix}" not in lines:
        return [text.NO_REFERENCE]
    images = lines[f"A{REFERENCE.suffix}"][0]["image"]
    return [f"The first {len(images)} images, {REFERENCE.words}. No times were taken.", table_one(table, REFERENCE)]
