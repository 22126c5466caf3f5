"""Which of several methods models a distribution worse than the best of them (Lim et al., 2019; the paper's appendix).

Both tests take a sample of every method and one of the real distribution, all with the same number of rows, estimate
each method's MMD^2 to the real one, take the method with the smallest as the reference J, and test for every other i

    H0: MMD^2_i <= MMD^2_J     against     H1: MMD^2_i > MMD^2_J    (i is worse).

Write z_a for the a-th row of the real sample with the a-th of every method. The estimates are U-statistics with kernel
h_i(z_a, z_b) (`kernels.h_values`), so sqrt(n) (estimate - MMD^2) tends to a normal vector with covariance
4 Cov(g_i(z), g_j(z)), g_i(z) = E h_i(z, z'). Sample averages stand in for both expectations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from cfproto_plugin.errors import InputError
from cfproto_plugin.metrics.kernels import Kernel, h_values, imq_kernel
from cfproto_plugin.metrics.sparsity import flat
from cfproto_plugin.protocols import Array

_FEWEST = 4  # rows: two for each half


@dataclass(frozen=True)
class Comparison:
    """The outcome. mmd2, p_values and rejected by the name of the method; the reference has p-value 1.

    rejected: declared worse than the reference at level alpha.
    """

    reference: str
    mmd2: dict[str, float]
    p_values: dict[str, float]
    rejected: dict[str, bool]
    alpha: float


class Estimates(NamedTuple):
    """MMD^2 of every method (l,), and the covariance of sqrt(n) times it (l, l), from n rows."""

    mmd2: Array
    covariance: Array
    n: int


def rel_multi(
    models: Mapping[str, Any],
    reference: Any,
    *,
    alpha: float = 0.05,
    kernel: Kernel = imq_kernel,
    fraction: float = 0.5,
    seed: int = 0,
) -> Comparison:
    """RelMulti: choose the reference method on one part of the rows, test the others on the rest.

    models: name -> rows; reference: rows of the real distribution, as many. fraction: the share of rows for choosing;
    the paper splits 50:50. The parts are independent, so the one-sided p-values are those of plain normal differences;
    Benjamini and Yekutieli's step-up keeps the false discovery rate at alpha whatever their dependence. mmd2 is that of
    the rows that were tested.
    """
    from scipy.stats import false_discovery_control

    names, samples, real = _checked(models, reference, alpha)
    order = np.random.default_rng(seed).permutation(len(real))
    cut = round(fraction * len(real))
    if not 2 <= cut <= len(real) - 2:  # noqa: PLR2004 a pair
        raise InputError(f"fraction {fraction!r} of {len(real)} rows is {cut}; expected at least 2 rows in each part")
    first, second = order[:cut], order[cut:]
    best = int(np.argmin(estimate([sample[first] for sample in samples], real[first], kernel).mmd2))
    found = estimate([sample[second] for sample in samples], real[second], kernel)
    p_values = np.array([1.0 if i == best else _plain_p(found, i, best) for i in range(len(names))])
    others = np.arange(len(names)) != best
    rejected = np.zeros(len(names), dtype=bool)
    rejected[others] = false_discovery_control(p_values[others], method="by") <= alpha
    return _comparison(names, best, found.mmd2, p_values, rejected, alpha)


def rel_psi(
    models: Mapping[str, Any], reference: Any, *, alpha: float = 0.05, kernel: Kernel = imq_kernel
) -> Comparison:
    """RelPSI: choose and test on the same rows; p-values are conditional on the choice.

    Given that J was chosen (z_J <= z_i for all i), the difference z_i - z_J is a normal number truncated to an interval
    (`truncation`). Each test has level alpha given the choice, which keeps the false positive rate at alpha.
    """
    names, samples, real = _checked(models, reference, alpha)
    found = estimate(samples, real, kernel)
    best = int(np.argmin(found.mmd2))
    p_values = np.array([1.0 if i == best else _selective_p(found, i, best) for i in range(len(names))])
    return _comparison(names, best, found.mmd2, p_values, p_values < alpha, alpha)


def estimate(samples: list[Array], real: Array, kernel: Kernel) -> Estimates:
    """The U-statistics and the covariance of their projections.

    g_i(z_a) is estimated by the mean of h_i(z_a, z_b) over b != a. That adds the noise of the mean to the covariance,
    which makes the tests a little conservative for few rows.
    """
    n = len(real)
    projections = np.stack([h_values(sample, real, kernel).sum(axis=1) / (n - 1) for sample in samples])
    return Estimates(projections.mean(axis=1), 4 * np.atleast_2d(np.cov(projections)), n)


def truncation(z: Array, covariance: Array, i: int, best: int) -> tuple[float, float, float]:
    """The interval of t = z_i - z_best given that best has the smallest z, and the standard deviation of t.

    With eta = e_i - e_best and c = S eta / (eta' S eta), r = z - c t is independent of t. The choice says that
    r_best + c_best t <= r_k + c_k t for all k: each k bounds t from below or above.
    """
    eta = np.zeros(len(z))
    eta[i], eta[best] = 1.0, -1.0
    variance = float(eta @ covariance @ eta)
    if variance <= 0:
        return 0.0, math.inf, 0.0
    slope = covariance @ eta / variance
    rest = z - slope * (z[i] - z[best])
    gap, lean = rest - rest[best], slope - slope[best]  # gap + lean · t >= 0
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = -gap / lean
    lower = bound[lean > 0].max(initial=-math.inf)
    upper = bound[lean < 0].min(initial=math.inf)
    return float(lower), float(upper), math.sqrt(variance)


def _plain_p(found: Estimates, i: int, best: int) -> float:
    """P(N(0, variance of the difference) > difference)."""
    s = found.covariance
    variance = s[i, i] + s[best, best] - 2 * s[i, best]
    if variance <= 0:
        return 1.0
    t = math.sqrt(found.n) * (found.mmd2[i] - found.mmd2[best])
    return float(ndtr(-t / math.sqrt(variance)))


def _selective_p(found: Estimates, i: int, best: int) -> float:
    """P(T > difference) for T normal with mean 0, truncated to the interval that the choice leaves."""
    from scipy.stats import truncnorm

    z = math.sqrt(found.n) * found.mmd2
    lower, upper, scale = truncation(z, found.covariance, i, best)
    if scale == 0 or not lower < upper:
        return 1.0
    return float(truncnorm.sf(z[i] - z[best], lower / scale, upper / scale, scale=scale))


def _checked(models: Mapping[str, Any], reference: Any, alpha: float) -> tuple[list[str], list[Array], Array]:
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha!r}; expected a level between 0 and 1, such as 0.05")
    if len(models) < 2:  # noqa: PLR2004 something to compare
        raise InputError(f"there are {len(models)} models to compare; expected at least 2")
    real, samples = flat(reference), [flat(rows) for rows in models.values()]
    shapes = {name: sample.shape for name, sample in zip(models, samples, strict=True)}
    if any(shape != real.shape for shape in shapes.values()):
        raise InputError(f"samples of one shape are needed; the reference has {real.shape}, the models {shapes}")
    if len(real) < _FEWEST:
        raise InputError(f"the samples have {len(real)} rows; expected at least {_FEWEST}")
    return list(models), samples, real


def _comparison(names: list[str], best: int, mmd2: Array, p_values: Array, rejected: Array, alpha: float) -> Comparison:
    return Comparison(
        names[best],
        dict(zip(names, mmd2.tolist(), strict=True)),
        dict(zip(names, p_values.tolist(), strict=True)),
        dict(zip(names, rejected.tolist(), strict=True)),
        alpha,
    )
