"""Summaries and actions of many rows, on a model whose rule is known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig
from cfproto_plugin.errors import InputError
from cfproto_plugin.report.source import Step

N = 200
RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "income": RNG.integers(1000, 5000, N),
        "debt": RNG.integers(0, 900, N) / 10,
        "school": RNG.choice(["basic", "high", "<b>master</b>"], N),
        "sex": RNG.choice(["f", "m"], N),
        "constant": np.ones(N),
    }
)


def granted(rows):
    """Income from 3000 on, or a master and income from 2000 on; debt does not count."""
    rows = pd.DataFrame(rows, columns=PEOPLE.columns)
    score = rows["income"].astype(float) - np.where(rows["school"] == "<b>master</b>", 2000, 3000)
    p = 1 / (1 + np.exp(-score / 200))
    return np.column_stack([1 - p, p])


CLOSE = SearchConfig.close()


@pytest.fixture(scope="module")
def explainer():
    return CounterfactualExplainer(granted, search=CLOSE).fit(PEOPLE)


@pytest.fixture(scope="module")
def refused(explainer):
    return explainer.explain(PEOPLE[granted(PEOPLE)[:, 1] < 0.5], progress=False)


@pytest.fixture(scope="module")
def infeasible(explainer, refused):
    """Six rows of which nothing may change."""
    return explainer.explain(refused.original[:6], features=Features(vary=("constant",)), progress=False)


def test_a_summary_counts_what_the_changes_say(refused):
    summary = refused.summary()
    changes = refused.changes_frame()
    assert {record.feature for record in summary.select()} == set(changes["feature"])
    for record in summary.select():
        mine = changes[changes["feature"] == record.feature]
        assert record.changed == len(mine)
        assert record.answers == refused.found.sum()
        assert record.share == pytest.approx(len(mine) / refused.found.sum())
        assert record.raised + record.lowered + record.other == record.changed
    income = next(record for record in summary.select() if record.feature == "income")
    steps = changes[changes["feature"] == "income"].eval("after - before").astype(float)
    assert (income.raised, income.lowered, income.other) == ((steps > 0).sum(), (steps < 0).sum(), 0)
    assert income.rise == pytest.approx(steps[steps > 0].median())
    assert income.deviations == pytest.approx(steps.abs().median() / PEOPLE["income"].std(ddof=0))
    assert math.isnan(income.fall)


def test_categories_are_counted_by_the_value_they_take(refused):
    school = next(record for record in refused.summary().select() if record.feature == "school")
    assert school.other == school.changed > 0
    assert school.most_common == "<b>master</b>"
    assert (
        school.most_common_count
        == (refused.changes_frame().query("feature == 'school'")["after"] == "<b>master</b>").sum()
    )
    assert math.isnan(school.rise)
    assert math.isnan(school.deviations)


def test_features_are_listed_most_often_first(refused):
    counts = [record.changed for record in refused.summary().select()]
    assert counts == sorted(counts, reverse=True)


def test_groups_have_medians_and_rows_of_their_own(refused):
    summary = refused.summary(by="sex")
    assert summary.by == "sex"
    for value in ("f", "m"):
        mask = (refused.original["sex"] == value).to_numpy()
        (record,) = (each for each in summary.groups if (each.group, each.value) == ("sex", value))
        assert record.rows == mask.sum()
        assert record.distance == pytest.approx(np.median(refused.distance[mask]))
        assert record.distance_low == pytest.approx(np.quantile(refused.distance[mask], 0.25))
        assert record.changes == np.median(refused.n_changes[mask])
        assert record.without_answer == 0
        assert sum(each.changed for each in summary.select("sex", value)) == refused[mask].n_changes.sum()
    assert summary.groups[0].name == "all rows"


def test_rows_without_an_answer_are_a_share_of_their_group(refused, infeasible):
    mixed = infeasible.summary(by=["a", "a", "b", "b", "b", "b"])
    assert [record.without_answer for record in mixed.groups] == [1.0] * len(mixed.groups)
    assert "0 have a counterfactual, 6 have none" in repr(mixed)
    assert mixed.features == ()
    assert all(math.isnan(record.distance) for record in mixed.groups)


def test_groups_may_come_as_a_list_an_array_or_a_longer_series(refused):
    of_column = refused.summary(by="sex").groups
    for by in (refused.original["sex"].tolist(), refused.original["sex"].to_numpy()):
        assert [record.rows for record in refused.summary(by=by).groups] == [record.rows for record in of_column]
    assert refused.summary(by=PEOPLE["sex"]).groups == of_column  # by its index: all 200 people
    assert refused.summary(by=PEOPLE["sex"][::-1]).groups == of_column


def test_a_frame_of_one_column_is_that_column(refused):
    of_column = refused.summary(by="sex").groups
    assert refused.summary(by=PEOPLE[["sex"]]).groups == of_column
    assert refused.summary(by=pl.from_pandas(refused.original[["sex"]])).groups == of_column


def test_a_series_with_only_some_of_the_labels_is_refused_and_one_with_none_is_matched_by_position(refused):
    sex = refused.original["sex"]
    label = sex.index[0]
    with pytest.raises(InputError, match=rf"lacks the label {label}.*by.to_numpy\(\)"):
        refused.summary(by=sex.rename(index={label: N + 1}))
    with pytest.raises(InputError, match=rf"has twice the label {label}"):
        refused.summary(by=pd.concat([sex, sex[:1]]))
    assert refused.summary(by=sex.set_axis(sex.index + 10 * N)).groups == refused.summary(by="sex").groups


def _first_is_large(rows):
    p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float)[:, 0]))
    return np.column_stack([1 - p, p])


def _of_columns(columns):
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)).round(1), columns=columns)
    return CounterfactualExplainer(_first_is_large, search=CLOSE).fit(x).explain(x[:6], progress=False)


def test_the_name_of_a_column_goes_before_its_place():
    e = _of_columns([1, 2, 3, 4])
    assert [e.summary(by=by).by for by in (1, 2, 4, "2", 0, -1)] == ["1", "2", "4", "2", "1", "4"]
    values = {record.value for record in e.summary(by=2).groups if record.group == "2"}
    assert values == {str(value) for value in e.original[2]}


def test_columns_whose_names_read_the_same_are_refused():
    with pytest.raises(InputError, match="the columns 1 and '1', which read the same"):
        _of_columns([1, "1", "c", "d"])


def test_a_column_of_several_levels_is_named_by_a_tuple():
    columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")])
    e = _of_columns(columns)
    values = {record.value for record in e.summary(by=("a", "y")).groups if record.group == str(("a", "y"))}
    assert values == {str(value) for value in e.original["a", "y"]}


def test_nulls_of_pyarrow_are_missing_and_a_number_is_not_its_text(refused):
    rest = len(refused) - 3
    nulls = refused.summary(by=pa.array([None, "a", "a", *["b"] * rest])).groups
    assert {r.value: r.rows for r in nulls if r.group == "group"} == {"a": 2, "b": rest, "missing": 1}
    mixed = refused.summary(by=[1, "1", "1", *["b"] * rest]).groups
    assert {r.value: r.rows for r in mixed if r.group == "group"} == {"1": 1, "'1'": 2, "b": rest}


def test_actions_without_rows_or_without_a_class_to_reach_are_refused(refused):
    with pytest.raises(InputError, match="the explanation has no lines"):
        refused[:0].actions()
    with pytest.raises(InputError, match=r"target is \[\], which names no class"):
        refused.actions(target=[])


def test_several_answers_of_a_row_count_as_one_row_of_its_group(explainer, refused):
    rows = refused.original[:5]
    several = explainer.explain(rows, n=2, progress=False)
    for by in ("sex", rows["sex"], rows["sex"].tolist(), np.repeat(rows["sex"].to_numpy(), 2)):
        summary = several.summary(by=by)
        assert summary.groups[0].rows == 5
        assert summary.groups[0].answers == several.found.sum()
        assert sum(record.rows for record in summary.groups if record.group not in {"", "class"}) == 5


def test_missing_values_are_a_group_and_not_the_group_named_missing(refused):
    by = [None, "missing", float("nan"), "a"] + ["a"] * (len(refused) - 4)
    groups = {r.value: r.rows for r in refused.summary(by=by).groups if r.group == "group"}
    assert groups == {"a": len(refused) - 3, "missing": 1, "no value": 2}
    plain = {r.value: r.rows for r in refused.summary(by=[None, *["a"] * (len(refused) - 1)]).groups}
    assert plain["missing"] == 1


def test_a_group_of_one_row_is_named_as_small(refused):
    said = repr(refused.summary(by=["alone", *["others"] * (len(refused) - 1)]))
    assert "Fewer than 10 rows: alone (1)" in said
    assert "group: alone" in said


def test_many_numbers_are_cut_at_their_quartiles(refused):
    groups = [r for r in refused.summary(by="income").groups if r.group == "income"]
    assert len(groups) == 4
    assert sum(record.rows for record in groups) == len(refused)
    begins = [float(record.value.split(" to ")[0]) for record in groups]
    assert begins == sorted(begins)
    assert max(record.rows for record in groups) - min(record.rows for record in groups) <= 2


def test_few_numbers_keep_their_order(refused):
    groups = [r.value for r in refused.summary(by=np.arange(len(refused)) % 3 * 10).groups if r.group == "group"]
    assert groups == ["0", "10", "20"]


def test_a_column_named_class_is_told_apart_from_the_class_of_the_model(explainer, refused):
    by = pd.Series(["x", "y"] * len(refused), name="class")[: len(refused)].tolist()
    series = pd.Series(by, name="class", index=refused.original.index)
    groups = {record.group for record in refused.summary(by=series).groups}
    assert groups == {"", "class", "column class"}


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("sexx", "by is 'sexx', which is no column of the rows. Did you mean 'sex'?"),
        (17, "by is 17, which is no column"),
        ([1, 2], "expected a column, or one value for each of"),
        (True, "by is True; expected a column"),
        (np.zeros((3, 2)), "expected a column, or one value"),
        (PEOPLE[["sex", "debt"]], "expected a column, or one value"),
        ([[1], [1, 2]], "expected a column, or one value"),
    ],
)
def test_a_group_that_is_no_column_and_no_value_per_row_is_refused(refused, by, said):
    with pytest.raises(InputError, match=said.replace("?", r"\?")):
        refused.summary(by=by)


def test_a_summary_counts_what_changes_are_needed_for():
    found = load_breast_cancer(as_frame=True)
    model = LogisticRegression(max_iter=5000).fit(found.data[:400], found.target[:400])
    e = CounterfactualExplainer(model).fit(found.data[:400]).explain(found.data[400:412], progress=False)
    summary, changes = e.summary(), e.changes_frame()
    for record in summary.select():
        counts = changes[changes["feature"] == record.feature]["needed_for"].value_counts()
        assert record.needed == counts.get("class", 0)
        assert record.for_typicality == counts.get("typicality", 0)
        assert record.for_stability == counts.get("stability", 0)
        assert record.needed + record.for_typicality + record.for_stability + record.for_other == record.changed
    assert any(record.for_typicality for record in summary.select())
    text = repr(summary)
    first = summary.select()[0]
    assert "class needs it in" in text
    assert f"{first.needed} of {first.changed}" in next(line for line in text.split("\n") if first.feature in line)
    assert "the model gives the new class without it" in " ".join(text.split())
    assert "class needs it in" in summary._repr_html_()
    assert {"needed", "for_typicality", "for_stability", "for_other"} <= set(summary.to_frame().columns)


def test_a_summary_whose_changes_all_serve_the_class_says_nothing_about_purposes(refused):
    assert {change.needed_for for change in refused.changes()} == {"class"}
    assert "class needs it in" not in repr(refused.summary())


def test_of_columns_that_change_as_often_the_larger_change_comes_first(refused):
    records = [(record.changed, record.deviations) for record in refused.summary().select()]
    assert records == sorted(records, key=lambda each: (-each[0], -(1.0 if math.isnan(each[1]) else each[1])))


def test_the_records_of_a_summary_become_frames(refused):
    summary = refused.summary(by="sex")
    frame, groups = summary.to_frame(), summary.groups_frame()
    assert len(frame) == len(summary.features)
    assert set(frame["group"]) == {"", "class", "sex"}
    assert groups.loc[0, "rows"] == len(refused)
    assert frame["share"].between(0, 1).all()


def test_text_and_html_say_what_changes_and_html_escapes_it(refused):
    summary = refused.summary(by="sex")
    text, html = repr(summary), summary._repr_html_()
    assert "income" in text.splitlines()[-3:][0] + text
    assert "-> <b>master</b>" in text
    assert "<b>master" not in html
    assert "&lt;b&gt;master" in html
    assert "The median distance is smallest for sex: " in text


def test_equal_groups_are_said_to_be_equal(refused):
    twice = refused[np.tile(np.arange(12), 2)]
    text = repr(twice.summary(by=np.repeat(["a", "b"], 12)))
    assert "The median distance is the same for all groups: " in text
    assert "smallest" not in text


def test_dates_change_by_days():
    dates = pd.DataFrame(
        {"when": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(100), "D"), "x": RNG.random(100)}
    )

    def late(rows):
        days = (pd.to_datetime(rows["when"]) - pd.Timestamp("2024-02-20")).dt.days.to_numpy()
        p = 1 / (1 + np.exp(-days / 5.0))
        return np.column_stack([1 - p, p])

    e = CounterfactualExplainer(late, search=CLOSE).fit(dates).explain(dates[:20], progress=False)
    (record,) = (each for each in e.summary().select() if each.feature == "when")
    assert record.unit == "days"
    assert record.rise > 25
    assert "days" in repr(e.summary())
    assert "when at least 2024-0" in e.actions(k=1, max_changes=1)[0].text


def test_a_frame_of_polars_is_summarised_by_its_columns(explainer, refused):
    rows = refused.original.reset_index(drop=True)
    e = CounterfactualExplainer(lambda x: granted(x.to_pandas()), search=CLOSE).fit(pl.from_pandas(PEOPLE))
    summary = e.explain(pl.from_pandas(rows[:6]), progress=False).summary(by="sex")
    assert sum(record.rows for record in summary.groups if record.group == "sex") == 6


def test_one_action_that_flips_everybody_is_found_and_said(refused):
    actions = refused.actions(k=3)
    assert len(actions) == 1
    assert actions[0].share == actions[0].cumulative == 1
    assert actions[0].covered == actions.rows == len(refused)
    assert actions.target == (1,)
    assert actions[0].text.startswith("income ")
    assert "1 action flips 100 % of" in repr(actions)


def applied(rows, steps):
    """The steps of an action made by hand."""
    rows = rows.copy()
    for step in steps:
        name = rows.columns[step.column]
        if step.kind == "to":
            rows[name] = step.value
        elif step.kind == "by":
            rows[name] += step.value
        else:
            rows[name] = rows[name].clip(**{"lower" if step.kind == "at least" else "upper": step.value})
    return rows


def test_the_model_confirms_every_row_that_an_action_counts(explainer):
    rules = Features(ranges={"income": (1000, 3050)}, immutable=("sex",), allowed={"school": ("high", "<b>master</b>")})
    rows = PEOPLE[(granted(PEOPLE)[:, 1] < 0.5) & (PEOPLE["school"] != "basic")]
    e = explainer.explain(rows, features=rules, progress=False)
    actions = e.actions(k=3, max_changes=1)
    covered = np.zeros(len(rows), dtype=bool)
    for action in actions:
        after = applied(rows, action.steps)
        flips = (granted(after)[:, 1] > 0.5) & (after["income"].between(1000, 3050)).to_numpy()
        assert action.rows == tuple(np.flatnonzero(flips))
        assert action.covered == flips.sum()
        assert action.new == (flips & ~covered).sum() > 0
        covered |= flips
        assert action.cumulative == pytest.approx(covered.mean())
        assert action.forbidden == (~after["income"].between(1000, 3050)).sum()


def test_rules_bind_actions(explainer, refused):
    rules = Features(immutable=("income",))
    e = explainer.explain(refused.original, features=rules, progress=False)
    actions = e.actions()
    assert all(step.column != 0 for action in actions for step in action.steps)
    assert 0 < actions[0].share < 1  # a master helps from 2000 on only
    assert actions[0].text == "school = <b>master</b>"
    related = Features(relations=("income <= 40 * debt",))
    bound = explainer.explain(refused.original, features=related, progress=False).actions()
    for action in bound:
        after = applied(refused.original, action.steps)
        assert (after["income"] <= 40 * after["debt"] + 1e-9).to_numpy()[list(action.rows)].all()
        assert action.forbidden == (after["income"] > 40 * after["debt"] + 1e-9).sum()


def test_columns_that_may_only_fall_are_never_raised_by_an_action(explainer, refused):
    e = explainer.explain(refused.original, features=Features(decreasing=("income",)), progress=False)
    for action in e.actions():
        assert all(step.column != 0 or step.kind == "at most" or step.value < 0 for step in action.steps)


def test_each_action_covers_the_most_of_the_rows_that_are_left(refused):
    actions = refused.actions(k=3, max_changes=1)
    assert [action.new for action in actions] == sorted((action.new for action in actions), reverse=True)
    assert [action.cumulative for action in actions] == sorted(action.cumulative for action in actions)
    assert len(refused.actions(k=1, max_changes=1)) == 1


def test_rows_in_the_target_already_are_not_part_of_the_cohort(explainer):
    e = explainer.explain(PEOPLE[:60], target=1, progress=False)
    poor = granted(PEOPLE[:60])[:, 1] < 0.5
    assert e.actions().rows == poor.sum()
    assert e.actions(target=1).rows == poor.sum()
    assert set(e.actions(k=1)[0].rows) <= set(np.flatnonzero(poor))


def test_actions_of_answers_that_do_not_exist_say_so(infeasible):
    actions = infeasible.actions()
    assert len(actions) == 0
    assert "No common change flips any of 6 rows" in repr(actions)
    assert len(actions.to_frame()) == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"k": 0}, "k is 0; expected a whole number"),
        ({"max_changes": 1.5}, "max_changes is 1.5; expected a whole number"),
        ({"target": "granted"}, "target is 'granted', which is no class"),
    ],
)
def test_wrong_arguments_of_actions_are_refused(refused, given, said):
    with pytest.raises(InputError, match=said):
        refused.actions(**given)


def test_actions_ask_the_model_and_an_explanation_from_a_file_has_none(refused, explainer):
    read = Explanation.from_json(refused.to_json())
    with pytest.raises(InputError, match="with_explainer"):
        read.actions()
    assert read.with_explainer(explainer).actions() == refused.actions()
    assert read.summary(by="sex") == refused.summary(by="sex")


def test_actions_as_frame_and_html(refused):
    actions = refused.actions(k=2, max_changes=1)
    frame = actions.to_frame()
    assert frame["text"].tolist() == [action.text for action in actions]
    assert frame["covered"].tolist() == [action.covered for action in actions]
    html = explainer_html = actions._repr_html_()
    assert "rows flipped" in explainer_html
    assert "<b>master" not in html


def test_an_action_on_a_one_hot_group_names_the_column_that_becomes_one():
    colour = pd.get_dummies(pd.Series(RNG.choice(["r", "g", "b"], 120)), dtype=int)
    rows = colour.assign(x=RNG.integers(0, 100, 120))

    def model(given):
        p = np.where(np.asarray(given)[:, list(rows.columns).index("g")] == 1, 0.9, 0.1)
        return np.column_stack([1 - p, p])

    e = CounterfactualExplainer(model, features=Features(one_hot={"colour": tuple(colour.columns)})).fit(rows)
    cohort = e.explain(rows[rows["g"] == 0], progress=False)
    (action,) = cohort.actions()
    assert action.text == "g = 1"
    assert action.steps == (Step(list(rows.columns).index("g"), "to", 1),)
    assert action.share == 1


def test_amounts_have_two_digits_and_whole_numbers_stay_whole():
    from cfproto_plugin.report.cohorts.steps import _rounded_up

    assert _rounded_up(487.3) == 490
    assert _rounded_up(0.01234) == 0.013
    assert _rounded_up(7) == 7
    assert _rounded_up(1201) == 1300
    assert _rounded_up(0.5) == 0.5


def test_images_have_groups_and_no_features():
    images = RNG.random((40, 4, 4))

    def bright(x):
        p = 1 / (1 + np.exp(-40 * (np.asarray(x).mean(axis=(1, 2)) - 0.5)))
        return np.column_stack([1 - p, p])

    e = CounterfactualExplainer(bright).fit(images).explain(images[:5], progress=False)
    summary = e.summary(by=["a", "b", "a", "b", "a"])
    assert summary.features == ()
    assert [record.rows for record in summary.groups if record.group == "group"] == [3, 2]
    with pytest.raises(InputError, match="actions are for tables"):
        e.actions()
    with pytest.raises(InputError, match="expected one value for each of 5 rows"):
        e.summary(by=[1])


def test_groups_of_several_columns_are_combined(refused):
    summary = refused.summary(by=["sex", "school"])
    assert summary.by == "sex and school"
    values = {record.value: record.rows for record in summary.groups if record.group == summary.by}
    counts = refused.original.groupby(["sex", "school"]).size()
    assert values == {f"{sex}, {school}": count for (sex, school), count in counts.items()}


def test_actions_end_with_their_time_and_say_so(refused):
    found = refused.actions(k=3, time_budget=1e-6)
    assert not found.in_time
    assert len(found) <= 1
    assert "the time budget ended the search" in repr(found)
    assert refused.actions(k=1, time_budget=600).in_time
    for wrong in (0, -1, "soon", float("nan")):
        with pytest.raises(InputError, match="expected a positive number of seconds"):
            refused.actions(time_budget=wrong)


def test_actions_count_the_rows_that_are_typical_and_stable(refused):
    explainer = CounterfactualExplainer(granted).fit(PEOPLE)
    e = explainer.explain(refused.original[:30], progress=False)
    for action in e.actions(k=2):
        assert 0 <= action.sound <= action.covered
    assert "typical and stable" in repr(e.actions(k=1))


def test_floors_that_are_rules_hold_on_every_row_that_an_action_flips(refused):
    strict = SearchConfig(min_stability=0.95, min_typicality=0)
    e = CounterfactualExplainer(granted, search=strict).fit(PEOPLE).explain(refused.original[:30], progress=False)
    found = e.actions(k=2)
    assert len(found)
    assert all(action.sound == action.covered for action in found)


def test_fewer_actions_than_were_asked_for_are_explained(refused):
    actions = refused.actions(k=50, max_changes=1)
    assert len(actions) < 50
    said = "All rows are flipped." if actions[-1].cumulative == 1 else "No further action was found that flips more"
    assert said in repr(actions)
    assert said in actions._repr_html_()
    assert said not in repr(refused.actions(k=1, max_changes=1))


def test_rows_that_an_action_may_not_change_are_printed_and_those_that_break_a_rule_anyway_are_counted(
    explainer, refused
):
    rules = Features(relations=("income <= 40 * debt",), immutable=("debt",))
    actions = explainer.explain(refused.original, features=rules, progress=False).actions(k=2, max_changes=1)
    before = int((refused.original["income"] > 40 * refused.original["debt"] + 1e-9).sum())
    assert any(action.forbidden for action in actions)
    assert "would break a rule" in repr(actions).splitlines()[1]
    assert repr(actions).splitlines()[2].endswith(f" {actions[0].forbidden:,}")
    assert actions.broken == before > 0
    assert f"{before} rows break a rule before any action" in repr(actions)
    assert "would break a rule" not in repr(refused.actions(k=1))
