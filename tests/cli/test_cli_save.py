"""`cfproto save`, and `cfproto explain --explainer` with what it wrote."""

from __future__ import annotations

import json
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import xgboost
from click.testing import CliRunner
from sklearn.ensemble import RandomForestClassifier

from cfproto_plugin import CounterfactualExplainer
from cfproto_plugin.cli import main

pytestmark = pytest.mark.needs("xgboost", "pandas")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of numbers and text, rows to explain, and models of it."""
    made, draw, n = tmp_path_factory.mktemp("loans"), np.random.default_rng(0), 200
    x = pd.DataFrame(
        {
            "age": draw.integers(18, 80, n),
            "zone": draw.choice(["1", "2", "3A"], n),
            "income": draw.normal(3000, 900, n).round(2),
        }
    )
    y = (x.income / 1000 + x.age / 40 > 4.3).astype(int)
    x.assign(target=y).to_csv(made / "train.csv", index=False)
    x[x.zone != "3A"][:3].to_csv(made / "rows.csv", index=False)  # alone, the zones would be read as numbers
    numbers = x.drop(columns="zone")
    numbers.assign(target=y).to_csv(made / "numbers.csv", index=False)
    numbers[:3].to_csv(made / "number-rows.csv", index=False)
    xgboost.XGBClassifier(n_estimators=10, n_jobs=1).fit(numbers, y).save_model(made / "model.json")
    categories = x.astype({"zone": "category"})
    boosted = xgboost.XGBClassifier(n_estimators=10, n_jobs=1, enable_categorical=True).fit(categories, y)
    boosted.save_model(made / "categories.json")
    joblib.dump(RandomForestClassifier(5, random_state=0).fit(numbers, y), made / "forest.joblib")
    return made


def run(*arguments):
    done = CliRunner().invoke(main, list(map(str, arguments)))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.mark.parametrize("name", ["explainer.zip", "explainer"])
def test_a_saved_explainer_gives_what_the_model_gives(folder, tmp_path, name):
    fit = [folder / "model.json", "--train", folder / "numbers.csv", "--drop", "target", "--increasing", "age"]
    rows = ["--rows", folder / "number-rows.csv", "--json"]
    saved = run("save", *fit, "-o", tmp_path / name)
    assert saved.exit_code == 0
    assert "the model is saved as model.json" in saved.stderr
    assert f"cfproto explain --explainer {tmp_path / name} --rows ROWS" in saved.stderr
    direct, later = run("explain", *fit, *rows), run("explain", "--explainer", tmp_path / name, *rows)
    assert later.exit_code == direct.exit_code == 0
    assert json.loads(later.stdout) == json.loads(direct.stdout)


def test_text_that_looks_like_numbers_stays_text(folder, tmp_path):
    fit = [folder / "categories.json", "--train", folder / "train.csv", "--drop", "target", "--categorical", "zone"]
    rows = ["--rows", folder / "rows.csv", "--json"]
    assert run("save", *fit, "-o", tmp_path / "a.zip").exit_code == 0
    direct, later = run("explain", *fit, *rows), run("explain", "--explainer", tmp_path / "a.zip", *rows)
    assert json.loads(later.stdout) == json.loads(direct.stdout)


def test_an_explainer_of_arrays_takes_a_table(folder, tmp_path):
    train = pd.read_csv(folder / "numbers.csv").drop(columns="target").to_numpy(dtype=float)
    model = xgboost.XGBClassifier()
    model.load_model(folder / "model.json")
    CounterfactualExplainer(model.get_booster()).fit(train).save(tmp_path / "a.zip", model="reference")
    done = run(
        *("explain", folder / "model.json", "--explainer", tmp_path / "a.zip"),
        *("--rows", folder / "number-rows.csv", "--json", "--limit", 2),
    )
    assert len(json.loads(done.stdout)) == 2


@pytest.mark.needs("skops")
def test_types_are_trusted_by_an_option_that_the_command_names(folder, tmp_path):
    saved = run(
        "save",
        folder / "forest.joblib",
        "--train",
        folder / "numbers.csv",
        "--drop",
        "target",
        "-o",
        tmp_path / "a.zip",
    )
    assert "--trust sklearn.tree._tree.Tree" in saved.stderr
    again = ["explain", "--explainer", tmp_path / "a.zip", "--rows", folder / "number-rows.csv"]
    refused = run(*again)
    assert refused.exit_code == 2
    assert "types that could do harm" in refused.stderr
    assert "pass --trust sklearn.tree._tree.Tree" in refused.stderr
    assert run(*again, "--trust", "sklearn.tree._tree.Tree").exit_code == 0


@pytest.mark.needs("skops")
def test_no_message_names_the_temporary_file_of_a_model(folder, tmp_path, monkeypatch):
    fit = ["--train", folder / "numbers.csv", "--drop", "target"]
    assert run("save", folder / "forest.joblib", *fit, "-o", tmp_path / "a.zip").exit_code == 0
    monkeypatch.setitem(sys.modules, "skops.io", None)
    saved = run("save", folder / "forest.joblib", *fit, "-o", tmp_path / "b.zip")
    assert "saved by reference: its .skops file needs skops" in saved.stderr
    again = run("explain", "--explainer", tmp_path / "a.zip", "--rows", folder / "number-rows.csv")
    assert f"the model of {tmp_path / 'a.zip'}" in again.stderr
    assert "cannot be loaded: its .skops file needs skops" in again.stderr


def test_a_model_that_was_left_out_is_given_again(folder, tmp_path):
    fit = ["--train", folder / "numbers.csv", "--drop", "target", "-o", tmp_path / "a.zip"]
    saved = run("save", folder / "model.json", "--reference", *fit)
    assert "the model is saved by reference" in saved.stderr
    assert f"cfproto explain MODEL --explainer {tmp_path / 'a.zip'}" in saved.stderr
    rows = ["--explainer", tmp_path / "a.zip", "--rows", folder / "number-rows.csv"]
    assert run("explain", folder / "model.json", *rows).exit_code == 0
    without = run("explain", *rows)
    assert without.exit_code == 2
    assert "pass model=" in without.stderr
    other = run("explain", folder / "forest.joblib", *rows)
    assert other.exit_code == 2
    assert "this is not the model" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--immutable", "age"], "--immutable was settled when"),
        (["--theta", "1"], "--theta was settled when"),
        (["--train", "TRAIN"], "--train was settled when"),
        (["--drop", "nothing"], "no table has such a column"),
    ],
)
def test_what_was_settled_by_save_is_refused(folder, tmp_path, arguments, words):
    run("save", folder / "model.json", "--train", folder / "numbers.csv", "--drop", "target", "-o", tmp_path / "a.zip")
    arguments = [str(folder / "numbers.csv") if each == "TRAIN" else each for each in arguments]
    rows = ["--rows", folder / "number-rows.csv"]
    done = run("explain", "--explainer", tmp_path / "a.zip", *rows, *arguments)
    assert done.exit_code == 2
    assert words in done.stderr


def test_other_columns_are_named(folder, tmp_path):
    run("save", folder / "model.json", "--train", folder / "numbers.csv", "--drop", "target", "-o", tmp_path / "a.zip")
    done = run("explain", "--explainer", tmp_path / "a.zip", "--rows", folder / "rows.csv")
    assert done.exit_code == 2
    assert "'zone', which the explainer does not have" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected MODEL and --train, or --explainer"),
        (["MODEL"], "expected MODEL and --train, or --explainer"),
        (["MODEL", "--train", "TRAIN", "--trust", "a"], "--trust is for --explainer"),
    ],
)
def test_what_is_missing_is_named(folder, arguments, words):
    places = {"MODEL": folder / "model.json", "TRAIN": folder / "numbers.csv"}
    done = run("explain", "--rows", folder / "number-rows.csv", *(places.get(each, each) for each in arguments))
    assert done.exit_code == 2
    assert words in done.stderr


def test_a_damaged_file_is_an_error_without_traceback(folder, tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK")
    done = run("explain", "--explainer", tmp_path / "a.zip", "--rows", folder / "rows.csv")
    assert done.exit_code == 2
    assert "no complete zip archive" in done.stderr
    assert "Traceback" not in done.output


def test_the_output_must_not_be_an_input(folder):
    train = folder / "numbers.csv"
    done = run("save", folder / "model.json", "--train", train, "--drop", "target", "-o", train)
    assert done.exit_code == 2
    assert "is also given as the train" in done.stderr
