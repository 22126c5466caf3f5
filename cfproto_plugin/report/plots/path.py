"""The way from a row to the prototype of another class, and what the model says along it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.helpers.kinds import cells_of
from cfproto_plugin.report.plots import canvas as c
from cfproto_plugin.report.ranking import number_of
from cfproto_plugin.report.words import percent, value_text

if TYPE_CHECKING:
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.protocols import Array
    from cfproto_plugin.report.source import Source

_POINTS = 65
_LEAP = 4  # times the mean distance of two points
_LABEL = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.85}
_SEVERAL = 2  # classes; of more the best other one is drawn too


def plot_path(line: Explanation, source: Source | None, figure: Any = None) -> Any:
    """The probability of the new class on the way to its prototype; a star is the answer."""
    if source is None:
        raise InputError(
            "kind='path' asks the model, and this explanation was read from a file; give it the explainer by "
            "e = e.with_explainer(explainer)"
        )
    if line.status[0] == "error":
        return c.no_picture(figure, f"Row {line.row[0]} was not explained", str(line.message[0]))
    known = source.classes.tolist()
    label = known.index(line.counterfactual_class.tolist()[0]) if line.found[0] else None
    path = source.toward_prototype(line.original, label, _POINTS)
    proba, said = source.probabilities(path.rows), source.labels(path.rows)
    new, old = path.label, known.index(line.original_class.tolist()[0])
    x = _amount(line, path.rows)
    if not x[-1]:
        title = f"Row {line.row[0]}: the rules leave no way towards “{c.shortened(line.class_name(known[new]))}”"
        return c.no_picture(figure, title, str(line.message[0]))
    figure = c.canvas(figure, 9.0, 4.9)
    axes = figure.subplots()
    c.tidy(axes, keep="left bottom")
    names = [c.shortened(line.class_name(label), 24) for label in known]
    _shade(axes, x, said == new)
    axes.plot(*_in_steps(x, proba[:, new]), color=c.AFTER, lw=2.2, label=f"probability of “{names[new]}”")
    if old != new:
        label_of_old = f"probability of “{names[old]}”"
        axes.plot(*_in_steps(x, proba[:, old]), color=c.BEFORE, lw=1.4, ls="--", label=label_of_old)
    if len(known) > _SEVERAL:
        others = np.delete(proba, [old, new], axis=1).max(axis=1)
        axes.plot(*_in_steps(x, others), color=c.DIM, lw=1.0, ls=":", label="the most probable other class")
    axes.plot(
        x[0], proba[0, new], "o", ms=9, mfc="white", mec=c.BEFORE, mew=2, label="the row", zorder=5, clip_on=False
    )
    axes.plot(
        x[-1],
        proba[-1, new],
        "D",
        ms=8,
        color=c.AFTER,
        mec="white",
        label="the prototype" if said[-1] == new else "the end of the way",
        zorder=5,
        clip_on=False,
    )
    answer = _mark_answer(axes, line)
    axes.set_ylim(0, 1.04)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlim(left=0)
    axes.set_ylabel("the model's probability", fontsize=c.TEXT)
    axes.set_xlabel(_unit(line), fontsize=c.TEXT)
    figure.legend(loc="outside right center", fontsize=c.SMALL, frameon=False)
    whole = bool(said[-1] == new)
    title = _title(line, names[new], proba[:, new], answer, float(x[-1]), whole=whole)
    c.entitle(figure, title, _CAPTION if whole else f"{_SHORT_OF} {_CAPTION}")
    return c.finish(figure)


_CAPTION = (
    "A prototype is a training row, or the mean of some, that the model puts in the class. The curve follows the way "
    "to it, with a step where a category changes. Hatched: the model decides for the new class. The answer need "
    "not lie on the way: it is improved afterwards."
)


_SHORT_OF = "The rules end the way before its prototype: the diamond is as near to it as they allow."


def _in_steps(x: Array, proba: Array) -> tuple[Array, Array]:
    """The points of a curve, with a step where x leaps: a category has nothing between its values."""
    leaps = np.flatnonzero(np.diff(x) > _LEAP * x[-1] / len(x)) + 1
    return np.insert(x, leaps, x[leaps]), np.insert(proba, leaps, proba[leaps - 1])


def _shade(axes: Any, x: Array, inside: Array) -> None:
    """Where the model decides for the class, from point to point."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
    for number, (first, after) in enumerate(edges.reshape(-1, 2)):
        label = "the model says the new class" if not number else None
        axes.axvspan(
            x[first], x[after - 1], facecolor=c.FAINT, edgecolor=c.BAND, hatch="//", lw=0, zorder=0, label=label
        )


def _mark_answer(axes: Any, line: Explanation) -> float | None:
    """A star at the answer; how much it changes."""
    if not line.found[0]:
        return None
    x, proba = float(_amount(line, line.counterfactual)[0]), float(line.new_class_proba[1][0])
    axes.plot(x, proba, "*", ms=17, color="white", mec=c.INK, mew=1.4, label="the answer", zorder=6, clip_on=False)
    text = f"{percent(proba)} “{c.shortened(line.class_name(line.counterfactual_class[0]), 16)}”"
    axes.annotate(text, (x, proba), xytext=(10, 8), textcoords="offset points", fontsize=c.TEXT, zorder=7, bbox=_LABEL)
    return x


def _title(line: Explanation, name: str, proba: Array, answer: float | None, length: float, *, whole: bool) -> str:
    """whole: the way ends in the class."""
    first, last = percent(float(proba[0])), percent(float(proba[-1]))
    way = f"to a typical “{name}”" if whole else f"towards a typical “{name}”, as far as the rules allow,"
    title = f"Row {line.row[0]}: on the way {way} the model's probability of it goes from {first} to {last}"
    if answer is None or not length:
        return title
    return f"{title}; the answer (star) needs {percent(answer / length)} of that change"


def _unit(line: Explanation) -> str:
    if line.deviations is None:
        return "how much changes: the sum of all differences"
    return "how much changes: standard deviations, summed over the columns; another category counts as 1"


def _amount(line: Explanation, rows: Any) -> Array:
    """(m,) how much rows differ from the original of a line: in deviations, 1 for another category."""
    before, after = cells_of(line.original)[0], cells_of(rows)
    if line.deviations is None:
        return np.asarray(np.abs(after.astype(float) - before.astype(float)).reshape(len(after), -1).sum(axis=1))
    total = np.zeros(len(after))
    for at, scale in enumerate(line.deviations.tolist()):
        total += [_step(before[at], cell, scale) for cell in after[:, at]]
    return total


def _step(before: Any, after: Any, scale: float) -> float:
    step = abs(number_of(after) - number_of(before))
    if math.isnan(step) or math.isnan(scale):
        return float(value_text(before) != value_text(after))
    return step / scale if scale > 0 else 0.0
