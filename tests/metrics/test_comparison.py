"""MMD and the two tests of several methods, on distributions where the answer is known."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from cfproto_plugin.errors import InputError
from cfproto_plugin.metrics import imq_kernel, mmd2_u, rel_multi, rel_psi
from cfproto_plugin.metrics.comparison import Estimates, _selective_p, estimate, truncation
from cfproto_plugin.metrics.kernels import h_values

EQUAL = {"east": (1.0, 0.0), "north": (0.0, 1.0), "west": (-1.0, 0.0)}  # all at the same distance from the real one


def draw(rng, means, n):
    """Samples of Gaussians with the given means, and one with mean zero."""
    return {name: rng.standard_normal((n, 2)) + mean for name, mean in means.items()}, rng.standard_normal((n, 2))


def repeat(test, means, n=60, times=200, seed=0):
    """Run a test on fresh samples many times."""
    rng = np.random.default_rng(seed)
    return [test(*draw(rng, means, n)) for _ in range(times)]


def test_imq_kernel_is_its_formula():
    x, y = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0]])
    np.testing.assert_allclose(imq_kernel(x, y), [[1], [1 / math.sqrt(26)]])
    np.testing.assert_allclose(imq_kernel(x, y, c=2), [[0.5], [1 / math.sqrt(29)]])
    with pytest.raises(InputError, match="c is 0"):
        imq_kernel(x, y, c=0)


def test_mmd_is_the_mean_over_pairs_of_different_rows():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((5, 2)), rng.standard_normal((4, 2))
    xx = np.mean([imq_kernel(x[[i]], x[[j]]) for i in range(5) for j in range(5) if i != j])
    yy = np.mean([imq_kernel(y[[i]], y[[j]]) for i in range(4) for j in range(4) if i != j])
    assert mmd2_u(x, y) == pytest.approx(xx + yy - 2 * imq_kernel(x, y).mean())
    with pytest.raises(InputError, match="1 and 4 rows"):
        mmd2_u(x[:1], y)


def test_mmd_is_unbiased_also_where_it_is_zero():
    rng = np.random.default_rng(1)
    zero = [mmd2_u(rng.standard_normal((10, 2)), rng.standard_normal((10, 2))) for _ in range(400)]
    assert abs(np.mean(zero)) < 4 * stats.sem(zero)
    assert np.min(zero) < 0


def test_mmd_of_a_linear_kernel_is_the_squared_distance_of_the_means():
    rng = np.random.default_rng(2)
    x, y = np.array([3, 4]) + rng.standard_normal((1000, 2)), rng.standard_normal((1000, 2))
    assert mmd2_u(x, y, lambda a, b: a @ b.T) == pytest.approx(25, rel=0.1)


def test_h_values_average_to_mmd_without_the_pairs_across():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((6, 2)) + 1, rng.standard_normal((6, 2))
    h = h_values(x, y, imq_kernel)
    np.testing.assert_allclose(h, h.T)
    assert np.diag(h).tolist() == [0] * 6
    k = imq_kernel
    expected = k(x[[1]], x[[4]]) + k(y[[1]], y[[4]]) - k(x[[1]], y[[4]]) - k(x[[4]], y[[1]])
    assert h[1, 4] == pytest.approx(expected.item())


def test_estimates_are_the_means_over_all_pairs_of_different_rows():
    models, real = draw(np.random.default_rng(10), EQUAL, 7)
    found = estimate(list(models.values()), real, imq_kernel)
    h = h_values(models["north"], real, imq_kernel)
    assert found.mmd2[1] == pytest.approx(np.mean([h[a, b] for a in range(7) for b in range(7) if a != b]))


def test_the_covariance_is_that_of_repeated_estimates():
    rng = np.random.default_rng(4)
    n, means = 80, {"a": (1.0, 0.0), "b": (2.0, 0.0)}
    found = []
    for _ in range(400):
        models, real = draw(rng, means, n)
        found.append(estimate(list(models.values()), real, imq_kernel))
    expected = n * np.cov(np.transpose([one.mmd2 for one in found]))
    estimated = np.mean([one.covariance for one in found], axis=0)
    np.testing.assert_allclose(estimated, expected, rtol=0.25)


def test_the_interval_holds_exactly_the_differences_for_which_the_choice_stays():
    rng = np.random.default_rng(5)
    for _ in range(20):
        root = rng.standard_normal((4, 4))
        covariance = root @ root.T
        z = rng.standard_normal(4)
        best = int(z.argmin())
        i = (best + 1) % 4
        lower, upper, scale = truncation(z, covariance, i, best)
        eta = np.eye(4)[i] - np.eye(4)[best]
        assert scale == pytest.approx(math.sqrt(eta @ covariance @ eta))
        t = z[i] - z[best]
        assert lower <= t <= upper
        slope = covariance @ eta / scale**2
        for value in np.linspace(max(lower, -5) - 1, min(upper, 5) + 1, 41):
            moved = z + slope * (value - t)
            assert (moved.argmin() == best) == (lower <= value <= upper)


def test_the_p_value_of_two_methods_is_that_of_a_half_normal_number():
    found = Estimates(np.array([3.0, 1.0]), np.diag([1.0, 3.0]), n=4)  # sqrt(n) · difference 4, standard deviation 2
    assert _selective_p(found, 0, 1) == pytest.approx(2 * stats.norm.sf(2))
    assert _selective_p(found._replace(covariance=np.zeros((2, 2))), 0, 1) == 1


def test_a_p_value_is_right_where_the_choice_leaves_only_the_far_tail():
    z = np.array([50.01, 0.0, 0.01])  # the third moves with the first: the difference is at least 50
    covariance = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
    assert truncation(z, covariance, 0, 1) == pytest.approx((50, math.inf, 1))
    assert _selective_p(Estimates(z, covariance, 1), 0, 1) == pytest.approx(math.exp(-0.5), rel=0.01)


def test_post_selection_p_values_of_equal_methods_are_uniform():
    outcomes = repeat(rel_psi, EQUAL)
    p_values = [outcome.p_values[min(set(EQUAL) - {outcome.reference})] for outcome in outcomes]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_equal_methods_are_rejected_at_most_at_the_level():
    for test in (rel_psi, rel_multi):
        outcomes = repeat(test, EQUAL)
        rates = [np.mean([outcome.rejected[name] for outcome in outcomes]) for name in EQUAL]
        assert max(rates) < 0.1, test


def test_choosing_and_testing_on_the_same_rows_without_the_condition_would_reject_too_often():
    """What the truncation is for: plain p-values after the choice are far from uniform."""
    rng = np.random.default_rng(0)
    plain = []
    for _ in range(200):
        models, real = draw(rng, EQUAL, 60)
        mmd2, covariance, n = estimate(list(models.values()), real, imq_kernel)
        best, worst = int(mmd2.argmin()), int(mmd2.argmax())
        scale = truncation(math.sqrt(n) * mmd2, covariance, worst, best)[2]
        plain.append(stats.norm.sf(math.sqrt(n) * (mmd2[worst] - mmd2[best]) / scale))
    assert np.mean(np.array(plain) < 0.05) > 0.1


def test_rel_multi_keeps_the_false_discovery_rate_and_rel_psi_the_level_of_each_test():
    close = {"right": (0.0, 0.0), **{f"off {i}": (0.6 * math.cos(i), 0.6 * math.sin(i)) for i in range(5)}}
    corrected = 0
    for outcome in repeat(rel_multi, close, n=100, times=20):
        others = [name for name in close if name != outcome.reference]
        p_values = np.array([outcome.p_values[name] for name in others])
        expected = stats.false_discovery_control(p_values, method="by") <= 0.05
        assert [outcome.rejected[name] for name in others] == expected.tolist()
        corrected += int((p_values < 0.05).sum() - expected.sum())
    assert corrected > 0
    for outcome in repeat(rel_psi, close, n=100, times=20):
        assert outcome.rejected == {name: p < 0.05 for name, p in outcome.p_values.items()}


@pytest.mark.parametrize("test", [rel_psi, rel_multi])
def test_a_clearly_worse_method_is_rejected_and_the_best_is_chosen(test):
    outcomes = repeat(test, {"far": (2.0, 0.0), "right": (0.0, 0.0), "near": (0.1, 0.0)}, n=100, times=40)
    assert np.mean([outcome.rejected["far"] for outcome in outcomes]) > 0.9
    assert np.mean([outcome.rejected["near"] for outcome in outcomes]) < 0.15
    assert {outcome.reference for outcome in outcomes} <= {"right", "near"}
    outcome = outcomes[0]
    assert outcome.p_values[outcome.reference] == 1
    assert not outcome.rejected[outcome.reference]


def test_a_false_choice_on_one_half_does_not_reject_the_better_method():
    """The other half is tested one-sided: a method that is better than the reference is not declared worse."""
    rng = np.random.default_rng(6)
    real = rng.standard_normal((200, 2))
    order = np.random.default_rng(0).permutation(200)
    turncoat, steady = rng.standard_normal((200, 2)), np.array([1, 0]) + rng.standard_normal((200, 2))
    turncoat[order[100:]] += (3, 0)
    outcome = rel_multi({"turncoat": turncoat, "steady": steady}, real, seed=0)
    assert outcome.reference == "turncoat"
    assert outcome.p_values["steady"] > 0.99
    assert outcome.mmd2["steady"] < outcome.mmd2["turncoat"]


def test_the_same_sample_twice_is_not_worse_than_itself():
    models, real = draw(np.random.default_rng(7), {"one": (1.0, 0.0)}, 30)
    twice = {"one": models["one"], "again": models["one"]}
    for test in (rel_psi, rel_multi):
        assert set(test(twice, real).p_values.values()) == {1.0}


def test_the_split_is_seeded_and_the_kernel_can_be_chosen():
    models, real = draw(np.random.default_rng(8), EQUAL, 40)
    assert rel_multi(models, real, seed=3) == rel_multi(models, real, seed=3)
    assert rel_multi(models, real, seed=3) != rel_multi(models, real, seed=4)
    assert rel_psi(models, real) != rel_psi(models, real, kernel=partial(imq_kernel, c=10))


def test_what_cannot_be_compared_is_refused():
    models, real = draw(np.random.default_rng(9), EQUAL, 10)
    with pytest.raises(InputError, match="alpha is 5"):
        rel_psi(models, real, alpha=5)
    with pytest.raises(InputError, match="1 models"):
        rel_psi({"east": models["east"]}, real)
    with pytest.raises(InputError, match=r"the reference has \(9, 2\)"):
        rel_multi(models, real[:9])
    with pytest.raises(InputError, match="3 rows"):
        rel_psi({name: rows[:3] for name, rows in models.items()}, real[:3])
    with pytest.raises(InputError, match=r"fraction 0.9 of 10 rows"):
        rel_multi(models, real, fraction=0.9)
