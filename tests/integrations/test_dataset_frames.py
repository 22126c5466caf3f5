"""`FrameExplainer`: one pure function, frame in and frame out."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.errors import InputError
from cfproto_plugin.integrations.datasets import FrameExplainer
from cfproto_plugin.report import HEADS

pytestmark = [pytest.mark.needs("pyarrow"), pytest.mark.needs("xgboost")]


def loans(n=120, seed=0):
    """Whole numbers, decimals, a category as text, and a key that is no feature."""
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({"age": rng.integers(18, 80, n), "income": rng.gamma(3, 1000, n).round(2)})
    return x.assign(zone=rng.choice(["north", "south"], n), id=np.arange(n) + 1000)


@pytest.fixture(scope="module")
def explainer():
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    x = loans().drop(columns="id")
    columns = make_column_transformer((OneHotEncoder(), ["zone"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression(max_iter=2000)).fit(x, x.income + 20 * x.age > 4000)
    return CounterfactualExplainer(model, features=Features(immutable="zone")).fit(x)


def test_the_answers_are_those_of_explain_with_the_columns_that_were_kept(explainer):
    rows = loans(8, seed=1)
    answers = FrameExplainer(explainer, keep=["id"])(rows)
    e = explainer.explain(rows.drop(columns="id"))
    assert list(answers.columns) == ["id", *HEADS, "age", "income", "zone"]
    assert answers["id"].tolist() == rows["id"].tolist()
    assert answers["income"].tolist() == e.counterfactual["income"].tolist()
    assert answers["counterfactual_class"].tolist() == e.counterfactual_class.tolist()


def test_several_answers_of_a_row_have_its_key_each(explainer):
    rows = loans(3, seed=1)
    answers = FrameExplainer(explainer, n=2, keep="id")(rows)
    assert answers["id"].tolist() == [1000, 1000, 1001, 1001, 1002, 1002]


def test_a_feature_that_is_kept_is_its_value_before(explainer):
    rows = loans(4, seed=1)
    answers = FrameExplainer(explainer, keep=["income"])(rows)
    assert answers["income_before"].tolist() == rows["income"].tolist()
    assert (answers["income"] != answers["income_before"]).any()


def test_dtypes_do_not_depend_on_what_is_found_or_missing(explainer):
    explain = FrameExplainer(explainer, keep={"id": "int64"})
    impossible = FrameExplainer(explainer, keep={"id": "int64"}, features=Features(vary="zone"))
    rows = loans(4, seed=1)
    broken = rows.astype({"age": float}).assign(age=np.nan)
    assert impossible(rows)["age"].isna().any()
    for answers in (explain(rows), explain(broken), impossible(rows), explain(rows[:0]), explain.meta):
        assert answers.dtypes.equals(explain.meta.dtypes)
    assert explain.schema.names == list(explain.meta.columns)


def test_the_schema_of_a_kept_column_must_be_known(explainer):
    with pytest.raises(InputError, match=r"keep=\{.id.: .int64.\}"):
        _ = FrameExplainer(explainer, keep=["id"]).meta


def test_a_pickled_copy_answers_alike(explainer):
    rows = loans(5, seed=2)
    explain = FrameExplainer(explainer, target=True, n=2)
    again = pickle.loads(pickle.dumps(explain))  # noqa: S301 our own
    assert again(rows).equals(explain(rows))


def test_a_model_that_cannot_be_stored_is_not_pickled():
    x = np.random.default_rng(0).random((50, 2))
    found = CounterfactualExplainer(lambda rows: np.column_stack([1 - rows[:, 0], rows[:, 0]])).fit(x)
    explain = FrameExplainer(found)
    assert list(explain(pd.DataFrame(x[:3], columns=["a", "b"])).columns) == [*HEADS, "x0", "x1"]
    with pytest.raises(InputError, match="other processes cannot load this explainer"):
        pickle.dumps(explain)


def test_a_column_that_is_not_there_is_named(explainer):
    with pytest.raises(InputError, match="the rows have no column 'zone'"):
        FrameExplainer(explainer)(loans(3).drop(columns="zone"))


def test_saving_a_loaded_explainer_gives_the_same_identity(explainer, tmp_path):
    saved = explainer.save(tmp_path / "explainer.zip")
    first = FrameExplainer(explainer).stored
    again = FrameExplainer(tmp_path / "explainer.zip", trusted=saved.trusted).stored
    assert again.identity == first.identity
    other = CounterfactualExplainer(explainer.model, features=Features()).fit(loans().drop(columns="id"))
    assert FrameExplainer(other).stored.identity != first.identity


@pytest.mark.needs("dask")
@pytest.mark.filterwarnings("ignore::Warning:dask.*")
def test_three_lines_of_dask_give_the_same_answers(explainer, tmp_path):
    import dask.dataframe as dd

    rows = loans(24, seed=3)
    explain = FrameExplainer(explainer, keep={"id": "int64"})
    frame = dd.from_pandas(rows, npartitions=3)
    frame.map_partitions(explain, meta=explain.meta).to_parquet(tmp_path / "answers")
    found = pd.read_parquet(tmp_path / "answers")
    alone = explain(rows)
    assert found["id"].tolist() == alone["id"].tolist()
    assert found["income"].tolist() == alone["income"].tolist()
