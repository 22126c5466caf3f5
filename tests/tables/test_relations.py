import pickle

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.errors import ConfigError
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.held import Held
from cfproto_plugin.tables.relations import read_relation

FRAME = pd.DataFrame(
    {
        "a": [0.0, 1.0, 2.0, 3.0, np.nan],
        "b": [3.0, 1.0, -2.0, 2.0, 0.0],
        "worst area": [1.0, 2.0, 3.0, 4.0, 5.0],
        "capital-gain": [5.0, 0.0, 5.0, 0.0, 5.0],
        "sex": ["Male", "Female", "Male", "Female", "Male"],
        "sold": [True, False, True, False, True],
    }
)


def columns_of(data, **features):
    columns, given = Columns.learn(data, Features(**features), accepts_frames=True)
    return columns, given.table


COLUMNS, TABLE = columns_of(FRAME)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("0 <= a <= 3", (FRAME.a >= 0) & (FRAME.a <= 3)),
        ("0 < a < b <= 3", (FRAME.a > 0) & (FRAME.a < FRAME.b) & (FRAME.b <= 3)),
        ("a + b <= 3", FRAME.a + FRAME.b <= 3),
        ("a+b<=2", FRAME.a + FRAME.b <= 2),
        ("2*a >= b", 2 * FRAME.a >= FRAME.b),
        ("a == b + 1", FRAME.a == FRAME.b + 1),
        ("a != b", FRAME.a != FRAME.b),
        ("-a <= -(b - 1) / 2", -FRAME.a <= -(FRAME.b - 1) / 2),
        ("a - b - 1 > 0", FRAME.a - FRAME.b - 1 > 0),
        ("a - (b - 1) > 0", FRAME.a - (FRAME.b - 1) > 0),
        ("1 + 2 * a > 4", 1 + 2 * FRAME.a > 4),
        ("(1 + 2) * a > 4", (1 + 2) * FRAME.a > 4),
        ("a * b > 1e0", FRAME.a * FRAME.b > 1),
        ("a / 2 + .5 > 1.0", FRAME.a / 2 + 0.5 > 1),
        ("a > - -1", FRAME.a > 1),
        ("worst area - 2 >= capital-gain", FRAME["worst area"] - 2 >= FRAME["capital-gain"]),
        ("`worst area` <= 3", FRAME["worst area"] <= 3),
        ("2 * `capital-gain` - a > 8", 2 * FRAME["capital-gain"] - FRAME.a > 8),
        ("a <= inf", FRAME.a < np.inf),
        ("1_0 > worst area", FRAME["worst area"] < 10),
        ("sex == 'Male'", FRAME.sex == "Male"),
        ('"Male" != sex', FRAME.sex != "Male"),
        ("sold == True", FRAME.sold),
    ],
)
def test_a_relation_means_what_python_would_mean_by_it(text, truth):
    relation = pickle.loads(pickle.dumps(read_relation(text, COLUMNS)))  # noqa: S301 our own
    assert relation(TABLE).tolist() == truth.tolist()


def test_columns_of_arrays_are_named_by_their_index():
    x = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    columns, table = columns_of(x)
    assert read_relation("x0 + x1 <= x2", columns)(table).tolist() == [True, False]
    with pytest.raises(ConfigError, match=r"names column 'x3', which is not there.* There are: 'x0', 'x1', 'x2'"):
        read_relation("x3 <= 1", columns)


def test_a_category_of_numbers_is_compared_with_a_number():
    columns, table = columns_of(np.array([[1.0, 7.0], [2.0, 9.0]]), categorical=(1,))
    assert read_relation("x1 != 7", columns)(table).tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a + bb <= 3", r"names column 'bb'"),
        ("2*`worst arae` <= 3", r"names column 'worst arae'.*Did you mean 'worst area'\?"),
        ("capital-gian >= 3", r"names column 'capital-gian'.*Did you mean 'capital-gain'\?"),
        ("worst area mean <= 3", r"names column 'worst area mean'.*Did you mean 'worst area'\?"),
        ("a + b", r"cannot be read; expected such as 'a <= b'"),
        ("a <= ", r"its end is missing"),
        ("(a + b <= 3", r"bracket that is not closed"),
        ("a + b) <= 3", r"cannot be read from '\) <= 3' on"),
        ("`a <= 3", r"backquote that is not closed"),
        ("sex == 'Male", r"quote ' that is not closed"),
        ("a ** 2 <= 3", r"cannot be read from '\* 2 <= 3' on"),
        ("a / b <= 3", r"divides by 'b'; expected a number"),
        ("a / 0 <= 3", r"divides by 0"),
        ("a / (1 - 1) <= 3", r"divides by 0"),
        ("sex + 1 <= 3", r"'sex' is a category, which cannot be calculated with"),
        ("a + 'Male' <= 3", r"calculates with a category"),
        ("sex <= 'Male'", r"'sex' is a category; compare it by == or != .*'Female', 'Male'"),
        ("sex == 'Mael'", r"'Mael' is no category. Did you mean 'Male'\?"),
        ("sex == Male", r"It is a category of 'sex': write it in quotes"),
        ("a == 'Male'", r"'Male' is a category, and is compared with numbers"),
        ("a <= 1 or b <= 1", r"joins comparisons by a word"),
        ("1 <= 2", r"names no column"),
        ("__import__('os').system('x') <= 1", r"relation"),
        ("a.__class__ <= 1", r"names column 'a.__class__'"),
        ("(" * 3000 + "a" + ")" * 3000 + " <= 1", r"too many brackets"),
        ("-" * 3000 + "a <= 1", r"too many brackets"),
    ],
)
def test_a_relation_that_cannot_be_read_says_why(text, message):
    with pytest.raises(ConfigError, match=message):
        read_relation(text, COLUMNS)


def test_linear_relations_tell_their_weights():
    first, second = read_relation("2*a - b/2 + 1 <= 3*(b - 1) < `worst area`", COLUMNS).linear
    assert first.weights.tolist() == [2, -3.5, 0, 0, 0, 0]
    assert (first.bound, first.sense) == (-4, "<=")
    assert second.weights.tolist() == [0, 3, -1, 0, 0, 0]
    assert (second.bound, second.sense) == (3, "<")
    assert read_relation("a * b <= 1", COLUMNS).linear is None
    assert read_relation("sex == 'Male'", COLUMNS).linear is None
    assert read_relation(len, COLUMNS).linear is None


def proba(rows):
    score = np.asarray(rows["a"] + rows["b"] - 1.5)
    return np.column_stack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))])


def test_answers_keep_arithmetic_relations():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "c": rng.integers(0, 5, 200)})
    rules = Features(relations=("a + 2*b <= c + 2", "-2 <= a - b <= 2"))
    rows = frame[:40]
    e = CounterfactualExplainer(proba, features=rules).fit(frame).explain(rows)
    after = e.counterfactual[e.found]
    assert len(after) > 30
    assert (after.a + 2 * after.b <= after.c + 2).all()
    assert (after.a - after.b).between(-2, 2).all()


@pytest.mark.parametrize("narrow", [("a",), ("a", "b")])
def test_a_relation_holds_in_the_numbers_that_narrow_columns_hold(narrow):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50), "c": rng.normal(size=50)})
    frame = frame.astype(dict.fromkeys(narrow, "float32"))
    explainer = CounterfactualExplainer(proba, features=Features(relations="b - 1.45 * a >= 1.82")).fit(frame)
    space = explainer.fitted_.space
    row = np.array([[-0.22068965517241383, 1.5, 0.0]], dtype=space.columns.dtype)
    assert 1.5 - 1.45 * float(str(row[0, 0].astype(np.float32))) < 1.82  # what is returned in float32
    assert not space.rules.related(row).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_floats_are_compared_as_their_shortest_decimals(dtype):
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=3000) * 10.0 ** rng.integers(-40, 39, 3000)
    written = np.concatenate([rng.normal(size=3000).round(3), rng.integers(-(10**9), 10**9, 1000), drawn])
    limits = np.finfo(dtype)
    with np.errstate(over="ignore"):
        x = np.concatenate([written.astype(dtype), [0, -0.0, limits.max, limits.tiny, limits.smallest_subnormal]])
    x = x[np.isfinite(x)].astype(dtype)
    held = Held(np.dtype(dtype), np.array([True]), rounds=True)
    found = held.decimals(x.astype(float))
    assert found.tolist() == [float(str(value)) for value in x]
    assert np.isnan(held.decimals(np.array([np.nan]))).all()
    assert held.decimals(np.array([np.inf, -np.inf])).tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("text", ["Mjob == teacher", "teacher != Mjob"])
def test_a_category_without_quotes_is_said_to_be_of_the_column_that_is_compared(text):
    jobs = pd.DataFrame({"job": ["teacher", "x"], "Mjob": ["teacher", "health"], "Fjob": ["teacher", "x"]})
    columns, _ = Columns.learn(jobs, Features(), accepts_frames=True)
    with pytest.raises(ConfigError, match="It is a category of 'Mjob': write it in quotes, 'teacher'"):
        read_relation(text, columns)
