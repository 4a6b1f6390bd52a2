"""Means of smooth functions of local parameters, from a few nodes for each row.

A row's local parameters are its predictors and the likelihood's own parameters. Over the draws they
are nearly normal: own parameters are standardised by their mean and covariance, the same for all
rows, and a row's predictors by what own parameters and earlier predictors leave of them. Each
standardised coordinate has the nodes of a Gauss rule, and the nodes of all coordinates form a grid.
The weights of a row's nodes are those of the rules, times a polynomial. It makes the means of all
products of polynomials that the nodes can tell apart those over the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product

import numpy as np
from scipy.special import gammaln

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.mixture import Mixture, solve_quantile

# Least size of an unknown moment, by the number of predictors: two may depend on each other
_LEAST = {1: 0.02, 2: 0.3}
_MOMENT = 0.1  # mean of an orthonormal polynomial of the draws: its expected size
# Numbers of nodes of a coordinate; beyond the last, sums over all draws cost less
_COUNTS = (2, 3, 4, 5, 6, 8, 10, 13)
_CORRELATED = 0.05  # below it coordinates are left as they are: their moments are kept
_FEW_COLUMNS = 8  # of a matrix: with fewer, products with each of them take less time
_MOST_OWN = 8  # nodes of an own parameter that varies more: errors are estimated
_SURE = 4.0  # estimates of errors whose sum none exceeds
_UNSURE = 10.0  # weight of an error that may move a count: nodes are made for ten times the error
_OF_SECOND_MOMENTS = 3  # nodes of a predictor, for which moments of second order suffice
_THINNED = 4  # every so many draws have the third moments that a fourth node needs
_FORMS = 8  # draws for each number of a row's quadratic forms; with fewer these cost more
_ROUNDED = 1e-5  # difference of two means of a log of an own parameter that are equal
_REACH = 3.2  # sds that nodes of predictors reach: most rows have draws beyond


class Rule:
    """Gauss rule of a distribution on some points, and its orthonormal polynomials.

    Attributes
    ----------
    nodes, weights : ndarray of shape (n,)
    basis : ndarray of shape (n, n)
        Polynomials of degrees 0 ... n - 1 at the nodes, a row each.
    of_powers : ndarray of shape (n, n)
        Their coefficients, those of the powers 0 ... n - 1, a row each.
    """

    def __init__(self, points: Array, share: Array, n: int) -> None:
        self._center, self._norm = [], [1.0]
        value, before = np.ones(len(points)), np.zeros(len(points))
        for k in range(n):
            self._center.append(float(share @ (points * value * value)))
            rest = (points - self._center[k]) * value - self._norm[k] * before
            norm = float(np.sqrt(share @ np.square(rest)))
            if norm < 1e-9 or k == n - 1:  # there may be no more different points
                break
            self._norm.append(norm)
            before, value = value, rest / norm
        beside = self._norm[1:]
        self.nodes = np.linalg.eigvalsh(
            np.diag(self._center) + np.diag(beside, 1) + np.diag(beside, -1)
        )
        self.basis = np.stack(list(self.polynomials(self.nodes)))
        self.weights = 1.0 / np.square(self.basis).sum(axis=0)
        self.of_powers = np.linalg.solve(np.vander(self.nodes, increasing=True), self.basis.T).T

    def polynomials(self, x: Array) -> Iterator[Array]:
        """Polynomials at x, by degree."""
        before, value = np.zeros_like(x), np.ones_like(x)
        yield value
        for k in range(len(self._center) - 1):  # the recurrence of three terms
            following = x - x.dtype.type(self._center[k])
            if k:
                following *= value
                following -= x.dtype.type(self._norm[k]) * before
            following *= x.dtype.type(1.0 / self._norm[k + 1])
            before, value = value, following
            yield value


@cache
def _normal_rule(n: int) -> Rule:
    """Rule of the standard normal distribution, cut at the reach."""
    x = np.linspace(-_REACH, _REACH, 401)
    density = np.exp(-0.5 * x * x)
    return Rule(x, density / density.sum(), n)


def count_nodes(extent: Array, error: float) -> Array:
    """Number of nodes of a coordinate for this error of a mean; 0 stands for all draws.

    The extent is the sd of the coordinate, in the unit that makes functions of it change like the
    normal distribution function. Coefficients of that function in Hermite polynomials fall like
    ``(s^2 / (1 + s^2))^(k/2)``.
    """
    number = np.array(_COUNTS, dtype=float).reshape(-1, *[1] * extent.ndim)
    fall = np.square(extent) / (1.0 + np.square(extent))
    enough = _MOMENT * 0.25 * fall ** (0.5 * number) / np.sqrt(number) < 0.15 * error
    counts: Array = np.where(enough.any(axis=0), np.array(_COUNTS)[enough.argmax(axis=0)], 0)
    return counts


class OwnNodes:
    """Nodes of the likelihood's own parameters, the same for all rows.

    Parameters
    ----------
    own : ndarray of shape (S, m)
        Coordinates under every draw.
    share : ndarray of shape (S,)
    error : float
        Largest error of the mean of a distribution function.
    extra : int, default=0
        Nodes of each coordinate beyond those expected to suffice.

    Attributes
    ----------
    white : ndarray of shape (S, m)
        Standardised coordinates under every draw.
    nodes, white_nodes : ndarray of shape (J, m)
        Nodes, and their standardised coordinates.
    values : ndarray of shape (J, S)
        Products of orthonormal polynomials at the draws, times the shares of these.
    degree : ndarray of int of shape (J,)
        Degree of each product.
    basis : ndarray of shape (J, J)
        The products, a row each, at the nodes, times the weights of the nodes.
    counts : ndarray of int of shape (m,)
        Numbers of nodes of the standardised coordinates.
    """

    def __init__(self, own: Array, share: Array, error: float, extra: int = 0) -> None:
        mean = share @ own
        away = own - mean
        covariance = away.T @ (away * share[:, None])
        sd = np.maximum(np.sqrt(np.diag(covariance)), 1e-12)
        jitter = 1e-9 * np.eye(len(sd))
        root = sd[:, None] * np.linalg.cholesky(covariance / np.outer(sd, sd) + jitter)
        self.white = np.linalg.solve(root, away.T).T
        # a distribution function changes at most half as fast as these coordinates
        counts = count_nodes(0.5 * np.sqrt(np.square(root).sum(axis=0)), error)
        rules = [
            Rule(z, share, int(n or _MOST_OWN) + extra)
            for z, n in zip(self.white.T, counts, strict=True)
        ]
        grid = list(product(*(rule.nodes for rule in rules)))
        self.white_nodes = np.array(grid).reshape(len(grid), len(rules))
        self.nodes = mean + self.white_nodes @ root.T
        values: Array = share[:, None]
        self.basis: Array = np.ones((1, 1))
        self.counts = np.array([len(rule.nodes) for rule in rules], dtype=int)
        for rule, z in zip(rules, self.white.T, strict=True):
            at_draws = np.stack(list(rule.polynomials(z)), axis=1)
            values = (values[:, :, None] * at_draws[:, None]).reshape(len(own), -1)
            self.basis = np.kron(self.basis, rule.basis * rule.weights)
        self.values = np.ascontiguousarray(values.T)
        self.degree = np.array([sum(each) for each in product(*map(range, self.counts))])


class Nodes(Mixture):
    """Distributions of several rows' observations, averaged over nodes.

    Attributes
    ----------
    u : ndarray of shape (n, n_local, m)
        Local parameters at the nodes.
    weights : ndarray of shape (n, m)
        May be negative; their sum is 1 in each row.
    """

    def __init__(self, u: Array, weights: Array, size: Array, quadrature: Quadrature) -> None:
        super().__init__(u, weights)
        self._size, self._quadrature = size, quadrature
        self.error: Array = np.zeros(len(u))

    def change_units(self) -> None:
        """Change to units of each row, given by location and log variance, in single precision."""
        origin, log_variance = self.u[:, :2].mean(axis=2).T
        unit = np.exp(0.5 * log_variance)
        self.origin, self.unit = origin, unit
        self.u[:, 0] -= origin[:, None]
        self.u[:, 0] /= unit[:, None]
        self.u[:, 1] -= log_variance[:, None]
        self.u = self.u.astype(np.float32)

    def mean(self, function: Callable[[Array, Array], Array], rows: Array) -> Array:
        """Means ``(r,)`` over the nodes of a function, for the rows at some positions."""
        part = slice(None) if len(rows) == len(self.u) else rows
        return self.average(function(self.u[part], rows), part)

    def average(self, values: Array, rows: Array | slice) -> Array:
        """Means ``(r,)`` over the nodes of values ``(r, m)`` of some of the rows."""
        if self.estimates:
            error, self.last = self._quadrature.error(values, self._size[rows])
            self.error[rows] = np.maximum(self.error[rows], error / self.scale)
        return np.einsum("ij,ij->i", values, self.weights[rows])

    def quantile(
        self,
        of: Callable[[Array, Array], Array],
        q: float,
        start: Array,
        unit: Array,
        whole: bool = False,
    ) -> Array:
        """Quantiles ``(n,)`` as those of a mixture, whose errors are added to the others.

        A whole number has no error if that of its level cannot move it.
        """
        before, self.error = self.error, np.zeros(len(self))
        quantile, _, margin = solve_quantile(self.cdf(of), q, start, unit, whole)
        error, self.error = self.error, before
        if whole:
            self.settle(error, margin)
        else:
            self.error = np.maximum(before, error)
        return quantile

    def settle(self, error: Array | float, margin: Array) -> None:
        """Count the errors of levels, but for those that cannot move a whole number."""
        counted = np.where(_SURE * error * self.scale < margin, 0.0, _UNSURE * error)
        self.error = np.maximum(self.error, counted)

    def some(self, rows: Array) -> Nodes:
        """Nodes of some of the rows."""
        return Nodes(self.u[rows], self.weights[rows], self._size[rows], self._quadrature)

    def add_errors(self, rows: Array, some: Mixture) -> None:
        """Add the errors of mixtures of some of the rows to those of these rows."""
        self.error[rows] = np.maximum(self.error[rows], some.error)

    def center(self) -> Array:
        """Mean local parameters ``(n, n_local, 1)``, where a search begins."""
        center = np.einsum("ijk,ik->ij", self.u, self.weights)
        # own parameters differ by rounding: functions of equal ones are computed once
        equal = np.abs(center - center[:1]).max(axis=0) < _ROUNDED
        center[:, equal] = center[:1, equal]
        return center[..., None]


class Quadrature:
    """Function from rows' predictors to their nodes.

    Parameters
    ----------
    n : int
        Number of nodes of each predictor.
    n_predictors : int
    share : ndarray of shape (S,)
    own : OwnNodes
    within : bool
        Whether nodes have to be within the draws, because a mean may overflow beyond them.

    Attributes
    ----------
    n_nodes : int
        Number of nodes of a row.
    """

    def __init__(
        self, n: int, n_predictors: int, share: Array, own: OwnNodes, within: bool
    ) -> None:
        self._within = within
        self._to_moments: Array = np.ones((1, 1))
        self._rule, self._share, self._own = _normal_rule(n), share, own
        self._double = own.values, own.white
        self._single = own.values.astype(np.float32), own.white.astype(np.float32)
        self._grid = np.array(list(product(self._rule.nodes, repeat=n_predictors)))
        self._basis = np.ones((1, 1))
        for _ in range(n_predictors):
            self._basis = np.kron(self._basis, self._rule.basis * self._rule.weights)
            self._to_moments = np.kron(self._to_moments, self._rule.of_powers)
        self._degree = np.array([sum(each) for each in product(range(n), repeat=n_predictors)])
        both = np.kron(self._basis, own.basis)
        self.n_nodes = len(both)
        degrees = list(product(*[range(n)] * n_predictors, *map(range, own.counts)))
        counts = np.array([*[n] * n_predictors, *own.counts])
        self.error = _Error(both, np.array(degrees), counts, n_predictors)

    def __call__(self, center: Array, sd: Array, z: Array) -> tuple[Array, Array, Array]:
        """Nodes ``(n, n_local, m)``, weights ``(n, m)``, and sizes of the last moments ``(n,)``.

        A row with nodes beyond its draws, where a mean may overflow, has the size nan.

        Parameters
        ----------
        center, sd : ndarray of shape (K, n)
            Mean and sd of the predictors.
        z : ndarray of shape (K, n, S)
            Each draw's predictors minus their means, over their sds; overwritten.
        """
        (K, n, _), dtype = z.shape, z.dtype
        values, white = self._single if dtype == np.float32 else self._double
        share, m = self._share.astype(dtype), white.shape[1]
        # predictors are the root times standardised coordinates, plus the slopes times own ones
        root, slope, beyond = np.zeros((K, K, n)), np.zeros((K, n, m)), np.zeros(n, bool)
        for k, each in enumerate(z):
            changed, of_own = False, each @ (share[:, None] * white)
            if np.abs(of_own).max(initial=0.0) > _CORRELATED:
                each -= of_own @ white.T
                slope[k], changed = of_own, True
            for j in range(k):
                of_other = (each * z[j]) @ share
                if np.abs(of_other).max() > _CORRELATED:
                    each -= of_other[:, None] * z[j]
                    root[k, j], changed = of_other, True
            root[k, k] = 1.0
            if changed:
                left = np.sqrt(np.square(each) @ share)
                each *= np.divide(1.0, left, where=left > 0, out=np.ones_like(left))[:, None]
                root[k, k] = left
            if self._within:
                low, high = self._rule.nodes[[0, -1]]
                least, most = each.min(axis=1), each.max(axis=1)
                beyond |= (least < most) & ((least > low) | (most < high))
        return self._at(center, sd, root, slope, self._moments(z, values), beyond)

    def by_moments(
        self, directions: Array, may_be_rough: bool = False
    ) -> Callable[[Array, Array, Array], tuple[Array, Array, Array]] | None:
        """Function as :meth:`__call__`, for z of products with the directions; None if it is slow.

        It takes the coefficients ``(K, n, m)`` of the directions ``(K, m, S)`` in place of z.
        Moments of second order are quadratic forms of the coefficients, which take a tenth of the
        time of sums over the draws, and suffice for up to three nodes. If weights ``may_be_rough``,
        four nodes have moments of third order over some of the draws. Nodes may be beyond the
        draws.
        """
        own, (K, m, S), n = self._own, directions.shape, len(self._rule.nodes)
        known = own.white.shape[1]
        D, has_third = K * m + known, n == _OF_SECOND_MOMENTS + 1
        most = _OF_SECOND_MOMENTS + (may_be_rough and np.ptp(self._share) == 0.0)
        if n > most or (1 + known) * D * _FORMS > S:
            return None
        every = np.concatenate([*directions, own.white.T])
        if has_third:
            some = every[:, ::_THINNED].astype(np.float32)
            of_some = (own.values[:, ::_THINNED] * (S / some.shape[1])).astype(np.float32)
            self.error.noise = float(1.0 / np.sqrt(some.shape[1]))
        first = every @ own.values.T
        low = np.flatnonzero(own.degree < n - 1).tolist()
        forms = {j: (every * own.values[j]) @ every.T for j in low}
        covariance = forms[0]

        def nodes_of(center: Array, sd: Array, a: Array) -> tuple[Array, Array, Array]:
            n_rows = a.shape[1]
            root, slope = np.zeros((K, K, n_rows)), np.zeros((K, n_rows, known))
            z = np.zeros((K, n_rows, D))
            for k, each in enumerate(z):
                each[:, k * m : (k + 1) * m] = a[k]
                slope[k] = each @ covariance[:, K * m :]
                each[:, K * m :] -= slope[k]
                of_each = each @ covariance
                for j in range(k):
                    root[k, j] = np.einsum("ij,ij->i", of_each, z[j])
                    each -= root[k, j][:, None] * z[j]
                left = np.sqrt(np.maximum(np.einsum("ij,ij->i", each @ covariance, each), 0.0))
                each *= np.divide(1.0, left, where=left > 0, out=np.ones_like(left))[:, None]
                root[k, k] = left
            moments = np.zeros((n_rows, len(self._degree), len(own.values)))  # of powers
            moments[:, 0] = own.values.sum(axis=1)
            for k, each in enumerate(z):
                at = n ** (K - 1 - k)
                moments[:, at] = np.where(own.degree < n, each @ first, 0.0)
                for number, form in forms.items() if n > 2 else ():
                    of_each = each @ form
                    for other in range(k, K):
                        both = at + n ** (K - 1 - other)
                        moments[:, both, number] = np.einsum("ij,ij->i", of_each, z[other])
            moments = self._to_moments @ moments
            if has_third:
                third = self._degree == n - 1
                moments[:, third] = self._moments(z.astype(np.float32) @ some, of_some)[:, third]
            return self._at(center, sd, root, slope, moments, np.zeros(n_rows, bool))

        return nodes_of

    def _at(
        self, center: Array, sd: Array, root: Array, slope: Array, moments: Array, beyond: Array
    ) -> tuple[Array, Array, Array]:
        """Nodes, weights and sizes, given the means of products of orthonormal polynomials."""
        own, (K, n) = self._own, center.shape
        moments[:, self._degree >= len(self._rule.nodes)] = 0.0  # left out
        weights = (self._basis.T @ moments @ own.basis).reshape(n, -1)
        nodes = np.empty((n, K + own.nodes.shape[1], len(self._grid), len(own.nodes)))
        at = np.einsum("kjn,gj->nkg", root * sd[:, None], self._grid) + center.T[:, :, None]
        beside = np.einsum("knm,jm->nkj", slope * sd[..., None], own.white_nodes)
        nodes[:, :K] = at[..., None] + beside[:, :, None]
        nodes[:, K:] = own.nodes.T[:, None]
        nodes[beyond] = nodes[beyond][..., :1, :1]
        last = moments[:, self._degree >= max(len(self._rule.nodes) - 2, 3)]
        size = np.where(beyond, np.nan, np.sqrt(np.square(last).sum(axis=1).max(axis=1)))
        return nodes.reshape(n, nodes.shape[1], -1), weights, size

    def _moments(self, z: Array, values: Array) -> Array:
        """Means ``(n, n_products, J)`` over the draws of products of polynomials.

        Products of predictors that have a larger degree than one predictor has alone are left out,
        and those whose degree, with own parameters, exceeds the number of nodes.
        """
        (K, n_rows, _), n = z.shape, len(self._rule.nodes)
        moments = np.zeros((n_rows, len(self._degree), len(values)))  # of powers
        moments[:, 0] = self._own.values.sum(axis=1)
        power, others = None, [None]
        for _ in range(1, n if K == 2 else 1):
            last = others[-1]
            others.append(z[1] if last is None else last * z[1])
        for a in range(n):
            if a:
                power = z[0] if power is None else power * z[0]
            for b, other in enumerate(others[: n - a]):
                if power is None or other is None:
                    both = power if other is None else other
                else:
                    both = power * other
                if both is not None:
                    at, kept = a * len(others) + b, self._own.degree <= n - a - b
                    if kept.sum() < _FEW_COLUMNS:
                        for column in np.flatnonzero(kept):
                            moments[:, at, column] = both @ values[column]
                    else:
                        moments[:, at] = both @ values.T
        return self._to_moments @ moments


class _Error:
    """Function that estimates errors of means over nodes, from values at the nodes.

    Coefficients of products of polynomials are taken to fall like those of ``exp(a z)``,
    ``a^k / sqrt(k!)``, and moments to be those of the last two degrees. Coordinates that are normal
    add the error that their Gauss rule has for this exponential.

    Parameters
    ----------
    coefficients : ndarray of shape (m, m)
        Matrix from values at the nodes to coefficients of products.
    degrees : ndarray of shape (m, n_coordinates)
        Degree of every product in each coordinate.
    counts : ndarray of shape (n_coordinates,)
        Numbers of nodes.
    n_predictors : int
        Number of coordinates of predictors, which are the first.

    Attributes
    ----------
    noise : float
        Standard error of a moment of the last degree in the predictors.
    """

    noise = 0.0

    def __init__(
        self, coefficients: Array, degrees: Array, counts: Array, n_predictors: int
    ) -> None:
        of_predictors, self._n = degrees[:, :n_predictors].sum(axis=1), int(counts[0])
        self._least = _LEAST[n_predictors]
        # one of the last two may be 0 by chance
        last = [d for d in (self._n - 1, self._n - 2) if d > 0]
        self._last = [(d, coefficients[of_predictors == d].T) for d in last]
        several = np.flatnonzero(counts > 1)
        at_end = [degrees[:, k] == counts[k] - 1 for k in several]
        alone = [
            of & (degrees.sum(axis=1) == counts[k] - 1)
            for of, k in zip(at_end, several, strict=True)
        ]
        self._alone = coefficients[np.array(alone).argmax(axis=1)].T
        self._counts = counts[several]
        # (2n)! / n!, by which the error of a Gauss rule falls
        self._steps = np.exp(gammaln(2 * self._counts + 1) - gammaln(self._counts + 1))
        self._crossed = [
            (number, coefficients[of & (of_predictors > 0)].T)
            for number, of in enumerate(at_end)
            if number >= n_predictors
        ]

    def __call__(self, values: Array, size: Array) -> tuple[Array, Array]:
        """Estimated error of the mean of the values ``(n, m)`` at the nodes, and last coefficient.

        ``size (n,)`` are the sizes of the last moments.
        """
        size = np.maximum(size, self._least)
        norms = [_norm(values @ each) for _, each in self._last]
        rates = [_rate(norm, degree) for norm, (degree, _) in zip(norms, self._last, strict=True)]
        left_out = np.maximum.reduce(rates) ** self._n / np.exp(0.5 * gammaln(self._n + 1)) * size
        if self.noise:
            left_out += self.noise * norms[0]
        last = np.abs(values @ self._alone)
        alone = _rate(last, self._counts - 1)
        for number, crossed in self._crossed:
            fall = alone[:, number] / np.sqrt(self._counts[number])
            left_out += _norm(values @ crossed) * fall * size
        gauss = (alone ** (2 * self._counts) / self._steps).sum(axis=1)
        return 2.5 * left_out + gauss, last.max(axis=1)


def _norm(vectors: Array) -> Array:
    norm: Array = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return norm


def _rate(coefficient: Array, degree: Array | int) -> Array:
    """Rate a of an exponential ``exp(a z)`` that has this coefficient of some degree."""
    rate: Array = (coefficient * np.exp(0.5 * gammaln(degree + 1))) ** (1.0 / np.asarray(degree))
    return rate
