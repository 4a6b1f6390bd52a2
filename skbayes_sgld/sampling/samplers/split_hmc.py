"""Hamiltonian Monte Carlo whose trajectories follow a few steep rows in shorter steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skbayes_sgld.posterior.whitening import FollowedForce, RowsToBind
from skbayes_sgld.sampling.dynamics import Array, BoundGradient, Dynamics, State
from skbayes_sgld.sampling.metric import Dense
from skbayes_sgld.sampling.samplers.hmc import HMC
from skbayes_sgld.sampling.samplers.leapfrog import unequal_kicks


@dataclass(eq=False)
class SplitGradient(BoundGradient):
    """Gradient from all rows, which knows the steep ones.

    Attributes
    ----------
    steep : RowsToBind or None
    """

    steep: RowsToBind | None = None

    def steep_force(self, metric: Dense, center: Array) -> FollowedForce:
        """Force of the steep rows in the coordinates of a metric."""
        key = id(metric.root), id(center)
        if key not in self._forces:
            assert self.steep is not None
            # the arrays are kept, so that no others have their identities
            bound = self.steep.bound(metric.root, center, self.group)
            self._forces[key] = metric.root, center, bound
        return self._forces[key][2]

    @cached_property
    def _forces(self) -> dict[tuple[int, int], tuple[Array, Array, FollowedForce]]:
        return {}


@dataclass(eq=False, repr=False)
class SplitHMC(HMC):
    """Hamiltonian Monte Carlo with two step sizes.

    An outlying row, such as one that a long-tailed column nearly separates from its class, makes
    the density fall steeply on one side. Leapfrog steps have to be as short as that fall is wide.
    If such rows are few, only their force needs short steps (Sexton & Weingarten 1992; Shahbaba,
    Lan, Johnson & Neal 2014): between two kicks by the rest of the force, a trajectory takes
    several short steps by theirs.

    Parameters
    ----------
    short_step : float, default=0.025
        Largest step along the force of the steep rows.
    """

    short_step: float = 0.025

    def _travel(
        self,
        z: Array,
        momentum: Array,
        force: Array,
        step: Array,
        n_steps: int,
        dynamics: Dynamics,
    ) -> tuple[State, Array]:
        """State and momentum at the end of a trajectory of leapfrog steps of size ``step (C, 1)``.

        The trajectory may be computed in single precision; the density at its end is not.
        """
        gradient, center = dynamics.gradient, dynamics.center
        assert isinstance(gradient, SplitGradient) and center is not None
        metric = dynamics.metric.rounded() if dynamics.rounded else dynamics.metric
        assert isinstance(metric, Dense)
        steep = gradient.steep_force(metric, center)

        def rest_at(z: Array) -> Array:
            theta = metric.sqrt(z) + center.astype(z.dtype, copy=False)
            return metric.sqrt_t(dynamics.gradient_at(theta, None)) + z - steep(z)

        rest = force + z - steep(z)
        way: list[Array] = [a.astype(metric.dtype, copy=False) for a in (z, momentum, rest, step)]
        parts = unequal_kicks(n_steps)
        # a number for all chains, whose steps differ by a jitter
        n_short = int(np.ceil(self.path_length / self.n_points / n_steps / self.short_step))
        z, momentum = split_leapfrog(
            way[0], way[1], way[2], way[3], parts[:, :-1], rest_at, steep, n_short
        )
        z, momentum = z.astype(float, copy=False), momentum.astype(float, copy=False)
        theta = dynamics.metric.sqrt(z) + center
        value, force = self._value_and_force(theta, dynamics)
        momentum = momentum + parts[0, -1] * step * (force + z - steep(z))
        return {"theta": theta, "value": value, "z": z, "force": force}, momentum


def split_leapfrog(
    z: Array,
    momentum: Array,
    rest: Array,
    step: Array,
    parts: Array,
    rest_at: Callable[[Array], Array],
    steep: FollowedForce,
    n_short: int,
) -> tuple[Array, Array]:
    """Follow Hamilton's equations of three forces: ``-z``, that of steep rows, and the rest.

    Parameters
    ----------
    z, momentum, rest : ndarray of shape (C, P)
        Start of the trajectory, and the rest of the force there.
    step : ndarray of shape (C, 1)
        Size of the steps of each chain.
    parts : ndarray of shape (2, n)
        Kicks by the rest of the force, and the drifts after them, in steps.
    rest_at : callable
        The rest of the force at ``z (C, P)``.
    steep : FollowedForce
        Force of the steep rows.
    n_short : int
        Number of short steps of a drift.
    """
    for number, (kick, drift) in enumerate(parts.T.tolist()):
        if number:
            rest = rest_at(z)
        momentum = momentum + (kick * step) * rest
        z, momentum = steep.follow(z, momentum, (drift / n_short) * step, n_short)
    return z, momentum
