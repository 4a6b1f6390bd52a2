"""Reasons not to rely on the draws, each with its figure and its remedy."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

import numpy as np

from skbayes_sgld._doors import Door
from skbayes_sgld.diagnostics import convergence_problems, enough_draws, least_ess, needed_ess
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.diagnosis import (
    EARLY_ENDS,
    cap_problem,
    firmer_priors,
    rows_of_own_noise,
)
from skbayes_sgld.inference.mode_problems import TO_CROSS, mode_problems
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.likelihoods import OwnParameter
from skbayes_sgld.sampling.base import Schedule
from skbayes_sgld.sampling.samplers import ParallelTempering
from skbayes_sgld.sampling.schedules import Constant
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

_LEAST_BFMI, _MOST_DIVERGED = 0.2, 1e-4

OF_OWN_MODELS = Door("skbayes_sgld.own_models.problems", "find_problems")


def find_problems(result: SamplingResult) -> list[str]:
    """Reasons not to rely on the draws, each with its figure and its remedy."""
    problems, choices = [], result.choices
    if result.plan.still:  # the remedies of its other problems would not do
        return [still_problem(result)]
    apart = _apart(result)
    if apart:
        problems.append(f"{'; '.join(apart.values())}; {_remedy(set(apart), result)}")
    step_size = choices["step_size"]
    noisy = noise_problem(result.noise_ratio, choices["gradient"].given)
    # chains that have not converged do not show the bias
    if result.mode is not None or not apart:
        remedy, schedule = remedy_of_bias(choices), choices["schedule"].value
        problems += bias_problem(*result.bias, step_size.value, remedy, bool(noisy), schedule)
    problems += noisy or kick_problem(result.kick, choices["batch_size"])
    n_hot, n_burnin = result.plan.n_hot, choices["n_burnin"].value
    if n_burnin < n_hot:
        problems.append(
            f"the temperature settles at step {n_hot} and n_burnin={n_burnin}: the draws before "
            "that step are of a hotter distribution; set n_burnin='auto', or to "
            f"{n_hot} at the least"
        )
    own, of_draws = result.plan.posterior.own_parameters, result.acceptance is None
    problems += undefined_problem(*result.undefined, of_draws, own)
    user_defined = result.plan.posterior.facts.user_defined
    # other models need no flat copy of their draws
    if (result.plan.modes or user_defined) and np.isfinite(result.theta).all():
        flat = result.theta.reshape(-1, result.theta.shape[2])
        if result.plan.modes:
            problems += mode_problems(result, flat)
        if user_defined:
            problems += OF_OWN_MODELS.open()(result.plan, flat)
    problems += energy_problem(result)
    problems += cap_problem(choices.get("stopped_by"))
    return problems + clip_problem(result.clipped, choices["clip"].value)


def still_problem(result: SamplingResult) -> str:
    """Sentence on chains that hardly move."""
    remedy = rows_of_own_noise(result.names)
    if result.plan.posterior.facts.user_defined:
        remedy = (
            "write the model in parameters whose sds differ less from place to place, such as the "
            "logarithm of a scale, and z with location + scale * z"
        )
    remedy = remedy or "leave out rows far out, or give priors of a smaller scale"
    return f"chains hardly move, and say nothing of the posterior ({result.plan.still}); {remedy}"


def _apart(result: SamplingResult) -> dict[str, str]:
    """Convergence problems; none of enough draws from the posterior itself."""
    sampler: Any = result.plan.run.sampler
    n_chains, n_draws, _ = result.values.shape
    if sampler.independent and n_chains * n_draws >= 2 * needed_ess(n_chains):
        return {}
    return convergence_problems(result.values, result.names, result.plan.n_walkers)


def _remedy(apart: set[str], result: SamplingResult) -> str:
    """Remedy for chains that do not agree, or have too small an effective sample size.

    ``apart`` has the problems by the names of :func:`convergence_problems`.
    """
    choices = result.choices
    stopped_by = choices.get("stopped_by")
    if stopped_by is not None and stopped_by.value in EARLY_ENDS:
        return EARLY_ENDS[stopped_by.value]
    firmer = firmer_priors(result.plan.posterior.facts.total_weight, result.names)
    settings = [name for name in ("step_size", "preconditioner") if choices[name].given]
    if "still" in apart and result.plan.settings.init is not AUTO:
        settings = ["init", *settings]
    # fewer than a fifth of the draws are effective because of the settings
    slow = settings and least_ess(result.values)[0] < 0.2 * result.values[..., 0].size
    enough = enough_draws(result.values)
    if "n_draws" in apart and not slow:
        return f"set n_draws={enough}{firmer}"
    remedies = [f"set {' and '.join(settings)} to 'auto'"] if settings else []
    if choices["schedule"].value.decay_power != 0.0:  # steps may have become too short
        remedies.append("set schedule='constant'")
    if remedies:
        return ", and ".join(remedies)
    if apart & {"r_hat", "walk"}:
        if isinstance(result.plan.run.sampler, ParallelTempering):
            return TO_CROSS
        modes = "raise n_draws; or, where there are several modes, set sampler='parallel_tempering'"
        return modes + firmer
    known = "ess" in apart and enough > result.values.shape[1]
    return (f"set n_draws={enough}" if known else "raise n_draws") + firmer


def noise_problem(noise_ratio: float, is_given: bool) -> list[str]:
    """Sentence on visible minibatch noise."""
    wider = float(np.sqrt(1.0 + noise_ratio) - 1.0)
    if wider <= THRESHOLDS.warn_inflation:
        return []
    remedy = "raise batch_size" if not is_given else "set gradient='auto' and batch_size='auto'"
    return [
        f"the minibatches' noise is {noise_ratio:.3g} times the injected noise: standard "
        f"deviations are up to {_share(wider)} too wide; {remedy}, or lower step_size"
    ]


def kick_problem(kick: float, batch_size: Choice) -> list[str]:
    """Sentence on single rows of a batch that move chains far."""
    if kick <= 10.0 * THRESHOLDS.kick:
        return []
    enough = int(np.ceil(batch_size.value * kick / THRESHOLDS.kick))
    remedy = f"set batch_size={enough}" + " or 'auto'" * batch_size.given
    return [
        f"a single row of a batch moves chains by up to {kick:.1g} standard deviations near the "
        "mode, and by more further out, so that a few draws may be far from all others; "
        f"{remedy}, or lower step_size"
    ]


def remedy_of_bias(choices: Mapping[str, Choice]) -> str:
    """Remedy for a bias of the step size: given settings that "auto" would choose differently."""
    if choices["step_size"].given:
        return "set step_size='auto', or lower it"
    names = "sampler", "preconditioner", "gradient", "batch_size"
    given = [name for name in names if choices[name].given]
    remedies = [f"set {' and '.join(given)} to 'auto'"] if given else []
    remedies += [
        f"set {setting}"
        for name, setting in (("clip", "clip=None"), ("schedule", "schedule='constant'"))
        if choices[name].given
    ]
    return ", and ".join(remedies) or "set sampler='hmc'"


def bias_problem(
    bias: float,
    doubt: float,
    step_size: float,
    remedy: str,
    noisy: bool = False,
    schedule: Schedule | None = None,
) -> list[str]:
    """Sentence on a visible bias of the step size, together with ``noisy`` minibatches."""
    if bias - doubt <= THRESHOLDS.warn_inflation:
        return []
    cause = f"steps of size {step_size:.3g}"
    if not isinstance(schedule, (Constant, NoneType)):
        cause += f" times schedule={schedule!r}"
    cause += ", with the minibatches' noise," * noisy
    return [f"{cause} bias means or standard deviations by {_share(bias)}; {remedy}"]


def _share(error: float) -> str:
    return f"{error:.0%}" if error < 100.0 else "any amount"


def clip_problem(clipped: float, clip: object) -> list[str]:
    """Sentence on frequent clipping."""
    if clipped <= THRESHOLDS.warn_clipped:
        return []
    return [
        f"the gradient was clipped on {clipped:.1%} of the steps, which biases the posterior; "
        f"raise the threshold of clip={clip!r} or set it to None"
    ]


def undefined_problem(
    share: float, where: str, of_draws: bool, own: tuple[OwnParameter, ...] = ()
) -> list[str]:
    """Sentence on many proposals, or any draws, without a finite log density.

    ``own`` has the own parameters of the likelihood, the first of which the advice names.
    """
    if share <= (0.0 if of_draws else 1e-3):
        return []
    if of_draws:
        return [
            f"the log density is -inf or not a number at {share:.1%} of the draws, as at {where}: "
            "this sampler follows the gradient alone; give the range of a parameter "
            "(transforms={'s': 'positive'}), or set sampler='hmc', which refuses such points"
        ]
    if not where:
        tells, firmer = "", "the coefficients a prior of a smaller scale"
        if own:
            name = "noise" if own[0].is_noise else own[0].name
            tells = f" and nothing but a vague prior tells the {name}"
            firmer = f"the {name} a prior with more weight ({own[0].argument}='half_cauchy'), or "
            firmer += "the coefficients one of a smaller scale"
        return [
            f"{share:.1%} of the proposals left the range of floating point numbers, and were "
            "refused: the posterior is far wider in places than the steps suit, as it is where "
            f"coefficients are as many as rows{tells}; give {firmer}"
        ]
    return [
        f"the log density, or its gradient, is not a number (NaN) at {share:.1%} of the proposals, "
        f"as at {where}: they were refused, as if the density were 0; return -inf where it is, "
        "give the range of a parameter (transforms={'s': 'positive'}), or mend the function"
    ]


def energy_problem(result: SamplingResult) -> list[str]:
    """Sentence on a funnel, whose narrow part makes trajectories diverge."""
    plan, diverged = result.plan, result.diverged
    # swaps of temperatures and jumps between modes change the energy too
    swaps = isinstance(plan.run.sampler, ParallelTempering) or bool(plan.modes)
    if swaps or diverged is None or diverged <= _MOST_DIVERGED:
        return []
    bfmi = result.energy.bfmi
    if not bfmi < _LEAST_BFMI:
        return []
    if plan.posterior.facts.user_defined:
        remedy = (
            "write parameters whose scale is a parameter as location + scale * z, with z standard "
            "normal, and sample z"
        )
    else:
        remedy = (
            "set parameterization='auto'"
            if plan.choices["parameterization"].given
            else "give the noise, or the scale that is learned, a prior with more weight"
        )
    return [
        f"{diverged:.1%} of the trajectories diverged, and the energy's fraction of missing "
        f"information (E-BFMI) is {bfmi:.2f}, below {_LEAST_BFMI:g}: chains miss the narrow "
        f"part of a funnel; {remedy}"
    ]
