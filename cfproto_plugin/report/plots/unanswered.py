"""A line without changes: what the model says of the row, how near the search came, and why it ended there."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.report.plots import canvas as c
from cfproto_plugin.report.sentences import best_reached
from cfproto_plugin.report.words import percent

if TYPE_CHECKING:
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.protocols import Array

_CLASSES = 8
_ROW, _FRAME, _LINE = 0.42, 1.5, 0.185  # inches of a class, of what is above and below, and of a line of text
_WIDE, _ROOM = 8.2, 100  # inches, and characters of a line of text
_ENDS = {
    "not_found": "Not found: the search ended without a counterfactual. That does not prove that there is none.",
    "infeasible": "Infeasible: no row that the rules admit can be a counterfactual.",
    "error": "Error: the row could not be read, or the model could not predict it.",
    "found": "The row has the class that was asked for and keeps the rules, so it is its own answer.",
}


def plot_unanswered(line: Explanation, title: str, why: str, figure: Any = None) -> Any:
    """A bar for every class: its probability at the row; a triangle is the best that was reached. Below that, why."""
    proba, reached = np.nan_to_num(line.original_proba[0]), best_reached(str(line.message[0]))
    every = [line.class_name(label) for label in line.classes]
    shown = [] if line.original_class[0] is None else _shown(proba, every, reached)
    said = [text for part in why.split("; ") for text in textwrap.wrap(f"• {part}", _ROOM, subsequent_indent="   ")]
    heights = [_ROW * len(shown) + 0.25] * bool(shown) + [_LINE * len(said) + 0.1]
    figure = c.canvas(figure, _WIDE, (_FRAME if shown else 0.9) + sum(heights))
    *bars, text = np.atleast_1d(figure.subplots(len(heights), 1, height_ratios=heights))
    names = [every[at] for at in shown]
    for axes in bars:
        _draw_classes(axes, names, proba[shown], reached)
    text.axis("off")
    text.text(0, 1, "\n".join(said), va="top", fontsize=c.TEXT, linespacing=1.35, transform=text.transAxes)
    c.entitle(figure, title, _caption(line, hidden=len(line.classes) - len(shown), reached=reached, names=names))
    return c.finish(figure)


def _shown(proba: Array, names: list[str], reached: tuple[str, float] | None) -> list[int]:
    """The most probable classes, and that which was sought."""
    sought = np.array([reached is not None and reached[0] == name for name in names])
    often = np.lexsort((-proba, ~sought))[:_CLASSES]
    return [int(at) for at in often[np.argsort(-proba[often], kind="stable")]]


def _draw_classes(axes: Any, names: list[str], proba: Array, reached: tuple[str, float] | None) -> None:
    c.tidy(axes, keep="left")
    c.name_rows(axes, names)
    axes.set_xlim(0, 1.12)
    axes.set_xticks([])
    for y, (name, p) in enumerate(zip(names, proba.tolist(), strict=True)):
        axes.barh(y, p, height=0.52, color=c.BAND, edgecolor=c.DIM, lw=0.8, zorder=1)
        end, words = p, percent(p)
        if reached is not None and reached[0] == name:
            axes.plot([p, reached[1]], [y, y], color=c.AFTER, lw=2, zorder=2)
            axes.plot(reached[1], y, ">", ms=9, mfc=c.AFTER, mec="white", mew=0.8, zorder=3)
            end, words = max(p, reached[1]) + 0.015, f"{percent(p)}, at best {percent(reached[1])}"
        axes.text(end + 0.012, y, words, va="center", fontsize=c.TEXT, fontweight="bold")


def _caption(line: Explanation, *, hidden: int, reached: tuple[str, float] | None, names: list[str]) -> str:
    parts = [_ENDS.get(str(line.status[0]), "")]
    if names:
        parts.append("Bars: the model's probabilities for the row as it is.")
        if reached is not None and reached[0] in names:
            parts.append("Triangle: the highest probability at any point that was tried and keeps the rules.")
        if hidden:
            parts.append(f"{hidden:,} more classes are not shown.")
    return " ".join(part for part in parts if part)
