"""What the user gives is what comes back, and what the model is asked: cells, dtypes, missing values, whole numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import InputError

RNG = np.random.default_rng(0)
DIGITS, DIGIT = load_digits(return_X_y=True)
DTYPES = ["uint8", "int8", "int64", ">i4", "float16", "float32", ">f4", ">f8", "float64"]


@pytest.fixture(autouse=True)
def _same_draws_in_any_order():
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state


def two_columns(p):
    return np.stack([1 - p, p], axis=1).astype(float)


class Recorder:
    """A model that remembers what it was asked."""

    def __init__(self, function):
        self.function, self.asked = function, []

    def __call__(self, x):
        self.asked.append(x)
        return self.function(x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_comes_back_in_its_own_dtype_and_keeps_its_class(dtype):
    x = DIGITS.astype(dtype)
    model = RandomForestClassifier(10, random_state=0).fit(x, DIGIT)
    e = CounterfactualExplainer(model).fit(x[:600]).explain(x[1000:1015])
    assert e.found.all()
    assert e.counterfactual.dtype == e.original.dtype == x.dtype
    assert np.array_equal(e.original, x[1000:1015])
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)


def test_a_bool_array_comes_back_as_bool():
    x = DIGITS > 8
    model = LogisticRegression(max_iter=500).fit(x, DIGIT)
    e = CounterfactualExplainer(model).fit(x[:600]).explain(x[1000:1015])
    assert e.found.all()
    assert e.counterfactual.dtype == bool
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool", "float16", ">f8"])
def test_a_model_is_asked_in_the_dtype_of_the_rows_while_searching_and_in_the_end(dtype):
    model = Recorder(lambda x: two_columns(x[:, :8].astype(float).sum(axis=1) > 3))
    train = RNG.integers(0, 2, (300, 12)).astype(dtype)
    explainer = CounterfactualExplainer(model).fit(train)
    assert {x.dtype for x in model.asked} == {np.dtype(dtype)}
    model.asked.clear()
    e = explainer.explain(train[:10])
    assert e.found.all()
    assert {x.dtype for x in model.asked} == {np.dtype(dtype)}


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "float32"])
def test_rows_of_a_narrower_dtype_than_the_training_data_stay_in_it(dtype):
    train = RNG.normal(size=(400, 4)) * 40
    model = Recorder(lambda x: two_columns(x[:, 0].astype(float) + x[:, 1] > 0.5))
    explainer = CounterfactualExplainer(model).fit(train)
    model.asked.clear()
    rows = (train[:30] * 0.5).astype(dtype)
    e = explainer.explain(rows)
    assert e.counterfactual.dtype == np.dtype(dtype) or not e.found.all()
    known = len(explainer.fitted_.fingerprint.rows)  # asked beside them, in the dtype of training
    assert {x.dtype for x in model.asked if len(x) != known} == {np.dtype(dtype)}
    found = e[e.found]
    assert len(found) > 20
    again = model(np.asarray(found.counterfactual).astype(dtype)).argmax(axis=1)
    assert np.array_equal(again, found.counterfactual_class)


def test_integers_beyond_the_floats_stay_exact_where_they_did_not_change():
    big = np.stack([RNG.integers(0, 100, 300), 2**53 + 2 * RNG.integers(0, 500, 300) + 1], axis=1)
    model = Recorder(lambda x: two_columns(x[:, 0] > 50))
    explainer = CounterfactualExplainer(model, features=Features(immutable=(1,))).fit(big)
    model.asked.clear()
    e = explainer.explain(big[:20])
    assert e.found.all()
    assert np.array_equal(e.counterfactual[:, 1], big[:20, 1])
    assert np.array_equal(model.asked[0], big[:20]) or np.array_equal(model.asked[0][:20], big[:20])
    frame = pd.DataFrame(big, columns=["a", "b"])
    framed = Recorder(lambda x: two_columns(np.asarray(x["a"] > 50)))
    e = CounterfactualExplainer(framed, features=Features(immutable=("b",))).fit(frame).explain(frame[:20])
    assert np.array_equal(e.counterfactual["b"], frame["b"][:20])
    assert (e.counterfactual.dtypes == frame.dtypes).all()


def test_arrays_of_integers_with_a_row_without_answer_hold_missing_values():
    x = RNG.integers(0, 10, (200, 2))
    model = Recorder(lambda rows: two_columns(rows[:, 0] > 4))
    explainer = CounterfactualExplainer(model).fit(x)
    nothing = Features(immutable=(0,), ranges={1: (20, 30)})
    e = explainer.explain(x[:4], features=nothing)
    assert not e.found.any()
    assert e.counterfactual.dtype == np.float64
    assert np.isnan(e.counterfactual).all()
    assert e.original.dtype == x.dtype
    large = x + 2**60
    explainer = CounterfactualExplainer(Recorder(lambda rows: two_columns(rows[:, 0] > 2**60 + 4))).fit(large)
    e = explainer.explain(large[:4], features=Features(immutable=(0, 1)))
    assert e.counterfactual.dtype == object
    assert {cell for cell in e.counterfactual.ravel()} == {None}  # noqa: C416


def test_a_float_column_stays_whole_where_the_training_data_was_whole():
    frame = pd.DataFrame({"age": RNG.integers(18, 80, 300), "b": RNG.normal(size=300)})
    model = LogisticRegression().fit(frame, frame["age"] > 40)
    e = CounterfactualExplainer(model).fit(frame).explain(frame[:20].astype(float))
    assert e.found.all()
    assert e.counterfactual["age"].dtype == np.float64
    assert (e.counterfactual["age"] % 1 == 0).all()


def test_every_column_of_a_frame_keeps_its_own_dtype():
    frame = pd.DataFrame(
        {
            "int8": RNG.integers(0, 9, 400).astype(np.int8),
            "uint16": RNG.integers(0, 900, 400).astype(np.uint16),
            "float16": RNG.normal(size=400).astype(np.float16),
            "float32": RNG.normal(size=400).astype(np.float32),
            "big": RNG.normal(size=400).astype(">f8"),
            "Int32": pd.array(RNG.integers(0, 9, 400), dtype="Int32"),
            "Float32": pd.array(RNG.normal(size=400), dtype="Float32"),
            "bool": RNG.random(400) > 0.5,
            "text": RNG.choice(["a", "b", "c"], 400),
            "category": pd.Categorical(RNG.choice(["u", "v"], 400), categories=["v", "u", "w"], ordered=True),
        }
    )

    def model(x):
        numbers = x[["int8", "uint16", "float16", "float32", "big", "Int32", "Float32"]].astype(float)
        score = numbers.sum(axis=1) / 100 + (x["text"] == "a") + (x["category"] == "u") + x["bool"].astype(float)
        return two_columns(np.asarray(score) > 6.2)

    e = CounterfactualExplainer(model).fit(frame).explain(frame[:40])
    assert e.found.all()
    native = frame.astype({"big": np.float64})  # pandas cannot take rows of the other byte order
    pd.testing.assert_series_equal(e.counterfactual.dtypes, native.dtypes)
    pd.testing.assert_frame_equal(e.original, native[:40])
    assert np.array_equal(model(e.counterfactual).argmax(axis=1), e.counterfactual_class)


def test_float32_columns_given_for_float64_training_stay_float32():
    train = pd.DataFrame({"a": RNG.normal(size=300), "b": RNG.normal(size=300)})
    model = LogisticRegression().fit(train, train["a"] + train["b"] > 0)
    rows = train[:30].astype(np.float32)
    e = CounterfactualExplainer(model).fit(train).explain(rows)
    assert e.found.all()
    assert (e.counterfactual.dtypes == np.float32).all()
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)


@pytest.fixture(scope="module")
def two_kinds_of_missing():
    """Encoders tell None from NaN; class 1 is where the job is None."""
    rng = np.random.default_rng(1)
    job = np.array(["baker", "cook", None, np.nan], dtype=object)[rng.integers(0, 4, 400)]
    frame = pd.DataFrame({"job": pd.Series(job, dtype=object), "a": rng.normal(size=400)})
    y = np.array([cell is None for cell in job]) ^ (frame["a"].to_numpy() > 1)
    columns = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    return frame, make_pipeline(columns, RandomForestClassifier(30, random_state=0)).fit(frame, y)


def test_none_and_nan_are_two_categories(two_kinds_of_missing):
    frame, model = two_kinds_of_missing
    e = CounterfactualExplainer(model).fit(frame).explain(frame[:60])
    assert np.array_equal(e.original_class, model.predict(frame[:60]))
    assert e.found.all()
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)
    kept = [b is a for b, a in zip(e.original["job"], e.counterfactual["job"], strict=True)]
    told = {change.row for change in e.changes() if change.feature == "job"}
    assert told == {row for row, same in enumerate(kept) if not same}
    assert {type(c.after) for c in e.changes() if c.feature == "job"} & {type(None), float}
    assert (e.n_changes > 0).all()


def test_a_kind_of_missing_value_that_training_had_not_is_an_unknown_category(two_kinds_of_missing):
    frame, model = two_kinds_of_missing
    explainer = CounterfactualExplainer(model).fit(frame)
    rows = frame[:3].assign(job=pd.Series([pd.NA, "cook", None], dtype=object))
    e = explainer.explain(rows)
    assert e.status[0] == "error"
    assert "<NA> in column 'job'" in e.message[0]
    assert e.found[1:].all()


@pytest.fixture(scope="module")
def ignoring():
    """A pipeline that takes unknown categories, and its training data."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"job": rng.choice(["baker", "cook", "tailor"], 400), "a": rng.normal(size=400)})
    y = (frame["a"] + (frame["job"] == "cook") > 0.5).astype(int)
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["job"]), remainder="passthrough")
    return frame, make_pipeline(columns, LogisticRegression()).fit(frame, y)


@pytest.mark.parametrize("kind", ["str", "object", "category"])
def test_an_unknown_category_that_the_model_accepts_stays_or_becomes_a_known_one(ignoring, kind):
    frame, model = ignoring
    rows = frame[:40].assign(job=["wizard", "smith"] * 20).astype({"job": kind})
    explainer = CounterfactualExplainer(model).fit(frame)
    e = explainer.explain(rows)
    assert e.found.all()
    pd.testing.assert_frame_equal(e.original, rows)
    changed = e.counterfactual["job"].astype(object) != rows["job"].astype(object)
    assert set(e.counterfactual["job"][changed]) <= {"baker", "cook", "tailor"}
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)
    only_job = explainer.explain(rows, features=Features(immutable=("a",)))
    assert only_job.found.any()
    assert set(only_job.counterfactual["job"][only_job.found]) <= {"baker", "cook", "tailor"}
    kept = explainer.explain(rows, features=Features(immutable=("job",)))
    assert kept.found.all()
    assert kept.counterfactual["job"].tolist() == rows["job"].tolist()
    allowed = explainer.explain(rows, features=Features(allowed={"job": ("baker", "cook")}))
    assert set(allowed.counterfactual["job"][allowed.found]) <= {"baker", "cook"}


def test_unknown_codes_of_an_array_are_explained_too():
    x = np.stack([RNG.choice([10.0, 20.0, 30.0], 300), RNG.normal(size=300)], axis=1)

    def model(rows):
        return two_columns(rows[:, 1] + (rows[:, 0] == 20) > 0.5)

    e = CounterfactualExplainer(model, features=Features(categorical=(0,))).fit(x).explain([[99.0, 0.0], [20.0, 0.0]])
    assert e.found.all()
    assert e.counterfactual[0, 0] in {10, 20, 30, 99}
    assert np.array_equal(model(e.counterfactual).argmax(axis=1), e.counterfactual_class)


def test_a_range_beyond_what_the_dtype_holds_ends_where_the_dtype_ends():
    frame = pd.DataFrame({"a": RNG.integers(0, 100, 300).astype(np.int8), "b": RNG.normal(size=300)})

    def model(x):
        return two_columns(np.asarray(x["a"].astype(float) > 60))

    explainer = CounterfactualExplainer(model, features=Features(ranges={"a": (-500, 500)}, immutable=("b",)))
    e = explainer.fit(frame).explain(frame[:30])
    assert e.found.all()
    assert e.counterfactual["a"].dtype == np.int8
    assert np.array_equal(model(e.counterfactual).argmax(axis=1), e.counterfactual_class)
    beyond = explainer.explain(frame[:3], features=Features(ranges={"a": (200, 300)}))
    assert set(beyond.status) == {"infeasible"}
    assert "at least 200 and at most 127" in beyond.message[0]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_declared_ranges_hold_exactly_in_narrow_floats(dtype):
    x = RNG.uniform(0, 1, (300, 2)).astype(dtype)

    def model(rows):
        return two_columns(rows[:, 0].astype(float) > 0.05)

    low, high = x[:, 0] > 0.05, {0: (0.01, 0.1)}
    e = CounterfactualExplainer(model, features=Features(ranges=high)).fit(x).explain(x[low][:20])
    after = e.counterfactual[e.found][:, 0].astype(float)
    assert len(after)
    assert ((after >= 0.01) & (after <= 0.1)).all()


@pytest.mark.parametrize("polish", [True, False])
def test_a_missing_value_in_an_increasing_column_stays_missing(polish):
    x = RNG.normal(size=(300, 3))
    x[::5, 0] = np.nan

    def model(rows):
        return two_columns(np.nan_to_num(rows[:, 0]) + rows[:, 1] > 0.3)

    rows = x[::5][:20]
    for rule in ("increasing", "decreasing"):
        explainer = CounterfactualExplainer(
            model, features=Features(**{rule: (0,)}), search=SearchConfig(polish=polish)
        )
        e = explainer.fit(x).explain(rows)
        assert e.found.all()
        assert np.isnan(e.counterfactual[:, 0]).all()


@pytest.mark.parametrize("polish", [True, False])
def test_a_missing_value_in_a_range_stays_missing_or_becomes_a_number_inside(polish):
    x = RNG.normal(size=(300, 3)) + np.array([5, 0, 0])
    x[::5, 0] = np.nan

    def model(rows):
        return two_columns(np.nan_to_num(rows[:, 0]) / 5 + rows[:, 1] > 0.3)

    rows = x[::5][:20]
    features = Features(ranges={0: (9, 12)})
    e = CounterfactualExplainer(model, features=features, search=SearchConfig(polish=polish)).fit(x).explain(rows)
    assert e.found.all()
    after = e.counterfactual[:, 0]
    assert (np.isnan(after) | ((after >= 9) & (after <= 12))).all()
    assert np.isnan(after).any()


def test_a_list_has_no_dtype_of_its_own():
    x = RNG.normal(size=(200, 2)).astype(np.float32)
    explainer = CounterfactualExplainer(lambda rows: two_columns(rows[:, 0] > 0.5)).fit(x)
    e = explainer.explain([[1, 0], [0, 0]])
    assert e.found.all()
    assert e.counterfactual.dtype == np.float32


def test_the_users_rows_are_not_written_to(two_kinds_of_missing):
    frame, model = two_kinds_of_missing
    before = frame.copy()
    e = CounterfactualExplainer(model).fit(frame).explain(frame[:10])
    e.original.iloc[0, 1] = 1e9
    pd.testing.assert_frame_equal(frame, before)


def test_a_range_holds_exactly_in_float32():
    table = RNG.normal(size=(150, 4)).astype(np.float32)
    model = LogisticRegression().fit(table, table.sum(axis=1) > 0)
    ranges = dict.fromkeys(range(3), (-0.3, 0.3))  # neither is a number of float32
    e = CounterfactualExplainer(model, features=Features(ranges=ranges)).fit(table).explain(table[:30])
    cells = e.counterfactual[e.found][:, :3].astype(float)
    assert e.found.any()
    assert np.abs(cells).max() <= 0.3


@pytest.mark.parametrize("cell", [[1], {1}, {1: 1}, np.array([1, 2]), (1, [2])])
def test_a_training_cell_that_is_a_list_or_an_array_is_named(cell):
    table = pd.DataFrame({"a": RNG.normal(size=40), "b": ["x"] * 40})
    table["b"] = pd.Series([*["x"] * 3, cell, *["x"] * 36], dtype=object)
    with pytest.raises(InputError, match=f"row 3 .* holds the {type(cell).__name__} .* in column 'b'") as raised:
        CounterfactualExplainer(lambda x: two_columns(np.asarray(x["a"], dtype=float) > 0)).fit(table)
    assert (raised.value.row, raised.value.column) == (3, "b")


def by_sign(x):
    """Tells -0.0 from 0.0."""
    return two_columns(~np.signbit(np.asarray(x)[:, 0]))


@pytest.mark.parametrize("rules", [{}, {"integer": (0, 1)}, {"step": {0: 1.0}}])
def test_a_model_that_tells_minus_zero_from_zero_is_answered_bit_for_bit(rules):
    table = (2 * np.random.default_rng(0).normal(size=(300, 2))).round()
    e = CounterfactualExplainer(by_sign, features=Features(**rules)).fit(table).explain(table[:40])
    assert e.found.all()
    assert np.array_equal(by_sign(e.counterfactual), e.counterfactual_proba)


def test_a_model_that_tells_minus_zero_from_zero_does_not_depend_on_the_batch(caplog):
    table = (2 * np.random.default_rng(0).normal(size=(300, 2))).round()
    CounterfactualExplainer(by_sign, features=Features(integer=(0, 1))).fit(table)
    assert not [record for record in caplog.records if "other rows of the call" in record.getMessage()]
