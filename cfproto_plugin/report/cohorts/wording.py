"""A summary as text and as HTML."""

from __future__ import annotations

import math
import textwrap
from html import escape
from typing import TYPE_CHECKING

from cfproto_plugin.report.texts import asset
from cfproto_plugin.report.words import aligned, counted, either, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.report.cohorts.actions import Actions
    from cfproto_plugin.report.cohorts.summary import FeatureRecord, GroupRecord, Summary

_FEATURES = 12
_WIDE = 120  # characters of a line
_GROUPS = 20
_NOTICEABLE = 1.05  # times
FEW = 10  # rows; medians of fewer say little
_ACTION_HEADS = ("", "change", "rows flipped", "of them new", "typical and stable", "together")
_GROUP_HEADS = ("group", "rows", "no answer", "median distance", "middle half", "changes")
_SMALL, _LARGE = 1e-4, 1e9  # numbers in between are written without an exponent
_FEATURE_HEADS = ("feature", "changed in", "up", "down", "other", "typical change")
_PURPOSE_HEADS = ("class needs it in", "else it is only for")
_PURPOSES = (
    "Where the class does not need a change, the model gives the new class without it: it only makes the answer more "
    "typical of the class or more stable (the class mostly holds if values are hit only roughly), or, as another "
    "reason, makes the model surer, brings it closer to the class, keeps a rule or the like."
)


def most_often(features: Sequence[FeatureRecord]) -> list[FeatureRecord]:
    """Those that no other column is changed more often than, in their order."""
    return [record for record in features if record.changed == features[0].changed]


def summary_text(summary: Summary) -> str:
    """The groups, what they say about `by`, and the features that change most often."""
    parts = [title(summary), *aligned([_GROUP_HEADS, *_group_cells(summary)], right=(1, 2, 3, 5))]
    parts += _more(len(summary.groups), _GROUPS, "group")
    parts += [said for said in (comparison(summary), few(summary)) if said]
    features = summary.select()
    if features:
        heads, *rows = _feature_table(features)
        right = [at for at, head in enumerate(heads) if head in _FEATURE_HEADS[1:5] or head == _PURPOSE_HEADS[0]]
        parts += ["", *aligned([heads, *rows], right=right), *_more(len(features), _FEATURES, "feature")]
        parts += textwrap.wrap(_PURPOSES, _WIDE) if _PURPOSE_HEADS[0] in heads else []
    return "\n".join(parts)


def summary_html(summary: Summary) -> str:
    """The same as HTML; the user's text is escaped."""
    features = summary.select()
    notes = "".join(f"<p>{escape(said)}</p>" for said in (comparison(summary), few(summary)) if said)
    tables = _table(_GROUP_HEADS, _group_cells(summary)) + notes
    if features:
        heads, *rows = _feature_table(features)
        tables += _table(heads, rows) + (f"<p>{escape(_PURPOSES)}</p>" if _PURPOSE_HEADS[0] in heads else "")
    hidden = [*_more(len(summary.groups), _GROUPS, "group"), *_more(len(features), _FEATURES, "feature")]
    more = "".join(f'<p class="dim">{escape(text)}</p>' for text in hidden)
    return _styled(f"<p><b>{escape(title(summary))}</b></p>{tables}{more}")


def actions_text(actions: Actions) -> str:
    """One line per action: what to change, and the rows that it flips."""
    if not len(actions):
        return "\n".join([_actions_title(actions), *_action_notes(actions)])
    table = aligned([_action_heads(actions), *_action_cells(actions)], right=(0, 2, 3, 4, 5, 6))
    return "\n".join([_actions_title(actions), *table, *_action_notes(actions)])


def actions_html(actions: Actions) -> str:
    """The same as HTML; the user's text is escaped."""
    table = _table(_action_heads(actions), _action_cells(actions)) if len(actions) else ""
    notes = "".join(f"<p>{escape(note)}</p>" for note in _action_notes(actions))
    return _styled(f"<p><b>{escape(_actions_title(actions))}</b></p>{table}{notes}")


def _actions_title(actions: Actions) -> str:
    """2 actions flip 80 % of 100 rows to granted, each confirmed by the model."""
    rows, labels = counted(actions.rows, "row"), either(list(actions.names) or ["another class"])
    if not actions.rows:
        return "No row has to be flipped"
    if not len(actions):
        return f"No common change flips any of {rows} to {labels}{_late(actions)}"
    flip = f"{counted(len(actions), 'action')} {'flips' if len(actions) == 1 else 'flip'}"
    share = percent(actions[-1].cumulative)
    return f"{flip} {share} of {rows} to {labels}, every row confirmed by the model{_late(actions)}"


def _late(actions: Actions) -> str:
    return "" if actions.in_time else "; the time budget ended the search"


def _action_notes(actions: Actions) -> list[str]:
    """Why there are fewer actions than were asked for, and rows that break a rule as they are."""
    notes = []
    if 0 < len(actions) < actions.asked and actions.in_time:
        done = actions[-1].cumulative == 1
        notes.append("All rows are flipped." if done else "No further action was found that flips more rows.")
    if actions.broken:
        rows, one = counted(actions.broken, "row"), actions.broken == 1
        notes.append(
            f"{rows} {'breaks' if one else 'break'} a rule before any action: {'it counts' if one else 'they count'} "
            "as flipped only after an action that mends this."
        )
    return notes


def _forbids(actions: Actions) -> bool:
    return any(action.forbidden for action in actions)


def _action_heads(actions: Actions) -> tuple[str, ...]:
    """Rows that an action may not change have a column where there are any."""
    return (*_ACTION_HEADS, "would break a rule") if _forbids(actions) else _ACTION_HEADS


def _action_cells(actions: Actions) -> list[tuple[str, ...]]:
    return [
        (
            str(number),
            action.text,
            f"{action.covered:,} ({percent(action.share)})",
            f"{action.new:,}",
            f"{action.sound:,}",
            percent(action.cumulative),
            *([f"{action.forbidden:,}"] if _forbids(actions) else []),
        )
        for number, action in enumerate(actions, start=1)
    ]


def title(summary: Summary) -> str:
    """Summary of 100 rows: 98 have a counterfactual, 2 have none."""
    rows = summary.groups[0].rows
    without = round(summary.groups[0].without_answer * rows) if rows else 0
    have = "has" if rows - without == 1 else "have"
    none = f", {without:,} {'has' if without == 1 else 'have'} none" if without else ""
    return f"Summary of {counted(rows, 'row')}: {rows - without:,} {have} a counterfactual{none}"


def comparison(summary: Summary) -> str:
    """How the median distances of the groups of `by` differ, small ones left out; "" where there are not two."""
    known = [record for record in summary.groups if summary.by is not None and record.group == summary.by]
    known = [record for record in known if not math.isnan(record.distance)]
    enough = [record for record in known if record.rows >= FEW]
    known = enough if len(enough) > 1 else known
    if len(known) < 2:  # noqa: PLR2004 two can be compared
        return ""
    least, most = (end(known, key=lambda record: record.distance) for end in (min, max))
    if f"{least.distance:.3g}" == f"{most.distance:.3g}":
        return f"The median distance is the same for all groups: {least.distance:.3g}."
    ratio = most.distance / least.distance if least.distance > 0 else 1.0
    times = f", {ratio:.1f} times as far" if ratio >= _NOTICEABLE else ""
    return f"The median distance is smallest for {_counted_group(least)} and largest for {_counted_group(most)}{times}."


def few(summary: Summary) -> str:
    """A warning about groups of `by` that are small."""
    small = [r for r in summary.groups if summary.by is not None and r.group == summary.by and r.rows < FEW]
    if not small:
        return ""
    named = ", ".join(f"{record.value} ({record.rows})" for record in small[:3]) + (", ..." if small[3:] else "")
    return f"Fewer than {FEW} rows: {named}. Medians of so few say little."


def typical_change(record: FeatureRecord) -> str:
    """+500 (0.3 sd), or -> Masters (12) for a category; both directions if numbers go both ways."""
    parts = [signed(step) for step in (record.rise, record.fall) if not math.isnan(step)]
    size = "" if math.isnan(record.deviations) else f" ({record.deviations:.2g} sd)"
    if parts:
        return " or ".join(parts) + (f" {record.unit}" if record.unit else "") + size
    return f"-> {record.most_common} ({record.most_common_count})"


def signed(value: float) -> str:
    """A change with three digits: +7,320 rather than +7.32e+03."""
    rounded = float(f"{value:.3g}")
    if _SMALL <= abs(rounded) < _LARGE:
        return f"{rounded:+,.0f}" if rounded.is_integer() else f"{rounded:+,.6f}".rstrip("0")
    return f"{value:+.3g}"


def number(value: float) -> str:
    """Three digits, a dash for none."""
    return "-" if math.isnan(value) else f"{value:.3g}"


def _counted_group(record: GroupRecord) -> str:
    return f"{record.name} ({record.distance:.3g}, {counted(record.rows, 'row')})"


def _group_cells(summary: Summary) -> list[tuple[str, ...]]:
    return [
        (
            record.name,
            f"{record.rows:,}",
            "-" if math.isnan(record.without_answer) else percent(record.without_answer),
            number(record.distance),
            "-" if math.isnan(record.distance) else f"{number(record.distance_low)} to {number(record.distance_high)}",
            number(record.changes),
        )
        for record in summary.groups[:_GROUPS]
    ]


def tells_purposes(features: Sequence[FeatureRecord]) -> bool:
    """Whether some change is there for something other than the class: else there is nothing to tell apart."""
    return any(record.for_typicality or record.for_stability or record.for_other for record in features)


def _feature_table(features: Sequence[FeatureRecord]) -> list[tuple[str, ...]]:
    """The heads, and a line for each of the first features."""
    tells = tells_purposes(features)
    rows = [_feature_cells(record, tells=tells) for record in features[:_FEATURES]]
    heads = (*_FEATURE_HEADS[:2], *(_PURPOSE_HEADS if tells else ()), *_FEATURE_HEADS[2:])
    return [heads, *rows]


def _feature_cells(record: FeatureRecord, *, tells: bool) -> tuple[str, ...]:
    counts = (str(count) if count else "" for count in (record.raised, record.lowered, record.other))
    purposes = (needed(record), _other_purposes(record)) if tells else ()
    return record.feature, f"{record.changed} of {record.answers}", *purposes, *counts, typical_change(record)


def needed(record: FeatureRecord) -> str:
    """`31 of 40`: how many of the changes the class needs; a dash where none is known."""
    known = record.needed + record.for_typicality + record.for_stability + record.for_other
    return f"{record.needed} of {known}" if known else "-"


def _other_purposes(record: FeatureRecord) -> str:
    """`typicality 6, stability 3`."""
    counts = {
        "typicality": record.for_typicality,
        "stability": record.for_stability,
        "another reason": record.for_other,
    }
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count)


def _more(count: int, shown: int, noun: str) -> list[str]:
    return [f"... and {counted(count - shown, f'more {noun}')}: see the frame"] if count > shown else []


def _styled(html: str) -> str:
    return f'<style>{asset("cards.css")}</style><div class="cfp">{html}</div>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f'<table class="changes"><tr>{head}</tr>{body}</table>'
