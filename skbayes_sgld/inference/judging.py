"""Figures of a run's draws: minibatch noise, bias of the step size, and problems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import t as student_t
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld._timings import timings_of_fit
from skbayes_sgld._warnings import warn
from skbayes_sgld.diagnostics import mean_of_draws, say_uncertain, uncertain_sds
from skbayes_sgld.inference.diagnosis import describe_point
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.inference.problems import find_problems
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.sampling.run import Chains
from skbayes_sgld.sampling.schedules import Constant
from skbayes_sgld.sampling.tuning.noise import measure_noise
from skbayes_sgld.sampling.tuning.pilots import sd_error
from skbayes_sgld.sampling.tuning.step_bias import step_bias


def unjudged(plan: Plan, chains: Chains, values: Array) -> SamplingResult:
    """Result of the draws, whose reported parameters are ``values``, without their problems."""
    reported, weights = plan.posterior.reported, chains.weights
    scaled = weights / weights.mean() if np.ptp(weights) > 0 else None
    return SamplingResult(
        values,
        list(reported.names),
        scaled,
        plan.choices,
        {name: list(each) for name, each in reported.coords.items()},
        reported.variables,
        plan=plan,
        theta=chains.draws,
        mean=mean_of_draws(values, scaled),
        positions=reported.values(chains.positions[:: plan.n_walkers]),
        clipped=float(chains.clipped.mean()),
        acceptance=chains.acceptance,
        timings=timings_of_fit(),
    )


def judge(plan: Plan, chains: Chains, values: Array) -> SamplingResult:
    """Result with the figures of its draws, their problems and notes."""
    posterior: Any = plan.posterior
    noise_ratio, kick = _noise(plan, chains)
    result = replace(
        unjudged(plan, chains, values),
        noise_ratio=noise_ratio,
        kick=kick,
        bias=_bias(plan, chains),
        undefined=_undefined(posterior, chains),
        diverged=chains.diverged,
    )
    if problems := find_problems(result):
        return replace(result, problems=tuple(problems))
    uncertain = uncertain_sds(values, result.names)
    if not uncertain:
        return result
    is_given = result.choices["step_size"].given
    remedy = "set step_size to 'auto'" if is_given else "take quantiles in its place"
    # with few data, a variance or scale whose logarithm is sampled always has such a tail
    sampled = posterior.param_names
    if not posterior.facts.user_defined:
        sampled = [n for n in uncertain if n.startswith(("coef[", "intercept"))]
    if shown := {n: sd for n, sd in uncertain.items() if n in sampled}:
        note = say_uncertain(shown)
        warn(f"{note[0].upper()}{note[1:]}; {remedy}.", ConvergenceWarning)
    return replace(result, notes=(f"{say_uncertain(uncertain)}; {remedy}",))


def _undefined(posterior: BasePosterior, chains: Chains) -> tuple[float, str]:
    """Share of the proposals whose density is not a number, and the parameters at one of them.

    A sampler that accepts every step uses only the gradient, and may reach points of density 0: the
    share is then that of the draws. For a linear model, whose density is positive everywhere, such
    a point is an overflow, and no parameters are named.
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


def _noise(plan: Plan, chains: Chains) -> tuple[float, float]:
    """Variance of minibatch noise over that of the injected noise, and the largest kick of a row.

    They are measured around the mode, or around the chains' mean if no mode was needed.
    """
    run, tau = plan.run, plan.settings.tau
    if run.batch_size is None:
        return 0.0, 0.0
    level = plan.noise
    if level is None:
        gradient = plan.choices["gradient"].value
        metric = None if plan.settings.uses_curvature else run.dynamics.metric
        center = plan.center_of(chains.draws)
        sampled = run.dynamics.gradient.posterior
        if sampled is not plan.posterior:  # the known expansion is that of all rows
            center = center._replace(expansion=None)
        level = measure_noise(sampled, gradient, center, tau, 0, metric)
    # mean step size over the draws, which are weighted by their step sizes
    eta = float(np.average(chains.weights, weights=chains.weights))
    ratio = level.inflation(eta, run.batch_size, tau) * run.sampler.noise_gain
    return ratio, level.kick_of(eta, run.batch_size, tau)


def _bias(plan: Plan, chains: Chains) -> tuple[float, float]:
    """Largest bias of the step size, with twice its standard error."""
    bias = plan.bias
    if plan.mode is not None and not isinstance(plan.settings.schedule, Constant):
        uses_curvature = plan.settings.uses_curvature
        bias = step_bias(plan.run, plan.mode, chains.weights, uses_curvature, plan.seed)
    if not np.isfinite(bias[0]):
        return (0.0, 0.0) if plan.run.sampler.adjusted else _bias_of_draws(plan, chains)
    if plan.run.dynamics.posterior.n_samples < plan.posterior.n_samples:
        # chains of rows that stand for all may have been where these are wrong
        found = _bias_of_draws(plan, chains, plan.run.dynamics.posterior)
        return found if found[0] - found[1] > bias[0] else bias
    return bias


def _bias_of_draws(
    plan: Plan, chains: Chains, followed: BasePosterior | None = None
) -> tuple[float, float]:
    """Largest relative error of the draws' sds, and the part that chance explains.

    The error is that of a posterior that the chains have ``followed`` in place of the plan's, if
    it is given: the difference of both gradients has little noise.

    It includes the effects of step size and minibatch noise. Under every density
    ``E[-(theta_j - c) d log p / d theta_j] = tau`` (integration by parts). For steps that are too
    long, this mean and the variances are too large by the same factor. The error of chains that
    have not mixed is not seen.
    """
    theta, weights = chains.draws, chains.weights
    posterior, tau, (n_chains, n_draws, P) = plan.posterior, plan.settings.tau, theta.shape
    n_batches = max(1, 20 // n_chains)  # for the Monte Carlo error by batch means
    # largest number of multiplications for gradients at the draws
    affordable = int(2e8 / (max(posterior.n_samples, 1) * P * n_chains * n_batches))
    each = min(max(affordable, 2), n_draws // n_batches, n_draws if followed is None else 10)
    if each < 2:
        return 0.0, 0.0
    # a random draw from each of equal parts of the total weight: means over them are weighted, and
    # do not meet a cycle of the step sizes always at the same phase
    parts = np.arange(each * n_batches) + np.random.default_rng(plan.seed).random(each * n_batches)
    edges = np.cumsum(weights) / weights.sum()
    positions = np.searchsorted(edges[:-1], parts / len(parts), side="right")
    some = theta[:, positions]
    # a few draws at a time, so that temporaries stay in cache
    size = max(1, 2**16 // max(posterior.n_samples, P))
    flat = some.reshape(-1, P)
    pieces = [flat[a : a + size] for a in range(0, len(flat), size)]
    # the difference of two gradients is precise enough in single precision if the run's is
    rounds = followed is not None and plan.run.dynamics.rounded
    posterior = posterior.rounded() if rounds else posterior
    grad = posterior.bind_grad(None)  # a product for each piece
    gradient = np.concatenate([grad(piece) for piece in pieces]).reshape(some.shape)
    if followed is not None:
        gradient -= followed.bind_grad(None)(flat).reshape(some.shape)
    virial = -(some - some.mean(axis=(0, 1))) * gradient / tau + (followed is not None)
    batches = virial.reshape(n_chains * n_batches, each, P).mean(axis=1)
    # one false alarm in a thousand fits over all parameters
    quantile = student_t.isf(1e-3 / P, len(batches) - 1)
    doubts = quantile * batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    errors, doubts = sd_error(batches.mean(axis=0) - 1.0, doubts)
    worst = int(np.argmax(np.abs(errors) - doubts))
    return abs(float(errors[worst])), float(doubts[worst])
