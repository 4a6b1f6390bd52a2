"""Adaptation of a Metropolis-adjusted chain: metric, step size and spacing, by a short pilot.

Also its starting points, the dynamics of its trajectories, and the most steps that are affordable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from skbayes_sgld._linalg import MAX_DENSE, inverse_root, one_blas_thread
from skbayes_sgld._random import ChainStreams, start_normals
from skbayes_sgld._timings import beat
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.block import draw_normals
from skbayes_sgld.sampling.dynamics import Dynamics
from skbayes_sgld.sampling.gradients import Full
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.metric import Dense
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.run import Run, RunState
from skbayes_sgld.sampling.samplers.sgld import SGLD
from skbayes_sgld.sampling.tuning.mode import Center
from skbayes_sgld.sampling.tuning.precision import round_density, round_gradient

FIRST_CHAIN = 2**31  # chain numbers from here on are the pilots' own

_MIN_CHAINS = 16
_LEARNING = 5  # fewest trajectories of a round that learns its step by dual averaging
_APART = 2  # trajectories between the positions that a pilot hands on: one may be rejected
NEARER = 0.1  # share of the way from the mode to a start that is too far out
_ACCEPTED = 0.01  # log acceptance ratios change by about as much as the whitened gradient
_CHANCE = 5.0  # nats, and some a parameter: a larger fall of the log density is not chance
_TYPICAL = 3.0  # a start is too far out if its log density is this many sds below normal draws'
_EXPENSIVE = 1.5e6  # multiplications of a step, of which 4,000 take half a second or more
_MANY = 300  # parameters beyond which few draws do not determine a covariance


@dataclass
class Adaptation:
    """Results of the pilot: metric, step size and spacing.

    Attributes
    ----------
    center : Center
        Centre and metric of the posterior, from the pilot's draws.
    step_size : float
    acceptance : float
    autocorrelation : float
        Integrated autocorrelation time, in steps, of the slowest direction or of the distance from
        the mean in it; corrected for taking the largest of many noisy estimates.
    ends : ndarray of shape (n_ends, n_params)
        Positions of the pilot's chains in its last round, the latest first. Empty if the chains
        are too few, or too short to forget their start.
    n_settling : int
        Trajectories between the start and the earliest of these positions.
    lost : float
        Share of the last round's trajectories whose probability of acceptance was 0.
    of_ends : str
        Words on the ends, for the reason of the start.
    moved : Run or None
        Run on the posterior in coordinates that suit the pilot's draws, to which all figures
        belong; None if they are as before.
    """

    center: Center
    step_size: float
    acceptance: float
    autocorrelation: float
    ends: Array
    n_settling: int
    lost: float = 0.0
    of_ends: str = "final positions of the pilot's chains"
    moved: Run | None = None


class Pilot:
    """A pilot of a chain that accepts or rejects: its size, its starts, and its draws' metric."""

    def hands_on(self, center: Center) -> bool:
        """Whether chains of the run may begin where those of the pilot end."""
        return True

    def size(self, run: Run, origin: Center) -> tuple[int, tuple[int, ...], float]:
        """Number of chains, trajectories of each round, and the first step size."""
        n = max(run.n_samples, 1)
        little = n * origin.theta.size < 1_000_000  # else the pilot runs few chains
        n_chains = int(np.clip(24_000 // n, _MIN_CHAINS if little else 4, 32))
        # A metric that begins at a third of the right width ends too narrow by 14 to 19 % after
        # rounds of 4, 8 and 8 trajectories, by 8 to 10 % after 4, 4, 6 and 8, and by 1 to 3 %
        # after 4, 8, 8 and 10, which cost a third more
        rounds = (4, 4, 6, 8) if little else (15, 15, 20)
        return n_chains, rounds, 0.5 * run.sampler.largest_step

    def prepared(self, run: Run, mode: Center, center: Center) -> Run:
        """Run whose trajectories follow what is smooth and, if that is safe, rounded."""
        # rounded already where the draft's stricter limit was met
        dynamics = round_gradient(soften(run.dynamics, mode), center, _ACCEPTED)
        return replace(run, dynamics=round_density(dynamics, center))

    def start(
        self, run: Run, position: Array, center: Center, seed: int, first_chain: int = 0
    ) -> Array:
        """Starting points ``(C, P)``, those too far out moved into the posterior."""
        return move_into_posterior(run, position, center, seed, first_chain)

    def leave(self, run: Run, position: Array, center: Center, seed: int) -> Array:
        """Starting points of a run, moved until some step can leave each of them."""
        return leave_dead_ends(run, position, center, seed)

    def learn(
        self, draws: Array, origin: Center, center: Center, run: Run, step_size: float
    ) -> tuple[Center, float]:
        """Centre and metric from draws ``(C, S, P)``, and the step size in that metric.

        ``origin`` is where the pilot began, ``center`` the metric of the draws.
        """
        tau, posterior = float(run.dynamics.temperature), run.dynamics.gradient.posterior
        return _metric(draws, origin, tau, posterior), step_size


USUAL = Pilot()


def adapt(run: Run, origin: Center, seed: int, pilot: Pilot = USUAL) -> Adaptation:
    """Adapt a run that accepts and rejects, from the mode and its curvature or another centre.

    Every round of the pilot continues the last one. The metric becomes the covariance of the draws.
    While these are few it is shrunk towards the draws' variances in the coordinates of the
    curvature's metric, and these towards their mean (Ledoit & Wolf 2004, eq. 1), since in many
    dimensions a posterior is wider than its curvature at the mode suggests. Dual averaging moves
    the step size towards the sampler's target acceptance.
    """
    P, tau = origin.theta.size, float(run.dynamics.temperature)
    n_chains, rounds, step_size = pilot.size(run, origin)
    chains = range(FIRST_CHAIN, FIRST_CHAIN + n_chains)
    normals = start_normals(seed, chains, P)
    position = origin.theta + np.sqrt(tau) * origin.metric.sqrt(normals)
    position = pilot.start(run, position, origin, seed, FIRST_CHAIN)
    streams = [ChainStreams(seed, c) for c in chains]
    center, history = origin, np.empty((n_chains, 0, P))
    posterior: Any = run.dynamics.posterior
    moved = None
    for number, n_steps in enumerate(rounds):
        now = replace(run, dynamics=recentred(run.dynamics, center))
        last = number == len(rounds) - 1
        learns = n_steps >= _LEARNING
        draws, step_size, acceptance, lost = _run_pilot(
            now, position, streams, step_size, n_steps, learns
        )
        position = draws[:, -1]
        if number > 0 and not last:  # the first round only forgets the start
            history = np.concatenate([history, draws], axis=1)
            first = history.shape[1] // 3
            suited = posterior.about_draws(history[:, first:].reshape(-1, P))
            if suited is not posterior:
                flat = suited.moved_from(posterior, history.reshape(-1, P))
                history = flat.reshape(history.shape)
                run = moved = pilot.prepared(on_posterior(run, suited), origin, origin)
                posterior, position = suited, history[:, -1]
            recent = history[:, first:]
            center, step_size = pilot.learn(recent, origin, center, run, step_size)
    if not learns:
        step_size *= _towards(run.sampler.target_acceptance, acceptance)
    step_size = run.sampler.whole_steps(step_size)
    # drop chains that never moved; neighbouring draws may be equal
    mobile = draws[(draws != position[:, None]).any(axis=(1, 2))]
    has_ends = n_chains >= _MIN_CHAINS and n_steps > 1 and pilot.hands_on(center)
    by_chain = mobile[:, ::-_APART] if has_ends else draws[:, :0]
    ends = by_chain.swapaxes(0, 1).reshape(-1, P)
    n_settling = sum(rounds) - (n_steps - 1) // _APART * _APART
    walked = np.concatenate([history, draws], axis=1)
    posterior = run.dynamics.gradient.posterior
    if posterior.facts.hierarchical:
        walked = _as_reported(walked, posterior)
    time = _autocorrelation(walked, center)
    return Adaptation(center, step_size, acceptance, time, ends, n_settling, lost, moved=moved)


def _towards(target: float, acceptance: float) -> float:
    """Factor that brings steps from an acceptance to the target.

    The error of the energy is nearly normal, with an sd in proportion to the square of the step and
    a mean of minus half its variance: its acceptance is ``2 Phi(-sd / 2)`` (Neal 2011, Section
    5.4.3).
    """
    sds = ndtri(0.5 * np.clip([target, acceptance], 0.02, 0.98))
    return float(np.clip(np.sqrt(sds[0] / sds[1]), 0.5, 1.5))


def on_posterior(run: Run, posterior: BasePosterior) -> Run:
    """Run on all rows of another posterior."""
    gradient = Full().bind(posterior, None)
    dynamics = replace(run.dynamics, gradient=gradient, density_of=None, rounded=False)
    return replace(run, dynamics=dynamics)


def recentred(dynamics: Dynamics, center: Center) -> Dynamics:
    """Dynamics about a centre, in its metric."""
    # a clip needs the gradient in theta, which trajectories along whitened rows do not compute
    whitened = center.whitened if dynamics.clip is None else None
    return replace(dynamics, metric=center.metric, center=center.theta, whitened=whitened)


def _run_pilot(
    run: Run,
    position: Array,
    streams: list[ChainStreams],
    step_size: float,
    n_steps: int,
    learns: bool,
) -> tuple[Array, float, float, float]:
    """Run the pilot's chains; with ``learns`` adapt the step size.

    By dual averaging (Hoffman & Gelman 2014, eq. 6) with gamma = 0.05, t0 = 10, kappa = 0.75.

    Returns
    -------
    draws : ndarray of shape (C, n_steps, P)
    step_size : float
        Weighted mean of the adapted step sizes.
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
            beat()
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
    run: Run, position: Array, center: Center, seed: int, first_chain: int = 0
) -> Array:
    """Starting points ``(C, P)``, those too far out moved by SGLD steps, which reject nothing.

    A chain that accepts or rejects may stand still for long if it starts too far out (Christensen,
    Roberts & Rosenthal 2005). Starts whose density is that of posterior draws stay. If SGLD leads
    a chain far away, or to a lower density, the chain starts nearer to the centre instead. On steep
    posteriors, where SGLD is not safe, starts move towards the centre
    (:func:`nearer_to_center`).
    """
    if run.dynamics.gradient.posterior.facts.steep:
        return nearer_to_center(run, position, center, steep=True)
    before, P = _values(run, position), position.shape[1]
    low = np.flatnonzero(~(before >= _values(run, center.theta[None]) - _typical_fall(run, P)))
    if not len(low):
        return position
    free = replace(run, sampler=SGLD("leimkuhler_matthews"), step_size=0.2)
    # random numbers other than the run's
    streams = [ChainStreams(seed ^ 0x5E771E, first_chain + int(c)) for c in low]
    state = RunState(0, free.initial_state(position[low]), streams)
    try:
        ends = run_chains(free, state, n_draws=1, thin=20).positions
    except ChainOverflowError:
        return nearer_to_center(run, position, center, steep=True)
    with np.errstate(invalid="ignore"):  # the density may be 0 at both ends
        gain = _values(run, ends) - before[low]
    away = np.abs((ends - center.theta) / center.metric.marginal_sd).max(axis=1)
    holds = (away < 30.0) & (gain > -run.dynamics.temperature * (_CHANCE + P))
    nearer = center.theta + NEARER * (position[low] - center.theta)
    landing = position.copy()
    landing[low] = np.where(holds[:, None], ends, nearer)
    return landing


def leave_dead_ends(run: Run, position: Array, center: Center, seed: int) -> Array:
    """Starting points ``(C, P)``, moved towards the centre until some step can leave each of them.

    If a density falls off much more steeply than at the centre, every trajectory from a start may
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
        nearer = 0.5 * (position + center.theta)
        position = np.where(np.asarray(lost)[:, None] > 0, nearer, position)
    return position


def _values(run: Run, theta: Array) -> Array:
    """Log density at ``theta (C, P)``; that of a chain does not depend on the other chains."""
    with one_blas_thread(), np.errstate(all="ignore"):
        return run.dynamics.posterior.log_density(theta)


def _typical_fall(run: Run, n_params: int) -> float:
    """Fall of the log density from the mode that normal draws rarely exceed, at the temperature."""
    return float(run.dynamics.temperature) * usual_fall(n_params)


def usual_fall(n_params: int) -> float:
    """Fall of the log density from the mode, in nats, that normal draws rarely exceed."""
    return 0.5 * n_params + _TYPICAL * float(np.sqrt(0.5 * n_params))


def nearer_to_center(run: Run, position: Array, center: Center, steep: bool = False) -> Array:
    """Starting points, moved towards the centre until their log density is high enough.

    That is within a fall from the mode that normal draws rarely exceed, or for a ``steep`` density
    within 5 nats and 3 per parameter: on a normal posterior starts 1.5 sds out, 1.1 nats per
    parameter below the mode, stay. A steep density falls off like the exponential of an
    exponential: with few rows under a wide prior, or a noise whose logarithm is linear in the
    columns. Starts 1.5 sds out may then be below any posterior draw.
    """
    P, tau = position.shape[1], float(run.dynamics.temperature)
    fall = tau * (_CHANCE + 3.0 * P) if steep else _typical_fall(run, P)
    lowest = _values(run, center.theta[None]) - fall
    for _ in range(50):
        low = ~(_values(run, position) >= lowest)
        if not low.any():
            break
        position = np.where(low[:, None], 0.5 * (position + center.theta), position)
    return position


def _metric(draws: Array, origin: Center, tau: float, posterior: BasePosterior) -> Center:
    """Centre and metric from draws; with few draws the metric is shrunk towards the origin's."""
    n_chains, _, P = draws.shape
    flat = draws.reshape(-1, P)
    center = flat.mean(axis=0)
    u = origin.metric.whiten(flat - center) / np.sqrt(tau)
    variances = np.square(u).mean(axis=0)
    # effective number of draws, by the variance of the chains' means
    between = u.reshape(draws.shape).mean(axis=1).var(axis=0, ddof=1)
    worth = n_chains * float(np.median(variances / np.maximum(between, 1e-300)))
    if P > MAX_DENSE:
        share = worth / (worth + 5.0)
        target = share * variances + (1.0 - share) * variances.mean()
        if origin.metric.diagonal is None:  # low rank, which takes one factor for all directions
            target = target.mean()
        return Center(center, origin.metric.scaled(np.sqrt(target)))
    share = worth / (worth + 5.0 * P)
    if share < 0.1 and P > _MANY and isinstance(origin.metric, Dense):
        # too few draws for a covariance, but enough for the mean of 64 curvatures
        H = posterior.mean_curvature(flat[:: max(1, len(flat) // 64)])
        if H is None:
            return Center(center, origin.metric.scaled(np.sqrt(variances.mean())))
        return Center.from_curvature(center, H)
    if share < 0.1 and P > _MANY:
        # nor for the mean of independent coordinates, which is shrunk (James & Stein 1961)
        move = origin.metric.whiten(center - origin.theta[None])
        chance = variances.mean() / max(worth * float(np.square(move).mean()), 1e-300)
        center = origin.theta + max(0.0, 1.0 - chance) * (center - origin.theta)
        return Center(center, origin.metric.scaled(np.sqrt(variances.mean())))
    # Fewer draws determine variances than correlations. Shrunk to the mean variance, the common
    # scale of a horseshoe of 30 columns takes 1.4 times as many gradients to an independent draw
    by_axis = worth / (worth + 5.0)
    target = by_axis * variances + (1.0 - by_axis) * variances.mean()
    shrunk = share * (u.T @ u) / len(flat) + (1.0 - share) * np.diag(target)
    try:
        root = origin.metric.root @ np.linalg.cholesky(shrunk)
        inverse = inverse_root(root @ root.T)
    except np.linalg.LinAlgError:
        return origin
    return Center(center, Dense(root, inverse @ inverse.T))


def _as_reported(draws: Array, posterior: Any) -> Array:
    """Draws, of those that are reported alike the same one.

    A chain may be slow to change the sign of a scale, on which no reported parameter depends.
    """
    reported = posterior.reported
    flat = draws.reshape(-1, draws.shape[2])
    return np.asarray(reported.theta(reported.values(flat))).reshape(draws.shape)


def _autocorrelation(draws: Array, center: Center) -> float:
    """Integrated autocorrelation time of the slowest direction, or of the distance from its mean.

    It is the larger of two estimates: by batch means, and by the correlation of neighbouring draws,
    which is less noisy but misses slow directions. Distances are less noisy than squares: one
    walker that stays once at 4 sds in one direction turns an estimate of 1.5 by squares into 3.
    """
    n_chains, n_steps, P = draws.shape
    # too few steps to measure; trajectories of a quarter of a period forget most
    if n_steps < _LEARNING:
        return 1.0
    u = center.metric.whiten((draws - center.theta).reshape(-1, P)).reshape(draws.shape)
    # without slow directions: median of the largest of 2 P chi-squares, over their mean
    chance = chi2.isf(np.log(2.0) / (2 * P), n_chains - 1) / (n_chains - 1)
    share = min(0.6, 1.0 / chance)  # corrects for taking the largest of noisy times
    # expected largest of 2 P correlations of independent draws
    excess = np.sqrt(2.0 * np.log(2 * P) / (n_chains * (n_steps - 1)))
    worst = 1.0
    for values in (u, np.abs(u - u.mean(axis=(0, 1)))):
        values = values - values.mean(axis=(0, 1))
        total = np.maximum(values.var(axis=(0, 1)), 1e-300)
        between = values.mean(axis=1).var(axis=0, ddof=1)
        product = np.einsum("ctp,ctp->p", values[:, 1:], values[:, :-1])
        lag = float((product / (n_chains * (n_steps - 1) * total)).max()) - excess
        lag = min(max(lag, 0.0), 0.98)  # a pilot cannot tell a larger one from 1
        worst = max(
            worst, share * n_steps * float((between / total).max()), (1.0 + lag) / (1.0 - lag)
        )
    return worst


def soften(dynamics: Dynamics, mode: Center) -> Dynamics:
    """Dynamics whose trajectories follow the density with its kinks rounded, if it has any.

    A leapfrog step across a kink has an error of first order in the step, but not if the gradient
    is rounded there. The density itself still accepts or rejects.
    """
    posterior = dynamics.gradient.posterior
    smooth = posterior.with_rounded_kinks(mode.metric.marginal_sd)
    if smooth is posterior:
        return dynamics
    return replace(dynamics, gradient=Full().bind(smooth, None), density_of=posterior)


def affordable(run: Run, time: float = np.inf) -> int:
    """Most steps from draw to draw that are affordable.

    Chains that mix slowly may take up to a minute for a thousand draws of four. If a step is
    expensive, draws are no farther apart than two fifths of the autocorrelation ``time``: 4,000 are
    then as good as 1,600 independent ones.

    A gradient takes two products with the rows, and one with the metric if that is dense.
    """
    P, posterior = run.dynamics.metric.n_params, run.dynamics.gradient.posterior
    # the cost of a user's own gradient is not known; sufficient statistics stand for all rows
    reads_rows = "local_rows" in posterior.abilities and not posterior.facts.cheap_full_gradient
    rows = (run.batch_size or run.n_samples) if reads_rows else 1
    work = 2 * rows * P + (P * P if P <= MAX_DENSE else P)
    work *= run.sampler.gradients(run.step_size)
    most = max(1, round(5e7 / work))
    return most if work < _EXPENSIVE else min(most, int(np.ceil(min(0.4 * time, 1e6))))
