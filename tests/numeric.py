"""Derivatives and integrals by numbers alone, for tests of what is given in closed form."""

import numpy as np
from scipy import sparse


def sparse_normals(rng, shape, density=0.3):
    """Normal numbers in some places of a CSR array, and zeros in the others."""
    return sparse.csr_array(rng.normal(size=shape) * (rng.random(shape) < density))


def derivative(function, x, h=1e-5):
    """Derivatives of ``function(x)`` in every element of ``x``, of shape out + x.

    By Richardson's extrapolation of central differences: exact up to the fifth power.
    """
    x = np.asarray(x, dtype=float)
    columns = []
    for index in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[index] = h

        def central(k, step=step):
            return (np.asarray(function(x + k * step)) - function(x - k * step)) / (2 * k * h)

        columns.append((4.0 * central(1) - central(2)) / 3.0)
    stacked = np.stack(columns, axis=-1)
    return stacked.reshape(stacked.shape[:-1] + x.shape)


def derivative_by_chain(function, theta, h=1e-5, at_once=False):
    """Derivatives ``(C, ..., P)`` of ``function(theta (C, P))``, each chain's in its own theta.

    As exact as :func:`derivative`, in one call for all chains; or in one call for all positions,
    ``at_once``, of a function that takes any number of chains.
    """
    moved = [theta + k * step for k in (1, -1, 2, -2) for step in h * np.eye(theta.shape[1])]
    values = function(np.concatenate(moved)) if at_once else np.stack([*map(function, moved)])
    ahead, back, twice_ahead, twice_back = np.asarray(values).reshape(
        4, theta.shape[1], len(theta), *np.shape(values)[1 if at_once else 2 :]
    )
    near, far = (ahead - back) / (2 * h), (twice_ahead - twice_back) / (4 * h)
    return np.moveaxis((4.0 * near - far) / 3.0, 0, -1)


def assert_derivative(got, expected, what, rtol=1e-6):
    """Assert that a closed form is what the differences say, to ``rtol`` of the largest."""
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * scale, err_msg=what)
