"""The next c of the paper's bisection."""

from __future__ import annotations

import numpy as np

from cfproto_plugin.search.methods.descent import next_c

UNKNOWN = 1e10


def test_c_grows_tenfold_until_one_succeeds_and_is_bisected_after_that():
    c, low, high = np.array([1.0]), np.array([0.0]), np.array([UNKNOWN])
    seen = []
    for found in (False, False, True, True, False):
        c, low, high = next_c(c, low, high, np.array([found]))
        seen.append(c[0])
    assert seen == [10, 100, 55, 32.5, 43.75]
    assert (low[0], high[0]) == (32.5, 55)


def test_every_row_has_a_c_of_its_own():
    c, low, high = next_c(np.array([1.0, 1.0]), np.zeros(2), np.full(2, UNKNOWN), np.array([True, False]))
    assert c.tolist() == [0.5, 10]
    assert low.tolist() == [0, 1]
    assert high.tolist() == [1, UNKNOWN]
