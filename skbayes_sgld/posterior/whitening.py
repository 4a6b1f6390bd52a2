"""The base of posteriors in whitened coordinates, and rows that are taken there."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from skbayes_sgld._random import start_normals
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.base import BasePosterior


class WhitenedPosterior(BasePosterior):
    """A posterior in the coordinates z of a metric about a centre, ``theta = center + root z``.

    Attributes
    ----------
    softness : float
        Length scale of the typical row's log likelihood; a leapfrog step is about as long.
    work : float
        Cost of a gradient at one position, in multiplications of a matrix product.
    center : ndarray of shape (P,)
    root, inverse_t : ndarray of shape (P, P), or (P,) of a diagonal metric
        R and ``R^{-T}``, with ``R R^T`` the metric.
    inverse : ndarray of shape (P, P)
        Inverse of the metric.
    n_together : int
        Largest efficient batch of positions: a product of fewer costs nearly as much.
    n_fewest : int
        Smallest batch of positions: a product of fewer costs as much.
    group : int
        Neighbouring positions of one product; the rounding of a position depends on its place.
    learns : bool
        Whether a pilot's draws improve its centre and metric, by :meth:`matched`.
    collapsed : bool
        Whether the noise of the rows is integrated out; it is then a
        :class:`CollapsedPosterior`.
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
    learns = False
    collapsed = False

    def work_of(self, n_steps: int) -> float:
        """Cost of a trajectory of ``n_steps`` gradients, in multiplications."""
        return self.work * n_steps

    def locate(self, z: Array) -> Array:
        """``center + root z`` for each row of ``z (C, P)``; the root is diagonal."""
        return self.center + self.root * z

    def rounding(self, posterior: BasePosterior) -> float:
        """Largest error of a log density, or norm of a gradient's error, at a few normal points."""
        # other numbers than a generator's first, which may be the user's rows
        z = start_normals(0, range(4), self.n_params)
        exact, slope = posterior.value_and_grad(self.locate(z))
        value, grad = self.value_and_grad(z)
        error = grad - (slope * self.root if self.root.ndim == 1 else slope @ self.root)
        return float(max(np.abs(value - exact).max(), np.linalg.norm(error, axis=1).max()))

    def matched(self, draws: Array, temperature: float) -> WhitenedPosterior:
        """Posterior centred on the mean of draws ``(S, P)`` of theta, in a metric that fits."""
        return self


class CollapsedPosterior(WhitenedPosterior):
    """Whitened posterior whose trajectories move v, the rows' predictors minus their noise.

    Chains move in duals ``(C, ...)``, of which v and the intercept are functions.

    Attributes
    ----------
    n_rows : int
    """

    collapsed = True
    n_rows: int

    def first(self, generators: list[np.random.Generator]) -> Array:
        """Duals from which a sampler that rejects may begin, a chain from each generator."""
        raise NotImplementedError

    def move(
        self, dual: Array, step: Array, n_steps: int, generators: list[np.random.Generator]
    ) -> tuple[Array, Array]:
        """Ends of trajectories of leapfrog steps ``(C,)``, and their gain of log density."""
        raise NotImplementedError

    def leave(self, dual: Array, generators: list[np.random.Generator]) -> Array:
        """Whitened positions z ``(C, P)``, drawn given duals."""
        raise NotImplementedError

    @staticmethod
    def _normals(generators: list[np.random.Generator], size: int) -> Array:
        """Standard normals ``(C, size)``, those of each chain from its own generator."""
        normals = np.empty((len(generators), size), np.float32)
        for rng, row in zip(generators, normals, strict=True):
            rng.standard_normal(dtype=np.float32, out=row)
        return normals

    @staticmethod
    def _sums(x: Array) -> Array:
        """Sums ``(C,)`` of ``x (C, n)``, in double precision, independent of other chains."""
        return x.astype(float).sum(axis=1)


class FollowedForce(Protocol):
    """Force of some rows in whitened coordinates, which trajectories follow in short steps."""

    def __call__(self, z: Array) -> Array:
        """Force ``(C, P)`` at ``z (C, P)``."""
        ...

    def follow(self, z: Array, momentum: Array, short: Array, n_short: int) -> tuple[Array, Array]:
        """Position and momentum after ``n_short`` steps of sizes ``short (C, 1)``."""
        ...


class RowsToBind(Protocol):
    """Some rows, whose force is known in the coordinates of any metric."""

    def bound(self, root: Array, center: Array, group: int | None) -> FollowedForce:
        """Force of the rows in coordinates z, ``theta = center + root z``.

        Products take ``group`` positions at once; None takes all.
        """
        ...
