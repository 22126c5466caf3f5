"""The tables, the picture and the page of the Adult experiment, from its results alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import claims
import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from claims import Claim
from common import PACKAGES, Places, about, markdown, number, per_cent, write_csv, write_page
from scipy.stats import kendalltau

from cfproto_plugin import Explanation
from cfproto_plugin.metrics import summarise

if TYPE_CHECKING:
    from adult import Size

COMMAND = "python benchmarks/paper/adult.py"
TITLES = {"abdm": "ABDM", "mvdm": "MVDM", "frequency": "frequency"}
Found = Sequence[tuple[int, str, float, dict[str, Any]]]
Embeddings = dict[str, dict[str, float]]

INTRODUCTION = """# The paper's Adult experiment

The paper embeds the categories of a column in numbers by what the other columns say about them (ABDM), and shows the
column education beside an embedding by frequency. Then it shows one counterfactual that changes categories. This page
does both, and measures what the embedding changes in counterfactuals. The data are the published split of Adult without
the survey weight and `education-num`, which repeats education as a level from 1 (preschool) to 16 (doctorate). The
paper does not describe its network; ours is 40-40 with ReLU, trained by Adam for {epochs} epochs, {seeds} times
anew."""

ORDER = """The number of a category should grow with the level of school. Kendall's tau counts the pairs of categories
in that order, less the pairs in the other: 1 is the order of the levels, 0 is no order."""

SEARCH = """For the first {rows} test rows of each network that it does not think rich: which counterfactual is found
with each embedding, family, origin and fortune being fixed? `jump` is how many levels of school lie between the old and
the new education where it changed. Without polishing the search follows the embedding to a prototype; polishing
then moves one column at a time and keeps only what the class needs. Where no path to the nearest prototypes keeps the
rules, the search goes on with other training rows."""


def order_table(embeddings: Embeddings, levels: dict[str, int]) -> tuple[str, dict[str, Any]]:
    """Kendall's tau of every embedding with the level of school."""
    names = sorted(levels, key=lambda name: levels[name])
    found = {key: kendalltau([levels[v] for v in names], [e[v] for v in names]) for key, e in embeddings.items()}
    body = [[TITLES[name], f"{tau.statistic:.2f}", f"{tau.pvalue:.2g}"] for name, tau in found.items()]
    return markdown(["embedding", "Kendall's tau with the level", "p-value"], body), found


def tau_bounds(tau: float, n: int) -> tuple[float, float]:
    """95 % bounds of Kendall's tau of n pairs by Fisher's transformation, variance 0.437 / (n - 4)."""
    half = 1.96 * math.sqrt(0.437 / max(n - 4, 1))
    centre = math.atanh(min(max(tau, -0.999), 0.999))
    return math.tanh(centre - half), math.tanh(centre + half)


def order_claim(natural: float, frequent: float, n: int) -> Claim:
    """tau of ABDM against that of frequency; bounds from the bounds of both, far apart on purpose."""
    (low, high), (least, most) = tau_bounds(natural, n), tau_bounds(frequent, n)
    upper = high / least - 1 if least > 0 else math.inf
    lower = low / most - 1 if most > 0 else math.inf
    return Claim("ABDM orders education better: tau", None, natural / abs(frequent) - 1, lower, upper, n, 1)


def verdict(taus: dict[str, Any], n: int) -> str:
    """What the verdict rests on, and what it does not say."""
    bounds = {name: "{:.2f} to {:.2f}".format(*tau_bounds(tau.statistic, n)) for name, tau in taus.items()}
    return (
        f"The 95 % bounds of tau are {bounds['abdm']} for ABDM and {bounds['frequency']} for frequency. The paper says "
        "that frequency does not capture the order at all. Here it does a little, with a p-value of "
        f"{taus['frequency'].pvalue:.2g}: the lowest schools are also the rarest. A doctorate is rare too, and ends up "
        "beside the twelfth grade."
    )


def search_table(found: Found) -> tuple[str, list[dict[str, Any]]]:
    """What the counterfactuals changed, by embedding and polishing."""
    lines = []
    for polish in sorted({p for _, _, p, _ in found}):
        for name in dict.fromkeys(n for _, n, _, _ in found):
            parts = [values for _, n, p, values in found if (n, p) == (name, polish)]
            values = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
            moved = ~np.isnan(values["level_after"])
            jump = np.abs(values["level_after"] - values["level_before"])
            measured = summarise(
                {"changes": values["changes"], "categories": values["categories"], "jump": jump}, name=name
            )
            lines.append(
                {
                    "embedding": name,
                    "polish": polish,
                    "n": len(moved),
                    "found": float(values["validity"].mean()),
                    "on_the_path": float(values["on_the_path"].mean()),
                    **{record.metric: record.mean for record in measured},
                    "jump_bound": (measured[2].upper - measured[2].lower) / 2,
                    "education_changed": float(moved.mean()),
                    "up": float((values["level_after"] > values["level_before"])[moved].mean())
                    if moved.any()
                    else np.nan,
                }
            )
    body = [
        [TITLES[line["embedding"]], "yes" if line["polish"] else "no", per_cent(line["found"]).lstrip("+")]
        + [per_cent(line["on_the_path"]).lstrip("+")]
        + [number(line[key]) for key in ("changes", "categories")]
        + [per_cent(line["education_changed"]).lstrip("+"), f"{number(line['jump'])} ± {number(line['jump_bound'])}"]
        + [per_cent(line["up"]).lstrip("+")]
        for line in lines
    ]
    head = [
        "embedding",
        "polished",
        "found",
        "by the nearest prototypes",
        "columns changed",
        "categories changed",
        "education changed",
    ]
    return markdown([*head, "jump, levels", "upwards"], body), lines


def jumps(lines: list[dict[str, Any]]) -> str:
    """The table in words."""
    jump = {line["embedding"]: number(line["jump"]) for line in lines if not line["polish"]}
    return (
        f"With frequency a changed education lies {jump['frequency']} levels from the old one, with ABDM "
        f"{jump['abdm']} and with MVDM {jump['mvdm']}: neighbours by frequency need not be neighbours at school. "
        "All three lead upwards, because the network and the training rows do. With frequency slightly fewer columns "
        "change."
    )


def person(e: Explanation) -> str:
    """One row, before and after, the changes in bold."""
    before, after = e.original.iloc[0], e.counterfactual.iloc[0]
    body = [
        [name, str(before[name]), str(after[name]) if before[name] == after[name] else f"**{after[name]}**"]
        for name in before.index
    ]
    proba = [f"{p[0, 1]:.2f}" for p in (e.original_proba, e.counterfactual_proba)]
    return markdown(["", "original", "counterfactual"], [*body, ["p(> 50K)", *proba]])


def picture(embeddings: Embeddings, levels: dict[str, int], file: Path) -> None:
    """The paper's figure: education by ABDM on the left, by frequency on the right, coloured by the level of school."""
    figure, pair = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    labels = {"abdm": "number of the category", "frequency": "share of the training rows"}
    for axes, (name, label) in zip(pair, labels.items(), strict=True):
        numbers = embeddings[name]
        order = sorted(numbers, key=lambda level: numbers[level])
        values, rank = [numbers[level] for level in order], range(len(order))
        axes.hlines(rank, min(values), values, color="#d9d9d9", lw=1, zorder=1)
        points = axes.scatter(values, rank, c=[levels[level] for level in order], cmap="viridis", s=60, zorder=2)
        axes.set_yticks(rank, order, fontsize=9)
        axes.set_title(TITLES[name], fontsize=11, loc="left")
        axes.set_xlabel(label, fontsize=9)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    figure.colorbar(points, ax=pair[1], label="level of school", aspect=30).outline.set_visible(False)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def write(
    found: Found,
    embeddings: Embeddings,
    levels: dict[str, int],
    e: Explanation,
    size: Size,
    places: Places,
    seconds: float,
) -> None:
    """CSV, the picture and the page."""
    order, taus = order_table(embeddings, levels)
    searched, lines = search_table(found)
    numbers = [
        {"education": level, "level": levels[level], **{name: of[level] for name, of in embeddings.items()}}
        for level in sorted(levels, key=lambda level: levels[level])
    ]
    write_csv(places.results / "adult.csv", lines)
    write_csv(places.results / "adult_embedding.csv", numbers)
    picture(embeddings, levels, places.picture("paper-adult-education.png"))
    claim = order_claim(taus["abdm"].statistic, taus["frequency"].statistic, len(levels))
    parts = [
        INTRODUCTION.format(epochs=size.epochs, seeds=size.seeds),
        "## Education as a number",
        "![Education by ABDM and by frequency](pictures/paper-adult-education.png)",
        ORDER,
        order,
        claims.table([claim]),
        verdict(taus, len(levels)),
        "## What it changes",
        SEARCH.format(rows=size.rows),
        searched,
        jumps(lines),
        "## A counterfactual with changed categories",
        person(e),
        about("CFPROTO_DATA=<folder> " + COMMAND, seconds, (*PACKAGES, "pandas")),
    ]
    write_page(places.docs / "paper-adult.md", parts)
