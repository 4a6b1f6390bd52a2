"""Ensembles: every chain begins at a mode of its own, because a network's posterior has many.

Adam trains each chain from a random start. During the burn-in the metric is measured ten times, at
the chain's position; the draws are made in the last of these metrics. The rounds between grow
longer: at first a noise variance falls from that of y to that of the residuals, and steps that are
stable before would not be after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np

from skbayes_sgld._checks import check_batch_size
from skbayes_sgld._progress import Progress
from skbayes_sgld._random import ChainStreams, start_normals
from skbayes_sgld._timings import stage
from skbayes_sgld.inference.choices import Choice, as_given, in_order
from skbayes_sgld.inference.judging import unjudged
from skbayes_sgld.inference.origin import Inputs, Origin, open_journal
from skbayes_sgld.inference.overflow import place_of
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.inference.run import Watch, draw, plan_and_run, warn_of_problems, watch_of
from skbayes_sgld.inference.setting_checks import AUTO, check_room
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.neural_network.diagnosis import NetworkDiagnosis, diagnose_outputs
from skbayes_sgld.neural_network.equilibration import equilibrate, row_norms
from skbayes_sgld.neural_network.posterior import MLPPosterior
from skbayes_sgld.optimizers import Adam
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.sampling import (
    SGHMC,
    SGLD,
    Constant,
    Full,
    Identity,
    Matrix,
    Minibatch,
    Sampler,
    ValueClip,
)
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import Chains, Run, reported_draws

_ALL_ROWS = 2000  # up to this number of rows every step takes all of them
_ROUNDS, _LONGER = 10, 1.6  # rounds of the burn-in, and how much longer each is than the one before
_FEW_ROWS = 20  # below it the scale of a network with inferred noise varies too much for momentum
_BOUND = 10.0  # in sds of the metric; gradients within the posterior are shorter


def sample_network(
    posterior: MLPPosterior,
    settings: Settings,
    inputs: Inputs,
    seed: int,
    watch: Watch | None = None,
) -> SamplingResult:
    """Sample a network: by an ensemble, unless the settings ask for one of the strategies.

    Parameters, errors and warnings are those of :func:`~skbayes_sgld.inference.run.plan_and_run`.
    """
    if not suits(settings):
        return plan_and_run(posterior, settings, inputs, seed, None, watch)
    if watch is None:
        watch = watch_of(settings)
    with open_journal(settings, inputs, Origin(seed)) as journal:
        origin = Origin(seed) if journal is None else journal.origin
        plan = plan_ensemble(posterior, settings, origin.seed)
        n_steps = plan.n_burnin + plan.n_steps  # the training has as many steps as the burn-in
        try:
            with stage("draws"), watch(n_steps, "sampling") as progress:
                plan = trained(plan, origin.begin, progress)
                plan, chains = draw(plan, origin.begin, journal, progress, measure=ess_of_outputs)
        except ChainOverflowError as error:
            raise explain(error, plan) from None
    values = reported_draws(plan.posterior, chains.draws, plan.n_burnin, plan.thin)
    with stage("diagnosis"):
        diagnosis = diagnose(plan, chains)
    problems = tuple(diagnosis.problems)
    result = replace(unjudged(plan, chains, values), predictions=diagnosis, problems=problems)
    warn_of_problems(result)
    return result


def suits(settings: Settings) -> bool:
    """Whether no setting of the user asks for another way to sample."""
    return (
        settings.init is AUTO
        and settings.sampler is settings.gradient is settings.preconditioner is AUTO
        and settings.clip is settings.temperature is None
        and isinstance(settings.schedule, Constant)
    )


def plan_ensemble(posterior: MLPPosterior, settings: Settings, seed: int) -> Plan:
    """Plan whose burn-in follows a training of as many steps."""
    check_room(settings.n_chains, settings.n_draws, posterior.n_params)
    run, choices = choose_ensemble(posterior, settings)
    normals = start_normals(seed, range(settings.n_chains), posterior.n_params)
    return Plan(
        posterior=posterior,
        run=run,
        start=posterior.random_start(normals),
        seed=seed,
        n_draws=settings.n_draws,
        n_burnin=choices["n_burnin"].value,
        thin=choices["thin"].value,
        choices=in_order(choices),
        settings=settings,
    )


def explain(error: ChainOverflowError, plan: Plan) -> ChainOverflowError:
    """Error without a step size that holds, since the metric comes from a long burn-in."""
    is_given = plan.choices["step_size"].given
    remedy = "set step_size='auto'" if is_given else "set a smaller step_size, or rescale y"
    return error.explained(f"{place_of(error, plan)}; {remedy}.")


def ess_of_outputs(plan: Plan, chains: Chains) -> tuple[float, str]:
    """Effective sample size that is compared with ``target_ess``, and a sentence on it."""
    ess = diagnose(plan, chains).ess
    return ess, f"95 % of the predictions have an effective sample size above {ess:.0f}"


def diagnose(plan: Plan, chains: Chains) -> NetworkDiagnosis:
    """Diagnosis of the predictions of the chains so far."""
    posterior: Any = plan.posterior
    invariant = posterior.likelihood.shift_invariant
    clipped, stopped_by = float(chains.clipped.mean()), plan.choices.get("stopped_by")
    return diagnose_outputs(posterior.outputs(chains.draws), clipped, invariant, stopped_by)


def choose_ensemble(posterior: MLPPosterior, settings: Settings) -> tuple[Run, dict[str, Choice]]:
    """The run, before its metric is measured, and all choices."""
    n, tau = posterior.n_samples, settings.tau
    batch_size, by_rows = settings.batch_size, "by the number of rows"
    if batch_size is AUTO:
        batch_size = n if n <= _ALL_ROWS else max(_ALL_ROWS, n // 20)
    check_batch_size(batch_size, n, "as batches are drawn without replacement")
    step_size = settings.step_size
    if step_size is AUTO:
        step_size = 0.25  # over the curvature of the steepest direction, in the metric
        if batch_size < n:
            # minibatches add eta n / (2 B tau) to the variance where the data decide it: 20 %
            step_size = min(step_size, 0.4 * tau * batch_size / n)
    gradient = Full() if batch_size == n else Minibatch(replacement=False)
    # momentum multiplies the noise of minibatches, and the kinks of relu heat it; with 8 or 12 rows
    # a chain may be caught at a noise variance that is far too large
    momentum = batch_size == n and posterior.network.activation == "tanh"
    few_rows = posterior.likelihood.infers_noise and posterior.total_weight < _FEW_ROWS
    momentum = momentum and not few_rows
    integrator = "leimkuhler_matthews"
    # R-hat of the predictions and their effective sample size on iris and wine (50 units): 1.11 to
    # 1.14 and 22 to 25 with momentum, 1.33 to 1.45 and 8 to 10 without. Half of this friction, or
    # twice the step size, heats the chain: means are then off by an sd of importance sampling's
    sampler: Sampler = SGHMC(0.05, integrator)
    why, n_burnin, thin = "with momentum", 500, 12
    if not momentum:
        sampler, why, n_burnin, thin = SGLD(integrator), "without momentum", 2000, 40
    run = Run(
        sampler,
        Dynamics(
            gradient.bind(posterior.rounded(), None),
            Identity().bind(posterior.n_params, None),
            temperature=tau,
        ),
        Constant(),
        step_size,
        n,
        None if batch_size == n else batch_size,
        replacement=False,
    )

    def choice(name: str, automatic: Any, why: str) -> Choice:
        value = getattr(settings, name)
        return Choice(automatic, why) if value is AUTO else Choice.by_user(value)

    bounded = f"but for gradients longer than {_BOUND:g} sds of the metric"
    choices = as_given(settings) | {
        "sampler": Choice(sampler, why),
        "step_size": choice("step_size", step_size, "stable, and little noise"),
        "gradient": Choice(gradient, by_rows),
        "batch_size": choice("batch_size", batch_size, by_rows),
        "preconditioner": Choice("equilibration", "measured in the burn-in, a diagonal per chain"),
        "parameterization": Choice("centered", "the network's own coordinates"),
        "clip": Choice(None, bounded),
        "init": Choice("training", "by Adam, from random weights of each chain"),
        "n_burnin": choice("n_burnin", n_burnin, why),
        "thin": choice("thin", thin, why),
    }
    return run, choices


def trained(plan: Plan, begin: float, progress: Progress | None) -> Plan:
    """Plan of an ensemble's draws, after its chains were trained and its metric was measured.

    ``begin`` is when the work began, on the monotonic clock.
    """
    settings = plan.settings
    # a resumed run has draws already
    limit = begin + (settings.max_time or np.inf) if settings.resume_from is None else np.inf

    def report(n_done: int) -> bool:
        if monotonic() >= limit:
            raise ValueError(
                f"max_time={settings.max_time:g} was up before the first draw, in the "
                "training and the burn-in; give more time, or a smaller n_burnin."
            )
        if progress is not None:
            progress(n_done)
        return False

    how: dict[str, Any] = {"progress": report, "n_jobs": settings.n_jobs}
    run, start, seed = warm_up(plan.run, plan.start, plan.n_burnin, plan.seed, **how)
    return replace(plan, run=run, start=start, seed=seed, n_burnin=0)


def warm_up(run: Run, start: Array, n_burnin: int, seed: int, **how: Any) -> tuple[Run, Array, int]:
    """Run in the metric measured last, ends of the burn-in ``(C, P)``, and seed of the draws.

    A training of as many steps comes before the burn-in. The arguments ``how`` are those of
    ``run_chains``.
    """
    posterior: Any = run.dynamics.gradient.posterior
    theta, norms, first = train(posterior, start, n_burnin, seed, **how), None, seed + 1
    share = _LONGER ** np.arange(_ROUNDS)
    lengths = np.ceil(n_burnin * share / share.sum()).astype(int)
    for number, length in enumerate(lengths.tolist(), first):
        run, norms = _equilibrated(run, theta, norms, number)
        theta = run_chains(run, theta, n_draws=1, thin=length, seed=number, **how).positions
    run, _ = _equilibrated(run, theta, norms, first + _ROUNDS)
    return run, theta, first + _ROUNDS


def train(posterior: MLPPosterior, start: Array, n_steps: int, seed: int, **how: Any) -> Array:
    """Networks ``(C, P)`` that Adam trains from ``start``: a point near a mode for each chain.

    The noise variance stays that of y: trained with the weights, it would follow the residuals to
    zero, and a chain that starts there stays for long. The arguments ``how`` go to ``run_chains``.
    """
    n, P = posterior.n_samples, posterior.n_params
    unit = posterior.unit.copy()
    unit[posterior.network.n_params :] = 1e-6  # not trained
    metric = Matrix(np.square(unit)).bind(P, None)
    gradient = Minibatch(replacement=False).bind(posterior.rounded(), None)
    # steps in units of the parameters' size
    run = Run(Adam(), Dynamics(gradient, metric), Constant(), 0.03, n, min(200, n), False)
    try:
        return run_chains(run, start, n_draws=1, thin=n_steps, seed=seed, **how).positions
    except ChainOverflowError as error:
        raise ValueError(
            "the training that the draws start from overflowed in "
            f"{posterior.param_names[error.parameter]} of chain {error.chain} at step "
            f"{error.step}; rescale y, raise noise_variance where it is fixed, or lower "
            "prior__scale."
        ) from None


def _equilibrated(run: Run, theta: Array, norms: Array | None, seed: int) -> tuple[Run, Array]:
    """Run whose metric is measured at ``theta (C, P)``, and the norms of its curvature's rows.

    Half of the norms are the earlier ones: one position says little about the posterior.
    """
    posterior: Any = run.dynamics.gradient.posterior
    gradient = _probe_gradient(posterior, len(theta), seed)
    with np.errstate(all="ignore"):  # the run names the chain that overflows
        here = row_norms(gradient, theta, posterior.marginal_sd, seed)
        norms = here if norms is None else 0.5 * (norms + here)
        metric = equilibrate(gradient, theta, posterior.marginal_sd, norms)
    bound = _BOUND * np.sqrt(max(run.dynamics.temperature, 1.0)) / metric.marginal_sd
    dynamics = replace(run.dynamics, metric=metric, clip=ValueClip(bound))
    return replace(run, dynamics=dynamics), norms


def _probe_gradient(posterior: MLPPosterior, n_chains: int, seed: int) -> Callable[[Array], Array]:
    """Gradient from the same rows at every call; of many rows a part is used."""
    n = posterior.n_samples
    if n <= _ALL_ROWS:
        return posterior.grad
    idx = np.stack([ChainStreams(seed, c).rows(1, n, _ALL_ROWS, False)[0] for c in range(n_chains)])

    def gradient(theta: Array) -> Array:
        likelihood = posterior.grad_log_likelihood(theta, idx) * (n / _ALL_ROWS)
        return likelihood + posterior.grad_log_prior(theta)

    return gradient
