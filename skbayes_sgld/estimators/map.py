"""How the MAP estimators fit: an optimiser's path, and the Laplace approximation at the mode."""

from __future__ import annotations

import warnings
from contextlib import suppress
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skbayes_sgld._components import Registry, check_number
from skbayes_sgld._linalg import inverse_root
from skbayes_sgld._progress import progress_bar
from skbayes_sgld.estimators.base import Array, LinearEstimator
from skbayes_sgld.inference.langevin import resolve_preconditioner
from skbayes_sgld.inference.overflow import explain_overflow
from skbayes_sgld.posterior import GLMPosterior, check_mode, check_propriety
from skbayes_sgld.sampling import (
    OPTIMIZERS,
    PROJECTIONS,
    Averaged,
    BoundProjection,
    ChainOverflowError,
    Dynamics,
    Gradient,
    Mode,
    Optimizer,
    Projected,
    Projection,
    Run,
    RunState,
    find_mode,
    run_chains,
)
from skbayes_sgld.sampling.preconditioners.metric import preconditioned_eigenvalues
from skbayes_sgld.sampling.randomness import start_normals
from skbayes_sgld.sampling.tuning.settings import measure_noise

_RECORDS = 100  # points of the path
_LAPLACE_DRAWS = 4000
_PROJECTED_DRAWS = 1000  # each is a problem of its own


class MAPEstimator(LinearEstimator):
    """An estimator that climbs to the posterior mode by (stochastic) gradients."""

    _registries: ClassVar[dict[str, Registry]] = {
        **LinearEstimator._registries,
        "optimizer": OPTIMIZERS,
        "projection": PROJECTIONS,
    }
    optimizer: Any
    step_size: Any
    schedule: Any
    batch_size: Any
    replacement: Any
    projection: Any
    average: Any
    preconditioner: Any
    clip: Any
    max_iter: Any
    tol: Any
    random_state: Any
    verbose: Any

    def _infer(self, X: Array, y: Array, weight: Array | None) -> None:
        check_number(self.max_iter, "max_iter", low=1, closed="left", integer=True)
        check_number(self.tol, "tol", low=0, closed="left")
        self._resolve_auto("step_size", low=0)
        self._resolve_auto("batch_size", low=1, closed="left", integer=True)
        average_from = self._resolve_average()
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        preconditioner = resolve_preconditioner(self)
        posterior = self._make_posterior(X, y, weight, center=preconditioner.uses_curvature)
        check_propriety(posterior)
        mode = find_mode(posterior, posterior.start())
        check_mode(posterior, mode.theta)
        projection = self._bind_projection(posterior)
        run = self._make_run(posterior, mode, seed)
        if self.projection is not None:
            run.sampler = Projected(run.sampler, projection)
        if average_from:
            run.sampler = Averaged(run.sampler, average_from)
        self._climb(posterior, mode, projection, run, seed)
        n_draws = _LAPLACE_DRAWS if self.projection is None else _PROJECTED_DRAWS
        normals = start_normals(seed + 1, range(n_draws), posterior.n_params)
        theta = mode.theta + mode.unwhiten(normals)
        if self.projection is not None:
            theta = projection(theta, mode.root)[0]
        self._set_draws(posterior, theta[None])
        self._set_point(posterior.constrain(self._path[-1:])[0])
        self._set_path(posterior)

    def _resolve_average(self) -> int:
        """Return the first step whose iterate is averaged, or 0."""
        value, last = self.average, int(self.max_iter)
        if isinstance(value, (bool, np.bool_)):
            return int(value)
        accepted = f"give False, True or the first step to average, a whole number in [1, {last}]"
        if not isinstance(value, Integral):
            raise TypeError(f"average={value!r} is not accepted; {accepted}.")
        first = int(value)
        if not 1 <= first <= last:
            raise ValueError(f"average={value!r} is out of range; {accepted}.")
        return first

    def _bind_projection(self, posterior: GLMPosterior) -> BoundProjection:
        if self.projection is None:
            return BoundProjection(Projection(), posterior.n_features)
        projection = self._resolve("projection")
        if posterior.n_predictors > 1:
            raise ValueError(
                f"projection={self.projection!r} is of one vector of coefficients, and y has "
                f"{posterior.n_predictors} classes with one each; set projection=None."
            )
        return BoundProjection(projection, posterior.n_features)

    def _make_run(self, posterior: GLMPosterior, mode: Mode, seed: int) -> Run:
        optimizer: Optimizer = self._resolve("optimizer")
        schedule, n = self._resolve("schedule"), posterior.n_samples
        multipliers = schedule(np.arange(self.max_iter))
        bound = resolve_preconditioner(self).bind(posterior.n_params, mode)
        fastest = preconditioned_eigenvalues(bound, mode.metric)[-1]
        distance = np.abs(mode.whiten((posterior.start() - mode.theta)[None])).max()
        step_size = self._resolve_auto("step_size")
        if step_size is None:
            step_size = optimizer.step_size(multipliers, distance, fastest)
        gradient = optimizer.gradient(bool(self.replacement))
        batch_size = self._resolve_auto("batch_size")
        if optimizer.full_gradient:
            if batch_size is not None:
                raise ValueError(
                    f"batch_size={batch_size!r} is not used by optimizer={self.optimizer!r}, "
                    "which takes all rows; set optimizer='sgd' or batch_size='auto'."
                )
        elif batch_size is None:

            def variance_of(estimator: Gradient) -> float:
                return measure_noise(posterior, estimator, mode, 1.0, seed).variance

            etas = step_size * fastest * multipliers
            batch_size = optimizer.batch_size(etas, self.tol, variance_of, n)
        elif not self.replacement and batch_size > n:
            raise ValueError(
                f"batch_size={batch_size} is larger than the {n} rows, and the batches are drawn "
                f"without replacement; give at most {n}, or set replacement=True."
            )
        self.step_size_, self.batch_size_ = float(step_size), batch_size
        dynamics = Dynamics(gradient.bind(posterior, None), bound, self._resolve("clip"))
        return Run(
            optimizer,
            dynamics,
            schedule,
            self.step_size_,
            n,
            batch_size,
            bool(self.replacement),
        )

    def _climb(
        self,
        posterior: GLMPosterior,
        mode: Mode,
        projection: BoundProjection,
        run: Run,
        seed: int,
    ) -> None:
        """Run the optimiser until the mode is ``tol`` posterior sds away, or ``max_iter`` steps."""
        every = max(1, self.max_iter // _RECORDS)
        start = projection(posterior.start()[None], mode.root)[0]
        state: Array | RunState = start
        path, steps, clipped = [start[0]], [0], []
        with progress_bar(self.verbose, self.max_iter, type(self).__name__) as progress:
            while steps[-1] < self.max_iter:
                length = min(every, self.max_iter - steps[-1])
                try:
                    part = run_chains(run, state, n_draws=1, thin=length, seed=seed)
                except ChainOverflowError as error:
                    lengths: dict[str, Any] = {"n_draws": 1, "thin": int(self.max_iter)}
                    raise explain_overflow(
                        error, posterior, run, mode, start, seed, lengths
                    ) from None
                state = part.state
                reported = state.sampler_state["average" if self.average else "theta"]
                path.append(reported[0])
                steps.append(steps[-1] + length)
                clipped.append(part.clipped[0] * length)
                if progress is not None:
                    progress(length)
                distance = self._distance(posterior, mode, projection, path[-1])
                if distance <= self.tol:
                    break
            else:
                warnings.warn(
                    f"The optimiser is {distance:.2g} posterior standard deviations from the mode "
                    f"after max_iter={self.max_iter} steps, and tol={self.tol:g}; raise max_iter "
                    "or batch_size, or set step_size and preconditioner to 'auto'.",
                    ConvergenceWarning,
                    stacklevel=4,
                )
        self._path, self._path_steps = np.array(path), np.array(steps)
        self.n_iter_ = steps[-1]
        self.clipped_fraction_ = float(np.sum(clipped) / steps[-1])

    def _distance(
        self, posterior: GLMPosterior, mode: Mode, projection: BoundProjection, theta: Array
    ) -> float:
        """Return the root mean square distance to the mode, in posterior sds.

        It is the length of Newton's step, which ends where the projection takes it.
        """
        with np.errstate(all="ignore"):
            grad = posterior.grad(theta[None])[0]
            if self.projection is None:
                step = mode.metric.sqrt_t(grad[None])[0]
            else:  # the constrained mode may be far from the other,
                root = mode.root
                with suppress(np.linalg.LinAlgError):  # and indefinite across the set's edge
                    root = inverse_root(posterior.smoothed(mode.marginal_sd).curvature(theta))
                step = root.T @ grad
                step = step + projection((theta + root @ step)[None], root)[1]
            return float(np.linalg.norm(step) / np.sqrt(len(theta)))

    def _set_path(self, posterior: GLMPosterior) -> None:
        path = posterior.constrain(self._path)
        self.path_steps_ = self._path_steps
        self.log_posterior_path_ = posterior.log_density(self._path)
        parts = self._split(path)
        one = posterior.n_predictors == 1
        self.coef_path_ = parts["coef"][:, 0] if one else parts["coef"]
        self.intercept_path_ = parts["intercept"][:, 0] if one else parts["intercept"]
        if "noise_variance" in parts:
            self.noise_variance_path_ = parts["noise_variance"]
        del self._path, self._path_steps
