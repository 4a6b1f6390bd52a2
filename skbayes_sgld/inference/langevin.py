"""How the SGLD estimators fit: every ``"auto"`` is resolved, the chains are run, checked, kept."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._components import Component, Registry, check_number
from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld._progress import progress_bar
from skbayes_sgld.diagnostics import convergence_problems
from skbayes_sgld.estimators.base import Array, LinearEstimator
from skbayes_sgld.inference.diagnosis import (
    MAX_DISTANCE,
    Diagnosis,
    bias_problem,
    clip_problem,
    condition_27_notes,
    heat_problem,
    noise_problem,
)
from skbayes_sgld.inference.draws import PosteriorDraws
from skbayes_sgld.inference.judged import Judged
from skbayes_sgld.inference.overflow import check_constrained, explain_overflow
from skbayes_sgld.inference.parameterization import noncenter, shorten
from skbayes_sgld.posterior import GLMPosterior, check_mode, check_propriety
from skbayes_sgld.sampling import (
    CLIPS,
    GRADIENTS,
    PRECONDITIONERS,
    SAMPLERS,
    SCHEDULES,
    ChainOverflowError,
    Chains,
    ControlVariate,
    Curvature,
    Dynamics,
    Full,
    Gradient,
    Matrix,
    Mode,
    Preconditioner,
    Run,
    find_mode,
    run_chains,
)
from skbayes_sgld.sampling.preconditioners.metric import preconditioned_eigenvalues
from skbayes_sgld.sampling.randomness import start_normals
from skbayes_sgld.sampling.temperature import resolve_temperature
from skbayes_sgld.sampling.tuning.adaptation import settle
from skbayes_sgld.sampling.tuning.settings import (
    OVERDISPERSION,
    STEP_SIZES,
    NoiseLevel,
    Tuned,
    choose_batch_size,
    choose_gradient,
    choose_spacing,
    discretisation_bias,
    measure_noise,
    tune,
)

_RESOLVED = (
    "sampler",
    "step_size",
    "gradient",
    "batch_size",
    "preconditioner",
    "n_burnin",
    "thin",
)
_SMALL_STEP = 0.1  # below it only what is known of a normal law is told


def resolve_preconditioner(estimator: Any) -> Preconditioner:
    """Return the preconditioner component; an array stands for itself."""
    value = estimator.preconditioner
    if isinstance(value, str) and value == "auto":
        return Curvature()
    if value is None:
        return estimator._registries["preconditioner"]["none"]()
    if isinstance(value, (str, Component)):
        return estimator._resolve("preconditioner")
    return Matrix(value)


def _measure_bias(
    run: Run, mode: Mode, eta: float, preconditioner: Preconditioner, seed: int
) -> tuple[float, float]:
    """Return what a step of size eta costs a mean or an sd, and two standard errors of it."""
    if run.sampler.adjusted:
        return 0.0, 0.0
    if preconditioner.uses_curvature and eta > _SMALL_STEP and run.sampler.piloted:
        return discretisation_bias(run, mode, eta, seed)[:2]
    rates = preconditioned_eigenvalues(run.dynamics.preconditioner, mode.metric)
    slowest, steepest = (eta * run.sampler.speed(rate) for rate in (rates[0], rates[-1]))
    # Euler errs most where it is steep, a metric that is learned on the way where it is flat
    known = run.sampler.gaussian_inflation
    at_ends = known(slowest), known(steepest) if steepest < 2.0 else np.inf
    wide = max(at_ends, key=lambda inflation: abs(inflation - 1.0))
    return abs(float(np.sqrt(wide)) - 1.0), 0.0


class LangevinSampling(BaseEstimator):
    """The settings of a run of chains, how each ``"auto"`` is resolved, and the run itself.

    Mixed into what has a posterior to sample.
    """

    _registries: ClassVar[dict[str, Registry]] = {
        "sampler": SAMPLERS,
        "schedule": SCHEDULES,
        "temperature": SCHEDULES,
        "gradient": GRADIENTS,
        "preconditioner": PRECONDITIONERS,
        "clip": CLIPS,
    }
    _automatic: ClassVar[dict[str, tuple[str, ...]]] = {
        "gradient": ("auto",),
        "preconditioner": ("auto",),
    }
    _resolve: Any
    _resolve_auto: Any
    _set_draws: Any
    summary: Any
    posterior_: PosteriorDraws
    sampler: Any
    step_size: Any
    schedule: Any
    temperature: Any
    batch_size: Any
    gradient: Any
    preconditioner: Any
    clip: Any
    n_draws: Any
    n_burnin: Any
    thin: Any
    n_chains: Any
    warm_start: Any
    n_jobs: Any
    random_state: Any
    verbose: Any
    _n_warm: int  # fits whose chains this one's go on from

    def _check_settings(self) -> None:
        resolve_temperature(self.temperature)
        for name in ("n_draws", "n_chains"):
            check_number(getattr(self, name), name, low=1, closed="left", integer=True)
        self._resolve_auto("step_size", low=0)
        self._resolve_auto("batch_size", low=1, closed="left", integer=True)
        self._resolve_auto("n_burnin", low=0, closed="left", integer=True)
        self._resolve_auto("thin", low=1, closed="left", integer=True)

    def _sample(self, posterior: Any, mode: Mode, preconditioner: Preconditioner) -> None:
        """Run the chains, keep the draws and what is to be judged of them, and warn."""
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        goes_on = self._goes_on(posterior)
        n_before = self._n_warm if goes_on else 0
        seed += n_before  # a chain that goes on must not meet its old noise again
        tuned = self._make_run(posterior, mode, preconditioner, seed)
        laplace, run, mode = mode, tuned.run, tuned.mode
        n_burnin, thin = self._choose_lengths(tuned, goes_on)
        start = self._choose_start(posterior, mode, seed, goes_on)
        if run.sampler.adjusted and not goes_on:
            start = settle(run, start, mode, seed)
        # everything so far is for the last temperature; chains that go on have cooled already
        heat = resolve_temperature(self.temperature)
        self._n_hot = 0 if goes_on else heat.n_hot
        run = replace(run, temperature=None if goes_on else heat.schedule)
        lengths: dict[str, Any] = {"n_draws": int(self.n_draws), "n_burnin": n_burnin, "thin": thin}
        n_steps = n_burnin + self.n_draws * thin
        try:
            with progress_bar(self.verbose, n_steps, type(self).__name__) as progress:
                chains = run_chains(
                    run, start, seed=seed, n_jobs=self.n_jobs, progress=progress, **lengths
                )
            check_constrained(posterior, chains, n_burnin, thin)
        except ChainOverflowError as error:
            raise explain_overflow(error, posterior, run, mode, start, seed, lengths) from None
        self.n_burnin_, self.thin_ = n_burnin, thin
        self._set_draws(posterior, chains.draws, chains.weights)
        self.posterior_.settings = {name: getattr(self, f"{name}_") for name in _RESOLVED}
        self._last_positions = posterior.constrain(chains.state.sampler_state["theta"])
        self._n_warm = n_before + 1
        self.clipped_fraction_ = float(chains.clipped.mean())
        noise = self._measure_noise(chains, tuned)
        self._judged = Judged(
            posterior, run, laplace, chains.draws, tuned.bias, noise, chains.acceptance
        )
        self._warn()

    # ---- settings -----------------------------------------------------------------------------

    def _make_run(
        self, posterior: Any, mode: Mode, preconditioner: Preconditioner, seed: int
    ) -> Tuned:
        gradient, batch_size, noise = self._choose_gradient(posterior, mode, seed)
        bound = preconditioner.bind(posterior.n_params, mode)
        tau = resolve_temperature(self.temperature).final
        run = Run(
            self._resolve("sampler"),
            Dynamics(gradient.bind(posterior, mode.theta), bound, self._resolve("clip"), tau),
            self._resolve("schedule"),
            STEP_SIZES[0],
            posterior.n_samples,
            batch_size,
            getattr(gradient, "replacement", True),
        )
        if run.sampler.full_gradient and batch_size is not None:
            raise ValueError(
                f"sampler={self.sampler!r} needs the gradient from all rows at every step; set "
                "gradient='full' and batch_size='auto'."
            )
        tuned = self._choose_step_size(run, mode, preconditioner, noise, seed)
        self.step_size_, self.batch_size_ = tuned.run.step_size, batch_size
        self.gradient_, self.preconditioner_ = gradient, preconditioner
        self.sampler_ = tuned.run.sampler
        return tuned

    def _choose_step_size(
        self,
        run: Run,
        mode: Mode,
        preconditioner: Preconditioner,
        noise: NoiseLevel | None,
        seed: int,
    ) -> Tuned:
        step_size = self._resolve_auto("step_size")
        first = float(run.schedule(0))
        candidate = run.sampler.candidates(run.batch_size is None)[0]
        tunable = candidate.piloted or candidate.adjusted
        if step_size is None and preconditioner.uses_curvature and tunable:
            tuned = tune(run, mode, seed)
            if noise is not None and run.batch_size is not None:
                quiet = noise.step_size(run.batch_size, run.dynamics.temperature)
                tuned.run.step_size = min(tuned.run.step_size, max(quiet, STEP_SIZES[-1]))
                tuned.time = 2.0 / tuned.run.step_size
            tuned.run.step_size /= first
            return tuned
        sampler, rates = (
            candidate,
            preconditioned_eigenvalues(run.dynamics.preconditioner, mode.metric),
        )
        wanted = None if step_size is None else float(step_size) * first
        eta, time = sampler.pace(rates, wanted)
        run = replace(run, sampler=sampler, step_size=eta / first)
        tuned = Tuned(run, mode, time)
        # what the last kept step costs: a schedule may have made it small by then
        last = self._resolve_auto("thin") or choose_spacing(tuned.time)[1]
        eta = run.step_size * float(run.schedule(self.n_draws * last))
        tuned.bias = _measure_bias(run, mode, eta, preconditioner, seed)
        return tuned

    def _choose_gradient(
        self, posterior: Any, mode: Mode, seed: int
    ) -> tuple[Gradient, int | None, NoiseLevel | None]:
        """Return the gradient, the batch size (None: all rows) and the noise, if measured."""
        batch_size, n = self._resolve_auto("batch_size"), posterior.n_samples
        tau = resolve_temperature(self.temperature).final
        automatic = isinstance(self.gradient, str) and self.gradient == "auto"
        if automatic and batch_size is None and self._resolve("sampler").full_gradient:
            return Full(), None, None
        if automatic and batch_size is None:
            gradient, batch_size = choose_gradient(posterior, mode, tau, seed)
            return gradient, batch_size, None
        # the second order takes a matrix of parameters by parameters
        order = 2 if posterior.n_params <= MAX_DENSE else 1
        gradient = ControlVariate(order) if automatic else self._resolve("gradient")
        if not gradient.minibatch:
            if batch_size is not None:
                raise ValueError(
                    f"batch_size={batch_size!r} is not used by gradient={self.gradient!r}, which "
                    "takes all rows; set gradient='minibatch' or batch_size='auto'."
                )
            return gradient, None, None
        if batch_size is not None and batch_size > n:
            raise ValueError(
                f"batch_size={batch_size} is larger than the {n} rows; give at most {n}, or "
                "gradient='full', which takes each of them once."
            )
        noise = None
        if batch_size is None or self.step_size == "auto":
            noise = measure_noise(posterior, gradient, mode, tau, seed)
        if batch_size is None:
            assert noise is not None
            batch_size = choose_batch_size(noise, n, tau)
        return gradient, batch_size, noise

    def _choose_lengths(self, tuned: Tuned, goes_on: bool) -> tuple[int, int]:
        burnin, spacing = choose_spacing(tuned.time)
        thin = self._resolve_auto("thin")
        n_burnin = self._resolve_auto("n_burnin")
        thin = min(spacing, tuned.most_spaced) if thin is None else int(thin)
        if n_burnin is None:
            n_hot = resolve_temperature(self.temperature).n_hot
            n_burnin = 0 if goes_on else n_hot + min(burnin, self.n_draws * thin)
        return int(n_burnin), thin

    def _goes_on(self, posterior: Any) -> bool:
        """Whether the chains of the last fit can be gone on with."""
        names = posterior.constrained_names
        shape = (self.n_chains, len(names))
        return bool(self.warm_start) and np.shape(getattr(self, "_last_positions", ())) == shape

    def _choose_start(self, posterior: Any, mode: Mode, seed: int, goes_on: bool) -> Array:
        if goes_on:
            return posterior.unconstrain(self._last_positions)
        normals = start_normals(seed, range(self.n_chains), posterior.n_params)
        width = OVERDISPERSION * np.sqrt(resolve_temperature(self.temperature).final)
        return mode.theta + width * mode.unwhiten(normals)

    # ---- what the user is told ----------------------------------------------------------------

    def _measure_noise(self, chains: Chains, tuned: Tuned) -> float:
        """Return alpha, the variance of the minibatches' noise over the injected noise's."""
        run = tuned.run
        if run.batch_size is None:
            return 0.0
        posterior = run.dynamics.gradient.posterior
        metric = run.dynamics.preconditioner
        level = measure_noise(
            posterior, self.gradient_, tuned.mode, run.dynamics.temperature, 0, metric
        )
        # the mean step over the draws, each weighted by its step size as the draws are
        eta = float(np.average(chains.weights, weights=chains.weights))
        ratio = level.inflation(eta, run.batch_size, run.dynamics.temperature)
        return ratio * run.sampler.noise_gain

    def _find_problems(self) -> list[str]:
        found, judged = [], self._judged
        chains = convergence_problems(self.posterior_.values, self.posterior_.names)
        if chains:
            settings = (self.step_size, self.preconditioner)
            automatic = all(isinstance(s, str) and s == "auto" for s in settings)
            more = "raise n_draws; or, where there are several modes, set sampler="
            more += "'parallel_tempering'"
            remedy = more if automatic else "set step_size and preconditioner to 'auto'"
            found.append(f"{'; '.join(chains)}; {remedy}")
        found += heat_problem(self._n_hot, self.n_burnin_)
        found += bias_problem(*judged.bias, self.step_size_)
        found += noise_problem(judged.noise_ratio, str(self.gradient) == "auto")
        found += clip_problem(self.clipped_fraction_, self.clip)
        return found

    def _warn(self) -> None:
        problems = self._find_problems()
        if problems:
            warnings.warn(
                f"The draws are not to be relied on: {'; '.join(problems)}.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def diagnose(self) -> Diagnosis:
        """Print and return a report on what the draws are worth.

        Returns
        -------
        diagnosis : Diagnosis
            R-hat, effective sample sizes and standard errors by parameter; the ratio of minibatch
            to injected noise; the bias of the step size, and at half of it; the Metropolis
            acceptance that the chain's own transitions would have had; the distance from the
            Laplace approximation;
            clipped steps and divergent chains; and the problems, each with its remedy.
        """
        check_is_fitted(self)
        table = self.summary()
        table["mcse_sd"] = table["mcse_mean"] / table["sd"]
        judged = self._judged
        shift, width = judged.from_laplace()
        divergent = judged.divergent(MAX_DISTANCE)
        problems = self._find_problems()
        if divergent:
            problems.append(
                f"chains {divergent} stayed far from the mode; set step_size='auto' or lower it"
            )
        diagnosis = Diagnosis(
            table,
            judged.noise_ratio,
            *judged.bias,
            self._halved_bias(),
            judged.acceptance(),
            shift,
            width,
            self.clipped_fraction_,
            divergent,
            problems,
            [] if self.sampler_.adjusted else condition_27_notes(self._resolve("schedule")),
        )
        print(diagnosis)
        return diagnosis

    def _halved_bias(self) -> float:
        """Return what the bias would be at half the step size; nan without the data."""
        run, last = self._judged.run, self._judged.theta.shape[1] * self.thin_
        if run is None:
            return float("nan")
        eta = 0.5 * run.step_size * float(run.schedule(last))
        return _measure_bias(run, self._judged.laplace, eta, self.preconditioner_, 0)[0]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the data behind: a pickled estimator holds the draws, not what they came from."""
        state = dict(super().__getstate__())
        if "_judged" in state:
            state["_judged"] = state["_judged"].without_data()
        return state


class LangevinEstimator(LangevinSampling, LinearEstimator):
    """A linear model whose posterior is sampled by Langevin dynamics."""

    _registries: ClassVar[dict[str, Registry]] = {
        **LinearEstimator._registries,
        **LangevinSampling._registries,
    }

    def _infer(self, X: Array, y: Array, weight: Array | None) -> None:
        self._check_settings()
        preconditioner = resolve_preconditioner(self)
        glm = self._make_posterior(X, y, weight, center=preconditioner.uses_curvature)
        check_propriety(glm)
        self._sample(*self._locate(glm), preconditioner)
        draws = self.posterior_
        self._set_point(np.average(draws.flat, axis=0, weights=draws.flat_weights))

    def _locate(self, glm: GLMPosterior) -> tuple[Any, Mode]:
        """Return the posterior in the coordinates that are sampled, and its mode there."""
        automatic = (
            isinstance(self.preconditioner, str)
            and self.preconditioner == self.batch_size == "auto"
            and isinstance(self.gradient, str)
            and self.gradient in ("auto", "full")
        )
        if automatic:
            glm = shorten(glm, resolve_temperature(self.temperature).final)
        if automatic and glm.likelihood.infers_noise and glm.cheap_full_gradient:
            return noncenter(glm, resolve_temperature(self.temperature).final)
        mode = find_mode(glm, glm.start())
        check_mode(glm, mode.theta)
        return glm, mode
