"""Networks as estimators: standardised data, the posterior, its draws, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._checks import check_batch_size, check_number
from skbayes_sgld._random import check_seed, draw_seed, start_normals
from skbayes_sgld.estimators.base import Array, BayesianEstimator
from skbayes_sgld.estimators.callbacks import show_progress
from skbayes_sgld.estimators.fitted import Fitted, of_rows
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.priors import check_noise_scales
from skbayes_sgld.estimators.regression import NormalModel
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.inference.setting_checks import (
    check_room,
    check_temperature,
    check_verbose,
    given_or,
    number_or_auto,
)
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.likelihoods import FixedNormalNoise, Likelihood
from skbayes_sgld.neural_network.diagnosis import NetworkDiagnosis, diagnose_outputs
from skbayes_sgld.neural_network.ensemble import sample_network, train
from skbayes_sgld.neural_network.posterior import MLPPosterior, Network, Units, check_layout
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.predictors import Predictor
from skbayes_sgld.priors import NoisePrior
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets import Measurements, Target
from skbayes_sgld.variational import BayesByBackprop

_TRAINING_STEPS = 1000  # of Adam, before the approximation begins
_LARGEST = 1e100  # beyond it squares overflow: columns are divided by a power of two first
_SQUARED = 1e150  # size of y, or its sd, whose square is still a number
_LEAST_NOISE = 1e-20  # relative to the variance of y; below it squared residuals overflow


class NetworkPredictor(Predictor):
    """The outputs of a network under the draws ``theta (S, P)``."""

    def __init__(self, network: Network, theta: Array) -> None:
        self.n_draws, self.n_predictors = len(theta), network.sizes[-1]
        self._network, self._theta = network, theta

    def __call__(self, X: Array) -> Array:
        """Outputs ``(K, n, S)``, by groups of draws."""
        outputs = np.empty((self.n_predictors, len(X), self.n_draws))
        # a hidden layer of a group of draws holds 8 megabytes at the most
        size = max(1, 2**20 // (len(X) * max(self._network.sizes)))
        for first in range(0, self.n_draws, size):
            draws = slice(first, first + size)
            outputs[..., draws] = self._network.outputs(self._theta[draws], X).transpose(1, 2, 0)
        return outputs


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedNetwork(Fitted):
    """A fit of a network.

    Attributes
    ----------
    network : Network
    noise_variance : float or None, default=None
        Variance of the noise that was given.
    """

    network: Network
    noise_variance: float | None = None


@parameters
class NetworkEstimator(BayesianEstimator):
    """An estimator whose rows see the parameters through a multilayer perceptron.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(50,)
        Units of the hidden layers; ``()`` is the linear model.
    activation : {"tanh", "relu"}, default="tanh"
        Activation of the hidden units.
    prior : str or CoefficientPrior, default="normal"
        Prior of weights and biases, for standardised X and y: ``"normal"``, ``"laplace"``,
        ``"student_t"`` or an instance. There is no ``"auto"``: for the linear models it learns the
        scale if there are few rows for each column, and for hidden units there is no such rule. The
        scale of a weight is divided by the root of the number of inputs to its unit and, with
        hidden layers, multiplied by the activation's gain (5/3 for tanh, sqrt(2) for relu); in a
        classifier the first layer is multiplied by 1/2 instead, and the outputs by 20.

    Run
    ---
    random_state : int, RandomState, Generator or None, default=None
        Seed of the training and the draws.
    verbose : int, default=0
        1 shows progress on standard error: a bar if tqdm is installed, else lines of text.

    Attributes
    ----------
    posterior_ : PosteriorDraws
        The draws, ``(chain, draw, parameter)``, of the weights for X and y in the units that
        ``fit`` saw, with the parameters' names.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X had names of columns.
    """

    hidden_layer_sizes: Any = (50,)
    activation: str = "tanh"
    prior: Any = "normal"
    random_state: Any = None
    verbose: int = 0

    def _settings(self) -> Any:
        """Settings of the inference; raise if a parameter, used or not, is out of range."""
        super()._settings()
        self._resolve("prior")
        check_layout(self.hidden_layer_sizes, self.activation)
        check_seed(self.random_state)

    def _model(
        self, settings: Any, likelihood: Likelihood, rows: Any, class_names: list[str] | None = None
    ) -> NetworkModel:
        """Model of the rows: likelihood, priors and layers."""
        is_regressor, prior = isinstance(self, NormalModel), self._resolve("prior")
        if not is_regressor:  # standardised y has noise of about 1, which scales nothing
            check_noise_scales("prior", self.prior, prior, likelihood)
        return NetworkModel(
            likelihood=likelihood,
            prior=prior,
            noise_prior=self._resolve("noise_prior") if is_regressor else None,
            scales_target=is_regressor,
            hidden_layer_sizes=check_layout(self.hidden_layer_sizes, self.activation),
            activation=self.activation,
        )

    def _keep(
        self, model: NetworkModel, posterior: Any, rows: Any, target: Any, **more: Any
    ) -> Any:
        """All that is kept of a fit."""
        fixed = getattr(model.likelihood, "sigma2", None)
        return FittedNetwork(
            target=target,
            rows=rows.fingerprint(target),
            network=posterior.network,
            noise_variance=fixed,
            attributes={**of_rows(rows, target), **more},
        )

    def _predictor(self, selection: Any = slice(None)) -> NetworkPredictor:
        network = self._fitted.network
        return NetworkPredictor(network, self.posterior_.flat[selection, : network.n_params])

    def _inferred_noise(self, selection: Any) -> Array | None:
        """Chosen draws of the noise variance ``(S,)``, if it was inferred."""
        if self.posterior_.names[-1] != "noise_variance":
            return None
        return self.posterior_.flat[selection, -1]

    def sample_posterior(self, n_samples: int | None = None, random_state: Any = 0) -> Bunch:
        """Draws from the posterior, by parameter.

        Parameters
        ----------
        n_samples : int or None, default=None
            Number of draws, chosen at random among those that ``fit`` kept. None: all of them.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the choice.

        Returns
        -------
        draws : Bunch
            ``coefs`` and ``intercepts``, lists of arrays ``(S, n_in, n_out)`` and ``(S, n_out)``
            by layer, for X and y in the units that ``fit`` saw, and ``noise_variance (S,)``
            if it was inferred.
        """
        selection = self._choose_draws(n_samples, random_state)
        network = self._fitted.network
        coefs, intercepts = network.split(self.posterior_.flat[selection, : network.n_params])
        draws, noise = Bunch(coefs=coefs, intercepts=intercepts), self._inferred_noise(selection)
        if noise is not None:
            draws.noise_variance = noise
        return draws


class NetworkRegressor(NormalModel, NetworkEstimator):
    """Normal observations around the output of a network."""

    def _target(self, rows: Any) -> Target:
        return Measurements(likelihood=self._likelihood(), standardised=True)

    def _predictive(self, selection: Any = slice(None)) -> PredictiveDistribution:
        predictor, noise = self._predictor(selection), self._inferred_noise(selection)
        if noise is None:
            noise = np.full(predictor.n_draws, self._fitted.noise_variance)
        own = np.log(noise)[:, None]
        likelihood = self._fitted.target.likelihood.with_inferred_noise()
        return self._mixture(predictor, likelihood, own, selection)


@parameters
class SGLDNetwork(NetworkEstimator):
    """A network whose posterior is sampled by Langevin dynamics, with one mode for each chain.

    Sampler
    -------
    step_size : float or "auto", default="auto"
        eta, in a metric in which the steepest direction has curvature 1. The default is 0.25, or
        less if minibatches would add more than 20 % to a variance.
    temperature : float, default=1.0
        tau; the posterior density to the power 1 / tau is sampled. On data whose labels are
        beyond doubt, such as curated images, values below 0.1 predict better (Aitchison 2021).
    batch_size : int or "auto", default="auto"
        Rows of a minibatch, drawn without replacement. By default all rows if there are up
        to 2,000, otherwise 2,000 or a twentieth of them, whichever is more.

    Run
    ---
    n_draws : int, default=250
        Draws to keep from each chain; fewer than for a linear model, because each takes about a
        hundred times as long.
    n_burnin : int or "auto", default="auto"
        Steps of Adam to a mode, and as many of Langevin dynamics before the first draw: 500 with
        momentum, 2,000 without.
    thin : int or "auto", default="auto"
        Steps from draw to draw: 12 with momentum, 40 without.
    n_chains : int, default=4
        Number of chains, each from its own random weights.
    n_jobs : int or None, default=None
        Processes to share the chains between, once a run has shown that it will take more than a
        minute. The draws do not depend on it.
    checkpoint, resume_from, max_time : str, path, float or None, default=None
        As for :class:`SGLDLinearRegression`.
    target_ess : float or None, default=None
        Draws are made until 95 % of the predictions at up to 50 training rows have at least this
        effective sample size, as ``diagnose`` measures it: between a tenth of ``n_draws`` and
        ten times as many.

    Attributes
    ----------
    result_ : SamplingResult
        Draws, plan and problems; ``print(model.result_.plan)`` gives every setting and its reason.
    step_size_, batch_size_, n_burnin_, thin_ : float, int
        Values that were used.
    clipped_fraction_ : float
        Share of the steps whose gradient was ten times as long as usual, and was bounded.

    Notes
    -----
    Every chain is trained by Adam from its own random weights and samples from there, so the draws
    are an ensemble of several modes. A diagonal metric, the equilibration of Dauphin, de Vries &
    Bengio (2015), is measured during the burn-in and then kept. A network of tanh units whose
    steps take all rows is sampled by the underdamped recursion of
    :class:`skbayes_sgld.sampling.SGHMC` with little friction: with momentum it crosses in tens of
    steps what takes thousands without. Momentum multiplies the noise of minibatches, and the kinks
    of relu heat it; there, and in regressions of fewer than 20 rows whose noise is inferred, the
    recursion is that of :class:`skbayes_sgld.sampling.SGLD`. Both have Leimkuhler & Matthews'
    integrator.

    Units can change places without changing the function, so weights of different chains are
    never comparable: convergence is judged by R-hat and effective sample size of the *predictions*
    at training rows, with wider limits than for a linear model (1.2 and 20).
    """

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

    def _settings(self) -> Settings:
        super()._settings()
        check_temperature(self.temperature)  # the training takes no schedule
        number_or_auto(self.n_burnin, "n_burnin", low=1, closed="left", integer=True)
        return Settings.of(self)

    def _infer(
        self, settings: Settings, model: NetworkModel, posterior: Any, rows: Any, target: Any
    ) -> FittedNetwork:
        """Plan and run the chains."""
        watch, seed = partial(show_progress, self), draw_seed(self.random_state)
        inputs = partial(self._inputs, rows)
        result = sample_network(posterior, settings, inputs, seed, watch)
        used = {name: choice.value for name, choice in result.choices.items()}
        return self._keep(
            model,
            posterior,
            rows,
            target,
            result_=result.without_data(),
            posterior_=result.draws,
            clipped_fraction_=result.clipped,
            step_size_=used["step_size"],
            batch_size_=used["batch_size"],
            n_burnin_=used["n_burnin"],
            thin_=used["thin"],
        )

    def _inputs(self, rows: Any) -> dict[str, Any]:
        """Parameters and data by which a checkpoint recognises its run."""
        data = {"X": rows.X, "y": rows.y, "sample_weight": rows.weight}
        return {**self.get_params(deep=False), **data}

    def diagnose(self, X: Any = None) -> NetworkDiagnosis:
        """Diagnosis of the draws by their predictions.

        Units can change places without changing the function, so the weights of different chains
        are never comparable; the outputs are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None, default=None
            Rows at which the outputs are judged. None: up to 50 of those of ``fit``.

        Returns
        -------
        diagnosis : NetworkDiagnosis
            R-hat and effective sample sizes of the outputs, which for classes are log odds (with
            three or more, minus their mean), the share of bounded steps, and the problems, each
            with its remedy. It shows itself as a report.
        """
        return self._diagnosis(X)

    def _diagnosis(self, X: Any = None) -> NetworkDiagnosis:
        """Diagnosis of the draws by their predictions at the rows X; None: at rows of ``fit``."""
        check_is_fitted(self)
        if X is None:
            diagnosis = self.result_.diagnose()
            assert isinstance(diagnosis, NetworkDiagnosis)
            return diagnosis
        outputs = self._predictor()(self._check_rows(X)).transpose(2, 1, 0)
        chains = self.posterior_.values.shape[:2]
        return diagnose_outputs(
            outputs.reshape(*chains, *outputs.shape[1:]),
            self.clipped_fraction_,
            self._fitted.target.likelihood.shift_invariant,
            self.posterior_.choices.get("stopped_by"),
        )


@parameters
class BackpropNetwork(NetworkEstimator):
    """A network whose posterior is approximated by a normal one with independent weights.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(20,)
        Units of the hidden layers; ``()`` is the linear model. Fewer than of the sampled networks,
        because the approximation switches off units that bring less evidence than they cost.

    Optimizer
    ---------
    step_size : float, default=0.2
        Step size of Adam at the start, in units of the standard deviations that the approximation
        begins with. There is no ``"auto"``: in these units one size suits all data.
    n_particles : int, default=4
        Draws of the weights in each step, an even number.
    batch_size : int or "auto", default="auto"
        Rows of a minibatch, drawn without replacement. By default all rows if there are up
        to 2,000, otherwise 200.

    Run
    ---
    max_iter : int, default=3000
        Steps of Adam. (For ``SGDMAP*`` it counts passes over the rows.)
    n_draws : int, default=1000
        Draws to keep from the approximation.

    Attributes
    ----------
    elbo_, elbo_steps_ : ndarray of shape (n_points,)
        The learning curve: the evidence lower bound, up to the prior's constant.
    n_iter_ : int
        Steps made.

    Notes
    -----
    The posterior is approximated by independent normal weights, by Bayes by Backprop (Blundell,
    Cornebise, Kavukcuoglu & Wierstra 2015), beginning at a network that Adam has trained from
    random weights.

    The approximation holds one mode and no correlation. Its intervals hardly widen between clusters
    of data (Foong, Burt, Li & Turner 2020) and are too wide among the points: in
    ``examples/plot_network_gap.py`` they widen 1.9 times, those of sampled networks 5.2 times.
    Units that bring less evidence than they cost are switched off (Trippe & Turner 2018): with many
    units and few rows little is fitted.
    """

    hidden_layer_sizes: Any = (20,)
    step_size: float = 0.2
    max_iter: int = 3000
    n_particles: int = 4
    batch_size: Any = "auto"
    n_draws: int = 1000

    def _settings(self) -> BayesByBackprop:
        super()._settings()
        check_verbose(self.verbose)
        check_number(self.n_draws, "n_draws", low=1, closed="left", integer=True)
        size = number_or_auto(self.batch_size, "batch_size", low=1, closed="left", integer=True)
        q = BayesByBackprop(
            step_size=self.step_size,
            max_iter=self.max_iter,
            n_particles=self.n_particles,
            batch_size=given_or(size, None),
        )
        q.check()
        return q.set_params(max_iter=int(q.max_iter), n_particles=int(q.n_particles))

    def _infer(
        self, settings: BayesByBackprop, model: NetworkModel, posterior: Any, rows: Any, target: Any
    ) -> FittedNetwork:
        """Fit the approximation, whose mean begins at a trained network, and draw from it."""
        q, n_draws, P = settings, int(self.n_draws), posterior.n_params
        check_room(1, n_draws, P)
        if q.batch_size is None and posterior.n_samples > 2000:
            q.batch_size = 200
        advice = "as batches are drawn without replacement"
        check_batch_size(q.batch_size, posterior.n_samples, advice)
        q.random_state = seed = draw_seed(self.random_state)
        start = posterior.random_start(start_normals(seed, range(1), P))
        n_steps = _TRAINING_STEPS + q.max_iter
        with show_progress(self, n_steps, "approximating") as progress:

            def report(n_done: int) -> bool:
                if progress is not None:
                    progress(n_done)  # it may ask to stop; there are no draws yet
                return False

            trained = train(posterior, start, _TRAINING_STEPS, seed, progress=report)[0]
            with np.errstate(all="ignore"):
                # a tenth as wide as the weights of random networks
                q.fit(posterior, trained, 0.1 * posterior.unit, report)
        values = posterior.reported.values(q.sample(n_draws, seed))[None]
        choices = {"approximation": Choice.by_user(clone(q))}
        draws = PosteriorDraws(values, posterior.reported.names, choices=choices)
        curve = {"elbo_": q.elbo_, "elbo_steps_": q.elbo_steps_, "n_iter_": q.max_iter}
        return self._keep(model, posterior, rows, target, posterior_=draws, **curve)


# ---- standardised data --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NetworkModel:
    """Likelihood, priors and layers of a network, which :meth:`posterior` gives rows.

    Attributes
    ----------
    likelihood : Likelihood
    prior : CoefficientPrior
    noise_prior : NoisePrior or None
        In the units of y; None of classes.
    scales_target : bool
        Whether y is standardised, as X is.
    hidden_layer_sizes : tuple of int
    activation : str
    """

    likelihood: Likelihood
    prior: Any
    noise_prior: NoisePrior | None
    scales_target: bool
    hidden_layer_sizes: tuple[int, ...]
    activation: str

    def posterior(self, rows: Rows) -> MLPPosterior:
        """Posterior of the rows, with X (and y of a regression) standardised."""
        names = rows.column_names
        X, y, units = standardise(rows.X, rows.y, rows.weight, self.scales_target, names)
        likelihood, prior, noise_prior = self._standardised(units)
        return MLPPosterior(
            X,
            y,
            likelihood,
            prior,
            noise_prior,
            hidden_layer_sizes=self.hidden_layer_sizes,
            activation=self.activation,
            sample_weight=rows.weight,
            feature_names=names,
            units=units,
        )

    def check(self, posterior: MLPPosterior) -> None:
        """Nothing: proper priors make every posterior proper."""

    def _standardised(self, units: Units) -> tuple[Likelihood, Any, NoisePrior | None]:
        """Likelihood of the standardised y, prior of the weights, and prior of inferred noise."""
        if not self.scales_target:
            return self.likelihood, self.prior, None
        if self.likelihood.infers_noise:
            assert self.noise_prior is not None
            noise_prior = self.noise_prior.for_data(units.scale**2)
            return self.likelihood, self.prior, UnitsNoisePrior(noise_prior, units.scale)
        fixed: float = self.likelihood.sigma2
        standardised = fixed / units.scale / units.scale
        if not _LEAST_NOISE <= standardised < np.inf:
            raise ValueError(
                f"noise_variance={fixed!r} is {standardised:.3g} times the variance of "
                f"y, and must be at least {_LEAST_NOISE:g} times; give 'infer', or a value in "
                "squared units of y."
            )
        likelihood = FixedNormalNoise(standardised)
        return likelihood, self.prior.for_data(1.0, 1.0).given_noise(likelihood.sigma2), None


class UnitsNoisePrior(NoisePrior):
    """Noise prior in squared units of y, as a prior of the standardised target's noise."""

    def __init__(self, prior: NoisePrior, scale: float) -> None:
        self.prior, self.scale = prior, scale
        self.proper = prior.proper

    def log_density(self, gamma: Array) -> Array:
        """Log density of the standardised log variance."""
        return self.prior.log_density(gamma + 2.0 * np.log(self.scale))

    def grad(self, gamma: Array) -> Array:
        """Derivative of the log density."""
        return self.prior.grad(gamma + 2.0 * np.log(self.scale))


def standardise(
    X: Array, y: Array, weight: Array | None, scales_target: bool, names: Sequence[str] | None
) -> tuple[Array, Array, Units]:
    """Standardised X and y, and their units.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
    scales_target : bool
        Whether y is standardised too.
    names : sequence of str or None
        Names of the columns, for errors.

    Raises
    ------
    ValueError
        If one value is so far out that rounding makes the others equal, or the variance of y
        overflows.
    """
    for j in range(X.shape[1]):
        _check_outlier(X[:, j], f"X[:, {j}]" if names is None else f"X's column {names[j]!r}")
    X, center, width = _standardise(X, weight)
    if not scales_target:
        return X, y, Units(center, width)
    _check_outlier(y, "y")
    column, level, scale = _standardise(y[:, None], weight)
    units = Units(center, width, float(level[0]), float(scale[0]))
    if not 1.0 / _SQUARED <= units.scale <= _SQUARED:
        raise ValueError(
            f"y has the standard deviation {units.scale:.3g}, whose square, the unit of the noise "
            f"variance, is out of the range of numbers; divide y by {units.scale:.0e}."
        )
    return X, column[:, 0], units


def _standardise(X: Array, weight: Array | None) -> tuple[Array, Array, Array]:
    """Standardised columns, their means and standard deviations (1 for a constant column)."""
    X = X.astype(float)
    largest = np.abs(X).max(axis=0)
    extreme = (largest > _LARGEST) | ((largest < 1.0 / _LARGEST) & (largest > 0.0))
    unit = np.ldexp(1.0, np.where(extreme, np.frexp(largest)[1] - 1, 0))
    X /= unit
    with np.errstate(invalid="ignore"):  # the root of a variance that rounding made negative: 1
        scaler = StandardScaler(copy=False).fit(X, sample_weight=weight)
    return scaler.transform(X), scaler.mean_ * unit, scaler.scale_ * unit


def _check_outlier(values: Array, where: str) -> None:
    """Raise if one value is so far out that rounding makes the others equal."""
    values = values.astype(float)
    with np.errstate(over="ignore"):
        apart = np.abs(values - np.median(values))
    others = apart[apart > 0.0]
    # after subtracting the mean, a smaller deviation has fewer than three correct digits
    if len(others) > 1 and np.median(others) < 1e-12 * others.max():
        raise ValueError(
            f"{where} has the value {values[apart.argmax()]:g}, beside which the differences of "
            f"the others, {np.median(others):.3g} from their median, are lost to rounding; remove "
            "the outlier, or clip it."
        )
