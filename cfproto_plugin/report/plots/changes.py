"""One answer of a table: every change, before and after, over what is typical of the new class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.helpers.kinds import cells_of
from cfproto_plugin.report.plots import canvas as c
from cfproto_plugin.report.plots.lanes import Lane, category_lane, number_lane
from cfproto_plugin.report.plots.unanswered import plot_unanswered
from cfproto_plugin.report.purposes import MARK, names_by_purpose, only_for
from cfproto_plugin.report.ranking import number_of, ranked, scales_of, size_of
from cfproto_plugin.report.sentences import as_sentence
from cfproto_plugin.report.words import counted, feature_name, percent, value_text

if TYPE_CHECKING:
    from cfproto_plugin.answers import Change
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.report.source import Source

_SHOWN = 20
_ROW, _FRAME = 0.40, 1.75  # inches of a change, and of what is above and below
_LANE = 4.2  # inches
_VALUE = 22  # characters


def plot_changes(line: Explanation, source: Source | None, figure: Any = None) -> Any:
    """A lane for each of the largest changes of one line, largest first."""
    changes = ranked(line)
    if not changes:
        return plot_unanswered(line, f"Row {line.row[0]}: {_nothing(line)}", _why(line), figure)
    shown, scales = changes[:_SHOWN], scales_of(line)
    lanes = _lanes(line, shown, source)
    names = [feature_name(change) + MARK * bool(only_for(change)) for change in shown]
    texts = [_values(change, size_of(change, scales) if scales is not None else 0.0) for change in shown]
    typical = [] if lanes is None else [lane.typical for lane in lanes]
    widths = [_LANE, c.inches(texts) * 1.1, *([c.inches([*typical, " " * 24])] if typical else [])]
    wide = c.inches([c.shortened(name) for name in names]) + sum(widths) + 0.3
    figure = c.canvas(figure, wide, _FRAME + _ROW * len(shown))
    axes = figure.subplots(1, len(widths), width_ratios=widths)
    if lanes is None:
        _draw_sizes(axes[0], line, shown)
    else:
        _draw_lanes(axes[0], lanes)
        new = c.shortened(line.class_name(line.counterfactual_class[0]), 14)
        c.text_column(axes[2], f"typical of “{new}”", typical, color=c.DIM)
    c.text_column(axes[1], "before → after", texts, fontweight="bold")
    c.name_rows(axes[0], names)
    c.entitle(figure, _title(line, len(changes)), _caption(line, len(changes) - len(shown), lanes))
    return c.finish(figure)


def _nothing(line: Explanation) -> str:
    if line.status[0] == "error":
        return "not explained"
    old = f"the model says “{c.shortened(line.class_name(line.original_class[0]))}”"
    ends = {"found": "already, and nothing has to change", "infeasible": "and no counterfactual can exist"}
    return f"{old} {ends.get(str(line.status[0]), 'and no counterfactual was found')}"


def _why(line: Explanation) -> str:
    return as_sentence(line) if line.found[0] else str(line.message[0])


def _title(line: Explanation, count: int) -> str:
    before, after = (percent(float(proba[0])) for proba in line.new_class_proba)
    names = line.column_names or ()
    old, new = (
        f"“{c.shortened(line.class_name(label[0]))}”" for label in (line.original_class, line.counterfactual_class)
    )
    return (
        f"Row {line.row[0]}: with {count} of {len(names)} values changed, the model would say {new} "
        f"({before} → {after}) instead of {old}"
    )


def _caption(line: Explanation, hidden: int, lanes: list[Lane] | None) -> str:
    new = c.shortened(line.class_name(line.counterfactual_class[0]))
    parts = ["Circle: the row as it is."]
    if lanes is None:
        parts.append("Triangle: the counterfactual; it points to where the number moves. Square: another category.")
    else:
        numbers, categories = ([(lane.parts is None) is kind for lane in lanes] for kind in (True, False))
        if any(numbers):
            parts.append("Triangle: the counterfactual; it points to where the number moves.")
        if any(lane.rises is None for lane in lanes):
            parts.append("Square: the counterfactual, where it is another category or replaces a missing value.")
        parts.append(f"Grey: the training rows that the model calls “{new}”.")
        if any(numbers):
            parts.append("The bar holds the middle 80 % of them, the stroke is their median, the line holds 98 %.")
        if any(categories):
            parts.append("A bar in parts is a category: the longer a part, the more of them have that value.")
        parts.append("Each line has its own scale.")
    if purposes := names_by_purpose(line):
        parts.append(f"* Without these the model says “{new}” too. They change for another reason: {purposes}.")
    return " ".join([*parts, *([f"{counted(hidden, 'more change')} not shown."] if hidden else [])])


def _lanes(line: Explanation, changes: list[Change], source: Source | None) -> list[Lane] | None:
    """None if there are no training rows to compare with."""
    if source is None:
        return None
    training = source.training()
    label = source.classes.tolist().index(line.counterfactual_class.tolist()[0])
    rows, names, scales = cells_of(training.rows), line.column_names or (), scales_of(line)
    rows = rows[training.labels == label]
    found = []
    for change in changes:
        cells = rows[:, names.index(str(change.feature))].tolist()
        scale = math.nan if scales is None else scales[str(change.feature)]
        lane = category_lane if math.isnan(scale) or not _is_number(change) else number_lane
        found.append(lane(change, cells))
    return found


def _is_number(change: Change) -> bool:
    return not math.isnan(number_of(change.before)) or not math.isnan(number_of(change.after))


def _draw_lanes(axes: Any, lanes: list[Lane]) -> None:
    c.tidy(axes)
    axes.set_xlim(-0.05, 1.05)
    axes.set_xticks([])
    for y, lane in enumerate(lanes):
        if lane.parts is not None:
            _draw_parts(axes, y, lane)
        elif lane.quantiles is not None:
            low, tenth, median, ninetieth, high = lane.quantiles
            axes.plot([low, high], [y, y], color=c.DIM, lw=0.8, zorder=1)
            axes.barh(y, max(ninetieth - tenth, 0.004), left=tenth, height=0.5, color=c.BAND, zorder=2)
            axes.plot([median, median], [y - 0.25, y + 0.25], color=c.INK, lw=1.4, zorder=3)
        _draw_ends(axes, y, lane)


def _draw_parts(axes: Any, y: int, lane: Lane) -> None:
    for number, (_, low, high) in enumerate(lane.parts or ()):
        shade = c.BAND if number % 2 == 0 else c.FAINT
        axes.barh(y, high - low, left=low, height=0.5, color=shade, edgecolor="white", lw=1.0, zorder=2)


def _draw_ends(axes: Any, y: int, lane: Lane) -> None:
    """The way from before to after; a missing value stands to the left of the lane."""
    before, after = (-0.04 if math.isnan(place) else place for place in (lane.before, lane.after))
    marker = "s" if lane.rises is None else ">" if lane.rises else "<"
    axes.plot([before, after], [y, y], color=c.AFTER, lw=2, zorder=4)
    axes.plot(before, y, "o", ms=8, mfc="white", mec=c.BEFORE, mew=1.8, zorder=5, clip_on=False)
    axes.plot(after, y, marker, ms=9, mfc=c.AFTER, mec="white", mew=0.8, zorder=6, clip_on=False)


def _values(change: Change, size: float) -> str:
    before, after = (c.shortened(value_text(value), _VALUE) for value in (change.before, change.after))
    return f"{before} → {after}" + (f"  ({c.signed(size, '.2g' if abs(size) < 1 else '.1f')} sd)" if size else "")


def _draw_sizes(axes: Any, line: Explanation, changes: list[Change]) -> None:
    """Without training rows: how far each number moves."""
    scales = scales_of(line)
    sizes = [size_of(change, scales) for change in changes]
    c.tidy(axes, keep="bottom")
    axes.axvline(0, color=c.DIM, lw=0.8, zorder=1)
    for y, size in enumerate(sizes):
        axes.plot([0, size], [y, y], color=c.AFTER, lw=2, zorder=2)
        axes.plot(0, y, "o", ms=8, mfc="white", mec=c.BEFORE, mew=1.8, zorder=3)
        axes.plot(size, y, "s" if not size else ">" if size > 0 else "<", ms=9, mfc=c.AFTER, mec="white", zorder=4)
    reach = max(1.0, *(abs(size) for size in sizes)) * 1.15 if np.isfinite(sizes).all() else 1.0
    axes.set_xlim(-reach, reach)
    unit = "standard deviations of the training data" if scales is not None else "part of the larger value"
    axes.set_xlabel(f"change, in {unit}", fontsize=c.TEXT)
