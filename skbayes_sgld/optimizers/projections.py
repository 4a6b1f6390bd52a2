"""Projections: an optimizer's path is kept in a convex set of coefficients.

A step in metric M that leaves the set is projected onto the point of the set nearest in M, rather
than in the units of the parameters: only then does the path converge to the constrained mode
(Duchi, Hazan & Singer 2011, Section 1). Without a preconditioner M is the identity, and this is the
usual projected gradient method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from skbayes_sgld._checks import array_of, check_array_or_number, check_number
from skbayes_sgld._components import Component, Registry
from skbayes_sgld._typing import Array

_ROUNDS = 100  # limit of Newton's method, which needs a few
_ROUNDING = 1e-12


class Projection(Component):
    """A closed convex set of coefficients; the base class is the whole space."""

    def check_size(self, n_coef: int) -> None:
        """Raise if a parameter of the set does not fit ``n_coef`` coefficients."""

    def nearest(self, coef: Array) -> Array:
        """Points of the set nearest to ``coef (C, d)`` in Euclidean distance."""
        return coef

    def shortest(self, coef: Array, root: Array) -> tuple[Array, Array]:
        """Shortest ``y`` for which ``coef + root y`` is in the set.

        Parameters
        ----------
        coef : ndarray of shape (C, d)
            Outside the set.
        root : ndarray of shape (C, d, P)

        Returns
        -------
        y : ndarray of shape (C, P)
        reached : ndarray of shape (C, d)
            Coefficients at y, exactly on the edge of the set.
        """
        raise self._undefined("shortest")


class BoundProjection:
    """The projection of parameters whose coefficients are to be in a set.

    Parameters
    ----------
    projection : Projection
    n_coef : int
        Number of coefficients, the first of the parameters; the others are free.

    Raises
    ------
    ValueError
        If the set is one of another number of coefficients.
    """

    def __init__(self, projection: Projection, n_coef: int) -> None:
        projection.check_size(n_coef)
        self._set, self._n_coef = projection, n_coef

    def outside(self, theta: Array) -> Array:
        """Whether each of the points ``theta (C, P)`` is outside the set ``(C,)``."""
        coef = theta[:, : self._n_coef]
        return (self._set.nearest(coef) != coef).any(axis=1)

    def __call__(self, theta: Array, root: Array) -> Array:
        """Nearest parameters in the set ``(C, P)``; ``theta`` itself if all of it is inside.

        Parameters
        ----------
        theta : ndarray of shape (C, P)
        root : ndarray of shape (P, P) or (C, P, P)
            Root of the metric: the distance of u and v is ``|root^{-1} (u - v)|``.
        """
        outside = self.outside(theta)
        if not outside.any():
            return theta
        root = np.broadcast_to(root, (len(theta), *root.shape[-2:]))[outside]
        coef = theta[outside, : self._n_coef]
        y, reached = self._set.shortest(coef, root[:, : self._n_coef])
        projected = theta.copy()
        projected[outside] += np.einsum("cpq,cq->cp", root, y)
        projected[outside, : self._n_coef] = reached
        return projected


@dataclass(eq=False, repr=False)
class Box(Projection):
    """Bounds on the coefficients.

    Under a diagonal metric every coefficient is clipped. Otherwise the nearest point solves a least
    distance problem, by scipy's ``nnls`` at every step (Lawson & Hanson 1974, Algorithm LDP,
    23.27). This is expensive beyond about a hundred columns.

    Parameters
    ----------
    low : float or array-like of shape (n_features,), default=0.0
        With the defaults no coefficient is negative.
    high : float or array-like of shape (n_features,), default=inf

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.optimizers import Box
    >>> from skbayes_sgld.optimizers.projections import BoundProjection
    >>> positive = BoundProjection(Box(), n_coef=2)
    >>> theta = np.array([[-1.0, 0.0]])
    >>> positive(theta, np.eye(2)).tolist()
    [[0.0, 0.0]]
    >>> correlated = np.linalg.cholesky([[1.0, 0.5], [0.5, 1.0]])
    >>> positive(theta, correlated).round(6).tolist()
    [[0.0, 0.5]]
    """

    low: ArrayLike = 0.0
    high: ArrayLike = np.inf

    def check(self) -> None:
        """Raise if the bounds are not numbers or the set is empty."""
        self.check_size(None)

    def check_size(self, n_coef: int | None) -> None:
        """Raise if the bounds do not fit ``n_coef`` coefficients."""
        for name, value in (("low", self.low), ("high", self.high)):
            array = array_of(value)
            finite = np.where(np.isinf(array), 0.0, array) if array.dtype.kind == "f" else value
            check_array_or_number(finite, f"projection.{name}", n_coef)
        low, high = np.asarray(self.low), np.asarray(self.high)
        if not (np.all(low <= high) and np.all(low < np.inf) and np.all(high > -np.inf)):
            raise ValueError(
                f"projection.low={self.low!r} and projection.high={self.high!r} leave nothing "
                "between them; no low may be above its high, nor be inf, nor a high be -inf."
            )

    def nearest(self, coef: Array) -> Array:
        """Coefficients clipped to the bounds."""
        return np.clip(coef, self.low, self.high)

    def shortest(self, coef: Array, root: Array) -> tuple[Array, Array]:
        """Shortest move into the box, and the coefficients at its end."""
        low, high = (np.broadcast_to(b, coef.shape) for b in (self.low, self.high))
        metric = root @ root.swapaxes(1, 2)
        variance = np.diagonal(metric, axis1=1, axis2=2)
        if np.count_nonzero(metric) == np.count_nonzero(variance):
            reached = np.clip(coef, low, high)
            return np.einsum("cdp,cd->cp", root, (reached - coef) / variance), reached
        A = np.concatenate([root, -root], axis=1)
        b = np.hstack([low - coef, coef - high])
        # nnls takes one problem at a time, and the estimators' optimizers run one chain
        solved = [_least_distance(*problem) for problem in zip(A, b, strict=True)]
        y, on_edge = (np.stack(part) for part in zip(*solved, strict=True))
        reached = np.clip(coef + np.einsum("cdp,cp->cd", root, y), low, high)
        at_low, at_high = np.hsplit(on_edge, 2)
        return y, np.where(at_low, low, np.where(at_high, high, reached))


def _least_distance(A: Array, b: Array) -> tuple[Array, Array]:
    """Shortest ``y`` with ``A y >= b``; some element of b is positive.

    The second array says which of the inequalities are active.
    """
    finite, binding = np.isfinite(b), np.zeros(len(b), dtype=bool)
    A, b = A[finite], b[finite]
    unit = (b / np.linalg.norm(A, axis=1)).max()  # least length of y, to scale the problem by
    E = np.vstack([A.T, b / unit])
    f = np.zeros(len(E))
    f[-1] = 1.0
    dual = nnls(E, f)[0]
    residual = E @ dual - f
    binding[finite] = dual > 0
    return -unit * residual[:-1] / residual[-1], binding


@dataclass(eq=False, repr=False)
class Ball(Projection):
    """A bound on the coefficients' distance from a centre: ``|coef - center| <= radius``.

    The nearest point in a metric M is ``center + (I + m M)^{-1} (coef - center)``, with the m that
    puts it on the sphere (Moré & Sorensen 1983, Section 2).

    Parameters
    ----------
    radius : float, default=1.0
        In units of the coefficients.
    center : float or array-like of shape (n_features,), default=0.0

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.optimizers import Ball
    >>> Ball(radius=5.0).nearest(np.array([[6.0, 8.0], [1.0, 2.0]])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """

    radius: float = 1.0
    center: ArrayLike = 0.0

    def check(self) -> None:
        """Raise if the radius is not positive or the centre is not numeric."""
        check_number(self.radius, "projection.radius", low=0)
        check_array_or_number(self.center, "projection.center", None)

    def check_size(self, n_coef: int) -> None:
        """Raise if the centre does not fit ``n_coef`` coefficients."""
        check_array_or_number(self.center, "projection.center", n_coef)

    def nearest(self, coef: Array) -> Array:
        """Coefficients; those outside the ball are moved towards the centre, onto its surface."""
        arm = coef - self.center
        length = np.linalg.norm(arm, axis=1, keepdims=True)
        outside = length > self.radius * (1.0 + _ROUNDING)
        return np.where(outside, self.center + arm * self.radius / np.maximum(length, 1e-300), coef)

    def shortest(self, coef: Array, root: Array) -> tuple[Array, Array]:
        """Shortest move into the ball, and the coefficients at its end."""
        arm = coef - self.center
        values, vectors = np.linalg.eigh(root @ root.swapaxes(1, 2))
        turned = np.einsum("cji,cj->ci", vectors, arm)
        multiplier = np.zeros((len(arm), 1))
        for _ in range(_ROUNDS):
            # Newton's method from below does not overshoot: 1 / length is concave in the multiplier
            shrunk = turned / (1.0 + multiplier * values)
            length = np.linalg.norm(shrunk, axis=1, keepdims=True)
            excess = length / self.radius - 1.0
            if np.all(excess <= _ROUNDING):
                break
            slope = (np.square(shrunk) * values / (1.0 + multiplier * values)).sum(1, keepdims=True)
            multiplier = multiplier + excess * np.square(length) / slope
        arm = np.einsum("cij,cj->ci", vectors, shrunk)
        y = np.einsum("cdp,cd->cp", root, -multiplier * arm)
        return y, self.center + arm / length * self.radius


PROJECTIONS: Registry[Projection] = Registry(Projection, box=Box, ball=Ball)
