"""Thirty public tables: raw columns, missing cells, a one-hot pipeline, a forest and XGBoost.

Every row gets an answer that the pipeline itself confirms; `fuzz/check.py` says what is looked at.
"""

from __future__ import annotations

import pytest
from fuzz.check import run
from fuzz.tables import MODELS, NAMES, case_of

absent = pytest.mark.skipif(
    not NAMES, reason="needs the thirty tables: set CFPROTO_DATA to a folder that holds tables/"
)
pytestmark = [pytest.mark.data, pytest.mark.needs("xgboost"), absent, pytest.mark.filterwarnings("ignore")]


def check(name: str, model: str, rows: int) -> None:
    problems, statuses = run(case_of(name, model, rows))
    assert not problems, problems[:5]
    assert statuses == {"found": rows}


def test_there_are_thirty_tables():
    assert len(NAMES) == 30


@pytest.mark.parametrize(("name", "model"), [(name, list(MODELS)[at % 2]) for at, name in enumerate(NAMES)])
def test_ten_rows_of_every_table_are_answered_and_confirmed_by_the_pipeline(name, model):
    check(name, model, 10)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", NAMES)
def test_a_hundred_rows_of_every_table_are_answered_and_confirmed_by_the_pipeline(name, model):
    check(name, model, 100)
