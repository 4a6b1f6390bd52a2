"""Inference for networks: Langevin dynamics from several modes, or a normal approximation.

A settings object holds what the user wrote, ``check`` refuses what cannot be used, and ``run``
takes a posterior and a seed to draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from skbayes_sgld._components import ChainStreams, check_number, start_normals
from skbayes_sgld._progress import Progress, unending
from skbayes_sgld.estimators.base import Array
from skbayes_sgld.estimators.network_diagnosis import NetworkDiagnosis, diagnose_outputs
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.long_run import Origin, run_long
from skbayes_sgld.inference.run import Watch
from skbayes_sgld.inference.settings import (
    LongRunSettings,
    check_memory,
    check_temperature,
    check_verbose,
    number_or_auto,
)
from skbayes_sgld.posterior.mlp import MLPPosterior
from skbayes_sgld.sampling import (
    SGHMC,
    SGLD,
    Adam,
    Constant,
    Full,
    Identity,
    Matrix,
    Minibatch,
    ValueClip,
)
from skbayes_sgld.sampling.chains import Chains, Run, run_chains
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.preconditioners.equilibration import equilibrate, row_norms
from skbayes_sgld.variational import BayesByBackprop

# With momentum the draws of iris and wine (50 units, 500 steps and then 12 a draw) have an R-hat of
# the predictions of 1.11 to 1.14 and an effective sample size of 22 to 25; without, after 2,000
# steps and 40 a draw, 1.33 to 1.45 and 8 to 10. Half of this friction, or twice the step size,
# heats the chain: means are then off by an sd of importance sampling's.
_FRICTION = 0.05
_STEP_SIZE = 0.25  # over the curvature of the steepest direction, in the metric
_BURNIN, _THIN = 500, 12  # steps, with momentum
_PLAIN_BURNIN, _PLAIN_THIN = 2000, 40
_ALL_ROWS = 2000  # up to here every step takes all
_SHARE = 20  # beyond it, one row in so many
_INFLATION = 0.2  # of the variance in the steepest direction, by minibatches
_TRAINING_STEP = 0.03  # of Adam, in units of the parameters' size
_TRAINING_ROWS = 200
_FROZEN = 1e-6  # the unit of what is not to move
_TRAINING_STEPS = 1000  # to where the normal approximation begins
_ROUNDS = 10  # of the burn-in, each with a metric of its own
_BOUND = 10.0  # sds of the metric: no gradient is longer where the chain is at home
_WIDTH = 0.1  # sds of the approximation to begin with, in units of the parameters' size
_JUDGED = 50  # rows


@dataclass(frozen=True)
class NetworkDraws:
    """What inference gives back.

    Attributes
    ----------
    theta : ndarray of shape (n_chains, n_draws, n_params)
        Draws, for standardised data.
    attributes : dict
        Fitted attributes of the estimator, by name.
    choices : dict of Choice
        How the draws were made, every ``"auto"`` resolved.
    diagnosis : NetworkDiagnosis or None
        What the predictions at some of the training rows say; None of an approximation.
    """

    theta: Array
    attributes: dict[str, Any]
    choices: dict[str, Choice]
    diagnosis: NetworkDiagnosis | None = None


class NetworkInference(Protocol):
    """Settings that run an inference."""

    def check(self) -> None:
        """Raise where a setting is out of range."""

    def run(
        self, posterior: MLPPosterior, seed: int, watch: Watch, inputs: dict[str, Any]
    ) -> NetworkDraws:
        """Draws from the posterior, or from its approximation.

        ``inputs`` are the data and the settings, by name, by which a checkpoint knows its run.
        """


@contextmanager
def overflow_explained(posterior: MLPPosterior, what: str, remedy: str) -> Iterator[None]:
    """Turn the overflow of a run into an error that names parameter and remedy."""
    try:
        with np.errstate(all="ignore"):
            yield
    except ChainOverflowError as error:
        raise error.explained(
            f"{what} overflowed in {posterior.param_names[error.parameter]} of chain "
            f"{error.chain} at step {error.step}; {remedy}."
        ) from None


def train(posterior: MLPPosterior, n_chains: int, n_steps: int, seed: int, **how: Any) -> Array:
    """Networks ``(C, P)`` trained by Adam from random weights: a point near a mode for each chain.

    The noise variance stays that of y: trained with the weights, it would follow the residuals to
    zero, and a chain that starts there stays for long.
    """
    n, P = posterior.n_samples, posterior.n_params
    unit = posterior.unit
    unit[posterior.network.n_params :] = _FROZEN
    metric = Matrix(np.square(unit)).bind(P, None)
    run = Run(
        Adam(),
        Dynamics(Minibatch(replacement=False).bind(posterior, None), metric),
        Constant(),
        _TRAINING_STEP,
        n,
        min(_TRAINING_ROWS, n),
        replacement=False,
    )
    start = posterior.random_start(start_normals(seed, range(n_chains), P))
    remedy = "rescale y, raise noise_variance where it is fixed, or lower prior__scale"
    with overflow_explained(posterior, "the training that the draws start from", remedy):
        return run_chains(run, start, n_draws=1, thin=n_steps, seed=seed, **how).draws[:, 0]


@dataclass(frozen=True)
class NetworkPlan:
    """The draws of trained networks: a run that may stop and go on.

    Attributes
    ----------
    posterior : MLPPosterior
        Posterior that is sampled, whose gradients may be of single precision.
    exact : MLPPosterior
        The same in double precision, by whose predictions the draws are judged.
    run : Run
    start : ndarray of shape (n_chains, n_params)
        Ends of the burn-in.
    seed, n_draws, thin, n_burnin : int
        Of the draws alone: what comes before them is over.
    settings : LongRunSettings
    """

    posterior: MLPPosterior
    exact: MLPPosterior
    run: Run
    start: Array
    seed: int
    n_draws: int
    thin: int
    settings: LongRunSettings
    n_burnin: int = 0

    def chains(self, origin: Origin, progress: Progress | None) -> tuple[Chains, Choice | None]:
        """Chains, and what ended them where it was not the number of draws alone."""
        if self.settings.in_parts:
            return run_long(self, origin, progress)
        chains = run_chains(
            self.run,
            self.start,
            n_draws=self.n_draws,
            thin=self.thin,
            seed=self.seed,
            n_jobs=self.settings.n_jobs,
            progress=progress,
        )
        return chains, None

    def diagnosis(
        self, draws: Array, clipped: float = 0.0, stopped_by: Choice | None = None
    ) -> NetworkDiagnosis:
        """Diagnosis of draws ``(C, S, P)`` by their predictions at some of the training rows."""
        outputs = _outputs(self.exact, draws)
        invariant = self.exact.likelihood.shift_invariant
        return diagnose_outputs(outputs, clipped, invariant, stopped_by)

    def effective_size(self, draws: Array) -> tuple[float, str]:
        """Bulk effective sample size that 95 % of the predictions exceed, and a clause on it."""
        ess = self.diagnosis(draws).ess
        return ess, f"95 % of the predictions have an effective sample size above {ess:.0f}"


@dataclass(frozen=True)
class LangevinNetworks(LongRunSettings):
    """Settings of Langevin dynamics, one chain from each of several modes."""

    step_size: Any
    temperature: Any
    batch_size: Any
    n_draws: Any
    n_burnin: Any
    thin: Any
    n_chains: Any
    verbose: Any

    def check(self) -> None:
        """Raise where a setting is out of range."""
        number_or_auto(self.step_size, "step_size", low=0, any_size=True)
        number_or_auto(self.batch_size, "batch_size", low=1, closed="left", integer=True)
        for name in ("n_draws", "n_chains"):
            check_number(getattr(self, name), name, low=1, closed="left", integer=True)
        for name in ("n_burnin", "thin"):
            number_or_auto(getattr(self, name), name, low=1, closed="left", integer=True)
        check_verbose(self.verbose)
        check_temperature(self.temperature)

    def run(
        self, posterior: MLPPosterior, seed: int, watch: Watch, inputs: dict[str, Any]
    ) -> NetworkDraws:
        """Draws from the posterior; the metric is measured anew ten times during the burn-in."""
        check_memory(self.n_chains, self.n_draws, posterior.n_params)
        origin = Origin.of(self, inputs, seed)
        with origin.interruptible(self.checkpoint):
            return self._run(posterior, origin, watch)

    def _run(self, posterior: MLPPosterior, origin: Origin, watch: Watch) -> NetworkDraws:
        seed = origin.seed
        exact, posterior = posterior, posterior.rounded()
        run, norms = self._make_run(posterior), None
        plain = isinstance(run.sampler, SGLD)
        n_burnin = _resolve(self.n_burnin, _PLAIN_BURNIN if plain else _BURNIN)
        thin = _resolve(self.thin, _PLAIN_THIN if plain else _THIN)
        length = -(-n_burnin // _ROUNDS)
        n_steps = n_burnin + _ROUNDS * length + self.n_draws * thin
        what, remedy = f"step_size={run.step_size:g}: the dynamics", "set step_size='auto'"
        if isinstance(self.step_size, str):
            remedy = "set a smaller step_size, or rescale y"
        with watch(n_steps, "sampling") as progress:
            progress = unending(progress)
            reports = self._in_time(origin, progress)
            how: dict[str, Any] = {"n_jobs": self.n_jobs, "progress": reports}
            theta = train(posterior, self.n_chains, n_burnin, seed, **how)
            with overflow_explained(posterior, what, remedy):
                for number in range(1, _ROUNDS + 1):
                    run.dynamics, norms = _adapt(
                        run.dynamics, posterior, theta, norms, seed + number
                    )
                    warm = run_chains(run, theta, n_draws=1, thin=length, seed=seed + number, **how)
                    theta = warm.draws[:, 0]
                seed += _ROUNDS + 1
                run.dynamics, _ = _adapt(run.dynamics, posterior, theta, norms, seed)
                plan = NetworkPlan(posterior, exact, run, theta, seed, self.n_draws, thin, self)
                chains, stopped_by = plan.chains(origin, progress)
        clipped = float(chains.clipped.mean())
        attributes = {
            "step_size_": float(run.step_size),
            "batch_size_": int(run.batch_size or posterior.n_samples),
            "n_burnin_": n_burnin,
            "thin_": thin,
            "clipped_fraction_": clipped,
        }
        step, rows = attributes["step_size_"], attributes["batch_size_"]
        given, by_rows = "as given", "by the number of rows"
        why = "without momentum" if plain else "with momentum"
        choices = {
            "sampler": Choice(run.sampler, why),
            "step_size": Choice(step, self._reason(self.step_size, "stable, and little noise")),
            "temperature": Choice(run.dynamics.temperature, given),
            "batch_size": Choice(rows, self._reason(self.batch_size, by_rows)),
            "n_burnin": Choice(n_burnin, self._reason(self.n_burnin, why)),
            "thin": Choice(thin, self._reason(self.thin, why)),
        }
        if stopped_by is not None:
            choices["stopped_by"] = stopped_by
        diagnosis = plan.diagnosis(chains.draws, clipped, stopped_by)
        return NetworkDraws(chains.draws, attributes, choices, diagnosis)

    def _in_time(self, origin: Origin, progress: Progress | None) -> Progress | None:
        """The same reports, and an error once the time is up: there are no draws yet."""
        if self.max_time is None or origin.saved is not None:
            return progress

        def report(n_done: int) -> bool:
            if monotonic() >= origin.limit(self):
                raise ValueError(
                    f"max_time={self.max_time:g} was up before the first draw, in the training and "
                    "the burn-in; give more time, or a smaller n_burnin."
                )
            return progress is not None and progress(n_done)

        return report

    @staticmethod
    def _reason(setting: Any, automatic: str) -> str:
        return automatic if isinstance(setting, str) else "as given"

    def _make_run(self, posterior: MLPPosterior) -> Run:
        n, tau = posterior.n_samples, float(self.temperature)
        batch_size = self.batch_size
        if isinstance(batch_size, str):
            batch_size = n if n <= _ALL_ROWS else max(_ALL_ROWS, n // _SHARE)
        check_batch_size(batch_size, n)
        step_size = self.step_size
        if isinstance(step_size, str):
            # minibatches add eta n / (2 B tau) to the variance where the data decide it
            step_size = _STEP_SIZE
            if batch_size < n:
                step_size = min(step_size, 2.0 * _INFLATION * tau * batch_size / n)
        gradient = Full() if batch_size == n else Minibatch(replacement=False)
        identity = Identity().bind(posterior.n_params, None)
        integrator = "leimkuhler_matthews"
        # momentum multiplies the noise of minibatches, and the kinks of relu heat it; where the
        # noise is inferred from few rows, chains do not leave the modes that they began at
        momentum = batch_size == n and posterior.network.activation == "tanh"
        momentum = momentum and not posterior.likelihood.infers_noise
        return Run(
            SGHMC(_FRICTION, integrator) if momentum else SGLD(integrator),
            Dynamics(gradient.bind(posterior, None), identity, temperature=tau),
            Constant(),
            float(step_size),
            n,
            None if batch_size == n else int(batch_size),
            replacement=False,
        )


def _adapt(
    dynamics: Dynamics, posterior: MLPPosterior, theta: Array, norms: Array | None, seed: int
) -> tuple[Dynamics, Array]:
    """Dynamics with the metric measured where the chains are, and its norms.

    Half of the norms are the earlier ones: one place says little of the posterior.
    """
    gradient = _probe_gradient(posterior, len(theta), seed)
    here = row_norms(gradient, theta, posterior.marginal_sd, seed)
    norms = here if norms is None else 0.5 * (norms + here)
    metric = equilibrate(gradient, theta, posterior.marginal_sd, norms)
    bound = _BOUND * np.sqrt(max(dynamics.temperature, 1.0)) / metric.roots
    return replace(dynamics, preconditioner=metric, clip=ValueClip(bound)), norms


def _probe_gradient(posterior: MLPPosterior, n_chains: int, seed: int) -> Callable[[Array], Array]:
    """Gradient from the same rows at every call, a part of them where there are many."""
    n = posterior.n_samples
    if n <= _ALL_ROWS:
        return posterior.grad
    rows = [ChainStreams(seed, c).rows(1, n, _ALL_ROWS, False)[0] for c in range(n_chains)]
    idx = np.stack(rows)

    def gradient(theta: Array) -> Array:
        likelihood = posterior.grad_log_likelihood(theta, idx) * (n / _ALL_ROWS)
        return likelihood + posterior.grad_log_prior(theta)

    return gradient


def _outputs(posterior: MLPPosterior, theta: Array) -> Array:
    """Outputs ``(C, S, rows, K)`` of the drawn networks at some of the training rows."""
    n = posterior.n_samples
    rows = posterior.X[np.linspace(0, n - 1, min(_JUDGED, n)).astype(int)]
    outputs = posterior.predict(theta.reshape(-1, theta.shape[2]), rows)
    outputs = outputs[:, : posterior.likelihood.n_predictors].swapaxes(1, 2)
    return outputs.reshape(*theta.shape[:2], *outputs.shape[1:])


def _resolve(setting: Any, automatic: int) -> int:
    return automatic if isinstance(setting, str) else int(setting)


@dataclass(frozen=True)
class VariationalNetworks:
    """Settings of a normal approximation with independent weights."""

    step_size: Any
    max_iter: Any
    n_particles: Any
    batch_size: Any
    n_draws: Any
    verbose: Any

    def check(self) -> None:
        """Raise where a setting is out of range."""
        check_verbose(self.verbose)
        check_number(self.n_draws, "n_draws", low=1, closed="left", integer=True)
        number_or_auto(self.batch_size, "batch_size", low=1, closed="left", integer=True)
        self._backprop(None, None).check()

    def _backprop(self, batch_size: int | None, seed: int | None) -> BayesByBackprop:
        return BayesByBackprop(
            step_size=self.step_size,
            max_iter=self.max_iter,
            n_particles=self.n_particles,
            batch_size=batch_size,
            random_state=seed,
        )

    def run(
        self, posterior: MLPPosterior, seed: int, watch: Watch, inputs: dict[str, Any]
    ) -> NetworkDraws:
        """Draws from the approximation, which begins at a trained network."""
        check_memory(1, self.n_draws, posterior.n_params)
        batch_size = None if isinstance(self.batch_size, str) else self.batch_size
        if batch_size is None and posterior.n_samples > _ALL_ROWS:
            batch_size = _TRAINING_ROWS
        check_batch_size(batch_size, posterior.n_samples)
        q = self._backprop(batch_size, seed)
        with watch(_TRAINING_STEPS + q.max_iter, "approximating") as progress:
            start = train(posterior, 1, _TRAINING_STEPS, seed, progress=progress)[0]
            with np.errstate(all="ignore"):
                q.fit(posterior, start, _WIDTH * posterior.unit, progress)
        attributes = {"elbo_": q.elbo_, "elbo_steps_": q.elbo_steps_, "n_iter_": q.max_iter}
        choices = {"approximation": Choice(clone(q), "as given")}
        return NetworkDraws(q.sample(self.n_draws, seed)[None], attributes, choices)


def check_batch_size(batch_size: int | None, n_samples: int) -> None:
    """Raise where a batch without replacement is larger than the data."""
    if batch_size is not None and batch_size > n_samples:
        raise ValueError(
            f"batch_size={batch_size} is larger than the {n_samples} rows, and the batches are "
            f"drawn without replacement; give at most {n_samples}."
        )
