"""Explainers that earlier versions saved load in this one, and give the answers that they gave."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from golden import NEEDS
from saved_cases import HANDED
from sklearn import __version__ as sklearn_version

from cfproto_plugin import CounterfactualExplainer, Explanation
from cfproto_plugin.errors import FileError
from cfproto_plugin.helpers.kinds import cells_of
from cfproto_plugin.saving import settings_of

GOLDEN = Path(__file__).parent.parent / "golden" / "explainers"
TREES = {"boosted_array", "booster_float32", "boosted_categories", "forest_with_rules", "one_hot_table"}
FILES = sorted(GOLDEN.glob("schema-*/*.zip"))


def case(path):
    needed = ["xgboost", "skops", "pandas", *filter(None, [NEEDS.get(path.stem)])]
    return pytest.param(path, marks=pytest.mark.needs(*needed), id=f"{path.parent.name}-{path.stem}")


def loaded(path, trusted):
    """The explainer, whatever versions it was saved with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return CounterfactualExplainer.load(path, **HANDED.get(path.stem, dict)(), trusted=trusted)
        except FileError as error:
            if "cannot be loaded" in str(error) and "'sklearn" in str(error):
                pytest.skip(f"scikit-learn {sklearn_version} does not read a model of the version that saved it")
            raise


def test_there_are_files_of_this_schema():
    assert len(FILES) >= 13


@pytest.mark.parametrize("path", [case(path) for path in FILES])
def test_an_explainer_of_an_earlier_version_gives_its_answers(path):
    kept = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    expected = Explanation.from_json(json.dumps(kept["explanation"]))
    explainer = loaded(path, kept["trusted"])
    found = explainer.explain(expected.original)
    assert found.status.tolist() == expected.status.tolist()
    assert found.counterfactual_class.tolist() == expected.counterfactual_class.tolist()
    if path.stem in TREES:  # the digits are those of this version: of an explainer that is fitted now
        fresh = CounterfactualExplainer(**settings_of(explainer))
        now = fresh.fit(explainer.fitted_.data).explain(expected.original)
        np.testing.assert_array_equal(cells_of(found.counterfactual), cells_of(now.counterfactual))
