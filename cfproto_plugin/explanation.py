"""The result of `explain`, and what can be made of it: tables, JSON, sentences, reports, pictures.

The lines themselves, slicing and which cells differ are in `answers`.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from cfproto_plugin.answers import Answers, Change
from cfproto_plugin.errors import InputError
from cfproto_plugin.files.exact_json import as_lists, decode, encode
from cfproto_plugin.files.schemas import explanation_schema
from cfproto_plugin.helpers.kinds import load_pandas
from cfproto_plugin.integrations.notebook import what_if
from cfproto_plugin.integrations.shap import as_shap, background_of
from cfproto_plugin.report import as_frame, as_html, as_sentence, as_text
from cfproto_plugin.report.cohorts import Actions, Summary, found_actions, summarised
from cfproto_plugin.report.contributions import ORDERS, Contribution, as_records, contributions_of
from cfproto_plugin.report.document import report_html, write_report
from cfproto_plugin.report.source import check_source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cfproto_plugin.features import Features
    from cfproto_plugin.report.source import Source

FORMAT = "cfproto-explanation/1"
__all__ = ["FORMAT", "Change", "Explanation"]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Answers):
    """The answers to the rows of a call, and what can be made of them."""

    def changes_frame(self) -> Any:
        """`changes` as a pandas DataFrame with the columns row, feature, before, after and needed_for.

        Where the labels of a DataFrame's index are not the positions of its rows, they are the column index after row.
        """
        frame = load_pandas().DataFrame(self.changes(), columns=list(Change._fields))
        if self.index_labels:
            frame.insert(1, "index", self.original.index.repeat(self.n_changes))
        return frame

    def contributions(self, samples: int = ORDERS, seed: int = 0) -> list[Contribution]:
        """What each change adds to the probability of the new class, line by line in the order of the features.

        Shapley values over the changed features: what a change adds, averaged over all orders in which the changes can
        be made. Those of a line add up to the difference of `new_class_proba`. A one-hot group is one feature. Up to 8
        changes they are exact, from all subsets of the changes; beyond that from `samples` random orders drawn by
        `seed`, with their standard error. NaN in a line where the model fails for some changes without the others.
        """
        return as_records(self, contributions_of(self, samples, seed))

    def contributions_frame(self, samples: int = ORDERS, seed: int = 0) -> Any:
        """`contributions` as a pandas DataFrame with the columns of `Contribution`."""
        return load_pandas().DataFrame(self.contributions(samples, seed), columns=list(Contribution._fields))

    def to_shap(self, values: str = "contributions", *, samples: int = ORDERS, seed: int = 0) -> Any:
        """A `shap.Explanation` that SHAP's own plots draw, one line each.

        values: "contributions", from the probability of the new class at the original (base_values) to that at the
        counterfactual, or "delta", counterfactual minus original, 1 for a changed category or a missing cell that was
        filled. Lines without a counterfactual are zeros. data holds the originals as numbers, display_data as they are;
        of a single line it tells what changes. SHAP's plots show ten columns: max_display=e.n_changes.max() + 1 shows
        all that change. samples, seed: as in `contributions`.
        """
        return as_shap(self, values, samples, seed)

    def as_background(self) -> Any:
        """The counterfactuals as background data of a SHAP explainer: an array, or a pandas frame with the dtypes of x.

        Only lines that have one. SHAP values then tell how a row differs from the rows that the model decides
        otherwise about.
        """
        return background_of(self)

    def to_frame(self) -> Any:
        """One line per counterfactual, as a frame of the kind of x and with its index; for arrays a pandas DataFrame.

        The probabilities are those of the new class, before and after. Tables add `<feature>_before` and
        `<feature>_after` for every feature, side by side; images do not.
        """
        return as_frame(self)

    def to_json(self) -> str:
        """Strict JSON that `from_json` reads back exactly: dtypes, missing and infinite values, labels and frames."""
        content = {f.name: encode(getattr(self, f.name), f.name) for f in fields(self) if f.name != "_source"}
        return json.dumps({"format": FORMAT, **content}, allow_nan=False, default=as_lists)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON Schema (2020-12) of what `to_json` writes."""
        return explanation_schema()

    @classmethod
    def from_json(cls, text: str) -> Explanation:
        """Read what `to_json` wrote."""
        try:
            content = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            name = f". {text!r} looks like the name of a file: pass its text" if _is_name(text) else ""
            raise InputError(
                f"this is not JSON ({error}); expected the text that Explanation.to_json() returns{name}"
            ) from error
        found = content.pop("format", None) if isinstance(content, dict) else None
        if found != FORMAT:
            raise InputError(
                f"this JSON has the format {found!r}; expected {FORMAT!r}, as Explanation.to_json() writes it"
            )
        try:
            return cls(**{name: decode(value) for name, value in content.items()}, _source=None)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            raise InputError(
                f"this explanation is damaged ({error}); write it again with Explanation.to_json()"
            ) from error

    def with_explainer(self, explainer: Any, features: Features | None = None) -> Explanation:
        """The same with the explainer that made it, which a file and a pickle do not keep.

        `contributions` and pictures ask its model again. features: the rules of the call, if `explain` was given some:
        they are not kept either. InputError if it has other columns or classes, or a model that gives the originals
        other probabilities, and if rules of the call are left out.
        """
        make = getattr(explainer, "source_for", None)
        if make is None:
            raise InputError(f"explainer is {type(explainer).__name__}; expected a fitted CounterfactualExplainer")
        if features is None and self.meta.get("rules_of_call"):
            raise InputError(
                "this explanation was made under rules of its own, explain(..., features=...), which a file and a "
                "pickle do not keep; give them again: e.with_explainer(explainer, features=...)"
            )
        source: Source = make(self.original, features)
        check_source(source, self)
        return replace(self, _source=source)

    @property
    def source(self) -> Source:
        """What can be asked of the explainer afterwards: `probabilities(rows)`, `labels(rows)`, `training()` and more.

        InputError if the explanation was read from a file or a pickle; see `with_explainer`.
        """
        if self._source is None:
            raise InputError(
                "this explanation was read from a file or a pickle, which keeps no model; give it back by "
                "e = e.with_explainer(explainer)"
            )
        return self._source

    def sentence(self, line: int | None = None) -> str:
        """A line in words: Had income been 2811 instead of 2481, the model would have said granted (53 %).

        line: its number; default: all lines, each in a line of the text.
        """
        if line is None:
            return "\n".join(as_sentence(self[at]) for at in range(len(self)))
        if len(chosen := self[line]) != 1:
            raise InputError(f"line is {line!r}, which are {len(chosen)} lines; expected the number of one")
        return as_sentence(chosen)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "Counterfactual explanations",
        what_if: bool | int = 100,
    ) -> Path | str:
        """Write a report for a browser: one HTML file that loads nothing; return its path, or its text without a path.

        what_if: for how many lines readers can switch single changes on and off; True is all. The model is asked about
        2^k rows for each line of k changes, about k rows if k is above 8. Without a model, as after `from_json`, and
        for images that is left out.
        """
        if path is None:
            return report_html(self, title, what_if=what_if)
        return write_report(self, path, title, what_if=what_if)

    def what_if(self, line: int = 0, *, features: str | Sequence[str] | None = None) -> Any:
        """A widget for notebooks: sliders for the changed features of a line, and the model asked again.

        features: names of others to offer too, or "all". Needs anywidget: pip install 'cfproto-plugin[notebook]'.
        """
        return what_if(self, line, features)

    def summary(self, by: Any = None) -> Summary:
        """Which columns change, how often, how far and in which direction, for all rows and by class.

        by: a column of the rows, a list of columns whose values are combined, or an array or Series of one value per
        row: also for each of its groups, with the median distance and the share of rows without an answer. A Series is
        matched to a DataFrame by its index; by position if they have no label in common; it is refused if it has only
        some of the labels. More than ten different numbers are cut at their quartiles, missing values are a group of
        their own.
        """
        return summarised(self, by)

    def actions(
        self, k: int = 3, *, max_changes: int = 3, target: Any = None, time_budget: float | None = None
    ) -> Actions:
        """At most k actions that flip as many of the rows as possible, each confirmed by the model on every row.

        An action is made of at most max_changes changes that the answers have in common: a number at least, at most or
        by so much, a category to a value. The first flips the most rows, the next the most of the rest; rules hold on
        every row that counts. target: the classes that count; default: those of the answers. The rows are those
        explained that are not in the target: choose a cohort with e[e.original_class == "refused"]. A typicality or
        stability that was asked for as a rule holds on every row that counts, too; of a wish it is said how many reach
        it. time_budget: seconds, after which the best found so far are returned.
        """
        return found_actions(self, self.source, k, max_changes, target, time_budget)

    def plot(
        self,
        kind: str | None = None,
        *,
        by: Any = None,
        column: Any = None,
        shape: tuple[int, ...] | None = None,
        figure: Any = None,
    ) -> Any:
        """A picture as a matplotlib Figure, which needs no display; default: the one that fits.

        kind: "changes", one line of a table before and after, over what is typical of the new class; "images";
        "cohort", what changes in many rows, how often and which way (by: a group, as in `summary`); "comparison", the
        answers of one row side by side; "path", the model's probability on the way from one row to the prototype;
        "embedding", how alike the search takes the categories of a column to be (column: its name). shape: of an image
        whose rows are vectors. figure: a Figure or SubFigure to draw in.
        """
        from cfproto_plugin.report.plots import plot

        return plot(self, self._source, kind, by=by, column=column, shape=shape, figure=figure)

    def __repr__(self) -> str:
        return as_text(self, shutil.get_terminal_size().columns)

    def _repr_html_(self) -> str:
        return as_html(self)


def _is_name(text: Any) -> bool:
    """Whether it is a path, or a text that ends as the name of a JSON file does."""
    return isinstance(text, os.PathLike) or (isinstance(text, str) and text.lower().endswith(".json"))
