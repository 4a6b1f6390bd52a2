"""Generalised linear models with the hyperparameters of a prior among the parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from skbayes_sgld._linalg import GROUP
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import OwnParameter
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.parameters import Parameters, Scales
from skbayes_sgld.posterior.protocol import Facts, Reported
from skbayes_sgld.priors import CoefficientPrior, Flat, HierarchicalPrior
from skbayes_sgld.priors.by_column import replaced


class WithScales(BasePosterior):
    """Posterior of a model and of scales of its parameters, which are learned.

    A subclass adds the density of the scales, and that of parameters given these.

    Attributes
    ----------
    flat : GLMPosterior
        Model without the prior of the parameters whose scales are learned.
    parameters : Parameters
        Blocks of the model, and ``scales``.
    """

    flat: GLMPosterior
    parameters: Parameters

    def _add_scales(self, theta: Array, value: Any, grad: Array) -> tuple[Array, Array]:
        """Add the log density of parameters given scales, and of scales, and its gradient in theta.

        ``value`` and ``grad``, which is overwritten, are those of the model without them.
        """
        raise NotImplementedError

    def _of_model(self, theta: Array) -> Array:
        """Parameters of the model."""
        return self.parameters.split(theta, "scales")[0]

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Log likelihood of each row ``(C, B)``."""
        return self.flat.log_likelihood(self._of_model(theta), idx)

    def grad_log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Gradient of the log likelihood, summed over the rows ``(C, P)``."""
        base, h = self.parameters.split(theta, "scales")
        grad = self.flat.grad_log_likelihood(base, idx)
        return self.parameters.join(grad, np.zeros_like(h), "scales")

    def _prior(self, theta: Array) -> tuple[Array, Array]:
        """Log prior of theta ``(C,)`` and its gradient ``(C, P)``."""
        at = self._of_model(theta)
        return self._add_scales(theta, self.flat.log_prior(at), self.flat.grad_log_prior(at))

    def log_prior(self, theta: Array) -> Array:
        """Log prior of theta ``(C,)``."""
        return self._prior(theta)[0]

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""
        return self._prior(theta)[1]

    def log_density(self, theta: Array) -> Array:
        """Log posterior density of theta up to a constant ``(C,)``."""
        return self.value_and_grad(theta)[0]

    def grad(self, theta: Array) -> Array:
        """Gradient of the log posterior ``(C, P)``."""
        return self.bind_grad()(theta)

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        return self._add_scales(theta, *self.flat.value_and_grad(self._of_model(theta)))

    def bind_grad(self, group: int | None = GROUP) -> Callable[[Array], Array]:
        """:meth:`grad` for one run in one thread."""
        in_model = self.flat.bind_grad(group)
        return lambda theta: self._add_scales(theta, 0.0, in_model(self._of_model(theta)))[1]

    def bind_value_and_grad(
        self, followed: BasePosterior | None = None, group: int | None = GROUP
    ) -> Callable[[Array], tuple[Array, Array]]:
        """:meth:`value_and_grad` for one run in one thread."""
        if followed is not None and followed is not self:
            return super().bind_value_and_grad(followed, group)
        in_model = self.flat.bind_value_and_grad(group=group)
        return lambda theta: self._add_scales(theta, *in_model(self._of_model(theta)))


class HierarchicalPosterior(WithScales):
    """Posterior of a generalised linear model and the hyperparameters of its prior.

    ``theta`` holds the coefficients and intercepts, the hyperparameters h and the coordinates of
    the likelihood's own parameters. It has a funnel: samplers move in the coordinates of
    :mod:`~skbayes_sgld.posterior.parameterizations.hyperparameters`.

    Parameters
    ----------
    model : GLMPosterior
        Model under ``prior.conditional()``, whose scales are those at hyperparameters of 1.
    prior : HierarchicalPrior

    Attributes
    ----------
    model : GLMPosterior
    flat : GLMPosterior
        Model without the prior of its coefficients.
    prior : HierarchicalPrior
        Prior with numbers for its scales.
    """

    def __init__(self, model: GLMPosterior, prior: HierarchicalPrior) -> None:
        if "noise_slopes" in model.parameters:
            raise ValueError(
                f"prior={prior!r} is of models with one noise variance; set "
                "noise_model='constant', or prior='normal'."
            )
        self.model = model
        self.prior = prior.with_scales_of(
            model.prior, model.column_spread, model.likelihood, model.y, model.weight
        )
        self.n_samples, self.n_predictors = model.n_samples, model.n_predictors
        self.likelihood, self.own_priors = model.likelihood, model.own_priors
        self.infers_noise = model.likelihood.infers_noise
        self.scales = Scales(self.prior.learned, model.coords["feature"])
        self.parameters = model.parameters.plus(self.scales)
        self.n_params, self.param_names = self.parameters.size, self.parameters.names
        self.n_linear, self.n_own = self.parameters.n_linear, self.parameters.n_own
        self.flat = self._under(Flat())
        self.linear_prior = self.flat.linear_prior

    @property
    def own_parameters(self) -> tuple[OwnParameter, ...]:  # type: ignore[override]
        """Own parameters of the likelihood."""
        return self.likelihood.own

    @property
    def facts(self) -> Facts:
        """Facts about the posterior's shape and cost."""
        common = self.scales.prior.common
        of_all = common and isinstance(self.scales.columns, slice)
        spans = of_all and "row_space" in self.model.facts.parameterizations
        return Facts(
            hierarchical=True,
            one_mode=True,
            cheap_full_gradient=self.model.facts.cheap_full_gradient,
            n_predictors=self.n_predictors,
            parameterizations=("noncentered", "row_space") if spans else ("noncentered",),
        )

    def given(self, eta: Array) -> GLMPosterior:
        """Posterior of the linear parameters at known hyperparameters and own parameters."""
        h, own = np.split(eta, [len(eta) - self.n_own])
        return self._given_scales(h).given_own(own)

    def _given_scales(self, h: Array) -> GLMPosterior:
        return self._under(self.scales.prior.at(h))

    def _under(self, prior: CoefficientPrior) -> GLMPosterior:
        """The model under a given prior of the coefficients whose scales are learned."""
        coef = replaced(self.model.prior, self.scales.columns, prior)
        return self.model.with_prior(replace(self.model.linear_prior, coef=coef))

    def rounded(self, density: bool = False) -> HierarchicalPosterior:
        """Posterior with a rounded gradient, or itself."""
        flat = self.flat.rounded()
        if density or flat is self.flat:
            return self
        other = copy(self)
        other.flat = flat
        return other

    # ---- the density ----------------------------------------------------------------------------

    def split(self, theta: Array) -> tuple[Array, Array, Array | None]:
        """Parameters of the model, hyperparameters, and log noise variance."""
        base, h = self.parameters.split(theta, "scales")
        return base, h, self.model.parameters.gamma(base)

    def hyper_value_and_grad(self, h: Array, gamma: Array | None) -> tuple[Array, Array, Array]:
        """Log density of the hyperparameters, and its gradients in h and in gamma."""
        return self.scales.prior.value_and_grad(h, gamma)

    def _add_scales(self, theta: Array, value: Any, grad: Array) -> tuple[Array, Array]:
        """Add the log density of the coefficients given h, and of h."""
        (base, h, gamma), blocks = self.split(theta), self.model.parameters
        coef, columns = blocks.coef(base), self.scales.columns
        of_coef, in_coef, in_h = self.scales.prior.of_coef(coef[..., columns], h)
        blocks.coef(grad)[..., columns] += in_coef
        of_h, own_in_h, in_gamma = self.hyper_value_and_grad(h, gamma)
        if gamma is not None:
            grad[:, blocks.noise] += in_gamma
        return value + of_coef + of_h, self.parameters.join(grad, in_h + own_in_h, "scales")

    # ---- reported parameters --------------------------------------------------------------------

    @property
    def reported(self) -> Reported:
        """Reported parameters: those of the model, then the hyperparameters."""
        blocks = self.parameters
        maps = blocks.to_reported, blocks.from_reported, blocks.moves
        return Reported(blocks.reported_names, *maps, self.model.coords)

    def start(self) -> Array:
        """Theta ``(P,)`` at the start of the model and of the scales."""
        return self._with_scales(self.model.start())

    def zeros(self) -> Array:
        """Point ``(P,)`` at which all coefficients are 0 and the scales are at their start."""
        return self._with_scales(self.model.zeros())

    def _with_scales(self, base: Array) -> Array:
        return self.parameters.join(base[None], self.scales.prior.start()[None], "scales")[0]

    def draw_prior(self, generators: Sequence[np.random.Generator]) -> Array:
        """Reported parameters ``(C, P)`` from the prior, as those of the model."""
        gamma = self.model.parameters.at_one(self.model.zeros())[1]
        values = []
        for rng in generators:
            h = self.scales.prior.sample_hyper(rng, gamma)
            scales = self.scales.prior.to_reported(h[None])[0]
            values.append(np.append(self._given_scales(h).draw_prior([rng])[0], scales))
        return np.array(values)
