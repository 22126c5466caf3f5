"""Explainers of every kind, to be saved in one process and loaded in another, and the process that loads them.

`python saved_cases.py FOLDER` loads every explainer in the folder, explains the rows of the explanation beside it, and
prints the fields that are not the same, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig

COMPARED = (
    *("counterfactual", "status", "message", "original_class", "counterfactual_class", "prototype_class", "classes"),
    *("original_proba", "counterfactual_proba", "distance", "margin", "objective", "typicality", "stability", "how"),
)


def enough_income(rows):
    return np.asarray(rows["income"]) >= 1000


def by_first(x):
    p = 1 / (1 + np.exp(-3 * np.asarray(x, dtype=float)[:, 0]))
    return np.stack([1 - p, p], axis=1)


def people(n=240):
    """Numbers, whole numbers, text, dates, missing values and a rule that they follow."""
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.normal(3000, 900, n).round(2),
            "debt": rng.gamma(2, 400, n).round(2),
            "job": rng.choice(["clerk", "engineer", "none", "teacher"], n),
            "home": pd.Categorical(rng.choice(["owned", "rented"], n)),
            "member": rng.random(n) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 2000, n), unit="D"),
        }
    )
    score = frame["income"] / 1000 - frame["debt"] / 500 + (frame["job"] == "engineer") + (frame["home"] == "owned")
    return frame, np.where(score > score.median(), "granted", "refused")


def pipeline(numbers, texts):
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    parts = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), texts))
    return make_pipeline(parts, LogisticRegression())


def numbers(n=240):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 4)).round(3)
    return x, (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(int)


def boosted_array():
    from xgboost import XGBClassifier

    x, y = numbers()
    model = XGBClassifier(n_estimators=20, n_jobs=1).fit(x, y)
    return CounterfactualExplainer(model, features=Features(immutable=[3], ranges={0: (-1, 2)})).fit(x), x[:4]


def booster_float32():
    from xgboost import XGBClassifier

    x, y = numbers()
    x = x.astype(np.float32)
    model = XGBClassifier(n_estimators=20, n_jobs=1).fit(x, y).get_booster()
    return CounterfactualExplainer(model, search=SearchConfig.few()).fit(x), x[:4]


def boosted_categories():
    from xgboost import XGBClassifier

    frame, y = people()
    frame = frame[["age", "income", "debt", "home"]]
    model = XGBClassifier(n_estimators=20, n_jobs=1, enable_categorical=True).fit(frame, y == "granted")
    return CounterfactualExplainer(model, distance="mvdm").fit(frame), frame[:4]


def forest_with_rules():
    from sklearn.ensemble import RandomForestClassifier

    frame, y = people()
    frame = frame[["age", "income", "debt"]]
    rules = Features(
        increasing=["age"],
        step={"debt": 10},
        weights={"income": 2.0},
        relations=["debt <= 2*income", enough_income],
    )
    model = RandomForestClassifier(15, random_state=0).fit(frame, y)
    return CounterfactualExplainer(model, features=rules).fit(frame), frame[:4].set_index(np.array(list("abcd")))


def pandas_pipeline():
    frame, y = people()
    frame = frame[["age", "income", "debt", "job", "home", "member"]]
    model = pipeline(["age", "income", "debt"], ["job", "home", "member"]).fit(frame, y)
    rules = Features(immutable="age", allowed={"job": ("clerk", "engineer", "teacher")}, relations="job != 'none'")
    return CounterfactualExplainer(model, features=rules).fit(frame), frame[:5]


def dates_and_missing():
    frame = people()[0][["income", "debt", "since"]]
    frame.loc[::7, "debt"] = np.nan

    rules = Features(ranges={"since": ("2020-06-01", "2025-01-01")})
    return CounterfactualExplainer(by_dates, features=rules).fit(frame), frame[:4]


def by_dates(rows):
    days = (rows["since"] - np.datetime64("2020-01-01")).dt.days.to_numpy() / 1000
    p = 1 / (1 + np.exp(-(np.asarray(rows["income"]) / 1000 - rows["debt"].fillna(800).to_numpy() / 500 - days)))
    return np.stack([1 - p, p], axis=1)


def polars_pipeline():
    import polars as pl

    frame, y = people()
    frame = pl.from_pandas(frame[["age", "income", "debt", "job"]])
    model = pipeline(["age", "income", "debt"], ["job"]).fit(frame, y)
    return CounterfactualExplainer(model, distance="abdm-mvdm").fit(frame), frame[:4]


def arrow_boosted():
    import pyarrow as pa
    from xgboost import XGBClassifier

    frame, y = people()
    frame = frame[["age", "income", "debt"]]
    model = XGBClassifier(n_estimators=15, n_jobs=1).fit(frame, y == "granted")
    return CounterfactualExplainer(model).fit(pa.Table.from_pandas(frame)), pa.Table.from_pandas(frame[:4])


def three_classes():
    from sklearn.datasets import load_wine
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    x, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), SVC()).fit(x[:, :5], np.array(["a", "b", "c"])[y])
    return CounterfactualExplainer(model, search=SearchConfig(min_typicality=0.2)).fit(x[:, :5]), x[:4, :5]


def function():
    x, _ = numbers()
    return CounterfactualExplainer(by_first).fit(x), x[:4]


def one_hot_table():
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(2)
    colour = np.eye(3)[rng.integers(0, 3, 200)]
    x = np.column_stack([rng.normal(size=200), colour, rng.integers(0, 4, 200)])
    y = (x[:, 0] + x[:, 2] > 0.5).astype(int)
    rules = Features(one_hot={"colour": (1, 2, 3)}, categorical=[4])
    return CounterfactualExplainer(DecisionTreeClassifier(max_depth=4).fit(x, y), features=rules).fit(x), x[:4]


def net(layers, *, softmax=True):
    """An untrained torch network of the shape of these layers."""
    import torch

    parts = []
    for number, (a, b) in enumerate(layers):
        parts += [torch.nn.Linear(a, b), torch.nn.ReLU()] if number + 1 < len(layers) else [torch.nn.Linear(a, b)]
    return torch.nn.Sequential(*parts, *([torch.nn.Softmax(1)] if softmax else []))


HANDED = {  # by case: what is passed to load
    "forest_with_rules": lambda: {"functions": {"enough_income": enough_income}},
    "dates_and_missing": lambda: {"model": by_dates},
    "function": lambda: {"model": by_first},
    "torch_table": lambda: {"model": net([(4, 8), (8, 2)])},
    "torch_images": lambda: {
        "model": net([(64, 32), (32, 10)]),
        "encoder": net([(64, 48), (48, 12)], softmax=False),
        "autoencoder": net([(64, 48), (48, 12), (12, 48), (48, 64)], softmax=False),
    },
}
TABLES = (
    *(boosted_array, booster_float32, boosted_categories, forest_with_rules, pandas_pipeline, dates_and_missing),
    *(polars_pipeline, arrow_boosted, three_classes, function, one_hot_table),
)


def content(explanation):
    found = json.loads(explanation.to_json())
    return {name: found[name] for name in COMPARED}


def main(folder):
    differences = {}
    for path in sorted(folder.glob("*.expected.json")):
        case = path.name.partition(".")[0]
        expected = Explanation.from_json(path.read_text(encoding="utf-8"))
        trusted = json.loads((folder / f"{case}.trusted.json").read_text(encoding="utf-8"))
        handed = HANDED.get(case, dict)()
        (place,) = (each for each in (folder / case, folder / f"{case}.zip") if each.exists())
        explainer = CounterfactualExplainer.load(place, **handed, trusted=trusted)
        now, then = content(explainer.explain(expected.original)), content(expected)
        differences[case] = [name for name in COMPARED if now[name] != then[name]]
    sys.stdout.write(json.dumps(differences))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
