"""What the model says of a row that takes some changes of its counterfactual and not the others.

The row, the counterfactual and everything between them are asked of the user's own model in the user's own columns. A
one-hot group is one change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfproto_plugin.checks import as_plain
from cfproto_plugin.helpers.kinds import cells_of, take
from cfproto_plugin.report.shapley import all_masks
from cfproto_plugin.report.source import Mixed
from cfproto_plugin.report.words import number_dtypes, plain_cell

if TYPE_CHECKING:
    from cfproto_plugin.protocols import Array

MOST_EXACT = 8  # changes of which all subsets are asked: 256 rows
_CELLS = 4_000_000  # of the rows that are made at once


class ChangedFeature(NamedTuple):
    """A feature that differs between a row and its counterfactual."""

    name: str | tuple[int, ...]  # of the column or the one-hot group; the index of a pixel
    before: Any  # for a group the name of the column that is 1, None if there is none
    after: Any
    places: tuple[int, ...]  # of its cells in a flattened row


class Subsets(NamedTuple):
    """Subsets of the changes of one line and what the model says of each."""

    line: int
    features: tuple[ChangedFeature, ...]  # m of them
    masks: Array  # (s, m) bool: the changes that are made
    proba: Array  # (s, k); NaN where the model fails
    raised: str | None = None  # what the model raised at one of them
    label: Array | None = None  # (s,) the place in `classes` of what it decides for; None if that was not asked


def changed_features(explanation: Any) -> list[tuple[ChangedFeature, ...]]:
    """The changed features of every line, in the order of the columns; empty for a line without counterfactual."""
    differ = explanation.is_changed
    differ = differ.reshape(len(differ), math.prod(differ.shape[1:]))
    names, groups = explanation.column_names, explanation.source.groups
    before, after = (cells_of(x) for x in (explanation.original, explanation.counterfactual))
    dtypes, shape = number_dtypes(explanation.original), np.shape(explanation.original)[1:]
    group_of = {place: name for name, places in groups.items() for place in places}

    def feature(line: int, place: int) -> ChangedFeature:
        group = group_of.get(place)
        if group is not None and names is not None:
            columns = groups[group]
            old, new = (active_column(cells[line], columns, names) for cells in (before, after))
            return ChangedFeature(group, old, new, columns)
        at = np.unravel_index(place, shape)
        index = tuple(int(i) for i in at)
        dtype = dtypes[place] if dtypes else None
        old, new = (plain_cell(side[(line, *index)], dtype) for side in (before, after))
        return ChangedFeature(index if names is None else names[place], old, new, (place,))

    found = []
    for line, row in enumerate(differ):
        places = np.flatnonzero(row).tolist()
        firsts = {group_of.get(place, place): place for place in reversed(places)}  # one place of every group
        found.append(tuple(feature(line, place) for place in sorted(firsts.values())))
    return found


def subsets(explanation: Any, most: int = MOST_EXACT, *, labels: bool = False) -> list[Subsets]:
    """What the model says of all subsets of the changes of every line that has a counterfactual.

    A line of more than `most` changes has none of them, all of them, and all but one: m + 2 subsets. labels: whether
    the model is asked for its decisions too.
    """
    features = changed_features(explanation)
    lines = np.flatnonzero(explanation.found).tolist()
    masks = [all_masks(m) if (m := len(features[line])) <= most else _all_but_one(m) for line in lines]
    return ask_subsets(explanation, lines, [features[line] for line in lines], masks, labels=labels)


def ask_subsets(
    explanation: Any,
    lines: Sequence[int],
    features: Sequence[tuple[ChangedFeature, ...]],
    masks: Sequence[Array],
    *,
    labels: bool = False,
) -> list[Subsets]:
    """What the model says of subsets (s, m) of the changed features of lines, all in one question.

    None and all of the changes are not asked: the explanation has their probabilities and classes.
    """
    proba = [np.full((len(each), len(explanation.classes)), math.nan) for each in masks]
    label = [np.full(len(each), -1) for each in masks]
    place_of = {name: place for place, name in enumerate(explanation.classes.tolist())}
    todo = []
    for line, mask, known, decided in zip(lines, masks, proba, label, strict=True):
        none, whole = ~mask.any(axis=1), mask.all(axis=1)
        known[none], known[whole] = explanation.original_proba[line], explanation.counterfactual_proba[line]
        if labels:
            old, new = (as_plain(x[line]) for x in (explanation.original_class, explanation.counterfactual_class))
            decided[none], decided[whole] = place_of[old], place_of[new]
        todo.append(np.flatnonzero(~none & ~whole))
    owner = np.repeat(np.arange(len(lines)), [len(each) for each in todo])
    number = np.concatenate([np.zeros(0, dtype=int), *todo])
    size = max(1, _CELLS // max(1, math.prod(np.shape(explanation.original)[1:])))
    raised: list[str | None] = [None] * len(lines)
    for start in range(0, len(owner), size):
        part = slice(start, start + size)
        for i, at, said in _answers(explanation, lines, features, masks, owner[part], number[part], labels=labels):
            proba[i][at] = said.proba
            if labels:
                label[i][at] = said.label
            raised[i] = said.raised if np.isnan(said.proba).any() else raised[i]
    decisions = label if labels else [None] * len(lines)
    return [Subsets(*each) for each in zip(lines, features, masks, proba, raised, decisions, strict=True)]


def _answers(
    explanation: Any,
    lines: Sequence[int],
    features: Sequence[tuple[ChangedFeature, ...]],
    masks: Sequence[Array],
    owner: Array,
    number: Array,
    *,
    labels: bool,
) -> list[tuple[int, Array, Mixed]]:
    """By place in lines: numbers of its masks and the answers. owner, number: (q,) what is asked."""
    shape = np.shape(explanation.original)[1:]
    taken = np.zeros((len(owner), math.prod(shape)), dtype=bool)
    involved, place = np.unique(owner, return_inverse=True)
    ends = np.searchsorted(owner, [*involved, involved[-1] + 1])  # owners come one after the other
    parts = {int(i): slice(*ends[at : at + 2]) for at, i in enumerate(involved)}
    for i, at in parts.items():
        for j, feature in enumerate(features[i]):
            taken[at, list(feature.places)] = masks[i][number[at], j][:, None]
    rows = [lines[i] for i in parts]
    sides = (take(x, rows) for x in (explanation.original, explanation.counterfactual))
    said = explanation.source.mixed(*sides, place, taken.reshape(-1, *shape), labels=labels)
    return [(i, number[at], Mixed(said.proba[at], said.raised, said.label[at])) for i, at in parts.items()]


def _all_but_one(m: int) -> Array:
    return np.concatenate([np.zeros((1, m), dtype=bool), np.ones((1, m), dtype=bool), ~np.eye(m, dtype=bool)])


def active_column(cells: Array, columns: Sequence[int], names: Sequence[str]) -> str | None:
    """The name of the column of a one-hot group that is 1 in a row of cells; None if there is none."""
    return next((names[at] for at in columns if cells[at] == 1), None)
