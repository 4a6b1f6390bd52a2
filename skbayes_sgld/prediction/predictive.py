"""The posterior predictive distribution as a function of the draws; nothing here is random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from skbayes_sgld.diagnostics import quantiles
from skbayes_sgld.posterior.likelihoods import LabelLikelihood, Likelihood
from skbayes_sgld.prediction.blocks import map_blocks
from skbayes_sgld.prediction.predictors import Predictor

Array = NDArray[Any]
_OfRows = Callable[..., Array]


@dataclass(frozen=True)
class Predictive:
    """Posterior predictive distribution: a likelihood mixed over the draws of its parameters.

    Methods take rows ``X (n, d)`` and an optional ``offset (n,)``, which is added to their
    predictors.

    Attributes
    ----------
    predictor : Predictor
        Map from rows to their predictors under every draw.
    likelihood : Likelihood
    gamma : ndarray of shape (S,) or None
        Log noise variance of each draw, if the likelihood infers it.
    weights : ndarray of shape (S,) or None
        Weights of the draws; None where they are equal.
    """

    predictor: Predictor
    likelihood: Likelihood
    gamma: Array | None = None
    weights: Array | None = None

    @property
    def share(self) -> Array:
        """Probabilities of the draws ``(S,)``."""
        n = self.predictor.n_draws
        return np.full(n, 1.0 / n) if self.weights is None else self.weights / self.weights.sum()

    def local(self, X: Array, offset: Array | None = None) -> Array:
        """Local parameters ``(n, n_local, S)`` of the rows, as the likelihood takes them."""
        eta = self.predictor(X)
        if offset is not None:
            eta += offset[:, None]
        if self.gamma is not None:
            eta = np.concatenate([eta, np.broadcast_to(self.gamma, eta[:1].shape)])
        return eta.swapaxes(0, 1)

    def _by_blocks(
        self, function: _OfRows, X: Array, offset: Array | None, copies: int, *more: Array
    ) -> Array:
        """Values of a function of rows and offset, of ``copies`` temporaries per predictor.

        Arrays in ``more``, of one entry a row, are handed to the function too.
        """

        def block(rows: slice) -> Array:
            part = None if offset is None else offset[rows]
            return function(X[rows], part, *(array[rows] for array in more))

        numbers = self.predictor.n_draws * self.predictor.n_predictors * copies
        return map_blocks(block, X.shape[0], numbers)

    # ---- observations -------------------------------------------------------------------------

    def moments(self, X: Array, offset: Array | None = None) -> Array:
        """Mean and variance of an observation ``(n, 2)``."""
        share, likelihood = self.share, self.likelihood

        def moments_of(X: Array, offset: Array | None) -> Array:
            u = self.local(X, offset)
            each = likelihood.mean(u)
            mean = each @ share
            spread = np.square(each - mean[:, None]) @ share
            return np.column_stack([mean, spread + likelihood.variance(u) @ share])

        if likelihood.quadratic and offset is None:
            of = self.predictor.moments(share, len(X))
            found = self._by_blocks(lambda X, _: of(X), X, None, 2)
            noise = np.broadcast_to(likelihood.noise_variance(self.gamma), share.shape)
            found[:, 1] += share @ noise
            return found
        return self._by_blocks(moments_of, X, offset, 4)

    def mean(self, X: Array, offset: Array | None = None) -> Array:
        """Mean of an observation ``(n,)``."""
        share = self.share

        def mean_of(X: Array, offset: Array | None) -> Array:
            return self.likelihood.mean(self.local(X, offset)) @ share

        return self._by_blocks(mean_of, X, offset, 2)

    def mean_quantiles(self, X: Array, q: Array, offset: Array | None = None) -> Array:
        """Posterior quantiles of the mean of an observation ``(n, len(q))``."""

        def quantiles_of(X: Array, offset: Array | None) -> Array:
            return quantiles(self.likelihood.mean(self.local(X, offset)), q, self.weights)

        return self._by_blocks(quantiles_of, X, offset, 2)

    def quantiles(self, X: Array, q: Array, offset: Array | None = None) -> Array:
        """Quantiles of an observation under the mixture over all draws ``(n, len(q))``."""
        share, likelihood = self.share, self.likelihood
        unit = likelihood.unit(self.gamma, self.predictor.n_draws)
        deviations_of = self.predictor.deviations(share, unit, len(X))

        def quantiles_of(X: Array, offset: Array | None) -> Array:
            center, deviation = deviations_of(X)
            if offset is not None:
                center = center + offset
            each = [likelihood.mixture_quantile(center, deviation, unit, share, p) for p in q]
            return np.column_stack(each)

        return self._by_blocks(quantiles_of, X, offset, 4)

    def log_likelihood(self, X: Array, y: Array, offset: Array | None = None) -> Array:
        """Log density of each row's observation under every draw ``(n, S)``."""
        return self._by_blocks(self._log_likelihood, X, offset, 4, y)

    def _log_likelihood(self, X: Array, offset: Array | None, y: Array) -> Array:
        u = self.local(X, offset)
        return self.likelihood.log_density(u, np.broadcast_to(y[:, None], u[:, 0].shape))

    def log_density(self, X: Array, y: Array, offset: Array | None = None) -> Array:
        """Log density of each row's observation under the mixture over all draws ``(n,)``."""
        with np.errstate(divide="ignore"):
            log_share = np.log(self.share)

        def log_density_of(X: Array, offset: Array | None, y: Array) -> Array:
            return logsumexp(self._log_likelihood(X, offset, y) + log_share, axis=1)

        return self._by_blocks(log_density_of, X, offset, 4, y)

    def cdf(self, X: Array, t: Array, offset: Array | None = None) -> Array:
        """Probability of an observation of at most each of ``t (n, m)``, of its shape."""
        share, likelihood = self.share, self.likelihood

        def cdf_of(X: Array, offset: Array | None, t: Array) -> Array:
            u = self.local(X, offset)
            return np.column_stack([likelihood.cdf(u, at[:, None]) @ share for at in t.T])

        return self._by_blocks(cdf_of, X, offset, 16, t)

    def sample(self, X: Array, rng: np.random.RandomState, offset: Array | None = None) -> Array:
        """One observation of every row under every draw ``(n, S)``."""
        return self.likelihood.sample(self.local(X, offset), rng)

    # ---- labels -------------------------------------------------------------------------------

    def probability(self, X: Array) -> Array:
        """Posterior mean of the probability of each class ``(n, n_classes)``."""
        p = self.mean(X)
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        return p / p.sum(axis=1, keepdims=True)

    def log_probability(self, X: Array) -> Array:
        """Logs ``(n, n_classes, 2)`` of the mean probability of each class, and of the others.

        Each is accurate even where the other is near log 1.
        """
        likelihood, share = self._labels(), self.share
        log_share = np.log(share, where=share > 0, out=np.full_like(share, -np.inf))

        def log_probability_of(X: Array, offset: Array | None) -> Array:
            u = self.local(X)
            mean = np.stack([p @ share for p in likelihood.probabilities(u)], axis=-1)
            tiny = (mean < np.finfo(float).tiny).any(axis=(1, 2))
            with np.errstate(divide="ignore"):
                log_mean = np.log(mean)
            if tiny.any():
                logs = (p + log_share for p in likelihood.log_probabilities(u[tiny]))
                log_mean[tiny] = np.stack([np.logaddexp.reduce(p, axis=-1) for p in logs], axis=-1)
            return log_mean

        return self._by_blocks(log_probability_of, X, None, 4)

    def probability_quantiles(self, X: Array, q: Array) -> Array:
        """Posterior quantiles of the probability of each class ``(n, n_classes, len(q))``."""

        def quantiles_of(X: Array, offset: Array | None) -> Array:
            p = self.likelihood.mean(self.local(X))
            if p.ndim == 2:
                return np.stack([quantiles(each, q, self.weights) for each in (1.0 - p, p)], 1)
            return np.stack([quantiles(each, q, self.weights) for each in p.swapaxes(0, 1)], 1)

        return self._by_blocks(quantiles_of, X, None, 2)

    def _labels(self) -> LabelLikelihood:
        assert isinstance(self.likelihood, LabelLikelihood)
        return self.likelihood
