"""A log likelihood without effects as a polynomial, fitted to few exact values and gradients.

With many labels the posterior of coefficients, hyperparameters and own parameters is nearly normal:
in standardised coordinates z the terms of degree k of its log density are of order
``n_labels ** (1 - k / 2)``. So are the moments of the effects given z, which are regressed on z.
A step then reads no rows.

Most of it is known without further passes: the normal model at the joint mode has a likelihood in
closed form, and few exact values are enough for what is left, a polynomial of low degree.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.by_label import (
    Found,
    LabelQuadrature,
    Moments,
    normal_mean_and_root,
    parameters_without_effects,
)
from skbayes_sgld.mixed.coordinates import JointMode, StandardNormals
from skbayes_sgld.mixed.posterior import MixedPosterior
from skbayes_sgld.posterior.parameters import Parameters
from skbayes_sgld.priors.group import LearnedCovariance

_MOST_TERMS = 1500
_DEGREES = (2, 3, 4)
_NORMAL_DEGREE, _NORMAL_POINTS = 4, 6  # of the normal model; points for each term
_EQUATIONS = 2.2  # for each term of a polynomial
_WIDTH = 1.25  # sd of the points of the fit
_BEYOND = 2.5  # sds from the typical distance, the farthest points of the fit
_TESTS, _CLOSE = (3, 60), 0.04  # draws of a check, and the largest error there
_ROUNDS = 3  # refits with the points of checks
_PROPOSALS, _HEAVY = 4000, 3.0  # draws of a t distribution and its degrees of freedom
_NEGLIGIBLE = 8.0  # fall of a log density
# numbers of nodes and of Newton's steps, and those with which they are compared
_LEVELS = ((3, 0), (3, 1), (5, 1), (7, 2), (9, 2), (13, 2))
_ABOVE = ((9, 2), (9, 2), (9, 2), (9, 2), (13, 2), (19, 2))
_FAR_FROM_ZERO = 6.0  # sds of a scale that is not 0
_BLOCKS = 16  # blocks of labels at which they are compared


class Whitening:
    """Map between theta and standardised coordinates z, with hyper- and own parameters first in z.

    Parameters
    ----------
    center : ndarray of shape (P,)
        Theta at z = 0.
    root : ndarray of shape (P, P)
        Theta at z is ``center + root z``.
    """

    def __init__(self, center: Array, root: Array) -> None:
        self.center, self.root, self.inverse = center, root, np.linalg.inv(root)
        self._products = root.T.copy(), self.inverse.T.copy()

    @classmethod
    def of_draws(cls, theta: Array, first: Array) -> Whitening:
        """By mean and covariance of ``theta (N, P)``; ``first`` are its entries by their place."""
        covariance = np.cov(theta.T).reshape(len(first), len(first))
        return cls(theta.mean(axis=0), ordered_root(covariance, first))

    def theta(self, z: Array) -> Array:
        """Theta ``(C, P)``."""
        return self.center + matmul_rows(z, self._products[0])

    def z(self, theta: Array) -> Array:
        """Coordinates ``(C, P)``."""
        return matmul_rows(theta - self.center, self._products[1])


def ordered_root(covariance: Array, first: Array) -> Array:
    """Root of a covariance in which entry ``first[0]`` depends on z_0 only, and so on."""
    root = np.empty_like(covariance)
    root[first] = np.linalg.cholesky(covariance[np.ix_(first, first)])
    return root


class Terms:
    """Terms of a polynomial in P variables, up to a degree.

    Parameters
    ----------
    P : int
    degree : int
    """

    def __init__(self, P: int, degree: int) -> None:
        powers = range(degree + 1)
        self._terms = [t for k in powers for t in combinations_with_replacement(range(P), k)]
        self.n_terms = len(self._terms)
        # the variables that a term is the product of; P stands for a factor of 1
        factors = [(*t, *[P] * (degree - len(t))) for t in self._terms]
        self._factors = np.array(factors, dtype=np.intp)

    def design(self, z: Array) -> tuple[Array, Array]:
        """Values ``(C, n_terms)`` and derivatives ``(C, P, n_terms)`` of the terms."""
        (C, P), (n_terms, degree) = z.shape, self._factors.shape
        factors = np.column_stack([z, np.ones(C)])[:, self._factors]  # (C, n_terms, degree)
        slopes, terms = np.zeros((C, P + 1, n_terms)), np.arange(n_terms)
        for k in range(degree):
            others = np.delete(factors, k, axis=2).prod(axis=2)
            slopes[:, self._factors[:, k], terms] += others
        return factors.prod(axis=2), slopes[:, :P]


class Polynomial(Terms):
    """Polynomial of degree 1 to 4, as a quadratic form in products of its variables."""

    def __init__(self, P: int, degree: int) -> None:
        super().__init__(P, degree)
        self._pairs = np.array(list(combinations_with_replacement(range(P), 2))).T
        place: dict[tuple[int, ...], int] = {(): 0} | {(j,): 1 + j for j in range(P)}
        place |= {(int(a), int(b)): 1 + P + k for k, (a, b) in enumerate(self._pairs.T)}
        # a term is the product of one or two entries of (1, z, products of pairs)
        half = [(t[:2], t[2:]) if len(t) > 2 else ((), t) for t in self._terms]
        self._place = np.array([(place[a], place[b]) for a, b in half]).T
        self._size = len(place)
        self._matrix = np.zeros((self._size, self._size))

    def fit(self, z: Array, value: Array, grad: Array, jacobian: Array, weight: Array) -> None:
        """Fit the coefficients to values, and to gradients in parameters of ``jacobian``.

        It is that of z, ``(C, P, P)``.
        """
        values, slopes = self.design(z)
        slopes = np.einsum("cpm,cpr->crm", slopes, jacobian)
        A = np.concatenate([values[:, None], slopes], axis=1) * weight[:, None, None]
        b = np.column_stack([value, grad]) * weight[:, None]
        found = np.linalg.lstsq(A.reshape(-1, self.n_terms), b.ravel(), rcond=1e-12)[0]
        self._matrix[...] = 0.0
        self._matrix[*self._place] = 0.5 * found
        self._matrix += self._matrix.T

    def value_and_grad(self, z: Array) -> tuple[Array, Array]:
        """Value ``(C,)`` and gradient ``(C, P)``."""
        C, P = z.shape
        a, b = self._pairs
        features = np.hstack([np.ones((C, 1)), z, z[:, a] * z[:, b]])
        product = matmul_rows(features, self._matrix)
        grad, of_pairs = 2.0 * product[:, 1 : P + 1], 2.0 * product[:, P + 1 :]
        square = np.zeros((C, P, P))
        square[:, a, b] = of_pairs
        grad = grad + np.einsum("cab,cb->ca", square, z) + np.einsum("cab,ca->cb", square, z)
        return np.einsum("ci,ci->c", features, product), grad


class NormalLikelihood:
    """Log likelihood without effects of the normal model at the joint mode, and their moments.

    Given the hyperparameters it is a quadratic form in the coefficients. Each of its entries is a
    polynomial in the standardised coordinates of the hyperparameters, fitted once.

    Parameters
    ----------
    at : JointMode
    covariance : LearnedCovariance
    whitening : Whitening
    theta, z : ndarray of shape (N, P)
        Points of the fit, and their standardised coordinates.
    """

    def __init__(
        self,
        at: JointMode,
        covariance: LearnedCovariance,
        whitening: Whitening,
        theta: Array,
        z: Array,
    ) -> None:
        self._gram, self._covariance = at.marginal.gram, covariance
        self._d, self._m = at.working.fixed.shape[1], covariance.n_hyper
        self._center, self._root = whitening.center[: self._d], whitening.root[: self._d]
        N, log_det, _ = self._gram.eliminate(self._factor(theta), np.ones(len(theta)))
        self._terms = Terms(self._m, _NORMAL_DEGREE)
        flat = -0.5 * np.column_stack([N.reshape(len(N), -1), log_det])
        design = self._terms.design(z[:, : self._m])[0]
        self._entries = np.linalg.lstsq(design, flat, rcond=1e-12)[0]
        self._transposed = np.ascontiguousarray(self._entries[:, :-1].T)
        # information of each label, and its side, linear in the coefficients
        cross = self._gram.cross
        self._information = _single(self._gram.labels[:, :, None])
        self._side = _single(cross @ np.append(-self._center, 1.0)).ravel()
        self._of_side = _single(-cross[:, :, : self._d]).reshape(-1, self._d).T.copy()

    def _factor(self, theta: Array) -> Array:
        """Factor of the learned covariance ``(C, q, q)``."""
        return self._covariance.root(theta[:, self._d : self._d + self._m])

    def value_and_grad(self, z: Array) -> tuple[Array, Array]:
        """Value ``(C,)`` and gradient ``(C, P)`` in standardised coordinates."""
        d, m = self._d, self._m
        b = self._center + matmul_rows(z, self._root.T)
        terms, slopes = self._terms.design(z[:, :m])
        w = np.column_stack([b, np.full(len(z), -1.0)])
        square = (w[:, :, None] * w[:, None]).reshape(len(z), -1)
        of_terms = matmul_rows(square, self._transposed) + self._entries[:, -1]
        N = matmul_rows(terms, self._entries[:, :-1]).reshape(len(z), d + 1, d + 1)
        in_b = 2.0 * np.einsum("cij,cj->ci", N[:, :d], w)
        grad = matmul_rows(in_b, self._root)
        grad[:, :m] += np.einsum("cmk,ck->cm", slopes, of_terms)
        return np.einsum("ck,ck->c", terms, of_terms), grad

    def moments(self, theta: Array) -> tuple[Array, Array]:
        """Mean and root of the effects given theta, in single precision."""
        side = self._side + matmul_rows(_single(theta[:, : self._d] - self._center), self._of_side)
        side = side.reshape(len(theta), self._gram.q, -1).swapaxes(0, 1)
        return normal_mean_and_root(self._information, side, _single(self._factor(theta)))


class PolynomialLikelihood:
    """Log likelihood and moments of effects as polynomials in standardised coordinates.

    The likelihood does not depend on the signs of scales: coordinates are linear in the logs of the
    hyperbolic cosines of their hyperparameters, which are smooth where a scale is 0. Beyond the
    farthest points of the fit, the log likelihood is continued by tangents.

    Parameters
    ----------
    covariance : LearnedCovariance
    scales : slice
        Places of the hyperparameters of scales in theta.
    n_labels : int
    first : ndarray of int of shape (P,)
        Places in theta in the order of the coordinates, hyper- and own parameters first.
    n_first : int
        Number of these, whose products are in the regressions of moments.
    points : ndarray of shape (N, P)
        Points of the fit of the normal model.
    at : JointMode
    """

    def __init__(
        self,
        covariance: LearnedCovariance,
        scales: slice,
        n_labels: int,
        first: Array,
        n_first: int,
        points: Array,
        at: JointMode,
    ) -> None:
        self.q, self.n_labels = covariance.n_effects, n_labels
        self._scales, P = scales, len(first)
        self._products = np.array([(a, b) for a in range(n_first) for b in range(a, P)]).T
        even = self._even(points)[0]
        self._whitening = Whitening.of_draws(even, first)
        z = self._whitening.z(even)
        self._normal = NormalLikelihood(at, covariance, self._whitening, points, z)
        self._radius, self._of_products = np.inf, False
        self._polynomial: Any = None
        self._moments: Any = None

    def _even(self, theta: Array) -> tuple[Array, Array]:
        """Theta with functions of the scales that do not depend on signs, and their slopes."""
        even, slope = theta.copy(), np.ones_like(theta)
        x = theta[:, self._scales]
        even[:, self._scales], slope[:, self._scales] = np.logaddexp(x, -x), np.tanh(x)
        return even, slope

    def fit(self, degree: int, theta: Array, found: Found, unit: Array, height: Array) -> None:
        """Fit to exact values and gradients, and to moments of effects.

        Gradients are compared in units ``(P, P)`` of theta, and points have weights by the height
        of the log density there, above that of typical points.
        """
        weight = np.exp(0.25 * np.minimum(height, 0.0))
        even, slope = self._even(theta)
        z = self._whitening.z(even)
        distance = np.linalg.norm(z, axis=1)
        self._radius = float(distance[height > -_NEGLIGIBLE].max(initial=1.0))
        jacobian = (self._whitening.inverse * slope[:, None]) @ unit
        self._polynomial = Polynomial(z.shape[1], degree)
        value, in_z = self._normal.value_and_grad(z)
        grad = found.grad @ unit - np.einsum("cp,cpr->cr", in_z, jacobian)
        self._polynomial.fit(z, found.value - value, grad, jacobian, weight)
        self._of_products = degree > _DEGREES[0]
        rest = np.concatenate([each.reshape(-1, len(z), self.n_labels) for each in found.moments])
        normal = [each.reshape(-1, *rest.shape[1:]) for each in self._normal.moments(theta)]
        rest[: self.q + self.q**2] -= np.concatenate(normal)
        flat = (rest.swapaxes(0, 1) * weight[:, None, None]).reshape(len(z), -1)
        of_z = np.linalg.lstsq(self._features(z) * weight[:, None], flat, rcond=1e-10)[0]
        self._moments = _single(of_z)

    def _features(self, z: Array) -> Array:
        features = [np.ones((len(z), 1)), z]
        if self._of_products:
            a, b = self._products
            features.append(z[:, a] * z[:, b])
        return np.hstack(features)

    def _inside(self, z: Array) -> tuple[Array, Array, Array]:
        """Point within the radius in the direction of z, this direction, and z's distance to it."""
        distance = np.sqrt(np.square(z).sum(axis=1, keepdims=True))
        way = z / np.maximum(distance, 1e-300)
        beyond = np.maximum(distance - self._radius, 0.0)
        return z - beyond * way, way, beyond

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log likelihood ``(C,)`` and its gradient ``(C, P)``."""
        even, slope = self._even(theta)
        z, way, beyond = self._inside(self._whitening.z(even))
        normal, in_z = self._normal.value_and_grad(z)
        value, grad = self._polynomial.value_and_grad(z)
        value, grad = value + normal, grad + in_z
        if beyond.any():  # tangents outwards, bent down; the rest of their gradient is small
            outwards = np.einsum("cp,cp->c", way, grad)[:, None]
            value = value + ((outwards - 0.5 * beyond) * beyond)[:, 0]
            grad = grad - beyond * way
        return value, matmul_rows(grad, self._whitening.inverse) * slope

    def value(self, theta: Array) -> Array:
        """Log likelihood ``(C,)``."""
        return self.value_and_grad(theta)[0]

    def moments(self, theta: Array) -> Moments:
        """Moments of the effects given theta."""
        z, q = self._whitening.z(self._even(theta)[0]), self.q
        features = self._features(self._inside(z)[0])
        rest = matmul_rows(_single(features), self._moments)
        rest = rest.reshape(len(z), -1, self.n_labels).swapaxes(0, 1)
        mean, root = self._normal.moments(theta)
        mean += rest[:q]
        root += rest[q : q + q * q].reshape(root.shape)
        return Moments(mean, root, *np.split(rest[q + q * q :], 2))


def _single(values: Array) -> Array:
    """Values in single precision, which is enough for moments and takes half the time."""
    return values.astype(np.float32)


def fit_polynomials(posterior: MixedPosterior) -> tuple[PolynomialLikelihood, Array] | None:
    """Polynomials for the likelihood of a posterior, and a point near its mode; None if not close.

    They are compared with exact values at draws; points of a failed check join the fit.
    """
    at, (covariance,) = JointMode.of(posterior), posterior.covariances.each
    d, m = at.working.fixed.shape[1], len(posterior.covariances.coordinates)
    P = d + len(at.eta)
    degrees = [k for k in _DEGREES if comb(P + k, k) <= _MOST_TERMS]
    if not degrees:
        return None
    prior = parameters_without_effects(posterior)
    first = np.append(np.arange(d, P), np.arange(d))
    normal = StandardNormals(at.working, at.marginal, at.eta[:m])
    root = np.zeros((P, P))
    root[d:, : P - d], root[:d, P - d :] = at.root, normal.shared_root.T
    whitening = Whitening(np.append(at.linear[:d], at.eta), root)
    scales = slice(d, d + m - len(covariance.pairs))
    exact = _with_enough_nodes(posterior, at, whitening, scales)
    if exact is None:
        return None

    def positive(theta: Array) -> Array:
        """Point with positive scales, unless correlations depend on their signs."""
        if not covariance.pairs:
            theta[:, scales] = np.abs(theta[:, scales])
        return theta

    # the curvature, at one sd from the mode
    z = np.vstack([np.eye(P), -np.eye(P)])
    ends = whitening.theta(z)
    if d + m < P:  # the normal model has no own parameters
        slopes = exact.value_and_grad(ends)[1]
    else:
        center = whitening.center[None]
        slopes = _normal_slopes(at, covariance, ends)
        slopes += exact.value_and_grad(center)[1] - _normal_slopes(at, covariance, center)
    slopes = (slopes + prior.grad_log_prior(ends)) @ root
    if not np.all(np.isfinite(slopes)):
        return None
    curvature = 0.5 * (slopes[P:] - slopes[:P])
    values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
    covariance_z = (vectors / np.maximum(values, 0.1)) @ vectors.T
    step = covariance_z @ slopes.mean(axis=0)
    step *= min(1.0, 1.5 / max(float(np.sqrt(step @ step)), 1e-300))
    root = ordered_root(root @ covariance_z @ root.T, first)
    whitening = Whitening(whitening.theta(step[None])[0], root)
    highest, at_zero = _heights(exact, prior, whitening, scales)
    near_zero = at_zero > highest - _NEGLIGIBLE
    if covariance.pairs and near_zero:
        return None  # signs of scales and correlations go together

    rng, n_tests = np.random.default_rng(0), _tests(posterior.n_samples)
    points, parts = np.empty((0, P)), list[Found]()

    def near(n: int, n_axes: int) -> Array:
        """Points of a fit."""
        some = positive(whitening.theta(_design(rng, n, P, n_axes)))
        if near_zero:
            some[::4, scales] *= rng.uniform(size=some[::4, scales].shape)
        return some

    n_normal = _NORMAL_POINTS * max(comb(m + _NORMAL_DEGREE, m), P)
    of_normal = near(n_normal, P - d)
    fitted = PolynomialLikelihood(covariance, scales, exact.n_labels, first, P - d, of_normal, at)

    def density(theta: Array) -> Array:
        """Log density by the polynomials."""
        return fitted.value(theta) + prior.log_prior(theta)

    # with many columns a quadratic that is not close would be refitted for longer than rows take
    rounds = _ROUNDS if degrees[-1] > 2 else 0
    for degree in [*degrees, *degrees[-1:] * rounds]:
        n = int(np.ceil(_EQUATIONS * comb(P + degree, degree) / (1 + P)))
        n_features = 1 + P + (P - d) * (P + d + 1) // 2 * (degree > _DEGREES[0])
        n = max(n, 2 * n_features) - len(points)
        if n > 0:
            some = near(n, P - d if not parts else 0)
            points = np.vstack([points, some])
            parts.append(exact.everything(some))
        found = Found.joined(parts)
        if not (np.all(np.isfinite(found.value)) and np.all(np.isfinite(found.grad))):
            return None
        lower = found.value + prior.log_prior(points) - highest + 0.5 * P
        fitted.fit(degree, points, found, whitening.root, lower)
        tests = draws_by_weight(density, whitening, rng, n_tests)
        tests = positive(np.vstack([tests, whitening.theta(rng.standard_normal(tests.shape))]))
        parts.append(exact.everything(tests))
        if _is_close(fitted, tests, parts[-1], covariance.root(tests[:, d : d + m])):
            return fitted, whitening.center
        points = np.vstack([points, tests])
    return None


def _normal_slopes(at: JointMode, covariance: LearnedCovariance, theta: Array) -> Array:
    """Gradient ``(C, P)`` of the log likelihood of the normal model without effects."""
    gram, d, one = at.marginal.gram, at.working.fixed.shape[1], np.ones(len(theta))
    h, w = theta[:, d:], np.column_stack([theta[:, :d], -one])
    R = covariance.root(h)
    N, _, U = gram.eliminate(R, one)
    in_root = gram.slope(w[:, :, None] * w[:, None], U, R, one)
    in_b = -np.einsum("cij,cj->ci", N[:, :d], w)
    return np.hstack([in_b, covariance.pull_back(h, in_root)])


def _tests(n_rows: int) -> int:
    """Number of draws of a check, which cost no more than the fit."""
    return int(np.clip(300_000 // n_rows, *_TESTS))


def _design(rng: np.random.Generator, n: int, P: int, n_first: int) -> Array:
    """About n points, in opposite pairs: near and far, and far along the first coordinates."""
    half = _WIDTH * rng.standard_normal((max(n, 4) // 2, P))
    farthest, distance = np.sqrt(P) + _BEYOND, np.linalg.norm(half, axis=1)
    wanted = np.minimum(distance, farthest)
    wanted[::2] = np.sqrt(P) + _BEYOND * rng.uniform(size=len(wanted[::2]))
    axes = np.vstack([r * np.eye(n_first, P) for r in (0.5 * farthest, farthest)])
    half = np.vstack([half * (wanted / distance)[:, None], axes])
    return np.vstack([half, -half])


def _with_enough_nodes(
    posterior: MixedPosterior, at: JointMode, whitening: Whitening, scales: slice
) -> LabelQuadrature | None:
    """Quadrature with the fewest nodes that are enough two sds from the mode.

    Gradients need more than values: they are means of scores, which vary more between nodes. Most
    of their error is the same everywhere, and is removed, unless a scale may be 0.
    """
    z, m = np.ones((3, len(whitening.center))), len(at.eta)
    z[0], z[1:, :m], z[2] = 0.0, 2.0 / np.sqrt(m), -z[1]
    theta, distance = whitening.theta(z), 2.0 * np.linalg.norm(z[1])
    sds = np.linalg.norm(whitening.root[scales], axis=1)
    corrects = bool(np.all(theta[0, scales] > _FAR_FROM_ZERO * sds))
    start = LabelQuadrature(posterior, at, *_LEVELS[0])
    some, times = start.part(_BLOCKS)
    found = dict[tuple[int, int], Array]()

    def at_level(level: tuple[int, int]) -> Array:
        if level not in found:
            value, grad = some.changed(*level).value_and_grad(theta)
            found[level] = times * np.column_stack([value, grad @ whitening.root])
        return found[level]

    for level, above in zip(_LEVELS, _ABOVE, strict=True):
        change = at_level(level) - at_level(above)
        if corrects:
            change -= change[0]
        error = max(np.ptp(change[:, 0]) / distance, np.abs(change[:, 1:]).max())
        if error < 0.5 * _CLOSE:
            exact = start.changed(*level)
            return exact.corrected(start.changed(*above), theta[:1]) if corrects else exact
    return None


def _heights(
    exact: LabelQuadrature, prior: Parameters, whitening: Whitening, scales: slice
) -> tuple[float, float]:
    """Log densities at the centre, and where one of its scales is 0, the largest."""
    theta = np.tile(whitening.center, (1 + scales.stop - scales.start, 1))
    for k, at in enumerate(range(scales.start, scales.stop)):
        theta[1 + k, at] = 0.0
    density = exact.value(theta) + prior.log_prior(theta)
    return float(density[0]), float(density[1:].max())


def draws_by_weight(
    log_density: Callable[[Array], Array], whitening: Whitening, rng: np.random.Generator, n: int
) -> Array:
    """Draws ``(n, P)`` of a density, of proposals by their weights."""
    P = len(whitening.center)
    z = rng.standard_normal((_PROPOSALS, P))
    z /= np.sqrt(rng.chisquare(_HEAVY, (_PROPOSALS, 1)) / _HEAVY)
    theta = whitening.theta(z)
    log_weight = log_density(theta)
    log_weight = log_weight + 0.5 * (_HEAVY + P) * np.log1p(np.square(z).sum(axis=1) / _HEAVY)
    weight = np.exp(log_weight - log_weight.max())
    drawn: Array = theta[rng.choice(_PROPOSALS, n, p=weight / weight.sum())]
    return drawn


def _is_close(fitted: PolynomialLikelihood, theta: Array, exact: Found, factor: Array) -> bool:
    """Whether values and means of effects are close to exact ones.

    ``factor (C, q, q)`` is that of the learned covariance.
    """
    error = fitted.value(theta) - exact.value
    roots = np.einsum("cij,jkcl->ikcl", factor, exact.moments.root)
    variance = np.square(roots).sum(axis=1).mean(axis=1, keepdims=True) + 1e-300
    of_means = np.square(fitted.moments(theta).mean - exact.moments.mean) / variance
    return bool(np.std(error) < _CLOSE and np.sqrt(of_means.mean()) < _CLOSE)
