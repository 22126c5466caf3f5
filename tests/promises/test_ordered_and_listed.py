"""Rules about the order of categories, and about the values that numbers may take."""

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.errors import ConfigError

LEVELS = ["none", "school", "college", "doctor"]
RNG = np.random.default_rng(0)
PLAIN = pd.DataFrame(
    {
        "level": pd.Categorical(RNG.choice(LEVELS, 300), categories=LEVELS, ordered=True),
        "income": RNG.normal(size=300),
        "rooms": RNG.integers(0, 9, 300),
    }
)


def rank(level):
    """A model's own reading of a level: the higher the better, with a dip so that neither direction is best."""
    worth = {"none": 0.0, "school": 1.5, "college": 0.5, "doctor": 2.0}
    return np.array([worth.get(cell, 0.0) for cell in level])


def model(rows):
    rows = pd.DataFrame({name: rows[name].to_list() for name in rows.columns})
    score = rank(rows["level"]) + np.asarray(rows["income"], float) + 0.2 * np.asarray(rows["rooms"], float) - 2
    return np.column_stack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))])


def ranks(column):
    return np.array([LEVELS.index(cell) for cell in column])


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("rule", ["increasing", "decreasing"])
def test_ordered_categories_move_in_the_direction_they_may(library, rule):
    train = PLAIN
    if library == "polars":
        polars = pytest.importorskip("polars")
        train = polars.DataFrame(
            {name: PLAIN[name].to_list() for name in PLAIN}, schema_overrides={"level": polars.Enum(LEVELS)}
        )
    explainer = CounterfactualExplainer(model, features=Features(**{rule: "level"}, vary=("level", "rooms"))).fit(train)
    e = explainer.explain(train[:60])
    after, before = (x["level"].to_list() for x in (e.counterfactual, e.original))
    moved = [ranks([a])[0] - ranks([b])[0] for a, b, found in zip(after, before, e.found, strict=True) if found]
    assert len(moved) > 20
    assert any(moved)
    assert min(moved) >= 0 if rule == "increasing" else max(moved) <= 0


def test_a_missing_ordered_category_stays_missing_and_none_becomes_missing():
    train = PLAIN.copy()
    train.loc[::7, "level"] = np.nan
    e = CounterfactualExplainer(model, features=Features(increasing="level")).fit(train).explain(train[:70])
    good = e.found
    assert good.sum() > 50
    assert (e.counterfactual["level"][good].isna() == e.original["level"][good].isna()).all()


def test_a_category_that_training_did_not_have_keeps_its_place_in_the_order():
    train = PLAIN[PLAIN["level"] != "school"].reset_index(drop=True)
    rows = PLAIN[PLAIN["level"] == "school"][:20]
    e = CounterfactualExplainer(model, features=Features(increasing="level", vary=("level", "rooms"))).fit(train)
    e = e.explain(rows)
    assert e.found.sum() > 5
    assert set(e.counterfactual["level"][e.found]) <= {"school", "college", "doctor"}


def test_a_direction_that_leaves_no_allowed_category_is_infeasible():
    rows = PLAIN[PLAIN["level"] == "doctor"][:3]
    rules = Features(increasing="level", allowed={"level": ("none", "school")})
    e = CounterfactualExplainer(model).fit(PLAIN).explain(rows, features=rules)
    assert e.status.tolist() == ["infeasible"] * 3
    assert "no category for column 'level'" in e.message[0]


@pytest.mark.parametrize("dtype", [np.int64, np.int8, "Int64", np.float64, np.float32])
def test_numbers_take_only_the_values_they_may(dtype):
    train = PLAIN.astype({"rooms": dtype})
    explainer = CounterfactualExplainer(model, features=Features(allowed={"rooms": (1, 7, 3)})).fit(train)
    e = explainer.explain(train[:60])
    assert e.found.sum() > 50
    after = e.counterfactual[e.found]
    assert set(after["rooms"].tolist()) <= {1, 3, 7}
    assert after["rooms"].dtype == train["rooms"].dtype or not e.found.all()
    assert (after["rooms"] != e.original[e.found]["rooms"]).any()


def test_fractions_of_narrow_floats_are_the_nearest_they_hold():
    x = RNG.normal(size=(200, 2)).astype(np.float32)

    def proba(rows):
        score = rows.sum(axis=1, dtype=float)
        return np.column_stack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))])

    e = CounterfactualExplainer(proba, features=Features(allowed={0: (0.1, -0.7, 1.3)})).fit(x).explain(x[:40])
    assert e.found.all()
    assert set(e.counterfactual[:, 0]) <= {np.float32(0.1), np.float32(-0.7), np.float32(1.3)}


def test_a_row_that_cannot_keep_a_listed_value_is_infeasible_and_says_why():
    rules = Features(allowed={"rooms": (1, 3)}, increasing="rooms")
    rows = PLAIN.assign(rooms=[5] * len(PLAIN))[:2]
    e = CounterfactualExplainer(model).fit(PLAIN).explain(rows, features=rules)
    assert e.status.tolist() == ["infeasible"] * 2
    assert "no value for column 'rooms': at least 5 and at most 3 among the values allowed" in e.message[0]


def test_a_missing_number_may_stay_missing_beside_a_list():
    train = PLAIN.assign(income=PLAIN["income"].where(PLAIN.index % 5 > 0))
    rules = Features(allowed={"income": (-1.0, 0.0, 1.0)}, vary=("rooms", "income"))

    def filled(rows):
        return model(rows.fillna({"income": 0.0}))

    e = CounterfactualExplainer(filled, features=rules).fit(train).explain(train[:60])
    assert e.found.sum() > 30
    values = e.counterfactual["income"][e.found]
    assert set(values.dropna()) <= {-1.0, 0.0, 1.0}


def test_a_category_without_an_order_has_no_direction():
    train = PLAIN.assign(level=PLAIN["level"].astype(str))
    with pytest.raises(ConfigError, match="'level' is a category without one"):
        CounterfactualExplainer(model, features=Features(increasing="level")).fit(train)
