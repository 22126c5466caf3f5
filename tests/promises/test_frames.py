"""Frames of any kind are read by name, the model gets the kind it was fitted with, the user the kind that was given."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.helpers.kinds import cells_of, library_of, names_of, select, take

LEVELS = ["low", "middle", "high"]
LIBRARIES = [pytest.param(name, marks=pytest.mark.needs("polars", "pyarrow")) for name in ("polars", "pyarrow")]


def loans(n=150, *, missing=False):
    """Income, age, job, level, and whether a loan was given; as a polars frame, and the labels."""
    import polars as pl

    rng = np.random.default_rng(0)
    income, age = rng.gamma(3, 10, n).astype(np.float32), rng.integers(18, 80, n)
    job, level, member = rng.choice(["cook", "nurse", "pilot"], n), rng.choice(LEVELS, n), rng.random(n) < 0.5
    good = income / 30 + (job == "pilot") + (level == "high") + member - (age < 25) + rng.normal(0, 0.2, n) > 1.8
    frame = pl.DataFrame(
        {
            "income": income,
            "age": pl.Series(age, dtype=pl.Int8),
            "job": job.tolist(),
            "level": pl.Series(level.tolist(), dtype=pl.Enum([*LEVELS, "never"])),
            "kind": pl.Series(job.tolist(), dtype=pl.Categorical),
            "member": member,
        }
    )
    if missing:
        gone = pl.Series(rng.random(n) < 0.1)
        frame = frame.with_columns(pl.when(gone).then(None).otherwise(pl.col(c)).alias(c) for c in ("age", "income"))
    return frame, good.astype(int)


def pipeline():
    words, numbers = ["job", "level", "kind", "member"], ["income", "age"]
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), words),
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    )
    return make_pipeline(encode, LogisticRegression())


def as_library(frame, library):
    """A polars frame as the same frame of another library."""
    if library == "pyarrow":
        return frame.to_arrow()
    return frame if library == "polars" else frame.to_pandas()


def schema_of(frame):
    kinds = frame.schema.types if library_of(frame) == "pyarrow" else list(frame.dtypes)
    return dict(zip(names_of(frame), kinds, strict=True))


def assert_confirmed(e, model):
    """The user's own model gives the class that is claimed, for the very rows that were returned."""
    found = np.flatnonzero(e.found)
    assert len(found)
    assert np.array_equal(model.predict(take(e.counterfactual, found)), e.counterfactual_class[found])
    assert np.array_equal(model.predict(e.original), e.original_class)


class Recorder:
    """A model that remembers what it was given."""

    def __init__(self, model):
        self.model, self.seen = model, []

    def __call__(self, rows):
        self.seen.append(rows)
        return self.model.predict_proba(rows)

    @property
    def kinds(self):
        return {(library_of(rows), str(schema_of(rows))) for rows in self.seen}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_is_read_by_name_and_its_kind_comes_back(library):
    frame, y = loans()
    frame = as_library(frame, library)
    model = pipeline().fit(frame, y)
    explainer = CounterfactualExplainer(model).fit(frame)
    turned = select(take(frame, np.arange(12)), names_of(frame)[::-1])
    e = explainer.explain(turned)
    assert type(e.original) is type(e.counterfactual) is type(frame)
    assert schema_of(e.counterfactual) == schema_of(e.original) == schema_of(turned)
    assert cells_of(e.original).tolist() == cells_of(turned).tolist()
    assert_confirmed(e, model)
    straight = explainer.explain(take(frame, np.arange(12)))
    assert cells_of(select(e.counterfactual, names_of(frame))).tolist() == cells_of(straight.counterfactual).tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_values_stay_as_they_are_and_reach_the_model(library):
    import polars as pl

    frame, y = loans(missing=True)
    frame = frame.with_columns(pl.Series("nan", [float("nan"), 1.0, 2.0] * 50), pl.Series("null", [None, 1, 2] * 50))
    frame = as_library(frame.drop("job", "level", "kind"), library)
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(frame, y)
    e = CounterfactualExplainer(model, features=Features(immutable=["nan", "null"])).fit(frame).explain(frame)
    assert schema_of(e.counterfactual) == schema_of(frame)
    assert_confirmed(e, model)
    before, after = cells_of(e.original), cells_of(e.counterfactual)
    same = e.found
    assert [str(cell) for cell in after[same, -2]] == [str(cell) for cell in before[same, -2]]
    assert [str(cell) for cell in after[same, -1]] == [str(cell) for cell in before[same, -1]]
    assert {str(cell) for cell in before[:, -2]} == {"nan", "1.0", "2.0"}
    assert {str(cell) for cell in before[:, -1]} == {"None", "1", "2"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_function_gets_frames_of_the_kind_it_was_fitted_with_and_no_other(library):
    frame, y = loans()
    frame = as_library(frame, library)
    record = Recorder(pipeline().fit(frame, y))
    CounterfactualExplainer(record).fit(frame).explain(take(frame, np.arange(4)))
    assert record.kinds == {(library, str(schema_of(frame)))}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_null_is_given_to_a_model_of_pandas_as_to_pandas_would(library):
    import pandas as pd
    import polars as pl

    rng = np.random.default_rng(0)
    train = pd.DataFrame({"x": rng.normal(size=90), "own": rng.random(90) < 0.5, "age": rng.integers(18, 80, 90)})

    def model(frame):
        own = np.array([0.5 if cell is None else float(cell) for cell in frame["own"].tolist()])  # float(pd.NA) raises
        age = np.nan_to_num(frame["age"].to_numpy(float), nan=40)  # so do nullable integers
        p = 1 / (1 + np.exp(-(frame["x"].to_numpy(float) + own + age / 40 - 2)))
        return np.stack([1 - p, p], axis=1)

    own, age = [True, None, False, True], [30, 40, None, 70]
    rows = as_library(pl.DataFrame({"x": [0.1, -0.2, 0.3, -1.0], "own": own, "age": age}), library)
    e = CounterfactualExplainer(model).fit(train).explain(rows)
    assert e.found.all()
    assert schema_of(e.counterfactual) == schema_of(rows)
    assert np.array_equal(model(rows.to_pandas()), e.original_proba)
    assert np.array_equal(model(e.counterfactual.to_pandas()), e.counterfactual_proba)


@pytest.mark.needs("polars", "pyarrow")
@pytest.mark.parametrize("fitted", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("asked", ["pandas", "polars", "pyarrow"])
def test_the_model_gets_its_own_kind_and_the_user_gets_back_what_was_given(fitted, asked):
    frame, y = loans()
    train, rows = as_library(frame, fitted), as_library(frame[:6], asked)
    record = Recorder(pipeline().fit(train, y))
    explainer = CounterfactualExplainer(record).fit(train)
    record.seen.clear()
    e = explainer.explain(rows)
    assert {library for library, _ in record.kinds} == {fitted}
    if fitted != asked:
        assert {kinds for _, kinds in record.kinds} == {str(schema_of(train))}
    assert type(e.counterfactual) is type(rows)
    assert schema_of(e.counterfactual) == schema_of(rows)
    same = explainer.explain(take(train, np.arange(6)))
    assert cells_of(e.counterfactual).tolist() == cells_of(same.counterfactual).tolist()
    assert e.counterfactual_class.tolist() == same.counterfactual_class.tolist()


@pytest.mark.needs("xgboost", "polars", "pyarrow")
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("columns", [["income", "age"], ["income", "age", "kind"]])
def test_xgboost_is_asked_in_the_kind_it_was_trained_with(library, columns):
    from xgboost import XGBClassifier

    frame, y = loans()
    frame = as_library(frame.select(columns), library)
    model = XGBClassifier(n_estimators=20, enable_categorical=True).fit(frame, y)
    e = CounterfactualExplainer(model).fit(frame).explain(select(take(frame, np.arange(20)), columns[::-1]))
    assert np.array_equal(model.predict(select(e.counterfactual, columns)), e.counterfactual_class)


@pytest.mark.parametrize("library", LIBRARIES)
def test_rules_name_the_columns_of_any_frame_and_a_relation_gets_that_frame(library):
    frame, y = loans()
    frame = as_library(frame, library)
    model, seen = pipeline().fit(frame, y), []

    def earns_enough(rows):
        seen.append(library_of(rows))
        return cells_of(rows)[:, 0].astype(float) >= 1

    rules = Features(
        immutable=["age", "job", "kind"], allowed={"level": LEVELS}, relations=["income <= 90", earns_enough]
    )
    e = CounterfactualExplainer(model, features=rules).fit(frame).explain(take(frame, np.arange(20)))
    assert_confirmed(e, model)
    assert set(seen) == {library}
    assert not {change.feature for change in e.changes()} & {"age", "job", "kind"}
    assert all(change.after <= 90 for change in e.changes() if change.feature == "income")


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_column_of_float32_is_judged_as_the_same_column_in_pandas(library):
    import polars as pl

    rng = np.random.default_rng(0)
    train = pd.DataFrame({"a": rng.normal(0, 100, 200), "b": rng.normal(0, 100, 200)})
    model = LogisticRegression().fit(train, train["a"] + train["b"] > 0)
    only = Features(allowed={"a": [391.8264845075801]}, relations="a <= b")  # no float32 has this value
    explainer = CounterfactualExplainer(model, features=only).fit(train)
    rows = train[:8].astype("float32")
    e, same = (explainer.explain(x) for x in (as_library(pl.from_pandas(rows), library), rows))
    assert e.status.tolist() == same.status.tolist()
    assert e.message.tolist() == same.message.tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_row_without_an_answer_holds_nulls_in_the_types_of_the_frame(library):
    frame, y = loans()
    frame = as_library(frame, library)
    everything = Features(immutable=names_of(frame))
    e = CounterfactualExplainer(pipeline().fit(frame, y), features=everything).fit(frame).explain(take(frame, [0, 1]))
    assert e.found.tolist() == [False, False]
    assert schema_of(e.counterfactual) == schema_of(frame)
    assert set(cells_of(e.counterfactual).ravel().tolist()) == {None}
    assert cells_of(e.original).tolist() == cells_of(take(frame, [0, 1])).tolist()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", ["Int8", "UInt16", "Float32", "Boolean"])
def test_one_hot_columns_of_a_frame_keep_their_types(library, kind):
    import polars as pl

    ones = pl.Series([0, 1] * 10).cast(getattr(pl, kind))
    frame = as_library(pl.DataFrame({"x": ones, "z": 1 - ones.cast(pl.Int8), "q": np.arange(20.0)}), library)

    def model(rows):
        p = cells_of(rows)[:, 0].astype(float)
        return np.stack([1 - p, p], axis=1)

    rules = Features(one_hot={"group": ["x", "z"]})
    e = CounterfactualExplainer(model, features=rules).fit(frame).explain(take(frame, [0, 1]))
    assert schema_of(e.counterfactual) == schema_of(frame)
    assert cells_of(e.counterfactual)[:, :2].tolist() == [[1, 0], [0, 1]]


@pytest.mark.needs("pyarrow")
def test_arrow_types_that_can_only_be_sliced_are_taken():
    import pyarrow as pa

    kinds = pa.schema([("a", pa.float64()), ("w", pa.string_view())])
    frame = pa.table({"a": np.linspace(0, 1, 20), "w": ["u", "v"] * 10}, schema=kinds)

    def model(rows):
        p = cells_of(rows)[:, 0].astype(float)
        return np.stack([1 - p, p], axis=1)

    e = CounterfactualExplainer(model).fit(frame).explain(frame.slice(0, 3))
    assert e.found.all()
    assert e.counterfactual.schema == kinds


@pytest.mark.parametrize("library", LIBRARIES)
def test_one_bad_row_of_a_frame_costs_no_other(library):
    import polars as pl

    frame, y = loans()
    explainer = CounterfactualExplainer(pipeline().fit(as_library(frame, library), y)).fit(as_library(frame, library))
    rows = frame[:3].with_columns(
        pl.Series("income", [float("inf"), 30.0, 40.0]), pl.Series("job", ["cook", "smith", None])
    )
    e = explainer.explain(as_library(rows, library))
    assert e.status.tolist() == ["error", "found", "found"]
    assert cells_of(e.original).tolist() == cells_of(rows).tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_that_are_missing_or_too_many_are_named(library):
    frame, y = loans()
    explainer = CounterfactualExplainer(pipeline().fit(as_library(frame, library), y)).fit(as_library(frame, library))
    with pytest.raises(ValueError, match="x has no column 'age'"):
        explainer.explain(as_library(frame.drop("age"), library))
    with pytest.raises(ValueError, match="x has a column 'extra'"):
        explainer.explain(as_library(frame.with_columns(extra=1), library))


@pytest.mark.needs("polars", "pyarrow")
def test_a_narwhals_frame_and_a_record_batch_are_read_as_what_they_hold():
    import narwhals as nw
    import polars as pl
    import pyarrow as pa

    frame, y = loans()
    explainer = CounterfactualExplainer(pipeline().fit(frame, y)).fit(nw.from_native(frame))
    assert isinstance(explainer.explain(nw.from_native(frame[:2])).original, pl.DataFrame)
    batch = frame[:2].to_arrow().to_batches()[0]
    assert isinstance(explainer.explain(batch).original, pa.Table)


@pytest.mark.needs("polars", "pyarrow")
def test_one_row_of_a_frame_and_an_empty_frame():
    frame, y = loans()
    explainer = CounterfactualExplainer(pipeline().fit(frame, y)).fit(frame)
    assert len(explainer.explain(frame[:1], n=3)) == 3
    with pytest.raises(ValueError, match="x has no rows"):
        explainer.explain(frame[:0])


def distributed(library):
    module = ModuleType(f"{library}.frame")
    return type("DataFrame", (), {"__module__": module.__name__})()


@pytest.mark.parametrize(
    ("library", "remedy"),
    [("dask", "compute"), ("modin", "to_pandas"), ("pyspark", "toPandas"), ("cudf", "to_pandas"), ("duckdb", "df")],
)
def test_a_frame_that_is_not_in_memory_is_refused_with_what_to_call(library, remedy):
    explainer = CounterfactualExplainer(RandomForestClassifier(5, random_state=0).fit(np.eye(4), [0, 1, 0, 1]))
    with pytest.raises(ValueError, match=rf"the rows are a {library} DataFrame.*in memory.*{remedy}\(\)"):
        explainer.fit(distributed(library))
    with pytest.raises(ValueError, match=rf"{remedy}\(\)"):
        explainer.fit(np.eye(4)).explain(distributed(library))


@pytest.mark.needs("polars", "pyarrow")
def test_a_lazy_frame_is_refused_with_what_to_call():
    frame, y = loans()
    with pytest.raises(ValueError, match=r"polars LazyFrame.*x\.collect\(\)"):
        CounterfactualExplainer(pipeline().fit(frame, y)).fit(frame.lazy())


@pytest.mark.needs("polars", "pyarrow")
def test_without_pandas_a_frame_is_refused_with_what_to_install(monkeypatch):
    frame, y = loans()
    explainer = CounterfactualExplainer(pipeline().fit(frame, y))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"cfproto-plugin\[pandas\]"):
        explainer.fit(frame)


# Columns that the model knows


@pytest.fixture(scope="module")
def table(cancer):
    x, y = cancer
    return pd.DataFrame(x[:150, :4], columns=["radius", "texture", "perimeter", "area"]), y[:150]


@pytest.mark.parametrize("library", ["sklearn", pytest.param("xgboost", marks=pytest.mark.needs("xgboost"))])
def test_a_column_that_the_model_never_saw_is_refused_by_fit(library, table):
    frame, y = table
    if library == "xgboost":
        from xgboost import XGBClassifier

        model = XGBClassifier(n_estimators=5)
    else:
        words = make_column_transformer((StandardScaler(), ["radius", "area"]), remainder="passthrough")
        model = make_pipeline(words, LogisticRegression())
    explainer = CounterfactualExplainer(model.fit(frame, y))
    with pytest.raises(ValueError, match="the training data has a column 'id' that the model was not fitted with") as e:
        explainer.fit(frame.assign(id=range(len(frame))))
    assert e.value.column == "id"
    with pytest.raises(ValueError, match="the training data has no column 'area', which the model was fitted with"):
        explainer.fit(frame.drop(columns="area"))
    with pytest.raises(ValueError, match="If 'Area' is meant, rename it to 'area'"):
        explainer.fit(frame.rename(columns={"area": "Area"}))


def test_the_order_of_the_columns_may_be_another_than_the_models(table):
    frame, y = table
    model = RandomForestClassifier(10, random_state=0).fit(frame, y)
    turned = frame[frame.columns[::-1]]
    e = CounterfactualExplainer(model).fit(turned).explain(turned[:10])
    assert list(e.counterfactual.columns) == list(turned.columns)
    assert np.array_equal(model.predict(e.counterfactual[frame.columns]), e.counterfactual_class)


# One row as a Series


def mixed():
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "whole": rng.integers(0, 50, n),
            "small": rng.integers(0, 5, n).astype(np.int8),
            "float": rng.normal(size=n).astype(np.float32),
            "word": rng.choice(["a", "b"], n),
            "truth": rng.random(n) < 0.5,
            "level": pd.Categorical(rng.choice(LEVELS, n), categories=LEVELS, ordered=True),
            "gaps": pd.array(np.where(rng.random(n) < 0.2, None, rng.integers(0, 9, n)), dtype="Int64"),
            "holes": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "none": np.where(rng.random(n) < 0.2, None, "x"),
        },
        index=pd.Index([f"r{i}" for i in range(n)]),
    )
    frame["none"] = frame["none"].astype(object)
    y = (frame["whole"] / 25 + frame["float"] + (frame["word"] == "a") + frame["truth"] > 1.6).astype(int)
    return frame, y


def mixed_model(frame, y):
    words, numbers = ["word", "truth", "level", "none"], ["whole", "small", "float", "gaps", "holes"]
    encode = make_column_transformer((OneHotEncoder(), words), (SimpleImputer(), numbers))
    return make_pipeline(encode, RandomForestClassifier(10, random_state=0)).fit(frame, y)


def test_one_row_as_a_series_gets_the_answer_of_the_same_row_in_a_frame():
    frame, y = mixed()
    explainer = CounterfactualExplainer(mixed_model(frame, y)).fit(frame)
    for at in range(8):
        e, expected = explainer.explain(frame.iloc[at]), explainer.explain(frame.iloc[[at]])
        pd.testing.assert_frame_equal(e.original, expected.original)
        pd.testing.assert_frame_equal(e.counterfactual, expected.counterfactual)
        assert e.status.tolist() == expected.status.tolist()
        assert e.counterfactual_class.tolist() == expected.counterfactual_class.tolist()


def test_a_series_of_whole_numbers_that_pandas_made_floats_keeps_the_dtypes_of_training():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"whole": rng.integers(0, 50, 80), "float": rng.normal(size=80)})
    model = RandomForestClassifier(10, random_state=0).fit(frame, frame["whole"] > 25)
    row = frame.iloc[0]
    assert row.dtype == float
    e = CounterfactualExplainer(model).fit(frame).explain(row)
    assert e.original.dtypes.tolist() == e.counterfactual.dtypes.tolist() == frame.dtypes.tolist()


# Labels of columns and rows

COLUMNS = [
    pd.Index(["a", "b", "c"], name="feature"),
    pd.CategoricalIndex(["a", "b", "c"], categories=["c", "b", "a"], name="feature"),
    pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")], names=["group", None]),
]
INDEXES = [
    pd.MultiIndex.from_product([["p", "q"], range(30)], names=["patient", "visit"]),
    pd.date_range("2020-01-01", periods=60, name="day"),
    pd.Index(["same"] * 60, name="label"),
    pd.CategoricalIndex(["u", "v"] * 30),
]


@pytest.mark.parametrize("columns", COLUMNS, ids=lambda index: type(index).__name__)
@pytest.mark.parametrize("index", INDEXES, ids=lambda index: type(index).__name__)
def test_the_labels_of_columns_and_rows_survive(columns, index):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=columns, index=index)
    y = frame.iloc[:, 0].to_numpy() > 0

    def model(rows):
        assert rows.columns.equals(columns)
        assert rows.columns.names == columns.names
        p = 1 / (1 + np.exp(-4 * rows.iloc[:, 0].to_numpy()))
        return np.stack([1 - p, p], axis=1)

    e = CounterfactualExplainer(model).fit(frame).explain(frame[:5], n=2)
    lines = index[:5].repeat(2)
    for found in (e.original, e.counterfactual):
        pd.testing.assert_index_equal(found.columns, columns, exact=True)
        pd.testing.assert_index_equal(found.index, lines, exact=True)
    pd.testing.assert_index_equal(e.to_frame().index, lines)
    assert (e.original_class == y[:5].repeat(2)).all()
    assert "found" in repr(e)
    assert "before" in e._repr_html_()
    again = type(e).from_json(e.to_json())
    pd.testing.assert_frame_equal(again.counterfactual, e.counterfactual, check_freq=False)


# pandas dtypes


class Marked(pd.DataFrame):
    """A subclass, as geopandas makes one."""

    _metadata = ("mark",)

    @property
    def _constructor(self):
        return Marked


def test_a_subclass_of_a_pandas_frame_comes_back(table):
    frame, y = table
    model = RandomForestClassifier(10, random_state=0).fit(frame, y)
    rows = Marked(frame[:4])
    rows.mark = "here"
    e = CounterfactualExplainer(model).fit(Marked(frame)).explain(rows)
    assert type(e.original) is type(e.counterfactual) is Marked
    assert e.counterfactual.mark == "here"
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)


NUMBERS = [
    "int64[pyarrow]",
    "double[pyarrow]",
    "float[pyarrow]",
    "Int64",
    "UInt8",
    "Float64",
    "Float32",
    "Sparse[float64]",
]
WORDS = ["string[pyarrow]", "string[python]", "str", "category", "object"]
TRUTHS = ["bool[pyarrow]", "boolean", "bool"]


def typed(numbers, words, truths, *, missing):
    rng = np.random.default_rng(0)
    n = 120
    gone = rng.random((n, 3)) < (0.15 if missing else 0)
    number, word, truth = rng.integers(0, 9, n), rng.choice(["a", "b", "c"], n), rng.random(n) < 0.5
    y = (number / 4 + (word == "a") + truth > 1.6).astype(int)
    empty = np.nan if numbers.startswith("Sparse") else None
    frame = pd.DataFrame(
        {
            "number": pd.Series(np.where(gone[:, 0], empty, number), dtype=numbers),
            "word": pd.Series(np.where(gone[:, 1], None, word), dtype=words),
            "truth": pd.Series(np.where(gone[:, 2] & (truths != "bool"), None, truth), dtype=truths),
        }
    )
    return frame, y


def reader(frame, y):
    """A model that reads every dtype by hand, so that nothing but the values and what is missing counts."""

    def numbers(rows):
        word = rows["word"].astype(object).map({"a": 1.0, "b": 0.0, "c": 0.0}).astype(float)
        columns = [rows["number"], word, rows["truth"]]
        return np.stack([pd.to_numeric(c).astype("Float64").to_numpy(float, na_value=np.nan) for c in columns], axis=1)

    inner = HistGradientBoostingClassifier(max_iter=20).fit(numbers(frame), y)
    return lambda rows: inner.predict_proba(numbers(rows))


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
@pytest.mark.parametrize(
    ("numbers", "words", "truths"),
    [(number, WORDS[at % 5], TRUTHS[at % 3]) for at, number in enumerate(NUMBERS)]
    + [("Float64", word, "boolean") for word in WORDS],
)
def test_columns_of_every_pandas_dtype_are_read_and_come_back_in_it(numbers, words, truths, missing):
    frame, y = typed(numbers, words, truths, missing=missing)
    model = reader(frame, y)
    seen = []

    def watched(rows):
        seen.append(rows.dtypes.tolist())
        return model(rows)

    e = CounterfactualExplainer(watched).fit(frame).explain(frame[:25])
    assert e.found.all()
    assert e.original.dtypes.tolist() == e.counterfactual.dtypes.tolist() == frame.dtypes.tolist()
    assert all(dtypes == frame.dtypes.tolist() for dtypes in seen)
    pd.testing.assert_frame_equal(e.original, frame[:25])
    assert np.array_equal(model(e.counterfactual).argmax(axis=1), e.counterfactual_class)


# Rows that are no frames


def test_sparse_masked_and_record_arrays_are_refused_with_what_to_call(table):
    from scipy.sparse import coo_array, csr_matrix

    x, y = table[0].to_numpy(), table[1]
    explainer = CounterfactualExplainer(RandomForestClassifier(5, random_state=0).fit(x, y))
    bad = {
        r"toarray\(\)": csr_matrix(x),
        r"a scipy coo_array.*toarray\(\)": coo_array(x),
        r"masked array.*filled\(": np.ma.masked_greater(x, 20),
        r"records with the fields.*DataFrame\(x\)": table[0].to_records(index=False),
    }
    for message, rows in bad.items():
        with pytest.raises(ValueError, match=message):
            explainer.fit(rows)
        with pytest.raises(ValueError, match=message):
            explainer.fit(x).explain(rows[:2] if not message.startswith("a scipy") else rows)


def test_matrices_lists_and_memory_views_are_read_as_the_arrays_they_are(table):
    x, y = table[0].to_numpy(), table[1]
    explainer = CounterfactualExplainer(RandomForestClassifier(5, random_state=0).fit(x, y)).fit(x.tolist())
    expected = explainer.explain(x[:2]).counterfactual
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.asmatrix(x[:2])
    for rows in (matrix, x[:2].tolist(), tuple(map(tuple, x[:2])), memoryview(x[:2]), list(x[:2])):
        found = explainer.explain(rows).counterfactual
        assert type(found) is np.ndarray
        assert np.array_equal(found, expected)


@pytest.mark.needs("torch")
def test_tensors_are_read_and_arrays_come_back(table):
    import torch

    x, y = table[0].to_numpy(), table[1]
    explainer = CounterfactualExplainer(RandomForestClassifier(5, random_state=0).fit(x, y)).fit(torch.tensor(x))
    e = explainer.explain(torch.tensor(x[:2], requires_grad=True))
    assert np.array_equal(e.counterfactual, explainer.explain(x[:2]).counterfactual)
    assert isinstance(e.counterfactual, np.ndarray)
    assert explainer.explain(torch.tensor(x[:2], dtype=torch.bfloat16)).found.all()
    with pytest.raises(ValueError, match=r"a sparse torch tensor.*to_dense\(\)"):
        explainer.explain(torch.tensor(x[:2]).to_sparse())


def test_changes_have_the_names_of_their_columns_in_whatever_order_these_come():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(100, 3, size=200)})
    model = LogisticRegression(max_iter=1000).fit(x, x["a"] + x["b"] > 100)
    explainer = CounterfactualExplainer(model).fit(x)
    usual, turned = explainer.explain(x[:3]), explainer.explain(x.loc[:2, ["b", "a"]])
    assert sorted(turned.changes()) == sorted(usual.changes())
    assert turned.sentence(0) == usual.sentence(0)
    assert dict(zip(turned.feature_names, turned.deviations, strict=True)) == dict(
        zip(usual.feature_names, usual.deviations, strict=True)
    )
    assert turned.to_frame()["a_after"].equals(usual.to_frame()["a_after"])
