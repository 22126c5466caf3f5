"""What is wrong with an answer, found out without the code that gave it."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd

from cfproto_plugin import Explanation, Features
from cfproto_plugin.errors import CfprotoError

from .draw import Case, group_of
from .rows import brought, fingerprint, in_pandas, is_kept, is_same, rows_of, schema_changes, value_of
from .rules import broken

STATUSES = {"found", "fallback", "not_found", "infeasible", "error"}
EXACT = 1e-6  # `near` of models whose answers do not depend on the batch


def run(case: Case) -> tuple[list[str], dict[str, int]]:
    """Explain the case: what is wrong, and how many lines have which status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _run(case)
        except CfprotoError as error:
            return ([] if justified(case, error) else [f"{type(error).__name__}: {error}"]), {"refused": len(case.x)}
        except Exception as error:  # noqa: BLE001 a raw traceback is what is looked for
            place = _place(error)
            return [f"raw traceback: {type(error).__name__}: {str(error)[:300]} ({place})"], {"crashed": len(case.x)}


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename.rsplit('/', 2)[-1]}:{trace.tb_lineno}"


def justified(case: Case, error: CfprotoError) -> bool:
    """The refusals that a drawn case can deserve: a model that was fitted again, has no scores, or knows one class."""
    if case.again and "explainer.fit again" in str(error):
        return True
    if case.name == "hard voting":
        return "gives no probabilities" in str(error)
    return len(set(np.asarray(case.owned.labels(case.train)).tolist())) < 2


def _run(case: Case) -> tuple[list[str], dict[str, int]]:
    before = {name: fingerprint(getattr(case, name)) for name in ("train", "x", "target", "single")}
    explainer = case.explainer().fit(case.train)
    if case.seed % 6 == 0 and not case.again:  # a pickled explainer holds a model of its own
        explainer = _pickled(explainer)
    if case.again:
        shuffled = np.random.default_rng(1).permutation(np.asarray(case.owned.labels(case.train)))
        case.owned.model.fit(case.train.copy(), shuffled)
    given = case.x if case.single is None else case.single
    if case.library != "pandas":
        given = brought(case.x, case.library, given)
        case.library = "pandas" if isinstance(given, pd.DataFrame) else case.library  # where that cannot hold the rows
    before["given"] = fingerprint(given)
    target = case.target if case.single is None else _first(case.target)
    e = explainer.explain(given, target=target, time_budget=case.budget, **options(case))
    after = {name: fingerprint(getattr(case, name, given)) for name in before}
    problems = [f"{name} was changed" for name in before if after[name] != before[name]] + _written(e)
    if not isinstance(given, (np.ndarray, pd.Series, pd.DataFrame)):
        problems += schema_changes(given, e)
        e = in_pandas(case.x, e)
    problems += _whole(case, e)
    problems += _lines(case, e) + _asked(case, e) + _alone(case, explainer, e, given)
    status, counts = np.unique(e.status.astype(str), return_counts=True)
    return problems, dict(zip(status.tolist(), counts.tolist(), strict=True))


def options(case: Case) -> dict[str, Any]:
    """What `explain` is asked for; weights and groups of columns were settled by `fit`."""
    return {"n": case.n, "features": Features(**case.rules) if case.per_call else None}


def asked(case: Case, question: Any, rows: Any) -> Any:
    """What the owner's model says of rows, its columns in its order.

    A single bad cell makes a column of objects. A model that refuses these is asked in the dtypes of training, as its
    owner would have to.
    """
    if not isinstance(rows, pd.DataFrame):
        return question(rows)
    rows = rows[list(case.train)]
    if case.library != "pandas":  # other libraries have no objects: a column of theirs is what training had
        rows = _in_training_dtypes(case, rows, truths=False)
    try:
        return question(rows)
    except Exception:
        plain = _in_training_dtypes(case, rows)
        if plain.dtypes.equals(rows.dtypes):
            raise
        return question(plain)


def _in_training_dtypes(case: Case, rows: pd.DataFrame, *, truths: bool = True) -> pd.DataFrame:
    """Columns of objects in the dtypes of training; whole numbers and truths with missing ones among them as floats.

    truths: False leaves truths with missing ones among them as objects, as the libraries' own `to_pandas` does.
    """
    for name, dtype in case.train.dtypes.items():
        if str(dtype) == "object":  # a null is what training has for it
            kinds = {repr(cell): cell for cell in case.train[name][case.train[name].isna()]}
            if case.library != "pandas" and len(kinds) == 1:
                cells = [next(iter(kinds.values())) if pd.isna(cell) else cell for cell in rows[name]]
                rows = rows.assign(**{name: pd.Series(cells, index=rows.index, dtype=object)})
            continue
        if isinstance(rows[name].dtype, pd.CategoricalDtype) and isinstance(dtype, pd.CategoricalDtype):
            unused = rows[name].cat.categories.difference(rows[name].dropna().unique())
            strangers = unused.difference(dtype.categories)  # named for other rows of the call
            rows = rows.assign(**{name: rows[name].cat.remove_categories(strangers)})
        if rows[name].dtype != object:
            continue
        lacks = rows[name].isna().any() and getattr(dtype, "kind", "O") in "iub"
        if lacks and dtype.kind == "b" and not truths:
            continue
        with contextlib.suppress(ValueError, TypeError):
            made = rows[name].astype("float64" if lacks else dtype)
            if all(map(is_same, made, rows[name])):  # 3 is no truth
                rows = rows.assign(**{name: made})
    return rows


def _pickled(explainer: Any) -> Any:
    """The explainer through a pickle, if its model goes through one."""
    try:
        pickle.dumps(explainer.model)
    except Exception:  # noqa: BLE001 local functions and classes do not
        return explainer
    return pickle.loads(pickle.dumps(explainer))  # noqa: S301 our own


def _first(target: Any) -> Any:
    return (
        target[:1] if isinstance(target, np.ndarray) else target.iloc[:1] if isinstance(target, pd.Series) else target
    )


def _whole(case: Case, e: Explanation) -> list[str]:
    """Shape, type, names, index and dtypes of the answer."""
    out = []
    lines = np.repeat(np.arange(len(case.x)), case.n)
    if not np.array_equal(e.row, lines):
        return [f"rows {e.row.tolist()} for {len(case.x)} rows and n {case.n}"]
    if case.single is None and type(e.counterfactual) is not type(case.x):
        out.append(f"{type(e.counterfactual)} for {type(case.x)}")
    if isinstance(case.x, pd.DataFrame) and case.single is None:
        if not e.counterfactual.columns.equals(case.x.columns):
            out.append(f"columns {list(e.counterfactual)}")
        if not e.counterfactual.index.equals(case.x.index[lines]):
            out.append("the index was not kept")
        kept = [a == b for a, b in zip(e.counterfactual.dtypes, case.x.dtypes, strict=True)]
        if e.found.all() and not all(kept):
            out.append(f"dtypes {list(e.counterfactual.dtypes)} for {list(case.x.dtypes)}")
    elif case.single is None and e.found.all() and e.counterfactual.dtype != case.x.dtype:
        out.append(f"dtype {e.counterfactual.dtype} for {case.x.dtype}")
    if set(e.status) - STATUSES:
        out.append(f"status {set(e.status) - STATUSES}")
    return out


def _lines(case: Case, e: Explanation) -> list[str]:
    """Every line of the answer."""
    before, after, counts, found = rows_of(case.x), rows_of(e.counterfactual), e.n_changes, e.found
    out, seen = [], set()
    for i in range(len(e)):
        if found[i]:
            wrong = _line(
                case,
                before[int(e.row[i])],
                after[i],
                int(counts[i]),
                strict=bool(found.all()) and case.library == "pandas",
            )
            wrong += _class(case, e, i, bool(counts[i]))
            answer = int(e.row[i]), repr(after[i])
            wrong += ["the answer of another line of its row"] * (answer in seen)
            seen.add(answer)
        else:
            named = e.counterfactual_class[i] is not None
            wrong = ["no reason"] * (not e.message[i]) + ["a class without a row"] * named
        out += [f"line {i}: {text}" for text in wrong]
    return out


def _line(case: Case, before: dict, after: dict, count: int, *, strict: bool) -> list[str]:
    """Cells and rules of one line.

    strict: unchanged cells keep their type. Where rows have no answer they hold missing values, for which whole numbers
    and truths need other dtypes.
    """
    out, changed = [], []
    for name, own in before.items():
        new = after[name]
        if is_same(own, new):
            exact = type(own) is type(new) and repr(own) == repr(new) if strict else is_kept(own, new)
            out += [] if exact else [f"unchanged cell {name!r} was {own!r} and is {new!r}"]
        else:
            changed.append(name)
        out += [f"{text}: {name!r} from {own!r} to {new!r}" for text in broken(case, name, own, new)]
    if len(changed) != count:
        out.append(f"{len(changed)} cells differ, n_changes is {count}")
    group = group_of(case)
    attributes = len({"group" if name in group else name for name in changed})
    if attributes > case.search.get("max_changes", math.inf):
        out.append(f"{attributes} changes, at most {case.search['max_changes']} allowed")
    if group and sorted(float(after[at]) for at in group) != [0.0, 0.0, 1.0]:
        out.append(f"one-hot columns {[after[at] for at in group]}")
    for relation in case.rules.get("relations", ()):
        if relation in case.told:
            out += [] if case.told[relation](after) else [f"{relation} does not hold"]
            continue
        left, right = relation.split(" <= ")
        out += [] if value_of(after[left]) <= value_of(after[right]) else [f"{relation} does not hold"]
    return out


def _class(case: Case, e: Explanation, i: int, changed: bool) -> list[str]:
    claimed, own = e.counterfactual_class[i], e.original_class[i]
    if case.intervals is not None:
        inside = is_inside(case, e, i, e.original_proba[i])
        return [] if changed or inside else ["unchanged, and its probability is not the one that was asked for"]
    if case.wanted is None:
        return [] if claimed != own and changed else [f"class {claimed!r} for a row of class {own!r}"]
    wanted = case.wanted[int(e.row[i])]
    return [] if claimed in wanted else [f"class {claimed!r}, wanted {wanted}"]


def is_inside(case: Case, e: Explanation, i: int, proba: np.ndarray) -> bool:
    """Whether a probability of line i is one that was asked for; of networks up to what their answers vary by."""
    slack = case.kind.near if case.kind.near > EXACT else 0.0
    wanted = case.intervals[int(e.row[i])].items()
    return any(low - slack <= proba[e.classes.tolist().index(label)] <= high + slack for label, (low, high) in wanted)


def _asked(case: Case, e: Explanation) -> list[str]:
    """The model's owner asks it about every answer, all at once and one by one, and about the rows themselves."""
    found = np.flatnonzero(e.found)
    out = []
    if len(found):
        rows = as_given(case, e, found)
        for how, labels in (
            ("in one batch", asked(case, case.owned.labels, rows)),
            ("one by one", _one_by_one(case, rows)),
        ):
            false = [k for k, label in enumerate(labels) if label != e.counterfactual_class[found[k]]]
            out += [
                f"line {found[k]}: {how} the model says {labels[k]!r}, claimed {e.counterfactual_class[found[k]]!r}"
                for k in false
            ]
        out += _probabilities(case, e, found, rows)
    read = np.flatnonzero((e.status != "error") & (np.searchsorted(e.row, e.row) == np.arange(len(e))))
    labels = _one_by_one(case, rows_at(case.x, e.row[read])) if case.bad else _at_once(case, e.row[read])
    for i, label in zip(read, labels, strict=True):
        if label != e.original_class[i] and not _tied(case, e, i):
            out.append(f"line {i}: original class {e.original_class[i]!r}, the model says {label!r}")
    return out + _errors(case, e)


def _tied(case: Case, e: Explanation, i: int) -> bool:
    """Whether a network has two classes nearer to each other than its answers are: it may say either."""
    first, second = np.sort(e.original_proba[i])[:-3:-1]
    return case.kind.near > EXACT and bool(first - second < case.kind.near)


def _errors(case: Case, e: Explanation) -> list[str]:
    """A row is an error if its model refuses it, and never if it is one like the training rows."""
    out = []
    for i, status in enumerate(e.status):
        at = int(e.row[i])
        if status == "error" and at not in case.bad and not _refused(case, at):
            out.append(f"line {i}: error for a good row: {e.message[i]}")
        if status != "error" and at in case.bad and _refused(case, at):
            out.append(f"line {i}: {status}, but the model refuses the row ({case.bad[at]})")
    return out


def _refused(case: Case, at: int) -> bool:
    try:
        rows = rows_at(case.x, [at])
        labels = asked(case, case.owned.labels, rows)
        proba = None if case.owned.proba is None else asked(case, case.owned.proba, rows)
    except Exception:  # noqa: BLE001 whatever the user's model raises
        return True
    return len(labels) != 1 or (proba is not None and bool(np.isnan(proba).any()))


def as_given(case: Case, e: Explanation, lines: np.ndarray) -> Any:
    """The answers in the dtype of the rows, as the user would put them to the model."""
    rows = rows_at(e.counterfactual, lines)
    if isinstance(case.x, pd.DataFrame):
        return rows.astype(dict(zip(case.x.columns, case.x.dtypes, strict=True)))
    return rows.astype(case.x.dtype)


def rows_at(x: Any, at: Any) -> Any:
    return x.iloc[at].copy() if isinstance(x, pd.DataFrame) else np.array(x[at])


def _one_by_one(case: Case, rows: Any) -> list:
    return [asked(case, case.owned.labels, rows_at(rows, [k]))[0] for k in range(len(rows))]


def _at_once(case: Case, rows: np.ndarray) -> Any:
    return asked(case, case.owned.labels, rows_at(case.x, rows)) if len(rows) else []


def _probabilities(case: Case, e: Explanation, found: np.ndarray, rows: Any) -> list[str]:
    if case.owned.proba is None:
        return []
    proba = np.asarray(asked(case, case.owned.proba, rows), dtype=float)
    off = np.abs(proba - e.counterfactual_proba[found]).max(axis=1)
    out = [f"line {found[k]}: probabilities off by {off[k]:.2g}" for k in np.flatnonzero(off > case.kind.near)]
    if case.intervals is not None:
        out += [
            f"line {line}: probabilities {proba[k]}, asked for {case.intervals[int(e.row[line])]}"
            for k, line in enumerate(found)
            if not is_inside(case, e, line, proba[k])
        ]
    least = case.search.get("min_proba")
    if least is not None:
        place = [e.classes.tolist().index(label) for label in e.counterfactual_class[found].tolist()]
        own = proba[np.arange(len(found)), place]
        out += [
            f"line {found[k]}: probability {own[k]:.4f} below {least}"
            for k in np.flatnonzero(own < least - case.kind.near)
        ]
    return out


def _alone(case: Case, explainer: Any, e: Explanation, given: Any) -> list[str]:
    """One row alone gets the status and class it got in the batch, in the library of its batch and in pandas.

    Further answers differ from the first, which for models with noise is the same only up to that noise.
    """
    if case.budget is not None or case.single is not None or len(case.x) < 2 or case.again:
        return []
    at = min(case.bad, default=case.seed % len(case.x))
    target = case.target[[at]] if isinstance(case.target, np.ndarray) else case.target
    target = case.target.iloc[[at]] if isinstance(case.target, pd.Series) else target
    lines = np.flatnonzero(e.row == at)
    count = len(lines) if explainer.fitted_.noise[0][1].lead == 0 else 1
    batch = [(e.status[i], e.counterfactual_class[i]) for i in lines[:count]]
    rows = {"pandas": rows_at(case.x, [at])}
    if case.library != "pandas":
        rows[case.library] = given.slice(at, 1)
    problems = []
    for library, row in rows.items():
        single = explainer.explain(row, target=target, **options(case))
        alone = list(zip(single.status, single.counterfactual_class, strict=True))[:count]
        problems += [] if batch == alone else [f"row {at}: {batch} in the batch, {alone} alone ({library})"]
    return problems


def _written(e: Explanation) -> list[str]:
    """The result can be printed, tabulated, sliced, copied and written as JSON."""
    repr(e), e.to_frame(), e.changes(), copy.deepcopy(e), e[0], e._repr_html_()
    again = Explanation.from_json(e.to_json())
    same = np.array_equal(again.status, e.status) and fingerprint(again.counterfactual) == fingerprint(e.counterfactual)
    return [] if same else ["JSON does not come back as it was"]
