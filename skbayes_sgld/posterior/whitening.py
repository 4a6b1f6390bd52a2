"""The base of posteriors in whitened coordinates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.base import BasePosterior

Array = NDArray[Any]


class WhitenedPosterior(BasePosterior):
    """A posterior in the coordinates z of a metric about a centre, ``theta = center + root z``.

    Attributes
    ----------
    softness : float
        Distance over which the typical row's log likelihood bends: a step of leapfrog is about
        as long.
    work : float
        Multiplications that a gradient at one position takes, or what takes as long, of a product
        of matrices.
    center : ndarray of shape (P,)
    root, inverse_t : ndarray of shape (P, P), or (P,) of a diagonal metric
        R and ``R^{-T}``, with ``R R^T`` the metric.
    inverse : ndarray of shape (P, P)
        Inverse of the metric.
    n_together : int
        Positions of a product that costs little more than one of fewer.
    n_fewest : int
        Positions of a product that costs no more than one of fewer.
    group : int
        Neighbouring positions of one product: how a position is rounded depends on its place there.
    collapsed : bool
        Whether noise of the rows is integrated out of what trajectories follow; it is then a
        :class:`CollapsedPosterior`.
    as_columns : bool
        Whether trajectories hold positions as columns ``(P, C)``, not as rows.
    """

    center: Array
    softness: float
    work: float
    root: Array
    inverse_t: Array
    inverse: Array
    n_together = 32
    n_fewest = 4
    group = 1
    collapsed = False
    as_columns = False

    def work_of(self, n_steps: int) -> float:
        """Multiplications of a trajectory of so many gradients, or what takes as long."""
        return self.work * n_steps

    def locate(self, z: Array) -> Array:
        """``center + root z`` for each row of ``z (C, P)``, of a diagonal metric."""
        return self.center + self.root * z

    def travel(self, z: Array, momentum: Array, maps: Array, n_steps: int) -> tuple[Array, Array]:
        """Positions and momenta ``(C, P)`` at the ends of trajectories.

        Before each of ``n_steps`` gradients a linear map of position, gradient and momentum to
        position and momentum is made, and one after the last: ``maps (C, 3, 2, 3)`` are the first
        of them, those that follow, and the last.
        """
        place, moving = self.held(z), self.held(momentum)
        # a number a chain, along the axis of the chains
        sizes = maps.astype(np.float32).transpose(1, 2, 3, 0)
        step, whole, last = sizes if self.as_columns else sizes[..., None]
        force = np.zeros_like(place)
        for _ in range(n_steps):
            place, moving = moved(step, place, force, moving)
            step, force = whole, self.force(place)
        place, moving = moved(last, place, force, moving)
        return self.released(place), self.released(moving)

    def held(self, z: Array) -> Array:
        """Positions ``(C, P)`` as trajectories hold them, in single precision."""
        return np.ascontiguousarray(z.T if self.as_columns else z, dtype=np.float32)

    def released(self, place: Array) -> Array:
        """Positions ``(C, P)`` in double precision, of those that are held."""
        return np.asarray(place.T if self.as_columns else place, dtype=float)

    def force(self, place: Array) -> Array:
        """Gradient at positions that are held, as they are."""
        raise NotImplementedError

    def grad(self, z: Array) -> Array:
        """Gradient at ``z (C, P)``."""
        return self.released(self.force(self.held(z)))

    def value_and_grad(self, z: Array) -> tuple[Array, Array]:
        """Log density ``(C,)`` and gradient at ``z (C, P)``."""
        return self.log_density(z), self.grad(z)

    def matched(self, draws: Array, temperature: float) -> WhitenedPosterior:
        """Posterior about the mean of ``draws (S, P)`` of theta, in a metric that fits these."""
        raise NotImplementedError


def moved(step: Array, place: Array, force: Array, moving: Array) -> tuple[Array, Array]:
    """Linear map ``step (2, 3, ...)`` of positions, forces and momenta to positions and momenta."""
    ends = []
    for of_place, of_force, of_moving in step:
        end = of_place * place
        end += of_force * force
        end += of_moving * moving
        ends.append(end)
    return ends[0], ends[1]


class Place(NamedTuple):
    """Where collapsed trajectories are: duals ``(n, C)``, the intercept's, and v of the duals."""

    dual: Array
    level: Array
    value: Array


class CollapsedPosterior(WhitenedPosterior):
    """A whitened posterior whose trajectories are of v, the rows' predictors less their own noise.

    Attributes
    ----------
    n_rows : int
    """

    collapsed = True
    n_rows: int

    def enter(self, z: Array, generators: list[np.random.Generator]) -> Place:
        """Place given ``z (C, P)``, drawn from its distribution."""
        raise NotImplementedError

    def place(self, dual: Array, level: Array) -> Place:
        """Place of duals ``(n, C)``."""
        raise NotImplementedError

    def potential(self, place: Place) -> Array:
        """Minus the log density ``(C,)`` of a place."""
        raise NotImplementedError

    def momentum(self, generators: list[np.random.Generator]) -> Place:
        """Momentum of a trajectory."""
        raise NotImplementedError

    def kinetic(self, momentum: Place) -> Array:
        """Kinetic energy ``(C,)``."""
        raise NotImplementedError

    def follow(
        self, place: Place, momentum: Place, step: Array, n_steps: int
    ) -> tuple[Place, Place]:
        """Ends of trajectories of leapfrog steps ``(C,)``."""
        raise NotImplementedError

    def leave(self, place: Place, generators: list[np.random.Generator]) -> Array:
        """Whitened positions z ``(C, P)``, drawn given where trajectories are."""
        raise NotImplementedError

    def uncollapsed(self) -> WhitenedPosterior | None:
        """The posterior for samplers that follow the likelihood itself."""
        raise NotImplementedError
