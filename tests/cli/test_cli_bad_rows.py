"""`cfproto explain` on rows that cannot be read or predicted."""

from __future__ import annotations

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cfproto_plugin.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A pipeline, its training table, and five rows of which three are bad."""
    path = tmp_path_factory.mktemp("bad")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200).round(2), "job": rng.choice(["baker", "cook"], 200)})
    columns = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["a"]))
    model = make_pipeline(columns, LogisticRegression()).fit(frame, frame["a"] + (frame["job"] == "cook") > 0.5)
    joblib.dump(model, path / "model.joblib")
    frame.to_csv(path / "train.csv", index=False)
    (path / "rows.csv").write_text("a,job\n1,cook\n2,cok\nmuch,cook\n,cook\n0,baker\n", encoding="utf-8")
    return path


def explain(folder, *options):
    given = [
        "explain",
        folder / "model.joblib",
        "--train",
        folder / "train.csv",
        "--rows",
        folder / "rows.csv",
        *options,
    ]
    return CliRunner().invoke(main, list(map(str, given)))


def test_bad_rows_are_written_with_their_reason_and_the_exit_status_is_one(folder):
    result = explain(folder, "-o", folder / "answers.csv")
    assert result.exit_code == 1, result.output
    answers = pd.read_csv(folder / "answers.csv")
    assert answers["status"].tolist() == ["found", "error", "error", "error", "found"]
    assert "Did you mean 'cook'?" in answers["message"][1]
    assert "row 2 holds 'much' in column 'a', which is not a number" in answers["message"][2]
    assert "row 3 is NaN in column 'a'" in answers["message"][3]
    assert answers["a"].isna().tolist() == [False, True, True, True, False]
    assert "2 of 5 rows explained" in result.stderr
    assert "row 1: error: " in result.stderr


def test_json_has_the_bad_rows_too(folder):
    result = explain(folder, "--json")
    assert result.exit_code == 1
    records = json.loads(result.stdout)
    assert [record["status"] for record in records] == ["found", "error", "error", "error", "found"]
    assert records[1]["original_class"] is None
    assert records[1]["counterfactual"] is None


def test_whole_numbers_in_a_csv_may_become_decimals_where_the_training_table_has_them(folder):
    (folder / "rows.csv").write_text("a,job\n1,cook\n0,baker\n", encoding="utf-8")
    result = explain(folder, "--json", "--immutable", "job")
    assert result.exit_code == 0, result.output
    assert any(record["counterfactual"]["a"] % 1 for record in json.loads(result.stdout))


@pytest.mark.parametrize(("cell", "good"), [("forty", False), ("", True)], ids=["text", "missing"])
def test_whole_numbers_beside_a_bad_cell_are_written_as_they_were_given(tmp_path, cell, good):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 200), "score": rng.normal(size=200).round(2)})
    holes = frame.astype(float).mask(rng.random(frame.shape) < 0.1) if good else frame
    model = HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(holes, frame["score"] > 0)
    joblib.dump(model, tmp_path / "model.joblib")
    frame.to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "rows.csv").write_text(f"age,score\n49,1.5\n{cell},-0.5\n30,-1.25\n", encoding="utf-8")
    explain(tmp_path, "-o", tmp_path / "answers.csv", "--immutable", "age")
    answers = pd.read_csv(tmp_path / "answers.csv", dtype=str)
    assert answers["status"].tolist() == ["found", "found" if good else "error", "found"]
    assert answers["age"].fillna("").tolist() == ["49", "", "30"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("1,cook,", "the line below the names has 3 cells for 2 names, 'a', 'job'"),
        ("1,cook,2,3\n1,cook", "the line below the names has 4 cells for 2 names, 'a', 'job'"),
        ("1,cook\n1,cook,2", "Expected 2 fields in line 3, saw 3"),
    ],
    ids=["comma at the end", "two too many", "a later line"],
)
@pytest.mark.parametrize("table", ["--train", "--rows"])
def test_a_line_with_more_cells_than_names_is_an_error_and_no_other_row(folder, tmp_path, table, lines, said):
    long = tmp_path / "long.csv"
    long.write_text(f"a,job\n{lines}\n", encoding="utf-8")
    result = explain(folder, table, long)
    assert result.exit_code == 2
    assert f"the table {long} cannot be read: " in result.stderr
    assert said in result.stderr
    assert "a comma at the end of a line counts as a cell" in result.stderr


def test_text_that_a_csv_gives_as_numbers_or_missing_values_is_named_where_the_model_fails(tmp_path):
    rng = np.random.default_rng(0)
    codes, answers = rng.choice(["007", "010", "NA"], 200), rng.choice(["yes", "null"], 200)
    frame = pd.DataFrame({"code": codes, "seen": answers, "a": rng.normal(size=200)})
    columns = make_column_transformer((OneHotEncoder(), ["code", "seen"]), (StandardScaler(), ["a"]))
    model = make_pipeline(columns, LogisticRegression()).fit(frame, frame["a"] + (frame["code"] == "NA") > 0.5)
    joblib.dump(model, tmp_path / "model.joblib")
    frame[:5].to_csv(tmp_path / "rows.csv", index=False)
    frame.to_csv(tmp_path / "train.csv", index=False)
    result = explain(tmp_path)
    assert result.exit_code == 2
    first = frame["code"][0]
    assert f"Cells of 'code' ({first!r}), 'seen' ('null') were read as numbers or missing values" in result.stderr
    assert "give the tables as Parquet" in result.stderr
