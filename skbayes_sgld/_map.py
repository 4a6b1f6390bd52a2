"""How the MAP estimators fit: an optimiser's path, and the Laplace approximation at the mode."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skbayes_sgld._base import Array, LinearEstimator
from skbayes_sgld._components import Registry, check_number
from skbayes_sgld._langevin import resolve_preconditioner
from skbayes_sgld._overflow import explain_overflow
from skbayes_sgld._progress import progress_bar
from skbayes_sgld.posterior import GLMPosterior, check_mode, check_propriety
from skbayes_sgld.sampling import (
    OPTIMIZERS,
    ChainOverflowError,
    Dynamics,
    Full,
    Minibatch,
    Mode,
    Optimizer,
    Run,
    RunState,
    find_mode,
    run_chains,
)
from skbayes_sgld.sampling.metric import pull_rates
from skbayes_sgld.sampling.randomness import start_normals
from skbayes_sgld.sampling.tuning import measure_noise

_RECORDS = 100  # points of the path
_LAPLACE_DRAWS = 4000
_MAX_BATCH = 4096


class MAPEstimator(LinearEstimator):
    """An estimator that climbs to the posterior mode by (stochastic) gradients."""

    _registries: ClassVar[dict[str, Registry]] = {
        **LinearEstimator._registries,
        "optimizer": OPTIMIZERS,
    }
    optimizer: Any
    step_size: Any
    schedule: Any
    batch_size: Any
    replacement: Any
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
        entropy = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        preconditioner = resolve_preconditioner(self)
        posterior = self._make_posterior(X, y, weight, center=preconditioner.uses_curvature)
        check_propriety(posterior)
        mode = find_mode(posterior, posterior.start())
        check_mode(posterior, mode.theta)
        run = self._make_run(posterior, mode, entropy)
        self._climb(posterior, mode, run, entropy)
        normals = start_normals(entropy + 1, range(_LAPLACE_DRAWS), posterior.n_params)
        theta = mode.theta + mode.color(normals)
        self._set_draws(posterior, theta[None])
        self._set_point(posterior.natural(self._path[-1:])[0])
        self._set_path(posterior)

    def _make_run(self, posterior: GLMPosterior, mode: Mode, entropy: int) -> Run:
        optimizer: Optimizer = self._resolve("optimizer")
        schedule, n = self._resolve("schedule"), posterior.n_samples
        multipliers = schedule(np.arange(self.max_iter))
        bound = resolve_preconditioner(self).bind(posterior.n_params, mode)
        fastest = pull_rates(bound, mode.metric)[-1]
        distance = np.abs(mode.whiten((posterior.start() - mode.theta)[None])).max()
        step_size = self._resolve_auto("step_size")
        if step_size is None:
            step_size = optimizer.step_size(multipliers, distance, fastest)
        gradient: Any = Full() if optimizer.full_gradient else Minibatch(bool(self.replacement))
        batch_size = self._resolve_auto("batch_size")
        if optimizer.full_gradient:
            if batch_size is not None:
                raise ValueError(
                    f"batch_size={batch_size!r} is not used by optimizer={self.optimizer!r}, "
                    "which takes all rows; set optimizer='sgd' or batch_size='auto'."
                )
        elif batch_size is None:
            # the noise left at the end is what the last step leaves of a batch's
            noise = measure_noise(posterior, gradient, mode, 1.0, entropy)
            last = step_size * multipliers[-1] * fastest
            wanted = last * noise.variance / (2.0 * max(self.tol, 1e-3) ** 2)
            batch_size = int(min(max(32, np.ceil(wanted)), _MAX_BATCH, n))
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

    def _climb(self, posterior: GLMPosterior, mode: Mode, run: Run, entropy: int) -> None:
        """Run the optimiser until the mode is ``tol`` posterior sds away, or ``max_iter`` steps."""
        every = max(1, self.max_iter // _RECORDS)
        state: Array | RunState = posterior.start()[None]
        path, steps, clipped = [posterior.start()], [0], []
        with progress_bar(self.verbose, self.max_iter, type(self).__name__) as progress:
            while steps[-1] < self.max_iter:
                length = min(every, self.max_iter - steps[-1])
                try:
                    part = run_chains(run, state, n_draws=1, thin=length, entropy=entropy)
                except ChainOverflowError as error:
                    lengths: dict[str, Any] = {"n_draws": 1, "thin": int(self.max_iter)}
                    start = posterior.start()[None]
                    raise explain_overflow(
                        error, posterior, run, mode, start, entropy, lengths
                    ) from None
                state = part.state
                path.append(part.draws[0, 0])
                steps.append(steps[-1] + length)
                clipped.append(part.clipped[0] * length)
                if progress is not None:
                    progress(length)
                distance = self._distance(posterior, mode, path[-1])
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

    @staticmethod
    def _distance(posterior: GLMPosterior, mode: Mode, theta: Array) -> float:
        """Return the root mean square distance to the mode, in posterior sds, by the gradient."""
        with np.errstate(all="ignore"):
            grad = posterior.grad(theta[None])[0]
            return float(np.linalg.norm(mode.metric.sqrt_t(grad[None])) / np.sqrt(len(theta)))

    def _set_path(self, posterior: GLMPosterior) -> None:
        path = posterior.natural(self._path)
        self.path_steps_ = self._path_steps
        self.log_posterior_path_ = posterior.log_density(self._path)
        parts = self._split(path)
        one = posterior.n_predictors == 1
        self.coef_path_ = parts["coef"][:, 0] if one else parts["coef"]
        self.intercept_path_ = parts["intercept"][:, 0] if one else parts["intercept"]
        if "noise_variance" in parts:
            self.noise_variance_path_ = parts["noise_variance"]
        del self._path, self._path_steps
