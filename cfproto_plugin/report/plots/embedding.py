"""Where the search places the categories of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.helpers.kinds import cells_of
from cfproto_plugin.report.plots import canvas as c
from cfproto_plugin.report.words import percent, value_text
from cfproto_plugin.tables.cells import code_of, lookup

if TYPE_CHECKING:
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.protocols import Array
    from cfproto_plugin.report.source import Categories, Source

_SHOWN = 40
_ROW, _FRAME = 0.30, 2.2  # inches


def plot_embedding(explanation: Explanation, source: Source | None, column: Any = None, figure: Any = None) -> Any:
    """A dot for each category at its number; the category of a single line is marked before and after."""
    if source is None:
        raise InputError(
            "kind='embedding' shows what the explainer learned, and this explanation was read from a file; give it the "
            "explainer by e = e.with_explainer(explainer)"
        )
    found = source.categories(column)
    ends = _ends(explanation, found)
    order = _chosen(found, ends)
    figure = c.canvas(figure, 9.0, _FRAME + _ROW * len(order))
    axes, beside = figure.subplots(1, 2, width_ratios=[6, 1])
    c.tidy(axes, keep="bottom")
    names, total = [value_text(value) for value in found.levels], max(float(found.counts.sum()), 1)
    c.name_rows(axes, [names[at] for at in order])
    c.text_column(beside, "of training rows", [percent(found.counts[at] / total) for at in order], size=c.SMALL)
    least = float(found.places.min())
    for y, at in enumerate(order):
        axes.plot([least, found.places[at]], [y, y], color=c.BAND, lw=1, zorder=1)
        axes.plot(found.places[at], y, "o", ms=7, color=c.AFTER, zorder=2)
        if at in ends:
            text = " and ".join(ends[at])
            axes.plot(found.places[at], y, "o", ms=13, mfc="none", mec=c.INK, mew=1.6, zorder=3)
            axes.annotate(
                text,
                (found.places[at], y),
                xytext=(11, 0),
                textcoords="offset points",
                va="center",
                fontsize=c.TEXT,
                fontweight="bold",
            )
    axes.margins(x=0.25 if ends else 0.06)
    axes.set_xlabel("number of the category in the search", fontsize=c.TEXT)
    hidden = len(found.levels) - len(order)
    c.entitle(figure, _title(found, names), _caption(hidden))
    return c.finish(figure)


def _title(found: Categories, names: list[str]) -> str:
    column, count = c.shortened(found.name), len(names)
    if count < 3:  # noqa: PLR2004 two have one distance
        return f"Where the search places the {'categories' if count > 1 else 'only category'} of “{column}”"
    order = np.argsort(found.places, kind="stable")
    near = int(np.diff(found.places[order]).argmin())
    alike, ends = ([c.shortened(names[at], 24) for at in order[pair]] for pair in ([near, near + 1], [0, -1]))
    return (
        f"How alike the search takes the {count} categories of “{column}” to be: “{alike[0]}” and “{alike[1]}” most, "
        f"“{ends[0]}” and “{ends[1]}” least"
    )


def _caption(hidden: int) -> str:
    more = f" {hidden:,} rarer categories are not shown." if hidden else ""
    return (
        "Categories that go with similar rows of the training data get numbers near each other (the distance that the "
        "explainer was given, ABDM by default). The farther apart two categories are, the larger a change from one to "
        f"the other is for the search: 1 is one standard deviation.{more}"
    )


def _ends(explanation: Explanation, found: Categories) -> dict[int, list[str]]:
    """The places of the categories of a single line, before and after."""
    if len(explanation) != 1 or found.column is None:
        return {}
    parts = [("this row", explanation.original), ("its counterfactual", explanation.counterfactual)]
    codes = lookup(found.levels)
    marks: dict[int, list[str]] = {}
    for word, rows in parts[: 2 if explanation.found[0] else 1]:
        marks.setdefault(code_of(codes, cells_of(rows)[0, found.column]), []).append(word)
    return marks


def _chosen(found: Categories, ends: dict[int, list[str]]) -> list[int]:
    """The most frequent categories and those of the line, by their numbers from the top down."""
    marked: Array = np.array([at in ends for at in range(len(found.levels))])
    often = np.lexsort((-found.counts, ~marked))[:_SHOWN]
    return [int(at) for at in often[np.argsort(-found.places[often], kind="stable")]]
