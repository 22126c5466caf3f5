"""`cfproto explain --dates`: dates, which a CSV holds as text."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from cfproto_plugin.cli import main


def years(frame):
    """What the model reads; a function of this module, because the model is loaded from a file."""
    return frame.assign(since=(pd.Timestamp("2026-01-01") - frame["since"]).dt.days / 365)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("dates")
    rng = np.random.default_rng(0)
    since = pd.Timestamp("2016-01-01") + pd.to_timedelta(rng.integers(0, 3000, 200), unit="D")
    frame = pd.DataFrame({"since": since, "income": rng.normal(size=200).round(2)})
    model = make_pipeline(FunctionTransformer(years), LogisticRegression())
    joblib.dump(model.fit(frame, years(frame)["since"] + frame["income"] > 6), path / "model.joblib")
    frame.to_csv(path / "train.csv", index=False)
    frame[:6].to_csv(path / "rows.csv", index=False)
    return path


def explain(folder, *options):
    files = ["explain", folder / "model.joblib", "--train", folder / "train.csv", "--rows", folder / "rows.csv"]
    return CliRunner().invoke(main, list(map(str, [*files, "-o", folder / "answers.csv", *options])))


def test_named_columns_are_dates_for_the_model_and_the_rules_and_text_in_the_answers(folder):
    result = explain(folder, "--dates", "since", "--increasing", "since")
    assert result.exit_code == 0, result.output
    before, after = pd.read_csv(folder / "rows.csv"), pd.read_csv(folder / "answers.csv")
    found = after["status"] == "found"
    assert found.any()
    assert after["since"][found].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
    assert (after["since"][found] >= before["since"][found]).all()
    model = joblib.load(folder / "model.joblib")
    asked = model.predict(after[["since", "income"]].assign(since=pd.to_datetime(after["since"])))
    assert (asked[found] == after["counterfactual_class"][found]).all()


def test_a_column_that_is_absent_or_no_date_is_named(folder):
    assert "--dates sinse: " in explain(folder, "--dates", "sinse").stderr
    assert "Did you mean 'since'?" in explain(folder, "--dates", "sinse").stderr
    (folder / "odd.csv").write_text("since,income\n2020-01-01,1\nlast week,2\n", encoding="utf-8")
    said = explain(folder, "--dates", "since", "--train", folder / "odd.csv").stderr
    assert "--dates since: a cell of " in said
    assert "last week" in said
