"""The mode of a log density, and the metric of the curvature there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import minimize

from skbayes_sgld._linalg import MAX_DENSE, one_blas_thread
from skbayes_sgld._timings import beat
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.posterior.whitening import WhitenedPosterior
from skbayes_sgld.sampling.metric import Dense, Diagonal, LowRank, Metric

_MAX_STEPS = 300  # the slowest search seen, with nearly dependent columns, took 109
TOLERANCE = 1e-10  # Newton decrement: squared distance to the mode in posterior sds
_SUBSET_FROM = 8192  # rows from which the search begins at the mode of a subset
_ROUGH = 1.0  # tolerance for the mode of a subset, which is tens from that of all rows
_NEAR = 2.5e-3  # squared distance to the mode, in sds, too small to affect any choice
_NEWTON_FROM = 0.1  # whitened slope below which few steps of Newton's method cost less than a climb
_MAX_CLIMBS, _CLIMB_STEPS, _CLIMB_TOLERANCE = 20, 200, 1e-8


class Center(NamedTuple):
    """A point and a metric about it: a mode and the curvature there, or moments of a pilot's draws.

    The metric is a dense matrix up to 4,000 parameters. Above it is diagonal, or diagonal plus a
    term for each row of the data if rows are fewer than parameters; no matrix of
    parameters by parameters is formed.

    ``expansion`` is the second-order expansion of the log likelihood, close to the mode, at which a
    search over many rows ended: control variates are centred on it without another pass.
    ``whitened`` is the posterior in the coordinates of the metric, if trajectories are cheaper
    there.
    """

    theta: Array
    metric: Metric
    expansion: Expansion | None = None
    whitened: WhitenedPosterior | None = None

    @classmethod
    def from_whitened(cls, whitened: WhitenedPosterior) -> Self:
        """Centre and metric of a posterior in whitened coordinates."""
        root = whitened.root
        if root.ndim > 1:
            metric: Metric = Dense(root, whitened.inverse, whitened.inverse_t)
        else:
            metric = Diagonal(np.square(root))
        return cls(whitened.center, metric, whitened=whitened)

    @classmethod
    def from_curvature(cls, theta: Array, H: Array) -> Self:
        """Point with a metric that is the inverse of a matrix."""
        return cls(theta, Dense.from_curvature(H))

    def __repr__(self) -> str:
        """Number of parameters."""
        return f"{type(self).__name__}({self.theta.size} parameters)"

    def squared_distance(self, theta: Array) -> float:
        """Squared distance of ``theta (P,)`` from the point, in sds."""
        return float(np.square(self.metric.whiten((theta - self.theta)[None])).sum())


class Mode(Center):
    """The mode of a log density, and the metric of the curvature there."""

    __slots__ = ()


class NoModeError(ValueError):
    """No mode was found: the posterior is improper, or nearly."""


def newton_mode(
    posterior: BasePosterior,
    start: Array,
    near: float = _NEAR,
    tolerance: float = TOLERANCE,
    spread: Array | None = None,
) -> Mode:
    """Find the mode of ``posterior`` from ``start (P,)``.

    With many rows the search begins at the mode of a subset, if the posterior can take one, and
    ends once the squared distance to the mode of all rows, in sds, is below ``near``. Otherwise it
    ends once Newton's decrement, which is that distance, is below ``tolerance``, or after two
    consecutive steps from points where it was below 2.5e-3.

    The method is Newton's up to 4,000 parameters; up to 2,000 if the curvature has to be computed
    by central differences of the gradient. Above, it is L-BFGS (Liu & Nocedal 1989) in coordinates
    whitened by the curvature at the last stop, to a squared distance of 1e-8.

    A prior with kinks is averaged over the width of the posterior (``posterior.averaged_over``).
    The mode is then the centre of the normal distribution that matches the posterior best in
    expectation (Opper & Archambeau 2009, eq. 8), on which a preconditioner should be based.
    ``spread (P,)`` is a rough estimate of that width; None: the width of the prior.

    Raises
    ------
    NoModeError
        When there is no mode within reach.
    """
    subset = _subset(posterior)
    if subset is not None:
        # the subset may lack the rows that determine the mode, and its own mode may be far away
        with suppress(NoModeError), one_blas_thread(), np.errstate(all="ignore"):
            # a squared distance of 0.1 per parameter is near enough for a start
            rough = max(_ROUGH, 0.1 * posterior.n_params)
            rough_mode = newton_mode(subset, start, near=rough, tolerance=rough)
            start = rough_mode.theta
            if "row_curvature" in posterior.abilities:
                with suppress(NoModeError):
                    return _expand(posterior, subset, rough_mode, near)
                start = _climb_from(posterior, rough_mode)
    return _find(posterior, start, tolerance, spread)


def _subset(posterior: BasePosterior) -> BasePosterior | None:
    """Posterior of a subset of the rows, where the search begins; None with few rows."""
    n, P = posterior.n_samples, posterior.n_params
    # a mode of fewer rows would be far from that of all
    share = min(int(np.clip(n // _SUBSET_FROM, 8, 64)), n // max(1000, 10 * P))
    if n <= _SUBSET_FROM or share < 3 or P > MAX_DENSE:
        return None
    if posterior.facts.cheap_full_gradient or "subset" not in posterior.abilities:
        return None
    return posterior.subset(slice(None, None, share))


def _climb_from(posterior: BasePosterior, rough_mode: Mode) -> Array:
    """Point ``(P,)`` near the mode of all rows, by gradients in the metric of a subset.

    Far from the mode Newton takes many steps, each with a curvature. With 21,634 rows, 546
    parameters and outlying rows it took 17, in 2.3 s; after 50 gradients it takes four.
    """
    smooth = posterior.averaged_over(rough_mode.metric.marginal_sd)
    theta, metric = rough_mode.theta, rough_mode.metric
    start, options = np.zeros_like(theta), {"maxiter": _CLIMB_STEPS, "gtol": _NEWTON_FROM}
    z = climb_whitened(smooth.value_and_grad, theta, metric, start, **options)
    return theta + metric.sqrt(z[None])[0]


def _expand(posterior: BasePosterior, subset: BasePosterior, rough_mode: Mode, near: float) -> Mode:
    """Mode by expansions of the log likelihood, the first with the curvature of the subset."""
    theta, expansion = rough_mode.theta, rough_mode.expansion

    def next_mode(theta: Array, H: Array | None = None) -> Mode:
        expansion = posterior.expand_likelihood(theta, H)
        return mode_of_expansion(posterior, expansion, theta)._replace(expansion=expansion)

    H = subset.expand_likelihood(theta).curvature if expansion is None else expansion.curvature
    first = next_mode(theta, H)
    return approach(next_mode, first.theta, near, first.squared_distance(theta))


def approach(
    next_mode: Callable[[Array], Mode], theta: Array, near: float, last: float = np.inf
) -> Mode:
    """Mode by expansions of the log likelihood, each at the mode of the last one.

    It ends once the squared distance to the mode is below ``near``, in sds. An expansion may take a
    pass over all rows. The distance after the last step is predicted without another pass: near the
    mode each ratio of successive distances is the square of the one before. ``last`` is the squared
    length of the step before, if there was one.

    Raises
    ------
    NoModeError
        If a step is not shorter than the one before.
    """
    for _ in range(20):
        mode = next_mode(theta)
        distance = mode.squared_distance(theta)
        if distance < near:
            return mode
        if not distance < last:
            break
        ratio = distance / last  # 0 at the first step
        # near the mode a step is less than a fifth as long as the one before
        if 0.0 < ratio < 0.04 and distance * ratio**2 < near:
            return mode
        last, theta = distance, mode.theta
    raise NoModeError("expansions of the log likelihood do not approach a mode.")


def mode_of_expansion(
    posterior: BasePosterior, expansion: Expansion, start: Array, tolerance: float = TOLERANCE
) -> Mode:
    """Mode of a posterior whose log likelihood is replaced by its second-order expansion."""
    return _find(_Expanded(posterior, expansion), start, tolerance)


class ByExpansion(BasePosterior):
    """A posterior whose density and curvature at a point are those of its expansion there."""

    def log_density(self, theta: Array) -> Array:
        """Log density ``(C,)``."""
        return np.array([self.expand(each).value for each in theta])

    def curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log density."""
        return self.expand(theta).curvature


class _Expanded(ByExpansion):
    """A posterior whose log likelihood is replaced by its second-order expansion."""

    def __init__(self, posterior: BasePosterior, rows: Expansion) -> None:
        self._posterior, self._rows = posterior, rows
        self.n_params, self.param_names = posterior.n_params, posterior.param_names

    def expand(self, theta: Array) -> Expansion:
        return self._posterior.with_prior_part(self._rows.about(theta))

    def averaged_over(self, spread: Array | None) -> BasePosterior:
        smooth = self._posterior.averaged_over(spread)
        return self if smooth is self._posterior else _Expanded(smooth, self._rows)


def _find(
    posterior: BasePosterior,
    start: Array,
    tolerance: float,
    spread: Array | None = None,
) -> Mode:
    """Mode of a posterior; with kinks, of its average over the width that the search finds."""
    smooth = posterior.averaged_over(spread)
    if smooth is posterior:
        return _search(posterior, start, tolerance)
    for _ in range(26):
        rough = _search(smooth, start, max(tolerance, _NEAR))
        start, previous, spread = rough.theta, spread, rough.metric.marginal_sd
        if previous is not None and np.allclose(spread, previous, rtol=0.02):
            break
        smooth = posterior.averaged_over(spread)
    return _search(smooth, start, tolerance)


def _search(posterior: BasePosterior, start: Array, tolerance: float) -> Mode:
    start = start.astype(float)
    # a Cholesky factorisation by two BLAS threads takes twenty times as long on a busy machine; the
    # line search shortens steps that overflow
    with one_blas_thread(), np.errstate(all="ignore"):
        if has_matrix(posterior):
            return _newton(posterior, start, tolerance)
        return _climb(posterior, start)


def has_matrix(posterior: BasePosterior) -> bool:
    """Whether the curvature is taken as a matrix: up to 4,000 parameters, or 2,000 by differences.

    Beyond, :func:`structured_metric` takes another form.
    """
    by_differences = "curvature" not in posterior.abilities
    return posterior.n_params <= (min(2000, MAX_DENSE) if by_differences else MAX_DENSE)


def _newton(posterior: BasePosterior, theta: Array, tolerance: float) -> Mode:
    """Mode by Newton's method.

    The metric is that at the start of the last, short step: the curvature hardly changes along it.
    """
    at, last = posterior.expand(theta), np.inf
    H, (metric, concave) = at.curvature, _damped(at.curvature)
    for _ in range(_MAX_STEPS):
        beat()
        step = metric.sqrt(metric.sqrt_t(at.grad[None]))[0]
        decrement = float(at.grad @ step)
        if decrement < tolerance and concave:
            return Mode(at.theta, metric)
        at = _line_search(posterior, at, step, decrement)
        if last < _NEAR and decrement < _NEAR and concave:
            return Mode(at.theta, metric)  # the distance left is about the step's square
        last = decrement
        if not np.array_equal(at.curvature, H):  # that of a normal density stays
            H, (metric, concave) = at.curvature, _damped(at.curvature)
    raise NoModeError(
        f"the mode of the posterior was not found in {_MAX_STEPS} Newton steps: the posterior "
        "may be improper; give the coefficients a proper prior, such as prior='normal'."
    )


def _damped(H: Array) -> tuple[Dense, bool]:
    """Metric of Newton's step, and whether H is positive definite.

    H plus the least multiple of its diagonal that is positive definite. A step may then be too long
    in a direction of little curvature; the line search shortens it.
    """
    diagonal = np.abs(np.diagonal(H))
    # finely spaced: with collinear columns, whose weak curvature is 1e-7 of the strong one, too
    # much damping slows the search
    for damping in (0.0, *np.logspace(-10, 4, 15)):
        with suppress(np.linalg.LinAlgError):
            damped = H + np.diag(damping * diagonal) if damping else H
            return Dense.from_curvature(damped), not damping
    raise NoModeError(
        "the posterior's curvature is not positive definite: some combination of the parameters "
        "is not determined by the data; give the coefficients a proper prior, such as "
        "prior='normal', and so every other parameter."
    )


def _line_search(
    posterior: BasePosterior, at: Expansion, step: Array, decrement: float
) -> Expansion:
    """Expansion at a point along the step; shorter steps are judged by their values alone."""
    new = posterior.expand(at.theta + step)
    # near the mode the gain is below the rounding error
    lowest = at.value - 1e-12 * (abs(at.value) + 1.0)
    if _gains(new.value, lowest, decrement):
        return new
    for fraction in 0.5 ** np.arange(1, 34):
        theta = at.theta + fraction * step
        value = float(posterior.log_density(theta[None])[0])
        if _gains(value, lowest, fraction * decrement):
            return posterior.expand(theta)
    return new._replace(value=at.value)


def _gains(value: float, lowest: float, expected: float) -> bool:
    """Whether a step gains a small share of what its slope promises."""
    return bool(np.isfinite(value) and value >= lowest + 1e-4 * expected)


def _climb(posterior: BasePosterior, theta: Array) -> Mode:
    """Climb by L-BFGS, whitened again by the curvature at each stop."""
    steepest = np.sqrt(0.1 * _CLIMB_TOLERANCE / theta.size)
    for _ in range(_MAX_CLIMBS):
        beat()
        metric, _ = structured_metric(posterior, theta)
        slope = metric.sqrt_t(posterior.grad(theta[None]))
        if np.square(slope).sum() < _CLIMB_TOLERANCE:
            return Mode(theta, metric)
        options = {"maxiter": _CLIMB_STEPS, "ftol": 1e-15, "gtol": steepest}
        start = np.zeros_like(theta)
        z = climb_whitened(posterior.value_and_grad, theta, metric, start, **options)
        theta = theta + metric.sqrt(z[None])[0]
    raise NoModeError(
        f"the mode of the posterior was not found in {_MAX_CLIMBS * _CLIMB_STEPS} steps: the "
        "posterior may be improper; give the parameters proper priors, such as prior='normal'."
    )


def climb_whitened(
    value_and_grad: Callable[[Array], tuple[Array, Array]],
    origin: Array,
    metric: Metric,
    z: Array,
    **options: Any,
) -> Array:
    """End ``(P,)`` of a climb by L-BFGS from z, in coordinates whitened about the origin."""

    def negative(z: Array) -> tuple[float, Array]:
        value, grad = value_and_grad(origin + metric.sqrt(z[None]))
        if not (np.isfinite(value).all() and np.isfinite(grad).all()):
            return 1e300, np.zeros_like(z)
        return -float(value[0]), -metric.sqrt_t(grad)[0].astype(float)

    return minimize(negative, z, jac=True, method="L-BFGS-B", options=options).x


def structured_metric(posterior: BasePosterior, theta: Array) -> tuple[Metric, Array]:
    """Inverse curvature at ``theta (P,)`` without a matrix, and the curvature's diagonal ``(P,)``.

    It is exact if the posterior gives its curvature as a diagonal and a factor of few rows; else it
    is the inverse of the curvature's diagonal.
    """
    diagonal, factor = posterior.curvature_factor(theta)
    if factor is None:
        return inverse_diagonal(diagonal), diagonal
    return LowRank(diagonal, factor), diagonal + np.square(factor).sum(axis=0)


def inverse_diagonal(diagonal: Array) -> Diagonal:
    """Inverse of a diagonal; the median of the others replaces entries that are not positive."""
    positive = diagonal > 0
    usual = np.median(diagonal[positive]) if positive.any() else 1.0
    return Diagonal(1.0 / np.where(positive, diagonal, usual))
