"""Frames of unusual dtypes, and models of the user's own classes, come back from a file and answer as before."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from saved_cases import content

from cfproto_plugin import CounterfactualExplainer

N = 90
load = CounterfactualExplainer.load


def two(scores):
    p = 1 / (1 + np.exp(-2 * np.asarray(scores, dtype=float)))
    return np.stack([1 - p, p], axis=1)


def nullable(rng):
    frame = pd.DataFrame(
        {
            "a": pd.array(rng.normal(size=N).round(2), dtype="Float64"),
            "count": pd.array(rng.integers(0, 50, N), dtype="Int32"),
            "flag": pd.array(rng.random(N) < 0.5, dtype="boolean"),
            "text": pd.array(rng.choice(["x", "y", "ß"], N), dtype="string"),
        }
    )
    for row, name in enumerate(frame.columns, start=3):
        frame.loc[row, name] = pd.NA
    return frame


def categories(rng):
    return pd.DataFrame(
        {
            "a": rng.normal(size=N).round(2),
            "unused": pd.Categorical(rng.choice(["a", "b"], N), categories=["zz", "b", "a", "never"]),
            "ordered": pd.Categorical(rng.choice(["lo", "hi"], N), categories=["lo", "mid", "hi"], ordered=True),
            "numbers": pd.Categorical(rng.choice([1, 5, 9], N)),
            "intervals": pd.cut(rng.normal(size=N), 4),
        }
    )


def times(rng):
    days = pd.to_timedelta(rng.integers(0, 900, N), unit="D")
    frame = pd.DataFrame(
        {"a": rng.normal(size=N).round(2), "day": pd.Timestamp("2021-01-01", tz="Europe/Berlin") + days}
    )
    frame["age"] = pd.to_timedelta(rng.integers(0, 900, N), unit="h")
    frame["month"] = pd.period_range("2020-01", periods=N, freq="M")
    return frame.set_index(pd.date_range("2020", periods=N, freq="h", tz="UTC"))


def names(rng):
    frame = pd.DataFrame(rng.normal(size=(N, 2)).round(2), index=np.zeros(N, dtype=int))
    frame.columns = pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")])
    return frame


def arrow(rng):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": rng.normal(size=N).round(2), "k": rng.choice(["u", "v"], N), "z": rng.integers(0, 5, N)})
    return frame.convert_dtypes(dtype_backend="pyarrow")


def polars(rng):
    pl = pytest.importorskip("polars")
    return pl.DataFrame(
        {
            "a": rng.normal(size=N).round(2),
            "enum": pl.Series(rng.choice(["u", "v"], N), dtype=pl.Enum(["w", "v", "u"])),
            "category": pl.Series(rng.choice(["q", "r"], N), dtype=pl.Categorical),
            "small": pl.Series(rng.integers(0, 200, N), dtype=pl.UInt8),
            "day": pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, 1) + pl.duration(days=N - 1), eager=True),
        }
    )


def by_first_column(rows):
    first = rows.iloc[:, 0].astype(float).fillna(0) if hasattr(rows, "iloc") else rows.to_series(0)
    return two(first.to_numpy())


@pytest.mark.parametrize("make", [nullable, categories, times, names, arrow, polars])
@pytest.mark.parametrize("name", ["saved", "saved.zip"])
def test_a_frame_of_unusual_dtypes_comes_back_and_answers_the_same(tmp_path, make, name):
    frame = make(np.random.default_rng(0))
    explainer = CounterfactualExplainer(by_first_column).fit(frame)
    explainer.save(tmp_path / name, model="reference")
    again = load(tmp_path / name, by_first_column)
    assert content(again.explain(frame[:6])) == content(explainer.explain(frame[:6]))


OWN = """
    import sys
    import numpy as np
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from cfproto_plugin import CounterfactualExplainer


    class Mine(TransformerMixin, BaseEstimator):
        def __init__(self, k=2):
            self.k = k

        def fit(self, X, y=None):
            self.mean_ = X.mean(axis=0)
            return self

        def transform(self, X):
            return (X - self.mean_) * self.k


    x = np.random.default_rng(0).normal(size=(60, 3))
    model = make_pipeline(Mine(), LogisticRegression()).fit(x, x[:, 0] > 0)
    explainer = CounterfactualExplainer(model).fit(x)
    saved = explainer.save(sys.argv[1])
    assert saved.trusted == ("__main__.Mine",), saved
    again = CounterfactualExplainer.load(sys.argv[1], trusted=saved.trusted)
    assert (again.explain(x[:3]).counterfactual == explainer.explain(x[:3]).counterfactual).all()
"""


@pytest.mark.needs("skops")
def test_a_class_of_a_script_is_restored_where_it_is_and_named_where_it_is_not(tmp_path):
    path = tmp_path / "a.zip"
    (tmp_path / "script.py").write_text(textwrap.dedent(OWN), encoding="utf-8")
    subprocess.run([sys.executable, tmp_path / "script.py", path], check=True, cwd=tmp_path)
    with pytest.raises(ValueError, match=r"pass trusted=\['__main__.Mine'\]"):
        load(path)
    with pytest.raises(ValueError, match=r"has no attribute 'Mine'. If you have it, pass model="):
        load(path, trusted=["__main__.Mine"])
