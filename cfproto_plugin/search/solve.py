"""From rows to verified counterfactuals: search, fall back, predict again, check the rules."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.fitted import Fitted
from cfproto_plugin.plugins import Adapted, space_of
from cfproto_plugin.protocols import Array, GradientAdapter
from cfproto_plugin.search.methods.descent import Guides, search_descent
from cfproto_plugin.search.methods.fallback import fall_back
from cfproto_plugin.search.methods.latent import search_latent
from cfproto_plugin.search.methods.path import search_path
from cfproto_plugin.search.objective.gradients import with_gradient
from cfproto_plugin.search.problem import Problem
from cfproto_plugin.search.refine.confirm import confirm
from cfproto_plugin.search.refine.polish import polish
from cfproto_plugin.tables.space import FeatureSpace, Rows, counts_changes


def infeasible(space: FeatureSpace, rows: Rows) -> dict[int, str]:
    """Rows whose rules contradict each other or leave nothing to change, with the reason."""
    reasons: dict[int, str] = {}
    name = space.columns.describe
    for i, at in zip(*np.nonzero(rows.lower > rows.upper), strict=True):
        step = space.rules.step[at]
        grid = f" in steps of {step:g}" if step > 0 else ""
        reasons[i] = (
            f"the rules leave no value for column {name(at)}: at least {rows.lower[i, at]:g} and at most "
            f"{rows.upper[i, at]:g}{grid}"
        )
    for at in np.flatnonzero(space.rules.fixed).tolist():
        if at in space.rules.allowed:
            for i in np.flatnonzero(~space.rules.allowed[at][rows.x[:, at].astype(int)]).tolist():
                reasons[i] = f"column {name(at)} is immutable, and its category is not among those allowed"
    still = (rows.z_lower == rows.z_upper) & (rows.z_lower == rows.z)
    rules = "immutable" if space.rules.fixed.all() else "immutable, ranges, allowed, increasing or decreasing"
    or_data = "" if space.rules.fixed.all() else ", or because the training data knows no other value"
    for i in np.flatnonzero(still.all(axis=1)).tolist():
        reasons.setdefault(i, f"every column is fixed by {rules}{or_data}")
    return reasons


def solve(fitted: Fitted, problem: Problem) -> tuple[list[str], list[str], Array]:
    """Fill in problem.best; return status, message and the probabilities of what was found, per row."""
    n = len(problem.rows.x)
    problem.span = (0.0, 0.5 if fitted.plan.polish > 0 else 1.0)
    if n:
        _search(fitted, problem)
    _polish(fitted, problem)
    searched = np.isfinite(problem.best.cost)
    problem.span = (1.0, 1.0)
    if problem.config.fallback and not problem.out_of_time() and len(fall_back(problem, fitted.train, fitted.labels)):
        _polish(fitted, problem)
    problem.tick(1.0)
    proba = confirm(problem)
    good = ~np.isnan(proba[:, 0])
    if problem.copies > 1:
        _best_first(problem, proba, good, searched)
    status = np.where(good, np.where(searched, "found", "fallback"), "not_found").tolist()
    message = [
        f"class {fitted.classes[proba[i].argmax()]} {_way(problem, i)}" if good[i] else _why_not(fitted, problem, i)
        for i in range(n)
    ]
    return status, message, proba


def _polish(fitted: Fitted, problem: Problem) -> None:
    """Polish what has not been polished yet."""
    if fitted.plan.polish > 0 and not problem.out_of_time():
        problem.span = (problem.span[1], 1.0)
        polish(problem, fitted.plan.polish, fitted.splits)


def _search(fitted: Fitted, problem: Problem) -> None:
    rows = np.arange(len(problem.rows.x))
    if fitted.plan.weights.theta == 0:
        search_descent(problem, fitted.plan.weights, Guides(autoencoder=_gradient(fitted.models.autoencoder, problem)))
        return
    with problem.clock(rows):
        z = problem.rows.z.reshape(len(rows), *fitted.space.shape)
        points, kinds = fitted.provider.nearest(z, problem.allowed)
        if problem.copies > 1:
            points, kinds = _shared_out(problem, points, kinds)
    encoder = _gradient(_space(fitted), problem)
    if fitted.plan.method == "path":
        if encoder is None:
            search_path(problem, rows, points.reshape(*points.shape[:2], -1), kinds)
        else:
            search_latent(problem, encoder, points, kinds)
        return
    guides = Guides(
        prototypes=points[:, 0],
        kinds=kinds[:, 0],
        encoder=encoder,
        autoencoder=_gradient(fitted.models.autoencoder, problem),
    )
    search_descent(problem, fitted.plan.weights, guides)


def _shared_out(problem: Problem, points: Array, kinds: Array) -> tuple[Array, Array]:
    """Give every copy of a row prototypes of its own: the first the nearest, the second the next, and so on."""
    copies, most = problem.copies, points.shape[1]
    turn = np.arange(len(points)) % copies
    at = turn[:, None] + copies * np.arange(-(-most // copies))
    short = at >= most
    at = np.minimum(at, most - 1)
    rows = np.arange(len(points))[:, None]
    return points[rows, at], np.where(short, -1, kinds[rows, at])


def _best_first(problem: Problem, proba: Array, good: Array, searched: Array) -> None:
    """Order the copies of every row by their cost; forget those that repeat another."""
    best = problem.best
    for start in range(0, len(good), problem.copies):
        copies = np.arange(start, start + problem.copies)
        seen: set[bytes] = set()
        for i in copies[np.argsort(best.cost[copies], kind="stable")]:
            if good[i] and best.x[i].tobytes() in seen:
                good[i], proba[i], best.x[i], best.kind[i] = False, np.nan, np.nan, -1
            seen.add(best.x[i].tobytes())
        order = copies[np.lexsort((best.cost[copies], ~good[copies]))]
        for part in (best.x, best.cost, best.kind, best.steps, best.seconds, best.before, proba, good, searched):
            part[copies] = part[order]
        best.note[start : start + problem.copies] = [best.note[i] for i in order]


def _space(fitted: Fitted) -> Adapted | None:
    encoder = space_of(fitted.provider)
    return None if encoder is None else Adapted.of(encoder, "encoder")


def _gradient(adapter: Adapted | None, problem: Problem) -> GradientAdapter | None:
    return None if adapter is None else with_gradient(adapter, np.asarray(problem.config.eps))


def _way(problem: Problem, i: int) -> str:
    """How the counterfactual of a row was found."""
    note, before = problem.best.note[i], problem.best.before[i]
    if np.isnan(before) or before == problem.best.cost[i]:
        return note
    if np.isinf(before):
        count = counts_changes(problem.best.x[i], problem.rows.x[i])
        return f"reached on the way to a prototype with {count} change{'s' if count > 1 else ''}"
    return f"{note.partition(' at ')[0]}, polished from {before:.3g} to {problem.best.cost[i]:.3g}"


def _why_not(fitted: Fitted, problem: Problem, i: int) -> str:
    if problem.out_of_time():
        return "the time budget ran out before a counterfactual was found"
    if i % problem.copies and np.isfinite(problem.best.cost[i - i % problem.copies]):
        return "no further counterfactual that differs from the others was found"
    wanted = fitted.classes[problem.allowed[i]].tolist()
    names = " or ".join(map(str, wanted))
    if all(label in fitted.absent for label in wanted):
        return f"the model predicts class {names} for no training row, so nothing leads there"
    proba = "" if problem.config.min_proba is None else f" with probability {problem.config.min_proba:g}"
    hint = "" if problem.config.fallback else "; fallback=True would try training rows"
    return f"no point of the search that keeps the rules had class {names}{proba}{hint}"
