"""The pictures of the Breast Cancer experiment, in the paper's form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from cfproto_plugin.metrics import MetricTable

DARK, LIGHT, PAPER = "#1c7a54", "#9ccfb7", "#b8562b"
PANELS = (
    ("seconds", "time, s", 1.0),
    ("n_steps", "gradient steps", 1.0),
    ("im1", "IM1", 1.0),
    ("im2", "IM2 (x10)", 10.0),
    ("elastic_net", "EN", 1.0),
)


def measures(
    table: MetricTable,
    names: Sequence[str],
    ticks: Sequence[str],
    file: Path,
    paper: dict[str, dict[str, float]],
    title: str,
) -> None:
    """Bars of time, steps, IM1, IM2 and EN. Error bars: standard deviation for time and steps, else 95 % bounds.

    title: what the bars are of.
    """
    figure, grid = plt.subplots(1, len(PANELS), figsize=(12.5, 3.2), layout="constrained")
    how = "lower is better; error bars: standard deviation of time and steps, else 95 % bounds of the mean"
    figure.suptitle(f"{title}: {how}", fontsize=10, x=0.01, ha="left", weight="bold")
    for (metric, named, factor), axes in zip(PANELS, grid, strict=True):
        records = [table.select(name, metric) for name in names]
        spread = metric in {"seconds", "n_steps"}
        error = [factor * (r.std if spread else (r.upper - r.lower) / 2) for r in records]
        means = [factor * r.mean for r in records]
        axes.bar(range(len(names)), means, yerr=error, color=LIGHT, ecolor=DARK, capsize=3, error_kw={"lw": 1})
        known = [(i, paper[name][metric]) for i, name in enumerate(names) if metric in paper.get(name, {})]
        if known:
            axes.scatter(*zip(*known, strict=True), marker="D", s=34, color=PAPER, zorder=3, label="paper")
        axes.set_ylim(bottom=0)
        axes.set_xticks(range(len(names)), ticks, fontsize=9)
        axes.set_title(named, fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="y", labelsize=8)
    handles, labels = grid[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower right", frameon=False, fontsize=9)
    _save(figure, file)


def attributes(table: MetricTable, names: Sequence[str], file: Path) -> None:
    """Features and different attributes that changed by more than one standard deviation."""
    figure, axes = plt.subplots(figsize=(6.2, 3.2), layout="constrained")
    title = "Columns that a counterfactual of Breast Cancer changes by more than 1 standard deviation"
    figure.suptitle(f"{title}\n(an attribute has three columns); means and 95 % bounds", fontsize=9, x=0.01, ha="left")
    for shift, metric, colour in ((-0.2, "features", LIGHT), (0.2, "attributes", DARK)):
        records = [table.select(name, metric) for name in names]
        places = [i + shift for i in range(len(names))]
        error = [(r.upper - r.lower) / 2 for r in records]
        axes.bar(places, [r.mean for r in records], 0.38, yerr=error, color=colour, label=metric, capsize=3)
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("changed by more than 1 sd", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    _save(figure, file)


def _save(figure: Any, file: Path) -> None:
    figure.savefig(file, dpi=120)
    plt.close(figure)
