"""The end of a call: filled lines become an Explanation, in the user's columns and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_plugin.asking import FittedSource
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.features import Features
from cfproto_plugin.fitted import Fitted
from cfproto_plugin.lines import Lines
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.refine.needed import nothing_known
from cfproto_plugin.search.targets import names_of


def explanation_of(lines: Lines, facts: dict[str, Any], features: Features | None) -> Explanation:
    """The result of a call under the rules `features`.

    facts: further entries of its meta; the seconds of the whole call among them.
    """
    fitted, seconds = lines.fitted, facts["seconds"]
    names, deviations = _in_order_of(lines.given.order, fitted)
    original = lines.given.original(lines.group)
    return Explanation(
        original=original,
        counterfactual=lines.given.answers(lines.table, lines.group, lines.label >= 0),
        status=lines.status,
        message=lines.message,
        original_class=_named(fitted.classes, lines.answer.label),
        counterfactual_class=_named(fitted.classes, lines.label),
        prototype_class=_named(fitted.classes, lines.prototype),
        original_proba=lines.answer.proba.astype(float),
        counterfactual_proba=lines.proba,
        distance=lines.distance,
        margin=lines.margin(),
        objective=lines.objective,
        lower_bound=lines.lower_bound,
        gap=lines.gap,
        typicality=lines.typicality,
        stability=lines.stability,
        needed_for=_needed_for(lines),
        how=lines.how,
        classes=fitted.classes,
        class_names=fitted.class_names,
        n_steps=lines.steps,
        seconds=lines.seconds + (seconds - lines.seconds.sum()) / len(lines.group),
        row=lines.group,
        feature_names=names,
        deviations=deviations,
        _source=FittedSource.of(fitted, original, features),
        meta={**_about(fitted, by_class=lines.intervals is None), **facts},
    )


def budget_record(given: float | None, seconds: float, *, spent: bool) -> dict[str, Any]:
    """What became of the time budget: None without one."""
    return {"seconds": given, "spent": spent, "overrun": 0.0 if given is None else max(0.0, seconds - given)}


def _about(fitted: Fitted, *, by_class: bool) -> dict[str, Any]:
    """What the settings came to; by_class: classes were asked for, not probabilities, which need no confidence."""
    floors = fitted.guide.floors
    return {
        "adapter": fitted.classifier.name,
        "method": fitted.guide.plan.method,
        "config": {
            **vars(fitted.config),
            "min_typicality": floors.least_typicality.least,
            "min_stability": floors.least_stability.least,
            "min_confidence": floors.least_confidence.least,
        },
        "typicality": None if floors.typicality is None else floors.typicality.described(),
        "confidence": None if floors.sure is None or not by_class else floors.sure.tolist(),
        "classes_without_prototype": list(fitted.absent),
    }


def _in_order_of(order: Any, fitted: Fitted) -> tuple[tuple[str, ...] | None, Array | None]:
    """Names and deviations of the columns as the rows of a call have them, which may be another order than training's.

    order: the columns of the user's frame; None for arrays.
    """
    names, deviations = fitted.space.columns.names, fitted.deviations
    if names is None or order is None:
        return None if names is None else tuple(map(str, names)), deviations
    places = [names.index(name) for name in order]
    return tuple(map(str, order)), None if deviations is None else deviations[places]


def _needed_for(lines: Lines) -> Array:
    """What each change is needed for, by the columns of the user's rows: (n, columns), (n, 0) for images."""
    columns, order = lines.fitted.space.columns, lines.given.order
    if len(columns.shape) > 1:
        return nothing_known((len(lines.group), 0))
    places = columns.places
    if columns.names is not None and order is not None:
        places = places[[columns.names.index(name) for name in order]]
    return np.asarray(lines.needed[:, places])


def _named(classes: Array, columns: Array) -> Array:
    """Labels of the columns (n,), None where the column is -1."""
    if (columns >= 0).all():
        return classes[columns]
    found = np.full(len(columns), None, dtype=object)
    names = names_of(classes)
    for at in np.flatnonzero(columns >= 0):
        found[at] = names[columns[at]]
    return found
