"""What the network estimators share: standardised data, the posterior, draws, predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch, check_random_state

from skbayes_sgld._components import check_number
from skbayes_sgld.estimators.base import Array, BayesianEstimator
from skbayes_sgld.estimators.classification import ClassificationModel
from skbayes_sgld.estimators.regression import NormalModel
from skbayes_sgld.inference.draws import PosteriorDraws
from skbayes_sgld.posterior import FixedGaussian, Gaussian, NoisePrior
from skbayes_sgld.posterior.mlp import MLPPosterior, Network
from skbayes_sgld.prediction.predictors import Predictor

_BLOCK = 2**20  # numbers that the hidden layers of a group of draws may hold


class NetworkPredictor(Predictor):
    """The outputs of a network under the draws ``theta (S, P)``."""

    def __init__(self, network: Network, theta: Array) -> None:
        self.n_draws, self.n_predictors = len(theta), network.sizes[-1]
        self._network, self._theta = network, theta

    def __call__(self, X: Array) -> Array:
        """Return the outputs ``(K, n, S)``, by groups of draws."""
        outputs = np.empty((self.n_predictors, len(X), self.n_draws))
        size = max(1, _BLOCK // (len(X) * max(self._network.sizes)))
        X = X.astype(float, copy=False)
        for first in range(0, self.n_draws, size):
            draws = slice(first, first + size)
            values = self._network.forward(self._theta[draws], X)[-1]
            outputs[..., draws] = values.transpose(2, 1, 0)
        return outputs


@dataclass
class Units:
    """The units of the data: what standardises them, and takes networks back to them."""

    rows: StandardScaler
    level: float = 0.0
    scale: float = 1.0

    def constrain(self, network: Network, theta: Array) -> Array:
        """Return the parameters ``(S, P)`` of the same networks for X and y as they came.

        A log noise variance behind them becomes a variance.
        """
        values = theta.copy()
        coefs, intercepts = network.split(values)
        coefs[0] /= self.rows.scale_[:, None]
        intercepts[0] -= self.rows.mean_ @ coefs[0]
        coefs[-1] *= self.scale
        intercepts[-1] *= self.scale
        intercepts[-1] += self.level
        values[:, network.n_params :] = np.exp(values[:, network.n_params :]) * self.scale**2
        return values


class _InUnits(NoisePrior):
    """A noise prior in squared units of y, as one of the standardised target's noise."""

    def __init__(self, prior: NoisePrior, scale: float) -> None:
        self.prior, self.scale = prior, scale
        self.proper = prior.proper

    def log_density(self, gamma: Array) -> Array:
        """Return the log density of the standardised log variance."""
        return self.prior.log_density(gamma + 2.0 * np.log(self.scale))

    def grad(self, gamma: Array) -> Array:
        """Return its derivative."""
        return self.prior.grad(gamma + 2.0 * np.log(self.scale))


class NetworkEstimator(BayesianEstimator):
    """An estimator whose rows see the parameters through a multilayer perceptron."""

    hidden_layer_sizes: Any
    activation: Any
    random_state: Any

    def _infer(self, X: Array, y: Array, weight: Array | None) -> None:
        rows = StandardScaler().fit(X, sample_weight=weight)
        units = Units(rows, *self._target_units(y, weight))
        standardised = rows.transform(X).astype(float), (y - units.level) / units.scale
        posterior = self._make_posterior(*standardised, weight, units)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        theta = self._draw(posterior, seed)
        self._network = posterior.network
        values = units.constrain(posterior.network, theta.reshape(-1, posterior.n_params))
        names = [n.replace("log_noise_variance", "noise_variance") for n in posterior.param_names]
        self.posterior_ = PosteriorDraws(values.reshape(theta.shape), names)
        self._warn(posterior, theta)

    def _target_units(self, y: Array, weight: Array | None) -> tuple[float, float]:
        """Return what is taken from y and what it is then divided by."""
        return 0.0, 1.0

    def _make_posterior(
        self, X: Array, y: Array, weight: Array | None, units: Units
    ) -> MLPPosterior:
        """Return the posterior given standardised data."""
        raise NotImplementedError

    def _draw(self, posterior: MLPPosterior, seed: int) -> Array:
        """Return draws ``(C, S, P)``."""
        raise NotImplementedError

    def _warn(self, posterior: MLPPosterior, theta: Array) -> None:
        """Say what is wrong with the draws."""

    def _layout(self, weight: Array | None) -> dict[str, Any]:
        """Return what the posterior's constructor is told besides data and laws."""
        sizes = self.hidden_layer_sizes
        sizes = (sizes,) if np.ndim(sizes) == 0 else tuple(sizes)
        for size in sizes:
            check_number(size, "hidden_layer_sizes", low=1, closed="left", integer=True)
        return {
            "hidden_layer_sizes": sizes,
            "activation": self.activation,
            "sample_weight": weight,
            "feature_names": self._feature_names(),
        }

    def _predictor(self, chosen: Any = slice(None)) -> NetworkPredictor:
        return NetworkPredictor(self._network, self._weights()[chosen])

    def _weights(self) -> Array:
        return self.posterior_.flat[:, : self._network.n_params]

    def sample_posterior(self, n_samples: int | None = None, random_state: Any = None) -> Bunch:
        """Return draws from the posterior, by parameter.

        Parameters
        ----------
        n_samples : int or None, default=None
            How many, chosen at random among those that ``fit`` kept. None: all of them.
        random_state : int, RandomState or None, default=None
            For the choice.

        Returns
        -------
        draws : Bunch
            ``coefs`` and ``intercepts``, lists of arrays ``(S, n_in, n_out)`` and ``(S, n_out)``
            by layer, for X and y in the units that ``fit`` saw, and ``noise_variance (S,)``
            where it was inferred.
        """
        chosen = self._choose_draws(n_samples, random_state)
        coefs, intercepts = self._network.split(self._weights()[chosen])
        draws = Bunch(coefs=coefs, intercepts=intercepts)
        if "noise_variance" in self.posterior_.names:
            draws.noise_variance = self.posterior_["noise_variance"].ravel()[chosen]
        return draws


class NetworkRegressor(NormalModel, NetworkEstimator):
    """Normal observations around the output of a network."""

    def _target_units(self, y: Array, weight: Array | None) -> tuple[float, float]:
        level = float(np.average(y, weights=weight))
        return level, float(np.sqrt(np.average(np.square(y - level), weights=weight))) or 1.0

    def _make_posterior(
        self, X: Array, y: Array, weight: Array | None, units: Units
    ) -> MLPPosterior:
        prior, noise_prior, likelihood = self._resolve("prior"), None, Gaussian()
        if isinstance(self.noise_variance, str):
            noise_prior = self._resolve("noise_prior").for_data(units.scale**2)
            noise_prior = _InUnits(noise_prior, units.scale)
        else:
            FixedGaussian(self.noise_variance).check()
            self._fixed_noise = float(self.noise_variance)
            likelihood = FixedGaussian(self.noise_variance / units.scale**2)
            prior = prior.given_noise(likelihood.sigma2)
        return MLPPosterior(X, y, likelihood, prior, noise_prior, **self._layout(weight))

    def _noise_draws(self) -> Array:
        if "noise_variance" in self.posterior_.names:
            return self.posterior_["noise_variance"].ravel()
        return np.full(len(self.posterior_.flat), self._fixed_noise)


class NetworkClassifier(ClassificationModel, NetworkEstimator):
    """Labels whose log odds are the outputs of a network."""

    def _make_posterior(
        self, X: Array, y: Array, weight: Array | None, units: Units
    ) -> MLPPosterior:
        return MLPPosterior(
            X, y, self._likelihood(), self._resolve_unscaled_prior(), **self._layout(weight)
        )
