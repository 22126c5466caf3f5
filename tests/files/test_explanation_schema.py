"""The JSON of explanations of every kind keeps to the published schema, and the schema refuses what is not one."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import jsonschema
import numpy as np
import pandas as pd
import pytest
import saved_cases

from cfproto_plugin import CounterfactualExplainer, Explanation, Features
from cfproto_plugin.explanation import FORMAT

SCHEMA = Explanation.json_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def assert_valid(explanation):
    VALIDATOR.validate(json.loads(explanation.to_json()))


@pytest.fixture(scope="module")
def explanation():
    explainer, rows = saved_cases.function()
    return explainer.explain(rows, n=2)


def test_the_schema_is_a_schema_and_of_this_format():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["format"] == {"const": FORMAT}


def test_every_field_is_described(explanation):
    assert set(SCHEMA["properties"]) == set(json.loads(explanation.to_json()))


@pytest.mark.needs("xgboost", "polars", "pyarrow")
@pytest.mark.parametrize("case", saved_cases.TABLES)
def test_explanations_of_every_kind_keep_to_the_schema(case):
    explainer, rows = case()
    assert_valid(explainer.explain(rows))


def test_rows_without_an_answer_and_slices_keep_to_the_schema():
    x = saved_cases.numbers()[0]
    explainer = CounterfactualExplainer(saved_cases.by_first, features=Features(immutable=[0])).fit(x)
    found = explainer.explain(np.vstack([x[:2], np.full(4, np.nan)]), n=2)
    assert {"not_found", "infeasible", "error"} & set(found.status)
    assert_valid(found)
    assert_valid(found[0])
    assert_valid(found[:0])


def test_images_keep_to_the_schema():
    images = np.random.default_rng(0).normal(size=(60, 3, 3, 1)).astype(np.float32)

    def bright(x):
        p = 1 / (1 + np.exp(-np.asarray(x, dtype=float).reshape(len(x), -1).sum(axis=1)))
        return np.stack([1 - p, p], axis=1)

    assert_valid(CounterfactualExplainer(bright).fit(images).explain(images[:2]))


def test_odd_labels_index_and_cells_keep_to_the_schema(explanation):
    frame = pd.DataFrame(
        {
            "date": [dt.date(2026, 1, 2), None],
            "decimal": [Decimal("1.50"), Decimal(2)],
            "period": pd.period_range("2026-01", periods=2, freq="M"),
            "interval": pd.arrays.IntervalArray.from_tuples([(0, 1), (1, 2)]),
            "zoned": pd.to_datetime(["2026-01-01", "2026-01-02"]).tz_localize("Europe/Berlin"),
            "nullable": pd.array([1, None], dtype="Int64"),
            "text": pd.array(["a", None], dtype="string"),
            "bytes": [b"a", b"b"],
        }
    )
    frame.index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", None])
    made = {name: getattr(explanation[:2], name) for name in Explanation.__dataclass_fields__}
    made |= {"original": frame, "counterfactual": frame, "meta": {**explanation.meta, "more": {1: (2.0, np.inf)}}}
    assert_valid(Explanation(**made))


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.pop("status"),
        lambda found: found.update(format="cfproto-explanation/2"),
        lambda found: found.update(more=1),
        lambda found: found["status"]["data"].__setitem__(0, "maybe"),
        lambda found: found["distance"].update(dtype="<i8"),
        lambda found: found["distance"]["data"].__setitem__(0, "far"),
        lambda found: found["row"]["data"].__setitem__(0, -1),
        lambda found: found["original"].update({"$type": "pickle"}),
        lambda found: found["original"].update(shape=[-1]),
        lambda found: found["how"]["data"].__setitem__(0, {"$type": "how", "data": {"code": "x"}}),
        lambda found: found["meta"].update(seed="x"),
    ],
)
def test_what_is_no_explanation_is_refused_by_the_schema(explanation, change):
    found = json.loads(explanation.to_json())
    assert VALIDATOR.is_valid(found)
    change(found)
    assert not VALIDATOR.is_valid(found)
