"""Every bound and every proof beside a brute force that knows nothing of programs.

Small models of two to four columns under random rules: the values at both sides of every split, all values of grids and
all categories are combined, predicted by the model itself and priced by the formula of J. No such point may cost less
than the bound, and none less than an answer that is called the best.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin import explainer as module

QUICK, ALL = 100, 1000
MOST = 150_000  # points of one row; cases with more are made smaller by fixed columns
SAME = 2e-5  # relative: what the programs call rounding, and the float32 next to a split


@dataclass
class Case:
    """A model, its training rows and random rules."""

    model: Any
    train: np.ndarray
    rows: np.ndarray
    features: dict[str, Any]
    search: dict[str, Any]
    grid: list[np.ndarray | None]  # by column: all its values, None for numbers between splits
    lines: list[tuple[int, int, float, float]]  # relations x_a <= slope · x_b + level of numbers
    target: Any = None


def draw(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    width, n = int(rng.integers(2, 5)), 60
    kinds = [str(rng.choice(["number", "number", "whole", "step", "listed", "category"])) for _ in range(width)]
    columns, grid, features = [], [], {"decimals": None, "step": {}, "allowed": {}, "integer": [], "categorical": []}
    for at, kind in enumerate(kinds):
        if kind == "number":
            columns.append(rng.normal(rng.choice([0, 100]), rng.choice([0.5, 3]), n))
            grid.append(None)
        elif kind == "category":
            columns.append(rng.integers(0, 4, n).astype(float))
            grid.append(np.arange(4.0))
            features["categorical"].append(at)
        else:
            columns.append(rng.integers(-4, 8, n) * {"whole": 1.0, "step": 0.5, "listed": 1.0}[kind])
            grid.append(np.arange(-4, 8) * {"whole": 1.0, "step": 0.5, "listed": 1.0}[kind])
            if kind == "whole":
                features["integer"].append(at)
            elif kind == "step":
                features["step"][at] = 0.5
    x = np.stack(columns, axis=1)
    classes = int(rng.integers(2, 4))
    noisy = x @ rng.normal(size=width) / (x.std(axis=0).mean() + 1) + rng.normal(size=n)
    y = np.digitize(noisy, np.quantile(noisy, np.linspace(0, 1, classes + 1)[1:-1]))
    model = make_model(rng, classes).fit(x, y)
    free, lines = [], []
    for at, kind in enumerate(kinds):
        rule = str(rng.choice(["", "", "", "immutable", "increasing", "decreasing", "ranges"]))
        if kind == "listed":
            values = np.sort(rng.choice(grid[at], 5, replace=False))
            features["allowed"][at], grid[at] = values.tolist(), values
        elif kind == "category":
            rule = "immutable" if rule == "immutable" else ""
        if rule == "ranges" and kind != "listed":
            low, high = np.quantile(x[:, at], [0.2, 0.8])
            features.setdefault("ranges", {})[at] = (float(low), float(high))
        elif rule and rule != "ranges":
            features.setdefault(rule, []).append(at)
        free.append(rule != "immutable")
        if rng.random() < 0.2:
            features.setdefault("weights", {})[at] = float(rng.choice([0.5, 3.0]))
    discrete = [at for at, kind in enumerate(kinds) if kind in {"whole", "step"}]
    if len(discrete) > 1 and rng.random() < 0.4:
        a, b = rng.choice(discrete, 2, replace=False)
        text = str(rng.choice(["x{a} <= x{b}", "x{a} + x{b} <= 3", "x{a} - 2 * x{b} >= -2", "x{a} < x{b} + 1"]))
        features["relations"] = (text.format(a=a, b=b),)
    numbers = [at for at, kind in enumerate(kinds) if kind == "number"]
    if len(numbers) > 1 and rng.random() < 0.4:
        a, b = rng.choice(numbers, 2, replace=False)
        slope = round(float(x[:, a].std() / x[:, b].std()), 2)
        level = round(float(np.quantile(x[:, a] - slope * x[:, b], rng.choice([0.3, 0.6]))), 2)
        features["relations"] = (f"x{a} <= {slope} * x{b} + {level}",)
        lines.append((int(a), int(b), slope, level))
    search = {
        "certify": "optimal",
        "beta": float(rng.choice([0.1, 0.0, 1.0])),
        "few_changes": float(rng.choice([0.0, 0.2, 1.0])),
        "theta": float(rng.choice([0.0, 0.0, 0.5, 2.0])),
        "max_changes": None if rng.random() < 0.7 else int(rng.integers(1, width + 1)),
        "min_proba": None if rng.random() < 0.7 else float(rng.choice([0.55, 0.7])),
    }
    if rng.random() < 0.15:
        search["min_stability"] = 0.6
    target = None if rng.random() < 0.7 else int(rng.integers(0, classes))
    if rng.random() < 0.15:
        x = x.astype(np.float32)
    return Case(model, x, x[rng.choice(n, 2, replace=False)], features, search, grid, lines, target)


def make_model(rng: np.random.Generator, classes: int) -> Any:
    kind, depth, count = int(rng.integers(0, 6)), int(rng.integers(2, 4)), int(rng.integers(2, 7))
    if kind <= 2:
        return XGBClassifier(n_estimators=count, max_depth=depth, n_jobs=1, learning_rate=0.5)
    if kind == 3:
        return RandomForestClassifier(count, max_depth=int(rng.choice([3, 9])), random_state=0)
    if kind == 4:
        return GradientBoostingClassifier(n_estimators=count, max_depth=depth, random_state=0, learning_rate=0.5)
    if rng.random() < 0.5:
        return HistGradientBoostingClassifier(max_iter=count, max_depth=depth, min_samples_leaf=5, random_state=0)
    return DecisionTreeClassifier(max_depth=4, random_state=0)


def splits(model: Any, column: int) -> np.ndarray:
    """The thresholds of a column, read from the libraries themselves."""
    if isinstance(model, XGBClassifier):
        frame = model.get_booster().trees_to_dataframe()
        return frame.Split[frame.Feature == f"f{column}"].to_numpy(float)
    if isinstance(model, HistGradientBoostingClassifier):
        nodes = np.concatenate([tree.nodes for stage in model._predictors for tree in stage])
        return nodes["num_threshold"][(nodes["is_leaf"] == 0) & (nodes["feature_idx"] == column)]
    trees = [model] if isinstance(model, DecisionTreeClassifier) else np.ravel(model.estimators_)
    return np.concatenate([t.tree_.threshold[t.tree_.feature == column] for t in trees])


def around(split: np.ndarray, dtype: Any) -> np.ndarray:
    """The numbers next to splits: in float32, in the dtype of the rows, and where float64 rounds to float32."""
    single = split.astype(np.float32)
    below, above = (np.nextafter(single, np.float32(end)).astype(float) for end in (-np.inf, np.inf))
    near = np.concatenate([below, single.astype(float), above, split, (below + single) / 2, (above + single) / 2])
    near = near.astype(dtype)
    return np.concatenate([near, *(np.nextafter(near, np.asarray(end, dtype=dtype)) for end in (-np.inf, np.inf))])


def candidates(case: Case, row: np.ndarray, goal: np.ndarray | None, scale: tuple[np.ndarray, np.ndarray]) -> list:
    """The values of every column that the best answer can have, in the dtype of the rows."""
    found = []
    for at, own in enumerate(row):
        low, high = case.features.get("ranges", {}).get(at, (case.train[:, at].min(), case.train[:, at].max()))
        if at not in case.features.get("ranges", {}):
            low, high = min(low, own), max(high, own)
        if at in case.features.get("immutable", ()):
            values = np.array([own])
        elif case.grid[at] is not None:
            values = case.grid[at]
        else:
            values = np.concatenate([around(splits(case.model, at), row.dtype), [low, high]])
            if goal is not None:  # where the pull of the prototype and the distance are in balance
                theta, beta = case.search["theta"], case.search["beta"]
                z, g = ((v - scale[0][at]) / scale[1][at] for v in (own, goal[at]))
                pull = theta * (g - z)
                moved = np.sign(pull) * max(abs(pull) - beta / 2, 0) / (1 + theta)
                values = np.append(values, (z + moved) * scale[1][at] + scale[0][at])
        values = np.unique(np.append(values.astype(row.dtype), own))
        keeps = np.ones(len(values), dtype=bool)
        if at not in case.features["categorical"]:
            keeps &= (values >= low) & (values <= high)
        if at in case.features.get("increasing", ()):
            keeps &= values >= own
        if at in case.features.get("decreasing", ()):
            keeps &= values <= own
        if at in case.features["allowed"]:
            keeps &= np.isin(values, case.features["allowed"][at])
        found.append(values[keeps])
    for a, b, slope, level in case.lines:  # and where the other column would be on the line
        on_a, on_b = slope * found[b] + level, (found[a] - level) / slope
        near = 1e-12 * (np.abs(on_a).max() + 1), 1e-12 * (np.abs(on_b).max() + 1)
        for at, more in ((a, on_a - near[0]), (b, on_b + near[1])):
            low, high = found[at].min(), found[at].max()
            if at not in case.features.get("immutable", ()):
                more = more.astype(row.dtype)
                found[at] = np.unique(np.append(found[at], more[(more >= low) & (more <= high)][::4]))
    return found


def relation_holds(text: str, points: np.ndarray) -> np.ndarray:
    names = {f"x{at}": points[:, at].astype(float) for at in range(points.shape[1])}
    return eval(text, {}, names)  # noqa: S307 the test's own text


def brute_force(case: Case, row: np.ndarray, own: int, goal: np.ndarray | None, space: Any) -> float | None:
    """The least J of all points that are counterfactuals; None if they are too many."""
    scale = space.offset, space.factor
    values = candidates(case, row, goal, scale)
    if np.prod([float(len(v)) for v in values]) > MOST:
        return None
    points = np.array(list(itertools.product(*values)), dtype=row.dtype).reshape(-1, len(row))
    for text in case.features.get("relations", ()):
        points = points[relation_holds(text, points)]
    changed = points != row
    if case.search["max_changes"] is not None:
        points = points[changed.sum(axis=1) <= case.search["max_changes"]]
    if not len(points):
        return np.inf
    proba = case.model.predict_proba(points)
    label = proba.argmax(axis=1)
    good = label != own if case.target is None else label == case.target
    if case.search["min_proba"] is not None:
        good &= proba.max(axis=1) >= case.search["min_proba"]
    points = points[good]
    z, z0 = ((x.astype(float) - scale[0]) / scale[1] for x in (points, row))
    g = None if goal is None else (goal.astype(float) - scale[0]) / scale[1]
    for at, embedding in space.embeddings.items():
        z[:, at], z0[at] = embedding[points[:, at].astype(int)], embedding[int(row[at])]
        if g is not None:
            g[at] = embedding[int(goal[at])]
    d = z - z0
    cost = case.search["beta"] * np.abs(d).sum(axis=1) + (d**2).sum(axis=1)
    cost += case.search["few_changes"] * (points != row).sum(axis=1)
    if g is not None:
        cost += case.search["theta"] * ((z - g) ** 2).sum(axis=1)
    return float(cost.min(initial=np.inf))


def check(seed: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """One case; returns how often something was seen, for the checks that the cases are not all alike."""
    case, seen = draw(seed), {}
    settings = {"min_typicality": 0.0, "min_stability": 0.0, **case.search}
    explainer = CounterfactualExplainer(
        case.model, features=Features(**case.features), search=SearchConfig(**settings)
    ).fit(case.train)
    goals: dict[int, np.ndarray] = {}

    def spy(judge: Any, clock: Any, solved: Any, *rest: Any) -> Any:
        for line, row in enumerate(judge.task.group.tolist()):
            if solved.good[line] and judge.theta:
                goals[row] = solved.goal[line].copy()
        return certify(judge, clock, solved, *rest)

    certify = module.certify
    monkeypatch.setattr(module, "certify", spy)
    e = explainer.explain(case.rows, target=case.target)
    monkeypatch.setattr(module, "certify", certify)
    for i, row in enumerate(case.rows):
        if np.isnan(e.lower_bound[i]):
            continue  # in the target already, or the rules contradict each other
        goal = goals.get(i)
        own = int(np.flatnonzero(explainer.fitted_.classes == e.original_class[i])[0])
        best = brute_force(case, row, own, goal, explainer.fitted_.space)
        if best is None:
            continue
        what = f"seed {seed}, row {i}: {e.message[i]}; brute force {best!r}, bound {e.lower_bound[i]!r}"
        assert e.lower_bound[i] <= best * (1 + 1e-12), what
        if e.status[i] == "infeasible":
            assert np.isinf(best), what
        if e.gap[i] == 0:
            assert e.objective[i] <= best * (1 + SAME), what
        for name in ("found", "infeasible"):
            seen[name] = seen.get(name, 0) + (e.status[i] == name)
        seen["proved"] = seen.get("proved", 0) + (e.gap[i] == 0)
        seen["rows"] = seen.get("rows", 0) + 1
        if np.isfinite(best) and "min_stability" not in case.search:
            seen["provable"] = seen.get("provable", 0) + 1
            seen["proved of these"] = seen.get("proved of these", 0) + (e.gap[i] == 0)
    return seen


def check_all(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    total: dict[str, int] = {}
    for seed in seeds:
        for name, count in check(seed, monkeypatch).items():
            total[name] = total.get(name, 0) + count
    assert total["rows"] > len(seeds), total
    assert total["proved of these"] >= 0.97 * total["provable"], total
    assert total["infeasible"] > 0, total


@pytest.mark.needs("xgboost")
def test_no_bound_is_above_the_best_of_all_boxes_and_no_proof_is_wrong(monkeypatch):
    check_all(range(QUICK), monkeypatch)


@pytest.mark.slow
@pytest.mark.needs("xgboost")
def test_the_same_holds_in_a_thousand_cases(monkeypatch):
    check_all(range(QUICK, QUICK + ALL), monkeypatch)


if __name__ == "__main__":
    import sys

    patch = pytest.MonkeyPatch()
    counts: dict[str, int] = {}
    for number in range(*map(int, sys.argv[1:3])):
        for key, value in check(number, patch).items():
            counts[key] = counts.get(key, 0) + value
    sys.stdout.write(f"{counts}\n")
