"""Rows that no change can bring to satisfy the relations: what is called infeasible is, for each row by itself."""

import itertools

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.tables.contradictions import contradictions

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "a": RNG.uniform(0, 1, 200).round(2),
        "b": RNG.uniform(0, 5, 200).round(2),
        "c": RNG.uniform(0, 5, 200).round(2),
        "job": RNG.choice(["clerk", "nurse", "cook"], 200),
    }
)


def model(x):
    p = 1 / (1 + np.exp(-(np.asarray(x["b"], dtype=float) - 2.5)))
    return np.column_stack([1 - p, p])


EXPLAINER = CounterfactualExplainer(model).fit(FRAME)


def explain(rows, **rules):
    return EXPLAINER.explain(rows, features=Features(**rules))


def row(**cells):
    return pd.DataFrame([{"a": 0.5, "b": 1.0, "c": 3.0, "job": "clerk", **cells}])


@pytest.mark.parametrize(
    ("relations", "rules"),
    [
        (["b < c", "c < b"], {}),
        (["b < c", "c <= b"], {}),
        (["a < b", "b < c", "c < a"], {}),
        (["b == c", "b > c"], {}),
        (["b + c <= 3", "b + c >= 4"], {}),
        (["a >= 2"], {}),
        (["a >= b + 2"], {}),
        (["1e6 * a >= 3e6 + b"], {}),
        (["b >= c"], {"immutable": "c", "ranges": {"b": (0, 2)}}),
        (["b >= c"], {"immutable": ("b", "c")}),
        (["b * c >= 9"], {"immutable": ("b", "c")}),
        (["job == 'nurse'"], {"immutable": "job"}),
        (["job == 'nurse'"], {"allowed": {"job": ("clerk", "cook")}}),
        (["job == 'nurse'", "job == 'cook'"], {}),
    ],
)
def test_rows_that_cannot_satisfy_the_relations_are_infeasible_and_told_which(relations, rules):
    e = explain(row(), relations=[*relations, "a >= 0"], **rules)
    assert e.status.tolist() == ["infeasible"]
    for relation in relations:
        assert repr(relation) in e.message[0]
    assert "'a >= 0'" not in e.message[0]


@pytest.mark.parametrize(
    ("relations", "rules"),
    [
        (["b <= c", "c <= b"], {}),
        (["b < c", "c < b + 1e-9"], {}),
        (["a == b", "b == c"], {}),
        (["a >= 1"], {}),
        (["b >= c"], {"immutable": "c"}),
        (["b * c < 0", "b * c > 0"], {}),
        (["b - c < 0.1", "c < b - 0.1"], {}),
        (["b + 1e20 - 1e20 <= -1"], {}),
        (["job == 'nurse'"], {}),
        (["job != 'clerk'", "job != 'cook'"], {}),
    ],
)
def test_relations_are_called_impossible_only_if_that_is_certain(relations, rules):
    space = EXPLAINER.fitted_.space.with_rules(Features(relations=relations, **rules), np.asarray(table_of(FRAME)))
    assert contradictions(space, space.rows(table_of(row()))) == {}


def table_of(frame):
    return EXPLAINER.fitted_.space.columns.given(frame).table


def test_the_message_tells_the_values_that_leave_no_room():
    e = explain(row(), relations="b >= c", immutable="c", ranges={"b": (0, 2)})
    assert e.message[0].startswith("the relation 'b >= c' cannot hold: 'b' may be from 0 to 2, 'c' must be 3; relax it")


def test_a_missing_value_that_may_not_change_satisfies_no_relation():
    frame = FRAME.assign(c=FRAME.c.where(FRAME.c < 4))
    explainer = CounterfactualExplainer(model, features=Features(immutable="c", relations="b <= c")).fit(frame)
    e = explainer.explain(frame[frame.c.isna()][:2])
    assert set(e.status) == {"infeasible"}
    assert "needs a value of column 'c', which is missing and may not change" in e.message[0]


def test_a_row_alone_and_in_a_batch_has_the_same_status_and_message():
    rows = pd.concat([FRAME[:20], row(c=4.9), row(c=0.0, b=0.0)], ignore_index=True)
    rules = {"relations": ["b >= c + 1", "a <= b"], "immutable": "c"}
    batch = explain(rows, **rules)
    alone = [explain(rows[i : i + 1], **rules) for i in range(len(rows))]
    assert batch.status.tolist() == [e.status[0] for e in alone]
    assert [m for m, s in zip(batch.message, batch.status, strict=True) if s == "infeasible"] == [
        e.message[0] for e in alone if e.status[0] == "infeasible"
    ]
    above = rows.c + 1 > np.maximum(FRAME.b.max(), rows.b)
    assert (batch.status == "infeasible").tolist() == above.tolist()
    assert {"infeasible", "found"} <= set(batch.status)


def test_no_relation_that_some_row_on_a_grid_satisfies_is_called_impossible():
    rng, grid = np.random.default_rng(1), [-2.0, -1.0, 0.0, 1.0, 2.0]
    train = np.array([[-2.0] * 3, [2.0] * 3])
    points = np.array(list(itertools.product(grid, repeat=3)))
    explainer = CounterfactualExplainer(lambda x: np.eye(2)[(x[:, 0] > 0).astype(int)]).fit(train)
    proved = possible = 0
    for _ in range(400):
        relations = [
            f"{' + '.join(f'{w}*x{i}' for i, w in enumerate(rng.integers(-2, 3, 3)))} "
            f"{rng.choice(['<=', '<', '>=', '>', '=='])} {rng.integers(-3, 4)}"
            for _ in range(rng.integers(1, 5))
        ]
        space = explainer.fitted_.space.with_rules(Features(relations=relations), train)
        own = points[rng.integers(len(points), size=1)]
        is_possible = space.rules.related(points).any()
        called = bool(contradictions(space, space.rows(own)))
        assert not (called and is_possible), relations
        proved, possible = proved + called, possible + is_possible
    assert proved > 50
    assert possible > 80


@pytest.mark.parametrize(
    "relations",
    [
        ["-2*x0 - x1 + x2 == 9", "2*x0 + 2*x1 - 2*x2 > 6", "x0 + x1 >= -3"],
        ["-2*x0 - 2*x1 == -9", "x1 == 6", "x0 + x1 + x2 == -6", "2*x1 - x2 <= 0"],
    ],
)
def test_relations_without_which_the_first_cannot_hold_either_are_not_named(relations):
    train = np.array([[-2.0] * 3, [2.0] * 3])
    explainer = CounterfactualExplainer(lambda x: np.eye(2)[(x[:, 0] > 0).astype(int)]).fit(train)
    e = explainer.explain(np.zeros((1, 3)), features=Features(relations=relations))
    assert e.status.tolist() == ["infeasible"]
    assert sum(repr(relation) in e.message[0] for relation in relations) == 1


@pytest.mark.parametrize(("relation", "possible"), [("a >= 0.1", True), ("a == 0.1", True), ("a > 0.1", False)])
@pytest.mark.parametrize("narrow", [("a",), ("a", "b", "c")])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_narrow_column_is_what_it_is_written_as(relation, possible, narrow, dtype):
    frame = FRAME.drop(columns="job").astype(dict.fromkeys(narrow, dtype))
    explainer = CounterfactualExplainer(model).fit(frame)
    rules = Features(relations=relation, ranges={"a": (0.0, 0.15)}, step={"a": 0.1})
    space = explainer.fitted_.space.with_rules(rules, explainer.fitted_.space.columns.given(frame).table)
    given = space.columns.given(row(a=0.05).drop(columns="job").astype(dict.fromkeys(narrow, dtype)))
    highest = np.where(np.arange(3) == 0, space.rows(given.table).upper, given.table)
    assert space.rules.related(highest)[0] == possible
    assert (contradictions(space, space.rows(given.table)) == {}) == possible


def test_an_equation_with_a_decimal_is_possible_in_a_table_of_float32():
    x = np.random.default_rng(0).uniform(0, 1, (200, 2)).astype(np.float32)
    explainer = CounterfactualExplainer(lambda x: np.eye(2)[(x[:, 1] > 0.5).astype(int)]).fit(x)
    own = np.array([[0.7, 0.2]], dtype=np.float32)
    e = explainer.explain(own, features=Features(relations="x0 == 0.7", immutable=(0,)))
    assert e.status.tolist() == ["found"]
    assert explainer.explain(own, features=Features(relations="x0 > 0.7", immutable=(0,))).status[0] == "infeasible"


@pytest.mark.parametrize("relation", ["1e-165*x0*1e-165 > 0", "x0*1e-165*1e-165 >= 1e-321", "x0/1e200/1e120 > 0"])
def test_products_that_are_too_small_for_a_float_prove_nothing(relation):
    train = np.array([[0.0, 0.0], [1e12, 1.0]])
    explainer = CounterfactualExplainer(lambda x: np.eye(2)[(x[:, 1] > 0.5).astype(int)]).fit(train)
    space = explainer.fitted_.space.with_rules(Features(relations=relation), train)
    assert space.rules.related(train).tolist() == [False, True]
    assert contradictions(space, space.rows(train)) == {}
