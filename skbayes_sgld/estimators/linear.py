"""Linear models: the layout of their parameters, and sampling of the posterior."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._components import LARGEST, SMALLEST, Registry
from skbayes_sgld._linalg import column_ranges, sums_of_squares
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.base import Array, BayesianEstimator, has_callbacks
from skbayes_sgld.estimators.callbacks import show_progress
from skbayes_sgld.estimators.multi_output import by_output
from skbayes_sgld.estimators.validation import check_finite, check_ranges
from skbayes_sgld.inference.diagnosis import Diagnosis
from skbayes_sgld.inference.long_run import Origin
from skbayes_sgld.inference.plan import plan
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.inference.run import run
from skbayes_sgld.inference.settings import REGISTRIES, Settings
from skbayes_sgld.posterior import CoefficientPrior, Flat, GLMPosterior, NoisePrior
from skbayes_sgld.posterior.base import by_name
from skbayes_sgld.posterior.hierarchical import with_hyperparameters
from skbayes_sgld.posterior.priors import HIERARCHICAL_PRIORS, PRIORS, Prior
from skbayes_sgld.posterior.priors.base import PriorRegistry
from skbayes_sgld.prediction.predictors import LinearPredictor, Predictor
from skbayes_sgld.sampling import CLIPS, PRECONDITIONERS, SCHEDULES
from skbayes_sgld.sampling.workers import Workers

_KEPT = 2**22  # numbers in X, up to which a fit keeps a copy: 32 megabytes
_RESOLVED = (
    "sampler",
    "step_size",
    "gradient",
    "batch_size",
    "preconditioner",
    "parameterization",
    "init",
    "n_burnin",
    "thin",
)


def check_columns(X: Array, estimator: Any, smallest: float = SMALLEST) -> None:
    """Raise where X is not finite, or a column's values are of a size that cannot be squared."""
    squares = sums_of_squares(X)  # in range, they show the same of every value, in one cheap pass
    low, high = 1e4 * smallest**2, 1e-4 * LARGEST**2
    if np.all((squares > low) & (squares < high)):
        return
    check_finite(X, estimator)
    check_ranges(*column_ranges(X), estimator, smallest)


def check_new_rows(X: Array, estimator: Any) -> None:
    """Raise where X, of new rows, is not finite or is too large to be squared."""
    check_columns(X, estimator, smallest=0.0)


class LinearEstimator(BayesianEstimator):
    """Base of the estimators whose rows see the parameters through linear predictors."""

    _registries: ClassVar[dict[str, Registry]] = {
        **BayesianEstimator._registries,
        "intercept_prior": PRIORS,
        "schedule": SCHEDULES,
        "preconditioner": PRECONDITIONERS,
        "clip": CLIPS,
    }
    _automatic: ClassVar[dict[str, tuple[str, ...]]] = {
        "gradient": ("auto",),
        "preconditioner": ("auto",),
    }
    _takes_sparse: ClassVar[bool] = True
    _check_values_of = staticmethod(check_columns)
    _check_new_rows = staticmethod(check_new_rows)
    fit_intercept: Any
    prior_: CoefficientPrior
    intercept_prior_: CoefficientPrior | None
    noise_prior_: NoisePrior | None

    def _make_posterior(
        self, X: Array, y: Array, weight: Array | None, center: bool, **known: Any
    ) -> GLMPosterior:
        raise NotImplementedError

    def _set_layout(self, posterior: GLMPosterior) -> None:
        """Remember how a draw splits into coefficients, intercepts and noise."""
        self.prior_, self.noise_prior_ = posterior.prior, posterior.noise_prior
        of_intercept = posterior.linear_prior.intercept or Flat()
        self.intercept_prior_ = of_intercept if self.fit_intercept else None
        self._names = list(posterior.constrained_names)
        self._n_predictors = posterior.n_predictors
        self._has_intercept = bool(self.fit_intercept)  # which set_params may change after the fit

    # ---- the fitted parameters ----------------------------------------------------------------

    def _split(self, values: Array) -> dict[str, Array]:
        """Draws by part: ``coef (S, K, d)``, ``intercept (S, K)``, and all others by their names.

        Parameters that share a name and differ in their index are ``(S, m)``.
        """
        d, K = self.n_features_in_, self._n_predictors
        width = d + self._has_intercept
        linear = values[:, : K * width].reshape(len(values), K, width)
        intercept = linear[..., -1] if width > d else np.zeros(linear.shape[:2])
        parts = {"coef": linear[..., :d], "intercept": intercept}
        others = self._names[K * width :]
        for name, columns in by_name(others).items() if others else ():
            several = others[columns[0]] != name
            own = values[:, [K * width + j for j in columns]]
            parts[name] = own if several else own[:, 0]
        return parts

    def _draws(self) -> tuple[dict[str, Array], Array | None]:
        check_is_fitted(self)
        return self._split(self.posterior_.flat), self.posterior_.flat_weights

    def _predictor(self, chosen: Any = slice(None)) -> Predictor:
        parts, _ = self._draws()
        return LinearPredictor(parts["coef"][chosen], parts["intercept"][chosen])

    def _set_point(self, values: Array) -> None:
        """Set ``coef_``, ``intercept_`` (and the noise's) from one vector of values."""
        parts = self._split(values[None])
        self.coef_, self.intercept_ = parts["coef"][0].copy(), parts["intercept"][0].copy()
        self._set_others({name: part[0] for name, part in parts.items()})

    def _set_others(self, parts: dict[str, Any]) -> None:
        """Set the point estimates of further parameters, where the model has some."""

    @by_output(1)
    def sample_posterior(self, n_samples: int | None = None, random_state: Any = None) -> Bunch:
        """Draws from the posterior, by parameter.

        Parameters
        ----------
        n_samples : int or None, default=None
            Number of draws, chosen at random among those of the fit. None: all of them.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the choice; the estimator's own where None.

        Returns
        -------
        draws : Bunch
            ``coef (S, d)``, or ``(S, n_classes, d)`` for more than two classes, ``intercept
            (S,)`` or ``(S, n_classes)``, and what else was inferred, such as ``noise_variance
            (S,)``.
        """
        chosen = self._choose_draws(n_samples, random_state)
        parts, _ = self._draws()
        draws = Bunch(**{name: values[chosen] for name, values in parts.items()})
        if self._n_predictors == 1:
            draws.coef, draws.intercept = draws.coef[:, 0], draws.intercept[:, 0]
        return draws


class SampledEstimator(LinearEstimator):
    """A linear model whose posterior is sampled: settings, posterior, plan, run, result.

    Attributes
    ----------
    result_ : SamplingResult
    """

    _registries: ClassVar[dict[str, Registry]] = {
        **LinearEstimator._registries,
        **REGISTRIES,
        "prior": PriorRegistry(Prior, **PRIORS, **HIERARCHICAL_PRIORS),
    }
    _automatic: ClassVar[dict[str, tuple[str, ...]]] = {
        "sampler": ("auto",),
        "gradient": ("auto",),
        "preconditioner": ("auto",),
    }
    _settings_type: ClassVar[type[Settings]] = Settings
    result_: SamplingResult
    output_names_: list[str]

    def _infer(self, X: Array, y: Array, weight: Array | None) -> None:
        if self._stream is not None:
            self._infer_batch(X, y, weight)
            return
        settings = Settings.check(self)
        posterior = self._own_posterior(settings, X, y, weight)
        posterior.check_proper()
        self._sample(settings, posterior, self._resolve("prior"))

    def _centers(self) -> bool:
        """Whether the intercept is taken at the mean of X."""
        return Settings.check(self).uses_curvature

    def _infer_posterior(self, posterior: GLMPosterior, source: RowSource) -> None:
        """Sample the posterior of rows in blocks."""
        settings = Settings.check(self)
        workers = source.workers(settings.n_jobs)
        self._sample(settings, posterior, self._resolve("prior"), workers=workers)

    def _infer_batch(self, X: Array, y: Array, weight: Array | None) -> None:
        """Find the posterior of all batches, of which these are the rows of the last."""
        raise NotImplementedError

    def _own_posterior(
        self, settings: Settings, X: Array, y: Array, weight: Array | None
    ) -> GLMPosterior:
        """Posterior of a copy of the rows, unless they are many."""
        # what the diagnosis measures on the data must not change with the caller's arrays
        if X.size <= _KEPT:
            X, y, weight = X.copy(), y.copy(), None if weight is None else weight.copy()
        return self._make_posterior(X, y, weight, center=settings.uses_curvature)

    def _sample(
        self,
        settings: Settings,
        model: GLMPosterior,
        prior: Prior,
        n_batches: int = 0,
        workers: Workers | None = None,
    ) -> None:
        """Sample the posterior of a model, of rows before which there were ``n_batches``."""
        posterior: Any = with_hyperparameters(model, prior) if prior.hierarchical else model
        positions, n_fits = self._last_positions(settings, posterior.constrained_names)
        # chains that continue must not repeat their old noise
        seed = settings.draw_seed() + n_fits + n_batches
        watch = partial(show_progress, self) if self.verbose or has_callbacks(self) else None
        if settings.in_parts:
            data = {"X": model.X, "y": model.y, "sample_weight": model.weight}
            inputs = {**self.get_params(deep=False), **data, "n_batches": n_batches}
            origin = Origin.of(settings, inputs, seed, positions)
            with origin.interruptible(settings.checkpoint):
                planned = plan(posterior, settings, origin.seed, origin.positions)
                result = run(planned, watch, origin, workers)
        else:
            result = run(plan(posterior, settings, seed, positions), watch, None, workers)
        result = result if model.X.size <= _KEPT else result.without_data()
        self.result_, self.posterior_, self._n_fits = result, result.draws, n_fits + 1
        for name in _RESOLVED:
            setattr(self, f"{name}_", result.draws.choices[name].value)
        self.clipped_fraction_ = result.clipped
        self._set_layout(posterior)
        self._set_point(result.mean)

    def _last_positions(self, settings: Settings, names: list[str]) -> tuple[Array | None, int]:
        """Last positions of the chains that this fit continues, if any, and the fits before it."""
        last = vars(self).get("result_")
        if not settings.warm_start or last is None or last.names != names:
            return None, 0
        if len(last.positions) != settings.n_chains:
            return None, 0
        return last.positions, self._n_fits

    def _arviz_groups(self) -> dict[str, Any]:
        return self.result_.arviz_groups()

    def diagnose(self) -> Diagnosis | dict[str, Diagnosis]:
        """Diagnosis of the draws, which is printed too.

        Returns
        -------
        diagnosis : Diagnosis
            R-hat, effective sample sizes and standard errors by parameter; the ratio of minibatch
            to injected noise; the bias of the step size, and at half of it; the Metropolis
            acceptance that the chain's own transitions would have had; the distance from the
            Laplace approximation; clipped steps and divergent chains; how far the prior is from
            the data; and the problems, each with its remedy. Of a fit of several outputs a dict:
            one for each, by its name.
        """
        check_is_fitted(self)
        models = vars(self).get("estimators_")
        if models is None:
            return self.result_.diagnose()
        found = {}
        for name, model in zip(self.output_names_, models, strict=True):
            print(f"{name}:")
            found[name] = model.diagnose()
        return found
