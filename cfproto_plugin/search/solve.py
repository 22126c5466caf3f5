"""From rows to verified counterfactuals.

search -> polish -> nearer, as far as second opinions agree -> fewer changes
-> fall back where nothing was found -> polish -> confirm
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from cfproto_plugin.errors import SearchEndsError
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.candidates import Candidates
from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.driver import Driver
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.methods.between import search_between
from cfproto_plugin.search.methods.counted import Counted
from cfproto_plugin.search.methods.descent import search_descent
from cfproto_plugin.search.methods.latent import search_latent
from cfproto_plugin.search.methods.path import search_path
from cfproto_plugin.search.methods.prototypes import prototypes_in_pieces, prototypes_of
from cfproto_plugin.search.solved import Solved
from cfproto_plugin.search.task import Task

_MORE = 0.01  # by which a class must lead in a second search


def solve(judge: Judge, clock: Clock, guide: Guide) -> Solved:
    """Answer every line of the judge's task.

    Lines for which nothing is found of which the model is as sure as wished for are searched without that wish, in
    codes for the surest point. Where no path in codes leads, the way to a training row goes as far as the wish.
    """
    task = judge.task
    solved = _confirmed(judge, clock, guide)
    again = (~solved.good).nonzero()[0]
    if task.wished is None or not len(again) or clock.is_over():
        return solved
    plain = replace(task.take(again, task.config), wished=None, surest=True)
    second = _searched_again(judge, clock, guide, again, plain)
    solved = solved.with_those(again, second, np.arange(len(again)))
    lines = again[second.good & ~second.by_search]
    if guide.encoder is None or not len(lines) or clock.is_over():
        return solved
    sure = replace(task.take(lines, task.config), least=task.wished, wished=None)
    return solved.with_better(lines, _searched_again(judge, clock, guide, lines, sure))


def _searched_again(judge: Judge, clock: Clock, guide: Guide, lines: Array, task: Task) -> Solved:
    """What another task finds for these lines (m,)."""
    found = _confirmed(Judge(task, judge.model, guide.floors, judge.theta), clock.for_some(len(lines)), guide)
    clock.seconds[lines] += found.seconds
    return found


def _confirmed(judge: Judge, clock: Clock, guide: Guide) -> Solved:
    """One search of all lines, and a second of those whose answer the model itself refused.

    That asks the model itself, for points that lead by more.
    """
    task, model = judge.task, judge.model
    solved = _solve(judge, clock, guide)
    again = solved.refused.nonzero()[0]
    if len(again) and not clock.is_over():
        config = replace(task.config, kappa=task.config.kappa + _MORE)
        with model.asking_itself():
            judge = Judge(task.take(again, config), model, guide.floors, guide.plan.path_theta)
            second = _solve(judge, clock.for_some(len(again)), guide)
        clock.seconds[again] += second.seconds
        solved = solved.with_better(again, second)
    return solved


def _solve(judge: Judge, clock: Clock, guide: Guide) -> Solved:
    """One search of all lines."""
    driver = Driver(judge, clock, guide)
    clock.begin(0.0, 0.5 if guide.plan.polish else 1.0)
    with suppress(SearchEndsError):
        if len(judge.task):
            driver.offer(_search(judge, clock, driver.best, guide))
        driver.polish(0.5)
        driver.agree()
        driver.shorten()
        driver.fulfil()
        driver.take_back()
    by_search = driver.incumbents.found()
    with suppress(SearchEndsError):
        driver.fall_back(by_search)
    clock.begin(1.0, 1.0)
    clock.report(1.0)
    return driver.confirmed(by_search)


def _search(judge: Judge, clock: Clock, best: Array, guide: Guide) -> Iterator[Candidates]:
    """The method of the plan."""
    plan = guide.plan
    if plan.method == "path" and guide.encoder is None:
        for rows, points, classes in prototypes_in_pieces(judge, clock, guide):
            flat = points.reshape(*points.shape[:2], -1)
            search = search_path if judge.task.intervals is None else search_between
            yield from search(judge, clock, best, rows, flat, classes, plan.path_theta)
        return
    found = None if plan.theta == 0 else prototypes_of(judge, clock, guide)
    if plan.method == "path" and found is not None and guide.encoder is not None:
        encoder = Counted(guide.encoder, judge.model, found.points.shape[2:])
        yield from search_latent(judge, clock, best, encoder, found.points, found.classes, plan.path_theta)
        return
    code = () if found is None else found.points.shape[2:]
    yield from search_descent(
        judge,
        clock,
        best,
        plan,
        prototypes=None if found is None else found.points[:, 0],
        classes=None if found is None else found.classes[:, 0],
        encoder=None if guide.encoder is None else Counted(guide.encoder, judge.model, code),
        autoencoder=None if guide.autoencoder is None else Counted(guide.autoencoder, judge.model, judge.space.shape),
    )
