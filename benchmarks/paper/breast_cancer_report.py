"""The tables and the page of the Breast Cancer experiment, from its results alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import breast_cancer_pictures as pictures
import breast_cancer_text as text
import claims
import numpy as np
from claims import Claim, compared
from common import Places, about, markdown, number, per_cent, plus_minus, write_csv, write_page
from paired import mean
from protocol import REFERENCE, TEXT, Protocol

from cfproto_plugin.metrics import MetricTable, summarise

if TYPE_CHECKING:
    from breast_cancer import Size

COMMAND = "python benchmarks/paper/breast_cancer.py"
PAPER: dict[str, dict[str, float]] = {  # its table 2; IM2 is written times ten there, and here
    "A": {"seconds": 2.68, "n_steps": 2752, "im1": 2.07, "im2": 7.65},
    "B": {"seconds": 0.35, "n_steps": 253, "im1": 0.94, "im2": 1.47},
    "C": {"seconds": 0.22, "n_steps": 182, "im1": 0.88, "im2": 1.41},
}
LOSSES = ("A", "B", "C")
SWEPT = ("B theta=100", "B k=1")  # loss B as it stands in the sweeps
PRODUCT = ("path", "path + polish")
CHANGES = ("no momentum", "all c", "half the steps", "L1 as written")
Found = Sequence[tuple[int, str, dict[str, Any]]]


def pooled(found: Found) -> MetricTable:
    """All seeds and rows of a method together, as in the paper: 19 times 5 counterfactuals.

    The sweeps contain loss B itself, which was searched once.
    """
    values: dict[str, dict[str, list[Any]]] = {}
    swept = [(seed, name, of) for seed, of_b, of in found if of_b == "B" for name in SWEPT]
    for _, name, of_rows in (*found, *swept):
        with_ratio = {**of_rows, "attributes_per_feature": _ratio(of_rows)}
        for metric, numbers in with_ratio.items():
            values.setdefault(name, {}).setdefault(metric, []).append(numbers)
    records = [
        record
        for name, measures in values.items()
        for record in summarise({metric: np.concatenate(v) for metric, v in measures.items()}, name=name)
    ]
    return MetricTable(tuple(records), 0.95)


def _ratio(values: dict[str, Any]) -> Any:
    """Different attributes per changed feature; none where no feature changed by a standard deviation."""
    features = np.where(values["features"] > 0, values["features"], np.nan)
    return values["attributes"] / features


def values_of(found: Found, name: str, metric: str) -> Any:
    """A measure (seeds * rows,) of a method; loss B also stands in the sweeps."""
    name = "B" if name in SWEPT else name
    parts = sorted(((seed, of) for seed, of_name, of in found if of_name == name), key=lambda part: part[0])
    return np.concatenate([_ratio(of) if metric == "attributes_per_feature" else of[metric] for _, of in parts])


def all_claims(found: Found, size: Size, protocol: Protocol = TEXT) -> list[Claim]:
    """What the paper says about this experiment, beside what was found; the sweeps are of one protocol only."""
    suffix = protocol.suffix

    def against(claim: str, metric: str, loss: str, base: str = "A", **other: Any) -> Claim:
        ours, theirs = (values_of(found, name, metric) for name in (loss, base + suffix))
        rows = np.tile(np.arange(size.rows), len(ours) // size.rows)
        return compared(claim, ours, theirs, rows, **other)

    judged = []
    for metric, word in (("seconds", "time"), ("n_steps", "gradient steps"), ("im1", "IM1"), ("im2", "IM2")):
        for loss in ("B", "C"):
            paper = PAPER[loss][metric] / PAPER["A"][metric] - 1
            judged.append(against(f"{word} of {loss} against A", metric, loss + suffix, paper=paper))
    for loss in ("B", "C"):
        paper = PAPER[loss]["seconds"] / PAPER["A"]["seconds"] - 1
        name = f"waiting time of {loss} against A, rows alone"
        judged.append(against(name, "alone_seconds", loss + suffix, paper=paper))
    for claim, metric, direction in (
        ("EN of {} against A: A is the sparsest", "elastic_net", 1),
        ("features changed, {} against A", "features", 1),
        ("attributes per changed feature, {} against A", "attributes_per_feature", -1),
    ):
        judged += [against(claim.format(loss), metric, loss + suffix, direction=direction) for loss in "BC"]
    return judged


def sweep_claims(found: Found, size: Size) -> list[Claim]:
    """A broad range of theta and k works well: loss B against A at the worst value of each."""
    sweeps = {"theta": [f"B theta={t:g}" for t in size.thetas], "k": [f"B k={k}" for k in size.ks]}
    judged = []
    for metric, word in (("n_steps", "gradient steps"), ("im1", "IM1"), ("im2", "IM2")):
        base = values_of(found, "A", metric)
        rows = np.tile(np.arange(size.rows), len(base) // size.rows)
        for swept, names in sweeps.items():
            worst = max(names, key=lambda name: mean(values_of(found, name, metric)))
            claim = f"{word} of B against A at the worst {swept}, {worst.split('=')[1]}"
            judged.append(compared(claim, values_of(found, worst, metric), base, rows, direction=-1))
    return judged


def judged(found: Found, size: Size) -> list[str]:
    """The section with the claims, by both protocols."""
    first, second, swept = all_claims(found, size), all_claims(found, size, REFERENCE), sweep_claims(found, size)
    return [
        claims.RULE + text.GROUPS,
        f"By the text: {claims.tally(first)}. As the reference runs: {claims.tally(second)}.",
        claims.beside(first, second, ("by the text", "as the reference")),
        f"A broad range of theta and k works well, by the text: {claims.tally(swept)}.",
        claims.table(swept),
    ]


def table_two(table: MetricTable, protocol: Protocol = TEXT, others: Sequence[str] = ()) -> str:
    """Ours beside the paper's, and others, which count no steps."""
    body = []
    for loss in (*LOSSES, *others):
        name = loss + protocol.suffix * (loss in LOSSES)
        valid = table.select(name, "validity")
        line = [loss, f"{valid.mean * valid.n:.0f} of {valid.n}"]
        for metric, factor in (("seconds", 1), ("n_steps", 1), ("im1", 1), ("im2", 10)):
            shown = plus_minus(table.select(name, metric), factor)
            line += ["-" if metric == "n_steps" and loss in others else shown]
            line += [number(PAPER[loss][metric]) if loss in PAPER else ""]
        line.append(plus_minus(table.select(name, "elastic_net")))
        body.append(line)
    columns = ("time, s", "paper", "gradient steps", "paper", "IM1", "paper", "IM2 (x10)", "paper", "EN")
    return markdown(["loss", "found", *columns], body)


def times(table: MetricTable) -> str:
    """What a user waits for."""
    body = [
        [name, *(number(1000 * table.select(name, f"{how}_seconds").mean) for how in ("alone", "batch"))]
        for name in (*LOSSES, *PRODUCT)
    ]
    return markdown(["loss", "one row alone, ms", "19 rows in one call, ms per row"], body)


def sweep(table: MetricTable, names: Sequence[str], head: str) -> str:
    """One line per value of a setting, with the change against A."""
    metrics = (("n_steps", 1), ("im1", 1), ("im2", 10))
    body = []
    for name in names:
        line = [name.split("=")[1], per_cent(table.select(name, "validity").mean).lstrip("+")]
        for metric, factor in metrics:
            ours = table.select(name, metric)
            line += [plus_minus(ours, factor), per_cent(ours.mean / table.select("A", metric).mean - 1)]
        others = (table.select(name, metric) for metric in ("elastic_net", "neighbour_distance"))
        body.append(line + [plus_minus(record) for record in others])
    columns = (
        "gradient steps",
        "against A",
        "IM1",
        "against A",
        "IM2 (x10)",
        "against A",
        "EN",
        "distance to 5 nearest",
    )
    return markdown([head, "found", *columns], body)


def why(table: MetricTable, base: MetricTable) -> str:
    """A, B and C with one setting changed, on the seeds that were run for it; base holds the same seeds unchanged."""
    body = []
    for change in ("as in the table", *CHANGES):
        for loss in LOSSES:
            name, source = (loss, base) if change == "as in the table" else (f"{loss}, {change}", table)
            values = [number(factor * source.select(name, metric).mean) for metric, factor in _WHY]
            body.append([change, loss, per_cent(source.select(name, "validity").mean).lstrip("+"), *values])
    return markdown(["changed", "loss", "found", "steps", "IM1", "IM2 (x10)", "EN", "L0"], body)


def by_seed(found: Found) -> str:
    """IM1 and IM2 of A and B with the networks of every seed."""
    means = {(seed, name): values for seed, name, values in found if name in {"A", "B"}}
    body = []
    for seed in sorted({seed for seed, _ in means}):
        line = [str(seed)]
        for metric, factor in (("im1", 1), ("im2", 10)):
            a, b = (factor * mean(means[seed, loss][metric]) for loss in ("A", "B"))
            line += [number(a), number(b), per_cent(b / a - 1)]
        body.append(line)
    return markdown(["seed", "IM1 of A", "of B", "change", "IM2 (x10) of A", "of B", "change"], body)


def by_class(found: Found) -> str:
    """IM1 and IM2 of the rows that were malignant and of those that were benign."""
    body = []
    for loss in LOSSES:
        values = [of for _, name, of in found if name == loss]
        malignant, im1, im2 = (np.concatenate([of[metric] for of in values]) for metric in ("malignant", "im1", "im2"))
        sides = [(mean(im1[malignant == side]), 10 * mean(im2[malignant == side])) for side in (1, 0)]
        body.append([loss, *(number(value) for side in sides for value in side)])
    head = ["loss", "IM1, malignant to benign", "IM2 (x10)", "IM1, benign to malignant", "IM2 (x10)"]
    return markdown(head, body)


def nearer(found: Found) -> tuple[int, int]:
    """On how many rows A lies nearer to the row than B, of those that both found."""
    en = {name: values_of(found, name, "elastic_net") for name in "AB"}
    both = ~np.isnan(en["A"]) & ~np.isnan(en["B"])
    return int((en["A"] < en["B"])[both].sum()), int(both.sum())


_WHY = (("n_steps", 1), ("im1", 1), ("im2", 10), ("elastic_net", 1), ("l0", 1))


def page(table: MetricTable, found: Found, accurate: Sequence[float], size: Size, seconds: float) -> list[str]:
    """The parts of the page."""
    few = pooled([one for one in found if one[0] < size.reasons_seeds and one[1] in LOSSES])
    text_protocol, reference = size.of(TEXT), size.of(REFERENCE)
    thetas, ks = [f"B theta={t:g}" for t in size.thetas], [f"B k={k}" for k in size.ks]
    right = " or ".join(sorted({f"{100 * a:.0f} %" for a in accurate}))
    return [
        text.INTRODUCTION.format(seeds=size.seeds, found=right, text=text_protocol.words, reference=reference.words),
        "## Table 2",
        f"By the text of the paper: {text_protocol.words}.",
        table_two(table, TEXT, PRODUCT),
        text.TABLE,
        "![Time, gradient steps, IM1, IM2 and EN of losses A, B and C](pictures/paper-bcw-losses.png)",
        "## Table 2 as the reference runs",
        f"The same rows and networks {reference.words}.",
        table_two(table, REFERENCE),
        "## The paper's claims",
        *judged(found, size),
        "## Reading",
        text.speed(table),
        text.INTERPRETABILITY,
        by_seed(found),
        by_class(found),
        text.sparsity(table, thetas[0], *nearer(found)),
        text.reasons(table, few, size),
        why(table, few),
        "## Theta",
        text.THETA,
        "![The same measures of loss B for theta from 10 to 200](pictures/paper-bcw-theta.png)",
        sweep(table, thetas, "theta"),
        "## k",
        text.K,
        "![The same measures of loss B for k of 1, 2, 5 and 10](pictures/paper-bcw-k.png)",
        sweep(table, ks, "k"),
        "## Features and attributes",
        text.ATTRIBUTES,
        "![Features and attributes changed by more than one standard deviation](pictures/paper-bcw-attributes.png)",
        text.attributes(table),
        "## The product's own settings",
        text.product(table),
        text.waiting(table),
        times(table),
        about(COMMAND, seconds),
    ]


def write(found: Found, accuracy: Sequence[float], size: Size, places: Places, seconds: float) -> None:
    """CSV, pictures and the page."""
    table = pooled(found)
    rows = [
        {"method": name, "seed": seed, "row": i, **{metric: float(v[i]) for metric, v in values.items()}}
        for seed, name, values in found
        for i in range(size.rows)
    ]
    write_csv(places.results / "breast_cancer_rows.csv", rows)
    write_csv(places.results / "breast_cancer.csv", [asdict(record) for record in table.records])
    title = "Breast Cancer, the paper's losses A, B and C"
    pictures.measures(table, LOSSES, LOSSES, places.picture("paper-bcw-losses.png"), PAPER, title)
    for swept, values in (("theta", [f"{t:g}" for t in size.thetas]), ("k", [str(k) for k in size.ks])):
        names = [f"B {swept}={value}" for value in values]
        title = f"Breast Cancer, loss B by {swept}"
        pictures.measures(table, names, values, places.picture(f"paper-bcw-{swept}.png"), {}, title)
    pictures.attributes(table, [*LOSSES, *PRODUCT], places.picture("paper-bcw-attributes.png"))
    write_page(places.docs / "paper-breast-cancer.md", page(table, found, accuracy, size, seconds))
