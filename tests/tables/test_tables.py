"""Mixed tables from end to end: pipelines, trees with categories, encodings of the same data, missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import InputError

NUMBERS, STRINGS = ["age", "income"], ["job", "city", "owner"]
JOBS, CITIES = ["baker", "cook", "smith", "tailor"], ["bern", "graz", "lyon"]
RULES = Features(
    immutable=("city",),
    increasing=("age",),
    ranges={"age": (18, 75)},
    allowed={"job": ("baker", "cook", "tailor")},
    step={"income": 0.5},
    relations=("age >= income",),
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    n = 300
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "job": rng.choice(JOBS, n),
            "income": rng.gamma(4, 2, n).round(2),
            "city": rng.choice(CITIES, n),
            "owner": rng.random(n) < 0.4,
        }
    )
    gain = frame["job"].map(dict(zip(JOBS, (-1.5, -0.5, 0.5, 1.5), strict=True))) + (frame["city"] == "graz")
    score = (frame["age"] - 45) / 15 + (frame["income"] - 8) / 3 + gain + frame["owner"]
    return frame, np.where(score + rng.logistic(size=n) > 0, "yes", "no")


def pipeline(model):
    encode = ColumnTransformer(
        [("numbers", StandardScaler(), NUMBERS), ("strings", OneHotEncoder(handle_unknown="ignore"), STRINGS)]
    )
    return make_pipeline(encode, model)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=6, random_state=0),
        RandomForestClassifier(20, random_state=0),
        LogisticRegression(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_counterfactuals_of_a_pipeline_are_valid_on_the_raw_row_and_keep_every_rule(table, model):
    frame, y = table
    fitted = pipeline(model).fit(frame, y)
    check(CounterfactualExplainer(fitted, features=RULES).fit(frame), fitted.predict, frame)


def test_counterfactuals_of_xgboost_with_categories_are_valid_and_keep_every_rule(table):
    from xgboost import XGBClassifier

    frame, y = table
    frame = frame.astype({"job": "category", "city": "category"})
    model = XGBClassifier(n_estimators=20, max_depth=4, enable_categorical=True, random_state=0)
    model.fit(frame, (y == "yes").astype(int))
    check(CounterfactualExplainer(model, features=RULES).fit(frame), model.predict, frame)


def check(explainer, predict, frame):
    rows = frame[100:160]
    e = explainer.explain(rows)
    for i in np.flatnonzero(e.status == "infeasible"):
        assert e.message[i]
    good = np.isin(e.status, ["found", "fallback"])
    assert good.mean() > 0.8
    before, after = e.original[good], e.counterfactual[good].astype(frame.dtypes.to_dict())
    pd.testing.assert_frame_equal(before, rows[good])
    assert np.array_equal(predict(after), e.counterfactual_class[good])
    assert (e.counterfactual_class[good] != e.original_class[good]).all()
    assert (after["city"].astype(str) == before["city"].astype(str)).all()
    assert (after["age"] >= before["age"]).all()
    assert after["age"].between(18, 75).all()
    assert after["job"].isin(["baker", "cook", "tailor"]).all()
    moved = after["income"][after["income"] != before["income"]]
    assert (moved % 0.5 == 0).all()
    assert (after["age"] >= after["income"]).all()
    changed = (after.astype(object) != before.astype(object)).any()
    assert changed[["age", "job", "income"]].all()


def one_hot(frame, first=0):
    """Numbers, then 0 and 1 for every category from the `first` on."""
    columns = {"age": frame["age"].astype(float), "income": frame["income"].astype(float)}
    for name, levels in (("job", JOBS), ("city", CITIES)):
        columns |= {f"{name}_{level}": (frame[name] == level).astype(float) for level in levels[first:]}
    return pd.DataFrame(columns)


def from_one_hot(rows, first=0):
    """The raw columns of `one_hot`."""
    columns = {"age": rows["age"], "income": rows["income"]}
    for name, levels in (("job", JOBS), ("city", CITIES)):
        ones = rows[[f"{name}_{level}" for level in levels[first:]]].to_numpy()
        code = np.where(ones.any(axis=1), ones.argmax(axis=1) + first, 0)
        columns[name] = np.array(levels)[code]
    return pd.DataFrame(columns)


class Encodings:
    """One model of the one-hot columns, and functions that give it the same rows in other encodings."""

    def __init__(self, frame, y):
        self.raw = frame[["age", "income", "job", "city"]]
        self.model = RandomForestClassifier(15, random_state=0).fit(one_hot(self.raw), y)

    def strings(self):
        return (lambda rows: self.model.predict_proba(one_hot(rows))), Features(), self.raw, lambda rows: rows

    def ordinal(self):
        jobs, cities = np.array(JOBS), np.array(CITIES)

        def back(rows):
            rows = np.asarray(rows, dtype=float)
            names = {"job": jobs[rows[:, 2].astype(int)], "city": cities[rows[:, 3].astype(int)]}
            return pd.DataFrame({"age": rows[:, 0], "income": rows[:, 1], **names})

        codes = [np.searchsorted(jobs, self.raw["job"]), np.searchsorted(cities, self.raw["city"])]
        data = np.column_stack([self.raw["age"], self.raw["income"], *codes])
        rules = Features(categorical=(2, 3), integer=(0,))
        return (lambda rows: self.model.predict_proba(one_hot(back(rows)))), rules, data, back

    def dummies(self, first):
        data = one_hot(self.raw, first)
        names = list(data.columns)
        groups = {name: [column for column in names if column.startswith(name)] for name in ("job", "city")}
        rules = Features(one_hot=groups, integer=("age",))
        return (
            (lambda rows: self.model.predict_proba(one_hot(from_one_hot(rows, first)))),
            rules,
            data,
            lambda rows: from_one_hot(rows, first),
        )


@pytest.fixture(scope="module")
def encodings(table):
    return Encodings(*table)


@pytest.mark.parametrize("distance", ["abdm", pytest.param("mvdm", marks=pytest.mark.slow)])
@pytest.mark.parametrize("rules", [{}, {"immutable": ("city",), "increasing": ("age",)}], ids=["free", "ruled"])
def test_strings_codes_and_one_hot_give_the_same_counterfactuals(encodings, distance, rules):
    found = []
    for function, features, data, back in (
        encodings.strings(),
        encodings.ordinal(),
        encodings.dummies(0),
        encodings.dummies(1),
    ):
        numbered = not isinstance(data, pd.DataFrame)
        place = {"city": 3, "age": 0} if numbered else {"city": "city", "age": "age"}
        ruled = {rule: tuple(place[name] for name in names) for rule, names in rules.items()}
        both = Features(**{**vars(features), **ruled})
        e = CounterfactualExplainer(function, features=both, distance=distance).fit(data).explain(data[:30])
        good = np.isin(e.status, ["found", "fallback"])
        assert good.mean() > 0.8
        found.append((e.status.tolist(), back(e.counterfactual[good]).reset_index(drop=True)))
    before = encodings.raw[:30][np.isin(found[0][0], ["found", "fallback"])].reset_index(drop=True)
    assert (found[0][1]["job"] != before["job"]).any()
    for status, rows in found[1:]:
        assert status == found[0][0]
        assert rows[["job", "city"]].astype(str).equals(found[0][1][["job", "city"]].astype(str))
        assert np.allclose(rows[["age", "income"]].astype(float), found[0][1][["age", "income"]].astype(float))


def test_missing_numbers_stay_or_change_where_the_model_accepts_them(table):
    frame, y = table
    frame = frame[NUMBERS].astype(float)
    rng = np.random.default_rng(0)
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    y = np.where(frame["income"].isna(), "no", y)
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(frame, y)
    close = SearchConfig.close()
    e = CounterfactualExplainer(model, search=close).fit(frame).explain(frame[:100])
    assert set(e.status) <= {"found", "fallback"}
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)
    before, after = e.original.isna(), e.counterfactual.isna()
    assert (before & after).any(axis=None)
    assert (before & ~after).any(axis=None)
    assert not (after & ~before).any(axis=None)
    fixed = CounterfactualExplainer(model, features=Features(immutable=("income",))).fit(frame).explain(frame[:100])
    good = np.isin(fixed.status, ["found", "fallback"])
    assert good.any()
    pd.testing.assert_series_equal(fixed.counterfactual["income"][good], frame["income"][:100][good])


def test_missing_categories_of_a_pipeline_are_categories(table):
    frame, y = table
    frame = frame.assign(job=frame["job"].where(np.arange(300) % 7 > 0))
    model = pipeline(RandomForestClassifier(20, random_state=0)).fit(frame, y)
    explainer = CounterfactualExplainer(model).fit(frame)
    e = explainer.explain(frame[:60])
    assert set(e.status) <= {"found", "fallback"}
    assert np.array_equal(model.predict(e.counterfactual), e.counterfactual_class)
    kept = explainer.explain(frame[:60], features=Features(immutable=("job",)))
    assert kept.counterfactual["job"].isna().equals(frame["job"][:60].isna())


def test_missing_values_of_a_model_that_does_not_accept_them_are_named(table):
    frame, y = table
    numbers = frame[NUMBERS].astype(float)
    model = LogisticRegression().fit(numbers, y)
    gap = numbers.copy()
    gap.loc[3, "income"] = np.nan
    with pytest.raises(InputError, match=r"row 3 of the training data is NaN in column 'income'.*does not accept"):
        CounterfactualExplainer(model).fit(gap)
    explainer = CounterfactualExplainer(model).fit(numbers)
    e = explainer.explain(gap[2:5])
    assert (e.status == "error").tolist() == [False, True, False]
    assert "row 1 is NaN in column 'income', and the model does not accept missing values" in e.message[1]


def test_the_index_and_the_order_of_the_columns_of_x_are_kept(table):
    frame, y = table
    model = pipeline(DecisionTreeClassifier(max_depth=5, random_state=0)).fit(frame, y)
    explainer = CounterfactualExplainer(model).fit(frame)
    straight = explainer.explain(frame[:10])
    turned = frame[frame.columns[::-1]][:10].set_index(pd.Index([f"row {i}" for i in range(10)], name="id"))
    e = explainer.explain(turned)
    assert e.counterfactual.index.equals(turned.index)
    assert list(e.counterfactual.columns) == list(turned.columns)
    assert e.counterfactual.dtypes.equals(turned.dtypes)
    pd.testing.assert_frame_equal(e.counterfactual[frame.columns].reset_index(drop=True), straight.counterfactual)
    alone = explainer.explain(frame.iloc[4])
    assert alone.counterfactual.iloc[0].tolist() == straight.counterfactual.iloc[4].tolist()
