"""The non-centered parameterization of a normal linear model, free of its funnel.

Given the noise, the coefficients of a normal linear model under a normal prior are normal, with a
mean and a width that depend on the noise: a funnel, to which no constant preconditioner fits. The
coordinates ``z``, the coefficients minus that mean over that width, are standard normal whatever
the noise. With gamma* a reference value and t = exp(gamma* - gamma), the conditional precision
t S + Lambda is diagonal for every t in the eigenvectors U of S in the metric of S + Lambda, with
entries D = t a + 1 - a, and

    beta = beta* + U ((t - 1) kappa / D + z / sqrt(D)),

where kappa is U' times the gradient of the log likelihood at the conditional mode beta*. Priors
scaled by the noise count as part of the likelihood; if all are, the whole precision scales with t,
so a = 1 and kappa = 0. For other priors their average curvature is used: z is then only nearly
normal, but its density is still exact.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import GROUP, matmul_rows
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.linear_prior import LinearPrior
from skbayes_sgld.posterior.parameterizations.base import Reparameterized
from skbayes_sgld.posterior.parameterizations.closed_form import ClosedForm
from skbayes_sgld.posterior.parameterizations.noise_coordinate import (
    NormalQuantiles,
    StraightLine,
    normal_quantiles,
    straight_line,
)

Array = NDArray[Any]

# Sd of the log noise variance above which steps without a test may become unstable, on a straight
# line. The likelihood falls like exp(-exp(-gamma)) towards small noise: a Langevin step of half
# the width is stable while gamma stays within 1.4 of its mode, which is five sds at this limit
_STEEP = 0.28
_DIAGONAL = 1e-9  # of a curvature: what its eigenvectors may leave beside the diagonal
_GROUP = 64  # draws of a product that are mapped to theta, whatever their number
_BLOCK = 256  # draws that are mapped at a time


class _Parts(NamedTuple):
    """Quantities that every function of phi needs: g, gamma, t, t a, D and ``w = z / sqrt(D)``."""

    g: Array
    gamma: Array
    ratio: Array
    scaled: Array
    D: Array
    w: Array


class NoncenteredPosterior(Reparameterized):
    """The same posterior in coordinates phi = (z, g), g the standardised log noise variance.

    Parameters
    ----------
    posterior : GLMPosterior
        Posterior of a normal likelihood whose noise is inferred.
    center : ndarray of shape (P - 1,)
        Conditional mode of the linear parameters at the reference noise.
    root : ndarray of shape (P - 1, P - 1)
        Root of the inverse of their conditional precision there.
    gamma : float
        Reference log noise variance.
    temperature : float
        Temperature tau that the sampler is to use. Tempering acts on the density of
        (beta, log sigma^2), so the log Jacobian of these coordinates is multiplied by tau: the
        sampler's power 1 / tau then restores it.
    """

    cheap_full_gradient = True
    _group: int | None = GROUP

    def __init__(
        self,
        posterior: GLMPosterior,
        center: Array,
        root: Array,
        gamma: float,
        temperature: float = 1.0,
    ) -> None:
        super().__init__(posterior, temperature)
        self._center, self._gamma = center, gamma
        theta = np.append(center, gamma)
        self._straight = True
        if posterior.linear_prior.follows_noise:
            self._basis, self._share = root, np.ones(len(center))
            self._pull = np.zeros(len(center))
        else:
            curvature = _scaled_curvature(posterior, theta)
            share, vectors = np.linalg.eigh(root.T @ curvature @ root)
            self._basis, self._share = root @ vectors, np.clip(share, 0.0, 1.0)
            rest = self._basis.T @ curvature @ self._basis - np.diag(self._share)
            self._straight = bool(np.abs(rest).max() < _DIAGONAL)
            self._pull = self._basis.T @ _scaled_grad(posterior, theta)
        self._moves = bool(np.any(self._pull))  # False under the conjugate prior
        # residual and prior squares at the centre: the log density has -0.5 exp(-gamma) times them
        self._exponent = posterior.total_weight + posterior.linear_prior.n_scaled
        self._square = _scaled_square(posterior, theta)
        self._noise: StraightLine | NormalQuantiles = StraightLine(gamma, 1.0)
        of_noise = self._log_density_of_noise
        self._noise = straight_line(of_noise, gamma, posterior.total_weight, temperature)
        self._level, self._width = self._noise.level, self._noise.width
        if self._width * np.sqrt(temperature) > _STEEP:
            self._noise = normal_quantiles(of_noise, self._noise, temperature)
            self.steep = isinstance(self._noise, StraightLine)

    @property
    def noise_level(self) -> float:
        """Mean of the log noise variance where z = 0."""
        return self._level

    @property
    def noise_sd(self) -> float:
        """Sd of the log noise variance where z = 0, at temperature 1."""
        return self._width

    def _log_density_of_noise(self, gamma: Array) -> Array:
        """Log density of gamma where z = 0; under a normal prior, its marginal log density."""
        phi = np.zeros((len(gamma), self.n_params))
        phi[:, -1] = self._noise.locate(gamma)
        return self.log_density(phi)

    # ---- the map ------------------------------------------------------------------------------

    def _parts(self, phi: Array) -> _Parts:
        gamma = self._noise.gamma(phi[:, -1])
        ratio = np.exp(self._gamma - gamma)[:, None]
        scaled = ratio * self._share
        D = scaled + (1.0 - self._share)
        return _Parts(phi[:, -1], gamma, ratio, scaled, D, phi[:, :-1] / np.sqrt(D))

    def to_theta(self, phi: Array, parts: _Parts | None = None, group: int = GROUP) -> Array:
        """Theta ``(C, P)`` at ``phi (C, P)``."""
        if self.inner.linear_prior.follows_noise:  # D = t
            gamma = self._noise.gamma(phi[:, -1])
            w = phi[:, :-1] * np.exp(0.5 * (gamma - self._gamma))[:, None]
        else:
            _, gamma, ratio, _, D, w = parts or self._parts(phi)
            if self._moves:
                w = w + (ratio - 1.0) * self._pull / D
        theta = np.empty_like(phi)
        theta[:, :-1] = matmul_rows(w, self._basis.T, group)
        theta[:, :-1] += self._center
        theta[:, -1] = gamma
        return theta

    def from_theta(self, theta: Array) -> Array:
        """Coordinates phi ``(C, P)`` of ``theta (C, P)``."""
        phi = np.zeros_like(theta)
        phi[:, -1] = self._noise.locate(theta[:, -1])
        _, _, ratio, _, D, _ = self._parts(phi)
        w = np.linalg.solve(self._basis, (theta[:, :-1] - self._center).T).T
        phi[:, :-1] = np.sqrt(D) * (w - (ratio - 1.0) * self._pull / D)
        return phi

    def _log_jacobian(self, parts: _Parts) -> Array:
        of_noise = self._noise.log_stretch(parts.g)
        return self._temperature * (of_noise - 0.5 * np.log(parts.D).sum(axis=1))

    def _chain_rule(self, grad: Array, phi: Array, parts: _Parts | None = None) -> Array:
        """Gradient in phi of a function whose gradient in theta is ``grad``."""
        g, _, ratio, scaled, D, w = parts or self._parts(phi)
        in_w = matmul_rows(grad[:, :-1], self._basis)
        out = np.empty_like(phi)
        out[:, :-1] = in_w / np.sqrt(D)
        moved = 0.5 * scaled * w / D
        if self._moves:
            moved -= ratio * self._pull / np.square(D)
        out[:, -1] = self._noise.slope(g) * (grad[:, -1] + np.einsum("cp,cp->c", in_w, moved))
        return out

    def _along_noise(self, g: Array, in_gamma: Array) -> Array:
        """Derivative in g, Jacobian included, of what has a derivative in gamma."""
        return self._noise.slope(g) * in_gamma + self._temperature * self._noise.bend(g)

    def _add_jacobian(self, grad: Array, parts: _Parts) -> Array:
        slope = 0.5 * self._temperature * self._noise.slope(parts.g)
        grad[:, -1] += slope * (parts.scaled / parts.D).sum(axis=1)
        grad[:, -1] += self._temperature * self._noise.bend(parts.g)
        return grad

    # ---- the protocol -------------------------------------------------------------------------

    def log_likelihood(self, phi: Array, idx: Array | None = None) -> Array:
        """Log likelihood of each row ``(C, B)``."""
        return self.inner.log_likelihood(self.to_theta(phi), idx)

    def grad_log_likelihood(self, phi: Array, idx: Array | None = None) -> Array:
        """Gradient of the log likelihood, summed over the rows ``(C, P)``."""
        return self._chain_rule(self.inner.grad_log_likelihood(self.to_theta(phi), idx), phi)

    def log_prior(self, phi: Array) -> Array:
        """Log prior of phi ``(C,)``: that of theta plus the log Jacobian."""
        return self.inner.log_prior(self.to_theta(phi)) + self._log_jacobian(self._parts(phi))

    def grad_log_prior(self, phi: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""
        grad = self._chain_rule(self.inner.grad_log_prior(self.to_theta(phi)), phi)
        return self._add_jacobian(grad, self._parts(phi))

    def log_density(self, phi: Array) -> Array:
        """Log posterior density of phi up to a constant ``(C,)``."""
        parts = self._parts(phi)
        return self.inner.log_density(self.to_theta(phi, parts)) + self._log_jacobian(parts)

    def value_and_grad(self, phi: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        parts = self._parts(phi)
        value, grad = self.inner.value_and_grad(self.to_theta(phi, parts))
        grad = self._add_jacobian(self._chain_rule(grad, phi, parts), parts)
        return value + self._log_jacobian(parts), grad

    def grad(self, phi: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        parts = self._parts(phi)
        grad = self.inner.grad(self.to_theta(phi, parts))
        return self._add_jacobian(self._chain_rule(grad, phi, parts), parts)

    def bind_grad(self, n_chains: int) -> Callable[[Array], Array]:
        """:meth:`grad`, without a pass through theta where the likelihood is diagonal in w."""
        if not self._straight:
            return self.grad
        closed = self._closed_form(self.inner.linear_prior, n_chains)
        return lambda phi: closed(phi, False)[1]

    def bind_value_and_grad(
        self, n_chains: int, followed: BasePosterior | None = None
    ) -> Callable[[Array], tuple[Array, Array]]:
        """:meth:`value_and_grad`, also of a density and the gradient of a smoother one."""
        other = self if followed is None else followed
        same = isinstance(other, NoncenteredPosterior) and other._basis is self._basis
        if not (self._straight and same):
            return super().bind_value_and_grad(n_chains, followed)
        assert isinstance(other, NoncenteredPosterior)
        closed = self._closed_form(other.inner.linear_prior, n_chains)

        def value_and_grad(phi: Array) -> tuple[Array, Array]:
            value, grad = closed(phi, True)
            assert value is not None
            return value, grad

        return value_and_grad

    def _closed_form(
        self, followed: LinearPrior, n_chains: int
    ) -> Callable[[Array, bool], tuple[Array | None, Array]]:
        """Log density, if wanted, and gradient under ``followed``, without a pass through theta."""
        inner = self.inner
        assert inner.noise_prior is not None
        known = inner.noise_prior.conjugate
        shape, scale = known or (0.0, 0.0)
        scaled = ClosedForm(
            self._basis,
            self._share,
            self._pull,
            self._center,
            self._gamma,
            -0.5 * inner.total_weight * np.log(2.0 * np.pi),
            self._exponent + 2.0 * shape,
            self._square + 2.0 * scale,
            self._temperature,
            self._noise,
            None if known else inner.noise_prior,
        )
        prior = inner.linear_prior.unscaled_part()
        return scaled.bind(prior, followed.unscaled_part(), n_chains, self._group or n_chains)

    def softened(self, spread: Array) -> NoncenteredPosterior:
        """Posterior with its kinks rounded; ``spread`` is 1 in phi by construction."""
        width = np.append(np.sqrt(np.square(self._basis).sum(axis=1)), self._width)
        inner = self.inner.softened(width)
        if inner is self.inner:
            return self
        other = copy(self)
        other.inner = inner
        return other

    def in_groups_of(self, size: int | None) -> NoncenteredPosterior:
        """Posterior whose bound gradients take products of so many positions."""
        other = copy(self)
        other._group = size
        return other

    def constrain(self, phi: Array) -> Array:
        """Reported parameters ``(C, P)`` at phi."""
        theta = np.empty_like(phi)
        for start in range(0, len(phi), _BLOCK):  # whose temporaries stay in cache
            draws = slice(start, start + _BLOCK)
            theta[draws] = self.to_theta(phi[draws], group=_GROUP)
        return self.inner.constrain(theta)


class NormalNoncenteredPosterior(NoncenteredPosterior):
    """The non-centered posterior under normal priors, in which z is exactly standard normal.

    The log density is then ``-z^2 / 2 + m(gamma)``, with m the log marginal density of gamma in
    closed form: a step costs O(P), without a product with a matrix.
    """

    def _marginal(self, g: Array, gamma: Array, ratio: Array, scaled: Array, D: Array) -> Array:
        noise_prior = self.inner.noise_prior
        assert noise_prior is not None
        value = -0.5 * (self._exponent * gamma + np.exp(-gamma) * self._square)
        value += noise_prior.log_density(gamma)
        value -= 0.5 * self._temperature * np.log(D).sum(axis=1)
        value += self._temperature * self._noise.log_stretch(g)
        if self._moves:
            value += 0.5 * (np.square((ratio - 1.0) * self._pull) / D).sum(axis=1)
        return value

    def log_density(self, phi: Array) -> Array:
        """Log posterior density of phi up to a constant ``(C,)``."""
        g, gamma, ratio, scaled, D, _ = self._parts(phi)
        z = phi[:, :-1]
        return self._marginal(g, gamma, ratio, scaled, D) - 0.5 * np.einsum("cp,cp->c", z, z)

    def grad(self, phi: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        noise_prior = self.inner.noise_prior
        assert noise_prior is not None
        if self.inner.linear_prior.follows_noise:  # D = t, and nothing but the noise moves
            gamma = self._noise.gamma(phi[:, -1])
            known = self._temperature * len(self._center) - self._exponent
            slope = 0.5 * (np.exp(-gamma) * self._square + known) + noise_prior.grad(gamma)
            grad = -phi
            grad[:, -1] = self._along_noise(phi[:, -1], slope)
            return grad
        g, gamma, ratio, scaled, D, _ = self._parts(phi)
        slope = 0.5 * (np.exp(-gamma) * self._square - self._exponent) + noise_prior.grad(gamma)
        terms = 0.5 * self._temperature * scaled / D
        if self._moves:
            moved = (ratio - 1.0) * np.square(self._pull) / D
            terms = terms - moved * (ratio - 0.5 * (ratio - 1.0) * scaled / D)
        grad = -phi
        grad[:, -1] = self._along_noise(g, slope + terms.sum(axis=1))
        return grad

    def slope_of_last(self) -> tuple[float, float, float] | None:
        """Derivative in the noise's coordinate, where nothing but the noise moves."""
        noise_prior, prior = self.inner.noise_prior, self.inner.linear_prior
        assert noise_prior is not None
        straight = isinstance(self._noise, StraightLine)
        if noise_prior.conjugate is None or not (prior.follows_noise and straight):
            return None
        exponent, scale = noise_prior.conjugate
        known = self._temperature * len(self._center) - self._exponent
        there = np.exp(-self._level) * (0.5 * self._square + scale)
        w = self._width
        return float(w * there), float(w * (0.5 * known - exponent)), float(w)

    def value_and_grad(self, phi: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        return self.log_density(phi), self.grad(phi)

    def bind_grad(self, n_chains: int) -> Callable[[Array], Array]:
        """:meth:`grad`, which is in closed form."""
        return self.grad

    def bind_value_and_grad(
        self, n_chains: int, followed: BasePosterior | None = None
    ) -> Callable[[Array], tuple[Array, Array]]:
        """:meth:`value_and_grad`, which is in closed form."""
        return BasePosterior.bind_value_and_grad(self, n_chains, followed)


# ---- what the noise scales: the likelihood, and priors in units of the noise ---------------------


def _scaled_square(posterior: GLMPosterior, theta: Array) -> float:
    """Sum of the squares that the noise variance divides, at ``theta (P,)``.

    They are those of the residuals and of the priors that the noise scales.
    """
    prior, at = posterior.linear_prior.scaled_part(), theta[None]
    value = prior.log_density(posterior._linear(at), np.zeros(1))
    total = float(posterior._statistics_value_and_grad(at)[0][0])
    gamma = float(theta[-1])
    residuals = -np.exp(gamma) * (
        2.0 * total + posterior.total_weight * (np.log(2 * np.pi) + gamma)
    )
    return residuals - 2.0 * float(value[0])


def _scaled_grad(posterior: GLMPosterior, theta: Array) -> Array:
    """Gradient of the log density of what the noise scales ``(n_linear,)``."""
    prior, at = posterior.linear_prior.scaled_part(), theta[None]
    grad, _ = prior.grad(posterior._linear(at), posterior._gamma(at))
    return posterior.grad_log_likelihood(at)[0, :-1] + grad.ravel()


def _scaled_curvature(posterior: GLMPosterior, theta: Array) -> Array:
    """Minus the Hessian of that log density ``(n_linear, n_linear)``."""
    prior, linear = posterior.linear_prior.scaled_part(), posterior._linear(theta[None])[0]
    of_rows = posterior.likelihood_curvature(theta)[:-1, :-1]
    return of_rows + prior.curvature(linear, float(theta[-1]))[0]
