"""The mode of most mass, where the likelihood says that there may be several.

Searches begin at the model's further starts. Of many rows a sample is enough to see whether all of
them end at one mode.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.tuning.adaptation import usual_fall
from skbayes_sgld.sampling.tuning.mode import Mode, NoModeError, find_mode
from skbayes_sgld.sampling.tuning.own_models import KnownMode, are_apart, with_shares

_MOST_PARAMS = 300  # beyond, further searches cost more than the run
_ROWS = 1000  # rows of the sample, or five a parameter
_ROUGH = 0.01  # squared distance to a mode, in sds, that is near enough to tell it from others


class Survey(NamedTuple):
    """Findings of the searches: the mode of most mass, those that have some, and a sentence."""

    mode: Mode
    modes: tuple[KnownMode, ...]
    finding: str


def survey(posterior: BasePosterior, mode: Mode, tau: float) -> Survey:
    """Look for further modes beside a known one.

    Parameters
    ----------
    posterior : BasePosterior
    mode : Mode
    tau : float
        Temperature, which flattens the masses.
    """
    alone = Survey(mode, (), "")
    if mode.theta.size > _MOST_PARAMS:
        return alone
    with one_blas_thread(), np.errstate(all="ignore"):
        starts, candidates = _candidates(posterior, mode)
        if not starts:
            return alone
        ends = [mode]
        for end in candidates:
            with suppress(NoModeError):
                _add(posterior, ends, find_mode(posterior, end.theta))
        if len(ends) == 1:
            return Survey(mode, (), f"searches from {starts + 1} starts end at one mode")
        known = with_shares(posterior, [end.theta for end in ends], tau)
    best = max(known, key=lambda each: each.share)
    others = [_describe(posterior, each) for each in known if each is not best]
    finding = f"the mode has {best.share:.1%} of the mass by the curvature; {'; '.join(others)}"
    (center,) = (end for end in ends if end.theta is best.theta)
    shared = tuple(each for each in known if each.share > 0.01)
    return Survey(center, shared if len(shared) > 1 else (), finding)


def _candidates(posterior: BasePosterior, mode: Mode) -> tuple[int, list[Mode]]:
    """Number of further starts, and the other modes that they lead to on a sample of rows."""
    every = max(1, posterior.n_samples // max(_ROWS, 5 * mode.theta.size))
    sample = posterior.subset(slice(None, None, every)) if every > 1 else posterior
    starts, ends = sample.other_starts(), [mode]
    for start in [mode.theta, *starts] if every > 1 and starts else starts:
        with suppress(NoModeError):
            end = find_mode(sample, start, tolerance=_ROUGH)
            if start is mode.theta:
                ends = [end]
            else:
                _add(sample, ends, end)
    return len(starts), ends[1:]


def _add(posterior: BasePosterior, ends: list[Mode], end: Mode) -> None:
    """Add the end of a search, unless it is one of those that are known.

    Chains cross what is no lower than most of their draws: a barrier counts from there.
    """
    fall = usual_fall(end.theta.size)
    for other in ends:
        near = min(end.squared_distance(other.theta), other.squared_distance(end.theta)) < 1.0
        if near or not are_apart(posterior, end.theta, other.theta, fall):
            return
    ends.append(end)


def _describe(posterior: BasePosterior, known: KnownMode) -> str:
    """Share of a mode, and its parameters but the coefficients."""
    values = posterior.reported.values(known.theta[None])[0]
    names = posterior.reported.names
    shown = [j for j, name in enumerate(names) if not name.startswith("coef[")]
    where = ", ".join(f"{names[j]}={values[j]:.3g}" for j in shown)
    return f"another has {known.share:.1%}, at {where}"
