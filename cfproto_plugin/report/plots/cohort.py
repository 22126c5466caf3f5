"""Many answers: how often each column changes and which way, beside how far the rows of each group have to go."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cfproto_plugin.report.cohorts.wording import FEW, comparison, few, number, typical_change
from cfproto_plugin.report.plots import canvas as c
from cfproto_plugin.report.words import counted, percent

if TYPE_CHECKING:
    from cfproto_plugin.report.cohorts.summary import FeatureRecord, GroupRecord, Summary

_FEATURES, _GROUPS = 20, 20
_ROW, _FRAME, _PANEL = 0.36, 2.3, 3.4  # inches
_FARED = "rows, without an answer"


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
    wide = [_width(changes, [record.feature for record in features]), _width(fared, [group.name for group in groups])]
    rows = max(len(features), len(groups), 3)
    figure = c.canvas(figure, sum(wide), _FRAME + _ROW * rows)
    widths = [*([_PANEL, c.inches(changes, c.SMALL)] if features else [])]
    widths += [*([_PANEL, c.inches([*fared, _FARED], c.SMALL)] if groups else [])]
    parts = figure.subplots(1, len(widths), width_ratios=widths)
    if features:
        _draw_features(parts[0], features)
        c.text_column(parts[1], "median change", changes, size=c.SMALL)
    if groups:
        _draw_groups(parts[-2], groups)
        c.text_column(parts[-1], _FARED, fared, size=c.SMALL)
    hidden = len(summary.select()) - len(features), max(len(summary.groups) - _GROUPS, 0) if groups else 0
    c.entitle(figure, _title(summary), _caption(summary, hidden, features=bool(features), by_group=bool(groups)))
    return c.finish(figure)


def _width(texts: list[str], names: list[str]) -> float:
    """Inches of a panel with names to its left and texts to its right; 0 without them."""
    if not texts:
        return 0.0
    return _PANEL + c.inches([*texts, _FARED], c.SMALL) + c.inches(c.shortened(name) for name in names) + 0.35


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
        first = features[0]
        title += f"; “{c.shortened(first.feature)}” changes most often, in {percent(first.share)} of them"
    said = comparison(summary)
    return f"{title}. {said}" if said else f"{title}."


def _caption(summary: Summary, hidden: tuple[int, int], *, features: bool, by_group: bool) -> str:
    parts = []
    if features:
        parts.append(
            "Bars: the share of the counterfactuals that change a column; hatched to the left: the number falls, plain "
            "to the right: it rises, dotted: another category or a value in place of a missing one. Beside them the "
            "median change, or the category that is taken most often."
        )
    if by_group:
        parts.append(
            "Dots: the median distance from a row to its counterfactual (how much has to change, 0.1·L1 + L2 in "
            "standardised units by default); the line holds the middle half."
        )
    parts += [few(summary)] if few(summary) else []
    names = [counted(number, noun) for number, noun in zip(hidden, ("column", "group"), strict=True) if number]
    return " ".join(parts) + (f" Not shown: {' and '.join(names)}." if names else "")


def _draw_features(axes: Any, features: tuple[FeatureRecord, ...]) -> None:
    c.tidy(axes, keep="bottom")
    c.name_rows(axes, [record.feature for record in features])
    style = {"height": 0.62, "edgecolor": "white", "lw": 0.0}
    for y, record in enumerate(features):
        up, down, other = (100 * n / record.answers for n in (record.raised, record.lowered, record.other))
        axes.barh(y, -down, color=c.FALL, hatch=c.FALLING, **style)
        axes.barh(y, up, color=c.RISE, hatch=c.RISING, **style)
        axes.barh(y, other, left=up, color=c.OTHER, hatch=c.ELSE, **{**style, "edgecolor": c.INK})
    axes.axvline(0, color=c.INK, lw=0.8)
    left, right = (max(max(side(r) for r in features) * 100, 5) for side in (_falling, _rising))
    left, right = max(left, 0.15 * right), max(right, 0.15 * left)  # room for a label
    axes.set_xlim(-left * 1.05, right * 1.05)
    ticks = [*(-tick for tick in _ticks(left)[-1 if left < right / 3 else 0 :]), 0]
    ticks += _ticks(right)[-1 if right < left / 3 else 0 :]
    axes.set_xticks(ticks, [f"{abs(tick)} %" for tick in ticks])
    axes.set_xlabel("share of the counterfactuals in which it changes", fontsize=c.SMALL)


def _ticks(reach: float) -> list[int]:
    """Percentages above 0 that one side of the bars shows: at least one."""
    step = next(step for step in (25, 10, 5) if step * 2 <= reach or step == 5)  # noqa: PLR2004
    return [tick for tick in range(step, 101, step) if tick <= reach * 1.05]


def _falling(record: FeatureRecord) -> float:
    return record.lowered / record.answers


def _rising(record: FeatureRecord) -> float:
    return (record.raised + record.other) / record.answers


def _draw_groups(axes: Any, groups: tuple[GroupRecord, ...]) -> None:
    """A dot and a line for each; a small group that lies far beyond the others is an arrow with its number."""
    c.tidy(axes, keep="bottom")
    c.name_rows(axes, [record.name for record in groups])
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
