"""Generalised linear models whose prior has hyperparameters, free of their funnels.

Given the hyperparameters and the noise the coefficients are normal under a normal likelihood, and
nearly so under others. The coordinates are z, standardised by that normal distribution wherever
the hyperparameters are, and the hyperparameters, standardised too: under a normal likelihood z is
standard normal and independent of everything else, whatever the data and the prior say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.parameterizations.conditional import CommonScale, OwnScales, Solved
from skbayes_sgld.posterior.priors import Flat, HierarchicalPrior, Normal

Array = NDArray[Any]


class _State(NamedTuple):
    """A point in all its coordinates."""

    theta: Array  # of the model: coefficients, intercepts and the log noise variance
    h: Array
    gamma: Array | None
    solved: Solved
    square: Array  # of the coefficients over their scales (C, K, d)


class HierarchicalPosterior(BasePosterior):
    """Posterior of a generalised linear model and the hyperparameters of its prior.

    Parameters
    ----------
    model : GLMPosterior
        Model under ``prior.conditional()``, whose scales are those at hyperparameters of 1.
    prior : HierarchicalPrior
    """

    def __init__(self, model: GLMPosterior, prior: HierarchicalPrior) -> None:
        d, unit = model.n_features, model.prior
        scale = np.broadcast_to(np.asarray(unit.get_params()["scale"], dtype=float), d)
        self.model = model
        self.prior = prior.for_model(
            scale, model.column_spread, model.likelihood, model.y, model.weight
        )
        self.n_samples, self.n_predictors = model.n_samples, model.n_predictors
        self._L, self._noise = model._n_linear, model.likelihood.infers_noise
        features = [f"[{name}]" for name in model.coords["feature"]]
        self._hyper_names = self.prior.names(features)
        self._m, self.n_params = len(self._hyper_names), model.n_params + len(self._hyper_names)
        names = model.param_names
        self.param_names = names[: self._L] + self._hyper_names + names[self._L :]
        self.noise_prior, self.noise_columns = model.noise_prior, model.noise_columns
        self.coords = model.coords
        self._temperature = 1.0
        self._flat = copy(model)
        self._flat.linear_prior = replace(model.linear_prior, coef=Flat())
        self.linear_prior = self._flat.linear_prior
        start = model.start()
        # coefficients of 0, about which the expansion loses no digits to the level of y
        self._origin = start[: self._L]
        # no prior but that of the coefficients, which is exact
        self._exact = model.likelihood.quadratic and model.linear_prior.intercept is None
        gamma = float(start[-1]) if self._noise else 0.0
        h = self.prior.start()
        self._refer(start[: self._L], np.append(h, gamma) if self._noise else h)

    def _refer(
        self, center: Array, hyper: Array, root: Array | None = None, power: float = 0.0
    ) -> None:
        """Expand the log likelihood at coefficients, hyperparameters and log noise variance."""
        self._hyper, m = hyper, len(hyper)
        self._root = np.eye(m) if root is None else root
        self._gamma = float(hyper[-1]) if self._noise else 0.0
        theta = np.append(center, self._gamma) if self._noise else center
        H = self._flat.curvature(theta)[: self._L, : self._L]
        g = H @ (center - self._origin) + self._flat.grad(theta[None])[0, : self._L]
        log_precision, _ = self._log_precision(hyper[None, : self._m])
        family = CommonScale if self.prior.common else OwnScales
        self._map = family(H, g, log_precision[0], power)
        at = np.append(self._origin, self._gamma)[None, : self._L + self._noise]
        # -SSE / (2 sigma^2) where all coefficients are 0, at the reference noise
        known = 0.5 * self.model.total_weight * (np.log(2.0 * np.pi) + self._gamma)
        of_rows = self._flat.log_density(at) - self._flat.log_prior(at)
        self._fit_at_origin = known + float(of_rows[0])
        self._constant = 0.0
        if self._exact:
            zero = np.zeros((1, self.n_params))
            value = self.log_density(zero) - self._marginal_value_and_grad(zero)[0]
            self._constant = float(value[0])

    def around(
        self, center: Array, hyper: Array, root: Array, power: float = 0.0
    ) -> HierarchicalPosterior:
        """The same posterior, its coordinates taken at another point.

        Parameters
        ----------
        center : ndarray of shape (n_linear,)
            Coefficients and intercepts that the log likelihood is expanded at.
        hyper : ndarray of shape (m,) or (m + 1,)
            Hyperparameters and, where it is inferred, the log noise variance.
        root : ndarray
            Root of their covariance.
        power : float, default=0.0
            That of :class:`CommonScale`, for a common scale.
        """
        other = copy(self)
        other._refer(center, hyper, root, power)
        return other

    def given(self, hyper: Array) -> GLMPosterior:
        """Posterior of the linear parameters where hyperparameters and noise are known."""
        scale = np.exp(self.prior.log_scale(hyper[None, : self._m])[0])
        model = self.model.given_noise(float(np.exp(hyper[-1]))) if self._noise else self.model
        other = copy(model)
        other.linear_prior = replace(model.linear_prior, coef=Normal(scale))
        return other

    @property
    def hierarchical(self) -> bool:
        """True: hyperparameters are among the parameters."""
        return True

    @property
    def parameterizations(self) -> tuple[str, ...]:
        """The non-centered coordinates alone."""
        return ("noncentered",)

    @property
    def hyper(self) -> Array:
        """Hyperparameters, and the log noise variance, where the standardised ones are 0."""
        return self._hyper

    # ---- the map ------------------------------------------------------------------------------

    def _log_precision(self, h: Array) -> tuple[Array, Array]:
        """Logs of the prior precisions ``(C, L)`` and of the scales ``(C, d)``."""
        log_scale = self.prior.log_scale(h)
        full = np.full((len(h), self.n_predictors, self.model._width), -np.inf)
        full[..., : self.model.n_features] = -2.0 * log_scale[:, None]
        return full.reshape(len(h), -1), log_scale

    def _hyper_at(self, phi: Array) -> tuple[Array, Array | None, Array]:
        """Hyperparameters, log noise variance, and log t."""
        standardised, root = np.ascontiguousarray(phi[:, self._L :]), self._root.T
        hyper = self._hyper + matmul_rows(standardised, np.ascontiguousarray(root))
        if not self._noise:
            return hyper, None, np.zeros(len(phi))
        return hyper[:, : self._m], hyper[:, -1], self._gamma - hyper[:, -1]

    def _state(self, phi: Array) -> _State:
        h, gamma, log_t = self._hyper_at(phi)
        log_precision, log_scale = self._log_precision(h)
        solved = self._map.solve(phi[:, : self._L], log_precision, log_t)
        beta = self._origin + solved.beta
        theta = beta if gamma is None else np.column_stack([beta, gamma])
        coef = self.model._linear(theta)[..., : self.model.n_features]
        square = np.square(coef * np.exp(-log_scale)[:, None])
        return _State(theta, h, gamma, solved, square)

    def _log_jacobian(self, state: _State) -> Array:
        return self._temperature * state.solved.log_det

    def _log_scales(self, state: _State) -> Array:
        """Log density of the coefficients given their scales, and of the hyperparameters."""
        log_scale = self.prior.log_scale(state.h).sum(axis=1)
        value = -0.5 * state.square.sum(axis=(1, 2)) - self.n_predictors * log_scale
        return value + self.prior.log_density(state.h, state.gamma)

    def _pull(self, state: _State, in_theta: Array, in_prior: float) -> Array:
        """Gradient in phi from that in theta, with the prior's and the Jacobian's or without."""
        in_beta = in_theta[:, : self._L].copy()
        linear = in_beta.reshape(len(in_beta), self.n_predictors, -1)
        coef = self.model._linear(state.theta)[..., : self.model.n_features]
        if in_prior:
            scale = np.exp(self.prior.log_scale(state.h))[:, None]
            linear[..., : self.model.n_features] -= coef / np.square(scale)
        pulled = self._map.pull(state.solved, in_beta, in_prior * self._temperature)
        by_column = pulled.log_precision.reshape(linear.shape)[..., : self.model.n_features]
        in_log_scale = -2.0 * by_column.sum(axis=1)
        if in_prior:
            in_log_scale += state.square.sum(axis=1) - self.n_predictors
        in_hyper = self.prior.pull_back(state.h, in_log_scale)
        in_gamma = None
        if self._noise:
            in_gamma = in_theta[:, -1] - pulled.log_t
        if in_prior:
            of_h, of_gamma = self.prior.grad(state.h, state.gamma)
            in_hyper = in_hyper + of_h
            in_gamma = None if in_gamma is None else in_gamma + of_gamma
        if in_gamma is not None:
            in_hyper = np.column_stack([in_hyper, in_gamma])
        return np.hstack([pulled.z, matmul_rows(np.ascontiguousarray(in_hyper), self._root)])

    # ---- the protocol -------------------------------------------------------------------------

    def log_likelihood(self, phi: Array, idx: Array | None = None) -> Array:
        """Log likelihood of each row ``(C, B)``."""
        return self._flat.log_likelihood(self._state(phi).theta, idx)

    def grad_log_likelihood(self, phi: Array, idx: Array | None = None) -> Array:
        """Gradient of the log likelihood, summed over the rows ``(C, P)``."""
        state = self._state(phi)
        return self._pull(state, self._flat.grad_log_likelihood(state.theta, idx), 0.0)

    def log_prior(self, phi: Array) -> Array:
        """Log prior of phi ``(C,)``, the log Jacobian included."""
        state = self._state(phi)
        own = self._log_scales(state) + self._log_jacobian(state)
        return own + self._flat.log_prior(state.theta)

    def grad_log_prior(self, phi: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""
        state = self._state(phi)
        return self._pull(state, self._flat.grad_log_prior(state.theta), 1.0)

    def log_density(self, phi: Array) -> Array:
        """Log posterior density of phi up to a constant ``(C,)``."""
        state = self._state(phi)
        own = self._log_scales(state) + self._log_jacobian(state)
        return own + self._flat.log_density(state.theta)

    def grad(self, phi: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        state = self._state(phi)
        return self._pull(state, self._flat.grad(state.theta), 1.0)

    def value_and_grad(self, phi: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        return self._with(self._flat.value_and_grad)(phi)

    def _marginal_value_and_grad(self, phi: Array) -> tuple[Array, Array]:
        """The same under a normal likelihood: ``-z'z / 2`` plus a function of the rest.

        That function is the log density with the coefficients integrated out.
        """
        h, gamma, log_t = self._hyper_at(phi)
        log_precision, log_scale = self._log_precision(h)
        value, in_log_precision, in_log_t = self._map.marginal(
            log_precision, log_t, self._temperature
        )
        z = phi[:, : self._L]
        value -= 0.5 * np.einsum("cp,cp->c", z, z) + self.n_predictors * log_scale.sum(axis=1)
        value += self.prior.log_density(h, gamma) + self._constant
        d = self.model.n_features
        in_hyper = self.prior.pull_back(h, -2.0 * in_log_precision[:, :d] - 1.0)
        of_h, of_gamma = self.prior.grad(h, gamma)
        in_hyper = in_hyper + of_h
        if gamma is not None:
            noise_prior, t = self.model.noise_prior, np.exp(log_t)
            assert noise_prior is not None
            weight = self.model.total_weight
            value += noise_prior.log_density(gamma) - 0.5 * weight * gamma + t * self._fit_at_origin
            in_gamma = noise_prior.grad(gamma) - 0.5 * weight - t * self._fit_at_origin
            in_hyper = np.column_stack([in_hyper, in_gamma + of_gamma - in_log_t])
        return value, np.hstack([-z, matmul_rows(np.ascontiguousarray(in_hyper), self._root)])

    def _with(
        self, of_model: Callable[[Array], tuple[Array, Array]]
    ) -> Callable[[Array], tuple[Array, Array]]:
        """Value and gradient, from a function for those of the model without its prior."""
        if self._exact:
            return self._marginal_value_and_grad

        def value_and_grad(phi: Array) -> tuple[Array, Array]:
            state = self._state(phi)
            value, in_theta = of_model(state.theta)
            value = value + self._log_scales(state) + self._log_jacobian(state)
            return value, self._pull(state, in_theta, 1.0)

        return value_and_grad

    def bind_grad(self, n_chains: int) -> Callable[[Array], Array]:
        """:meth:`grad` for ``phi (n_chains, P)``, for one run in one thread."""
        if self._exact:
            return lambda phi: self._marginal_value_and_grad(phi)[1]
        of_model = self._flat.bind_grad(n_chains)

        def grad(phi: Array) -> Array:
            state = self._state(phi)
            return self._pull(state, of_model(state.theta), 1.0)

        return grad

    def bind_value_and_grad(
        self, n_chains: int, followed: BasePosterior | None = None
    ) -> Callable[[Array], tuple[Array, Array]]:
        """:meth:`value_and_grad` for ``phi (n_chains, P)``, for one run in one thread."""
        if followed is not None and followed is not self:
            return super().bind_value_and_grad(n_chains, followed)
        return self._with(self._flat.bind_value_and_grad(n_chains))

    def tempered(self, temperature: float) -> HierarchicalPosterior:
        """Posterior for a sampler at this temperature, whose Jacobian is not tempered."""
        other = copy(self)
        other._temperature = temperature
        return other

    # ---- reported parameters ------------------------------------------------------------------

    @property
    def constrained_names(self) -> list[str]:
        """Names of the reported parameters: those of the model, then the hyperparameters."""
        return self.model.constrained_names + self._hyper_names

    def constrain(self, phi: Array) -> Array:
        """Reported parameters ``(S, P)`` at phi."""
        state = self._state(phi)
        return np.hstack([self.model.constrain(state.theta), self.prior.constrain(state.h)])

    def unconstrain(self, values: Array) -> Array:
        """Coordinates phi ``(S, P)`` of the reported parameters."""
        theta = self.model.unconstrain(values[:, : -self._m])
        hyper = self.prior.unconstrain(values[:, -self._m :])
        if self._noise:
            hyper = np.column_stack([hyper, theta[:, -1]])
        phi = np.zeros((len(values), self.n_params))
        phi[:, self._L :] = np.linalg.solve(self._root, (hyper - self._hyper).T).T
        # beta is linear in z, given the rest
        at_zero = self._state(phi).theta[:, : self._L]
        for c, row in enumerate(phi):
            points = np.tile(row, (self._L, 1))
            points[:, : self._L] = np.eye(self._L)
            R = self._state(points).theta[:, : self._L] - at_zero[c]
            phi[c, : self._L] = np.linalg.solve(R.T, theta[c, : self._L] - at_zero[c])
        return phi

    def zeros(self) -> Array:
        """Point ``(P,)`` at which all coefficients are 0 and the scales are at their start."""
        of_model = self.model.constrain(self.model.zeros()[None])
        of_prior = self.prior.constrain(self.prior.start()[None])
        return self.unconstrain(np.hstack([of_model, of_prior]))[0]

    def draw_prior(self, generators: Sequence[np.random.Generator]) -> Array:
        """Reported parameters ``(C, P)`` from the prior; flat ones are 0, the noise that of y."""
        theta = self.model.zeros()
        gamma = float(theta[-1]) if self._noise else None
        values = []
        for rng in generators:
            h = self.prior.sample_hyper(rng, gamma)
            scale = Normal(np.exp(self.prior.log_scale(h[None])[0]))
            model = copy(self.model)
            model.linear_prior = replace(self.model.linear_prior, coef=scale)
            values.append(np.append(model.draw_prior([rng])[0], self.prior.constrain(h[None])[0]))
        return np.array(values)


def with_hyperparameters(model: GLMPosterior, prior: HierarchicalPrior) -> HierarchicalPosterior:
    """Posterior of the model and of the hyperparameters of its prior."""
    if model.noise_columns is not None:
        raise ValueError(
            f"prior={prior!r} is of models with one noise variance; set noise_model='constant', or "
            "prior='normal'."
        )
    return HierarchicalPosterior(model, prior)
