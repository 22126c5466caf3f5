"""The page docs/peers.md and its picture, from the results alone."""

from __future__ import annotations

from itertools import groupby
from math import isnan
from pathlib import Path
from typing import Any

from claims import SHORT, compare
from scores import mean, middle

MODELS = {"xgboost": "XGBoost", "forest": "random forest"}
MEASURES = {"en": "EN = 0.1·L1 + L2", "l0": "L0, columns changed", "survival": "refitted models that agree"}
VERDICTS = {"ours": "ours", "even": "no difference", "peer": "**the peer**"}

INTRODUCTION = """# Side by side with other libraries

Written by `make bench-peers`, which goes on where it was stopped. [Breadth](breadth.md) has fewer settings on more
tables.

Every tool explains the same twenty held-back rows of the same models, on standardised data. XGBoost has 100 trees of
depth 4, the forest 100 trees. A row may take {row:g} s of processor time, all rows of a method {cell:g} s; rows that a
tool did not begin for lack of time are missing in the first column (`18 of 18, cut`), and two tools are compared on the
rows that both solved. The digits are even against odd on 4x4 block means, a second binary problem for treecf, which
knows two classes only.

- **What each tool is given.** treecf reads the trees, and so does ours. NICE, DiCE and alibi get the model as a
  function from rows to probabilities; the lines `function` are ours with that function and nothing else.
- **By what they are judged.** `L1`, `L2` and `EN` = 0.1·L1 + L2 measure the distance to the row in standard
  deviations, `L0` counts changed columns, `5NN` is the mean distance to the five nearest training rows that the model
  gives the new class, `outliers` the share that the local outlier factor calls outliers of the new class (20
  neighbours), `typical` the median p-value that `e.typicality` reports, `refits` the mean share of ten models, fitted
  to bootstraps of the training rows with other seeds, that give the claimed class. L1, L2, EN, L0 and 5NN are medians.
  `valid` means that the model, asked again, gives another class.
- **Each tool under its own objective.** treecf and NICE proximity minimise L1: `beta=10` is `close(beta=10)`, which in
  effect minimises L1 too. NICE sparsity counts columns (`few`; `few with floors` also has the default's
  floors for typicality and stability), NICE plausibility lowers the error of an autoencoder, here a small network on
  the standardised rows, and alibi minimises EN plus 100 times the squared distance to the prototype (`theta=100`).
  DiCE random samples and then undoes changes, DiCE genetic mixes training rows.
- **Proofs.** `proved`: of how many rows the answer is proved to be the best there is, within 20 s each: treecf exact by
  its own L1, `certify` by EN. An answer of treecf exact that is not proved is the best it found in that time. Where
  fewer than twenty rows are given, a minute of the cell was over before the others.
- **Times.** `ms` is the mean processor time of one row alone, `batch` that per row of one call with all twenty. All on
  one thread of a two-core machine that was busy with other work, and not all tools on the same day: they are rough, and
  compare within this page only.
- **Settings of the peers.** NICE and treecf measure distances in standard deviations, as EN does, which gives them a
  lower EN than their defaults. With three classes NICE proximity and plausibility are told the class of their own
  nearest unlike row, DiCE the second most likely one: they need to be told. alibi searches in standard deviations, with
  500 iterations, half its default. What NICE none returns is a training row, so one of its five neighbours is itself.

{missing}

![Time against EN, L0 and the agreement of refitted models](pictures/peers.png)
"""
PAIRED = """Means over the `n` rows that both were given and solved; `difference` is ours minus the peer's, with the
95 % interval of the mean (rows resampled). Of times: ours divided by the peer's."""


def missing(cases: dict[str, int]) -> str:
    """Which methods were not measured in all six cases."""
    if not cases:
        return "Every method was measured in all six cases."
    words = ", ".join(f"{method} ({count})" for method, count in cases.items())
    return f"Not measured yet, with the number of cases of six: {words}."


def number(value: float | None) -> str:
    """Three digits, without an exponent."""
    if value is None or isnan(value):
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def markdown(head: list[str], body: list[list[str]]) -> str:
    """A table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body))


def entry(line: dict[str, Any]) -> list[str]:
    """One method in a table of methods."""
    if "error" in line:
        return [line["method"], "refuses", *["-"] * 11, line["error"].replace("|", "/")]
    medians = [number(middle(line[name])) for name in ("l1", "l2", "en", "l0", "nn5")]
    outliers, refits = (f"{100 * mean(line[name]):.0f} %" for name in ("outlier", "survival"))
    asked = len(line["valid"])
    valid = f"{sum(line['valid'])} of {asked}" + (", cut" if asked < line["of"] else "")
    proved = f"{sum(line['proved'])} of {len(line['proved'])}" if "proved" in line else "-"
    times = [number(mean(line["cpu"])), number(line.get("batch_ms"))]
    why = "; ".join(error for error in line["errors"] if error).replace("|", "/")
    return [line["method"], valid, *times, *medians, outliers, number(middle(line["typicality"])), refits, proved, why]


def methods(lines: list[dict[str, Any]]) -> list[str]:
    """One table per data set and model; the last column only where somebody refuses."""
    head = ["method", "valid", "ms", "batch", "L1", "L2", "EN", "L0", "5NN", "outliers", "typical", "refits", "proved"]
    head.append("why")
    parts = []
    for (data, model), group in groupby(lines, key=lambda line: (line["data"], line["model"])):
        body = [entry(line) for line in group]
        width = len(head) if any(row[-1] for row in body) else len(head) - 1
        table = markdown(head[:width], [row[:width] for row in body])
        parts += [f"## {SHORT[data]}, {MODELS[model]}", "", table, ""]
    return parts


def summary(found: list[dict[str, Any]]) -> list[str]:
    """In how many cases who is better, beyond the interval."""
    body = []
    for (what, mine, peer), group in groupby(found, key=lambda one: (one["what"], one["mine"], one["peer_name"])):
        verdicts = [one["verdict"] for one in group]
        body.append([what, mine, peer, *(str(verdicts.count(each)) for each in VERDICTS)])
    head = ["what", "ours", "peer", "ours is better in", "no difference", "the peer is better in"]
    about = "Cases of six, beyond the 95 % interval of the paired difference."
    return ["## Who is better", "", about, "", markdown(head, body), ""]


def comparisons(found: list[dict[str, Any]]) -> list[str]:
    """Every pair in every case."""
    parts = ["## Every pair", "", PAIRED, ""]
    head = ["ours", "peer", "case", "n", "mean of ours", "of the peer", "difference", "better"]
    for what, group in groupby(found, key=lambda one: one["what"]):
        body = []
        for one in group:
            case = f"{SHORT[one['data']]}, {MODELS[one['model']]}"
            middle_, low, high = map(number, one["difference"])
            values = [number(one["ours"]), number(one["peer"]), f"{middle_} ({low} to {high})"]
            body.append([one["mine"], one["peer_name"], case, str(one["n"]), *values, VERDICTS[one["verdict"]]])
        parts += [f"### {what}", "", markdown(head, body), ""]
    return parts


def thousand(lines: list[dict[str, Any]]) -> list[str]:
    """Milliseconds per row of a thousand, beside one row alone."""
    body = []
    for line in lines:
        if "many_ms" in line:
            alone, many = mean(line["cpu"]), line["many_ms"]
            case = [SHORT[line["data"]], MODELS[line["model"]], line["method"]]
            body.append([*case, number(alone), number(many), number(alone / many)])
    if not body:
        return []
    table = markdown(["data", "model", "method", "one row alone, ms", "of a thousand, ms per row", "ratio"], body)
    return ["## A thousand rows in one call", "", "Held-back rows with a little noise; processor time.", "", table, ""]


def picture(lines: list[dict[str, Any]], file: Path) -> None:
    """A grid: data sets downwards, measures across; time to the right."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(line["method"] for line in lines))
    colours = dict(zip(names, [*mpl.colormaps["tab20"].colors, "black", "gold", "navy"], strict=False))
    sets = list(dict.fromkeys(line["data"] for line in lines))
    figure, grid = plt.subplots(len(sets), 3, figsize=(11, 3 * len(sets)), sharex=True, squeeze=False)
    for data, row in zip(sets, grid, strict=True):
        for (measure, title), axes in zip(MEASURES.items(), row, strict=True):
            for line in (line for line in lines if line["data"] == data and "error" not in line):
                colour, filled = colours[line["method"]], line["model"] == "xgboost"
                size = 90 if line["method"].startswith("ours") else 40
                point = mean(line["cpu"]), (mean if measure == "survival" else middle)(line[measure])
                if all(line["valid"]):
                    axes.scatter(*point, s=size, color=colour if filled else "none", edgecolor=colour, linewidth=1.8)
                else:
                    axes.scatter(*point, s=size, color=colour, marker="x")
            axes.set_xscale("log")
            axes.set_yscale("log" if measure == "en" else "linear")
            axes.set_title(f"{SHORT[data]}: {title}", fontsize=9, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("ms of processor time, one row alone")
    handles = [plt.Line2D([], [], marker="o", ls="", color=colours[name], label=name) for name in names]
    handles.append(plt.Line2D([], [], marker="o", ls="", color="grey", label="filled: XGBoost"))
    handles.append(plt.Line2D([], [], marker="o", ls="", color="grey", mfc="none", label="hollow: random forest"))
    handles.append(plt.Line2D([], [], marker="x", ls="", color="grey", label="not every row solved"))
    title = (
        "Farther left is faster. Lower is better in the first two columns, higher in the last. “ours” is cfproto-plugin"
    )
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.legend(handles=handles, loc="lower center", ncol=6, fontsize=8, frameon=False)
    figure.savefig(file, dpi=110)


def write(result: dict[str, Any], docs: Path) -> None:
    """The page and the picture."""
    lines, limits = result["lines"], result["limits"]
    picture(lines, docs / "pictures" / "peers.png")
    versions = ", ".join(f"{name} {found}" for name, found in result["versions"].items())
    found = compare(lines)
    introduction = INTRODUCTION.format(row=limits["row"], cell=limits["cell"], missing=missing(result["missing"]))
    parts = [introduction, *summary(found), *methods(lines), *thousand(lines), *comparisons(found)]
    (docs / "peers.md").write_text("\n".join([*parts, f"{result['date']}, `make bench-peers`; {versions}.", ""]))
