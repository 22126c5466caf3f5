"""The fuzz finds nothing: a short form that meets every kind of model, and a longer one."""

from __future__ import annotations

import pytest

from . import page
from .check import run
from .draw import draw
from .models import KINDS, available

pytestmark = pytest.mark.filterwarnings("ignore")
PARTS = 6


def findings(seeds, rows):
    found = [(case, problem) for case in (draw(seed, rows) for seed in seeds) for problem in run(case)[0][:3]]
    return "\n".join(
        f"python -m tests.fuzz --seed {case.seed} --batch {rows}: {case.name}: {text}" for case, text in found
    )


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_wrong_with_a_few_rows_of_every_kind_of_model(part):
    assert not findings(range(part, len(available()), PARTS), rows=8)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_wrong_with_batches_of_every_kind_of_model(part):
    assert not findings(range(1000 + part, 1000 + 3 * len(available()), PARTS), rows=30)


def test_at_least_thirty_kinds_of_models_are_drawn():
    assert len(KINDS) >= 30


def test_the_page_shows_the_figures_of_the_results():
    assert page.PAGE.read_text() == page.page(), "run `python -m tests.fuzz --page`"
