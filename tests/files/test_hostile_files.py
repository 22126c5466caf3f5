"""Damaged and hostile files are refused, each with its own message; nothing in them runs and memory stays bounded."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hostile import CASES
from saved_cases import numbers
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer
from cfproto_plugin.errors import CfprotoError

pytestmark = pytest.mark.needs("skops", "xgboost", "polars")
MOST_MEMORY = 150  # MB beyond what a good file takes; the largest of the hostile ones would need terabytes

MEASURE = """
import json, resource, sys
from cfproto_plugin import CounterfactualExplainer
from cfproto_plugin.errors import CfprotoError
good, another, *others = sys.argv[1:]
CounterfactualExplainer.load(good)
CounterfactualExplainer.load(another)  # skops imports all of scikit-learn when it is first used
import polars
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
start, before, found = peak(), set(sys.modules), {}
for path in others:
    try:
        CounterfactualExplainer.load(path)
        found[path] = "loaded"
    except CfprotoError as error:
        found[path] = type(error).__name__
print(json.dumps({"found": found, "megabytes": peak() - start, "imported": sorted(set(sys.modules) - before)}))
"""


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    from xgboost import XGBClassifier

    x, y = numbers(120)
    model = XGBClassifier(n_estimators=5, n_jobs=1).fit(x, y)
    path = tmp_path_factory.mktemp("good") / "explainer"
    CounterfactualExplainer(model).fit(x).save(path)
    return path


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_or_hostile_file_is_refused(name, good, tmp_path):
    path = CASES[name].make(good, tmp_path / "hostile.zip")
    with pytest.raises(CfprotoError, match=CASES[name].words):
        CounterfactualExplainer.load(path)
    assert not (tmp_path / "ran").exists()


def test_what_the_hostile_files_are_made_of_loads(good, tmp_path):
    from hostile import consistent

    assert CounterfactualExplainer.load(good).fitted_ is not None
    assert CounterfactualExplainer.load(consistent(good, tmp_path / "same.zip")).fitted_ is not None


def test_there_are_at_least_forty_and_their_messages_differ(good, tmp_path):
    messages = set()
    for name, case in CASES.items():
        folder = tmp_path / name
        folder.mkdir()
        with pytest.raises(CfprotoError) as caught:
            CounterfactualExplainer.load(case.make(good, folder / "hostile.zip"))
        messages.add(str(caught.value).replace(name, ""))
    assert len(messages) >= 40


def test_all_of_them_in_one_process_take_little_memory_and_run_nothing(good, tmp_path):
    paths = []
    for name, case in CASES.items():
        folder = tmp_path / name
        folder.mkdir()
        paths.append(case.make(good, folder / "hostile.zip"))
    x, y = numbers(120)
    another = tmp_path / "another.zip"
    CounterfactualExplainer(LogisticRegression().fit(x, y)).fit(x).save(another)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, good, another, *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert "loaded" not in result["found"].values()
    assert result["megabytes"] < MOST_MEMORY
    assert "hostile_module" not in result["imported"]
    assert not list(Path(tmp_path).rglob("ran"))


@pytest.mark.slow
@pytest.mark.needs("keras")
def test_a_keras_file_with_code_or_names_of_other_modules_runs_nothing(good, tmp_path):
    import keras
    from hostile import with_model

    mark = tmp_path / "ran"
    place = str(mark)
    code = keras.layers.Lambda(lambda x: (__import__("pathlib").Path(place).touch(), x)[1])
    keras.Sequential([keras.Input((4,)), code, keras.layers.Dense(2)]).save(tmp_path / "code.keras")
    mark.unlink(missing_ok=True)  # building the model ran it
    keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]).save(tmp_path / "plain.keras")
    named = tmp_path / "named.keras"
    with zipfile.ZipFile(tmp_path / "plain.keras") as old, zipfile.ZipFile(named, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "config.json":
                content = content.replace(b'"keras.layers"', b'"hostile_module"').replace(b'"Dense"', b'"Run"')
            new.writestr(name, content)
    for source in ("code", "named"):
        content = (tmp_path / f"{source}.keras").read_bytes()
        path = with_model(good, tmp_path / f"{source}.zip", content, ".keras", "keras")
        with pytest.raises(CfprotoError, match="cannot be loaded"):
            CounterfactualExplainer.load(path)
    assert not mark.exists()
    assert "hostile_module" not in sys.modules
