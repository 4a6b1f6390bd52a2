"""Gradients and densities in single precision, if that is cheaper and safe."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skbayes_sgld._random import start_normals
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.gradients import Full
from skbayes_sgld.sampling.tuning.mode import Center

NO_BIAS = 1e-3  # largest error of a whitened gradient that biases means by as many sds
_POSITIONS = 4  # points at which single and double precision are compared


def round_gradient(dynamics: Dynamics, center: Center, limit: float = NO_BIAS) -> Dynamics:
    """Dynamics whose gradient is computed in single precision, if that is cheaper.

    Leapfrog steps along any deterministic field are reversible and preserve volume. So a chain that
    accepts or rejects stays exact; rounding only lowers its acceptance. The means of other chains
    move by as many sds as rounding changes the whitened gradient. If this is ``limit`` or more, as
    with nearly collinear columns or huge weights, the gradient stays in double precision.
    """
    posterior, tau = dynamics.gradient.posterior, float(dynamics.temperature)
    rounded = posterior.rounded()
    if rounded is posterior:
        return dynamics
    normals, root = start_normals(0, range(_POSITIONS), center.theta.size), center.metric.rounded()
    exact = center.metric.sqrt_t(posterior.grad(center.theta + center.metric.sqrt(normals)))
    theta = root.sqrt(normals) + center.theta.astype(root.dtype)
    error = root.sqrt_t(rounded.grad(theta)) - exact
    if not float(np.square(error).sum(axis=1).max()) < tau * limit**2:
        return dynamics
    gradient, density_of = Full().bind(rounded, None), dynamics.posterior
    return replace(dynamics, gradient=gradient, density_of=density_of, rounded=True)


def round_density(dynamics: Dynamics, center: Center) -> Dynamics:
    """Dynamics whose densities are in single precision too, if that is safe.

    It is safe if they agree with double precision to a thousandth: the weight of a draw then has a
    random error of that size.
    """
    exact = dynamics.posterior
    rounded = exact.rounded(density=True)
    if not dynamics.rounded or rounded is exact:
        return dynamics
    theta = center.theta + center.metric.sqrt(
        start_normals(0, range(_POSITIONS), center.theta.size)
    )
    with np.errstate(over="ignore", invalid="ignore"):  # exponentials beyond single precision
        error = rounded.bind_value_and_grad()(theta)[0] - exact.log_density(theta)
        if not float(np.ptp(error)) < 1e-3 * float(dynamics.temperature):
            return dynamics
    return replace(dynamics, density_of=rounded)
