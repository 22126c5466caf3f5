"""Adult, the paper's table with categories: raw strings in, raw strings out, and nothing claimed that is not so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.datasets import load_adult

pytestmark = pytest.mark.data

IMMUTABLE = ("sex", "race", "native-country")
RULES = Features(immutable=IMMUTABLE, increasing=("age",))
REDUNDANT = ["fnlwgt", "education-num"]  # a survey weight, and education once more as a number
SCHOOL = (  # by ABDM; the years of one group are too close for an order of their own
    {"Preschool"},
    {"1st-4th"},
    {"5th-6th"},
    {"7th-8th", "9th", "10th", "11th", "12th"},
    {"HS-grad"},
    {"Some-college"},
    {"Assoc-voc"},
    {"Assoc-acdm"},
    {"Bachelors"},
    {"Masters"},
    {"Prof-school"},
    {"Doctorate"},
)


@pytest.fixture(scope="module")
def adult():
    """Training rows, whether they earn more than 50K, and 500 distinct test rows in no order."""
    (train, income), (test, _) = load_adult(split="train"), load_adult(split="test")
    return train, (income == ">50K").astype(int), test.drop_duplicates().sample(500, random_state=0)


def boosted(**options):
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=60, max_depth=4, n_jobs=1, random_state=0, **options)


def pipeline(classifier):
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_column_selector(dtype_include="number")
    strings = make_column_selector(dtype_exclude="number")
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), strings))
    return make_pipeline(columns, classifier)


@pytest.fixture(scope="module")
def xgboost_pipeline(adult):
    return pipeline(boosted()).fit(*adult[:2])


@pytest.fixture(scope="module")
def forest_pipeline(adult):
    from sklearn.ensemble import RandomForestClassifier

    return pipeline(RandomForestClassifier(60, max_depth=12, n_jobs=1, random_state=0)).fit(*adult[:2])


@pytest.fixture(scope="module")
def explained(xgboost_pipeline, adult):
    train, _, rows = adult
    return CounterfactualExplainer(xgboost_pipeline, features=RULES).fit(train).explain(rows)


def answered(e):
    return np.isin(e.status, ("found", "fallback"))


def false_claims(e, model, train, rows):
    """What an explanation says of its counterfactuals that is not so. Knows nothing of how they were made."""
    good = answered(e)
    if not good.any():
        return ["no row has an answer"]
    before, after = rows[good], e.counterfactual[good]
    own, new = model.predict(before), model.predict(after)
    numbers = [name for name in train if pd.api.types.is_numeric_dtype(train[name])]
    strings = [name for name in train if name not in numbers]
    changed = after[numbers] != before[numbers]
    outside = (after[numbers] < train[numbers].min()) | (after[numbers] > train[numbers].max())
    checks = {
        "the class it claims": (new == e.counterfactual_class[good]).all(),
        "another class": (new != own).all(),
        "the original class": (own == e.original_class[good]).all(),
        "immutable": before[list(IMMUTABLE)].equals(after[list(IMMUTABLE)]),
        "increasing": (after["age"] >= before["age"]).all(),
        "columns": list(after.columns) == list(rows.columns),
        "index": after.index.equals(before.index),
        "dtypes": (after.dtypes == rows.dtypes).all(),
        "known categories": all(after[name].isin(train[name].unique()).all() for name in strings),
        "training range": not (changed & outside).any(axis=None),
        "missing values": not after.isna().any(axis=None),
    }
    return [name for name, holds in checks.items() if not holds]


# Pipelines on raw strings


@pytest.mark.parametrize("name", ["xgboost_pipeline", "forest_pipeline"])
def test_500_rows_are_answered_and_no_claim_is_false(name, adult, request):
    model = request.getfixturevalue(name)
    train, _, rows = adult
    e = CounterfactualExplainer(model, features=RULES).fit(train).explain(rows)
    assert len(e) == 500
    assert answered(e).sum() >= 495
    assert false_claims(e, model, train, rows) == []
    rest = e[~answered(e)]
    assert all(rest.status == "infeasible"), rest.message
    assert all(rest.message), "every refusal has a reason"


def test_both_directions_and_categories_are_among_the_answers(explained):
    assert set(explained.original_class) == {0, 1}
    changed = {change.feature for change in explained.changes()}
    assert {"education", "occupation", "workclass", "marital-status", "capital-gain", "age"} <= changed


def test_a_claim_made_false_is_noticed(explained, xgboost_pipeline, adult):
    train, _, rows = adult
    line, row = explained[:1], rows[:1]
    spoilt = {
        "the class it claims": line.original.copy(),
        "immutable": line.counterfactual.assign(race="Other" if row["race"].item() != "Other" else "White"),
        "increasing": line.counterfactual.assign(age=row["age"] - 1),
        "dtypes": line.counterfactual.astype({"age": float}),
        "known categories": line.counterfactual.assign(education="Kindergarten"),
        "training range": line.counterfactual.assign(age=130),
    }
    for claim, frame in spoilt.items():
        assert claim in false_claims(replace(line, counterfactual=frame), xgboost_pipeline, train, row)


def test_a_row_that_nothing_can_change_is_infeasible_and_says_why(xgboost_pipeline, adult):
    train, _, rows = adult
    explainer = CounterfactualExplainer(xgboost_pipeline).fit(train)
    fixed = explainer.explain(rows[:3], features=Features(immutable=tuple(train)))
    assert list(fixed.status) == ["infeasible"] * 3
    assert all("immutable" in message for message in fixed.message)
    old = rows[rows["age"] > 40][:3]
    e = explainer.explain(old, features=Features(increasing=("age",), ranges={"age": (17, 40)}))
    assert list(e.status) == ["infeasible"] * 3
    assert all("'age'" in message for message in e.message)
    assert e.counterfactual.isna().all(axis=None)


# Other encodings of the same table


def test_xgboost_takes_category_columns_without_a_pipeline(adult):
    train, income, rows = adult
    strings = list(train.select_dtypes(exclude="number"))
    train = train.astype(dict.fromkeys(strings, "category"))
    rows = rows.astype(train.dtypes.to_dict())
    model = boosted(enable_categorical=True).fit(train, income)
    e = CounterfactualExplainer(model, features=RULES).fit(train).explain(rows)
    assert answered(e).sum() >= 495
    assert false_claims(e, model, train, rows) == []
    assert e.counterfactual["education"].dtype == train["education"].dtype


@pytest.fixture(scope="module")
def levels(adult):
    train = adult[0]
    return {name: sorted(train[name].unique()) for name in train.select_dtypes(exclude="number")}


def indicator(name, level):
    return f"{name}={level}"


def ordinal(frame, levels):
    return frame.assign(**{name: frame[name].map(known.index) for name, known in levels.items()})


def from_ordinal(frame, levels):
    return frame.assign(**{name: np.array(known, dtype=object)[frame[name]] for name, known in levels.items()})


def one_hot(frame, levels):
    """Every category as a group of 0 and 1, in the place of its column."""
    columns = {}
    for name in frame:
        if name in levels:
            columns |= {indicator(name, level): (frame[name] == level).astype(int) for level in levels[name]}
        else:
            columns[name] = frame[name]
    return pd.DataFrame(columns)


def from_one_hot(frame, levels):
    columns = {name: frame[name] for name in frame if "=" not in name}
    for name, known in levels.items():
        ones = frame[[indicator(name, level) for level in known]].to_numpy()
        columns[name] = np.array(known, dtype=object)[ones.argmax(axis=1)]
    return pd.DataFrame(columns, index=frame.index)


@pytest.mark.parametrize(("encode", "decode"), [(ordinal, from_ordinal), (one_hot, from_one_hot)])
def test_encoded_by_hand_the_counterfactuals_are_those_of_the_raw_strings(
    encode, decode, explained, xgboost_pipeline, adult, levels
):
    train, _, rows = adult
    names, some = list(train), rows[:100]
    groups = {name: tuple(indicator(name, level) for level in known) for name, known in levels.items()}
    rules = replace(RULES, categorical=tuple(levels)) if encode is ordinal else replace(RULES, one_hot=groups)

    def model(x):
        return xgboost_pipeline.predict_proba(decode(x, levels)[names])

    e = CounterfactualExplainer(model, features=rules).fit(encode(train, levels)).explain(encode(some, levels))
    assert list(e.status) == list(explained.status[:100])
    expected = explained.counterfactual[:100].astype(object)
    assert (decode(e.counterfactual, levels)[names] == expected).all(axis=None)


# The embedding of education


@pytest.mark.parametrize("rows", ["all", "complete"])
def test_education_by_abdm_runs_from_preschool_to_doctorate_with_the_school_years_between(rows, adult):
    train = adult[0].drop(columns=REDUNDANT)
    if rows == "complete":
        train = train[(train != "?").all(axis=1)]

    def model(x):
        rich = np.asarray(x["capital-gain"] > 0, dtype=float)
        return np.stack([1 - rich, rich], axis=1)

    space = CounterfactualExplainer(model, distance="abdm").fit(train).fitted_.space
    at = space.columns.find("education", "test")
    names = np.asarray(space.columns.attributes[at].levels)[np.argsort(space.embeddings[at])].tolist()
    if names[0] == "Doctorate":  # the sign is free
        names.reverse()
    start = 0
    for group in SCHOOL:
        assert set(names[start : start + len(group)]) == group
        start += len(group)
    assert start == len(names)


# The page of the docs


def test_the_code_of_the_page_runs_and_changes_categories():
    page = Path(__file__).parent.parent / "docs" / "adult.md"
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)  # noqa: S102 our own page
    e = names["explanation"]
    assert answered(e).all()
    assert {"education", "occupation"} & {change.feature for change in e.changes()}
