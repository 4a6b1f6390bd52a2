"""Adaptation of the Metropolis-adjusted chain: metric, step size and spacing, on a short pilot.

Also what its trajectories follow, and how many of them can be afforded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from skbayes_sgld._linalg import MAX_DENSE, inverse_root, one_blas_thread
from skbayes_sgld._random import ChainStreams, start_normals
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.whitening import CollapsedPosterior, WhitenedPosterior
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.gradients import Full
from skbayes_sgld.sampling.loop import draw_normals, run_chains
from skbayes_sgld.sampling.metric import Dense
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import Run, RunState
from skbayes_sgld.sampling.samplers.collapsed import CollapsedHMC
from skbayes_sgld.sampling.samplers.hmc import HMC, along_rows
from skbayes_sgld.sampling.samplers.sgld import SGLD
from skbayes_sgld.sampling.tuning.mode import Mode

FIRST_CHAIN = 2**31  # chain numbers from here on are the pilots' own

_VERY_LARGE = 1e9  # multiplications of a trajectory: very much work
_MIN_CHAINS = 16
_LEARNING = 5  # trajectories at least of a round that learns its step, but of the last one
_APART = 2  # trajectories from place to place of a pilot's chain: of two in a row one may be a stay
_SOFT = 0.75  # of the rows' softness, which leapfrog steps may take
_NEARER = 0.1  # of the way from the mode to a start
_CHANCE = 5.0  # nats, plus one a parameter: largest fall of the log density within a posterior
_TYPICAL = 3.0  # sds of the fall of normal draws, beyond its mean, up to which none is too far out
_MANY = 300  # parameters: few draws then tell little of a covariance


@dataclass
class Adapted:
    """Findings of the pilot: metric, step size and spacing.

    Attributes
    ----------
    mode : Mode
        Centre and metric of the posterior as the pilot's draws have it.
    step_size : float
    acceptance : float
    autocorrelation : float
        Integrated autocorrelation time of the slowest direction, or of its distance from the mean,
        in steps, less what chance adds to the largest of many.
    ends : ndarray of shape (n_ends, n_params)
        Positions of the pilot's chains in its last round, the latest first; none where its chains
        are few, or have made too few trajectories to forget their start.
    n_settling : int
        Trajectories between the start and the earliest of them.
    lost : float
        Share of the last round's trajectories whose probability of acceptance was 0.
    """

    mode: Mode
    step_size: float
    acceptance: float
    autocorrelation: float
    ends: Array
    n_settling: int
    lost: float = 0.0


def adapt(run: Run, mode: Mode, seed: int) -> Adapted:
    """Adapt a run that accepts and rejects, from the mode and its curvature.

    Every round of the pilot goes on where the last one stopped. The metric becomes the draws'
    covariance, shrunk while the draws are few to that of the curvature times the draws' mean
    variance in it (Ledoit & Wolf 2004, eq. 1): in many dimensions the posterior is wider than its
    mode tells. The step size is averaged towards the sampler's target acceptance.
    """
    P, tau = mode.theta.size, float(run.dynamics.temperature)
    n_chains, rounds, step_size = _pilot_of(run, mode)
    chains = range(FIRST_CHAIN, FIRST_CHAIN + n_chains)
    normals = start_normals(seed, chains, P)
    position = mode.theta + np.sqrt(tau) * mode.metric.sqrt(normals)
    position = move_into_posterior(run, position, mode, seed, FIRST_CHAIN)
    streams = [ChainStreams(seed, c) for c in chains]
    center, history = mode, np.empty((n_chains, 0, P))
    for number, n_steps in enumerate(rounds):
        pilot = replace(run, dynamics=recentred(run.dynamics, center))
        last = number == len(rounds) - 1
        learns = n_steps >= _LEARNING or (last and n_steps > 1)
        draws, step_size, acceptance, lost = _run_pilot(
            pilot, position, streams, step_size, n_steps, learns
        )
        position = draws[:, -1]
        if number > 0 and not last:  # the first round forgets the start
            history = np.concatenate([history, draws], axis=1)
            recent, before = history[:, history.shape[1] // 3 :], center.whitened
            center = _metric(recent, mode, tau, run.dynamics.gradient.posterior)
            if before is not None and center.whitened is not None:
                step_size *= center.whitened.softness / before.softness
    if not learns and acceptance < 0.4:
        step_size *= 0.7
    step_size = run.sampler.whole_steps(step_size)
    # a chain that has stood still may stay there; neighbouring draws may be one place twice
    mobile = draws[(draws != position[:, None]).any(axis=(1, 2))]
    has_ends = n_chains >= _MIN_CHAINS and learns and mode.whitened is None
    by_chain = mobile[:, ::-_APART] if has_ends else draws[:, :0]
    ends = by_chain.swapaxes(0, 1).reshape(-1, P)
    n_settling = sum(rounds) - (n_steps - 1) // _APART * _APART
    time = _autocorrelation(np.concatenate([history, draws], axis=1), center)
    return Adapted(center, step_size, acceptance, time, ends, n_settling, lost)


def _pilot_of(run: Run, mode: Mode) -> tuple[int, tuple[int, ...], float]:
    """Number of chains, trajectories of each round, and the first step size."""
    n, step_size, rows = max(run.n_samples, 1), 0.5 * run.sampler.largest_step, mode.whitened
    if rows is None:
        little = n * mode.theta.size < 1_000_000  # beyond, the pilot runs few chains
        n_chains = int(np.clip(24_000 // n, _MIN_CHAINS if little else 4, 32))
        # a metric of a third of the right width is too narrow by 14 to 19 % after 4, 8 and 8
        # trajectories, by 8 to 10 % after 4, 4, 6 and 8, and by 1 to 3 % after 4, 8, 8 and 10,
        # which are a third more work
        return n_chains, (4, 4, 6, 8) if little else (15, 15, 20), step_size
    if rows.collapsed:  # the softness over the fourth root of the rows: 0.85 is accepted
        return rows.n_fewest, (1,), 2.4 * rows.softness * n**-0.25
    step_size = min(step_size, _SOFT * rows.softness)
    work = rows.work_of(run.sampler.gradients(step_size))
    if work > _VERY_LARGE:
        return rows.n_fewest, (1, 1, 1), step_size
    # a product of whitened rows with few positions costs nearly as much; of many chains the
    # metric has one number to learn
    return rows.n_together, (1, 1, 3) if work > 1e8 else (4, 4, 6), step_size


def recentred(dynamics: Dynamics, mode: Mode) -> Dynamics:
    """Dynamics in the metric of a mode, about it."""
    # a clip bounds the gradient in theta, which trajectories along whitened rows do not take
    whitened = mode.whitened if dynamics.clip is None else None
    return replace(dynamics, metric=mode.metric, center=mode.theta, whitened=whitened)


def _run_pilot(
    run: Run,
    position: Array,
    streams: list[ChainStreams],
    step_size: float,
    n_steps: int,
    learns: bool,
) -> tuple[Array, float, float, float]:
    """Run chains by dual averaging of the step size (Hoffman & Gelman 2014, eq. 6), if it learns.

    Their constants: gamma = 0.05, t0 = 10, kappa = 0.75.

    Returns
    -------
    draws : ndarray of shape (C, n_steps, P)
    step_size : float
        Averaged over the later steps.
    acceptance : float
    lost : float
        Share of the trajectories whose probability of acceptance was 0.
    """
    sampler = run.sampler
    dynamics = run.dynamics.in_groups_of(None)
    n_chains, P = position.shape
    state = sampler.init(position)
    draws = np.empty((n_chains, n_steps, P))
    center, log_step = np.log(step_size), np.log(step_size)
    error = average = accepted = lost = 0.0
    with one_blas_thread(), np.errstate(all="ignore"):
        normals = draw_normals(run, streams, n_steps, P)
        for t in range(n_steps):
            eta = np.exp(log_step)
            own = normals[t : t + 1]
            noise = sampler.prepare(own, own[0], np.array([eta]), dynamics)
            sampler.step(state, eta, noise[0], None, dynamics)
            draws[:, t] = state["theta"]
            total = float(state["accepted"].mean())
            lost += float(np.mean(state["lost"] > 0))
            rate = 1.0 / (t + 1.0 + 10.0)
            error += rate * (sampler.target_acceptance - (total - accepted) - error)
            accepted = total
            if not learns:
                error = 0.0
            log_step = center - np.sqrt(t + 1.0) / 0.05 * error
            log_step = min(log_step, np.log(sampler.largest_step))
            weight = (t + 1.0) ** -0.75
            average = weight * log_step + (1.0 - weight) * average
    return draws, float(np.exp(average)), accepted / n_steps, lost / n_steps


def move_into_posterior(
    run: Run, position: Array, mode: Mode, seed: int, first_chain: int = 0
) -> Array:
    """Starting points ``(C, P)``: those too far out are moved by steps that are never rejected.

    A chain that accepts or rejects may stand still for long where it starts too far out
    (Christensen, Roberts & Rosenthal 2005); one that does not reject never does. Where the density
    is as high as within the posterior chains stay, and where free steps are not safe, unless no
    trajectory would be accepted there. A chain that they lead away, far off or to where the density
    is lower, starts nearer to the mode instead.
    """
    if run.dynamics.gradient.posterior.facts.steep:
        return nearer_to_mode(run, position, mode, steep=True)
    if mode.whitened is not None and mode.whitened.collapsed:
        # its first trajectories are not rejected, and soon at the typical distance from there
        return mode.theta + _NEARER * (position - mode.theta)
    if mode.whitened is not None:
        return _move_along_rows(mode.whitened, position, mode, run, seed ^ 0x5E771E, first_chain)
    before, P = _values(run, position), position.shape[1]
    low = np.flatnonzero(~(before >= _values(run, mode.theta[None]) - _typical_fall(run, P)))
    if not len(low):
        return position
    free = replace(run, sampler=SGLD("leimkuhler_matthews"), step_size=0.2)
    # random numbers other than the run's own
    streams = [ChainStreams(seed ^ 0x5E771E, first_chain + int(c)) for c in low]
    state = RunState(0, free.initial_state(position[low]), streams)
    try:
        ends = run_chains(free, state, n_draws=1, thin=20).draws[:, -1]
    except ChainOverflowError:
        return nearer_to_mode(run, position, mode, steep=True)
    with np.errstate(invalid="ignore"):  # of a density that is 0 at both ends
        gain = _values(run, ends) - before[low]
    away = np.abs((ends - mode.theta) / mode.metric.marginal_sd).max(axis=1)
    holds = (away < 30.0) & (gain > -run.dynamics.temperature * (_CHANCE + P))
    nearer = mode.theta + _NEARER * (position[low] - mode.theta)
    landing = position.copy()
    landing[low] = np.where(holds[:, None], ends, nearer)
    return landing


def leave_dead_ends(run: Run, position: Array, mode: Mode, seed: int) -> Array:
    """Positions ``(C, P)`` of which those that no step of the run can leave are nearer to the mode.

    Where a density falls off much more steeply than at the mode, every trajectory from a start may
    have an acceptance probability of 0.
    """
    for number in range(10):
        try:
            chains = run_chains(run, position, n_draws=1, seed=(seed ^ 0xDEAD) + number)
        except ChainOverflowError:
            break
        lost = chains.state.sampler_state.get("lost")
        if lost is None or not lost.any():
            break
        nearer = 0.5 * (position + mode.theta)
        position = np.where(np.asarray(lost)[:, None] > 0, nearer, position)
    return position


def _values(run: Run, theta: Array) -> Array:
    """Log density at ``theta (C, P)``, chain by chain, so that none depends on the others."""
    with one_blas_thread(), np.errstate(all="ignore"):
        return run.dynamics.posterior.log_density(theta)


def _typical_fall(run: Run, n_params: int) -> float:
    """Largest fall of the log density from the mode that is usual within a normal posterior."""
    return float(run.dynamics.temperature) * usual_fall(n_params)


def usual_fall(n_params: int) -> float:
    """Largest fall of the log density, in nats, that is usual within a normal posterior."""
    return 0.5 * n_params + _TYPICAL * float(np.sqrt(0.5 * n_params))


def nearer_to_mode(run: Run, position: Array, mode: Mode, steep: bool = False) -> Array:
    """Positions of which those far below the mode's log density have moved towards it.

    They are moved no further than draws of a normal posterior are. A density may be ``steep``: few
    rows under a wide prior, or a noise whose logarithm is linear in the columns, fall off as the
    exponential of an exponential does. Starts 1.5 sds out may then be far below the mode, and those
    below any posterior's draw are moved. On a normal posterior starts are 1.1 nats a parameter
    below it.
    """
    P, tau = position.shape[1], float(run.dynamics.temperature)
    fall = tau * (_CHANCE + 3.0 * P) if steep else _typical_fall(run, P)
    lowest = _values(run, mode.theta[None]) - fall
    for _ in range(50):
        low = ~(_values(run, position) >= lowest)
        if not low.any():
            break
        position = np.where(low[:, None], 0.5 * (position + mode.theta), position)
    return position


def _move_along_rows(
    rows: WhitenedPosterior, position: Array, mode: Mode, run: Run, seed: int, first_chain: int
) -> Array:
    """Ends of trajectories that are not rejected, in the coordinates of whitened rows.

    Steps of leapfrog keep an energy that differs from the exact one by more within the posterior
    than at its mode, on each of thousands of rows: chains that reject would stay there.
    """
    length = 1.5  # nearly a quarter of a period
    n_steps = int(np.ceil(length / (_SOFT * rows.softness)))
    step = np.full((len(position), 1), length / n_steps)
    z = _NEARER * mode.metric.whiten(position - mode.theta)
    heat = np.sqrt(run.dynamics.temperature)
    costly = rows.work_of(n_steps) > _VERY_LARGE
    for number in range(1 if costly else 2):
        chains = range(first_chain, first_chain + len(z))
        momentum = heat * start_normals(seed + number, chains, rows.n_params)
        with one_blas_thread(), np.errstate(all="ignore"):
            z, _ = along_rows(rows, z, momentum, step, n_steps)
    finite = np.isfinite(z).all(axis=1, keepdims=True)
    return np.where(finite, rows.locate(z), position)


def _metric(draws: Array, mode: Mode, tau: float, posterior: BasePosterior) -> Mode:
    """Centre and metric from draws, shrunk to the mode's the more, the fewer the draws."""
    n_chains, _, P = draws.shape
    flat = draws.reshape(-1, P)
    if mode.whitened is not None:
        return Mode.from_whitened(mode.whitened.matched(flat, tau))
    center = flat.mean(axis=0)
    u = mode.metric.whiten(flat - center) / np.sqrt(tau)
    variances = np.square(u).mean(axis=0)
    # independent draws that the chains are worth, by the variance of their means
    between = u.reshape(draws.shape).mean(axis=1).var(axis=0, ddof=1)
    worth = n_chains * float(np.median(variances / np.maximum(between, 1e-300)))
    if P > MAX_DENSE:
        share = worth / (worth + 5.0)
        target = share * variances + (1.0 - share) * variances.mean()
        if mode.metric.diagonal is None:  # of low rank: it has no room for one a direction
            target = target.mean()
        return Mode(center, mode.metric.scaled(np.sqrt(target)))
    share = worth / (worth + 5.0 * P)
    if share < 0.1 and P > _MANY and isinstance(mode.metric, Dense):
        # too few draws for a covariance; the mean of 64 curvatures is known well
        H = posterior.mean_curvature(flat[:: max(1, len(flat) // 64)])
        if H is None:
            return Mode(center, mode.metric.scaled(np.sqrt(variances.mean())))
        return Mode.from_curvature(center, H)
    shrunk = share * (u.T @ u) / len(flat) + (1.0 - share) * variances.mean() * np.eye(P)
    try:
        root = mode.metric.root @ np.linalg.cholesky(shrunk)
        inverse = inverse_root(root @ root.T)
    except np.linalg.LinAlgError:
        return mode
    return Mode(center, Dense(root, inverse @ inverse.T))


def _autocorrelation(draws: Array, center: Mode) -> float:
    """Integrated autocorrelation time of the slowest direction or of its distance from the mean.

    The largest of two: by batch means, and by the correlation of neighbouring draws, which is
    known better and shows less of slow directions. Squares in place of distances would give the
    same but for chance: a walker that stays once where one direction is 4 sds out turns 1.5 into 3.
    """
    n_chains, n_steps, P = draws.shape
    # little is known; trajectories of a quarter of a period forget the most
    if n_steps < _LEARNING:
        return 1.0
    u = center.metric.whiten((draws - center.theta).reshape(-1, P)).reshape(draws.shape)
    # the median of the largest of 2 P chi-squares over their mean, were no direction slow
    chance = chi2.isf(np.log(2.0) / (2 * P), n_chains - 1) / (n_chains - 1)
    share = min(0.6, 1.0 / chance)  # the largest time is that of many noisy ones
    # and about that of the largest of 2 P correlations
    excess = np.sqrt(2.0 * np.log(2 * P) / (n_chains * (n_steps - 1)))
    worst = 1.0
    for values in (u, np.abs(u - u.mean(axis=(0, 1)))):
        values = values - values.mean(axis=(0, 1))
        total = np.maximum(values.var(axis=(0, 1)), 1e-300)
        between = values.mean(axis=1).var(axis=0, ddof=1)
        product = np.einsum("ctp,ctp->p", values[:, 1:], values[:, :-1])
        lag = float((product / (n_chains * (n_steps - 1) * total)).max()) - excess
        lag = min(max(lag, 0.0), 0.98)  # a pilot cannot tell more from 1
        worst = max(
            worst, share * n_steps * float((between / total).max()), (1.0 + lag) / (1.0 - lag)
        )
    return worst


def hmc_along(rows: WhitenedPosterior, n_points: int = 1) -> HMC:
    """HMC along whitened rows, with ``n_points`` draws a trajectory."""
    if isinstance(rows, CollapsedPosterior):
        sampler: HMC = CollapsedHMC()
    else:
        # 1,500 rows of 1,050 columns, nearly separated, give 0.85, 1.1 and 1.3 effective draws of a
        # mean, and 1.24, 0.95 and 0.46 of a square, for a gradient of 32 positions of paths of 1.5,
        # 2 and 2.8
        sampler = HMC(path_length=2.0, target_acceptance=0.8, n_points=n_points)
    sampler.most_steps = 1000  # whose length is known beforehand
    return sampler


def soften(dynamics: Dynamics, mode: Mode) -> Dynamics:
    """Dynamics whose trajectories follow a smoothed density, where the density has kinks.

    Every kink that a leapfrog step crosses costs an error of first order in the step; a gradient
    that is rounded there costs none, and the density itself still accepts or rejects.
    """
    posterior = dynamics.gradient.posterior
    smooth = posterior.with_rounded_kinks(mode.metric.marginal_sd)
    if smooth is posterior:
        return dynamics
    return replace(dynamics, gradient=Full().bind(smooth, None), target=posterior)


def affordable(run: Run) -> int:
    """Most steps from draw to draw that can be afforded, however slowly the chain mixes.

    A gradient takes two products with the rows, and one with the metric where that is dense.
    """
    P = run.dynamics.metric.n_params
    # the cost of a user's own gradient is not known
    rows = run.n_samples if "local_rows" in run.dynamics.gradient.posterior.abilities else 1
    work = 2 * rows * P + (P * P if P <= MAX_DENSE else P)
    # a minute for a thousand draws of four chains
    return max(1, round(5e7 / work / run.sampler.gradients(run.step_size)))
