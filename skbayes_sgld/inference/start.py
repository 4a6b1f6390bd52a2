"""Starting points of the chains, and how many walkers each has."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.chains import Run
from skbayes_sgld.sampling.streams import start_generators, start_normals
from skbayes_sgld.sampling.tuning.adaptation import settle
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS
from skbayes_sgld.sampling.tuning.tune import Tuned

Array = NDArray[Any]

_WALKERS, _WHITENED_WALKERS = 4, 8  # of a chain, see Plan
_BURNIN_SHARE = 0.1  # of a chain's steps that the burn-in of its walkers may take
_REACH = 2.0  # as in Stan: unconstrained parameters begin within it


def choose_walkers(run: Run, settings: Settings, n_draws: int, n_burnin: int, thin: int) -> int:
    """Number of walkers that take turns in a chain, where that gives its draws sooner.

    A step of many positions costs little more than one of four; but each of them has a burn-in.
    """
    if run.dynamics.whitened is not None:
        return _WHITENED_WALKERS if n_draws >= _WHITENED_WALKERS**2 else _WALKERS
    posterior = run.dynamics.posterior
    automatic = settings.sampler is None and settings.step_size is None and settings.uses_curvature
    short = _WALKERS * n_burnin <= _BURNIN_SHARE * n_draws * thin
    # where a whole block of steps is made at once it costs the same
    alone = posterior.slope_of_last() is None
    return _WALKERS if automatic and short and alone and posterior.one_mode else 1


def choose_start(
    posterior: BasePosterior,
    settings: Settings,
    tuned: Tuned,
    seed: int,
    positions: Array | None,
    n_walkers: int = 1,
) -> tuple[Array, tuple[str, str]]:
    """Starting points ``(C, P)``, or those of all walkers, with their name and the reason.

    Raises
    ------
    ValueError, TypeError
        Where ``init`` is an array of another shape, or a prior that cannot be drawn from.
    """
    chains = range(n_walkers * settings.n_chains)
    if positions is not None:
        return posterior.unconstrain(positions), ("last positions", "warm_start=True")
    init = settings.init
    if not isinstance(init, str):
        return _given(posterior, np.asarray(init, dtype=float), settings.n_chains)
    why = "given"
    if init == "auto":
        init = "mode" if settings.uses_curvature else "prior"
        why = "overdispersed around the mode" if init == "mode" else "no mode is looked for"
    if init == "mode":
        center = tuned.mode
        assert center is not None
        width = THRESHOLDS.overdispersion * np.sqrt(settings.tau)
        normals = start_normals(seed, chains, posterior.n_params)
        why += f", {n_walkers} walkers a chain" * (n_walkers > 1)
        start = center.theta + width * center.unwhiten(normals)
        if tuned.run.sampler.adjusted:
            start = settle(tuned.run, start, center, seed)
        return start, ("mode", why)
    if init == "zeros":
        return np.tile(posterior.zeros(), (len(chains), 1)), ("zeros", why)
    generators = start_generators(seed, chains)
    draws = posterior.draw_prior(generators)
    if draws is not None:
        return posterior.unconstrain(draws), ("prior", why)
    if settings.init == "prior":
        raise TypeError(
            f"init='prior' needs a posterior that can draw from its prior; "
            f"{type(posterior).__name__} has no draw_prior. Set init='zeros', or give an array."
        )
    moves = [g.uniform(-_REACH, _REACH, posterior.n_params) for g in generators]
    return posterior.start() + np.array(moves), ("uniform", f"within {_REACH:g} of the start")


def _given(posterior: BasePosterior, init: Array, n_chains: int) -> tuple[Array, tuple[str, str]]:
    n_params = len(posterior.constrained_names)
    if init.shape not in ((n_params,), (n_chains, n_params)):
        names = posterior.constrained_names
        listed = ", ".join(names if n_params <= 6 else [*names[:3], "...", names[-1]])
        raise ValueError(
            f"init has shape {init.shape}; it must be ({n_params},) or ({n_chains}, {n_params}): "
            f"{listed}."
        )
    with np.errstate(all="ignore"):
        start = posterior.unconstrain(np.broadcast_to(init, (n_chains, n_params)).copy())
    if not np.all(np.isfinite(start)):
        raise ValueError(_out_of_range(posterior, np.atleast_2d(init)))
    return start, ("array", "given")


def _out_of_range(posterior: BasePosterior, init: Array) -> str:
    """Message that names the first value of ``init (C, P)`` that has no coordinate."""
    inside = posterior.constrain(posterior.start()[None])
    for chain, values in enumerate(init):
        for j, name in enumerate(posterior.constrained_names):
            probe = inside.copy()
            probe[0, j] = values[j]
            with np.errstate(all="ignore"):
                if not np.all(np.isfinite(posterior.unconstrain(probe))):
                    return (
                        f"init has the value {values[j]:g} for {name} in chain {chain}, which is "
                        "out of its range; scales and variances must be above 0."
                    )
    return f"init is out of range for {', '.join(posterior.constrained_names)} together."
