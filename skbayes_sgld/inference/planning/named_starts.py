"""Starting points by name, and starting points that the user gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld._random import start_generators
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.posterior.base import Array, BasePosterior

_REACH = 2.0  # half-width of uniform starts of unconstrained parameters, as in Stan


def named_start(
    posterior: BasePosterior, init: Any, n_chains: int, seed: int, chains: range
) -> tuple[Array, Choice]:
    """Starting points ``(C, P)`` that ``init`` names, other than the mode, and their choice.

    Raises
    ------
    ValueError, TypeError
        If ``init`` is an array of another shape, or a prior without draws.
    """
    if isinstance(init, np.ndarray):
        return _given_start(posterior, init, n_chains), Choice.by_user("array")
    if init == "zeros":
        return np.tile(posterior.zeros(), (len(chains), 1)), Choice.by_user("zeros")
    generators = start_generators(seed, chains)
    draws = posterior.draw_prior(generators)
    if draws is not None:
        by_default = Choice("prior", "no mode is looked for")
        choice = by_default if init is AUTO else Choice.by_user("prior")
        return posterior.reported.theta(draws), choice
    if init == "prior":
        raise TypeError(
            f"init='prior' needs a posterior that can draw from its prior; "
            f"{type(posterior).__name__} has no draw_prior. Set init='zeros', or give an array."
        )
    moves = [g.uniform(-_REACH, _REACH, posterior.n_params) for g in generators]
    why = f"within {_REACH:g} of the start"
    return posterior.start() + np.array(moves), Choice("uniform", why)


def _given_start(posterior: BasePosterior, init: Array, n_chains: int) -> Array:
    """Starting points ``(C, P)`` at the user's values."""
    n_params = len(posterior.reported.names)
    if init.shape not in ((n_params,), (n_chains, n_params)):
        names = posterior.reported.names
        listed = ", ".join(names if n_params <= 6 else [*names[:3], "...", names[-1]])
        several = f" or ({n_chains}, {n_params})" if n_chains > 1 else ""
        raise ValueError(
            f"init has shape {init.shape}; it must be ({n_params},){several}: {listed}."
        )
    with np.errstate(all="ignore"):
        start = posterior.reported.theta(np.broadcast_to(init, (n_chains, n_params)).copy())
    if not np.all(np.isfinite(start)):
        raise ValueError(_out_of_range(posterior, np.atleast_2d(init)))
    return np.asarray(start)


def _out_of_range(posterior: BasePosterior, init: Array) -> str:
    """Message that names the first value of ``init (C, P)`` that is out of range."""
    inside = posterior.reported.values(posterior.start()[None])
    for j, name in enumerate(posterior.reported.names):
        probe = np.repeat(inside, len(init), axis=0)
        probe[:, j] = init[:, j]
        with np.errstate(all="ignore"):
            bad = ~np.isfinite(posterior.reported.theta(probe)).all(axis=1)
        if bad.any():
            chain = int(bad.argmax())
            where = f" in chain {chain}" if len(init) > 1 else ""
            return (
                f"init has the value {init[chain, j]:g} for {name}{where} which is out of its "
                "range; scales and variances must be above 0."
            )
    return f"init is out of range for {', '.join(posterior.reported.names)} together."
