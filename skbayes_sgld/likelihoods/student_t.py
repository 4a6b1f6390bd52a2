"""Observations with heavy tails on both sides of a location: Student's t distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri, stdtrit

from skbayes_sgld.likelihoods.base import Array
from skbayes_sgld.likelihoods.distribution_functions import student_cdf
from skbayes_sgld.likelihoods.elementary import log1p
from skbayes_sgld.likelihoods.kernel import RowKernel, as_matrices
from skbayes_sgld.likelihoods.mixture import log_normal
from skbayes_sgld.likelihoods.normal import NormalNoise
from skbayes_sgld.likelihoods.own import OwnParameter, clip_log, first_if_equal, first_of_equal
from skbayes_sgld.likelihoods.robust_starts import median, regressions
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.likelihoods.stirling import LOG_2_PI, remainder

_START = 4.0  # degrees of freedom at which a search begins
_MOST = 1000  # largest number of observations for the estimate at the start
_NOTHING = -100.0  # log squared scale, relative to the median distance, of equal observations
_WEAK = 1e-4  # weight of the prior at the start, relative to all rows
# Degrees of freedom up to which sums in single precision are right to 1e-3 for 1,000 rows
_ROUNDED = 300.0
_LARGEST = np.float32(1e38)  # in the range of single precision
_FACTORS = 8  # of a product, whose logarithm is taken


class StudentTKernel(RowKernel):
    """Rows of location eta, log squared scale gamma and log degrees of freedom t.

    With ``nu = exp(t)`` and ``z^2 = (y - eta)^2 exp(-gamma)``, the log density is
    ``c(nu) - gamma / 2 - (nu + 1) / 2 log(1 + z^2 / nu)``. Of the gamma functions in c only the
    remainders of Stirling's formula are computed, since the other terms cancel; as nu rises every
    term then approaches that of a normal density.
    """

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """Log density, and its derivatives in eta, gamma and t.

        The curvature in eta is negative if ``z^2 > nu``.
        """
        # ``(C, 1)`` where they are the same in all rows
        gamma, nu = first_of_equal(u[:, 1]), np.exp(clip_log(first_of_equal(u[:, 2])))
        residual, precision = self.y - u[:, 0], np.exp(-gamma)
        scaled = residual * precision
        if orders == (0,):  # 4,000 draws of a row take two thirds of the time
            residual *= scaled
            residual /= nu
            fall = _log_of_rise(residual, nu)
            fall *= 0.5 * (nu + 1.0)
            return [np.subtract(_degree_terms(nu, 0) - 0.5 * gamma, fall, out=fall)]
        square = residual * scaled
        values, fall = [], log1p(square / nu)
        if 0 in orders:
            values.append(_degree_terms(nu, 0) - 0.5 * (gamma + (nu + 1.0) * fall))
        total = nu + square
        if 1 in orders:
            pull = (nu + 1.0) / total
            score = np.empty_like(u, shape=(len(u), 3, u.shape[-1]))
            np.multiply(pull, scaled, out=score[:, 0])
            half = 0.5 * pull
            half *= square
            np.subtract(half, 0.5, out=score[:, 1])
            half -= (0.5 * nu) * fall
            np.add(half, _degree_terms(nu, 1), out=score[:, 2])
            values.append(score)
        if 2 in orders:
            rest, share = nu / total, square / total
            cross, corner = pull * rest * scaled, 0.5 * (nu + 1.0) * share * rest
            in_t = 0.5 * share * rest * (1.0 - square)
            own = in_t + 0.5 * nu * (fall - share) - _degree_terms(nu, 2)
            both = rest * (1.0 - square) / total * scaled
            in_eta = pull * (rest - share) * precision
            rows = [[in_eta, cross, both], [cross, corner, in_t], [both, in_t, own]]
            values.append(as_matrices(rows))
        return values

    def total(self, u: Array) -> Array:
        """Sum of the log densities, by logarithms of products of eight ``1 + z^2 / nu``.

        4,000 densities of 600 rows take half of the time.
        """
        gamma, nu = first_of_equal(u[:, 1]), np.exp(clip_log(first_of_equal(u[:, 2])))
        if not gamma.shape[1] == nu.shape[1] == 1:
            return super().total(u)
        factors, n_rows = self.y - u[:, 0], u.shape[-1]
        whole = n_rows - n_rows % _FACTORS
        with np.errstate(over="ignore"):
            factors *= np.exp(-0.5 * gamma) / np.sqrt(nu)
            factors *= factors
            factors += 1.0
            products = np.multiply.reduce(factors[:, :whole].reshape(len(u), _FACTORS, -1), axis=1)
        logs = np.log(products).sum(axis=1, dtype=float)
        logs += np.log(factors[:, whole:]).sum(axis=1, dtype=float)
        each = (_degree_terms(nu, 0) - 0.5 * gamma)[:, 0].astype(float)
        total: Array = n_rows * each - 0.5 * (nu[:, 0] + 1.0) * logs
        # rounding of the sums grows with nu, and a product may overflow
        lost = (nu[:, 0] >= _ROUNDED) | ~np.isfinite(logs)
        if lost.any():
            total[lost] = super().total(u[lost])
        return total


def _log_of_rise(x: Array, nu: Array) -> Array:
    """``log(1 + x)``, of which half of ``nu + 1`` is to be right to 1e-5; x is overwritten."""
    if x.dtype != np.float32 or nu.max(initial=0.0) >= _ROUNDED:
        return log1p(x)
    x += x.dtype.type(1.0)
    return np.log(np.minimum(x, _LARGEST, out=x), out=x)


def _degree_terms(nu: Array, order: int) -> Array:
    """Constant c of the log density, or a derivative of it in log nu."""
    exact = nu.astype(float)
    if order == 0:
        value = 0.5 * (exact * np.log1p(1.0 / exact) - 1.0 - LOG_2_PI) + _rise(exact, 0)
    else:
        rest = np.log1p(1.0 / exact) - 1.0 / (exact + 1.0) - _rise(exact, 1)
        value = 0.5 * exact * rest
    if order == 2:
        value += 0.25 * np.square(exact) * _rise(exact, 2)
        value -= 0.5 * exact / np.square(exact + 1.0)
    return value.astype(nu.dtype)


def _rise(nu: Array, order: int) -> Array:
    """Increase of Stirling's remainder from ``nu / 2`` to ``(nu + 1) / 2``."""
    before, after = remainder(0.5 * np.stack([nu, nu + 1.0]), order)
    return np.asarray(after - before)


@dataclass(eq=False, repr=False)
class StudentTNoise(NormalNoise):
    r"""Observations with t-distributed noise, :math:`y = \eta + \sigma T`.

    T has :math:`\nu` degrees of freedom, which are inferred. The noise variance :math:`\sigma^2` of
    the other likelihoods is here the squared scale: the variance of an observation is
    :math:`\sigma^2 \nu / (\nu - 2)`, and infinite if :math:`\nu \le 2`.
    """

    quadratic = False
    log_concave = False
    several_modes = True
    finite_variance = False
    spread_at = None
    kernel = StudentTKernel
    own = (
        *NormalNoise.own,
        OwnParameter(
            "degrees_of_freedom", "degrees_of_freedom_prior", "gamma", transform="positive"
        ),
    )

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Maximum likelihood estimate without columns; with many rows from quantiles of y."""
        if weight is not None:
            y, weight = y[weight > 0.0], weight[weight > 0.0]
        share = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
        if len(y) > _MOST:
            order = np.argsort(y)
            at = np.searchsorted(np.cumsum(share[order]), (np.arange(_MOST) + 0.5) / _MOST)
            y, share = y[order[np.minimum(at, len(y) - 1)]], np.full(_MOST, 1.0 / _MOST)
            weight = None
        level = median(y, weight) if has_level else 0.0
        unit = median(np.abs(y - level), weight) or float(np.abs(y - level).max()) or 1.0
        kernel = self.bind(RowValues((y - level) / unit, share))
        free = slice(0 if has_level else 1, 3)

        def loss(local: Array) -> tuple[float, Array]:
            u = np.concatenate([np.zeros(free.start), local])
            at = np.repeat(u[None, :, None], len(y), axis=2)
            value, score = kernel.derivatives(at, 0, 1)
            # a weak prior keeps the scale from 0 if observations are equal
            away = u[1:] - (0.0, np.log(_START))
            slope = -score.sum(axis=2)[0]
            slope[1:] += 2.0 * _WEAK * away
            return float(_WEAK * np.square(away).sum() - value.sum()), slope[free]

        begin = np.array([0.0, 0.0, np.log(_START)])
        with np.errstate(all="ignore"):  # the search steps back from points of infinite loss
            begin[free] = minimize(loss, begin[free], jac=True, method="BFGS").x
        if begin[1] < _NOTHING:
            values, at = np.unique(y, return_inverse=True)
            rows = np.bincount(at, 100.0 * share)
            raise ValueError(
                f"y has the value {values[rows.argmax()]:g} in {rows.max():.0f} % of the rows: "
                "so many equal values make the scale of t-distributed noise 0. Set "
                "noise_distribution='normal', or model apart whether y is this value, as by "
                "SGLDLogisticRegression, and the other rows."
            )
        return np.array([level + unit * begin[0], 2.0 * np.log(unit) + begin[1], begin[2]])

    def other_starts(self, design: Array, y: Array, weight: Array | None) -> list[Array]:
        """Least squares, and least trimmed squares of all rows and of rows far from those."""
        return regressions(design, y, weight)

    def pseudo_variance(self, y: Array, weight: Array | None) -> float:
        """Inverse of the information of an observation about its location."""
        *_, gamma, t = self.start(y, weight, True)
        return float(np.exp(gamma) * (np.exp(t) + 3.0) / (np.exp(t) + 1.0))

    def variance(self, u: Array) -> Array:
        """``sigma^2 nu / (nu - 2)``; infinite if nu is at most 2."""
        nu = self._degrees(u)
        finite = nu > 2.0
        inflation = np.where(finite, nu / np.where(finite, nu - 2.0, 1.0), np.inf)
        variance = np.exp(first_if_equal(u[:, 1], axis=0)) * inflation
        return np.broadcast_to(variance, u[:, 0].shape)

    def cdf(self, u: Array, y: Array) -> Array:
        """Probability of an observation of at most y."""
        with np.errstate(over="ignore"):  # the least noise of far rows beside the largest
            z = (y - u[:, 0]) * np.exp(-0.5 * u[:, 1])
        return student_cdf(self._degrees(u), z)

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of y."""
        T = rng.standard_t(self._degrees(u), u[:, 0].shape)
        T = np.clip(T, -1e100, 1e100)  # the squares are finite
        return u[:, 0] + T * np.exp(0.5 * u[:, 1])

    def quantile_start(self, u: Array, q: float) -> tuple[Array, Array]:
        """Quantile ``(C,)``, and the unit in which the normal score of y has slope 1 there."""
        nu = self._degrees(u)
        start = u[:, 0] + np.exp(0.5 * u[:, 1]) * stdtrit(nu, q)
        return start[:, 0], np.exp(log_normal(ndtri(q)) - self.log_density(u, start))[:, 0]

    def _degrees(self, u: Array) -> Array:
        """Degrees of freedom ``(C, B)``, or ``(1, B)`` if they are the same in all rows."""
        # from 1e10 on the t distribution function is the normal one
        return np.minimum(np.exp(clip_log(first_if_equal(u[:, 2], axis=0))), 1e10)
