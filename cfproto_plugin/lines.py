"""The lines of a result while they are being filled in: refused, settled without a search, or searched for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cfproto_plugin.fitted import Fitted
from cfproto_plugin.protocols import Array
from cfproto_plugin.report.proofs import certificate_in_words, none_in_words, proof_in_words
from cfproto_plugin.report.sentences import (
    FURTHER,
    ended_in_words,
    how_in_words,
    stranger_in_words,
    why_not_in_words,
    wishes_in_words,
)
from cfproto_plugin.search.how import How
from cfproto_plugin.search.intervals import Intervals
from cfproto_plugin.search.judge import margin_of
from cfproto_plugin.search.model import Answer, SearchModel
from cfproto_plugin.search.proofs.certificate import Certificate
from cfproto_plugin.search.proofs.certify import Proofs
from cfproto_plugin.search.refine.needed import nothing_known
from cfproto_plugin.search.solved import Solved
from cfproto_plugin.search.targets import names_of
from cfproto_plugin.search.task import Task
from cfproto_plugin.tables.geometry import count_changed
from cfproto_plugin.tables.given import Given


class Lines:
    """The lines of the result while they are being filled in: n answers to every row, all arrays of that length."""

    def __init__(
        self,
        fitted: Fitted,
        given: Given,
        answer: Answer,
        allowed: Array,
        group: Array,
        intervals: Intervals | None = None,
    ) -> None:
        n = len(group)
        self.fitted, self.given, self.allowed, self.group, self.intervals = fitted, given, allowed, group, intervals
        self.answer, self.original = Answer(*(part[group] for part in answer)), given.table[group]
        self.table = np.full_like(self.original, np.nan)
        self.needed = nothing_known(self.original.shape)
        self.proba = np.full(self.answer.proba.shape, np.nan)
        self.label, self.prototype = np.full(n, -1), np.full(n, -1)
        self.status = np.full(n, "not_found", dtype=object)
        self.message = np.full(n, "", dtype=object)
        self.how = np.full(n, None, dtype=object)
        self.steps, self.seconds = np.zeros(n, dtype=int), np.zeros(n)
        self.distance, self.objective, self.lower_bound, self.gap = np.full((4, n), np.nan)
        self.typicality, self.stability = np.full((2, n), np.nan)
        self.unsolved = np.ones(n, dtype=bool)

    def refuse(self, errors: Mapping[int, Exception]) -> None:
        """Rows that cannot be read or predicted are done."""
        for row, error in errors.items():
            at = self.group == row
            self.status[at], self.message[at], self.unsolved[at] = "error", str(error), False
            self.answer.label[at], self.answer.proba[at] = -1, np.nan

    def found_rows(self) -> Array:
        """The user's rows that have an answer by now."""
        return np.unique(self.group[self.status == "found"])

    def settle(self, at: Array, reasons: dict[int, str], broken: Array, noise: float) -> None:
        """Rows that are in the target and keep the rules are done; rows whose rules contradict each other cannot be.

        at: (m,) lines. reasons: by place in them. broken: (m,) bool: a rule does not hold on the row itself.
        noise: what a margin must exceed.
        """
        config, proba, label = self.fitted.config, self.answer.proba[at], self.answer.label[at]
        own, allowed = (np.arange(len(at)), label), self.allowed[at]
        if self.intervals is not None:
            there = ~broken & (self.intervals.take(at).best(proba, config.kappa, noise)[0] > 0)
        else:
            least, _ = self.fitted.probabilities
            there = allowed[own] & (proba[own] >= (0 if least is None else least[label])) & ~broken
            if config.kappa or noise:
                there &= margin_of(proba, allowed, config.kappa, least, noise) > 0
        if there.any():
            self._return_unchanged(at[there])
        for i, reason in reasons.items():
            if not there[i]:
                self.status[at[i]], self.message[at[i]], self.unsolved[at[i]] = "infeasible", reason, False

    def _return_unchanged(self, done: Array) -> None:
        """The rows of lines (m,) are their own answers: the first line of each has it, the others have none."""
        first = done[self.group.searchsorted(self.group[done]) == done]
        self.unsolved[done] = False
        self.table[first], self.proba[first] = self.original[first], self.answer.proba[first]
        self.label[first], self.distance[first], self.objective[first] = self.answer.label[first], 0.0, 0.0
        self.status[first], self.how[first] = "found", How("unchanged")
        self.message[done] = "already in the target: there is only the row itself"
        self.message[first] = how_in_words(How("unchanged"), label=None, n_changes=0, cost=0.0)

    def fill(self, at: Array, task: Task, solved: Solved, further: Array, model: SearchModel) -> None:
        """Put in what a search found for the lines (m,); further (m,) bool: their rows have an answer already.

        model: that was asked. If it is gone, lines without an answer are errors: more might have been found.
        """
        good, trace, classes = solved.good, solved.trace, names_of(self.fitted.classes)
        self.table[at], self.proba[at], self.label[at] = solved.table, solved.proba, solved.label
        self.distance[at], self.seconds[at], self.needed[at] = solved.distance, solved.seconds, solved.needed
        self.prototype[at], self.steps[at] = trace["prototype"], trace["steps"]
        for mine, found in ((self.typicality, solved.typicality), (self.stability, solved.stability)):
            mine[at] = np.where(good, found, np.nan)
        self.objective[at] = np.where(good, solved.cost, np.nan)
        without = "not_found" if model.gone is None else "error"
        self.status[at] = np.where(good, np.where(solved.by_search, "found", "fallback"), without)
        counts, ruled = count_changed(solved.table, task.rows.table), task.space.rules.any_declared
        for i, line in enumerate(at):
            if not good[i]:
                self.message[line] = self._why_not(i, task, solved, further=bool(further[i]), model=model)
                continue
            prototype = int(trace["prototype"][i])
            how = How(
                method=str(trace["method"][i]),
                prototype_class=classes[prototype] if prototype >= 0 else None,
                theta=float(trace["theta"][i]),
                step=int(trace["step"][i]),
                c=float(trace["c"][i]),
                polished_from=float(trace["before"][i]),
            )
            self.how[line] = how
            self.message[line] = how_in_words(
                how,
                label=self._reached(solved, i, line),
                n_changes=int(counts[i]),
                cost=float(solved.cost[i]),
                ruled=ruled,
            )
            self.message[line] += FURTHER * self._is_no_further(line) + self._unmet(i, solved)

    def _is_no_further(self, line: int) -> bool:
        """Whether a line is a fallback, and the search found another answer of its row. Lines are filled in order."""
        first = int(self.group.searchsorted(self.group[line]))
        return bool(self.status[line] == "fallback" and (self.status[first:line] == "found").any())

    def mention_strangers(self) -> None:
        """Say of rows with a category that no training row has, and that the model took, that it is so."""
        for at, attribute in enumerate(self.given.columns.attributes):
            if attribute.levels is None or not attribute.unknown:
                continue
            known = len(attribute.levels) - attribute.unknown
            strange = (self.original[:, at] >= known) & (self.status != "error")
            for line in strange.nonzero()[0]:
                value = attribute.levels[int(self.original[line, at])]
                self.message[line] += "; " + stranger_in_words(attribute.name, value)

    def certify(self, first: Array, n: int, proofs: Proofs, task: Task) -> None:
        """Put in what is proved of the first lines (m,) of rows with n lines each, under the rules of the task.

        Further answers of a row have to differ from the first: no more than its bound is known of them, and with theta
        not even that, because they have prototypes of their own.
        """
        config = self.fitted.config
        for number in range(1 if config.theta else n):
            self.lower_bound[first + number] = proofs.bound
        with np.errstate(invalid="ignore"):
            gap = np.maximum(self.objective - self.lower_bound, 0) / np.where(self.objective > 0, self.objective, 1)
        self.gap = np.where(np.isnan(self.objective), np.nan, gap)
        self.gap[first[proofs.proved]] = 0.0
        for i, line in enumerate(first):
            if proofs.infeasible[i] and self.label[line] < 0:
                self.status[line : line + n], self.message[line : line + n] = (
                    "infeasible",
                    none_in_words(
                        self._wanted(self.allowed[line]), config.min_proba, task.hard_rules, ranged=task.ranged
                    ),
                )
                continue
            self.message[line] += proof_in_words(
                float(proofs.bound[i]),
                float(self.gap[line]),
                proved=bool(proofs.proved[i]),
                complete=bool(proofs.complete[i]) or config.certify == "bound",
                too_large=bool(proofs.too_large[i]),
                wrong=bool(proofs.wrong[i]),
                left_out=proofs.left_out[i],
                prototype=bool(config.theta),
            )

    def certificate(self, at: Array, proofs: Proofs, seconds: Array, task: Task) -> Certificate:
        """What is proved of lines (m,), one per row, under the rules of the task; the others are settled already."""
        classes, config = names_of(self.fitted.classes), self.fitted.config
        bound = np.where(self.status == "found", 0.0, np.where(self.status == "infeasible", np.inf, np.nan))
        exact = self.status == "found"
        message = np.where(exact, "already in the target: no change is needed", self.message).astype(object)
        bound[at], exact[at] = proofs.bound, proofs.proved
        for i, line in enumerate(at):
            message[line] = certificate_in_words(
                self._wanted(self.allowed[line]),
                float(proofs.bound[i]),
                exact=bool(proofs.proved[i]),
                complete=bool(proofs.complete[i]),
                too_large=bool(proofs.too_large[i]),
                wrong=bool(proofs.wrong[i]),
                left_out=(*proofs.left_out[i], *(["theta"] if config.theta else [])),
                min_proba=config.min_proba,
                rules=task.hard_rules,
                ranged=task.ranged,
            )
        spent = np.zeros(len(self.group))
        spent[at] = seconds
        original = [None if label < 0 else classes[label] for label in self.answer.label]
        return Certificate(bound, exact, np.array(original, dtype=object), message, spent)

    def _unmet(self, i: int, solved: Solved) -> str:
        """What a line that has an answer misses of what is wished for, in words."""
        floors = self.fitted.guide.floors
        label, (_, wished) = solved.label[i], self.fitted.probabilities
        asks = self.intervals is None and wished is not None
        return wishes_in_words(
            float(solved.typicality[i]),
            float(solved.stability[i]),
            float(solved.proba[i, label]),
            typical=float(solved.least_typicality[i]),
            stable=floors.least_stability.least,
            probable=float(wished[label]) if asks and wished is not None else 0.0,
        )

    def _reached(self, solved: Solved, i: int, line: int) -> Any:
        """The class of an answer; for a target of probabilities the class that was asked for, and its probability."""
        classes = self.fitted.names
        if self.intervals is None:
            return classes[solved.label[i]]
        column = int(self.intervals.take(np.array([line])).best(solved.proba[[i]])[1][0])
        return f"{classes[column]} with probability {solved.proba[i, column]:.3g}"

    def _wanted(self, allowed: Array) -> list[Any]:
        """What messages call the allowed classes (k,)."""
        return [name for name, is_allowed in zip(self.fitted.names, allowed, strict=True) if is_allowed]

    def margin(self) -> Array:
        """(n,) the probability of the new class minus the best other."""
        each, label = np.arange(len(self.group)), np.maximum(self.label, 0)
        others = self.proba.copy()
        others[each, label] = -np.inf
        return np.where(self.label < 0, np.nan, self.proba[each, label] - others.max(axis=1))

    def _why_not(self, i: int, task: Task, solved: Solved, *, further: bool, model: SearchModel) -> str:
        if model.gone is not None:
            return str(model.gone)
        ended = ended_in_words(in_time=solved.in_time, refused=bool(solved.refused[i]), further=further)
        if ended:
            return ended
        labels, least = names_of(self.fitted.classes[task.allowed[i]]), self.fitted.config.kappa
        wanted, absent = self._wanted(task.allowed[i]), all(label in self.fitted.absent for label in labels)
        least += self.fitted.noise_of(self.given.table.dtype).lead
        if task.intervals is not None:
            wanted, absent, least = task.intervals.in_words(i, self.fitted.names), False, 0.0
        blocked = solved.blocked[i]
        return why_not_in_words(
            wanted,
            absent=absent,
            min_proba=None if task.least is None else float(task.least[task.allowed[i]].min()),
            fallback=self.fitted.config.fallback,
            reached=float(solved.reached[i]),
            raised=model.raised,
            least=least,
            blocked=None if blocked is None else [task.space.rules.relations[at].name for at in blocked.relations],
            only_of_class=blocked is not None and blocked.of_class,
            relax=task.binding,
            ranged=task.ranged,
            estimated=("min_stability",) if solved.estimated[i] else (),
            floors={
                name: (float(best), floor.least)
                for name, best, floor in (
                    ("min_typicality", solved.typicality[i], self.fitted.guide.floors.least_typicality),
                    ("min_stability", solved.stability[i], self.fitted.guide.floors.least_stability),
                )
                if floor.is_rule
            },
        )
