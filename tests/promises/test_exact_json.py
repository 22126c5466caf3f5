"""What `explain` takes, `to_json` writes, and `from_json` gives back the same."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import Explanation
from cfproto_plugin.helpers.kinds import cells_of

ZONE = "Europe/Berlin"


def explanation(original, counterfactual=None, classes=(0, 1)):
    n, labels = len(original), np.empty(2, dtype=object)
    labels[:] = classes
    return Explanation(
        original=original,
        counterfactual=original if counterfactual is None else counterfactual,
        status=np.full(n, "found", dtype=object),
        message=np.full(n, "a message", dtype=object),
        original_class=labels[[0] * n],
        counterfactual_class=labels[[1] * n],
        prototype_class=labels[[1] * n],
        original_proba=np.tile([0.9, 0.1], (n, 1)),
        counterfactual_proba=np.tile([0.2, 0.8], (n, 1)),
        classes=labels,
        n_steps=np.zeros(n, dtype=int),
        seconds=np.zeros(n),
        row=np.arange(n),
        feature_names=None if isinstance(original, np.ndarray) else tuple(map(str, _names(original))),
        meta={},
    )


def _names(frame):
    return getattr(frame, "column_names", frame.columns)


def again(e):
    return Explanation.from_json(e.to_json())


COLUMNS = {
    "periods": pd.period_range("2020-01", periods=2, freq="M"),
    "intervals": pd.arrays.IntervalArray.from_breaks([0, 1, 2], closed="left"),
    "cut": pd.cut([1, 5], 2),
    "decimals": np.array([Decimal("1.10"), None], dtype=object),
    "fractions": np.array([Fraction(1, 3), Fraction(2)], dtype=object),
    "ids": np.array([UUID(int=1), UUID(int=2)], dtype=object),
    "dates": np.array([dt.date(2020, 2, 29), None], dtype=object),
    "times": np.array([dt.time(1, 2, 3, 4), dt.time(0)], dtype=object),
    "moments": np.array([dt.datetime(2020, 1, 1, 3), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], dtype=object),  # noqa: DTZ001
    "spans": np.array([dt.timedelta(days=1, microseconds=2), dt.timedelta(0)], dtype=object),
    "bytes": np.array([b"\x00\xff", b""], dtype=object),
    "stamps": pd.Categorical([pd.Timestamp("2020-01-01 00:00:00.000000001"), pd.NaT]),
    "zoned stamps": pd.Categorical(pd.to_datetime(["2020-07-01", "2021"], format="ISO8601").tz_localize(ZONE)),
    "single stamps": np.array([pd.Timestamp("2020-01-01 12:00", tz=ZONE), pd.NaT], dtype=object),
    "deltas": pd.Categorical(pd.to_timedelta([1, 2], unit="s")),
    "missing": np.array([pd.NA, np.nan], dtype=object),
    "sparse": pd.arrays.SparseArray([0.0, 1.5]),
    "sparse integers": pd.arrays.SparseArray([0, 1]),
    "string": pd.array(["a", None], dtype="string[python]"),
    "nullable": pd.array([1.5, None], dtype="Float64"),
    "truth": pd.array([True, None], dtype="boolean"),
}
ARROW = ["int64[pyarrow]", "double[pyarrow]", "bool[pyarrow]"]


@pytest.mark.parametrize("name", COLUMNS)
def test_cells_of_every_kind_that_explain_takes_come_back_from_json(name):
    frame = pd.DataFrame({"a": COLUMNS[name]})
    found = again(explanation(frame)).original
    pd.testing.assert_frame_equal(found, frame)
    assert [type(cell) for cell in found["a"]] == [type(cell) for cell in frame["a"]]
    assert found.dtypes["a"] == frame.dtypes["a"]


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("dtype", ARROW)
def test_arrow_columns_of_pandas_come_back_from_json(dtype):
    frame = pd.DataFrame({"a": pd.array([1, None, 0], dtype=dtype)})
    pd.testing.assert_frame_equal(again(explanation(frame)).original, frame)


@pytest.mark.needs("pyarrow")
def test_the_kinds_of_strings_are_told_apart_in_json():
    import pyarrow as pa

    kinds = [pd.ArrowDtype(pa.string()), "string[pyarrow]", "string[python]", "str", object]
    frame = pd.DataFrame({at: pd.Series(["a", None], dtype=kind) for at, kind in enumerate(kinds)})
    found = again(explanation(frame)).original
    assert list(found.dtypes) == list(frame.dtypes)
    assert [repr(dtype) for dtype in found.dtypes] == [repr(dtype) for dtype in frame.dtypes]


def test_tuples_and_lists_come_back_from_json():
    cells = np.empty((2, 1), dtype=object)
    cells[:, 0] = [(1, "a"), ()]
    assert again(explanation(cells)).original[:, 0].tolist() == [(1, "a"), ()]


def test_an_array_of_bytes_comes_back_from_json():
    found = again(explanation(np.array([[b"a"], [b"bc"]]))).original
    assert found.dtype == "S2"
    assert found.tolist() == [[b"a"], [b"bc"]]


@pytest.mark.parametrize(
    "classes",
    [
        (dt.date(2020, 1, 1), dt.date(2021, 1, 1)),
        (pd.Timestamp("2020"), pd.Timestamp("2021")),
        (Decimal("0.5"), Decimal("1.5")),
        (pd.Interval(0, 1), pd.Interval(1, 2)),
    ],
)
def test_labels_come_back_from_json_in_their_type(classes):
    found = again(explanation(np.zeros((1, 2)), classes=classes))
    assert found.classes.tolist() == list(classes)
    assert found.counterfactual_class[0] == classes[1]
    assert type(found.classes[0]) is type(classes[0])


@pytest.mark.parametrize(
    "columns",
    [
        pd.CategoricalIndex(["a", "b"], name="kind"),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2)], names=["letter", None]),
        pd.Index([3, 5], name="number"),
    ],
)
@pytest.mark.parametrize(
    "index",
    [
        pd.MultiIndex.from_tuples([("x", 1), ("x", 1)], names=["k", "n"]),
        pd.DatetimeIndex(["2020-01-01", "2020-01-01"], name="when"),
        pd.Index(["same", "same"]),
    ],
)
def test_the_labels_of_columns_and_rows_come_back_from_json_and_head_the_frame(columns, index):
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=columns, index=index)
    e = explanation(frame, frame + 1)
    pd.testing.assert_frame_equal(again(e).counterfactual, frame + 1)
    pd.testing.assert_index_equal(e.to_frame().index, index)
    pd.testing.assert_index_equal(e.delta.columns, columns)
    assert len(e.changes()) == 4
    assert "found" in repr(e)
    assert "before" in e._repr_html_()


def test_what_json_cannot_hold_is_named():
    with pytest.raises(ValueError, match=r"original\['a'\] holds .* of type object"):
        explanation(pd.DataFrame({"a": np.array([object()])})).to_json()


def polars_frame():
    import polars as pl

    levels = pl.Enum(["low", "high", "never seen"])
    return pl.DataFrame(
        {
            "small": pl.Series([1, None, 3], dtype=pl.Int8),
            "unsigned": pl.Series([1, 2, 3], dtype=pl.UInt16),
            "float": pl.Series([1.5, None, float("nan")], dtype=pl.Float32),
            "truth": [True, None, False],
            "text": ["a", None, "b"],
            "category": pl.Series(["x", "y", None], dtype=pl.Categorical),
            "level": pl.Series(["low", "high", None], dtype=levels),
            "decimal": [Decimal("1.50"), None, Decimal("2.25")],
        }
    )


def changed_frame():
    import polars as pl

    frame = polars_frame()
    return frame.with_columns(
        pl.Series("unsigned", [0, 2, 3], dtype=pl.UInt16),
        pl.Series("text", ["a", None, "c"]),
        pl.Series("level", ["never seen", "high", None], dtype=frame.schema["level"]),
    )


def both(library):
    frames = polars_frame(), changed_frame()
    return frames if library == "polars" else tuple(frame.to_arrow() for frame in frames)


LIBRARIES = [pytest.param(name, marks=pytest.mark.needs("polars", "pyarrow")) for name in ("polars", "pyarrow")]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_comes_back_from_json_in_its_own_library_and_types(library):
    original, counterfactual = both(library)
    found = again(explanation(original, counterfactual))
    for name, frame in {"original": original, "counterfactual": counterfactual}.items():
        read = getattr(found, name)
        assert type(read) is type(frame)
        assert read.schema == frame.schema
        assert str(cells_of(read).tolist()) == str(cells_of(frame).tolist())  # nan and None are told apart


@pytest.mark.parametrize("library", LIBRARIES)
def test_without_its_library_a_frame_is_read_as_a_pandas_frame(library, monkeypatch):
    text = explanation(*both(library)).to_json()
    monkeypatch.setattr("cfproto_plugin.files.exact_json.find_spec", lambda name: None)
    found = Explanation.from_json(text).original
    assert isinstance(found, pd.DataFrame)
    assert found["text"].tolist()[0] == "a"


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_explanation_of_any_frame_is_tabulated_sliced_printed_and_measured(library):
    from cfproto_plugin.metrics import evaluate

    original, counterfactual = both(library)
    e = explanation(original, counterfactual)
    assert [(change.row, change.feature, change.before, change.after) for change in e.changes()] == [
        (0, "unsigned", 1, 0),
        (0, "level", "low", "never seen"),
        (2, "text", "b", "c"),
    ]
    assert e.n_changes.tolist() == [2, 0, 1]
    assert type(e.delta) is type(e.to_frame()) is type(e[:2].original) is type(original)
    assert cells_of(e.delta)[:, 1].tolist() == [-1, 0, 0]
    kinds = dict(zip(_names(original), original.schema.types if library == "pyarrow" else original.dtypes, strict=True))
    schema = e.to_frame().schema
    found = dict(zip(schema.names, schema.types, strict=True)) if library == "pyarrow" else schema
    assert all(found[f"{name}_after"] == kind for name, kind in kinds.items())
    assert len(e[np.array([True, False, True])]) == 2
    assert "text b -> c" in repr(e)
    assert "never seen" in e._repr_html_()
    assert list(e.changes_frame()["after"]) == [0, "never seen", "c"]
    assert [record.mean for record in evaluate(e).records if record.metric == "l0"] == [1.0]


def test_explanations_written_before_are_still_read():
    content = json.loads(explanation(np.zeros((1, 1))).to_json())
    content["classes"]["data"] = [{"$type": "timestamp", "data": "2020-01-01T00:00:00"}, {"$type": "NA", "data": None}]
    assert Explanation.from_json(json.dumps(content)).classes.tolist() == [pd.Timestamp("2020"), pd.NA]


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("ordered", [False, True])
def test_categories_of_arrow_that_no_cell_has_are_kept(ordered):
    import pyarrow as pa

    codes = pa.array([1, None, 0], pa.int8())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["low", "high", "unused"]), ordered=ordered)
    table = pa.table({"level": column, "number": [1, 2, 3]})
    read = again(explanation(table)).original
    assert read.equals(table)
    assert read["level"].type == table["level"].type
    assert read["level"].chunk(0).dictionary.to_pylist() == ["low", "high", "unused"]


def test_polars_columns_of_lists_arrays_and_structs_come_back():
    pl = pytest.importorskip("polars")
    columns = [
        pl.Series("a", [["x", "y"], None]),
        pl.Series("a", [[[1], [2]], []]),
        pl.Series("a", [[1, 2], [3, 4]], dtype=pl.Array(pl.Int8, 2)),
        pl.Series("a", [{"u": 1, "v": "q"}, None]),
    ]
    for column in columns:
        frame = pl.DataFrame({"a": column, "b": [0.5, 1.5]})
        again = Explanation.from_json(explanation(frame).to_json()).original
        assert again.equals(frame)
        assert again.schema == frame.schema


@pytest.mark.parametrize(
    "cells",
    [
        pd.arrays.SparseArray([0.0, 0.0, 1.5], fill_value=0.0),
        pd.arrays.SparseArray([0.0, np.nan, 1.5]),
        pd.arrays.SparseArray([3, 0, 0], fill_value=0),
        pd.arrays.SparseArray([True, False, False]),
    ],
    ids=lambda cells: str(cells.dtype),
)
def test_sparse_columns_come_back_sparse(cells):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "s": cells})
    pd.testing.assert_frame_equal(again(explanation(frame)).counterfactual, frame)
