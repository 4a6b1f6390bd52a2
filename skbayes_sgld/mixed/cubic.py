r"""The log likelihood of many rows and few coefficients as a cubic polynomial.

In standardised coordinates the terms of degree k of the log likelihood of n rows are of order
:math:`n^{1 - k/2}`. With many rows three degrees are enough, and a step then reads no rows.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from skbayes_sgld._linalg import gram_of_predictors, matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.coordinates import StandardisedPosterior
from skbayes_sgld.mixed.polynomial import Whitening
from skbayes_sgld.posterior.protocol import Expansion

_MOST_PARAMETERS, _FEWEST_ROWS = 64, 50  # parameters, and rows for each of them
_ROWS = 20_000  # of the third derivatives, which are small
_BEYOND = 3.5  # sds from the typical distance, the farthest points of the cubic terms
_DRAWS = 20  # for each parameter, of their covariance
_TESTS, _CLOSE = 40, 0.04  # draws of a check, and the sd of the error there


class CubicSum:
    """Log likelihood of all rows by its derivatives at one point.

    Parameters
    ----------
    model : EffectsModel
    center : ndarray of shape (P,)
        The point.
    root : ndarray of shape (P, P)
        Root of the covariance of theta.
    """

    def __init__(self, model: Any, center: Array, root: Array) -> None:
        self._rows, self._whitening = model.row_sum(), Whitening(center, root)
        at = self._rows.expand(center)
        self._value, self._slope = at.value, at.grad @ root
        self._curvature = root.T @ at.curvature @ root
        n, P = model.n_samples, len(center)
        some = np.random.default_rng(0).permutation(n)[:_ROWS]
        block, kernel = self._rows.design.rows(some), self._rows.kernel[..., some]

        def curvature(theta: Array) -> Array:
            coefficients = self._rows.coefficient_map.coefficients(theta[None])
            u = self._rows.design.apply(coefficients, block)
            with np.errstate(over="ignore"):
                each = kernel.derivatives(u, 1, 2)[1][0]
            H: Array = self._rows.coefficient_map.hessian(gram_of_predictors(block, each))
            return H

        third = np.empty((P, P, P))
        for k, step in enumerate(root.T):
            change = curvature(center - step) - curvature(center + step)
            third[k] = root.T @ (0.5 * n / len(some) * change) @ root
        third = (third + third.transpose(1, 2, 0) + third.transpose(2, 0, 1)) / 3.0
        self._third, self._radius = third.reshape(P, -1), np.sqrt(P) + _BEYOND

    def value_and_grad(self, theta: Array, group: int | None = None) -> tuple[Array, Array]:
        """Log likelihood ``(C,)`` and its gradient ``(C, P)``.

        Beyond the radius the cubic terms are continued by their tangents.
        """
        z = self._whitening.z(theta)
        distance = np.sqrt(np.square(z).sum(axis=1, keepdims=True))
        beyond = np.maximum(distance - self._radius, 0.0)
        way = z / np.maximum(distance, 1e-300)
        inside, C, P = z - beyond * way, *z.shape
        square = matmul_rows(inside, self._third).reshape(C, P, P)
        cubic = 0.5 * np.einsum("cab,cb->ca", square, inside)
        curved = matmul_rows(z, self._curvature)
        value = self._value + np.einsum("cp,cp->c", z, self._slope - 0.5 * curved)
        value += np.einsum("cp,cp->c", inside / 3.0 + beyond * way, cubic)
        return value, matmul_rows(self._slope - curved + cubic, self._whitening.inverse)

    def value(self, theta: Array) -> Array:
        """Log likelihood ``(C,)``."""
        return self.value_and_grad(theta)[0]

    def grad(self, theta: Array, group: int | None = None) -> Array:
        """Gradient of the log likelihood ``(C, P)``."""
        return self.value_and_grad(theta)[1]

    def expand(self, theta: Array) -> Expansion:
        """Value and derivatives of the rows at ``theta (P,)``."""
        found: Expansion = self._rows.expand(theta)
        return found


def with_cubic(standardised: StandardisedPosterior) -> StandardisedPosterior:
    """Posterior by a cubic polynomial; itself if that is not close, or saves little.

    The polynomial is compared with the rows at standard normal draws of the coordinates.
    """
    posterior: Any = standardised.inner
    m = len(posterior.covariances.coordinates)
    P = posterior.n_params - m
    if P > _MOST_PARAMETERS or posterior.n_samples < _FEWEST_ROWS * P:
        return standardised
    rng = np.random.default_rng(0)

    def parameters(phi: Array) -> Array:
        """Coefficients, effects and own parameters."""
        found: Array = posterior.split(standardised.coordinates.forward(phi))[0]
        return found

    draws, tests = (parameters(rng.standard_normal((k, P + m))) for k in (_DRAWS * P, _TESTS))
    center = parameters(np.zeros((1, P + m)))[0]
    try:
        cubic = CubicSum(posterior.model, center, np.linalg.cholesky(np.cov(draws.T)))
    except np.linalg.LinAlgError:  # parameters without a variance of their own
        return standardised
    with np.errstate(all="ignore"):
        error = cubic.value(tests) - posterior.model.row_sum().value(tests)
    if not np.std(error) < _CLOSE:
        return standardised
    found, other, model = copy(standardised), copy(posterior), copy(posterior.model)
    model.cubic, other.model, other.flat, found.inner = cubic, model, model, other
    return found
