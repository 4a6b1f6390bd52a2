"""Normal priors whose scales depend on hyperparameters, which are inferred too.

Conventions
-----------
``h (C, m)`` holds the hyperparameters of each chain in unbounded coordinates, logarithms of
scales; densities of h include the Jacobian. ``log_scale (C, d)`` are the logs of the prior
standard deviations of the coefficients, the same for each linear predictor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.priors.base import Array, CoefficientPrior, Prior
from skbayes_sgld.priors.location_scale import Normal


class HierarchicalPrior(Prior):
    """Coefficients that are normal with mean 0, given hyperparameters that set their scales.

    Attributes
    ----------
    common : bool
        Whether the only hyperparameter multiplies the scales of all columns.
    """

    hierarchical = True
    common = False
    scale: Any

    def _by_column(self) -> dict[str, Any]:
        return {"scale": self.scale}

    def conditional(self) -> CoefficientPrior:
        """Normal prior at hyperparameters of 1."""
        return Normal(scale=self.scale)

    @property
    def learned(self) -> tuple[tuple[Any, HierarchicalPrior], ...]:
        """Columns whose scale is learned, all of them, and the prior of each."""
        return ((slice(None), self),)

    def with_scales_of(
        self,
        known: CoefficientPrior,
        spread: Array,
        likelihood: Likelihood,
        y: Array,
        weight: Array | None,
    ) -> Self:
        """:meth:`for_model`, with the scales of the model's prior at hyperparameters of 1.

        ``known`` is that prior: :meth:`conditional`, with numbers for automatic scales.
        """
        scale = np.asarray(known.get_params(deep=False)["scale"], dtype=float)
        return self.for_model(np.broadcast_to(scale, len(spread)), spread, likelihood, y, weight)

    def for_model(
        self,
        scale: Array,
        spread: Array,
        likelihood: Likelihood,
        y: Array,
        weight: Array | None,
    ) -> Self:
        """Prior for this model, with numbers for the scales of :meth:`conditional`.

        Parameters
        ----------
        scale, spread : ndarray of shape (d,)
            Scales of that prior, and spreads of the columns.
        likelihood : Likelihood
        y, weight : ndarray of shape (n,)
            Observations, and their weights or None.
        """
        prior = copy(self)
        prior.scale = scale
        prior._set_for(spread, likelihood, y, weight)
        return prior

    def _set_for(self, spread: Array, likelihood: Likelihood, y: Array, weight: Any) -> None:
        """Set further numbers that depend on the model."""

    def names(self, features: Sequence[str]) -> list[str]:
        """Names of the reported hyperparameters ``(m,)``."""
        raise NotImplementedError

    def start(self) -> Array:
        """A point h ``(m,)`` in the middle of the prior."""
        raise NotImplementedError

    def log_medians(self, gamma: float | None) -> Array:
        """Logs of the medians of the half-Cauchy hyperparameters; nan for the others ``(m,)``.

        ``gamma`` is the log noise variance; None if it is not inferred. Their logarithms have long
        tails, which samplers straighten.
        """
        return np.full(len(self.start()), np.nan)

    def log_scale(self, h: Array) -> Array:
        """Logs of the prior standard deviations ``(C, d)``."""
        raise NotImplementedError

    def pull_back(self, h: Array, in_log_scale: Array) -> Array:
        """Gradient in h ``(C, m)`` from that in the logs of the scales ``(C, d)``."""
        raise NotImplementedError

    def to_reported(self, h: Array) -> Array:
        """Reported hyperparameters ``(S, m)``: by default scales, of which h are the logarithms."""
        return np.exp(h)

    def from_reported(self, values: Array) -> Array:
        """Hyperparameters h of the reported ones."""
        return np.log(values)

    def at(self, h: Array) -> CoefficientPrior:
        """Normal prior of the coefficients at one ``h (m,)``."""
        return Normal(np.exp(self.log_scale(h[None])[0]))

    def of_coef(self, coef: Array, h: Array) -> tuple[Array, Array, Array]:
        """Log density of ``coef (C, K, d)`` given h up to a constant ``(C,)``, and its gradients.

        They are in ``coef (C, K, d)`` and in ``h (C, m)``.
        """
        log_scale, K = self.log_scale(h), coef.shape[1]
        precise = coef * np.exp(-2.0 * log_scale)[:, None]
        square = (coef * precise).sum(axis=1)
        value = -0.5 * square.sum(axis=1) - K * log_scale.sum(axis=1)
        return value, -precise, self.pull_back(h, square - K)

    def value_and_grad(self, h: Array, gamma: Array | None) -> tuple[Array, Array, Array]:
        """Log density of h up to a constant ``(C,)``, and its gradients in h and in gamma.

        ``gamma (C,)`` is the log noise variance; None if it is not inferred.
        """
        raise NotImplementedError

    def sample_hyper(self, rng: np.random.Generator, gamma: float | None) -> Array:
        """Draw of h ``(m,)``."""
        raise NotImplementedError

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Coefficients ``(K, d)`` drawn from the prior, with hyperparameters drawn first."""
        h = self.sample_hyper(rng, float(np.log(noise_variance)))
        return rng.standard_normal(shape) * np.exp(self.log_scale(h[None]))


class SideBySide(HierarchicalPrior):
    """Priors of neighbouring coefficients, each with scales of its own that are learned.

    Parameters
    ----------
    priors : sequence of HierarchicalPrior
        With numbers for their scales.
    """

    def __init__(self, priors: Sequence[HierarchicalPrior]) -> None:
        self.priors = priors
        self._in_h = np.cumsum([prior.start().size for prior in priors])[:-1]
        self._in_coef = np.cumsum([np.size(prior.scale) for prior in priors])[:-1]

    def _each(self, h: Array) -> Iterator[tuple[HierarchicalPrior, Array]]:
        return zip(self.priors, np.split(h, self._in_h, axis=1), strict=True)

    def to_reported(self, h: Array) -> Array:
        """Reported hyperparameters of each."""
        return np.hstack([prior.to_reported(part) for prior, part in self._each(h)])

    def from_reported(self, values: Array) -> Array:
        """Hyperparameters of the reported ones of each."""
        return np.hstack([prior.from_reported(part) for prior, part in self._each(values)])

    def start(self) -> Array:
        """A point h ``(m,)`` in the middle of each."""
        return np.concatenate([prior.start() for prior in self.priors])

    def log_medians(self, gamma: float | None) -> Array:
        """Logs of the medians of each."""
        return np.concatenate([prior.log_medians(gamma) for prior in self.priors])

    def log_scale(self, h: Array) -> Array:
        """Logs of the prior standard deviations ``(C, d)``."""
        return np.hstack([prior.log_scale(part) for prior, part in self._each(h)])

    def pull_back(self, h: Array, in_log_scale: Array) -> Array:
        """Gradient in h ``(C, m)`` from that in the logs of the scales ``(C, d)``."""
        parts = zip(self._each(h), np.split(in_log_scale, self._in_coef, axis=1), strict=True)
        return np.hstack([prior.pull_back(part, slope) for (prior, part), slope in parts])

    def of_coef(self, coef: Array, h: Array) -> tuple[Array, Array, Array]:
        """Log density of ``coef (C, K, d)`` given h, and its gradients."""
        parts = zip(self._each(h), np.split(coef, self._in_coef, axis=2), strict=True)
        found = [prior.of_coef(own, part) for (prior, part), own in parts]
        value, in_coef, in_h = zip(*found, strict=True)
        return np.sum(value, axis=0), np.concatenate(in_coef, axis=2), np.hstack(in_h)

    def value_and_grad(self, h: Array, gamma: Array | None) -> tuple[Array, Array, Array]:
        """Log density of h ``(C,)``, and its gradients in h and in gamma."""
        found = [prior.value_and_grad(part, gamma) for prior, part in self._each(h)]
        value, in_h, in_gamma = zip(*found, strict=True)
        return np.sum(value, axis=0), np.hstack(in_h), np.sum(in_gamma, axis=0)

    def sample_hyper(self, rng: np.random.Generator, gamma: float | None) -> Array:
        """Draw of h ``(m,)``."""
        return np.concatenate([prior.sample_hyper(rng, gamma) for prior in self.priors])


def log_half_cauchy(log_ratio: Array) -> tuple[Array, Array]:
    """Log density of ``log(x / scale)`` for a half-Cauchy variable x, and its derivative."""
    size = np.abs(log_ratio)
    decay = np.exp(-2.0 * size)  # logaddexp and tanh would take three times as long
    total = 1.0 + decay
    return -size - np.log(total), np.copysign((1.0 - decay) / total, -log_ratio)


@dataclass(eq=False, repr=False)
class HierarchicalNormal(HierarchicalPrior):
    r"""Normal prior whose scale is learned from the data.

    .. math:: \beta_j \sim N(0, \tau^2 s_j^2).

    In linear regression, where y may have any unit, the common scale tau is half-Cauchy,
    :math:`\tau \sim C^+(0, 1)` (Gelman 2006). In other models a change of 1 in the linear
    predictor multiplies odds or rates by e, whatever the data, and few rows may not bound tau:
    separable classes and counts of zero are as likely under any larger scale. So tau is
    half-normal, :math:`\tau \sim N^+(0, 2.5^2 / d)` with d columns. Under the automatic
    scale the standard deviation of the linear predictor over the rows is then half-normal with the
    scale 2.5, that of a coefficient in Gelman, Jakulin, Pittau & Su (2008), for any d.

    The fit reports tau as ``prior_scale``. If few columns matter it is small, and all coefficients
    shrink, as with ``BayesianRidge``.

    Parameters
    ----------
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        s, the standard deviations at tau = 1. ``"auto"`` is that of :class:`Normal`.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 20))
    >>> y = rng.standard_normal(60)  # no column matters
    >>> model = SGLDLinearRegression(prior="hierarchical_normal", n_draws=400, random_state=0)
    >>> bool(model.fit(X, y).posterior_["prior_scale"].mean() < 0.1)
    True
    """

    scale: Any = "auto"

    common = True

    def names(self, features: Sequence[str]) -> list[str]:
        """``prior_scale``, which is tau."""
        return ["prior_scale"]

    def _set_for(self, spread: Array, likelihood: Likelihood, y: Array, weight: Any) -> None:
        if not likelihood.in_units_of_y:
            # 2.5 is the scale of the linear predictor's sd
            self._log_unit = float(np.log(2.5 / np.sqrt(len(self.scale))))
            self._half_normal = True

    _log_unit = 0.0  # log of the scale of tau's distribution
    _half_normal = False  # otherwise half-Cauchy

    def start(self) -> Array:
        """Tau at the scale of its distribution."""
        return np.full(1, self._log_unit)

    def log_scale(self, h: Array) -> Array:
        """``log s_j + log tau``."""
        return np.log(self.scale) + h

    def pull_back(self, h: Array, in_log_scale: Array) -> Array:
        """The sum over the columns."""
        return in_log_scale.sum(axis=1, keepdims=True)

    def value_and_grad(self, h: Array, gamma: Array | None) -> tuple[Array, Array, Array]:
        """Log density of log tau, its derivative, and zeros for gamma."""
        ratio = h - self._log_unit
        if self._half_normal:
            square = np.exp(2.0 * ratio)
            value, slope = ratio - 0.5 * square, 1.0 - square
        else:
            value, slope = log_half_cauchy(ratio)
        return value[:, 0], slope, np.zeros(len(h))

    def sample_hyper(self, rng: np.random.Generator, gamma: float | None) -> Array:
        """Log of a half-Cauchy or half-normal number."""
        scale = rng.standard_normal(1) if self._half_normal else rng.standard_cauchy(1)
        return np.log(np.abs(scale)) + self._log_unit
