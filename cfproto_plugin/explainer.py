"""`CounterfactualExplainer`: a model and training data in, verified counterfactuals out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from cfproto_plugin import saving
from cfproto_plugin.arguments import check_call, check_class_names, check_models, check_parts, check_seed, settings
from cfproto_plugin.asking import FittedSource
from cfproto_plugin.call import Call, space_under
from cfproto_plugin.checks import as_plain
from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import InputError
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.features import Features
from cfproto_plugin.files.loading import Handed
from cfproto_plugin.files.models import How
from cfproto_plugin.files.package import MAX_BYTES
from cfproto_plugin.files.record import Saved
from cfproto_plugin.fitted import Fitted, Models, require_fitted
from cfproto_plugin.plugins.versions import versions
from cfproto_plugin.protocols import CategoryDistance, ModelAdapter, PrototypeProvider
from cfproto_plugin.result import budget_record, explanation_of
from cfproto_plugin.search.clock import Clock, Done, Progress, reporting, silent
from cfproto_plugin.search.portions import solve_in_portions
from cfproto_plugin.search.proofs.certificate import Certificate
from cfproto_plugin.search.proofs.certify import bounds, certify
from cfproto_plugin.search.proofs.supported import check_certifiable
from cfproto_plugin.search.several import further_answers
from cfproto_plugin.search.targets import labels_for, names_for


class CounterfactualExplainer:
    """Explains single predictions of a classifier by what would have to change for another class.

    model: anything a plugin claims, or a callable x -> probabilities (n, k).
    adapter: a registered name or a ModelAdapter; skips detection.
    encoder, autoencoder: ENC and AE of the paper, any model an adapter claims.
    prototypes: "auto" (the encoder if there is one, else k-d trees), a registered name, or a PrototypeProvider.
    distance: between categories: "abdm", "mvdm", "abdm-mvdm", a registered name, or a CategoryDistance.
    features: rules about the columns. search: settings of the search.
    class_names: what texts, reports and pictures call the classes: a dict of label to name, or a list of names in the
        order of the model's classes. Data keeps the labels; `target` takes either.
    seed: handed to plugins that draw random numbers; the built-in search draws none.
    """

    def __init__(
        self,
        model: Any,
        *,
        adapter: str | ModelAdapter | None = None,
        encoder: Any = None,
        autoencoder: Any = None,
        prototypes: str | PrototypeProvider = "auto",
        distance: str | CategoryDistance = "abdm",
        features: Features | None = None,
        search: SearchConfig | None = None,
        class_names: Mapping[Any, str] | Sequence[str] | None = None,
        seed: int = 0,
    ) -> None:
        check_models(model, adapter, encoder, autoencoder)
        check_parts(prototypes, distance)
        check_seed(seed)
        self.model = model
        self.adapter = adapter
        self.encoder = encoder
        self.autoencoder = autoencoder
        self.prototypes = prototypes
        self.distance = distance
        self.features = settings(features, "features", Features)
        self.search = settings(search, "search", SearchConfig)
        self.class_names = check_class_names(class_names)
        self.seed = int(seed)
        self.fitted_: Fitted | None = None

    def fit(self, X_train: Any, y: Any = None) -> Self:  # noqa: N803, ARG002 scikit-learn's names and habit
        """Learn columns, bounds and prototypes from training rows; their classes come from the model, y is not used."""
        models = Models.of(self.model, self.adapter, self.encoder, self.autoencoder, self.seed)
        fitted = Fitted.learn(X_train, models, self.features, self.search, self.prototypes, self.distance, self.seed)
        self.fitted_ = replace(fitted, class_names=names_for(self.class_names, fitted.classes))
        return self

    def explain(
        self,
        x: Any,
        target: Any = None,
        n: int = 1,
        *,
        features: Features | None = None,
        time_budget: float | None = None,
        progress: Progress = None,
    ) -> Explanation:
        """Find counterfactuals for every row of x: one row or many, an array or a DataFrame.

        target: a label, or a list, tuple or set of allowed labels; an array is one label per row, and so is a Series,
        matched to the index of a DataFrame; None is any other class. A dict of label to (low, high) asks for a
        probability in that interval, of any of the labels; a list, array or Series of dicts is one per row.
        n: how many different ones per row: the first is that of n=1, the others change other columns where they can;
        the result has n lines per row, and `row` says which. features: other rules for this call. time_budget: seconds,
        after which the best found so far is returned, and the nearest training row that keeps the rules for rows
        without; one search for these and one call of the model may go beyond it. progress: True, False, or a function
        that is called with the fraction done: a float with the attributes rows, done and found, in rows. Default: a bar
        on a terminal and in a notebook if it takes long.
        """
        start = time.perf_counter()
        fitted = require_fitted(self.fitted_)
        check_call(n, time_budget, progress)
        call = self._begin(x, target, n, features)
        lines, todo, pace = call.lines, call.todo, call.model.pace
        with fitted.session(), reporting(as_plain(progress), "explaining") as show:
            pace.deadline = np.inf if time_budget is None else start + time_budget

            def tick(fraction: float) -> None:
                if show is silent:
                    return
                done = len(lines.given) - len(todo) + int(fraction * len(todo))
                show(Done(fraction, len(lines.given), done, len(lines.found_rows()) + clock.found))

            clock = Clock(len(todo), pace.deadline, lambda fraction: tick(fraction / n))
            guide, certifying = fitted.guide, fitted.config.certify
            judge = call.judge()
            first, proofs = solve_in_portions(judge, clock, guide), None
            clock.found = int(first.good.sum())
            tick(1 / n)
            if certifying is not None:
                first, proofs = certify(judge, clock, first, fitted.classifier, guide, certifying)
            answers = further_answers(judge, clock, guide, first, n, tick)
        for number, solved in enumerate(answers):
            lines.fill(todo + number, judge.task, solved, answers[0].good & (number > 0), call.model)
        if proofs is not None:
            lines.certify(todo, n, proofs, judge.task)
        lines.mention_strangers()
        seconds = time.perf_counter() - start
        facts = {
            "versions": versions(self.model),
            "seed": self.seed,
            "rules_of_call": features is not None,
            "n_predict_calls": call.model.calls,
            "n_polish_calls": sum(solved.polish_calls for solved in answers),
            "n_predicted_rows": call.model.predicted,
            "n_gradients": call.model.gradients,
            "budget": budget_record(time_budget, seconds, spent=not answers[-1].in_time),
            "seconds": seconds,
            **({} if call.model.gone is None else {"model_gone": str(call.model.gone)}),
        }
        return explanation_of(lines, facts, features)

    __call__ = explain

    def what_if(self, x: Any, target: Any = None, *, features: str | Sequence[str] | None = None) -> Any:
        """Explain one row and show it as `Explanation.what_if` does."""
        explanation = self.explain(x, target, progress=False)
        if len(explanation) != 1:
            raise InputError(f"x has {len(explanation)} rows; expected one, or explain(x).what_if(line)")
        return explanation.what_if(features=features)

    def certificate(
        self, x: Any, target: Any = None, *, features: Features | None = None, time_budget: float | None = None
    ) -> Certificate:
        """Prove how far every row of x is from another class, without a search: for models that have `trees()`.

        No admissible change whose J is smaller than `lower_bound` leads to the target; theta does not count. The other
        arguments are those of `explain`; without a time budget a row may take a minute.
        """
        start = time.perf_counter()
        fitted = require_fitted(self.fitted_)
        check_call(1, time_budget, progress=False)
        encoders = fitted.guide.with_codes
        check_certifiable("certificate", fitted.classifier, fitted.space.columns, encoders=encoders, itself=self.model)
        call = self._begin(x, target, 1, features)
        call.model.pace.deadline = np.inf if time_budget is None else start + time_budget
        clock = Clock(len(call.todo), call.model.pace.deadline)
        judge = call.judge()
        proofs = bounds(judge, clock, fitted.classifier, fitted.guide)
        return call.lines.certificate(call.todo, proofs, clock.seconds, judge.task)

    def save(self, path: str | os.PathLike[str], *, model: How = "auto") -> Saved:
        """Write the fitted explainer without pickle: to a folder, or to one file if the name ends in .zip or .cfproto.

        model: "auto" stores the model, the encoder and the autoencoder in a safe format of their own where an installed
        plugin has one, else by reference, with a warning that says why; "file" demands it; "reference" leaves them out,
        and `load` is given them. An explainer that is there already is replaced at once, or not at all.
        """
        return saving.save(saving.settings_of(self), require_fitted(self.fitted_), saving.as_path(path), model)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        model: Any = None,
        *,
        adapter: str | ModelAdapter | None = None,
        encoder: Any = None,
        autoencoder: Any = None,
        prototypes: PrototypeProvider | None = None,
        distance: CategoryDistance | None = None,
        functions: Mapping[str, Any] | None = None,
        trusted: str | Sequence[str] = (),
        max_bytes: int = MAX_BYTES,
    ) -> Self:
        """Read what `save` wrote; nothing in the file is run, and the model is asked about a few rows only.

        model, encoder, autoencoder: in place of what was stored, or where it was saved by reference; each must answer
        as the one did that was explained. adapter, prototypes, distance: objects that were saved by reference.
        functions: by name, those of relations. trusted: names of types that a model file may restore, and of functions
        (module:name) that may be imported. max_bytes: the largest file, unpacked, that is read.
        """
        names = saving.check_handed(functions, trusted, max_bytes)
        handed = Handed(model, adapter, encoder, autoencoder, prototypes, distance, functions, names)
        settings, fitted = saving.load(saving.as_path(path), handed, max_bytes)
        found = cls(**settings)
        found.fitted_ = fitted
        return found

    def __repr__(self) -> str:
        known = self.fitted_
        state = (
            "not fitted"
            if known is None
            else f"{known.classifier.name}, {known.guide.plan.method}, {len(known.classes)} classes"
        )
        return f"CounterfactualExplainer({type(self.model).__name__}: {state})"

    def source_for(self, rows: Any, features: Features | None = None) -> FittedSource:
        """What an explanation of these rows can ask afterwards. features: the rules of its call, if it had any."""
        fitted = require_fitted(self.fitted_)
        if features is not None:
            space_under(settings(features, "features", Features), fitted, self.features)
        return FittedSource.of(fitted, rows, features)

    def _begin(self, x: Any, target: Any, n: int, features: Features | None) -> Call:
        """Read and predict the rows of a call under its rules."""
        fitted = require_fitted(self.fitted_)
        target = labels_for(target, fitted.classes, fitted.class_names)
        if features is None:
            return Call.begin(fitted, fitted.space, x, target, n)
        space = space_under(settings(features, "features", Features), fitted, self.features)
        return Call.begin(fitted, space, x, target, n)
