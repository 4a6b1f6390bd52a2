r"""The model in the space that few rows of many columns span.

Under a normal prior the coefficients divided by the prior sds are a priori
:math:`\beta / s \sim N(\mu / s, v I)`, with v equal to 1 or to the noise variance. With an
orthonormal basis Q of the scaled rows, ``X diag(s) = L Q'`` (for a prior covariance matrix, its
root replaces diag(s)), the likelihood depends on them only through :math:`a = Q' \beta / s`:

.. math:: X \beta = L a, \quad a \sim N(Q' \mu / s, v I),

a model of the same kind with as many columns as there are rows. Given a and v, the other directions
of the coefficients are drawn from the prior (Matheron's rule; Wilson et al. 2021, eq. 8):

.. math:: \beta / s = e + Q (a - Q' e), \quad e \sim N(\mu / s, v I).

A learned common scale tau multiplies s, and so the prior sds of a and e: the model of a has the
same learned scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse import issparse

from skbayes_sgld._linalg import ALIKE, matmul_rows, one_blas_thread
from skbayes_sgld._sparse import scale_columns
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.hierarchical import HierarchicalPosterior
from skbayes_sgld.posterior.protocol import Reported
from skbayes_sgld.priors.location_scale import Normal
from skbayes_sgld.priors.noise import NoisePrior


class RowSpacePosterior(GLMPosterior):
    """A generalised linear model under a normal prior, in the space of its rows.

    Its coefficients are a, with the intercept and the noise unchanged. The coefficients of X are
    reported; their part outside the row space is drawn from the prior.

    Parameters
    ----------
    posterior : GLMPosterior
        Posterior with a :class:`~skbayes_sgld.priors.Normal` or
        :class:`~skbayes_sgld.priors.ConjugateNormal` prior, and fewer rows than columns.
    temperature : float
        Temperature tau of the sampler, which tempers all parameters together.
    """

    def __init__(self, posterior: GLMPosterior, temperature: float = 1.0) -> None:
        d, prior = posterior.n_features, posterior.prior
        assert isinstance(prior, Normal)
        self.inner, self._temperature = posterior, temperature
        self._prior = prior
        self._location = prior.whiten(np.broadcast_to(prior.location, d))
        if issparse(posterior.X) and prior.covariance is None:
            self._basis = _Basis(scale_columns(posterior.X, prior.scale))
        else:
            self._basis = _Basis(prior.scale_columns(posterior.X))
        rows = self._basis.rows
        own_priors = posterior.own_priors
        if posterior.likelihood.infers_noise and prior.scaled_by_noise:
            # at temperature tau, the part outside the row space integrates to a power of v
            n_unseen = d - rows.shape[1]
            tilted = _Tilted(own_priors[0], 0.5 * (temperature - 1.0) * n_unseen)
            own_priors = tilted, *own_priors[1:]
        super().__init__(
            rows,
            posterior.y,
            posterior.likelihood,
            type(prior)(1.0, self._basis.project(self._location)),
            own_priors,
            intercept_prior=posterior.linear_prior.intercept,
            sample_weight=posterior.weight,
            offset=posterior.offset,
            n_averaged=posterior.n_averaged,
            others=posterior.values.others,
            fit_intercept=posterior.fit_intercept,
            intercept_at_mean=posterior.x_mean is not None,
            feature_names=[f"row direction {j}" for j in range(rows.shape[1])],
        )
        self.coords = posterior.coords

    def _parameterizations(self) -> tuple[str, ...]:
        return tuple(n for n in super()._parameterizations() if n != "row_space")

    def draw_prior(self, generators: list[np.random.Generator]) -> Array:
        """Draws from the prior of all coefficients ``(C, P)``, as reported parameters."""
        return self.inner.draw_prior(generators)

    @property
    def reported(self) -> Reported:
        """Reported parameters of the model with all coefficients."""
        names, maps = self.inner.reported.names, (self.to_reported, self.from_reported)
        return Reported(names, *maps, self.parameters.moves, self.coords)

    def to_reported(self, theta: Array, scale: Array | None = None) -> Array:
        """Reported parameters ``(S, P)`` at ``theta``, which has the width of the row space.

        The part outside the row space is random, with a seed made from the first draw: the same
        draws always give the same parameters, and other draws independent ones. ``scale (S,)``
        multiplies the prior sds.
        """
        inner, full = self.parameters, self.inner.parameters
        inner_values = inner.to_reported(theta)
        rng = np.random.default_rng(np.ascontiguousarray(theta[0], dtype=float).view(np.uint64))
        unit = np.ones(len(theta)) if scale is None else scale
        sds = np.sqrt(self._temperature) * unit[:, None, None]
        if self._prior.scaled_by_noise:
            sds *= np.sqrt(inner.own(inner_values)[:, :1])[:, None]
        values = np.empty((len(theta), full.size))
        coef, inner_coef = full.coef(values), inner.coef(inner_values)
        with one_blas_thread():
            for start in range(0, len(theta), 256):  # all draws at once would double the memory
                rows = slice(start, start + 256)
                e = self._location + sds[rows] * rng.standard_normal(coef[rows].shape)
                rest = inner_coef[rows] - self._basis.project(e)
                coef[rows] = self._prior.unwhiten(e + self._basis.expand(rest))
        if self.n_predictors > 1:
            coef -= coef.mean(axis=1, keepdims=True)
        full.intercept(values)[...] = inner.intercept(inner_values)
        full.own(values)[...] = inner.own(inner_values)
        return values

    def from_reported(self, values: Array) -> Array:
        """Theta ``(S, P of the row space)`` of the reported parameters."""
        inner, full = self.parameters, self.inner.parameters
        inner_values = np.empty((len(values), inner.size))
        projection = self._basis.project(self._prior.whiten(full.coef(values)))
        inner.coef(inner_values)[...] = projection
        inner.intercept(inner_values)[...] = full.intercept(values)
        inner.own(inner_values)[...] = full.own(values)
        return inner.from_reported(inner_values)


class HierarchicalRowSpacePosterior(HierarchicalPosterior):
    """A generalised linear model under a normal prior of learned scale, in the space of its rows.

    Parameters
    ----------
    posterior : HierarchicalPosterior
        Posterior with one common scale, and fewer rows than columns.
    temperature : float
        Temperature tau of the sampler, which tempers all parameters together.
    """

    def __init__(self, posterior: HierarchicalPosterior, temperature: float) -> None:
        model = RowSpacePosterior(posterior.model, temperature)
        super().__init__(model, posterior.prior)
        # the prior was made for all columns; here the scale is the sd of each direction
        prior = copy(posterior.prior)
        prior.scale = np.ones(model.n_features)
        self.scales = replace(self.scales, parts=((slice(None), prior),))
        # at temperature tau, the part outside the row space integrates to a power of the scale
        n_unseen = model.n_predictors * (posterior.model.n_features - model.n_features)
        self._power = (temperature - 1.0) * n_unseen
        self.inner, self._rows = posterior, model

    def hyper_value_and_grad(self, h: Array, gamma: Array | None) -> tuple[Array, Array, Array]:
        """Log density of the log scale, and its gradients in it and in gamma."""
        value, in_h, in_gamma = super().hyper_value_and_grad(h, gamma)
        return value + self._power * h[:, 0], in_h + self._power, in_gamma

    @property
    def reported(self) -> Reported:
        """Reported parameters of the model with all coefficients."""
        names, maps = self.inner.reported.names, (self.to_reported, self.from_reported)
        return Reported(names, *maps, coords=self.inner.reported.coords)

    def to_reported(self, theta: Array) -> Array:
        """Reported parameters ``(S, P)`` at ``theta``, which has the width of the row space."""
        base, h, _ = self.split(theta)
        prior = self.scales.prior
        values = self._rows.to_reported(base, np.exp(prior.log_scale(h)[:, 0]))
        return np.hstack([values, prior.to_reported(h)])

    def from_reported(self, values: Array) -> Array:
        """Theta ``(S, P of the row space)`` of the reported parameters; the scale is the last."""
        base, scale = self._rows.from_reported(values[:, :-1]), values[:, -1:]
        return self.parameters.join(base, self.scales.prior.from_reported(scale), "scales")

    def draw_prior(self, generators: Sequence[np.random.Generator]) -> Array:
        """Draws from the prior of all coefficients ``(C, P)``, as reported parameters."""
        return self.inner.draw_prior(generators)


class _Basis:
    """Orthonormal basis Q ``(d, m)`` of the rows of X, and X in it ``(n, m)``.

    For sparse rows Q is never formed. With the eigenvectors U and eigenvalues D of ``X X^T`` it
    is ``Q = X^T U D^{-1/2}``; directions that have less than 1e-12 of the largest eigenvalue are
    rounding errors, and are left out.
    """

    def __init__(self, X: Any) -> None:
        self._X = X if issparse(X) else None
        if self._X is None:
            self._Q, upper = linalg.qr(X.T, mode="economic", overwrite_a=True, check_finite=False)
            self.rows = np.ascontiguousarray(upper.T)
        else:
            values, vectors = linalg.eigh((X @ X.T).toarray())
            positive = values > 1e-12 * values[-1]
            self._Q = vectors[:, positive] / np.sqrt(values[positive])  # without X^T
            self.rows = vectors[:, positive] * np.sqrt(values[positive])

    def project(self, coef: Array) -> Array:
        """``coef Q`` for each row of ``coef (..., d)``, independent of the others."""
        flat = coef.reshape(-1, coef.shape[-1])
        if self._X is not None:
            flat = np.ascontiguousarray((self._X @ flat.T).T)
        return matmul_rows(flat, self._Q, ALIKE).reshape(*coef.shape[:-1], -1)

    def expand(self, coordinates: Array) -> Array:
        """``seen Q^T`` for each row of ``seen (..., m)``."""
        flat = matmul_rows(coordinates.reshape(-1, coordinates.shape[-1]), self._Q.T, ALIKE)
        if self._X is not None:
            flat = (self._X.T @ flat.T).T
        return flat.reshape(*coordinates.shape[:-1], -1)


@dataclass(eq=False, repr=False)
class _Tilted(NoisePrior):
    """A noise prior times a power of the variance, ``exp(slope gamma)``."""

    prior: NoisePrior
    slope: float

    def log_density(self, gamma: Array) -> Array:
        return self.prior.log_density(gamma) + self.slope * gamma

    def grad(self, gamma: Array) -> Array:
        return self.prior.grad(gamma) + self.slope

    def curvature(self, gamma: float) -> float:
        return self.prior.curvature(gamma)
