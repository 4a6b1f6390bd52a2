"""From plan to result: runs the chains, in parts where a run may stop, and judges their draws."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any

import numpy as np
from scipy.stats import t as student_t
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld._progress import Progress, progress_bar
from skbayes_sgld._warnings import warn
from skbayes_sgld.diagnostics import least_ess, mean_of_draws, say_uncertain, uncertain_sds
from skbayes_sgld.inference.checkpoint import Origin, Writer
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.diagnosis import EARLY_ENDS, describe_point, diagnose_outputs
from skbayes_sgld.inference.energy import energy_of
from skbayes_sgld.inference.overflow import explain_overflow
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.problems import find_problems
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies import make_plan
from skbayes_sgld.inference.strategies.ensemble import warm_up
from skbayes_sgld.inference.strategies.task import Finding
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.sampling.loop import run_chains, run_parts
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import Chains, Steps, join_parts, reported_draws
from skbayes_sgld.sampling.schedules import Constant
from skbayes_sgld.sampling.tuning.bias import sd_error
from skbayes_sgld.sampling.tuning.noise import measure_noise
from skbayes_sgld.sampling.tuning.step_bias import step_bias
from skbayes_sgld.sampling.workers import Workers

Watch = Callable[[int, str], AbstractContextManager[Progress | None]]

_SECONDS = 1.0  # longest part, about, of a run that may stop or is written to a file
_MOST = 10  # times n_draws: largest number of draws with target_ess


def run_plan(
    plan: Plan,
    watch: Watch | None = None,
    origin: Origin | None = None,
    workers: Workers | None = None,
) -> SamplingResult:
    """Result of the chains of a plan.

    Parameters
    ----------
    plan : Plan
    watch : callable or None
        Called with the number of steps and their name, it returns a context. The context's value
        is a function to report finished steps to; it returns True to end the run with the draws so
        far. None shows a bar where the plan's settings are verbose.
    origin : Origin or None
        Data and checkpoint of the run; None where it resumes nothing.
    workers : Workers or None
        Workers that run chains side by side; None: the processes of ``n_jobs``.

    Raises
    ------
    ChainOverflowError
        When a chain leaves the range of floating point numbers.

    Warns
    -----
    ConvergenceWarning
        Where chains have not converged, or draws are biased: each problem, its figure and its
        remedy.
    """
    origin = origin or Origin(plan.seed)
    if watch is None and plan.settings.verbose:
        watch = partial(progress_bar, plan.settings.verbose)
    with nullcontext() if watch is None else watch(plan.n_steps, "sampling") as progress:
        if plan.n_training:
            plan = _warmed_up(plan, origin, progress, workers)
        chains, stopped_by = _draw(plan, origin, progress, workers)
    values = reported_draws(plan.posterior, chains.draws, plan.n_burnin, plan.thin)
    if stopped_by is not None:
        choices = plan.choices | {"stopped_by": stopped_by}
        plan = replace(plan, n_draws=values.shape[1], choices=choices)
    with np.errstate(all="ignore"):  # squares of diverging chains overflow
        result = _judged(plan, chains, values)
    if result.problems:
        message = "; ".join(result.problems)
        warn(f"{message[0].upper()}{message[1:]}.", ConvergenceWarning)
    return result


def plan_and_run(
    posterior: BasePosterior,
    settings: Settings,
    inputs: dict[str, Any],
    seed: int,
    positions: Array | None = None,
    watch: Watch | None = None,
    workers: Workers | None = None,
) -> SamplingResult:
    """Result of a run by its settings; where steps that nobody chose overflow, of a second plan.

    The second plan takes HMC, which cannot overflow, and names the overflow in its table. Where the
    settings rule that out (minibatches, a bound on the gradient, another metric), it takes a
    quarter of the step, from around the mode, and may do so again. All chains begin again,
    whichever overflowed: only then do the draws of a chain depend on those that run beside it.

    ``inputs`` are the data and the settings, by name, by which a checkpoint knows its run. The
    other parameters are those of :func:`~skbayes_sgld.inference.plan.make_plan` and
    :func:`run_plan`, and so are the errors; that of an overflow names a step size that held.
    """
    origin = Origin.of(settings, inputs, seed, positions)
    try:
        n_left = 5  # second plans
        while True:
            plan = make_plan(posterior, settings, origin.seed, origin.positions, origin.finding)
            try:
                return run_plan(plan, watch, origin, workers)
            except ChainOverflowError as error:
                finding = _finding(error, plan) if n_left else None
                if finding is None:
                    raise explain_overflow(error, plan) from None
            origin, n_left = replace(origin, saved=None, finding=finding), n_left - 1
    except KeyboardInterrupt:
        raise origin.interrupted(settings.checkpoint) from None


def _finding(error: ChainOverflowError, plan: Plan) -> Finding | None:
    """Finding for a second plan after an overflow; None where the user chose the steps."""
    settings, run = plan.settings, plan.run
    chosen_by_user = settings.sampler is not None or settings.step_size is not None
    if chosen_by_user or run.sampler.adjusted or plan.n_training:
        return None
    why = f"chain {error.chain} overflowed at step {error.step}, by steps of {run.step_size:.3g}"
    if settings.left_to_tuning:
        return Finding(f"{run.sampler}: {why}")
    return Finding(why, 0.25 * run.step_size)


def _warmed_up(
    plan: Plan, origin: Origin, progress: Progress | None, workers: Workers | None
) -> Plan:
    """Plan of an ensemble's draws, after its chains were trained and its metric was measured."""
    # a resumed run has draws already
    limit = np.inf if origin.saved else origin.begin + (plan.settings.max_time or np.inf)

    def report(n_done: int) -> bool:
        if monotonic() >= limit:
            raise ValueError(
                f"max_time={plan.settings.max_time:g} was up before the first draw, in the "
                "training and the burn-in; give more time, or a smaller n_burnin."
            )
        if progress is not None:
            progress(n_done)
        return False

    how: dict[str, Any] = {"progress": report, "workers": workers, "n_jobs": plan.settings.n_jobs}
    lengths = plan.n_training, plan.n_burnin
    run, start, seed = warm_up(plan.run, plan.start, *lengths, plan.seed, **how)
    return replace(plan, run=run, start=start, seed=seed, n_training=0, n_burnin=0)


# ---- the chains, in parts ------------------------------------------------------------------------


def stopping_points(n_draws: int, target_ess: float | None) -> list[int]:
    """Numbers of draws a chain at which a run may end; they depend on no result of it."""
    if target_ess is None:
        return [n_draws]
    counts = {round(n_draws * 1.25**k) for k in range(-10, 11)}
    return sorted({n for n in counts if 0 < n < _MOST * n_draws} | {_MOST * n_draws})


def _draw(
    plan: Plan, origin: Origin, progress: Progress | None, workers: Workers | None
) -> tuple[Chains, Choice | None]:
    """Chains of a plan, run until the draws are made, are enough or the time is up.

    Parameters
    ----------
    plan : Plan
    origin : Origin
    progress : callable or None
        Called with the number of further steps; True ends the run.
    workers : Workers or None
        Workers that run chains side by side; None: the processes of ``n_jobs``.

    Returns
    -------
    chains : Chains
        Chains whose walkers' draws follow one another.
    stopped_by : Choice or None
        Reason why the run ended; None where only the number of draws could end it.

    Raises
    ------
    ValueError
        Where the run is ended before the first draw, or the checkpoint is of another run.
    OSError
        Where the checkpoint cannot be written at the beginning.
    KeyboardInterrupt
        Where the user interrupts; the checkpoint is written once more.
    """
    settings, saved = plan.settings, origin.saved
    limit = origin.begin + (settings.max_time or np.inf)
    ends = stopping_points(plan.n_each, settings.target_ess)
    parts: list[Chains] = []
    if saved is not None:
        saved.check_plan(plan, ends[-1])
        parts = [saved.chains]
        if progress is not None:
            progress(saved.chains.n_steps)
    writer = None
    if settings.checkpoint is not None:
        parts = parts or [run_chains(plan.run, plan.start, n_draws=0, seed=plan.seed)]
        writer = Writer(settings.checkpoint, plan, origin, parts[0])
    seconds = None
    if settings.in_parts:  # at least 20 parts where the time is bounded
        seconds = min(_SECONDS, (settings.max_time or np.inf) / 20)
    how: dict[str, Any] = {"progress": progress, "seconds": seconds, "workers": workers}
    how |= {"seed": plan.seed, "n_jobs": settings.n_jobs}
    stopped, late = None, False
    try:
        for end in ends:
            start: Any = plan.start
            n_made = n_steps = 0
            if parts:
                chains = parts[0]
                start, n_made, n_steps = chains.state, chains.draws.shape[1], chains.n_steps
            if end < n_made:
                continue
            rest = Steps(max(0, plan.n_burnin - n_steps), end - n_made, plan.thin)
            for part in run_parts(plan.run, start, rest, **how) if rest.n_steps else ():
                parts.append(part)
                if writer is not None and writer.due:
                    parts = [join_parts(parts)]
                    writer.write(parts[0])
                late = monotonic() >= limit
                if late:
                    break
            parts = [join_parts(parts)]
            stopped = _stopped(plan, parts[0], end, late)
            if stopped is not None:
                break
    except KeyboardInterrupt:
        if writer is not None:
            writer.write(join_parts(parts))
        raise
    except ChainOverflowError as error:
        error.chain //= plan.n_walkers
        raise
    (chains,) = parts
    if writer is not None:
        writer.write(chains, finished=stopped is None or stopped.value not in EARLY_ENDS)
    if stopped is not None and not chains.draws.shape[1]:
        ended = "a callback asked to stop"
        if stopped.value == "max_time":
            ended = f"max_time={settings.max_time:g} was up"
        file = settings.checkpoint
        raise ValueError(
            f"{ended} before the first draw, after {chains.n_steps} of {plan.n_burnin} steps of "
            f"the burn-in; give more time{f', with resume_from={str(file)!r}' if file else ''}."
        )
    if stopped is None and (settings.max_time, settings.target_ess) != (None, None):
        stopped = Choice("n_draws", "all of them were made")
    return chains.join_walkers(plan.n_walkers, plan.n_draws), stopped


def _stopped(plan: Plan, chains: Chains, end: int, late: bool) -> Choice | None:
    """Reason for the run to end here; None where it continues."""
    n_draws, target = chains.draws.shape[1], plan.settings.target_ess
    if n_draws < end:
        if late:
            why = f"{plan.settings.max_time:g} s were up after {n_draws} draws a chain"
            return Choice("max_time", why)
        return Choice("callback", f"a callback asked to stop after {n_draws} draws a chain")
    if target is None:
        return None
    posterior: Any = plan.posterior
    if posterior.facts.ensemble:
        invariant = posterior.likelihood.shift_invariant
        ess = diagnose_outputs(posterior.outputs(chains.draws), 0.0, invariant).ess
        figure = f"95 % of the predictions have an effective sample size above {ess:.0f}"
    else:
        values = reported_draws(posterior, chains.draws, plan.n_burnin, plan.thin)
        ess, worst = least_ess(values)
        name = posterior.reported.names[worst]
        figure = f"the least bulk effective sample size is {ess:.0f}, of {name}"
    if ess >= target:
        return Choice("target_ess", f"{figure}: target_ess={target:g} is reached")
    if n_draws >= _MOST * plan.n_draws:
        return Choice("cap", f"{figure}: target_ess={target:g} is not reached by {_MOST} n_draws")
    return None


# ---- figures of the draws ------------------------------------------------------------------------


def _judged(plan: Plan, chains: Chains, values: Array) -> SamplingResult:
    """Result with the figures of its draws, their problems and notes."""
    posterior: Any = plan.posterior
    weights = chains.weights
    scaled = weights / weights.mean() if np.ptp(weights) > 0 else None
    result = SamplingResult(
        values,
        list(posterior.reported.names),
        scaled,
        plan.choices,
        {name: list(each) for name, each in posterior.reported.coords.items()},
        plan=plan,
        theta=chains.draws,
        mean=mean_of_draws(values, scaled),
        positions=posterior.reported.values(chains.state.sampler_state["theta"][:: plan.n_walkers]),
        clipped=float(chains.clipped.mean()),
        acceptance=chains.acceptance,
    )
    if posterior.facts.ensemble:
        outputs, invariant = posterior.outputs(chains.draws), posterior.likelihood.shift_invariant
        stopped_by = plan.choices.get("stopped_by")
        diagnosis = diagnose_outputs(outputs, result.clipped, invariant, stopped_by)
        return replace(result, predictions=diagnosis, problems=tuple(diagnosis.problems))
    result = replace(
        result,
        noise_ratio=_noise_ratio(plan, chains),
        bias=_bias(plan, chains),
        undefined=_undefined(posterior, chains),
        energy=energy_of(plan, chains),
    )
    if problems := find_problems(result):
        return replace(result, problems=tuple(problems))
    uncertain = uncertain_sds(values, result.names)
    if not uncertain:
        return result
    is_given = result.choices["step_size"].given
    remedy = "set step_size to 'auto'" if is_given else "take quantiles in its place"
    # a variance or a scale, whose logarithm is sampled, has such a tail wherever data are few
    sampled = posterior.param_names
    if not posterior.facts.user_defined:
        sampled = [n for n in uncertain if n.startswith(("coef[", "intercept"))]
    if shown := {n: sd for n, sd in uncertain.items() if n in sampled}:
        note = say_uncertain(shown)
        warn(f"{note[0].upper()}{note[1:]}; {remedy}.", ConvergenceWarning)
    return replace(result, notes=(f"{say_uncertain(uncertain)}; {remedy}",))


def _undefined(posterior: BasePosterior, chains: Chains) -> tuple[float, str]:
    """Share of the proposals whose density is not a number, and the parameters at one of them.

    A sampler that accepts every step follows the gradient alone, and may go where the density is 0:
    the share is then of the draws. No parameters are named where those of a linear model, whose
    density is positive everywhere, overflowed.
    """
    share, theta = chains.undefined
    with np.errstate(all="ignore"):
        if chains.acceptance is None and not posterior.facts.full_support:
            flat = chains.draws.reshape(-1, chains.draws.shape[2])
            affordable = 2**22 // max(posterior.n_samples, flat.shape[1])
            some = flat[:: -(-len(flat) // int(np.clip(affordable, 1, 1000)))]
            bad = ~np.isfinite(posterior.log_density(some))
            share, theta = float(bad.mean()), some[bad.argmax()] if bad.any() else None
        if theta is None:
            return 0.0, ""
        reported = posterior.reported.values(theta[None])
        if posterior.facts.full_support and not np.isfinite(reported).all():
            return share, ""
        return share, describe_point(posterior, theta)


def _noise_ratio(plan: Plan, chains: Chains) -> float:
    """Alpha: variance of the minibatches' noise over that of the injected noise.

    It is measured around the mode, or around the chains' mean where nothing asked for the mode.
    """
    run, tau = plan.run, plan.settings.tau
    if run.batch_size is None:
        return 0.0
    level = plan.noise
    if level is None:
        gradient, metric = plan.choices["gradient"].value, run.dynamics.metric
        center = plan.center_of(chains.draws)
        sampled = run.dynamics.gradient.posterior
        if sampled is not plan.posterior:  # the expansion that is known is that of all rows
            center = center._replace(expansion=None)
        level = measure_noise(sampled, gradient, center, tau, 0, metric)
    # the mean step over the draws, each weighted by its step size as the draws are
    eta = float(np.average(chains.weights, weights=chains.weights))
    return level.inflation(eta, run.batch_size, tau) * run.sampler.noise_gain


def _bias(plan: Plan, chains: Chains) -> tuple[float, float]:
    """Largest bias of the step size, with twice its standard error."""
    bias = plan.bias
    if plan.mode is not None and not isinstance(plan.settings.schedule, Constant):
        uses_curvature = plan.settings.uses_curvature
        bias = step_bias(plan.run, plan.mode, chains.weights, uses_curvature, plan.seed)
    return bias if np.isfinite(bias[0]) else _bias_of_draws(plan, chains)


def _bias_of_draws(plan: Plan, chains: Chains) -> tuple[float, float]:
    """Largest relative error of the draws' sds, and its part that chance explains.

    Step size and minibatch noise cause it together. Under every density
    ``E[-(theta_j - c) d log p / d theta_j] = tau`` (integration by parts); the variances of a chain
    whose steps are too long exceed theirs by the same factor. Chains that have not mixed show
    nothing.
    """
    theta, weights = chains.draws, chains.weights
    posterior, tau, (n_chains, n_draws, P) = plan.posterior, plan.settings.tau, theta.shape
    n_batches = max(1, 20 // n_chains)  # batch means give the Monte Carlo error
    # multiplications that the gradients at the draws may take
    affordable = int(2e8 / (max(posterior.n_samples, 1) * P * n_chains * n_batches))
    each = min(max(affordable, 2), n_draws // n_batches)
    if plan.run.sampler.adjusted or each < 2:
        return 0.0, 0.0
    # a draw at random from each of so many equal parts of the weight: their means are weighted
    # means, and none of them meets a cycle of the steps always at the same phase
    parts = np.arange(each * n_batches) + np.random.default_rng(plan.seed).random(each * n_batches)
    edges = np.cumsum(weights) / weights.sum()
    positions = np.searchsorted(edges[:-1], parts / len(parts), side="right")
    some = theta[:, positions]
    # a few draws at a time, whose temporaries stay in cache
    size = max(1, 2**16 // max(posterior.n_samples, P))
    flat = some.reshape(-1, P)
    parts = [flat[a : a + size] for a in range(0, len(flat), size)]
    grad = posterior.bind_grad(None)  # one product takes a part
    gradient = np.concatenate([grad(part) for part in parts]).reshape(some.shape)
    virial = -(some - some.mean(axis=(0, 1))) * gradient / tau
    batches = virial.reshape(n_chains * n_batches, each, P).mean(axis=1)
    # one false alarm in a thousand fits, over all parameters
    quantile = student_t.isf(1e-3 / P, len(batches) - 1)
    doubts = quantile * batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    errors, doubts = sd_error(batches.mean(axis=0) - 1.0, doubts)
    worst = int(np.argmax(np.abs(errors) - doubts))
    return abs(float(errors[worst])), float(doubts[worst])
