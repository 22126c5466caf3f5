"""`FrameExplainer`: a pure function, rows of a frame in, a frame of their counterfactuals out.

It can be pickled: the explainer goes along as the bytes that `save` writes, and a process loads it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cfproto_plugin.errors import ModelGoneError
from cfproto_plugin.features import Features
from cfproto_plugin.helpers.kinds import library_of, to_pandas
from cfproto_plugin.integrations.datasets.loading import load_pyarrow
from cfproto_plugin.integrations.datasets.schema import (
    answer_schema,
    as_column,
    as_rows,
    feature_names,
    keep_types,
    lines_of,
    to_frame,
)
from cfproto_plugin.integrations.datasets.stored import Stored, explainer_of, store
from cfproto_plugin.integrations.requests import Request
from cfproto_plugin.integrations.serving import ServedExplainer
from cfproto_plugin.report import as_table


class FrameExplainer:
    """Explains the rows of a pandas, polars or pyarrow frame; the answer is a pandas frame of constant dtypes.

    explainer: a fitted one, or the path of a saved one; trusted: what loading it may restore.
    target, n, features, time_budget (seconds per frame): as in `explain`. preset: close, few, typical or stable.
    keep: columns of the rows that the answers have too, such as a key; or a dict of their names to Arrow types, such as
        {"id": "int64"}, which `meta` and `schema` need. A feature that is kept is called <name>_before.
    """

    def __init__(
        self,
        explainer: Any,
        *,
        target: Any = None,
        n: int = 1,
        features: Features | None = None,
        time_budget: float | None = None,
        preset: str | None = None,
        keep: Sequence[str] | Mapping[str, Any] = (),
        trusted: Sequence[str] = (),
    ) -> None:
        self.request = Request(target, n, features, time_budget, preset)
        self.keep = (keep,) if isinstance(keep, str) else keep
        self._trusted = tuple(trusted)
        self._served: ServedExplainer | None = ServedExplainer(explainer_of(explainer, trusted))
        self._stored: Stored | None = None

    def __call__(self, frame: Any) -> Any:
        """The answers to the rows of a frame: columns that are kept, how each line ended, the counterfactual."""
        return to_frame(self.table(frame))

    def each(self, frames: Iterable[Any]) -> Iterator[Any]:
        """The answers to one frame after the other, as Spark's `mapInPandas` asks for them."""
        return map(self, frames)

    def table(self, frame: Any) -> Any:
        """The answers as a pyarrow Table, whose types follow from the explainer."""
        return self.answers(frame)[0]

    def answers(self, frame: Any, arrow: Any = None) -> tuple[Any, int]:
        """The table, and how many of the rows have a counterfactual.

        arrow: the same rows as a pyarrow Table, if there is one. Columns are kept from it as they are: pandas has no
        exact form for some, such as whole numbers beside missing values.
        """
        served = self.served
        arrow = frame if arrow is None and library_of(frame) == "pyarrow" else arrow
        frame = to_pandas(frame)
        schema = answer_schema(served.explainer, keep_types(self.keep, frame))
        names = [*self.keep]
        rows = as_rows(frame, feature_names(served.explainer), self.beside_features)
        if not len(frame):
            return schema.empty_table(), 0
        explanation = served.explain(rows, self.request)
        if "model_gone" in explanation.meta:  # the rows are to be asked about again, not answered in part
            raise ModelGoneError(explanation.meta["model_gone"])
        answers = as_table(explanation)
        kept = frame if arrow is None else arrow
        columns = [lines_of(kept, name, explanation.row) for name in names]
        columns += [answers.iloc[:, at] for at in range(answers.shape[1])]
        arrays = [as_column(column, field.type, field.name) for column, field in zip(columns, schema, strict=True)]
        found = len(set(explanation.row[explanation.found].tolist()))
        return load_pyarrow().table(arrays, schema=schema), found

    @property
    def schema(self) -> Any:
        """The pyarrow schema of the answers."""
        return answer_schema(self.served.explainer, keep_types(self.keep, None))

    @property
    def meta(self) -> Any:
        """Answers without lines, which have the dtypes of all answers: Dask's `meta`."""
        return to_frame(self.schema.empty_table())

    @property
    def columns(self) -> list[str] | None:
        """The columns that are read of the rows; None if all are."""
        names = feature_names(self.served.explainer)
        return None if names is None else [*dict.fromkeys((*self.keep, *names))]

    @property
    def beside_features(self) -> list[str]:
        """The columns that are kept and not explained."""
        names = feature_names(self.served.explainer) or ()
        return [name for name in self.keep if name not in names]

    @property
    def served(self) -> ServedExplainer:
        """The explainer, loaded if it came from another process."""
        if self._served is None and self._stored is not None:
            self._served = self._stored.load()
        if self._served is None:
            raise RuntimeError("a FrameExplainer has either an explainer or the bytes of one")
        return self._served

    @property
    def stored(self) -> Stored:
        """The explainer as bytes."""
        if self._stored is None:
            self._stored = store(self.served.explainer, self._trusted)
        return self._stored

    def __getstate__(self) -> dict[str, Any]:
        self.stored.check_complete()
        return {**vars(self), "_served": None}
