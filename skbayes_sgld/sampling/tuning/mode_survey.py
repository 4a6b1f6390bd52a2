"""The mode of most mass, for likelihoods that may have several modes.

Searches begin at further starts that the likelihood names. If there are many rows, a sample of them
is enough to see whether all searches end at one mode.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.tuning.adaptation import usual_fall
from skbayes_sgld.sampling.tuning.marginal_mode import is_central, marginal_mode
from skbayes_sgld.sampling.tuning.mode import Mode, NoModeError, newton_mode
from skbayes_sgld.sampling.tuning.parts import KnownMode, are_apart

_MOST_PARAMS = 300  # with more parameters, further searches cost more than the run
_ROWS = 1000  # rows of the sample; five per parameter if that is more
_FEW = 5  # rows per parameter, below which the joint mode may fit some rows exactly
_LEAST = 1e-3  # least share of the mass worth another sampler: far modes widen the sds
_ROUGH = 0.01  # squared distance to a mode, in sds, at which it is distinguished from others


class Survey(NamedTuple):
    """Result of the searches: the mode of most mass, all modes with some mass, and a sentence."""

    mode: Mode
    modes: tuple[KnownMode, ...]
    finding: str


def survey(posterior: BasePosterior, mode: Mode, tau: float) -> Survey:
    """Search for modes other than a known one.

    With few rows per column the joint mode may be far from the mass. The modes are then those of
    the likelihood's own parameters, with the coefficients integrated out.

    Parameters
    ----------
    posterior : BasePosterior
    mode : Mode
    tau : float
        Temperature: the masses are those of the tempered posterior.
    """
    if mode.theta.size > _MOST_PARAMS:
        return Survey(mode, (), "")
    n_own = posterior.facts.n_own
    few = n_own > 0 and posterior.n_samples < _FEW * mode.theta.size
    with one_blas_thread(), np.errstate(all="ignore"):
        n_starts, ends = _joint(posterior, mode)
        shares = _shares(posterior, ends, tau)
        best = ends[int(np.argmax(shares))]
        if few and not is_central(posterior, best, n_own):
            n_starts, ends = _marginal(posterior, mode)
            shares = _shares(posterior, ends, tau)
            best = ends[int(np.argmax(shares))]
    if n_starts == 0:
        return Survey(best, (), "")
    if len(ends) == 1:
        searches = f"searches from {n_starts} starts end" if n_starts > 1 else "the search ends"
        return Survey(best, (), f"{searches} at one mode")
    others = [
        _describe(posterior, end, share)
        for end, share in zip(ends, shares, strict=True)
        if end is not best
    ]
    modes = tuple(
        KnownMode(end.theta, _curvature(end) / tau, share)
        for end, share in zip(ends, shares, strict=True)
        if share > _LEAST
    )
    finding = f"the mode has {max(shares):.1%} of the mass by the curvature; {'; '.join(others)}"
    return Survey(best, modes if len(modes) > 1 else (), finding)


def _shares(posterior: BasePosterior, ends: list[Mode], tau: float) -> list[float]:
    """Shares of the mass by Laplace's approximation."""
    values = [float(posterior.log_density(end.theta[None])[0]) / tau for end in ends]
    volumes = [np.linalg.slogdet(end.metric.root)[1] for end in ends]
    shares: list[float] = softmax(np.add(values, volumes)).tolist()
    return shares


def _marginal(posterior: BasePosterior, mode: Mode) -> tuple[int, list[Mode]]:
    """Number of starts, and modes of the own parameters with the coefficients integrated out."""
    starts, ends = posterior.other_starts() or [posterior.start()], list[Mode]()
    for start in starts:
        with suppress(NoModeError):
            _add(posterior, ends, marginal_mode(posterior, start, posterior.facts.n_own, ends))
    return len(starts), ends or [mode]


def _joint(posterior: BasePosterior, mode: Mode) -> tuple[int, list[Mode]]:
    """Number of starts, with the known mode among them, and the modes that searches find."""
    n_starts, candidates = _candidates(posterior, mode)
    ends = [mode]
    for end in candidates:
        with suppress(NoModeError):
            _add(posterior, ends, newton_mode(posterior, end.theta))
    return n_starts + 1 if n_starts else 0, ends


def _candidates(posterior: BasePosterior, mode: Mode) -> tuple[int, list[Mode]]:
    """Number of further starts, and the other modes that a sample of rows has."""
    every = max(1, posterior.n_samples // max(_ROWS, 5 * mode.theta.size))
    sample = posterior.subset(slice(None, None, every)) if every > 1 else posterior
    starts, ends = sample.other_starts(), [mode]
    for start in [mode.theta, *starts] if every > 1 and starts else starts:
        with suppress(NoModeError):
            end = newton_mode(sample, start, tolerance=_ROUGH)
            if start is mode.theta:
                ends = [end]
            else:
                _add(sample, ends, end)
    return len(starts), ends[1:]


def _add(posterior: BasePosterior, ends: list[Mode], end: Mode) -> None:
    """Add the end of a search, unless it belongs to a known mode.

    A barrier between modes counts only if it is lower than most draws, since chains cross others.
    """
    fall = usual_fall(end.theta.size)
    for other in ends:
        near = min(end.squared_distance(other.theta), other.squared_distance(end.theta)) < 1.0
        if near or not are_apart(posterior, end.theta, other.theta, fall):
            return
    ends.append(end)


def _curvature(mode: Mode) -> Array:
    """Inverse of the metric, as a matrix."""
    root = mode.metric.whiten(np.eye(mode.theta.size))
    return root @ root.T


def _describe(posterior: BasePosterior, end: Mode, share: float) -> str:
    """Share of a mode, and its parameters other than coefficients."""
    values = posterior.reported.values(end.theta[None])[0]
    names = posterior.reported.names
    skipped = "coef[", "noise_coef["
    shown = [j for j, name in enumerate(names) if not name.startswith(skipped)]
    where = ", ".join(f"{names[j]}={values[j]:.3g}" for j in shown)
    return f"another has {share:.1%}, at {where}"
