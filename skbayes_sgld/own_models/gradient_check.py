"""Check of a model's gradients against finite differences of its densities."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._checks import as_numbers, check_number
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._random import check_seed
from skbayes_sgld._typing import Array
from skbayes_sgld.own_models.boundary import as_posterior
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import HasRows, Posterior

_MAX_COORDINATES = 200
_ROUNDING = 10  # accepted error of a sum, in rounding errors


@numpy_defaults
def check_gradient(
    posterior: Posterior | HasRows,
    theta: ArrayLike | None = None,
    *,
    rtol: float = 1e-5,
    random_state: int = 0,
) -> None:
    """Compare a posterior's gradients with finite differences, and its minibatches with all rows.

    Prior and likelihood are checked separately. Each derivative is estimated by central differences
    with steps h and 2 h; besides ``rtol``, the check allows for the difference between the two
    estimates and for the rounding of the type that the functions return (float32 or float64). With
    more than 200 parameters, a random 200 are checked. The rows are then split into random batches,
    different ones at each point, which must add up to the log likelihood and the gradient of all
    rows. ``value_and_grad`` must be the sum of likelihood and prior.

    Parameters
    ----------
    posterior : Posterior
        Object with the functions of :class:`Posterior`.
    theta : array-like of shape (C, P) or (P,), default=None
        Points to check at, in the posterior's coordinates. By default two random points near its
        start, or near 0. A kink of the density has no gradient to compare.
    rtol : float, default=1e-5
        Accepted relative error of a derivative.
    random_state : int, default=0
        Seed of the points, coordinates and batches.

    Raises
    ------
    ValueError
        When a derivative is wrong (the error names the worst parameter and shows both values), a
        density is not finite, or the batches do not add up to all rows.
    TypeError
        When ``posterior`` lacks a function.

    Examples
    --------
    >>> from skbayes_sgld.own_models import FunctionPosterior, check_gradient
    >>> check_gradient(FunctionPosterior(lambda x: -(x**4).sum(1), lambda x: -4 * x**3, 2))
    >>> wrong = FunctionPosterior(lambda x: -(x**4).sum(1), lambda x: -3 * x**3, 2)
    >>> check_gradient(wrong, [1.0, -2.0])
    Traceback (most recent call last):
    ...
    ValueError: grad is wrong: theta[1] has the derivative 24 at theta[1]=-2, by finite
    differences 32.
    """
    check_number(rtol, "rtol", low=0)
    check_seed(random_state)
    checked = as_posterior(posterior)
    rng = np.random.default_rng(random_state)
    points = _points(checked, theta, rng)
    compare = partial(_compare, checked, points, rtol, rng)
    if not checked.n_samples:
        compare("grad", checked.log_density, checked.grad)
        return
    compare("grad_log_prior", checked.log_prior, checked.grad_log_prior)
    compare(
        "grad_log_likelihood",
        lambda theta: checked.log_likelihood(theta).sum(axis=1),
        checked.grad_log_likelihood,
    )
    _check_sums(checked, points, rng)


def _points(posterior: BasePosterior, theta: ArrayLike | None, rng: np.random.Generator) -> Array:
    P = posterior.n_params
    if theta is None:
        return posterior.start() + 0.1 * rng.standard_normal((2, P))
    points = np.atleast_2d(as_numbers(theta, "theta"))
    if points.ndim != 2 or points.shape[1] != P or not np.all(np.isfinite(points)):
        raise ValueError(
            f"theta of shape {np.shape(theta)} must be finite, of shape ({P},) or (C, {P})."
        )
    return points


def _compare(
    posterior: BasePosterior,
    points: Array,
    rtol: float,
    rng: np.random.Generator,
    name: str,
    density: Callable[[Array], Array],
    grad: Callable[[Array], Array],
) -> None:
    coordinates = np.sort(rng.permutation(posterior.n_params)[:_MAX_COORDINATES])
    claim = grad(points)
    precision = posterior.facts.precision
    # a sum of terms that cancel has the rounding error of the terms
    rounding = _ROUNDING * precision * np.abs(claim).max(axis=1, keepdims=True)
    claim = claim[:, coordinates].astype(float)
    numeric, slack = np.empty_like(claim), np.empty_like(claim)
    for c, point in enumerate(points):
        for k, j in enumerate(coordinates):
            numeric[c, k], slack[c, k] = _difference(density, point, j, precision)
    bad = np.argwhere(~np.isfinite(numeric) | ~np.isfinite(claim))
    if len(bad):
        parameter = posterior.param_names[coordinates[bad[0, 1]]]
        raise ValueError(f"{name} or its density is not finite where {parameter} moves a little.")
    allowed = rtol * np.maximum(np.abs(claim), np.abs(numeric)) + slack + rounding
    excess = np.abs(claim - numeric) / allowed
    if excess.max() > 1:
        c, j = np.argwhere(excess == excess.max())[0]
        parameter = posterior.param_names[coordinates[j]]
        raise ValueError(
            f"{name} is wrong: {parameter} has the derivative {claim[c, j]:.6g} at "
            f"{parameter}={points[c, coordinates[j]]:.6g}, by finite differences "
            f"{numeric[c, j]:.6g}."
        )


def _difference(
    density: Callable[[Array], Array], point: Array, j: int, precision: float
) -> tuple[float, float]:
    """Derivative in parameter j, and a bound on its error from rounding and truncation."""
    # The truncation error is of fourth order, so the total error is smallest at the fifth root of
    # the rounding error. In double precision a shorter step is accurate enough, and crosses fewer
    # kinks
    step = 1e-4 if precision < 1e-12 else precision**0.2
    h = step * max(1.0, abs(point[j]))
    points = np.tile(point, (4, 1))
    points[:, j] += h * np.array([-2.0, -1.0, 1.0, 2.0])
    f = density(points).astype(float)
    with np.errstate(invalid="ignore"):  # infinities are reported later
        wide, narrow = (f[3] - f[0]) / (4.0 * h), (f[2] - f[1]) / (2.0 * h)
        slack = abs(wide - narrow) + _ROUNDING * precision * (1.0 + np.abs(f).max()) / h
        return (4.0 * narrow - wide) / 3.0, slack


def _check_sums(posterior: BasePosterior, points: Array, rng: np.random.Generator) -> None:
    """Raise unless batches add up to all rows, and likelihood and prior to ``value_and_grad``."""
    C, n = len(points), posterior.n_samples
    idx = np.stack([rng.permutation(n) for _ in range(C)])
    batches = np.array_split(idx, min(n, 3), axis=1)
    each_row, slope = posterior.log_likelihood(points), posterior.grad_log_likelihood(points)
    rows = np.concatenate([posterior.log_likelihood(points, b) for b in batches], axis=1)
    slopes = np.stack([posterior.grad_log_likelihood(points, b) for b in batches])
    whole = np.take_along_axis(each_row, idx, axis=1)
    value, grad = posterior.value_and_grad(points)
    density, total_grad = each_row.sum(axis=1) + posterior.log_prior(points), slope.copy()
    total_grad += posterior.grad_log_prior(points)
    batch = "{} of the batches does not make up that of all rows: they differ by up to {:.3g}. "
    batch += "idx is (C, B), each chain's own rows; the gradient is the sum over these rows alone."
    both = "value_and_grad is wrong: its {} is not the sum of likelihood and prior; they differ by "
    both += "up to {:.3g}."
    for name, message, claim, total, scale in (
        ("log_likelihood", batch, rows, whole, np.abs(whole)),
        ("grad_log_likelihood", batch, slopes.sum(axis=0), slope, np.abs(slopes).sum(axis=0)),
        ("value", both, value, density, 1.0 + np.abs(density)),
        ("gradient", both, grad, total_grad, 1.0 + np.abs(total_grad)),
    ):
        difference = np.abs(claim - total)
        tolerance = max(1e-8, 10 * _ROUNDING * posterior.facts.precision)
        if not np.all(difference <= tolerance * (scale + scale.max())):
            raise ValueError(message.format(name, difference.max()))
