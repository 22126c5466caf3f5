from __future__ import annotations

import numpy as np
import pytest

from cfproto_plugin.search.objective.fista import FistaState, Schedule, soft_threshold, step, trajectory
from cfproto_plugin.search.objective.terms import Distance, Evaluation, Sum

PLAIN = Schedule(beta=0.1, learning_rate=0.05, steps=50, momentum=False, clip=1000.0)


def run(target, x0, schedule, lower=-10.0, upper=10.0, **limits):
    bounds = np.full_like(x0, lower), np.full_like(x0, upper)
    return list(trajectory(lambda rows: Distance(target[rows], 3.0), x0, *bounds, schedule, **limits))


def by_hand(target, x0, schedule, lower=-10.0, upper=10.0):
    """The iteration as the paper writes it, one row and one number at a time."""
    iterates = []
    for goal, origin in zip(target.ravel(), x0.ravel(), strict=True):
        x = y = origin
        for i in range(schedule.steps):
            rate = schedule.learning_rate * (1 - i / schedule.steps) ** 0.5
            u = y - rate * max(-schedule.clip, min(schedule.clip, 6.0 * (y - goal)))
            new = (
                u - schedule.beta
                if u - origin > schedule.beta
                else u + schedule.beta
                if u - origin < -schedule.beta
                else origin
            )
            new = max(lower, min(upper, new))
            momentum = (i + 1) / (i + 4) if schedule.momentum else 0.0
            y = max(lower, min(upper, new + momentum * (new - x)))
            x = new
            iterates.append(x)
    return np.array(iterates).reshape(x0.size, schedule.steps).T.reshape(schedule.steps, *x0.shape)


@pytest.mark.parametrize("momentum", [False, True])
@pytest.mark.parametrize("clip", [1000.0, 2.5])
def test_iterates_are_those_of_the_papers_formula(momentum, clip):
    rng = np.random.default_rng(0)
    target, x0 = rng.normal(size=(4, 3)) * 3, rng.uniform(-1, 1, size=(4, 3))
    schedule = PLAIN._replace(momentum=momentum, clip=clip)
    expected = by_hand(target, x0, schedule, -1.5, 1.5)
    got = np.broadcast_to(x0, expected.shape).copy()  # a row that left the batch stays where it started
    for block in run(target, x0, schedule, -1.5, 1.5):
        got[block.first - 1 : block.first - 1 + len(block.x), block.rows] = block.x
    assert np.allclose(got, expected, atol=1e-12)
    assert not np.allclose(got, x0)


def test_soft_threshold_minimises_its_formula():
    z, x0, beta = np.array([2.0, 0.05, -1.0]), np.array([0.5, 0.0, 0.0]), 0.1
    u = np.linspace(-3, 3, 60001)[:, None]
    best = u[(0.5 * (u - z) ** 2 + beta * np.abs(u - x0)).argmin(axis=0), 0]
    assert np.allclose(soft_threshold(z, x0, beta), best, atol=1e-4)
    assert soft_threshold(z, x0, beta)[1] == x0[1]


def test_a_row_that_rests_at_its_start_leaves_the_batch_and_the_others_go_on():
    x0 = np.zeros((3, 2))
    target = np.array([[5.0, 5.0], [0.01, 0.01], [4.0, -4.0]])
    asked = []

    def objective_for(rows):
        asked.append(len(rows))
        return Distance(target[rows], 3.0)

    bounds = np.full_like(x0, -9), np.full_like(x0, 9)
    blocks = list(trajectory(objective_for, x0, *bounds, PLAIN))
    assert asked == [3, 2]
    last = {int(row): block.x[-1, i] for block in blocks for i, row in enumerate(block.rows)}
    assert np.array_equal(last[1], x0[1])
    expected = by_hand(target[[0, 2]], x0[[0, 2]], PLAIN)
    assert np.allclose([last[0], last[2]], expected[-1])


def test_probabilities_belong_to_the_iterates_they_are_yielded_with():
    def objective_for(rows):
        def term(z):
            base = Distance(np.full((len(rows), 2), 5.0), 1.0)(z)
            return Evaluation(base.value, base.gradient, np.stack([z[:, 0], -z[:, 0]], axis=1))

        return Sum([term])

    x0 = np.zeros((2, 2))
    blocks = list(trajectory(objective_for, x0, x0 - 9, x0 + 9, PLAIN))
    known = [block for block in blocks if block.proba is not None]
    assert sum(len(block.x) for block in known) == PLAIN.steps - 1
    for block in known:
        assert np.array_equal(block.proba[:, :, 0], block.x[:, :, 0])


def test_memory_is_bounded_by_blocks():
    x0 = np.zeros((3, 2))
    target = np.full((3, 2), 5.0)
    whole = np.concatenate([block.x for block in run(target, x0, PLAIN)])
    blocks = run(target, x0, PLAIN, cells=30)
    assert max(len(block.x) for block in blocks) <= 5
    assert [block.first for block in blocks] == np.cumsum([1, *(len(block.x) for block in blocks[:-1])]).tolist()
    assert np.array_equal(np.concatenate([block.x for block in blocks]), whole)


def test_search_stays_in_float32():
    x0 = np.zeros((2, 2), dtype=np.float32)
    state = step(FistaState(x0, x0, 0), x0 + 1, x0, x0 - 1, x0 + 1, PLAIN._replace(momentum=True))
    assert state.x.dtype == state.y.dtype == np.float32


def test_out_of_time_stops_the_iteration():
    x0 = np.zeros((1, 2))
    calls = iter([False] * 5 + [True] * 100)
    blocks = list(
        trajectory(lambda rows: Distance(x0[rows] + 5, 3.0), x0, x0 - 9, x0 + 9, PLAIN, is_over=lambda: next(calls))
    )
    assert sum(len(block.x) for block in blocks) == 5
