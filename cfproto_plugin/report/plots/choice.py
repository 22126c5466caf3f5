"""Which picture fits an explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError, did_you_mean
from cfproto_plugin.report.cohorts import summarised
from cfproto_plugin.report.plots.changes import plot_changes
from cfproto_plugin.report.plots.cohort import plot_summary
from cfproto_plugin.report.plots.comparison import plot_comparison
from cfproto_plugin.report.plots.embedding import plot_embedding
from cfproto_plugin.report.plots.images import plot_images
from cfproto_plugin.report.plots.path import plot_path

if TYPE_CHECKING:
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.report.source import Source

KINDS = ("changes", "images", "cohort", "comparison", "path", "embedding")
_TAKES = {"by": ("cohort",), "shape": ("images",), "column": ("embedding",)}


def plot(
    explanation: Explanation,
    source: Source | None,
    kind: str | None = None,
    *,
    by: Any = None,
    column: Any = None,
    shape: Any = None,
    figure: Any = None,
) -> Any:
    """The picture of that kind, or the one that fits; source: None if the explanation came from a file."""
    chosen = _chosen(explanation, kind, by, column, shape)
    for name, value in (("by", by), ("column", column), ("shape", shape)):
        if value is not None and chosen not in _TAKES[name]:
            raise InputError(f"{name} is {shown(value)}, and is for kind={_TAKES[name][0]!r}; this is {chosen!r}")
    if not len(explanation):
        raise InputError("this explanation has no line, so there is nothing to draw")
    if chosen == "cohort":
        return plot_summary(summarised(explanation, by), figure)
    if chosen == "images":
        return plot_images(explanation, source, shape, figure)
    if chosen == "comparison":
        return plot_comparison(_of_one_row(explanation), figure)
    if chosen == "embedding":
        return plot_embedding(explanation, source, column, figure)
    drawn = plot_path if chosen == "path" else plot_changes
    return drawn(_one_line(explanation, chosen), source, figure)


def _chosen(explanation: Explanation, kind: str | None, by: Any, column: Any, shape: Any) -> str:
    if kind is not None and kind not in KINDS:
        raise InputError(
            f"kind is {shown(kind)}.{did_you_mean(kind, KINDS)} Expected one of {', '.join(KINDS)}, or None"
        )
    if kind is not None:
        return kind
    if by is not None or column is not None:
        return "cohort" if by is not None else "embedding"
    if shape is not None or explanation.column_names is None:
        return "images"
    if len(explanation) == 1:
        return "changes"
    return "comparison" if len(set(explanation.row.tolist())) == 1 else "cohort"


def _one_line(explanation: Explanation, kind: str) -> Explanation:
    if len(explanation) != 1:
        raise InputError(f"kind={kind!r} is for one line, and there are {len(explanation)}: e[0].plot({kind!r})")
    if explanation.column_names is None and kind == "changes":
        raise InputError("kind='changes' is for tables, and these rows are images: use kind='images'")
    return explanation


def _of_one_row(explanation: Explanation) -> Explanation:
    rows = sorted(set(explanation.row.tolist()))
    if len(rows) > 1:
        raise InputError(
            f"kind='comparison' is for the answers of one row, and there are {len(rows)} rows: "
            f"e[e.row == {rows[0]}].plot('comparison')"
        )
    if explanation.column_names is None:
        raise InputError("kind='comparison' is for tables, and these rows are images: use kind='images'")
    return explanation
