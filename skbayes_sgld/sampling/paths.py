"""Many SGLD steps at once, for independent coordinates.

A default linear fit takes 10 ms so, and 37 ms step by step.
"""

from __future__ import annotations

from math import exp

import numpy as np

from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.facts import Facts
from skbayes_sgld.sampling.dynamics import Array, Dynamics
from skbayes_sgld.sampling.overflow import ChainOverflowError


class LastCoordinate(BasePosterior):
    """Last coordinate of a posterior whose other coordinates are standard normal."""

    n_params = 1
    facts = Facts(cheap_full_gradient=True)

    def __init__(self, slope: tuple[float, float, float]) -> None:
        self.param_names = ["last"]
        self._a, self._b, self._w = slope

    def grad(self, theta: Array) -> Array:
        """Gradient of the log density ``(C, 1)``."""
        return self._a * np.exp(-self._w * theta) + self._b


def separate_path(
    start: Array,
    eta: Array,
    noise: Array | None,
    dynamics: Dynamics,
    slope: tuple[float, float, float],
) -> Array | None:
    """Positions ``(T, C, P)`` after steps ``theta <- theta + eta G g(theta) + noise`` on all rows.

    All coordinates but the last are standard normal; ``slope`` is the last one's gradient, see
    :meth:`Dynamics.slope_of_last`. None where it overflows.
    """
    metric = dynamics.preconditioner.diagonal
    assert metric is not None and noise is not None
    path, rates = np.empty(noise.shape), metric[:-1] * eta[:, None]
    _add_normal_path(start[:, :-1], rates, noise[..., :-1], path[..., :-1])
    last = _paths(start[:, -1], metric[-1] * eta, noise[..., -1], *slope)
    if last is None:
        return None
    path[..., -1] = np.transpose(last)
    return path


def _add_normal_path(start: Array, rates: Array, noise: Array, path: Array) -> None:
    """Write to ``path (T, C, P)`` the positions of chains on a standard normal target."""
    kept = 1.0 - rates[:, None]
    if not kept.any():  # every step is a new draw
        path[...] = noise
        return
    at = start
    for t, share in enumerate(kept):
        at = np.multiply(at, share, out=path[t])
        at += noise[t]


def _paths(
    start: Array, eta: Array, noise: Array, a: float, b: float, w: float
) -> list[list[float]] | None:
    """Positions of each chain ``(C, T)`` whose gradient is ``a exp(-w x) + b``; None: it overflows.

    For one number at a time Python's arithmetic is faster than NumPy's.
    """
    pulls, rest = (a * eta).tolist(), (noise + (b * eta)[:, None]).T.tolist()
    try:
        return [_path(x, pulls, each, -w) for x, each in zip(start.tolist(), rest, strict=True)]
    except OverflowError:
        return None


def _path(x: float, pulls: list[float], rest: list[float], w: float) -> list[float]:
    return [x := x + pull * exp(w * x) + e for pull, e in zip(pulls, rest, strict=True)]


def check_path(posterior: BasePosterior, path: Array, first: int, every: int, step: int) -> None:
    """Raise where positions ``path (T, C, P)`` from ``step`` on, or their parameters, overflow.

    Parameters are checked at every ``every``-th position from the ``first`` on.
    """
    finite = np.isfinite(path)
    length = len(path) if finite.all() else int(np.argwhere(~finite)[0, 0])
    checked = path[first:length:every]
    bad = np.argwhere(~np.isfinite(posterior.reported.values(checked.reshape(-1, path.shape[2]))))
    if len(bad):
        row, parameter = (int(k) for k in bad[0])
        at, chain = divmod(row, path.shape[1])
        raise ChainOverflowError(
            step + first + at * every, chain, min(parameter, posterior.n_params - 1)
        )
    if length < len(path):
        chain, parameter = (int(k) for k in np.argwhere(~finite[length])[0])
        raise ChainOverflowError(step + length, chain, parameter)
