"""One bad row never costs the others: rows that cannot be read or predicted, and models that fail at single points."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig
from cfproto_plugin.errors import InputError, ModelError
from cfproto_plugin.report import write_report

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, 400),
        "income": RNG.normal(50, 20, 400).round(1),
        "job": RNG.choice(["baker", "cook", "tailor"], 400),
    }
)
LABEL = (FRAME["age"] + FRAME["income"] + 20 * (FRAME["job"] == "cook") > 105).astype(int)
NUMBERS = RNG.normal(size=(300, 3))

DESCENT = SearchConfig(method="fista", max_iterations=50, c_init=1.0, c_steps=2)


def two_columns(p):
    return np.stack([1 - p, p], axis=1).astype(float)


@pytest.fixture(scope="module")
def explainer():
    """A pipeline that refuses unknown categories, missing and infinite numbers."""
    columns = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["age", "income"]))
    model = make_pipeline(columns, GradientBoostingClassifier(n_estimators=20)).fit(FRAME, LABEL)
    return CounterfactualExplainer(model).fit(FRAME)


BAD = [
    ("job", "bakr", r"row 2 holds 'bakr' in column 'job'.*Did you mean 'baker'\? There are: 'baker', 'cook'"),
    ("job", None, r"row 2 holds None in column 'job'"),
    ("job", ["cook"], r"row 2 holds \['cook'\] in column 'job'; expected a category"),
    ("income", np.nan, r"row 2 is NaN in column 'income', and the model does not accept missing values"),
    (
        "income",
        np.inf,
        r"row 2 holds inf in column 'income'; expected a finite number: replace it, or leave the row out",
    ),
    ("income", 1e300, r"row 2 holds 1e\+300 in column 'income', and the model cannot predict it: ValueError"),
    ("income", "much", r"row 2 holds 'much' in column 'income', which is not a number"),
    ("income", {"a": 1}, r"row 2 holds \{'a': 1\} in column 'income', which is not a number"),
    ("age", [30], r"row 2 holds \[30\] in column 'age', which is not a number"),
    ("age", 10**400, r"row 2 holds inf in column 'age'"),
]


def with_cell(frame, column, value):
    frame = frame.astype({column: object}).reset_index(drop=True)
    frame.at[2, column] = value  # noqa: PD008 a list as a cell
    return frame


@pytest.mark.parametrize(("column", "value", "message"), BAD)
def test_a_bad_row_gets_the_status_error_and_the_others_their_answers(explainer, column, value, message):
    rows = with_cell(FRAME[:6], column, value)
    good = explainer.explain(rows.drop(index=2).astype(FRAME.dtypes.to_dict()))
    e = explainer.explain(rows)
    assert (e.status == "error").tolist() == [False, False, True, False, False, False]
    assert pd.Series(e.message[2]).str.contains(message).all(), e.message[2]
    assert e.found.sum() == good.found.sum() == 5
    assert np.array_equal(e.counterfactual_class[e.found], good.counterfactual_class)
    for name in FRAME:
        assert e.counterfactual[name][e.found].tolist() == good.counterfactual[name].tolist()
    assert e.original.loc[2, column] is rows.loc[2, column] or e.original.loc[2, column] == rows.loc[2, column]
    assert e.original_class[2] is None
    assert e.counterfactual_class[2] is None
    assert np.isnan(e.original_proba[2]).all()
    assert e.counterfactual.iloc[2].isna().all()
    assert e.n_changes[2] == 0
    with pytest.raises(InputError, match=message) as caught:
        e.raise_for_status()
    assert caught.value.row == 2


@pytest.mark.parametrize(("column", "value", "message"), BAD)
def test_a_bad_row_alone_gets_the_same_status(explainer, column, value, message):
    alone = explainer.explain(with_cell(FRAME[:6], column, value)[2:3])
    assert alone.status.tolist() == ["error"]
    assert pd.Series(alone.message[0]).str.contains(message.replace("row 2", "row 0")).all()


def test_every_kind_of_bad_row_in_one_batch_and_several_counterfactuals_of_the_others(explainer):
    rows = FRAME[:40].astype(object).reset_index(drop=True)
    for at, (column, value, _) in enumerate(BAD):
        rows.at[3 * at, column] = value  # noqa: PD008
    e = explainer.explain(rows, n=2)
    bad = {3 * at for at in range(len(BAD))}
    assert set(e.row[e.status == "error"].tolist()) == bad
    assert len(e) == 80
    assert set(e.row[e.found].tolist()) == set(range(40)) - bad
    with pytest.raises(InputError, match="9 more with status error"):
        e.raise_for_status()


@pytest.mark.parametrize("kind", ["object array", "lists"])
def test_a_cell_that_is_no_number_in_an_array_is_an_error_of_its_row(kind):
    explainer = CounterfactualExplainer(lambda x: two_columns(x[:, 0] > 0)).fit(NUMBERS)
    rows = NUMBERS[:4].astype(object)
    rows[1, 2] = [1, 2]
    rows[3, 0] = "3"
    e = explainer.explain(rows if kind == "object array" else rows.tolist())
    assert e.status.tolist() == ["found", "error", "found", "error"]
    assert "row 1 holds [1, 2] in column 2" in e.message[1]
    assert "row 3 holds '3' in column 0" in e.message[3]


def test_a_bad_one_hot_group_is_an_error_of_its_row():
    x = np.column_stack([np.eye(3)[RNG.integers(0, 3, 200)], RNG.normal(size=200)])
    explainer = CounterfactualExplainer(
        lambda rows: two_columns(rows[:, 3] + rows[:, 0] > 0.5), features=Features(one_hot={"c": (0, 1, 2)})
    ).fit(x)
    e = explainer.explain([[0, 1, 0, 0.1], [1, 1, 0, 0.1], [0, 0, 0.5, 0.1]])
    assert e.status.tolist() == ["found", "error", "error"]
    assert "expected exactly one 1" in e.message[1]


def test_a_missing_number_without_a_place_in_the_search_is_an_error_of_its_row():
    model = RandomForestClassifier(10, random_state=0).fit(NUMBERS, NUMBERS[:, 0] > 0)
    explainer = CounterfactualExplainer(model, features=Features(scale=None)).fit(NUMBERS)
    rows = NUMBERS[:3].copy()
    rows[1, 1] = np.nan
    e = explainer.explain(rows)
    assert e.status.tolist() == ["found", "error", "found"]
    assert "Features(scale='auto')" in e.message[1]
    assert e.original_class[1] is None


@pytest.mark.parametrize(
    "x",
    [FRAME[["age", "income"]], FRAME.assign(more=1), FRAME[:0], np.zeros((2, 7)), [[1, 2, "cook"], [1, 2]]],
    ids=["missing column", "extra column", "no rows", "shape", "ragged"],
)
def test_what_concerns_the_call_raises(explainer, x):
    with pytest.raises(InputError):
        explainer.explain(x)


def test_bad_training_data_is_refused_with_its_row_and_column():
    rows = NUMBERS.astype(object)
    rows[3, 1] = "x"
    explainer = CounterfactualExplainer(lambda x: two_columns(x[:, 0] > 0))
    with pytest.raises(InputError, match="the training data: row 3 holds 'x' in column 1") as caught:
        explainer.fit(rows)
    assert (caught.value.row, caught.value.column) == (3, 1)


class Fragile:
    """Raises, or returns NaN, for rows inside a region that the training data does not reach."""

    def __init__(self, how):
        self.how = how

    def __call__(self, x):
        x = np.asarray(x, dtype=float)
        bad = (x[:, 0] > 0.2) & (x[:, 0] < 0.6)
        if self.how == "raises" and bad.any():
            raise ZeroDivisionError("this point cannot be")
        proba = two_columns(x[:, 0] + 0.2 * x[:, 1] > 0.4)
        proba[bad] = np.nan
        return proba


@pytest.mark.parametrize("how", ["raises", "returns NaN"])
@pytest.mark.parametrize("search", [SearchConfig(), DESCENT], ids=["path", "fista"])
def test_a_point_of_the_search_at_which_the_model_fails_is_no_candidate(how, search):
    train = NUMBERS[(NUMBERS[:, 0] < 0.2) | (NUMBERS[:, 0] > 0.6)]
    model = Fragile(how)
    e = CounterfactualExplainer(model, search=search).fit(train).explain(train[:15])
    assert e.found.all()
    assert np.array_equal(model(e.counterfactual).argmax(axis=1), e.counterfactual_class)


@pytest.mark.parametrize("how", ["raises", "returns NaN"])
def test_a_row_for_which_the_model_fails_is_an_error_with_its_reason(how):
    train = NUMBERS[(NUMBERS[:, 0] < 0.2) | (NUMBERS[:, 0] > 0.6)]
    explainer = CounterfactualExplainer(Fragile(how)).fit(train)
    rows = train[:30].copy()
    rows[[4, 9, 17], 0] = 0.3
    e = explainer.explain(rows)
    assert np.flatnonzero(e.status == "error").tolist() == [4, 9, 17]
    assert e.found.sum() == 27
    reason = "ZeroDivisionError: this point cannot be" if how == "raises" else "returned [nan nan]"
    assert all(reason in message for message in e.message[[4, 9, 17]])
    every = explainer.explain(rows[[4, 9]])
    assert every.status.tolist() == ["error", "error"]


def test_a_model_with_labels_of_its_own_that_fails_is_treated_alike():
    model = Fragile("raises")

    class Deciding:
        def predict(self, x):
            return model(x)

        def labels(self, x):
            if (x[:, 0] == 7).any():
                raise ValueError("not seven")
            return model(x)[:, 1].astype(int)

    train = NUMBERS[(NUMBERS[:, 0] < 0.2) | (NUMBERS[:, 0] > 0.6)]
    rows = train[:8].copy()
    rows[3, 0] = 7
    e = CounterfactualExplainer(Deciding()).fit(train).explain(rows)
    assert np.flatnonzero(e.status == "error").tolist() == [3]
    assert "not seven" in e.message[3]
    assert e.found.sum() == 7


def test_a_model_that_fails_for_training_rows_too_is_one_error_with_the_row_and_its_values():
    class Breaks:
        broken = False

        def __call__(self, x):
            if self.broken:
                raise RuntimeError("the service is gone")
            return two_columns(x[:, 0] > 0)

    model = Breaks()
    explainer = CounterfactualExplainer(model).fit(NUMBERS)
    model.broken = True
    with pytest.raises(ModelError, match=r"RuntimeError: the service is gone.*row 0: x0=0\.239"):
        explainer.explain(NUMBERS[:5])


def test_many_rows_with_the_same_unknown_category_cost_few_calls():
    calls = []

    def model(x):
        calls.append(len(x))
        if not x["job"].isin(["baker", "cook", "tailor"]).all():
            raise ValueError("unknown job")
        return two_columns(np.asarray(x["age"] + x["income"] > 95))

    explainer = CounterfactualExplainer(model).fit(FRAME)
    rows = FRAME[:200].assign(job=np.where(np.arange(200) % 2, "wizard", "cook"))
    calls.clear()
    explainer.explain(rows[::2])
    of_good_rows = len(calls)
    calls.clear()
    e = explainer.explain(rows)
    assert (e.status == "error").tolist() == [False, True] * 100
    assert e.found.sum() == 100
    assert len(calls) - of_good_rows < 30


def test_reports_and_files_show_bad_rows_and_do_not_count_them(explainer, tmp_path):
    rows = with_cell(FRAME[:3], "job", "bakr")
    e = explainer.explain(rows)
    assert "1 error" in repr(e)
    assert "row 2 holds 'bakr'" in repr(e[2])
    page = write_report(e, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "2 of 3" in page
    assert "row 2 holds &#x27;bakr&#x27;" in page
    again = Explanation.from_json(e.to_json())
    assert again.status.tolist() == e.status.tolist()
    assert again.original_class.tolist() == e.original_class.tolist()
    assert e.to_frame()["status"].tolist() == e.status.tolist()
    assert json.loads(e.to_json())


@pytest.mark.needs("torch")
def test_a_nan_in_the_gradient_of_one_row_does_not_reach_the_others():
    import torch

    class Root(torch.nn.Module):
        """The square root is NaN below zero, and so are output and gradient."""

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, x):
            z = self.weight * (torch.sqrt(x[:, 0]) - 1 + 0.5 * x[:, 1])
            return torch.stack([-3 * z, 3 * z], dim=1)

    rng = np.random.default_rng(0)
    train = np.stack([rng.uniform(0.01, 4, 200), rng.normal(size=200)], axis=1).astype(np.float32)
    model = Root()
    explainer = CounterfactualExplainer(model, features=Features(ranges={0: (-9, 9)})).fit(train)
    rows = train[:12].copy()
    rows[5, 0] = -1
    for search in (SearchConfig(), SearchConfig(method="fista", max_iterations=60, c_steps=2)):
        explainer.search = search
        e = explainer.fit(train).explain(rows)
        assert np.flatnonzero(e.status == "error").tolist() == [5]
        assert e.found.sum() == 11
        with torch.no_grad():
            said = model(torch.from_numpy(e.counterfactual[e.found])).argmax(dim=1).numpy()
        assert np.array_equal(said, e.counterfactual_class[e.found])


def test_a_row_too_far_out_to_measure_is_an_error():
    explainer = CounterfactualExplainer(lambda x: two_columns(x[:, 0] > 0)).fit(NUMBERS)
    e = explainer.explain([[1e300, 0.0, 0.0], [1.0, 0.0, 0.0]])
    assert e.found[1]
    assert e.status[0] == "error"
    assert "row 0 is 1e+300 in column 0, so far" in e.message[0]


def test_logistic_regression_on_a_frame_with_a_missing_number():
    model = LogisticRegression().fit(FRAME[["age", "income"]], LABEL)
    rows = FRAME[["age", "income"]][:4].copy()
    rows.loc[1, "income"] = np.nan
    e = CounterfactualExplainer(model).fit(FRAME[["age", "income"]]).explain(rows)
    assert e.status[1] == "error"
    assert e.found.sum() == 3
    assert e.counterfactual["age"].dtype == "Int64"


def test_a_bad_cell_does_not_make_the_column_unreadable_for_the_model():
    """One string makes a column of objects, which models such as XGBoost refuse."""

    def model(x):
        if any(dtype.kind not in "iuf" for dtype in x.dtypes):
            raise TypeError("columns of objects are not accepted")
        return two_columns(np.asarray(x["age"] + x["income"] > 95))

    train = FRAME[["age", "income"]]
    rows = train[:5].astype(object)
    rows.iloc[1, 0], rows.iloc[2, 0] = "old", None
    e = CounterfactualExplainer(model).fit(train).explain(rows)
    assert (e.status == "error").tolist() == [False, True, False, False, False]
    assert e.found.sum() == 4
    assert all(cell is None or isinstance(cell, int) for cell in e.counterfactual["age"][e.found])


@pytest.mark.parametrize(
    "cells",
    [
        pd.interval_range(0, 3),
        pd.interval_range(0.0, 3.0),
        pd.arrays.SparseArray(pd.interval_range(0, 3).astype(object)),
        pd.period_range("2020", periods=3),
        pd.timedelta_range("1D", periods=3),
    ],
    ids=lambda cells: str(cells.dtype),
)
def test_a_column_of_intervals_periods_or_durations_where_training_had_numbers_is_an_error_of_its_rows(
    explainer, cells
):
    e = explainer.explain(FRAME[:3].assign(income=cells))
    assert e.status.tolist() == ["error"] * 3
    assert "row 2 holds " in e.message[2]
    assert "in column 'income', which is not a number" in e.message[2]
    assert e.counterfactual.isna().all(axis=None)


@pytest.mark.needs("xgboost")
def test_a_category_that_the_model_refuses_does_not_cost_rows_that_do_not_hold_it():
    """The dtype of the frame names it for all rows; XGBoost refuses a column for that."""
    from xgboost import XGBClassifier

    rng = np.random.default_rng(2)
    train = pd.DataFrame({"n": rng.normal(size=300), "c": pd.Categorical(rng.choice(list("abcd"), 300))})
    model = XGBClassifier(n_estimators=10, enable_categorical=True).fit(train, train["n"] + (train["c"] == "a") > 0.3)
    rows = pd.DataFrame({"n": train["n"][:4], "c": ["zz", "a", "b", None]})
    e = CounterfactualExplainer(model).fit(train).explain(rows)
    assert e.status.tolist() == ["error", "found", "found", "found"]
    assert "holds 'zz' in column 'c'" in e.message[0]


@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]", "V3", "c16"])
def test_an_array_of_dates_records_or_complex_numbers_is_refused(dtype):
    explainer = CounterfactualExplainer(LogisticRegression().fit(NUMBERS, NUMBERS[:, 0] > 0)).fit(NUMBERS)
    with pytest.raises(InputError, match=r"the array holds .*; turn it into numbers"):
        explainer.explain(np.zeros((2, 3), dtype=dtype))


@pytest.mark.needs("pyarrow")
def test_a_dictionary_of_arrow_in_a_pandas_frame_is_refused_with_what_to_call():
    import pyarrow as pa

    jobs = pd.arrays.ArrowExtensionArray(pa.array(FRAME["job"].tolist()).dictionary_encode())

    def older(x):
        return np.column_stack([x["age"] > 50, x["age"] <= 50]) * 0.8 + 0.1

    with pytest.raises(InputError, match=r"column 'job' holds dictionary<.*astype\(\{'job': \"category\"\}\)"):
        CounterfactualExplainer(older).fit(FRAME.assign(job=jobs))
    with pytest.raises(InputError, match="column 'job' holds dictionary<"):
        CounterfactualExplainer(older).fit(FRAME).explain(FRAME.assign(job=jobs)[:3])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((row for row in NUMBERS[:2]), r"an iterator \(generator\).*pass list\(x\)"),
        (map(list, NUMBERS[:2]), r"an iterator \(map\)"),
        ({"a": 1.0, "b": 2.0, "c": 3.0}, r"a dict; .* pass pandas.DataFrame\(\[x\]\) for one row"),
        ([{"a": 1.0, "b": 2.0, "c": 3.0}], r"a list of dicts; .* pass pandas.DataFrame\(x\)"),
        ({1.0, 2.0}, "a set, which has no order"),
        ("rows.csv", "the text 'rows.csv'.*pandas.read_csv"),
        (None, "the rows are None"),
    ],
    ids=["generator", "map", "dict", "dicts", "set", "text", "None"],
)
def test_what_holds_no_table_is_refused_with_what_to_pass(rows, message):
    explainer = CounterfactualExplainer(LogisticRegression().fit(NUMBERS, NUMBERS[:, 0] > 0))
    with pytest.raises(InputError, match=message):
        explainer.fit(rows)
    with pytest.raises(InputError, match=message):
        explainer.fit(NUMBERS).explain(rows)
