"""The page docs/peers.md and its picture, from the results alone."""

from __future__ import annotations

from itertools import groupby
from math import isnan
from pathlib import Path
from typing import Any

from claims import SHORT, compare
from scores import middle

MODELS = {"xgboost": "XGBoost", "forest": "random forest"}
MEASURES = {"en": "EN = 0.1·L1 + L2", "l0": "L0, features changed", "nn5": "5NN, distance to the new class"}

INTRODUCTION = """# Side by side with other libraries

Written by `make bench-peers`. The same models, the same held-back rows, standardised data, 100 trees. EN = 0.1·L1 + L2
is the distance to the row, L0 how many features changed, 5NN the mean distance to the five nearest training rows that
the model gives the new class; lower is better in all three. All are medians over the rows with a valid counterfactual;
valid means that the model, asked again, gives another class. Twenty rows; because they are slow, ten for treecf's exact
backend and for `certify="optimal"`, five for DiCE, three for alibi. `ms` is one row alone, `batch` per row of one call
with all twenty. Medians of fewer rows are medians of other rows: methods with unequal numbers of rows are compared in
the last section, over the rows that both have. `proved`: of how many rows the answer is proved to be the best there is,
within 20 s each; each library by its own objective, EN for ours.

The digits are even against odd on 4x4 block means, a second binary problem for the libraries that know two classes
only. Everything ran on one thread of a shared two-core machine (`OMP_NUM_THREADS=1`, and likewise for Rust and
TensorFlow): times compare within this page, not with other machines. Ours, NICE and treecf took turns in three rounds,
and their times are medians of the rounds. NICE and treecf measure distances in standard deviations here, as EN does,
which gives them a lower EN than their defaults on Breast Cancer; alibi runs 500 iterations, half its default. What NICE
none returns is a training row, so that one of its own five neighbours is itself. The constants of our polishing were
chosen on [other cases](benchmarks.md), after a first choice on these; where our path begins without polishing was
chosen here, which the peers' settings were not, and what is left of that elsewhere is in [decisions](decisions.md).

{settings}

![Time against EN, L0 and 5NN](pictures/peers.png)
"""


NOW = """`ours` is the default, `ours, close` the preset of that name, which asks for nothing but the nearest row, as
most peers do; `ours, few_changes=1` is the same with a price on changes, `ours, certify` the same with proofs, and
`ours, no polish` the path from theta = 5."""
BEFORE = """Measured before the search got its present objective and floors, with settings that do what those of the
same name do now: `ours, close` is `SearchConfig.close()`, which asks for nothing but the nearest row, as most peers do,
`ours, few_changes=1` the same with a price on changes, `ours, no polish` the path from theta = 5. The defaults of today
lie farther from the row and are compared with `close()` in [choosing settings](settings.md). `ours, certify`, which is
`SearchConfig.close(certify="optimal")`, and `treecf exact` were measured later than the others, on a busier machine."""

RULE = "Medians over the rows that both were given and solved; nothing holds where ours left a row without an answer."


def number(value: float | None) -> str:
    """Three digits, without an exponent."""
    if value is None or isnan(value):
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def markdown(head: list[str], body: list[list[str]]) -> str:
    """A table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body))


def entry(line: dict[str, Any]) -> list[str]:
    """One method in a table of methods."""
    if "error" in line:
        return [line["method"], "refuses", *["-"] * 6, line["error"].replace("|", "/")]
    medians = [number(middle(line[name])) for name in ("en", "l0", "nn5")]
    valid = f"{sum(line['valid'])} of {len(line['valid'])}"
    proved = f"{sum(line['proved'])} of {len(line['proved'])}" if "proved" in line else "-"
    times = [number(middle(line["ms"])), number(line.get("batch_ms"))]
    return [line["method"], valid, *times, *medians, proved, ""]


def methods(lines: list[dict[str, Any]]) -> list[str]:
    """One table per data set and model; the last column only where somebody refuses."""
    parts = []
    head = ["method", "valid", "ms", "batch", "EN", "L0", "5NN", "proved", "why"]
    for (data, model), group in groupby(lines, key=lambda line: (line["data"], line["model"])):
        body = [entry(line) for line in group]
        width = len(head) if any(row[-1] for row in body) else len(head) - 1
        table = markdown(head[:width], [row[:width] for row in body])
        parts += [f"## {SHORT[data]}, {MODELS[model]}", "", table, ""]
    return parts


def comparisons(lines: list[dict[str, Any]]) -> list[str]:
    """What holds and what does not, per case."""
    body = []
    for claim, group in groupby(compare(lines), key=lambda one: one["claim"]):
        for at, one in enumerate(group):
            holds = "yes" if one["holds"] else "**no**"
            body.append([claim if at == 0 else "", one["case"], number(one["ours"]), number(one["peer"]), holds])
    table = markdown(["claim", "case", "ours", "peer", "holds"], body)
    return ["## What holds", "", RULE, "", table, ""]


def thousand(lines: list[dict[str, Any]]) -> list[str]:
    """Milliseconds per row of a thousand, beside one row alone."""
    body = []
    for line in lines:
        if "many_ms" in line:
            alone, many = middle(line["ms"]), line["many_ms"]
            case = [SHORT[line["data"]], MODELS[line["model"]], line["method"]]
            body.append([*case, number(alone), number(many), number(alone / many)])
    table = markdown(["data", "model", "method", "one row alone, ms", "of a thousand, ms per row", "ratio"], body)
    return ["## A thousand rows in one call", "", "Held-back rows with a little noise.", "", table, ""]


def picture(lines: list[dict[str, Any]], file: Path) -> None:
    """A grid: data sets downwards, measures across; time to the right, lower left is better."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(line["method"] for line in lines))
    colours = dict(zip(names, mpl.colormaps["tab20"].colors, strict=False))
    sets = list(dict.fromkeys(line["data"] for line in lines))
    figure, grid = plt.subplots(len(sets), 3, figsize=(11, 3 * len(sets)), sharex=True, squeeze=False)
    for data, row in zip(sets, grid, strict=True):
        for (measure, title), axes in zip(MEASURES.items(), row, strict=True):
            for line in (line for line in lines if line["data"] == data and "error" not in line):
                colour, filled = colours[line["method"]], line["model"] == "xgboost"
                size = 90 if line["method"].startswith("ours") else 40
                point = middle(line["ms"]), middle(line[measure])
                if all(line["valid"]):
                    axes.scatter(*point, s=size, color=colour if filled else "none", edgecolor=colour, linewidth=1.8)
                else:
                    axes.scatter(*point, s=size, color=colour, marker="x")
            axes.set_xscale("log")
            axes.set_yscale("log" if measure == "en" else "linear")
            axes.set_title(f"{SHORT[data]}: {title}", fontsize=9, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("ms, one row alone")
    handles = [plt.Line2D([], [], marker="o", ls="", color=colours[name], label=name) for name in names]
    handles.append(plt.Line2D([], [], marker="o", ls="", color="grey", label="filled: XGBoost"))
    handles.append(plt.Line2D([], [], marker="o", ls="", color="grey", mfc="none", label="hollow: random forest"))
    handles.append(plt.Line2D([], [], marker="x", ls="", color="grey", label="not every row solved"))
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.legend(handles=handles, loc="lower center", ncol=6, fontsize=8, frameon=False)
    figure.savefig(file, dpi=110)


def write(result: dict[str, Any], docs: Path) -> None:
    """The page and the picture."""
    sets, models = list(SHORT), list(MODELS)
    lines = sorted(result["lines"], key=lambda line: (sets.index(line["data"]), models.index(line["model"])))
    picture(lines, docs / "pictures" / "peers.png")
    versions = ", ".join(f"{name} {found}" for name, found in result["versions"].items())
    about = f"{result['date']}, `{result['command']}`; {versions}."
    settings = NOW if any(line["method"] == "ours" for line in lines) else BEFORE
    parts = [INTRODUCTION.format(settings=settings), *methods(lines), *thousand(lines), *comparisons(lines), about, ""]
    (docs / "peers.md").write_text("\n".join(parts))
