"""`cfproto check`: one line per check, and an exit status that means something."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from distributions import Distributions

from cfproto_plugin.cli import main

SOURCE = """
import numpy as np
from cfproto_plugin.distances import ABDM
from cfproto_plugin.prototypes import KDTreePrototypes

X, Y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 3
number = 3


class Adapter:
    classes = np.array([0, 1])

    def predict(self, x):
        p = 1 / (1 + np.exp(-x[:, 0]))
        return np.stack([1 - p, p], axis=1)


class Broken(Adapter):
    classes = np.array([1, 1])

    def thresholds(self):
        raise RuntimeError("no trees")


class Shouting(KDTreePrototypes):
    def fit(self, z, labels):
        print("fitting")
        return super().fit(z, labels)


class Holder:
    @staticmethod
    def adapter():
        return Adapter(), X


def good():
    print("training")
    return Adapter(), X


def broken():
    return Broken(), X


def encoder():
    return (lambda x: x * 2), X


def provider():
    return Shouting(), X, Y


def distance():
    return ABDM(), np.stack([Y, Y[::-1]], axis=1), [3, 3], np.zeros((30, 0)), Y


def raising():
    return {}["weights"]


def no_tuple():
    return X


def alone():
    return (X,)


def few_rows():
    return Adapter(), X[:2]


def unclaimed():
    return object(), X


def too_many():
    return Adapter(), X, X, X


def needs(argument):
    return Adapter(), X
"""


def line_of(text):
    return next(number for number, line in enumerate(SOURCE.splitlines(), start=1) if text in line)


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """A module `cfproto_test_examples` in the current directory, which is not on the path."""
    (tmp_path / "cfproto_test_examples.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield
    sys.modules.pop("cfproto_test_examples", None)


def check(function, *options):
    target = function if ":" in function or not function else f"cfproto_test_examples:{function}"
    return CliRunner().invoke(main, ["check", target, *options])


def test_every_check_is_a_line_and_all_pass(examples):
    result = check("good")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[0] == "training"
    assert result.output.splitlines()[1] == "adapter cfproto_test_examples.Adapter"
    assert "ok       rows are probabilities of at least two classes\n" in result.output
    assert "skipped  pullback agrees with random direction differences: the adapter has no vjp(x)\n" in result.output
    assert "skipped  largest score is the label: the adapter has no labels(x)\n" in result.output
    assert result.output.splitlines()[-1] == "8 ok, 15 skipped"


def test_a_failed_check_is_shown_with_its_reason_and_the_status_is_1(examples):
    result = check("broken")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    (failed,) = (line for line in lines if line.startswith("failed   classes are distinct and as many as columns:"))
    assert "has the label 1 twice; expected 2 different labels" in failed
    (failed,) = (line for line in lines if line.startswith("failed   thresholds are sorted for every column:"))
    assert "no trees" in failed
    assert "ok       output is deterministic" in lines
    assert lines[-1] == "7 ok, 3 failed, 13 skipped"


def test_json_says_the_same_and_holds_nothing_else(examples):
    found = json.loads(check("broken", "--json").stdout)
    assert (found["target"], found["subject"]) == (
        "cfproto_test_examples:broken",
        "adapter cfproto_test_examples.Broken",
    )
    assert found["ok"] is False
    status = {item["check"]: (item["status"], item["reason"]) for item in found["checks"]}
    assert status["output is deterministic"] == ("ok", "")
    word, why = status["classes are distinct and as many as columns"]
    assert word == "failed"
    assert "has the label 1 twice" in why
    assert status["model parameters are untouched"] == ("skipped", "the model was not given")
    loud = check("good", "--json")
    assert json.loads(loud.stdout)["ok"] is True
    assert "training" in loud.stderr
    assert json.loads(check("provider", "--json").stdout)["ok"] is True


@pytest.mark.parametrize(
    ("function", "first"),
    [
        ("provider", "prototype provider Shouting"),
        ("distance", "distance ABDM"),
        ("Holder.adapter", "adapter cfproto_test_examples.Adapter"),
    ],
)
def test_providers_and_distances_are_checked_too(examples, function, first):
    result = check(function)
    assert result.exit_code == 0, result.output
    assert first in result.output.splitlines()
    assert "failed" not in result.output


def test_role_and_tolerance_can_be_chosen(examples):
    assert check("encoder").exit_code == 1
    result = check("encoder", "--role", "transform", "--atol", "0.1")
    assert result.exit_code == 0, result.output
    assert "rows are probabilities of at least two classes: its role is transform" in result.output


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("raising", f"raised KeyError: 'weights' (cfproto_test_examples.py:{line_of('weights')})"),
        ("no_tuple", "returned ndarray; expected a tuple such as (model, rows)"),
        ("alone", "returned tuple; expected a tuple such as (model, rows)"),
        ("few_rows", "cannot be checked: the checks need an array or DataFrame of at least 3 rows"),
        ("unclaimed", "cannot be checked: no adapter claims builtins.object"),
        ("too_many", "came with 3 items; expected one of"),
        ("needs", "raised TypeError: needs() missing 1 required positional argument"),
        ("number", "cfproto_test_examples:number is int; expected a function without arguments"),
        ("goood", "cfproto_test_examples has no 'goood'; it has Adapter, Broken, Shouting, Holder, good, broken"),
        ("cfproto_test_lost:good", "cfproto_test_lost cannot be imported: ModuleNotFoundError: No module named"),
        ("lost.test_plugin:example", "run the command in the plugin's folder, the one with lost/test_plugin.py"),
        ("json:", "'json:' names no function; expected MODULE:FUNCTION"),
        (":good", "':good' names no function; expected MODULE:FUNCTION"),
    ],
)
def test_what_cannot_be_run_is_said_and_the_status_is_2(examples, target, said):
    result = check(target)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_a_folder_that_is_found_instead_of_a_module_is_named(examples, tmp_path):
    (tmp_path / "cfproto_test_folder").mkdir()
    result = check("cfproto_test_folder:forest")
    assert result.exit_code == 2
    folder = tmp_path / "cfproto_test_folder"
    said = f"cfproto_test_folder (the folder {folder}; a file cfproto_test_folder.py was not found) has no 'forest'"
    assert said in result.stderr


def test_a_module_with_a_mistake_names_the_line(examples, tmp_path):
    (tmp_path / "cfproto_test_mistake.py").write_text("x = 1\ny = x / 0\n", encoding="utf-8")
    said = check("cfproto_test_mistake:x").stderr
    assert "cannot be imported: ZeroDivisionError: division by zero (cfproto_test_mistake.py:2)\n" in said


def test_a_model_is_found_by_its_plugin_and_its_plugin_is_named(tmp_path):
    distribution = Distributions(tmp_path)
    source = """
        class Adapter:
            def __init__(self, model, **options): self.model = model
            def predict(self, x): return self.model.ask(x)
        @hookimpl
        def cfproto_adapters(): return [AdapterSpec("acme", ("acme_models:Net",), Adapter)]
    """
    distribution("acme-cf", "2.0", acme=source)
    (tmp_path / "acme_models.py").write_text(
        "import numpy as np\n"
        "class Net:\n    def ask(self, x): return np.full((len(x), 2), 0.5)\n"
        "def net(): return Net(), np.zeros((5, 2))\n",
        encoding="utf-8",
    )
    lines = distribution.cfproto("check", "acme_models:net").splitlines()
    assert lines[0] == "adapter 'acme' of plugin acme (acme-cf 2.0) for acme_models.Net"
    assert "ok       the spec claims its own model" in lines
    assert "ok       loading imports no framework" in lines
    assert "ok       model parameters are untouched" in lines


def test_the_installed_command_finds_modules_of_the_current_directory(examples, tmp_path):
    command = [sys.executable, "-P", "-c", "from cfproto_plugin.cli import main; main()", "check"]
    done = subprocess.run(
        [*command, "cfproto_test_examples:good"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "8 ok, 15 skipped"


def test_help_shows_an_example_and_what_the_status_means():
    for command, words in {
        "check": (
            "cfproto check my_models:forest",
            "model, rows",
            "Exit status: 0 every check passed, 1 a check failed",
        ),
        "new-plugin": ("cfproto new-plugin cfproto-acme", "Exit status: 0 written, 2 "),
        "plugins": ("CFPROTO_DISABLE_PLUGINS=keras,torch cfproto plugins", "Exit status: 0 every plugin loads, 1 "),
    }.items():
        text = CliRunner().invoke(main, [command, "--help"]).output
        assert all(word in text for word in words), text
