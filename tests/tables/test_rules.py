from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import ConfigError
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.rules import Rules


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=300).round(3),
            "b": rng.normal(size=300).round(3),
            "age": rng.integers(20, 60, 300),
            "job": rng.choice(["cook", "baker", "tailor", "smith"], 300),
        }
    )


def model(rows):
    """Every column counts, so every rule matters."""
    gain = rows["job"].map({"cook": -0.5, "baker": 0.0, "tailor": 0.5, "smith": 1.0}).astype(float)
    score = rows["a"] + rows["b"] + (rows["age"].astype(float) - 40) / 20 + gain
    p = 1 / (1 + np.exp(-2 * score.to_numpy()))
    return np.stack([1 - p, p], axis=1)


@pytest.fixture(scope="module")
def explainer(frame):
    return CounterfactualExplainer(model).fit(frame)


def explain(explainer, rows, **rules):
    """Nearly every row gets a counterfactual, and it is true; the frames before and after."""
    e = explainer.explain(rows, features=Features(**rules))
    good = np.isin(e.status, ["found", "fallback"])
    assert good.mean() >= 0.95, e.message
    e = e[good]
    assert (model(e.counterfactual).argmax(axis=1) == e.counterfactual_class).all()
    assert (e.counterfactual_class != e.original_class).all()
    return e.original, e.counterfactual


def test_without_rules_every_column_changes_somewhere(explainer, frame):
    before, after = explain(explainer, frame[:150])
    assert (before != after).any().all()
    assert (after["age"] > before["age"]).any()
    assert (after["age"] < before["age"]).any()


@pytest.mark.parametrize("columns", [("a",), ("age", "job"), (3,), (-1, "b")])
def test_immutable_columns_keep_their_value(explainer, frame, columns):
    before, after = explain(explainer, frame[:40], immutable=columns)
    for column in columns:
        name = column if isinstance(column, str) else frame.columns[column]
        assert (before[name] == after[name]).all()


def test_increasing_and_decreasing_columns_move_in_one_direction(explainer, frame):
    before, after = explain(explainer, frame[:40], increasing=("age", "a"), decreasing=("b",))
    assert (after["age"] >= before["age"]).all()
    assert (after["a"] >= before["a"]).all()
    assert (after["b"] <= before["b"]).all()
    assert (after["age"] > before["age"]).any()


def test_ranges_bind_the_counterfactual_even_where_the_row_lies_outside(explainer, frame):
    before, after = explain(explainer, frame[:40], ranges={"age": (30, 50), "a": (-0.5, np.inf)})
    assert ((before["age"] < 30) | (before["age"] > 50)).any()
    assert after["age"].between(30, 50).all()
    assert (after["a"] >= -0.5).all()


def test_without_a_range_a_column_stays_within_the_training_data_and_the_rows_own_value(explainer, frame):
    _, after = explain(explainer, frame[:40])
    assert (after[["a", "b", "age"]] <= frame[["a", "b", "age"]].max()).all(axis=None)
    assert (after[["a", "b", "age"]] >= frame[["a", "b", "age"]].min()).all(axis=None)


def test_allowed_categories_bind_the_counterfactual_even_where_the_row_holds_another(explainer, frame):
    before, after = explain(explainer, frame[:40], allowed={"job": ("cook", "smith")})
    assert not before["job"].isin(["cook", "smith"]).all()
    assert after["job"].isin(["cook", "smith"]).all()


def test_integer_columns_hold_integers(explainer, frame):
    _, after = explain(explainer, frame[:40])
    assert after["age"].dtype == frame["age"].dtype
    before, after = explain(explainer, frame[:40], integer=("a",))
    changed = after["a"] != before["a"]
    assert changed.any()
    assert (after["a"][changed] % 1 == 0).all()


def test_changed_values_are_multiples_of_the_step(explainer, frame):
    before, after = explain(explainer, frame[:40], step={"a": 0.1, "age": 5}, ranges={"a": (-1.23, 1.7)})
    for name, step in (("a", 0.1), ("age", 5)):
        changed = after[name] != before[name]
        assert changed.any()
        assert np.allclose(after[name][changed] / step, np.rint(after[name][changed] / step), atol=1e-9)
    assert after["a"].between(-1.23, 1.7).all()


def test_relations_hold_between_columns_as_expressions_and_functions(explainer, frame):
    rows = frame[:60]
    for relation in ("a <= b", "b >= a", lambda rows: rows["a"] <= rows["b"]):
        e = explainer.explain(rows, features=Features(relations=(relation,)))
        good = np.isin(e.status, ["found", "fallback"])
        assert good.mean() > 0.9
        assert (e.counterfactual["a"] <= e.counterfactual["b"])[good].all()
        assert (e.original["a"] > e.original["b"])[good].any()
    _, after = explain(explainer, rows, relations=("age > 35", "age != 50", "age<58"))
    assert after["age"].between(36, 57).all()
    assert (after["age"] != 50).all()


def test_relations_may_name_columns_with_signs_and_spaces():
    frame = pd.DataFrame({"capital-gain": [1.0, 2.0], "other gain": [2.0, 1.0], "3": [0.0, 5.0]})
    columns, given = Columns.learn(frame, Features(), accepts_frames=True)
    table = given.table
    rules = Rules.of(Features(relations=("capital-gain < other gain",)), columns, table)
    assert rules.related(table).tolist() == [True, False]
    assert Rules.of(Features(relations=("3 <= 1",)), columns, table).related(table).tolist() == [True, False]


def test_a_function_is_given_rows_as_the_training_data_came_even_if_the_model_takes_arrays():
    class Arrays:
        def predict(self, x):
            p = (x[:, 0] > 0).astype(float)
            return np.stack([1 - p, p], axis=1)

    frame = pd.DataFrame({"a": np.linspace(-1, 1, 20), "b": np.linspace(1, -1, 20)})
    explainer = CounterfactualExplainer(None, adapter=Arrays()).fit(frame)
    e = explainer.explain(frame[:5], features=Features(relations=(lambda rows: rows["a"] + rows["b"] <= 1.2,)))
    assert (e.counterfactual["a"] + e.counterfactual["b"] <= 1.2).all()


def test_at_most_max_changes_columns_differ(frame):
    for most in (1, 2, 3):
        explainer = CounterfactualExplainer(model, search=SearchConfig(max_changes=most)).fit(frame)
        e = explainer.explain(frame[:40])
        good = np.isin(e.status, ["found", "fallback"])
        assert good.mean() > 0.7
        changed = (e.counterfactual[good] != e.original[good]).sum(axis=1)
        assert changed.max() <= most
        assert (model(e.counterfactual[good]).argmax(axis=1) == e.counterfactual_class[good]).all()


def test_a_dearer_column_changes_less(frame):
    spread = frame["a"].std()

    def mean_change(weights):
        e = CounterfactualExplainer(model, features=Features(weights=weights)).fit(frame).explain(frame[:40])
        return np.abs(e.counterfactual["a"] - e.original["a"]).mean() / spread

    cheap, even, dear = mean_change({"a": 0.2}), mean_change({}), mean_change({"a": 5.0})
    assert dear < 0.5 * even < 0.5 * cheap


def test_rules_of_a_call_replace_those_of_the_explainer(frame):
    strict = CounterfactualExplainer(model, features=Features(immutable=("age", "job"), integer=("b",))).fit(frame)
    e = strict.explain(frame[:40])
    assert (e.counterfactual[["age", "job"]] == e.original[["age", "job"]]).all(axis=None)
    moved = e.counterfactual["b"][e.counterfactual["b"] != e.original["b"]]
    assert len(moved)
    assert (moved % 1 == 0).all()
    loose = strict.explain(frame[:40], features=Features())
    assert (loose.counterfactual["age"] != loose.original["age"]).any()
    moved = loose.counterfactual["b"][loose.counterfactual["b"] != loose.original["b"]]
    assert (moved % 1 != 0).any()
    assert np.array_equal(strict.explain(frame[:5]).status, e.status[:5])


def test_what_fit_has_settled_cannot_change_per_call(explainer, frame):
    for rules in ({"categorical": ("age",)}, {"weights": {"a": 2.0}}, {"scale": None}):
        with pytest.raises(ConfigError, match=r"settled by fit"):
            explainer.explain(frame[:1], features=Features(**rules))


@pytest.mark.parametrize(
    ("row", "rules", "reason"),
    [
        ({}, {"immutable": ("a", "b", "age", "job")}, r"every column is fixed"),
        (
            {"age": 50},
            {"increasing": ("age",), "ranges": {"age": (20, 40)}},
            r"^increasing and ranges leave no value for column 'age': at least 50 and at most 40",
        ),
        ({"age": 25}, {"decreasing": ("age",), "ranges": {"age": (30, 40)}}, r"^decreasing and ranges leave no value"),
        (
            {"age": 25},
            {"immutable": ("age",), "ranges": {"age": (30, 40)}},
            r"^immutable and ranges leave no value .* at most 25",
        ),
        (
            {"a": 0.0},
            {"step": {"a": 1.0}, "ranges": {"a": (1.2, 1.8)}},
            r"^ranges leaves no value for column 'a': at least 2 and at most 1 in steps of 1",
        ),
        ({"job": "cook"}, {"immutable": ("job",), "allowed": {"job": ("smith",)}}, r"'job' is immutable.*not among"),
    ],
)
def test_rules_that_contradict_each_other_are_named(explainer, frame, row, rules, reason):
    x = frame.iloc[[0]].assign(**row)
    e = explainer.explain(x, features=Features(**rules))
    assert e.status.tolist() == ["infeasible"]
    assert pd.Series(e.message).str.contains(reason).all(), e.message
    assert e.counterfactual.isna().all(axis=None)
    assert e.counterfactual_class.tolist() == [None]


def test_only_the_rows_whose_rules_contradict_are_infeasible(explainer, frame):
    e = explainer.explain(frame[:40], features=Features(increasing=("age",), ranges={"age": (20, 40)}))
    assert np.array_equal(e.status == "infeasible", frame["age"][:40] > 40)


def test_opposite_directions_of_a_column_are_refused_by_the_constructor():
    with pytest.raises(ConfigError, match=r"both name column 'age'.*name it in immutable") as caught:
        Features(increasing=("sex", "age"), decreasing="age")
    assert caught.value.column == "age"


@pytest.mark.parametrize("rule", ["immutable", "increasing", "decreasing", "integer"])
def test_a_column_that_is_not_there_is_named_with_the_nearest(frame, rule):
    with pytest.raises(ConfigError, match=rf"{rule} names column 'agee'.*Did you mean 'age'\?"):
        CounterfactualExplainer(model, features=Features(**{rule: ("agee",)})).fit(frame)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"ranges": {"agee": (1, 2)}}, r"ranges names column 'agee'.*Did you mean 'age'"),
        ({"ranges": {"job": (1, 2)}}, r"'job', which is a category; use allowed"),
        ({"allowed": {"age": ("old", 2)}}, r"allowed\['age'\] has 'old', but 'age' is a number"),
        ({"allowed": {"age": (1, np.nan)}}, r"allowed\['age'\] has nan, but 'age' is a number"),
        ({"allowed": {"age": (1, 2.5)}}, r"allowed\['age'\] has 2.5, but 'age' holds integers"),
        (
            {"allowed": {"a": (1, 2)}, "ranges": {"a": (3, 4)}},
            r"no value for column 'a': none of 1.0, 2.0 is from 3",
        ),
        ({"allowed": {"a": (1, 2)}, "step": {"a": 3}}, r"allowed and step both name column 'a'"),
        ({"allowed": {"job": ("cok",)}}, r"'cok' is no category. Did you mean 'cook'\? There are: 'baker'"),
        ({"increasing": ("job",)}, r"'job' is a category without one. Make it an ordered category of pandas"),
        ({"step": {"job": 1}}, r"step needs numbers; 'job' is a category"),
        ({"integer": ("job",)}, r"integer needs numbers; 'job' is a category"),
        ({"step": {"age": 2.5}}, r"step\['age'\] is 2.5, but 'age' holds integers"),
        ({"step": {"agee": 2.5}}, r"step names column 'agee'.*Did you mean 'age'"),
        ({"weights": {"agee": 2.5}}, r"weights names column 'agee'.*Did you mean 'age'"),
        ({"immutable": (4,)}, r"immutable names column 4, which is not there"),
        ({"relations": ("agee <= b",)}, r"relation 'agee <= b' names column 'agee'.*Did you mean 'age'"),
        ({"relations": ("job == cook",)}, r"'cook', which is not there. It is a category of 'job': write it in quotes"),
        ({"relations": ("a + b",)}, r"cannot be read; expected such as 'a <= b'"),
        ({"relations": ("1 <= 2",)}, r"names no column"),
        (
            {"relations": (lambda rows: True,)},
            r"returned bool of shape \(\) for .* rows; expected True or False",
        ),
    ],
)
def test_rules_that_make_no_sense_for_the_columns_are_refused(explainer, frame, rules, message):
    with pytest.raises(ConfigError, match=message):
        CounterfactualExplainer(model, features=Features(**rules)).fit(frame).explain(frame[:2])


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"ranges": {"a": (2, 1)}}, r"ranges\['a'\] is \(2, 1\); expected \(lowest, highest\)"),
        ({"ranges": {"a": (None, 1)}}, r"ranges\['a'\] is \(None, 1\)"),
        ({"ranges": {"a": ("x", "y")}}, r"ranges\['a'\]"),
        ({"ranges": {"a": 3}}, r"ranges\['a'\] is 3"),
        ({"ranges": {"a": (np.nan, 3)}}, r"ranges\['a'\] is \(nan, 3\)"),
        ({"step": {"a": 0}}, r"step\['a'\] is 0; expected a number above 0"),
        ({"weights": {"a": np.inf}}, r"weights\['a'\] is inf"),
        ({"weights": {"a": "x"}}, r"weights\['a'\] is 'x'"),
        ({"allowed": {"job": ()}}, r"allowed\['job'\] is \(\)"),
        ({"allowed": {"job": "cook"}}, r"allowed\['job'\] is 'cook'"),
        ({"scale": "standard"}, r"scale is 'standard'"),
    ],
)
def test_values_that_make_no_sense_are_refused_before_any_data_is_seen(rules, message):
    with pytest.raises(ConfigError, match=message):
        Features(**rules)


def rules_of(table, **rules):
    columns, given = Columns.learn(np.asarray(table), Features(), accepts_frames=False)
    table = given.table
    return Rules.of(Features(**rules), columns, table)


def test_bounds_are_drawn_in_to_the_grid_but_a_row_inside_may_keep_its_value():
    rules = rules_of([[0.0], [10.0]], step={0: 2.0}, ranges={0: (0.5, 7.5)})
    x = np.array([[3.3], [0.6], [9.0], [np.nan]])
    lower, upper = rules.bounds(x)
    assert lower.ravel().tolist() == [2, 0.6, 2, 2]
    assert upper.ravel().tolist() == [6, 6, 6, 6]
    assert rules.grid.snap_inside(np.full((4, 1), 0.9), lower, upper, x).ravel().tolist() == [2, 2, 2, 2]
    assert rules.broken(x, x, lower, upper).tolist() == [False, False, True, False]
    assert rules.broken(np.full((4, 1), 4.0), x, lower, upper).tolist() == [False] * 4
    assert rules.broken(np.full((4, 1), 4.5), x, lower, upper).tolist() == [True] * 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_last_grid_value_on_a_bound_is_reached_in_either_precision(dtype):
    rules = rules_of(np.array([[0.0], [1.0]], dtype=dtype), step={0: 0.1}, ranges={0: (0.3, 0.7)})
    own = np.full((2, 1), 0.5, dtype=dtype)
    lower, upper = rules.bounds(own)
    made = rules.grid.snap_inside(np.array([[0.0], [1.0]], dtype=dtype), lower, upper, own)
    assert made.dtype == dtype
    assert np.allclose(made.ravel(), [0.3, 0.7])
    assert dtype(0.3) <= made.min() < made.max() <= dtype(0.7)  # 7 * 0.1 is more than 0.7
    assert not rules.broken(made, own, lower, upper).any()
    assert rules.broken(made + dtype(0.05), own, lower, upper).all()


def test_an_immutable_missing_value_stays_missing_also_under_a_range():
    rules = rules_of([[0.0], [10.0]], immutable=(0,), ranges={0: (1, 5)})
    own = np.array([[np.nan]])
    lower, upper = rules.bounds(own)
    assert np.isnan(lower).all()
    assert not rules.broken(own, own, lower, upper).any()
    assert rules.broken(np.array([[3.0]]), own, lower, upper).all()


def test_a_number_never_becomes_missing_but_a_missing_one_may_become_a_number():
    rules = rules_of([[0.0], [10.0]])
    own = np.array([[4.0], [np.nan]])
    lower, upper = rules.bounds(own)
    assert rules.broken(own[::-1], own, lower, upper).tolist() == [True, False]


@pytest.mark.parametrize("vary", [("a", "age"), "b", [1], np.array(["a", "b"])])
def test_only_the_columns_named_in_vary_change(explainer, frame, vary):
    e = explainer.explain(frame[:40], features=Features(vary=vary))
    named = {vary} if isinstance(vary, str) else {list(frame)[name] if name == 1 else name for name in vary}
    changed = {change.feature for change in e.changes()}
    assert e.found.sum() > 10
    assert changed
    assert changed <= named


def test_a_column_in_vary_and_immutable_is_named(explainer, frame):
    with pytest.raises(ConfigError, match=r"vary and immutable both name column 'age'") as caught:
        explainer.explain(frame[:1], features=Features(vary=("a", "age"), immutable=(list(frame).index("age"),)))
    assert caught.value.column == "age"
    with pytest.raises(ConfigError, match=r"vary is empty"):
        Features(vary=())
    with pytest.raises(ConfigError, match=r"vary names column 'agee'.*Did you mean 'age'"):
        explainer.explain(frame[:1], features=Features(vary="agee"))


def test_a_row_that_vary_leaves_no_answer_says_so(explainer, frame):
    e = explainer.explain(frame[:40], features=Features(vary="job", allowed={"job": ("smith", "cook")}))
    failed = [text for text, found in zip(e.message, e.found, strict=True) if not found]
    assert failed
    assert all("vary" in text or "may not change" in text or "fixed by" in text for text in failed), set(failed)
