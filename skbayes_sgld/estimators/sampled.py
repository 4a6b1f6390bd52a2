"""Estimators whose posterior is sampled: settings, posterior, plan, run, result."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._components import Registry
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.base import Array, LinearEstimator, has_callbacks
from skbayes_sgld.estimators.callbacks import show_progress
from skbayes_sgld.inference.diagnosis import Diagnosis
from skbayes_sgld.inference.long_run import Origin
from skbayes_sgld.inference.plan import plan
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.inference.run import run
from skbayes_sgld.inference.settings import REGISTRIES, Settings
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.hierarchical import with_hyperparameters
from skbayes_sgld.posterior.priors import HIERARCHICAL_PRIORS, PRIORS, Prior
from skbayes_sgld.posterior.priors.base import PriorRegistry
from skbayes_sgld.posterior.propriety import check_propriety
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
        check_propriety(posterior)
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
            setattr(self, f"{name}_", result.choices[name].value)
        self.clipped_fraction_ = result.clipped
        self._set_layout(posterior)
        draws = result.draws
        self._set_point(np.average(draws.flat, axis=0, weights=draws.flat_weights))

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
