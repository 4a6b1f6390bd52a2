"""Networks as estimators: standardised data, the posterior, its draws, predictions."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._components import as_int, check_seed, draw_seed, parameters
from skbayes_sgld.estimators.base import Array, BayesianEstimator
from skbayes_sgld.estimators.callbacks import show_progress
from skbayes_sgld.estimators.classification import ClassificationModel
from skbayes_sgld.estimators.network_diagnosis import NetworkDiagnosis, diagnose_outputs
from skbayes_sgld.estimators.network_inference import (
    LangevinNetworks,
    NetworkInference,
    VariationalNetworks,
)
from skbayes_sgld.estimators.network_units import Units, UnitsNoisePrior, standardise
from skbayes_sgld.estimators.regression import NormalModel
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.inference.settings import LongRunSettings
from skbayes_sgld.posterior import FixedGaussian, Gaussian
from skbayes_sgld.posterior.mlp import MLPPosterior, Network, check_layout
from skbayes_sgld.prediction.predictors import Predictor

_BLOCK = 2**20  # numbers that the hidden layers of a group of draws may hold


class NetworkPredictor(Predictor):
    """The outputs of a network under the draws ``theta (S, P)``."""

    def __init__(self, network: Network, theta: Array) -> None:
        self.n_draws, self.n_predictors = len(theta), network.sizes[-1]
        self._network, self._theta = network, theta

    def __call__(self, X: Array) -> Array:
        """Outputs ``(K, n, S)``, by groups of draws."""
        outputs = np.empty((self.n_predictors, len(X), self.n_draws))
        size = max(1, _BLOCK // (len(X) * max(self._network.sizes)))
        X = X.astype(float, copy=False)
        for first in range(0, self.n_draws, size):
            draws = slice(first, first + size)
            values = self._network.forward(self._theta[draws], X)[-1]
            outputs[..., draws] = values.transpose(2, 1, 0)
        return outputs


@parameters
class NetworkEstimator(BayesianEstimator):
    """An estimator whose rows see the parameters through a multilayer perceptron."""

    hidden_layer_sizes: Any = (50,)
    activation: str = "tanh"
    prior: Any = "normal"
    random_state: Any = None
    verbose: int = 0
    _scales_target: ClassVar[bool] = False

    def _check_params(self) -> None:
        """Raise where a parameter, used or not, is out of range."""
        super()._check_params()
        check_layout(self.hidden_layer_sizes, self.activation)
        self._inference().check()
        check_seed(self.random_state)

    def _infer(self, X: Array, y: Array, weight: Array | None) -> None:
        inputs = {**self.get_params(deep=False), "X": X, "y": y, "sample_weight": weight}
        names = self._feature_names()
        X, y, units = standardise(X, y, weight, self._scales_target, names)
        posterior = self._make_posterior(X, y, weight, units)
        seed = draw_seed(self.random_state)
        found = self._inference().run(posterior, seed, partial(show_progress, self), inputs)
        theta = found.theta.reshape(-1, posterior.n_params)
        values = units.constrain(posterior.network, theta).reshape(found.theta.shape)
        names = list(posterior.param_names)
        if posterior.likelihood.infers_noise:
            names[-1] = "noise_variance"
        self._network = posterior.network
        self.posterior_ = PosteriorDraws(values, names, choices=found.choices)
        for name, value in found.attributes.items():
            setattr(self, name, value)
        self._diagnosis = found.diagnosis
        if found.diagnosis is not None:
            found.diagnosis.warn()

    def _inference(self) -> NetworkInference:
        """Settings of the inference, which run it."""
        raise NotImplementedError

    def _make_posterior(
        self, X: Array, y: Array, weight: Array | None, units: Units
    ) -> MLPPosterior:
        """Posterior given standardised data."""
        raise NotImplementedError

    def _layout(self, weight: Array | None) -> dict[str, Any]:
        """What the posterior's constructor is told besides data and distributions."""
        return {
            "hidden_layer_sizes": check_layout(self.hidden_layer_sizes, self.activation),
            "activation": self.activation,
            "sample_weight": weight,
            "feature_names": self._feature_names(),
        }

    def _predictor(self, chosen: Any = slice(None)) -> NetworkPredictor:
        return NetworkPredictor(self._network, self._weights()[chosen])

    def _weights(self) -> Array:
        return self.posterior_.flat[:, : self._network.n_params]

    def _inferred_noise(self) -> Array | None:
        """Draws of the noise variance ``(S,)``, where it was inferred."""
        if self.posterior_.names[-1] != "noise_variance":
            return None
        return self.posterior_.flat[:, -1]

    def sample_posterior(self, n_samples: int | None = None, random_state: Any = None) -> Bunch:
        """Draws from the posterior, by parameter.

        Parameters
        ----------
        n_samples : int or None, default=None
            Number of draws, chosen at random among those that ``fit`` kept. None: all of them.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the choice.

        Returns
        -------
        draws : Bunch
            ``coefs`` and ``intercepts``, lists of arrays ``(S, n_in, n_out)`` and ``(S, n_out)``
            by layer, for X and y in the units that ``fit`` saw, and ``noise_variance (S,)``
            where it was inferred.
        """
        chosen = self._choose_draws(n_samples, random_state)
        coefs, intercepts = self._network.split(self._weights()[chosen])
        draws, noise = Bunch(coefs=coefs, intercepts=intercepts), self._inferred_noise()
        if noise is not None:
            draws.noise_variance = noise[chosen]
        return draws


class NetworkRegressor(NormalModel, NetworkEstimator):
    """Normal observations around the output of a network."""

    _scales_target = True

    def _check_params(self) -> None:
        super()._check_params()
        self._likelihood()

    def _check_size(self, y: Array) -> None:
        """Raise nothing: y is standardised, which refuses what cannot be."""

    def _make_posterior(
        self, X: Array, y: Array, weight: Array | None, units: Units
    ) -> MLPPosterior:
        prior = self._resolve("prior")
        if isinstance(self.noise_variance, str):
            noise_prior = self._resolve("noise_prior").for_data(units.scale**2)
            noise_prior = UnitsNoisePrior(noise_prior, units.scale)
            return MLPPosterior(X, y, Gaussian(), prior, noise_prior, **self._layout(weight))
        self._fixed_noise = float(self.noise_variance)  # which set_params may change after the fit
        likelihood = FixedGaussian(units.noise_variance(self._fixed_noise))
        prior = prior.for_data(1.0, 1.0).given_noise(likelihood.sigma2)
        return MLPPosterior(X, y, likelihood, prior, **self._layout(weight))

    def _noise_draws(self) -> Array:
        noise = self._inferred_noise()
        return np.full(len(self.posterior_.flat), self._fixed_noise) if noise is None else noise


class NetworkClassifier(ClassificationModel, NetworkEstimator):
    """Labels whose log odds are the outputs of a network."""

    def _make_posterior(
        self, X: Array, y: Array, weight: Array | None, units: Units
    ) -> MLPPosterior:
        return MLPPosterior(
            X, y, self._likelihood(), self._resolve_unscaled_prior(), **self._layout(weight)
        )


@parameters
class SGLDNetwork(NetworkEstimator):
    """A network whose posterior is sampled by Langevin dynamics, one mode a chain."""

    step_size: Any = "auto"
    temperature: float = 1.0
    batch_size: Any = "auto"
    n_draws: int = 250
    n_burnin: Any = "auto"
    thin: Any = "auto"
    n_chains: int = 4
    n_jobs: int | None = None
    checkpoint: Any = None
    resume_from: Any = None
    max_time: float | None = None
    target_ess: float | None = None

    def _inference(self) -> LangevinNetworks:
        return LangevinNetworks(
            step_size=self.step_size,
            temperature=self.temperature,
            batch_size=self.batch_size,
            n_draws=as_int(self.n_draws),
            n_burnin=self.n_burnin,
            thin=self.thin,
            n_chains=as_int(self.n_chains),
            verbose=self.verbose,
            **LongRunSettings.checked(self),
        )

    def diagnose(self, X: Any = None) -> NetworkDiagnosis:
        """Diagnosis of the draws by their predictions, which is printed too.

        Units can change places without changing the function, so the weights of different chains
        are never comparable; the outputs are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None, default=None
            Rows at which the outputs are judged. None: up to 50 of those of ``fit``.

        Returns
        -------
        diagnosis : NetworkDiagnosis
            R-hat and effective sample sizes of the outputs, which for classes are log odds (of
            three or more less their mean), the share of bounded steps, and the problems, each
            with its remedy.
        """
        check_is_fitted(self)
        found = self._diagnosis
        assert found is not None
        if X is not None:
            outputs = self._predictor()(self._check_rows(X)).transpose(2, 1, 0)
            chains = self.posterior_.values.shape[:2]
            found = diagnose_outputs(
                outputs.reshape(*chains, *outputs.shape[1:]),
                self.clipped_fraction_,
                self._likelihood().shift_invariant,
                self.posterior_.choices.get("stopped_by"),
            )
        print(found)
        return found


@parameters
class BackpropNetwork(NetworkEstimator):
    """A network whose posterior is approximated by a normal one with independent weights."""

    hidden_layer_sizes: Any = (20,)
    step_size: float = 0.2
    max_iter: int = 3000
    n_particles: int = 4
    batch_size: Any = "auto"
    n_draws: int = 1000

    def _inference(self) -> VariationalNetworks:
        return VariationalNetworks(
            step_size=self.step_size,
            max_iter=as_int(self.max_iter),
            n_particles=as_int(self.n_particles),
            batch_size=self.batch_size,
            n_draws=as_int(self.n_draws),
            verbose=self.verbose,
        )
