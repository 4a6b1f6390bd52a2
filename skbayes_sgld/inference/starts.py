"""Starting points away from the mode, and their way to where proposals are accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld._components import start_generators
from skbayes_sgld.inference.choices import GIVEN
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.chains import Run
from skbayes_sgld.sampling.tuning.adaptation import leave_dead_ends, nearer_to_mode, settle
from skbayes_sgld.sampling.tuning.mode import Mode

Array = NDArray[Any]

_REACH = 2.0  # as in Stan: unconstrained parameters begin within it


def start_elsewhere(
    posterior: BasePosterior, settings: Settings, seed: int, chains: range
) -> tuple[Array, tuple[str, str]]:
    """Points ``(C, P)`` that ``init`` names, where that is not the mode, with name and reason.

    Raises
    ------
    ValueError, TypeError
        Where ``init`` is an array of another shape, or a prior that cannot be drawn from.
    """
    init, why = settings.init, GIVEN
    if not isinstance(init, str):
        return _given(posterior, np.asarray(init, dtype=float), settings.n_chains), ("array", why)
    if init == "zeros":
        return np.tile(posterior.zeros(), (len(chains), 1)), ("zeros", why)
    if init == "auto":
        why = "no mode is looked for"
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


def settle_down(run: Run, start: Array, mode: Mode, seed: int, at_mode: bool) -> tuple[Array, str]:
    """Points from which proposals are accepted, and what is to be said where they moved.

    Only points that are not around the mode are moved towards it.
    """
    settled = settle(run, start, mode, seed)
    if not at_mode:
        settled = nearer_to_mode(run, settled, mode)
    if mode.whitened is None:
        settled = leave_dead_ends(run, settled, mode, seed)
    moved = not at_mode and not np.array_equal(settled, start)
    why = "; moved towards the mode, as trajectories from so far out are not accepted"
    return settled, why * moved


def _given(posterior: BasePosterior, init: Array, n_chains: int) -> Array:
    """Starting points ``(C, P)`` at the user's values."""
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
    return np.asarray(start)


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
