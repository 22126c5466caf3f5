"""What changes in many answers: how often, how far and in which direction; for all rows, by class and by group."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.helpers.kinds import load_pandas
from cfproto_plugin.report.cohorts.groups import Groups, groups_of_lines
from cfproto_plugin.report.cohorts.wording import summary_html, summary_text
from cfproto_plugin.report.purposes import SHORT
from cfproto_plugin.report.ranking import CATEGORY, number_of, scales_of
from cfproto_plugin.report.words import value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfproto_plugin.answers import Change
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.protocols import Array

CLASS = "class"  # the group of what the model said of the rows


@dataclass(frozen=True)
class GroupRecord:
    """How the rows of one group fared. group is "" for all rows, "class", or the name of the column.

    rows: how many. answers: lines with a counterfactual. without_answer: the share of rows that have none. distance:
    the median over the answers, with the quartiles; changes, typicality and stability: medians. NaN without answers.
    """

    group: str
    value: str
    rows: int
    answers: int
    without_answer: float
    distance: float
    distance_low: float
    distance_high: float
    changes: float
    typicality: float
    stability: float

    @property
    def name(self) -> str:
        """`sex: female`, `all rows`."""
        return f"{self.group}: {self.value}" if self.group else "all rows"


@dataclass(frozen=True)
class FeatureRecord:
    """How one column changes in the answers of one group.

    answers: lines with a counterfactual. changed: those that change the column; share: of the answers. raised, lowered:
    numbers that rise and fall; other: another category, or a number in place of a missing one. rise, fall: the median
    of those changes in the units of the column, NaN without one. deviations: the median size of a changed number in
    standard deviations of the training data. most_common: the value that most of the changed lines take, and
    most_common_count how many; for numbers likewise. unit: of rise and fall, "days" for dates and durations.
    needed: changes that the class needs, by `Change.needed_for`. for_typicality, for_stability, for_other: changes that
    it does not need, by what they are there for; other is a rule, a probability, closeness to the
    class or a difference from other answers. Of the rest of `changed` it is not known.
    """

    group: str
    value: str
    feature: str
    answers: int
    changed: int
    share: float
    raised: int
    lowered: int
    other: int
    rise: float
    fall: float
    deviations: float
    most_common: str
    most_common_count: int
    unit: str = ""
    needed: int = 0
    for_typicality: int = 0
    for_stability: int = 0
    for_other: int = 0


@dataclass(frozen=True, repr=False)
class Summary:
    """The answers of a cohort. groups: a record for all rows, each class, and each value of `by`.

    features: for each of these groups the columns that change, most often first; of those that change as often the ones
    that change by more standard deviations, another category counting as one. by: the name of the column, or None.
    """

    groups: tuple[GroupRecord, ...]
    features: tuple[FeatureRecord, ...]
    by: str | None = None

    def to_frame(self) -> Any:
        """The features as a DataFrame: one line for each group and column."""
        names = list(FeatureRecord.__dataclass_fields__)
        return load_pandas().DataFrame([asdict(record) for record in self.features], columns=names)

    def groups_frame(self) -> Any:
        """The groups as a DataFrame: one line for each."""
        return load_pandas().DataFrame([asdict(record) for record in self.groups])

    def select(self, group: str = "", value: str = "") -> tuple[FeatureRecord, ...]:
        """The features of one group; default: of all rows."""
        return tuple(record for record in self.features if (record.group, record.value) == (group, value))

    def plot(self, *, figure: Any = None) -> Any:
        """What changes, how often and which way, beside the distance of each group: a matplotlib Figure."""
        from cfproto_plugin.report.plots.cohort import plot_summary

        return plot_summary(self, figure)

    def __repr__(self) -> str:
        return summary_text(self)

    def _repr_html_(self) -> str:
        return summary_html(self)


def summarised(explanation: Explanation, by: Any = None) -> Summary:
    """The summary of an explanation; by: a column, or one value per row."""
    named = [("", "", np.ones(len(explanation), dtype=bool))]
    named += [(CLASS, value, mask) for value, mask in _classes(explanation).masks()]
    groups = None if by is None else groups_of_lines(explanation, by)
    if groups is not None and groups.name == CLASS:
        groups = groups._replace(name=f"column {CLASS}")
    named += [] if groups is None else [(groups.name, value, mask) for value, mask in groups.masks()]
    records, features = [], []
    changes = _changes_by_line(explanation)
    for group, value, mask in named:
        records.append(_group(explanation, mask, group, value))
        features += _features(explanation, np.flatnonzero(mask), changes, group, value)
    return Summary(tuple(records), tuple(features), None if groups is None else groups.name)


def changed_columns(explanation: Explanation) -> list[FeatureRecord]:
    """The columns that change in any line, in the order of `Summary`; none for images."""
    return _features(explanation, np.arange(len(explanation)), _changes_by_line(explanation), "", "")


def _classes(explanation: Explanation) -> Groups:
    """What the model says of the row of each line; rows that it could not read have none."""
    named = explanation.class_name if explanation.class_names else lambda label: label
    said = ["not explained" if label is None else named(label) for label in explanation.original_class]
    return Groups.of_values(CLASS, said)


def _group(explanation: Explanation, mask: Array, group: str, value: str) -> GroupRecord:
    found = explanation.found & mask
    rows, answered = (len(np.unique(explanation.row[chosen])) for chosen in (mask, found))
    distance = explanation.distance[found]
    low, high = (_quantile(distance, share) for share in (0.25, 0.75))
    medians = [
        _quantile(np.asarray(part, dtype=float)[found], 0.5)
        for part in (explanation.n_changes, explanation.typicality, explanation.stability)
    ]
    without = 1 - answered / rows if rows else math.nan
    return GroupRecord(group, value, rows, int(found.sum()), without, _quantile(distance, 0.5), low, high, *medians)


def _quantile(values: Array, share: float) -> float:
    values = values[~np.isnan(values)]
    return float(np.quantile(values, share)) if len(values) else math.nan


def _changes_by_line(explanation: Explanation) -> list[list[Change]]:
    """The changes of each line; none for images, whose pixels are no columns."""
    if explanation.column_names is None:
        return [[] for _ in range(len(explanation))]
    counts = explanation.n_changes
    ends = np.cumsum(counts)
    every = explanation.changes()
    return [every[end - count : end] for end, count in zip(ends.tolist(), counts.tolist(), strict=True)]


def _features(
    explanation: Explanation, lines: Array, changes: Sequence[Sequence[Change]], group: str, value: str
) -> list[FeatureRecord]:
    """The columns that change in some of the lines (m,), in the order of `Summary`; of equals the first column."""
    scales, names = scales_of(explanation), explanation.column_names or ()
    found: dict[str, list[Change]] = {}
    for line in lines.tolist():
        for change in changes[line]:
            found.setdefault(str(change.feature), []).append(change)
    answers = int(explanation.found[lines].sum())
    records = [
        _feature(group, value, name, found[name], answers, None if scales is None else scales[name])
        for name in names
        if name in found
    ]
    return sorted(records, key=lambda record: (-record.changed, -_size(record)))


def _size(record: FeatureRecord) -> float:
    """The median change in standard deviations; that of categories, and of numbers without a scale, is one."""
    return CATEGORY if math.isnan(record.deviations) else record.deviations


def _feature(
    group: str, value: str, name: str, changes: Sequence[Change], answers: int, scale: float | None
) -> FeatureRecord:
    """scale: the standard deviation of the column, NaN for categories; None if it is not known."""
    steps = np.array([number_of(change.after) - number_of(change.before) for change in changes])
    if scale is not None and math.isnan(scale):
        steps = np.full(len(changes), math.nan)
    numbers = steps[~np.isnan(steps)]
    up, down = numbers[numbers > 0], numbers[numbers < 0]
    (common, count), *_ = Counter(value_text(change.after) for change in changes).most_common(1)
    return FeatureRecord(
        group,
        value,
        name,
        answers=answers,
        changed=len(changes),
        share=len(changes) / answers,
        raised=len(up),
        lowered=len(down),
        other=len(changes) - len(up) - len(down),
        rise=_quantile(up, 0.5),
        fall=_quantile(down, 0.5),
        deviations=_quantile(np.abs(numbers) / scale, 0.5) if scale else math.nan,
        most_common=common,
        most_common_count=count,
        **_purposes(changes),
        unit="days" if len(numbers) and isinstance(changes[0].after, (datetime, timedelta)) else "",
    )


def _purposes(changes: Sequence[Change]) -> dict[str, int]:
    """How many of the changes the class needs, and how many are there for something else."""
    counts = Counter(change.needed_for for change in changes)
    other = sum(counts[purpose] for purpose in SHORT if purpose not in {"typicality", "stability"})
    return {
        "needed": counts["class"],
        "for_typicality": counts["typicality"],
        "for_stability": counts["stability"],
        "for_other": other,
    }
