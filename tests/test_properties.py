"""Random tables, models and rules: whatever is claimed must be true, as computed here and not by the library."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig

LEVELS = ["ash", "birch", "cedar", "elm"]
GRID = 1e-6
thorough = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@dataclass
class Case:
    """A training table, a model of it, rules, and rows to explain."""

    frame: pd.DataFrame
    kind: str
    rules: dict
    search: dict
    target: int | None
    seed: int

    @property
    def rows(self):
        """Training rows, and one that lies outside of them."""
        far = self.frame.iloc[[0]].copy()
        for name in numbers(self.frame):
            far[name] = far[name] + self.frame[name].dtype.type(7)
        return pd.concat([self.frame.iloc[:6], far], ignore_index=True).astype(self.frame.dtypes.to_dict())

    def encode(self, rows):
        """Numbers and codes; a missing number is -1."""
        parts = [rows[name].astype(float).fillna(-1) for name in numbers(self.frame)]
        parts += [rows[name].map(LEVELS.index) for name in self.frame if name not in numbers(self.frame)]
        return np.column_stack(parts).astype(float)

    def model(self):
        """A function of raw rows that gives probabilities."""
        rng = np.random.default_rng(self.seed)
        x = self.encode(self.frame)
        if self.kind == "linear":
            weights = rng.normal(size=(x.shape[1], 3))
            shift = x.mean(axis=0)

            def linear(rows):
                score = (self.encode(rows) - shift) @ weights
                score = np.exp(score - score.max(axis=1, keepdims=True))
                return score / score.sum(axis=1, keepdims=True)

            return linear
        kind = DecisionTreeClassifier(max_depth=4) if self.kind == "tree" else RandomForestClassifier(5, max_depth=4)
        fitted = kind.set_params(random_state=0).fit(x, rng.integers(0, 3, len(x)))
        return lambda rows: fitted.predict_proba(self.encode(rows))


def numbers(frame):
    return [name for name in frame if name[0] in "fi"]


@st.composite
def tables(draw, n_floats=(0, 3), n_ints=(0, 2), n_categories=(0, 3)):
    """Columns f0.. of floats, i0.. of integers and c0.. of strings."""
    floats, ints, categories = (draw(st.integers(*sizes)) for sizes in (n_floats, n_ints, n_categories))
    assume(floats + ints > 0)
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    rows = draw(st.integers(8, 40))
    columns = {f"f{k}": rng.normal(scale=3, size=rows).round(draw(st.integers(0, 4))) for k in range(floats)}
    columns |= {f"i{k}": rng.integers(-3, draw(st.integers(-1, 9)), rows) for k in range(ints)}
    columns |= {f"c{k}": rng.choice(LEVELS[: draw(st.integers(1, 4))], rows) for k in range(categories)}
    if floats and draw(st.booleans()):
        columns["f0"][1 + rng.integers(0, rows - 1, 3)] = np.nan
    return pd.DataFrame(columns)


@st.composite
def rules_for(draw, frame):
    """Any rules that the columns admit, contradictions included but for both directions at once."""
    names, rules = list(frame), {}
    for rule, admits in (("immutable", names), ("increasing", numbers(frame)), ("decreasing", numbers(frame))):
        rules[rule] = tuple(draw(st.lists(st.sampled_from(admits), max_size=2, unique=True)))
    rules["decreasing"] = tuple(name for name in rules["decreasing"] if name not in rules["increasing"])
    rules["ranges"], rules["step"], rules["allowed"] = {}, {}, {}
    for name in numbers(frame):
        if draw(st.integers(0, 3)) == 0:
            low, high = np.nanquantile(frame[name], sorted(draw(st.tuples(*[st.floats(0, 1)] * 2))))
            rules["ranges"][name] = (float(low), math.inf if draw(st.booleans()) else float(high))
        if draw(st.integers(0, 3)) == 0:
            rules["step"][name] = float(draw(st.sampled_from([1, 2, 5] if name[0] == "i" else [0.1, 0.25, 3])))
    for name in set(names) - set(numbers(frame)):
        if draw(st.integers(0, 2)) == 0:
            there = sorted(frame[name].unique())
            rules["allowed"][name] = tuple(draw(st.lists(st.sampled_from(there), min_size=1, unique=True)))
    pair = numbers(frame)[:2]
    rules["relations"] = (f"{pair[0]} <= {pair[1]}",) if len(pair) == 2 and draw(st.integers(0, 2)) == 0 else ()
    rules["weights"] = {names[0]: 3.0} if draw(st.booleans()) else {}
    return rules


@st.composite
def cases(draw, **sizes):
    frame = draw(tables(**sizes))
    search = {
        "max_changes": draw(st.sampled_from([None, None, 1, 2])),
        "min_proba": draw(st.sampled_from([None, None, 0.6])),
        "polish": draw(st.booleans()),
        "few_changes": draw(st.sampled_from([None, 0.0, 1.0])),
        "theta": draw(st.sampled_from([None, None, 0.0, 1.0])),
        "min_typicality": draw(st.sampled_from([None, None, 0.0, 0.2])),
        "min_stability": draw(st.sampled_from([None, None, 0.0, 0.8])),
    }
    kind = draw(st.sampled_from(["tree", "forest", "linear"]))
    target = draw(st.sampled_from([None, None, 1]))
    return Case(frame, kind, draw(rules_for(frame)), search, target, draw(st.integers(0, 1000)))


def explain(case):
    """The case's model and what the explainer says about its rows."""
    model = case.model()
    seen = model(case.frame).argmax(axis=1)
    assume(len(set(seen)) > 1)
    assume(case.target is None or model(case.frame).shape[1] > 1)
    explainer = CounterfactualExplainer(model, features=Features(**case.rules), search=SearchConfig(**case.search))
    return model, explainer.fit(case.frame).explain(case.rows, target=case.target)


def limits(case, name, own):
    """Lowest and highest value a number may take beside its own, by every rule but the grid."""
    rules, column = case.rules, case.frame[name]
    if name in rules["ranges"]:
        low, high = rules["ranges"][name]
    else:
        low, high = np.nanmin([column.min(), own]), np.nanmax([column.max(), own])
    if name in rules["increasing"] and not math.isnan(own):
        low = max(low, own)
    if name in rules["decreasing"] and not math.isnan(own):
        high = min(high, own)
    return low, high


def step_of(case, name):
    return case.rules["step"].get(name, 1.0 if name[0] == "i" else 0.0)


def fine(case, name, own, value):
    """Whether the rules let a cell of this column become `value`."""
    same = value == own or (value != value and own != own)  # noqa: PLR0124 NaN
    if name[0] == "c":
        choices = case.rules["allowed"].get(name, set(case.frame[name]))
        return value in choices and (same or name not in case.rules["immutable"])
    low, high = limits(case, name, own)
    if value != value:  # noqa: PLR0124 NaN
        return same
    if own != own and name in {*case.rules["increasing"], *case.rules["decreasing"]}:  # noqa: PLR0124 it stays missing
        return False
    step = step_of(case, name)
    on_grid = same or not step or abs(value / step - round(value / step)) <= GRID * max(1, abs(value / step))
    return low <= value <= high and on_grid and (same or name not in case.rules["immutable"])


def related(case, row):
    return all(row[left] <= row[right] for left, _, right in (text.split() for text in case.rules["relations"]))


def cells(row):
    """A row by name; every number is a float, every missing one NaN."""
    number = {name: math.nan if pd.isna(value) else float(value) for name, value in row.items() if name[0] in "fi"}
    return {name: number.get(name, value) for name, value in row.items()}


def check_claim(case, model, e, i):
    """A row that is said to have a counterfactual has one."""
    before, after = cells(e.original.iloc[i]), cells(e.counterfactual.iloc[i])
    exact = e.counterfactual.iloc[[i]].astype(case.frame.dtypes.to_dict())
    proba = model(exact)[0]
    assert proba.argmax() == e.counterfactual_class[i]
    if case.target is None:
        assert e.counterfactual_class[i] != model(case.rows)[i].argmax()
    else:
        assert e.counterfactual_class[i] == case.target
    assert case.search["min_proba"] is None or proba.max() >= case.search["min_proba"]
    if "already in the target" in e.message[i]:
        return
    for name in after:
        assert fine(case, name, before[name], after[name]), (name, before, after, case.rules)
    assert related(case, after)
    changed = [name for name in after if after[name] != before[name] and not pd.isna(after[name])]
    assert 1 <= len(changed) <= (case.search["max_changes"] or len(after))


def values(case, name, own):
    """All values a cell may take, or some where they cannot be listed: none, its own alone, or more."""
    if name[0] == "c":
        return [value for value in LEVELS if fine(case, name, own, value)]
    low, high = limits(case, name, own)
    high = min(high, max(low, 0) + 10)  # more than enough of an open range
    step = step_of(case, name)
    if step:
        inside = [k * step for k in range(math.floor(low / step) - 1, math.ceil(high / step) + 2)]
    else:
        inside = [low, high, (low + high) / 2]
    return sorted({value for value in (*inside, own) if fine(case, name, own, value)})


def check_reason(case, e, i):
    """A row that is said to be infeasible is, for the reason given."""
    own = cells(e.original.iloc[i])
    choices = {name: values(case, name, own[name]) for name in own}
    if "every column is fixed" in e.message[i]:
        assert all(choices[name] in ([own[name]], []) or pd.isna(own[name]) for name in own), (own, choices)
        return
    if "relation" in e.message[i]:
        combinations = itertools.product(*choices.values())
        assert not any(related(case, dict(zip(own, each, strict=True))) for each in combinations), (own, choices)
        return
    named = e.message[i].split("column '")[1].split("'")[0]
    assert choices[named] == [], (e.message[i], own, choices[named])


@thorough
@given(cases())
def test_no_claim_is_false_and_no_rule_is_broken(case):
    model, e = explain(case)
    assert len(e) == len(case.rows)
    assert np.array_equal(e.original_class, model(case.rows).argmax(axis=1))
    for i, status in enumerate(e.status):
        if status in {"found", "fallback"}:
            check_claim(case, model, e, i)
        else:
            assert status in {"not_found", "infeasible"}
            assert e.message[i]
            assert e.counterfactual.iloc[i].isna().all()
            assert e.counterfactual_class[i] is None
        if status == "infeasible":
            check_reason(case, e, i)


@pytest.mark.slow
@thorough
@given(cases(n_floats=(0, 0), n_ints=(1, 2), n_categories=(0, 2)))
def test_on_tables_small_enough_to_try_everything_infeasible_rows_have_no_counterfactual(case):
    model, e = explain(case)
    for i, status in enumerate(e.status):
        if status != "infeasible":
            continue
        own = cells(e.original.iloc[i])
        combinations = list(itertools.product(*(values(case, name, own[name]) for name in own)))
        if not combinations:
            continue
        rows = pd.DataFrame(combinations, columns=list(own)).astype(case.frame.dtypes.to_dict())
        proba = model(rows)
        reached = proba.argmax(axis=1)
        wanted = reached != e.original_class[i] if case.target is None else reached == case.target
        wanted &= proba.max(axis=1) >= (case.search["min_proba"] or 0)
        assert not any(wanted[k] and related(case, rows.iloc[k]) for k in range(len(rows)))


@thorough
@given(cases(n_floats=(1, 4), n_ints=(0, 0), n_categories=(0, 0)), st.booleans())
def test_no_claim_about_a_tree_given_as_it_is_and_an_array_is_false(case, single):
    data = case.encode(case.frame).astype(np.float32 if single else np.float64)
    rng = np.random.default_rng(case.seed)
    tree = DecisionTreeClassifier(max_depth=5, random_state=0).fit(data, rng.integers(0, 3, len(data)))
    assume(len(set(tree.predict(data))) > 1)
    columns = {name: at for at, name in enumerate(case.frame)}
    rules = {
        rule: {columns[name]: value for name, value in given.items()}
        if isinstance(given, dict)
        else tuple(columns[name] for name in given)
        for rule, given in case.rules.items()
        if rule != "relations"
    }
    e = CounterfactualExplainer(tree, features=Features(**rules), search=SearchConfig(**case.search)).fit(data)(
        data[:8]
    )
    assert e.counterfactual.dtype == data.dtype
    for i in np.flatnonzero(np.isin(e.status, ["found", "fallback"])):
        after = e.counterfactual[i]
        assert tree.predict(after[None])[0] == e.counterfactual_class[i] != tree.predict(data[[i]])[0]
        for name, at in columns.items():
            own, value = float(data[i, at]), float(after[at])
            low, high = (data.dtype.type(bound) for bound in case.rules["ranges"].get(name, (-math.inf, math.inf)))
            assert low <= after[at] <= high
            assert value == own or name not in case.rules["immutable"]
            assert value >= own or name not in case.rules["increasing"]
            assert value <= own or name not in case.rules["decreasing"]
            steps = value / case.rules["step"].get(name, 1.0)
            assert value == own or name not in case.rules["step"] or abs(steps - round(steps)) <= GRID * abs(steps)
