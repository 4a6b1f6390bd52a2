"""From plan to result: runs the chains, measures noise and bias, and tells of problems."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld._progress import Progress, progress_bar
from skbayes_sgld._warnings import warn
from skbayes_sgld.diagnostics import (
    STILL,
    TOO_FEW,
    convergence_problems,
    enough_draws,
    least_ess,
    mean_of_draws,
    uncertain_sds,
)
from skbayes_sgld.inference.choices import EARLY_ENDS, Choice, Fallback
from skbayes_sgld.inference.diagnosis import warn_of
from skbayes_sgld.inference.long_run import Origin, check_drawn, ended_by_callback, run_long
from skbayes_sgld.inference.overflow import explain_overflow
from skbayes_sgld.inference.own_models import own_problems
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.plan import plan as plan_of
from skbayes_sgld.inference.result import PosteriorDraws, SamplingResult
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.chains import Chains, constrained_draws, run_chains
from skbayes_sgld.sampling.dynamics import Diagonal
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.samplers import ParallelTempering
from skbayes_sgld.sampling.tuning.bias import sd_error
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.noise import measure_noise
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS
from skbayes_sgld.sampling.workers import Workers

Array = NDArray[Any]
Watch = Callable[[int, str], AbstractContextManager[Progress | None]]

_BATCHES = 20  # batches of draws, whose means have the Monte Carlo error
_NUMBERS = 2**16  # predictors of all rows in a block of draws
_WORK = 2e8  # multiplications that the gradients at the draws may take
_JUDGED, _LARGEST = 1000, 2**22  # draws whose density is looked at, and numbers that takes
_CHANCE = 1e-3  # probability of a false alarm, over all parameters

_FAIR = 0.2  # effective draws over draws: with fewer, settings are to blame, not their number
# Plans that are given up where chains overflow, and the share of a step that the next one takes
_FALLBACKS, _SHORTER = 5, 0.25
_SHOWN = 5  # parameters that a message shows
_TOLD_BIAS = 100.0  # relative bias whose size says no more


def run(
    plan: Plan,
    watch: Watch | None = None,
    origin: Origin | None = None,
    workers: Workers | None = None,
) -> SamplingResult:
    """Run the chains of a plan.

    Parameters
    ----------
    plan : Plan
    watch : callable or None
        Takes the number of steps and what they are, and returns the context of a function to report
        finished ones to, which returns True to end the run with the draws so far. None shows a bar
        where the plan's settings are verbose.
    origin : Origin or None
        Where the run comes from: without it no checkpoint is written, nothing is resumed, and the
        draws are as many as were asked for.
    workers : Workers or None
        Where chains run side by side; None: in the processes of ``n_jobs``.

    Returns
    -------
    result : SamplingResult

    Raises
    ------
    ChainOverflowError
        When a chain leaves the range of floating point numbers.

    Warns
    -----
    ConvergenceWarning
        Where the draws are not to be relied on; it names each problem, its figure and its remedy.
    """
    try:
        return _run(plan, watch, origin, workers)
    except ChainOverflowError as error:
        raise _explained(error, plan) from None


def plan_and_run(
    posterior: BasePosterior,
    settings: Settings,
    seed: int,
    positions: Array | None = None,
    watch: Watch | None = None,
    origin: Origin | None = None,
    workers: Workers | None = None,
) -> SamplingResult:
    """Plan a run and run it; where steps that nobody chose overflow, begin again without them.

    The second plan takes HMC, which cannot overflow, and says in its table what did. Where the
    settings rule that out (minibatches, a bound on the gradient, another metric), it takes a
    quarter of the step, from around the mode, and may do so again. All chains begin again,
    whichever overflowed: only then do the draws of a chain depend on those that run beside it.

    Parameters and errors are those of :func:`~skbayes_sgld.inference.plan.plan` and :func:`run`.
    """
    fallback = None if origin is None else origin.fallback
    for _ in range(_FALLBACKS):
        planned = plan_of(posterior, settings, seed, positions, fallback)
        try:
            return _run(planned, watch, origin, workers)
        except ChainOverflowError as error:
            explained = error
            fallback = _fall_back(error, planned)
        if fallback is None:
            raise _explained(explained, planned) from None
        origin = None if origin is None else origin.begun_anew(fallback)
    return run(plan_of(posterior, settings, seed, positions, fallback), watch, origin, workers)


def _fall_back(error: ChainOverflowError, plan: Plan) -> Fallback | None:
    """Second plan after an overflow; None where the user chose sampler or step size."""
    settings, step_size = plan.settings, plan.run.step_size
    automatic = settings.sampler is None and settings.step_size is None
    if not automatic or plan.run.sampler.adjusted:
        return None
    why = f"chain {error.chain} overflowed at step {error.step}, by steps of {step_size:.3g}"
    if settings.takes_all_rows and settings.uses_curvature and settings.clip is None:
        return Fallback(why)
    return Fallback(why, _SHORTER * step_size)


def _explained(error: ChainOverflowError, plan: Plan) -> ChainOverflowError:
    """The error of a plan's run, with what it could do instead."""
    given = plan.choices["step_size"].given
    return explain_overflow(
        error, plan.posterior, plan.run, plan.start, plan.seed, plan.n_steps, given
    )


def _run(
    plan: Plan, watch: Watch | None, origin: Origin | None, workers: Workers | None
) -> SamplingResult:
    """Run the chains of a plan; an overflow tells where alone."""
    if watch is None and plan.settings.verbose:
        watch = partial(progress_bar, plan.settings.verbose)
    with nullcontext() if watch is None else watch(plan.n_steps, "sampling") as progress:
        chains, stopped_by = _draw(plan, origin, progress, workers)
    at = plan.n_burnin, plan.thin, plan.n_walkers
    values = constrained_draws(plan.posterior, chains.draws, *at)
    if stopped_by is not None:
        choices = plan.choices | {"stopped_by": stopped_by}
        plan = replace(plan, n_draws=values.shape[1], choices=choices)
    with np.errstate(all="ignore"):  # of chains that diverge the squares overflow
        result = _result(plan, chains, values)
    problems = _find_problems(result)
    if problems:
        warn_of(problems)
    notes = [] if problems else uncertain_sds(values, result.names)
    if notes:
        given = result.choices["step_size"].given
        remedy = "set step_size to 'auto'" if given else "take quantiles in its place"
        notes = [f"{note}; {remedy}" for note in notes]
        # a variance or a scale, whose logarithm is sampled, has such a tail wherever data are few
        told = [j for j, name in enumerate(result.names) if _is_of_interest(plan.posterior, name)]
        for note in uncertain_sds(values[..., told], [result.names[j] for j in told]):
            warn(f"{note[0].upper()}{note[1:]}; {remedy}.", ConvergenceWarning)
    return replace(result, problems=tuple(problems), notes=tuple(notes))


def _is_of_interest(posterior: BasePosterior, name: str) -> bool:
    """Whether a parameter is a coefficient, or one of a user's own that is sampled as it is."""
    if posterior.own:
        return name in posterior.param_names
    return name.startswith(("coef[", "intercept"))


def _draw(
    plan: Plan,
    origin: Origin | None,
    progress: Progress | None,
    workers: Workers | None,
) -> tuple[Chains, Choice | None]:
    """Chains of the plan, and what ended their run where it was not the number of draws alone."""
    settings = plan.settings
    if origin is not None and settings.in_parts:
        return run_long(plan, origin, progress, workers)
    try:
        chains = run_chains(
            plan.run,
            plan.start,
            n_draws=plan.n_each,
            n_burnin=plan.n_burnin,
            thin=plan.thin,
            seed=plan.seed,
            n_jobs=settings.n_jobs,
            progress=progress,
            workers=workers,
        )
    except ChainOverflowError as error:
        error.chain //= plan.n_walkers
        raise
    early = chains.draws.shape[1] < plan.n_each
    chains = chains.in_a_row(plan.n_walkers, plan.n_draws)
    if not early:
        return chains, None
    stopped_by = ended_by_callback(chains)
    check_drawn(plan, chains, stopped_by)
    return chains, stopped_by


def _result(plan: Plan, chains: Chains, values: Array) -> SamplingResult:
    posterior, theta, weights = plan.posterior, chains.draws, chains.weights
    names = list(posterior.constrained_names)
    coords = {name: list(each) for name, each in posterior.coords.items()}
    scaled = weights / weights.mean() if np.ptp(weights) > 0 else None
    return SamplingResult(
        PosteriorDraws(values, names, scaled, plan.choices, coords),
        plan,
        plan.mode,
        theta,
        mean_of_draws(values, scaled),
        plan.settings.tau,
        plan.n_hot,
        posterior.constrain(chains.state.sampler_state["theta"][:: plan.n_walkers]),
        float(chains.clipped.mean()),
        chains.acceptance,
        _noise_ratio(plan, chains),
        plan.bias if np.isfinite(plan.bias[0]) else _bias_of_draws(plan, theta),
        _undefined(posterior, chains),
    )


def _undefined(posterior: BasePosterior, chains: Chains) -> tuple[float, str]:
    """Share of the proposals whose density is not a number, and the parameters at one.

    A sampler that accepts every step knows the gradient alone, and may go where the density is 0:
    the share is then of the draws. No parameters are named where a linear model's, whose density is
    positive everywhere, are beyond the floating point numbers.
    """
    share, theta = chains.undefined
    if chains.acceptance is None and not posterior.full_support:
        flat = chains.draws.reshape(-1, chains.draws.shape[2])
        size = int(np.clip(_LARGEST // max(posterior.n_samples, flat.shape[1]), 1, _JUDGED))
        some = flat[:: -(-len(flat) // size)]
        with np.errstate(all="ignore"):
            bad = ~np.isfinite(posterior.log_density(some))
        share, theta = float(bad.mean()), some[bad.argmax()] if bad.any() else None
    if theta is None:
        return 0.0, ""
    with np.errstate(all="ignore"):
        values = posterior.constrain(theta[None])[0]
    if posterior.full_support and not np.isfinite(values).all():
        return share, ""
    listed = zip(posterior.constrained_names[:_SHOWN], values[:_SHOWN], strict=True)
    return share, ", ".join(f"{name}={value:.3g}" for name, value in listed)


def _noise_ratio(plan: Plan, chains: Chains) -> float:
    """Alpha: variance of the minibatches' noise over that of the injected noise.

    It is measured around the mode, or around the chains' mean where the mode was not looked for.
    """
    run, tau = plan.run, plan.settings.tau
    if run.batch_size is None:
        return 0.0
    level, center = plan.noise, plan.center
    if center is None:
        flat = chains.draws.reshape(-1, chains.draws.shape[2])
        center = Mode(flat.mean(axis=0), Diagonal(np.maximum(flat.var(axis=0), 1e-300) / tau))
    if level is None:
        gradient, metric = plan.choices["gradient"].value, run.dynamics.preconditioner
        level = measure_noise(plan.posterior, gradient, center, tau, 0, metric)
    # the mean step over the draws, each weighted by its step size as the draws are
    eta = float(np.average(chains.weights, weights=chains.weights))
    return level.inflation(eta, run.batch_size, tau) * run.sampler.noise_gain


def _bias_of_draws(plan: Plan, theta: Array) -> tuple[float, float]:
    """Relative error of the draws' sds, by gradients at the draws, and the part chance explains.

    It is that of the step size and of the minibatches' noise together. Under every density
    ``E[-(theta_j - c) d log p / d theta_j] = tau`` (integration by parts); a chain whose steps are
    too long exceeds it by as much as its variances do. Chains that have not mixed show nothing.
    """
    posterior, tau, (n_chains, n_draws, P) = plan.posterior, plan.settings.tau, theta.shape
    n_batches = max(1, _BATCHES // n_chains)
    affordable = int(_WORK / (max(posterior.n_samples, 1) * P * n_chains * n_batches))
    each = min(max(affordable, 2), n_draws // n_batches)
    if plan.run.sampler.adjusted or each < 2:
        return 0.0, 0.0
    kept = np.linspace(0, n_draws - 1, each * n_batches).astype(int)
    some = theta[:, kept]
    # a few draws at a time, whose temporaries stay in cache
    size = max(1, _NUMBERS // max(posterior.n_samples, P))
    flat = some.reshape(-1, P)
    parts = [flat[a : a + size] for a in range(0, len(flat), size)]
    bound = cache(posterior.bind_grad)
    gradient = np.concatenate([bound(len(part))(part) for part in parts]).reshape(some.shape)
    virial = -(some - some.mean(axis=(0, 1))) * gradient / tau
    batches = virial.reshape(n_chains * n_batches, each, P).mean(axis=1)
    quantile = student_t.isf(_CHANCE / P, len(batches) - 1)
    doubts = quantile * batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    errors, doubts = sd_error(batches.mean(axis=0) - 1.0, doubts)
    worst = int(np.argmax(np.abs(errors) - doubts))
    return abs(float(errors[worst])), float(doubts[worst])


def _find_problems(result: SamplingResult) -> list[str]:
    """Reasons not to rely on the draws, each with its figure and its remedy."""
    found, draws, choices = [], result.draws, result.draws.choices
    apart = convergence_problems(draws.values, draws.names, result.plan.n_walkers)
    if apart:
        found.append(f"{'; '.join(apart)}; {_remedy(apart, result)}")
    step_size = choices["step_size"]
    noisy = noise_problem(result.noise_ratio, choices["gradient"].given)
    if result.mode is not None or not apart:  # draws of chains that never met cannot tell
        found += bias_problem(*result.bias, step_size.value, step_size.given, bool(noisy))
    found += noisy
    n_hot, n_burnin = result.n_hot, choices["n_burnin"].value
    if n_burnin < n_hot:
        found.append(
            f"the temperature settles at step {n_hot} and n_burnin={n_burnin}: the draws before "
            "that step are of a hotter distribution; set n_burnin='auto', or to "
            f"{n_hot} at the least"
        )
    found += undefined_problem(*result.undefined, result.acceptance is None)
    found += own_problems(result)
    found += cap_problem(choices.get("stopped_by"))
    return found + clip_problem(result.clipped, choices["clip"].value)


def _remedy(apart: list[str], result: SamplingResult) -> str:
    """Remedy for chains that do not agree, or whose draws are worth too little."""
    choices = result.choices
    stopped_by = choices.get("stopped_by")
    if stopped_by is not None and stopped_by.value in EARLY_ENDS:
        return EARLY_ENDS[stopped_by.value]
    given = [name for name in ("step_size", "preconditioner") if choices[name].given]
    if any(STILL in problem for problem in apart) and not result.plan.settings.chooses_start:
        given = ["init", *given]
    few = any(TOO_FEW in problem for problem in apart)
    slow = given and least_ess(result.values)[0] < _FAIR * result.values[..., 0].size
    if few and not slow:
        return f"set n_draws={enough_draws(result.values)}{result.firmer_priors()}"
    remedies = [f"set {' and '.join(given)} to 'auto'"] if given else []
    if choices["schedule"].value.decay_power != 0.0:  # steps may have become too small to move
        remedies.append("set schedule='constant'")
    if remedies:
        return ", and ".join(remedies)
    if any("do not agree" in problem for problem in apart):
        if isinstance(result.plan.run.sampler, ParallelTempering):
            return (
                "raise the sampler's max_temperature and n_temperatures, or sample each mode alone"
            )
        modes = "raise n_draws; or, where there are several modes, set sampler='parallel_tempering'"
        return modes + result.firmer_priors()
    return "raise n_draws" + result.firmer_priors()


def noise_problem(noise_ratio: float, given: bool) -> list[str]:
    """Sentence on minibatch noise, where it is visible."""
    wider = float(np.sqrt(1.0 + noise_ratio) - 1.0)
    if wider <= THRESHOLDS.told_inflation:
        return []
    remedy = "raise batch_size" if not given else "set gradient='auto' and batch_size='auto'"
    return [
        f"the minibatches' noise is {noise_ratio:.3g} times the injected noise: standard "
        f"deviations are up to {_share(wider)} too wide; {remedy}, or lower step_size"
    ]


def bias_problem(
    bias: float, doubt: float, step_size: float, given: bool, noisy: bool = False
) -> list[str]:
    """Sentence on the bias of the step size, ``noisy`` minibatches with it, where it is visible."""
    if bias - doubt <= THRESHOLDS.told_inflation:
        return []
    cause = f"step_size={step_size:.3g}" + ", with the minibatches' noise," * noisy
    remedy = "set step_size='auto', or lower it" if given else "set a lower step_size"
    return [f"{cause} biases means or standard deviations by {_share(bias)}; {remedy}"]


def _share(error: float) -> str:
    return f"{error:.0%}" if error < _TOLD_BIAS else "any amount"


def clip_problem(clipped: float, clip: object) -> list[str]:
    """Sentence on clipping, where it was frequent."""
    if clipped <= THRESHOLDS.told_clipped:
        return []
    return [
        f"the gradient was clipped on {clipped:.1%} of the steps, which biases the posterior; "
        f"raise the threshold of clip={clip!r} or set it to None"
    ]


def undefined_problem(share: float, where: str, of_draws: bool) -> list[str]:
    """Sentence on proposals whose log density is not a number, if there were many, or on draws."""
    if share <= (0.0 if of_draws else THRESHOLDS.told_undefined):
        return []
    if of_draws:
        return [
            f"the log density is -inf or not a number at {share:.1%} of the draws, as at {where}: "
            "this sampler follows the gradient alone; give the range of a parameter "
            "(transforms={'s': 'positive'}), or set sampler='hmc', which refuses such points"
        ]
    if not where:
        return [
            f"{share:.1%} of the proposals left the range of floating point numbers, and were "
            "refused: the posterior is far wider in places than the steps suit, as it is where "
            "coefficients are as many as rows and nothing but a vague prior tells the noise; give "
            "the noise a prior with more weight (noise_prior='half_cauchy'), or the coefficients "
            "one of a smaller scale"
        ]
    return [
        f"the log density, or its gradient, is not a number (NaN) at {share:.1%} of the proposals, "
        f"as at {where}: they were refused, as if the density were 0; return -inf where it is, "
        "give the range of a parameter (transforms={'s': 'positive'}), or mend the function"
    ]


def cap_problem(stopped_by: Choice | None) -> list[str]:
    """Sentence on draws that are fewer than was asked for, in spite of their number."""
    if stopped_by is None or stopped_by.value != "cap":
        return []
    return [f"{stopped_by.why}; raise n_draws, or lower target_ess"]
