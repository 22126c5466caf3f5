"""Checks of what an adapter may add to `predict`: quick, trees, labels, scores, max_rows, columns of frames by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_plugin.helpers import load_pandas, tree_probabilities
from cfproto_plugin.helpers.probabilities import SUM_TOLERANCE
from cfproto_plugin.plugins import Adapted
from cfproto_plugin.plugins.members import splits_of_trees
from cfproto_plugin.protocols import Array
from cfproto_plugin.tables.cells import is_category, is_frame
from cfproto_plugin.testing.kit import in_batches, predict, require, require_close, required

_MOST_ROWS = 10_000  # of a batch of max_rows
_ROWS_AT_SPLITS = 500


def optional_members_are_of_the_right_kind(adapter: Any) -> None:
    """Methods, and True or False: a member of another kind is not used, or means what its author did not."""
    for name in ("vjp", "quick", "labels", "scores", "trees", "thresholds", "session"):
        found = getattr(adapter, name, None)
        require(found is None or callable(found), f"{name} is {found!r}, expected a method")
    for name in ("accepts_frames", "row_by_row"):
        found = getattr(adapter, name, False)
        require(isinstance(found, (bool, np.bool_)), f"{name} is {found!r}, expected True or False")


def quick_gives_what_predict_gives(adapter: Any, x: Any, *, atol: float = 1e-5) -> None:
    """Up to atol; the class then is the same unless the two largest probabilities are as near to each other."""
    slow, quick = predict(adapter, x), np.asarray(in_batches(adapter, adapter.quick, x))
    require(quick.shape == slow.shape, f"quick returned shape {quick.shape}, predict {slow.shape}")
    require(quick.dtype.kind in "fiub", f"quick returned an array of {quick.dtype}, expected numbers")
    require_close(quick, slow, atol, "quick and predict give different outputs")


def trees_give_what_predict_gives(adapter: Any, x: Array, *, atol: float = 1e-5) -> None:
    """On the rows, and on copies of them with one value exactly at a threshold."""
    known = Adapted.of(adapter)
    with required():
        ensemble = known.trees
        if ensemble is None:
            return
        splits = splits_of_trees(adapter, ensemble)
    columns = x[0].size
    require(ensemble.n_columns == columns, f"the trees have {ensemble.n_columns} columns, the rows {columns}")
    used = max((int(np.max(tree.column)) for tree in ensemble.trees), default=-1)
    require(used < columns, f"a tree splits column {used}, the rows have columns 0 to {columns - 1}")
    rows = np.concatenate([x.reshape(len(x), -1), _at_thresholds(x.reshape(len(x), -1), splits)])
    found = predict(adapter, rows.reshape(-1, *x.shape[1:]))
    given = tree_probabilities(ensemble, rows)
    require(given.shape == found.shape, f"the trees give {given.shape[1:]} columns, predict gives {found.shape[1:]}")
    require_close(given, found, atol, "the trees and predict give different probabilities")


def labels_are_columns_of_predict(adapter: Any, x: Any) -> None:
    found = np.asarray(in_batches(adapter, adapter.labels, x))
    columns = predict(adapter, x).shape[-1]
    require(found.shape == (len(x),), f"labels returned shape {found.shape} for {len(x)} rows, expected ({len(x)},)")
    require(found.dtype.kind in "iu", f"labels returned an array of {found.dtype}, expected whole numbers")
    inside = ((found >= 0) & (found < columns)).all()
    require(bool(inside), f"labels returned {found.min()} to {found.max()}, expected columns 0 to {columns - 1}")


def labels_do_not_depend_on_the_batch(adapter: Any, x: Any) -> None:
    together = np.asarray(in_batches(adapter, adapter.labels, x))
    alone = np.concatenate([np.asarray(adapter.labels(x[i : i + 1])) for i in range(len(x))])
    rows = np.flatnonzero(together != alone)
    require(not len(rows), f"labels of rows asked together and one by one differ, first in row {rows[:1]}")


def largest_score_is_the_label(adapter: Any, x: Any) -> None:
    """Numbers (n, k) of rows that sum to one; of several largest ones, any may be the decision."""
    scores, columns = np.asarray(in_batches(adapter, adapter.scores, x)), predict(adapter, x).shape[-1]
    wanted = (len(x), columns)
    require(scores.shape == wanted, f"scores returned shape {scores.shape} for {len(x)} rows, expected {wanted}")
    require(scores.dtype.kind == "f" and bool(np.isfinite(scores).all()), "scores returned what is no finite number")
    worst = float(np.abs(scores.sum(axis=1) - 1).max())
    require(worst < SUM_TOLERANCE, f"a row of scores sums to 1 +- {worst:.2g}")
    labels = np.asarray(in_batches(adapter, adapter.labels, x))
    rows = np.flatnonzero(scores[np.arange(len(x)), labels] < scores.max(axis=1))
    first = f": {scores[rows[0]]} and column {labels[rows[0]]}, first in row {rows[0]}" if len(rows) else ""
    require(not len(rows), f"the largest score is not that of labels{first}")


def a_batch_of_max_rows_is_predicted(adapter: Any, x: Any, *, atol: float = 1e-5) -> None:
    """As many rows as the adapter says it takes, each with the output that it has in a small batch."""
    size = min(Adapted.of(adapter, "adapter").max_rows or len(x), _MOST_ROWS)
    place = np.arange(size) % len(x)
    batch = x.iloc[place] if hasattr(x, "iloc") else x[place]
    alone = np.concatenate([adapter.predict(x[i : i + 1]) for i in range(len(x))])
    together = np.asarray(adapter.predict(batch))
    require(len(together) == size, f"predict returned {len(together)} items for max_rows={size} rows")
    require_close(together, alone[place], atol, f"rows in a batch of max_rows={size} and alone differ")


def feature_names_are_distinct_and_one_for_each_column(adapter: Any, x: Any) -> None:
    names, columns = Adapted.of(adapter).feature_names or (), x[:1].size
    require(len(set(names)) == len(names), f"feature_names are not distinct: {list(names)}")
    require(hasattr(x, "columns") or len(names) == columns, f"{len(names)} feature_names for {columns} columns")


def columns_of_a_frame_may_come_in_any_order(adapter: Any, x: Any, *, atol: float = 1e-5) -> None:
    """An array is made a frame with the adapter's own names; its columns are reversed, and moved by one."""
    names = Adapted.of(adapter, "adapter").feature_names or ()
    frame = x if hasattr(x, "columns") else load_pandas().DataFrame(x, columns=list(names))
    columns = list(frame.columns)
    for order, what in ((columns[::-1], "reversed"), (columns[1:] + columns[:1], "moved by one")):
        turned = predict(adapter, frame[order])
        require_close(turned, predict(adapter, frame), atol, f"a frame with its columns {what} differs")


def a_frame_and_the_array_of_its_numbers_agree(adapter: Any, x: Any, *, atol: float = 1e-5) -> None:
    """An adapter without `accepts_frames` is handed arrays by `fit` where every column of a frame holds numbers."""
    what = "fit hands an array to an adapter without accepts_frames if all columns of a DataFrame hold numbers"
    advice = "write accepts_frames = True in the adapter if its model takes frames"
    try:
        found = predict(adapter, x.to_numpy(dtype=np.float64, na_value=np.nan))
    except Exception as error:
        raise AssertionError(
            f"predict takes the frame and raises {type(error).__name__}: {error} for the array of its numbers; {what}: "
            f"{advice}"
        ) from error
    require_close(found, predict(adapter, x), atol, f"a frame and the array of its numbers differ; {what}: {advice}")


def why_no_array(known: Adapted, x: Any) -> str:
    """Why `fit` would not hand these rows of an example to the adapter as an array; nothing if it would."""
    if not is_frame(x):
        return "the rows are an array"
    if known.accepts_frames:
        return "the adapter has accepts_frames: it gets DataFrames"
    others = [name for name, dtype in zip(x.columns, x.dtypes, strict=True) if is_category(dtype)]
    return f"column {others[0]!r} holds no numbers: the adapter gets DataFrames" if others else ""


def _at_thresholds(rows: Array, splits: list[Array]) -> Array:
    """Copies of rows, each with a random column at one of its thresholds."""
    columns = [j for j, values in enumerate(splits) if len(values)]
    if not columns:
        return rows[:0]
    rng = np.random.default_rng(0)
    moved = rows[rng.integers(len(rows), size=_ROWS_AT_SPLITS)]
    for row, j in zip(moved, rng.choice(columns, size=len(moved)), strict=True):
        row[j] = rng.choice(splits[j])
    return moved
