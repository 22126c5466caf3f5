"""Explainers that earlier versions saved load in this one, and give the answers that are stored beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from golden import NEEDS, kept, loaded
from sklearn import __version__ as sklearn_version

from cfproto_plugin.errors import FileError
from cfproto_plugin.files.exact_json import decode
from cfproto_plugin.helpers.kinds import cells_of

GOLDEN = Path(__file__).parent.parent / "golden" / "explainers"
TREES = {
    "boosted_array",
    "booster_float32",
    "boosted_categories",
    "forest_with_rules",
    "one_hot_table",
    "arrow_boosted",
}
ROUNDING = 1e-6  # relative: what other machines may make of the answers of models that are no trees
FILES = sorted(GOLDEN.glob("schema-*/*.zip"))


def case(path):
    needed = ["xgboost", "skops", "pandas", *filter(None, [NEEDS.get(path.stem)])]
    return pytest.param(path, marks=pytest.mark.needs(*needed), id=f"{path.parent.name}-{path.stem}")


def explainer_in(path, trusted):
    try:
        return loaded(path, trusted)
    except FileError as error:
        if "cannot be loaded" in str(error) and "'sklearn" in str(error):
            pytest.skip(f"scikit-learn {sklearn_version} does not read a model of the version that saved it")
        raise


def assert_same_cells(found, expected, *, exactly):
    """Equal cells of two frames or arrays of one kind; numbers up to rounding, if not exactly."""
    assert type(found) is type(expected)
    pairs = list(zip(cells_of(found).ravel().tolist(), cells_of(expected).ravel().tolist(), strict=True))
    if not exactly:
        pairs = [pair for pair in pairs if not (isinstance(pair[0], float) and np.isclose(*pair, rtol=ROUNDING))]
    assert [pair for pair in pairs if repr(pair[0]) != repr(pair[1])] == []


def test_there_are_files_of_this_schema():
    assert len(FILES) >= 13


def test_every_file_has_its_answers():
    for folder in {path.parent for path in FILES}:
        answers = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
        assert set(answers) == {path.stem for path in FILES if path.parent == folder}


@pytest.mark.parametrize("path", [case(path) for path in FILES])
def test_an_explainer_of_an_earlier_version_gives_its_answers(path):
    trusted, then = kept(path)
    stored = json.loads((path.parent / "answers.json").read_text(encoding="utf-8"))[path.stem]
    found = explainer_in(path, trusted).explain(then.original)
    assert found.status.tolist() == then.status.tolist() == decode(stored["status"]).tolist()
    labels = found.counterfactual_class.tolist()
    assert labels == then.counterfactual_class.tolist() == decode(stored["counterfactual_class"]).tolist()
    assert_same_cells(found.counterfactual, decode(stored["counterfactual"]), exactly=path.stem in TREES)
