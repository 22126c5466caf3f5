"""A case of a seed: a model, rows to explain, rules and settings. The same seed is always the same case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig

from . import data
from .models import KINDS, LABELS, Kind, Owned, available
from .more import Told, more, with_dates

AT_FIT = ("categorical", "one_hot", "weights")  # rules that the space of the search is made of
BUDGETS = (None, None, None, None, None, 0.05, 1.0)


@dataclass
class Case:
    """What a user does: fit `train`, explain `x`. bad: the rows of x that were spoilt, with what was done to them."""

    seed: int
    name: str
    kind: Kind
    owned: Owned
    train: Any
    x: Any
    single: Any = None  # x as one row without its batch dimension
    bad: dict[int, str] = field(default_factory=dict)
    rules: dict[str, Any] = field(default_factory=dict)
    search: dict[str, Any] = field(default_factory=dict)
    target: Any = None
    wanted: list[set] | None = None  # the classes that are allowed, row by row
    n: int = 1
    budget: float | None = None
    library: str = "pandas"  # whose frames the user brings, if it is a frame
    again: bool = False  # whether the model is fitted again after the explainer
    per_call: bool = False  # whether the rules come with `explain`
    told: Told = field(default_factory=dict)  # relations, and how somebody would check each on a row of the answer
    intervals: list[dict[Any, tuple[float, float]]] | None = None  # the probabilities that are asked for, row by row

    def explainer(self) -> CounterfactualExplainer:
        rules = {rule: given for rule, given in self.rules.items() if rule in AT_FIT or not self.per_call}
        return CounterfactualExplainer(self.owned.model, features=Features(**rules), search=SearchConfig(**self.search))

    def __str__(self) -> str:
        what = type(self.x).__module__.split(".")[0] + "." + type(self.x).__name__
        dtype = getattr(self.x, "dtype", "")
        return (
            f"seed {self.seed}: {self.name}, {what} {dtype} {np.shape(self.x)}, rules {self.rules}, "
            f"search {self.search}, target {self.target!r}, n {self.n}, {self.library}, "
            f"budget {self.budget}, bad {self.bad}"
        )


def draw(seed: int, rows: int = 50) -> Case:
    """Every kind of model in turn; everything else is drawn. rows: the most to explain."""
    names = available()
    name = names[seed % len(names)]
    kind, rng = KINDS[name], np.random.default_rng(seed)
    table, known, owned = _trained(kind, rng)
    further = np.random.default_rng([seed, 1])
    (train, _, held), owned = with_dates(table, kind, owned, further)
    count = int(rng.integers(1, rows + 1)) if rng.random() < 0.8 else 1
    x = _take(held, rng.integers(0, len(held), count))
    case = Case(seed, name, kind, owned, train, x)
    case.x = _other_dtype(case, rng)
    if rng.random() < 0.35:
        _spoil(case, rng)
    case.rules = known
    case.rules = known | rules(case, rng)
    case.search = settings(case, rng)
    _draw_target(case, rng)
    names = [name for name in names_of(case) if name not in group_of(case)]
    dates = [name for name in names if is_date(case, name)]
    more(case, names, [name for name in names if is_amount(case, name)], dates, further)
    case.n = int(rng.choice([1, 1, 2, 3]))
    case.budget = BUDGETS[rng.integers(len(BUDGETS))]
    if count == 1 and not case.bad and rng.random() < 0.4:
        case.single = _one(case.x, train)
    if isinstance(x, pd.DataFrame) and case.single is None and rng.random() < 0.25:
        case.library = ["polars", "pyarrow"][rng.integers(2)]
    case.per_call = rng.random() < 0.15
    case.again = rng.random() < 0.04 and hasattr(owned.model, "get_params") and kind.takes == "numbers"
    return case


def _trained(kind: Kind, rng: np.random.Generator) -> tuple[data.Table, dict[str, Any], Owned]:
    """A table, and a model of it. Models that do not get along with their own training data are drawn again."""
    for _ in range(20):
        table, known = _table(kind, rng)
        label = LABELS[["int", "gaps", "str", "bool"][rng.integers(4)]] if kind.named else LABELS["int"]
        try:
            owned = kind.make(table.x, label(table.y), rng)
            answers = [owned.labels(table.x)] + ([] if owned.proba is None else [owned.proba(table.x)])
        except (ValueError, TypeError):
            continue
        if not any(answer.dtype.kind == "f" and np.isnan(answer).any() for answer in answers):
            return table, known, owned
    raise RuntimeError("no model could be trained in twenty tries")


def _table(kind: Kind, rng: np.random.Generator) -> tuple[data.Table, dict[str, Any]]:
    """Rows in a type that the model's owner can give it, and what has to be said about their columns."""
    if kind.takes != "numbers":
        x, y = data.raw_frame(rng)
        if kind.takes == "categories":
            x = x.drop(columns="job")
        return data.split(x, _from_zero(y), 60), {}
    x, y = data.numbers(rng, kind.classes)
    if kind.frames and rng.random() < 0.35:
        return data.split(data.numeric_frame(x, rng), _from_zero(y), 60), {}
    dtype = data.ARRAY_DTYPES[rng.integers(len(data.ARRAY_DTYPES))]
    if dtype.startswith(">") and "xgboost" in kind.needs:
        dtype = "float64"  # XGBoost itself reads other byte orders wrongly
    x = data.as_dtype(x, dtype)
    x, known = (x, {}) if dtype == "bool" else data.with_codes(x, rng)
    return data.split(x, _from_zero(y), 60), known


def _from_zero(y: np.ndarray) -> np.ndarray:
    return np.unique(y, return_inverse=True)[1]


def _take(x: Any, at: np.ndarray) -> Any:
    return x.iloc[at].copy() if isinstance(x, pd.DataFrame) else x[at].copy()


def _other_dtype(case: Case, rng: np.random.Generator) -> Any:
    """Sometimes the rows come in another dtype than the training data, or in another order of columns."""
    x, luck = case.x, rng.random()
    if isinstance(x, pd.DataFrame):
        if luck < 0.1 and "float64" in map(str, x.dtypes):
            return x.astype({name: "float32" for name in x if str(x[name].dtype) == "float64"})
        return x[list(rng.permutation(x.columns))] if luck < 0.2 else x
    if x.dtype == np.float64 and luck < 0.15:
        return x.astype(np.float32)
    if luck < 0.25:
        return np.asfortranarray(x)
    if luck < 0.35:
        x.flags.writeable = False
    return x


def _one(x: Any, train: Any) -> Any:
    """The row alone. A Series does not say which dtypes its cells came from: they are those of the training data."""
    if not isinstance(x, pd.DataFrame):
        return x[0]
    return x.iloc[0] if x.dtypes.equals(train.dtypes) else None


def _spoil(case: Case, rng: np.random.Generator) -> None:
    """Replace one or two rows by such as few models take."""
    x = case.x
    for i in rng.choice(len(x), min(len(x), int(rng.integers(1, 3))), replace=False).tolist():
        if isinstance(x, pd.DataFrame):
            x, how = _spoilt_cell(x, i, rng)
        elif x.dtype.kind == "f":
            x = x.copy()
            how = ["NaN", "inf", "huge"][rng.integers(3)]
            huge = min(1e300, float(np.finfo(x.dtype).max))
            x[i, rng.integers(x.shape[1])] = {"NaN": np.nan, "inf": np.inf, "huge": huge}[how]
        elif x.dtype.kind in "iu":
            x, how = x.copy(), "largest integer"
            x[i, rng.integers(x.shape[1])] = np.iinfo(x.dtype).max
        else:
            return
        case.bad[i] = how
    case.x = x


def _spoilt_cell(x: pd.DataFrame, i: int, rng: np.random.Generator) -> tuple[pd.DataFrame, str]:
    x = x.copy()
    name = x.columns[rng.integers(x.shape[1])]
    dtype, at = x[name].dtype, x.columns.get_loc(name)
    if isinstance(dtype, pd.CategoricalDtype):
        if "never seen" not in dtype.categories:
            x[name] = x[name].cat.add_categories(["never seen"])
        x.iloc[i, at] = "never seen"
        return x, f"unknown category in {name}"
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        if str(dtype).startswith("float") and rng.random() < 0.7:
            x.iloc[i, at] = [np.nan, np.inf, 1e300 if dtype == np.float64 else 3e38][rng.integers(3)]
            return x, f"{x.iloc[i, at]} in {name}"
        cells = x[name].astype(object)
        cells.iloc[i] = "text"
        x[name] = cells
        return x, f"text in the numbers of {name}"
    cells = x[name].astype(object)
    cells.iloc[i] = [["a", "list"], "never seen", None, 3][rng.integers(4)]
    what = cells.iloc[i]
    x[name] = cells if rng.random() < 0.5 or isinstance(what, list) or dtype.kind == "b" else cells.astype(dtype)
    return x, f"{what!r} in {name}"


def rules(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Rules that the columns admit; one case in three has none."""
    if rng.random() < 0.33:
        return {}
    names = [name for name in names_of(case) if name not in group_of(case)]
    amounts = [name for name in names if is_amount(case, name)]
    out: dict[str, Any] = {"ranges": {}, "integer": [], "step": {}, "allowed": {}}
    for rule, among in (("immutable", names), ("increasing", amounts), ("decreasing", amounts)):
        if rng.random() < 0.3 and among:
            out[rule] = tuple(among[i] for i in rng.choice(len(among), min(len(among), 2), replace=False))
    out["decreasing"] = tuple(name for name in out.get("decreasing", ()) if name not in out.get("increasing", ()))
    for name in amounts:
        _rules_of_number(out, name, column(case.train, name), rng)
    for name in sorted(set(names) - set(amounts)):
        levels = levels_of(case, name)
        if rng.random() < 0.2 and levels:
            out["allowed"][name] = [levels[i] for i in rng.permutation(len(levels))[: max(1, len(levels) - 1)]]
    if len(amounts) > 1 and isinstance(case.train, pd.DataFrame) and rng.random() < 0.25:
        out["relations"] = (f"{amounts[0]} <= {amounts[1]}",)
    if rng.random() < 0.2:
        out["weights"] = {names[0]: 3.0}
    return {rule: given for rule, given in out.items() if given}


def _rules_of_number(out: dict[str, Any], name: Any, values: np.ndarray, rng: np.random.Generator) -> None:
    """Sometimes a range, and sometimes whole numbers or a step."""
    known = values.astype(float)[~np.isnan(values.astype(float))]
    low, high = np.quantile(known, np.sort(rng.random(2)))
    if rng.random() < 0.15:
        out["ranges"][name] = (float(np.floor(low)), float(np.ceil(high)))
    luck = rng.random()
    if luck < 0.08:
        out["integer"].append(name)
    elif luck < 0.16:
        out["step"][name] = float(rng.choice([1, 2, 5])) if values.dtype.kind in "iu" else 0.25


def column(x: Any, name: Any) -> Any:
    """A column as an array in its own dtype; nullable numbers as floats."""
    if not isinstance(x, pd.DataFrame):
        return x[:, name]
    cells = x[name]
    if pd.api.types.is_extension_array_dtype(cells.dtype) and pd.api.types.is_numeric_dtype(cells.dtype):
        return cells.astype("float64" if cells.isna().any() else cells.dtype.numpy_dtype).to_numpy()
    return cells.to_numpy()


def group_of(case: Case) -> tuple[int, ...]:
    """The columns of the one-hot group, if there is one."""
    return case.rules.get("one_hot", {}).get("bin", ())


def names_of(case: Case) -> list[Any]:
    return list(case.train) if isinstance(case.train, pd.DataFrame) else list(range(case.train.shape[1]))


def is_date(case: Case, name: Any) -> bool:
    return isinstance(case.train, pd.DataFrame) and getattr(case.train[name].dtype, "kind", "O") == "M"


def is_amount(case: Case, name: Any) -> bool:
    x = case.train
    if not isinstance(x, pd.DataFrame):
        return x.dtype.kind in "iuf" and name not in case.rules.get("categorical", ())
    dtype = x[name].dtype
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


def levels_of(case: Case, name: Any) -> list:
    """The categories of a column of the training data; none for an array of truths, which are numbers there."""
    if isinstance(case.train, pd.DataFrame):
        return sorted(case.train[name].dropna().unique().tolist())
    return np.unique(case.train[:, name]).tolist() if name in case.rules.get("categorical", ()) else []


def settings(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if rng.random() < 0.25:
        out["max_changes"] = int(rng.integers(1, 4))
    if rng.random() < 0.2 and case.owned.proba is not None:
        out["min_proba"] = float(rng.choice([0.4, 0.6, 0.9]))
    if rng.random() < 0.15:
        out["few_changes"] = 0.3
    if rng.random() < 0.15:
        out["polish"] = 0
    if rng.random() < 0.1:
        out["fallback"] = False
    return out


def _draw_target(case: Case, rng: np.random.Generator) -> None:
    """None, a label, several, or one per row; labels as Python's and as NumPy's."""
    classes = np.unique(case.owned.labels(case.train))
    luck, count = rng.random(), len(case.x)
    if luck < 0.45 or len(classes) < 2:
        return
    if luck < 0.65:
        label = classes[rng.integers(len(classes))]
        case.target = label if rng.random() < 0.5 else label.item()
        case.wanted = [{label.item()}] * count
    elif luck < 0.8:
        some = classes[rng.permutation(len(classes))[: rng.integers(1, len(classes) + 1)]].tolist()
        case.target, case.wanted = [list, tuple, set][rng.integers(3)](some), [set(some)] * count
    else:
        each = classes[rng.integers(0, len(classes), count)]
        frame = isinstance(case.x, pd.DataFrame) and case.x.index.is_unique and rng.random() < 0.5
        case.target = pd.Series(each, index=case.x.index) if frame else each
        case.wanted = [{label} for label in each.tolist()]
