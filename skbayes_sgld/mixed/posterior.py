r"""Generalised linear models with effects that vary by group, and curves.

The predictor of row i is :math:`x_i^\top \beta + \beta_0 + \sum_t z_{it}^\top u_{t, l_t(i)}`: term
t has effects :math:`u_{tl} \sim N(0, \Sigma_t)` for each of its labels l. In theta the effects
stand after the coefficients and the intercept, and then the hyperparameters of all
:math:`\Sigma_t`. The bend of a curve is a term whose labels, its basis functions, are all in every
row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skbayes_sgld._checks import escaped
from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.label_design import LabelDesign
from skbayes_sgld.mixed.report import variables_of
from skbayes_sgld.mixed.term import Term
from skbayes_sgld.posterior.coefficient_maps import ByBlock, CoefficientMap
from skbayes_sgld.posterior.design import DenseDesign, Design
from skbayes_sgld.posterior.glm import GLMPosterior, SharedSums
from skbayes_sgld.posterior.hierarchical import WithScales
from skbayes_sgld.posterior.parameters import ParameterBlock
from skbayes_sgld.posterior.protocol import Facts, Reported
from skbayes_sgld.posterior.stacked_design import StackedDesign
from skbayes_sgld.priors.group import LearnedCovariance

_MOST_INTEGRATED = 2  # effects of a label, over which quadrature integrates


class Covariances(ParameterBlock):
    """Hyperparameters of the covariances of all terms, term by term.

    Parameters
    ----------
    terms : sequence of Term
    each : sequence of LearnedCovariance
    """

    name = "scales"

    def in_design(self, n_predictors: int, level: int) -> tuple[Array, Array]:
        """None: predictors do not depend on them."""
        return np.empty(0, int), np.empty(0, int)

    def __init__(self, terms: Sequence[Term], each: Sequence[LearnedCovariance]) -> None:
        self.each = each
        pairs = zip(terms, each, strict=True)
        names = [name for t, c in pairs for name in t.scale_names(c.pairs)]
        self.coordinates = [escaped(name) for name in names]
        ends = np.cumsum([0, *(c.n_hyper for c in each)])
        self.at = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]

    def log_prior(self, values: Array) -> Array:
        """Log density of the hyperparameters."""
        return self.value_and_grad(values)[0]

    def grad_log_prior(self, values: Array) -> Array:
        """Gradient of the log density."""
        return self.value_and_grad(values)[1]

    def value_and_grad(self, h: Array) -> tuple[Array, Array]:
        """Log density ``(C,)`` of ``h (C, m)``, and its gradient."""
        pairs = zip(self.each, self.at, strict=True)
        parts = [covariance.value_and_grad(h[:, at]) for covariance, at in pairs]
        value = np.sum([value for value, _ in parts], axis=0)
        return value, np.hstack([slope for _, slope in parts])

    def start(self) -> Array:
        """A point in the middle of the prior."""
        return np.concatenate([covariance.start() for covariance in self.each])

    def reported(self, h: Array) -> Array:
        """Standard deviations and correlations ``(C, m)``."""
        pairs = zip(self.each, self.at, strict=True)
        return np.hstack([covariance.to_reported(h[:, at]) for covariance, at in pairs])

    def hyperparameters(self, values: Array) -> Array:
        """Hyperparameters of reported values ``(C, m)``."""
        pairs = zip(self.each, self.at, strict=True)
        return np.hstack([covariance.from_reported(values[:, at]) for covariance, at in pairs])

    def draw(self, rng: np.random.Generator, values: Array) -> Array:
        """Hyperparameters drawn from their prior."""
        return np.concatenate([covariance.sample(rng) for covariance in self.each])

    def to_reported(self, values: Array, theta: Array, at: slice) -> None:
        """Write standard deviations and correlations."""
        values[:, at] = self.reported(theta[:, at])

    def from_reported(self, theta: Array, at: slice) -> None:
        """Replace them by the hyperparameters."""
        theta[:, at] = self.hyperparameters(theta[:, at])


@dataclass(frozen=True, eq=False)
class Effects(ParameterBlock):
    """Effects of the labels of all terms, term by term, label by label.

    Their density given the scales is added by :class:`MixedPosterior`.

    Attributes
    ----------
    terms : sequence of Term
    first_column : int
        Column of the first one in the design.
    """

    name = "effects"
    terms: Sequence[Term]
    first_column: int

    @cached_property
    def coordinates(self) -> Sequence[str]:  # type: ignore[override]
        """Names, term by term."""
        return [escaped(name) for term in self.terms for name in term.effect_names]

    def in_design(self, n_predictors: int, level: int) -> tuple[Array, Array]:
        """Columns of the only predictor."""
        column = self.first_column + np.arange(len(self.coordinates))
        return np.zeros_like(column), column

    def log_prior(self, values: Array) -> Array:
        """0."""
        return np.zeros(len(values))

    def grad_log_prior(self, values: Array) -> Array:
        """Zeros."""
        return np.zeros_like(values)

    def prior_curvature(self, values: Array) -> Array:
        """Zeros."""
        return np.zeros_like(values)


class EffectsModel(GLMPosterior):
    """Generalised linear model with effects of labels under a flat prior.

    Parameters
    ----------
    model : GLMPosterior
        Model of the columns of numbers.
    terms : sequence of Term
    effects : sequence of csr_array or ndarray
        Columns of the effects of each term.

    Attributes
    ----------
    cubic : CubicSum or None
        Polynomial in place of the sum over rows, if that is close.
    """

    cubic: Any = None

    def __init__(self, model: GLMPosterior, terms: Sequence[Term], effects: Sequence[Any]) -> None:
        vars(self).update(vars(model))
        block = Effects(terms, super()._design(float).shape[1])
        self.effects, self.parameters = tuple(effects), model.parameters.plus(block)
        self._statistics, self._sums = None, SharedSums()

    def _sum(self, dtype: type = np.float64) -> Any:
        """Log likelihood of all rows, or the polynomial in its place."""
        return super()._sum(dtype) if self.cubic is None else self.cubic

    def _design(self, dtype: type) -> Design:
        """Columns of numbers, a column of ones, and the columns of the effects."""
        each = [_design(effect, dtype) for effect in self.effects]
        return StackedDesign(super()._design(dtype), *each)

    def _coefficient_map(self) -> CoefficientMap:
        return ByBlock(self.parameters)


class MixedPosterior(WithScales):
    """Posterior of coefficients, effects, the scales of the effects, and own parameters.

    Parameters
    ----------
    model : EffectsModel
    terms : sequence of Term
    covariances : sequence of LearnedCovariance
        Covariance of the effects of each term.
    """

    def __init__(
        self, model: EffectsModel, terms: Sequence[Term], covariances: Sequence[LearnedCovariance]
    ) -> None:
        self.model = self.flat = model
        self.terms = tuple(terms)
        self.covariances = Covariances(terms, covariances)
        self.n_samples, self.n_predictors = model.n_samples, model.n_predictors
        self.likelihood, self.own_priors = model.likelihood, model.own_priors
        self.linear_prior, self.prior = model.linear_prior, model.prior
        self.X, self.y = model.X, model.y
        self.weight = model.weight
        effects = {f"effects of {t.name}": e for t, e in zip(terms, model.effects, strict=True)}
        others = {**model.values.others, **effects}
        self.values = replace(model.values, others=others)
        """Everything by which a checkpoint recognises its rows."""
        self.noise_columns = None
        self.parameters = model.parameters.plus(self.covariances)
        self.n_params, self.param_names = self.parameters.size, self.parameters.names
        self.n_own = self.parameters.n_own
        place = self.parameters.at("effects")
        self.n_linear = place.stop
        """Number of coefficients, intercept and effects, the first entries of theta."""
        ends = place.start + np.cumsum([0, *(term.size for term in terms)])
        self.at = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        """Place of the effects of each term."""

    @property
    def own_parameters(self) -> tuple[Any, ...]:  # type: ignore[override]
        """Own parameters of the likelihood."""
        return self.likelihood.own

    @property
    def facts(self) -> Facts:
        """Facts about the posterior's shape and cost."""
        prior = self.linear_prior
        normal = self.likelihood.quadratic and prior.normal and not prior.n_scaled
        names = ["standardised"]
        if normal:
            names.insert(0, "integrated")
        elif self._integrates_labels:
            names.insert(0, "by_label")
        return Facts(
            hierarchical=True,
            one_mode=True,
            n_predictors=self.n_predictors,
            total_weight=self.model.total_weight,
            parameterizations=tuple(names),
        )

    @property
    def _integrates_labels(self) -> bool:
        """Whether effects may be integrated out label by label."""
        term = self.terms[0]
        return len(self.terms) == 1 and term.by_label and len(term.effects) <= _MOST_INTEGRATED

    def effects(self, linear: Array) -> list[Array]:
        """Effects ``(C, L, q)`` of each term, views of the coefficients ``(C, d + ...)``."""
        shapes = [(len(t.labels), len(t.effects)) for t in self.terms]
        return [
            linear[:, at].reshape(len(linear), *shape)
            for at, shape in zip(self.at, shapes, strict=True)
        ]

    # ---- the density ----------------------------------------------------------------------------

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Parameters of the model, and hyperparameters."""
        return self.parameters.split(theta, "scales")

    def _add_scales(self, theta: Array, value: Any, grad: Array) -> tuple[Array, Array]:
        """Add the log density of the effects and of hyperparameters.

        Where scales are beyond floating point numbers the density is 0.
        """
        base, h = self.split(theta)
        of_h, in_h = self.covariances.value_and_grad(h)
        value = value + of_h
        parts = self.covariances.each, self.covariances.at, self.effects(base), self.at
        each = zip(*parts, strict=True)
        for covariance, at, u, columns in each:
            root, inverse = covariance.inverse_root(h[:, at])
            white = u @ inverse.swapaxes(1, 2)
            value = value - 0.5 * np.einsum("clq,clq->c", white, white)
            value = value - u.shape[1] * log_determinant(root)
            grad[:, columns] -= (white @ inverse).reshape(len(u), -1)
            square = white.swapaxes(1, 2) @ white
            in_root = inverse.swapaxes(1, 2) @ (square - u.shape[1] * np.eye(u.shape[2]))
            in_h[:, at] += covariance.pull_back(h[:, at], in_root)
        return refusing(value, self.parameters.join(grad, in_h, "scales"))

    # ---- reported parameters --------------------------------------------------------------------

    @property
    def reported(self) -> Reported:
        """Reported parameters: coefficients, intercept, effects, scales, own parameters."""
        parameters = self.parameters
        maps = parameters.to_reported, parameters.from_reported, parameters.moves
        coords, variables = variables_of(self.terms, self.covariances.each)
        return Reported(
            parameters.reported_names, *maps, {**self.model.coords, **coords}, variables
        )

    def start(self) -> Array:
        """Theta ``(P,)`` at the start of the model, and scales in the middle of their prior."""
        return self._with_scales(self.model.start())

    def zeros(self) -> Array:
        """Point ``(P,)`` at which all coefficients are 0."""
        return self._with_scales(self.model.zeros())

    def draw_prior(self, generators: list[np.random.Generator]) -> Array:
        """Reported parameters ``(C, n_reported)`` from the prior."""
        theta = self.reported.theta(self.parameters.draw_prior(self.zeros(), generators))
        base, h = self.split(theta)
        parts = self.covariances.each, self.covariances.at, self.effects(base), self.at
        for covariance, at, effects, columns in zip(*parts, strict=True):
            for c, (rng, root) in enumerate(
                zip(generators, covariance.root(h[:, at]), strict=True)
            ):
                theta[c, columns] = (rng.standard_normal(effects.shape[1:]) @ root.T).ravel()
        return self.reported.values(theta)

    def _with_scales(self, base: Array) -> Array:
        return self.parameters.join(base[None], self.covariances.start()[None], "scales")[0]


def _design(effects: Any, dtype: type) -> Design:
    """Design of the columns of some effects."""
    if issparse(effects):
        return LabelDesign(effects, dtype)
    return DenseDesign(effects, None, False, dtype)


def refusing(value: Array, grad: Array) -> tuple[Array, Array]:
    """Log density and gradient, with -inf and zeros where one of them is not a finite number."""
    wrong = ~(np.isfinite(value) & np.isfinite(grad).all(axis=1))
    if wrong.any():
        value, grad = np.where(wrong, -np.inf, value), np.where(wrong[:, None], 0.0, grad)
    return value, grad


def log_determinant(root: Array) -> Array:
    """Log of the absolute determinants ``(C,)`` of triangular factors ``(C, q, q)``."""
    log_det: Array = np.log(np.abs(np.einsum("cii->ci", root))).sum(axis=1)
    return log_det
