"""Damaged and hostile files are refused, each with its own message; nothing in them runs and memory stays bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hostile import CASES

from cfproto_plugin import CounterfactualExplainer
from cfproto_plugin.errors import CfprotoError

pytestmark = pytest.mark.needs("skops", "xgboost")
MOST_MEMORY = 150  # MB beyond what a good file takes; the largest of the hostile ones would need terabytes

MEASURE = """
import json, resource, sys
from cfproto_plugin import CounterfactualExplainer
from cfproto_plugin.errors import CfprotoError
good, *others = sys.argv[1:]
CounterfactualExplainer.load(good)
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
    from saved_cases import numbers
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
    done = subprocess.run([sys.executable, "-c", MEASURE, good, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert "loaded" not in result["found"].values()
    assert result["megabytes"] < MOST_MEMORY
    assert "hostile_module" not in result["imported"]
    assert not list(Path(tmp_path).rglob("ran"))
