"""A pilot of independent proposals: their centre, their weights, and what a chain makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._random import ChainStreams
from skbayes_sgld._typing import Array
from skbayes_sgld.sampling.run import Run
from skbayes_sgld.sampling.samplers.independence import Independence, log_proposal
from skbayes_sgld.sampling.samplers.metropolis import split_noise
from skbayes_sgld.sampling.tuning.adaptation import FIRST_CHAIN, recentred
from skbayes_sgld.sampling.tuning.mode import Center

_PAIRS = 64  # mirrored pairs of points whose gradients give the mean
_PROPOSALS = 512


@dataclass
class Weights:
    """Weights of a pilot's proposals: the posterior's density over that of the proposals.

    Attributes
    ----------
    center : Center
        Mean of the posterior, and the metric of the proposals.
    draws : ndarray of shape (n_draws, P)
        Proposals drawn by their weights, in random order; none without weights.
    acceptance : float
        Mean acceptance of a chain on the posterior.
    time : float
        Autocorrelation time of a chain that stands still by chance alone.
    longest : float
        Mean number of steps that a chain stands at the proposal of the largest weight.
    """

    center: Center
    draws: Array
    acceptance: float = 0.0
    time: float = np.inf
    longest: float = np.inf


def weigh_proposals(run: Run, mode: Center, seed: int, farthest: float) -> Weights:
    """Weights of proposals about the mean of the posterior, in the metric of the curvature.

    The mean follows from the mean gradient of the log density over a normal distribution about the
    mode, which is the move of the mean to first order in the skewness. Mirrored pairs cancel all
    terms of odd order about the mode. Its error is a tenth of what weights would leave: the mean of
    gradients over pairs has no part of the normal distribution itself.

    If the mean is farther from the mode than ``farthest`` sds, nothing is proposed.
    """
    P, tau, sampler = mode.theta.size, float(run.dynamics.temperature), run.sampler
    assert isinstance(sampler, Independence)
    streams = ChainStreams(seed, FIRST_CHAIN)
    half = streams.normals(_PAIRS, P)
    normals = streams.normals(_PROPOSALS, run.sampler.n_normals(P))
    dynamics = run.dynamics.in_groups_of(None)
    with one_blas_thread(), np.errstate(all="ignore"):
        points = mode.theta + np.sqrt(tau) * mode.metric.sqrt(np.concatenate([half, -half]))
        force = mode.metric.sqrt_t(dynamics.gradient_at(points, None)).mean(axis=0) / np.sqrt(tau)
        if not np.linalg.norm(force) < farthest:
            return Weights(mode, points[:0])
        mean = mode.theta + np.sqrt(tau) * mode.metric.sqrt(force[None])[0]
        center = Center(mean, mode.metric)
        dynamics = recentred(dynamics, center)
        noise = sampler.prepare(normals[None], normals, np.ones(1), dynamics)[0]
        made = sampler.positions_at(split_noise(noise, P).move[None], dynamics)
        log_weight = made["value"][0] / tau - log_proposal(made["square"][0] / tau, P)
    return _weighted(center, made["theta"][0], log_weight, streams)


def _weighted(center: Center, theta: Array, log_weight: Array, streams: ChainStreams) -> Weights:
    """Figures of proposals ``theta (n, P)`` with these log weights ``(n,)``."""
    largest, n = log_weight.max(), len(theta)
    if not (np.isfinite(largest) and np.isfinite(log_weight[log_weight > -np.inf]).all()):
        return Weights(center, theta[:0])
    weight = np.exp(log_weight - largest)
    ordered = np.sort(weight)
    below = np.searchsorted(ordered, weight, side="right")
    # mean over all proposals of min(1, their weight / this weight)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])[below]
    accepted = (sums / np.maximum(weight, 1e-300) + (n - below)) / n
    share = weight / weight.sum()
    # the autocorrelation of a function of the position, independent of the weight, is the chance
    # of standing still so long
    time = float(share @ (2.0 / accepted - 1.0))
    drawn = np.searchsorted(np.cumsum(share), (np.arange(n) + 0.5) / n).clip(max=n - 1)
    drawn = drawn[np.argsort(streams.normals(n, 1)[:, 0])]
    longest = float(1.0 / accepted[weight.argmax()])
    return Weights(center, theta[drawn], float(share @ accepted), time, longest)
