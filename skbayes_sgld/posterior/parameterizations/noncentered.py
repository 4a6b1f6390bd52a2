"""The non-centered parameterization of a normal linear model, without its funnel.

Given the noise, the coefficients of a normal linear model under a normal prior are normal, with a
mean and a width that depend on the noise: a funnel, to which no constant preconditioner fits. The
coordinates ``z``, the coefficients minus this mean divided by this width, are standard normal at
any noise: see :mod:`~skbayes_sgld.posterior.parameterizations.conditional`, with r = 1 and ``t =
exp(gamma* - gamma)`` about the conditional mode at a reference gamma*. Priors scaled by the noise
count as part of the likelihood; if all are, the whole precision scales with t. For other priors
their average curvature is used: z is then only nearly normal, but the density is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skbayes_sgld._linalg import GROUP, matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.linear_prior import LinearPrior
from skbayes_sgld.posterior.parameterizations.base import Affine, Map, Reparameterized
from skbayes_sgld.posterior.parameterizations.conditional import (
    EigenScales,
    NormalCoefficients,
    NormalGivenScales,
)
from skbayes_sgld.posterior.parameterizations.noise_coordinate import (
    normal_quantiles,
    straight_line,
)
from skbayes_sgld.priors.noise import NoisePrior

# Sd of the log noise variance above which steps that are never rejected may become unstable, with a
# linear map. The likelihood falls like exp(-exp(-gamma)) towards small noise: a Langevin step of
# half the width is stable while gamma is within 1.4 of its mode, which is five sds at this limit
_STEEP = 0.28


class NoiseScale(NamedTuple):
    """Log t as a function of the log noise variance gamma, and the density of gamma.

    At given coefficients the log density of everything that the noise scales is, as a function of
    gamma, ``constant - (exponent gamma + exp(-gamma) square) / 2``, plus the log prior of the noise
    if that is not of this form. Gamma is the last column of eta.
    """

    reference: float
    exponent: float
    square: float
    constant: float
    prior: NoisePrior | None

    @classmethod
    def of(cls, posterior: GLMPosterior, theta: Array) -> NoiseScale:
        """Noise of a linear model, at the coefficients and the reference in ``theta (P,)``."""
        prior, at = posterior.noise_prior, theta[None]
        assert prior is not None
        exponent = posterior.facts.total_weight + posterior.linear_prior.n_scaled
        slope = float(posterior.grad(at)[0, -1] - prior.grad(theta[-1:])[0])
        square = float(np.exp(theta[-1]) * (2.0 * slope + exponent))
        constant = float(-0.5 * posterior.facts.total_weight * np.log(2.0 * np.pi))
        if prior.conjugate is None:
            return cls(float(theta[-1]), exponent, square, constant, prior)
        shape, scale = prior.conjugate
        return cls(float(theta[-1]), exponent + 2.0 * shape, square + 2.0 * scale, constant, None)

    def at(self, eta: Array) -> tuple[None, Array]:
        """Log r (None, as r is 1) and log t."""
        # t stays above 0 however far a chain is thrown
        return None, np.maximum(self.reference - eta[:, -1], -700.0)

    def pull_back(self, eta: Array, in_log_r: Array, in_log_t: Array) -> Array:
        """Gradient in gamma ``(C, 1)``."""
        return -in_log_t[:, None]

    def value_and_grad(self, eta: Array) -> tuple[Array, Array]:
        """Log density at the coefficients ``(C,)``, and its derivative in gamma ``(C, 1)``."""
        gamma = eta[:, -1]
        half = 0.5 * self.square * np.exp(-gamma)
        value = self.constant - 0.5 * self.exponent * gamma - half
        slope = half - 0.5 * self.exponent
        if self.prior is not None:
            value = value + self.prior.log_density(gamma)
            slope = slope + self.prior.grad(gamma)
        return value, slope[:, None]


class OtherNoncentered(Reparameterized):
    """Linear model under priors that are not normal; its likelihood is quadratic in the basis.

    The map is :class:`NormalGivenScales`, with a :class:`NoiseScale`.
    """

    def bind_grad(self, group: int | None = GROUP) -> Callable[[Array], Array]:
        """:meth:`grad` for one run in one thread, in the basis."""
        bound = self._bind_in_basis(None, self.inner.linear_prior, group)
        return lambda phi: bound(phi)[1]

    def bind_value_and_grad(
        self, followed: BasePosterior | None = None, group: int | None = GROUP
    ) -> Callable[[Array], tuple[Array, Array]]:
        """:meth:`value_and_grad` in the basis, also under the prior of ``followed``.

        Through theta a fit would take 1.2 (10 columns) to 1.7 times (300) the processor time.
        """
        other = self if followed is None else followed
        if not (isinstance(other, OtherNoncentered) and other.coordinates is self.coordinates):
            return super().bind_value_and_grad(followed, group)
        return self._bind_in_basis(self.inner.linear_prior, other.inner.linear_prior, group)

    def _bind_in_basis(
        self, prior: LinearPrior | None, followed: LinearPrior, group: int | None
    ) -> Callable[[Array], tuple[Array, Array]]:
        """Log density under ``prior``, if that is given, and gradient under ``followed``."""
        at, tau, L = self.coordinates, self.temperature, len(self.coordinates.origin)
        eigen, own = at.coefficients, None if prior is None else prior.part(scaled_by_noise=False)
        in_prior = followed.part(scaled_by_noise=False)

        def value_and_grad(phi: Array) -> tuple[Array, Array]:
            z, noise = at.split(phi)
            parts = eigen.parts(*at.scales.at(noise.theta))
            w, root, pull_back = eigen.in_basis(z, parts)
            (row_products, in_rows), size = parts[2], group or len(phi)
            beta = at.origin + matmul_rows(w, eigen.back, size)
            pull = in_rows - row_products * w
            inner = 0.5 * np.vecdot(in_rows + pull, w)
            slope = in_prior.grad(beta[:, None], None)[0][:, 0]
            at_origin, in_eta = at.scales.value_and_grad(noise.theta)
            in_z, *in_scales = pull_back(matmul_rows(slope, eigen.basis, size) + pull, tau)
            grad = np.empty_like(phi)
            grad[:, :L] = in_z
            grad[:, L:] = at.in_x(noise, in_eta - inner[:, None], in_scales, tau)
            if own is None:
                return inner, grad
            value = at_origin + inner + tau * (noise.log_jacobian - eigen.total(np.log(root)))
            return value + own.log_density(beta[:, None], None), grad

        return value_and_grad

    def with_rounded_kinks(self, spread: Array) -> OtherNoncentered:
        """Posterior with its kinks rounded; ``spread`` is 1 in phi by construction."""
        basis = self.coordinates.coefficients.basis
        inner = self.inner.with_rounded_kinks(np.append(np.sqrt(np.square(basis).sum(axis=1)), 1.0))
        return self if inner is self.inner else self._with(inner=inner)


def noncentered(
    posterior: GLMPosterior, center: Array, root: Array, gamma: float, temperature: float = 1.0
) -> tuple[Reparameterized, Affine]:
    """Linear model in non-centered coordinates, given level and sd of the log noise variance at 0.

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
    temperature : float, default=1.0
        Temperature of the sampler.
    """
    prior, theta = posterior.linear_prior, np.append(center, gamma)
    linear = posterior.parameters.linear(theta[None])
    straight = True
    if prior.follows_noise:
        coefficients = EigenScales(root, np.zeros(1), 0.0)
    else:
        scaled = prior.part(scaled_by_noise=True)
        H = posterior.expand_likelihood(theta).curvature[:-1, :-1]
        scaled.add_curvature(H, linear[0], gamma)
        g = posterior.grad_log_likelihood(theta[None])[0, :-1]
        g = g + scaled.grad(linear, theta[-1:])[0].ravel()
        share, vectors = np.linalg.eigh(root.T @ H @ root)
        basis, share = root @ vectors, np.clip(share, 0.0, 1.0)
        error = np.abs(basis.T @ H @ basis - np.diag(share)).max()
        straight = bool(error < 1e-9)  # in the eigenvectors H is diagonal, up to rounding errors
        coefficients = EigenScales(basis, 1.0 - share, g @ basis, -(g @ basis))

    noise = NoiseScale.of(posterior, theta)
    if prior.normal:
        rest = prior.part(scaled_by_noise=False).log_density(linear, None)
        noise = noise._replace(constant=noise.constant + float(rest[0]))

    def in_coordinates(scale_map: Map, steep: bool = False) -> Reparameterized:
        at = NormalGivenScales(center, coefficients, noise, scale_map)
        facts: dict[str, Any] = {"cheap_full_gradient": True, "steep": steep}
        if not prior.normal:
            kind = OtherNoncentered if straight else Reparameterized
            return kind(posterior, at, temperature, **facts)
        return NormalCoefficients(posterior, at, temperature, normal_but_last=True, **facts)

    def of_noise(gamma: Array) -> Array:
        phi = np.zeros((len(gamma), posterior.n_params))
        phi[:, -1] = gamma
        return plain.log_density(phi)

    plain = in_coordinates(Affine(np.zeros(1), np.ones((1, 1))))
    line = straight_line(of_noise, gamma, posterior.facts.total_weight, temperature)
    if line.root[0, 0] * np.sqrt(temperature) <= _STEEP:
        return in_coordinates(line), line
    scale_map = normal_quantiles(of_noise, line, temperature)
    return in_coordinates(scale_map, isinstance(scale_map, Affine)), line
