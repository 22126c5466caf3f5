"""Many answers: how often each column changes and which way, beside how far the rows of each group have to go."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cfproto_plugin.report.cohorts.wording import (
    FEW,
    comparison,
    few,
    most_often,
    needed,
    number,
    tells_purposes,
    typical_change,
)
from cfproto_plugin.report.plots import canvas as c
from cfproto_plugin.report.words import both, counted, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.report.cohorts.summary import FeatureRecord, GroupRecord, Summary

_FEATURES, _GROUPS = 20, 20
_ROW, _FRAME, _PANEL = 0.36, 2.3, 3.4  # inches
_LABEL = 0.5  # inches that a percentage takes on the axis, and the space beside it
_NAMED = 3  # columns that change as often as each other
_FARED = "rows, without an answer"
_NEEDED = "class needs it in"


def plot_summary(summary: Summary, figure: Any = None) -> Any:
    """Bars of the columns that change most often; dots of the median distance of every group."""
    features, groups = summary.select()[:_FEATURES], summary.groups[:_GROUPS]
    if not summary.groups[0].answers:
        return c.no_picture(figure, _title(summary), "There is no counterfactual, so no change can be counted.")
    groups = tuple(group for group in groups if not (group.group == "class" and group.rows == groups[0].rows))
    if len(groups) == 1 and features:  # all rows, whatever class they have
        groups = ()
    changes = [_change(record) for record in features]
    fared = [f"{record.rows:,}, {percent(record.without_answer)} without" for record in groups]
    beside = [("median change", changes)] if features else []
    beside += [(_NEEDED, [needed(record) for record in features])] if tells_purposes(features) else []
    widths = [[_PANEL, *(c.inches([head, *texts], c.SMALL) for head, texts in beside)] if features else []]
    widths += [[_PANEL, c.inches([*fared, _FARED], c.SMALL)] if groups else []]
    names = [[record.feature for record in features], [_group_name(group) for group in groups]]
    room = sum(sum(panel) + c.inches(map(c.shortened, each)) + 0.35 for panel, each in zip(widths, names, strict=True))
    rows = max(len(features), len(groups), 3)
    figure = c.canvas(figure, room, _FRAME + _ROW * rows)
    ratios = [width for panel in widths for width in panel]
    parts = figure.subplots(1, len(ratios), width_ratios=ratios)
    if features:
        _draw_features(parts[0], features, rows)
        for axes, (head, texts) in zip(parts[1:], beside, strict=False):
            c.text_column(axes, head, texts, size=c.SMALL, rows=rows)
    if groups:
        _draw_groups(parts[-2], groups, rows)
        c.text_column(parts[-1], _FARED, fared, size=c.SMALL, rows=rows)
    hidden = len(summary.select()) - len(features), max(len(summary.groups) - _GROUPS, 0) if groups else 0
    c.entitle(figure, _title(summary), _caption(summary, hidden, features, by_group=bool(groups)))
    return c.finish(figure)


def _group_name(record: GroupRecord) -> str:
    """`sex: female`, with both shortened, so that the value is always there."""
    return f"{c.shortened(record.group, 16)}: {c.shortened(record.value, 16)}" if record.group else record.name


def _change(record: FeatureRecord) -> str:
    """The median change with signs as wide as each other."""
    text = typical_change(record)
    known = not math.isnan(record.rise) or not math.isnan(record.fall)
    return c.shortened(text.replace("-", c.MINUS) if known else text.replace("->", "→", 1), 40)


def _title(summary: Summary) -> str:
    every, features = summary.groups[0], summary.select()
    found = every.rows - round(every.without_answer * every.rows)
    have = "has" if 1 in {found, every.rows} else "have"
    title = f"{found:,} of {counted(every.rows, 'row')} {have} a counterfactual"
    if features:
        title += f"; {_most_often(features)}"
    said = comparison(summary)
    return f"{title}. {said}" if said else f"{title}."


def _most_often(features: Sequence[FeatureRecord]) -> str:
    """`“a” changes most often, in 50 % of the answers`; columns that change as often are named or counted."""
    first = most_often(features)
    names = [f"“{c.shortened(record.feature)}”" for record in first]
    if len(names) > _NAMED:
        names = [names[0], counted(len(names) - 1, "other column")]
    verb, each = ("changes", "") if len(names) == 1 else ("change", " each")
    return f"{both(names)} {verb} most often, in {percent(first[0].share)} of the answers{each}"


def _caption(summary: Summary, hidden: tuple[int, int], features: tuple[FeatureRecord, ...], *, by_group: bool) -> str:
    parts = []
    if features:
        parts.append(
            "Bars: the share of the counterfactuals that change a column; hatched to the left: the number falls, plain "
            "to the right: it rises, dotted: another category or a value in place of a missing one. Beside them the "
            "median change, or the category that is taken most often."
        )
    if tells_purposes(features):
        parts.append(
            f"“{_NEEDED} 3 of 5”: in the other 2 the model gives the new class without that change too, which only "
            "makes the answer more typical, more stable or closer to the class, or the model surer, or keeps a rule."
        )
    if by_group:
        parts.append(
            "Dots: the median distance from a row to its counterfactual (how much has to change, 0.1·L1 + L2 in "
            "standardised units by default); the line holds the middle half."
        )
    parts += [few(summary)] if few(summary) else []
    names = [counted(number, noun) for number, noun in zip(hidden, ("column", "group"), strict=True) if number]
    return " ".join(parts) + (f" Not shown: {' and '.join(names)}." if names else "")


def _draw_features(axes: Any, features: tuple[FeatureRecord, ...], rows: int) -> None:
    c.tidy(axes, keep="bottom")
    c.name_rows(axes, [record.feature for record in features], rows=rows)
    style = {"height": 0.62, "edgecolor": "white", "lw": 0.0}
    for y, record in enumerate(features):
        up, down, other = (100 * n / record.answers for n in (record.raised, record.lowered, record.other))
        axes.barh(y, -down, color=c.FALL, hatch=c.FALLING, **style)
        axes.barh(y, up, color=c.RISE, hatch=c.RISING, **style)
        axes.barh(y, other, left=up, color=c.OTHER, hatch=c.ELSE, **{**style, "edgecolor": c.INK})
    axes.axvline(0, color=c.INK, lw=0.8)
    left, right = (max(max(side(r) for r in features) * 100, 5) for side in (_falling, _rising))
    left, right = max(left, 0.2 * right), max(right, 0.2 * left)  # room for a label
    axes.set_xlim(-left * 1.05, right * 1.05)
    least = _LABEL / _PANEL * 1.05 * (left + right)
    ticks = [*(-tick for tick in _ticks(left, least)), 0, *_ticks(right, least)]
    axes.set_xticks(ticks, [f"{abs(tick)} %" for tick in ticks], fontsize=c.SMALL)
    axes.set_xlabel("share of the counterfactuals in which it changes", fontsize=c.SMALL)


def _ticks(reach: float, least: float) -> list[int]:
    """Percentages above 0 that one side of the bars shows, at least `least` apart; one near its end if none fits."""
    steps = (5, 10, 25, 50, 100)
    step = next((step for step in steps if step >= least and reach <= 4 * step), 100)
    found = [tick for tick in range(step, 101, step) if tick <= reach * 1.05]
    return found or [max(5 * int(reach // 5), 5)]


def _falling(record: FeatureRecord) -> float:
    return record.lowered / record.answers


def _rising(record: FeatureRecord) -> float:
    return (record.raised + record.other) / record.answers


def _draw_groups(axes: Any, groups: tuple[GroupRecord, ...], rows: int) -> None:
    """A dot and a line for each; a small group that lies far beyond the others is an arrow with its number."""
    c.tidy(axes, keep="bottom")
    c.name_rows(axes, [_group_name(record) for record in groups], rows=rows)
    axes.tick_params(axis="y", pad=8)  # a dot at 0 stays clear of its name
    known = [record for record in groups if not math.isnan(record.distance)]
    reach = 1.08 * max((r.distance_high for r in known if r.rows >= FEW), default=max(r.distance_high for r in known))
    for y, record in enumerate(groups):
        if y and record.group != groups[y - 1].group:
            axes.axhline(y - 0.5, color=c.BAND, lw=0.8)
        if math.isnan(record.distance):
            continue
        if record.distance > reach:
            axes.plot(reach, y, ">", ms=8, color=c.AFTER, mec="white", clip_on=False, zorder=3)
            axes.text(reach * 0.96, y, number(record.distance), ha="right", va="center", fontsize=c.SMALL)
            continue
        ends = [record.distance_low, min(record.distance_high, reach)]
        axes.plot(ends, [y, y], color=c.DIM, lw=2.2, solid_capstyle="butt")
        axes.plot(record.distance, y, "o" if record.group else "D", ms=7.5, color=c.AFTER, mec="white", clip_on=False)
    axes.set_xlim(0, reach or 1)
    axes.set_xlabel("distance to the counterfactual", fontsize=c.SMALL)
