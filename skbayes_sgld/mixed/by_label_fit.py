"""Polynomials for a likelihood without effects: fitted about the mode, and checked at draws."""

from __future__ import annotations

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.by_label import (
    ByLabelPosterior,
    Found,
    LabelQuadrature,
    parameters_without_effects,
)
from skbayes_sgld.mixed.by_label_polynomial import (
    NEGLIGIBLE,
    PolynomialLikelihood,
    n_normal_points,
    normal_slopes,
)
from skbayes_sgld.mixed.coordinates import StandardNormals
from skbayes_sgld.mixed.mode import JointMode
from skbayes_sgld.mixed.polynomial import Whitening, draws_by_weight, n_monomials, ordered_root
from skbayes_sgld.mixed.posterior import MixedPosterior

_MOST_TERMS = 1500
_DEGREES = (2, 3, 4)
_EQUATIONS = 2.2  # for each term of a polynomial
_WIDTH = 1.25  # sd of the points of the fit
_BEYOND = 2.5  # sds from the typical distance, the farthest points of the fit
_TESTS, _CLOSE = (3, 60), 0.04  # draws of a check, and the largest error there
_LOWEST = -5.0 * NEGLIGIBLE  # height of a point of a fit
_ROUNDS = 3  # refits with the points of checks
# numbers of nodes and of Newton's steps, and those with which they are compared
_LEVELS = ((3, 0), (3, 1), (5, 1), (7, 2), (9, 2), (13, 2))
_ABOVE = ((9, 2), (9, 2), (9, 2), (9, 2), (13, 2), (19, 2))
_FAR_FROM_ZERO = 6.0  # sds of a scale that is not 0
_BLOCKS = 16  # blocks of labels at which they are compared


def fit_by_label(posterior: MixedPosterior) -> ByLabelPosterior | None:
    """Posterior without effects, by polynomials; None if they are not close."""
    P = parameters_without_effects(posterior).size
    degrees = [k for k in _DEGREES if n_monomials(P, k) <= _MOST_TERMS]
    if not degrees:
        return None
    search = _Search(posterior)
    if not (search.finds_quadrature() and search.finds_coordinates()):
        return None
    fitted = search.fit(degrees)
    if fitted is None:
        return None
    return ByLabelPosterior(posterior, fitted, search.whitening.center)


class _Search:
    """Exact values about the mode, and the polynomials through them.

    Parameters
    ----------
    posterior : MixedPosterior
        With one term.

    Attributes
    ----------
    whitening : Whitening
        Coordinates about the mode, at first by a normal approximation.
    """

    def __init__(self, posterior: MixedPosterior) -> None:
        (self._covariance,) = posterior.covariances.each
        self._posterior, self._at = posterior, JointMode.of(posterior)
        self._prior = parameters_without_effects(posterior)
        at, covariance = self._at, self._covariance
        self._d, self._m = at.working.fixed.shape[1], covariance.n_hyper
        d, P = self._d, self._prior.size
        self._first = np.append(np.arange(d, P), np.arange(d))
        """Places of theta in the order of the coordinates."""
        self._scales = slice(d, d + self._m - len(covariance.pairs))
        root = np.zeros((P, P))
        root[d:, : P - d] = at.root
        root[:d, P - d :] = StandardNormals(
            at.working, at.marginal, at.eta[: self._m]
        ).shared_root.T
        self.whitening = Whitening(np.append(at.linear[:d], at.eta), root)
        self._rng = np.random.default_rng(0)
        self._exact: LabelQuadrature
        self._highest, self._near_zero = -np.inf, False

    def finds_quadrature(self) -> bool:
        """Find the fewest nodes that are enough two sds from the mode; whether some are.

        Gradients need more than values: they are means of scores, which vary more between nodes.
        Most of their error is the same everywhere, and is removed, unless a scale may be 0.
        """
        whitening, scales, m = self.whitening, self._scales, len(self._at.eta)
        z = np.ones((3, len(whitening.center)))
        z[0], z[1:, :m], z[2] = 0.0, 2.0 / np.sqrt(m), -z[1]
        theta, distance = whitening.theta(z), 2.0 * np.linalg.norm(z[1])
        sds = np.linalg.norm(whitening.root[scales], axis=1)
        corrects = bool(np.all(theta[0, scales] > _FAR_FROM_ZERO * sds))
        start = LabelQuadrature(self._posterior, self._at, *_LEVELS[0])
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
                self._exact = start.changed(*level)
                if corrects:
                    self._exact = self._exact.corrected(start.changed(*above), theta[:1])
                return True
        return False

    def finds_coordinates(self) -> bool:
        """Whiten by the curvature one sd from the mode; whether polynomials may be close.

        They are not if a scale may be 0 and correlations depend on its sign.
        """
        root, P, scales = self.whitening.root, self._prior.size, self._scales
        ends = self.whitening.theta(np.vstack([np.eye(P), -np.eye(P)]))
        if self._d + self._m < P:  # the normal model has no own parameters
            slopes = self._exact.value_and_grad(ends)[1]
        else:
            at, center = (self._at, self._covariance), self.whitening.center[None]
            slopes = normal_slopes(*at, ends)
            slopes += self._exact.value_and_grad(center)[1] - normal_slopes(*at, center)
        slopes = (slopes + self._prior.grad_log_prior(ends)) @ root
        if not np.all(np.isfinite(slopes)):
            return False
        curvature = 0.5 * (slopes[P:] - slopes[:P])
        values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
        covariance_z = (vectors / np.maximum(values, 0.1)) @ vectors.T
        step = covariance_z @ slopes.mean(axis=0)
        step *= min(1.0, 1.5 / max(float(np.sqrt(step @ step)), 1e-300))
        center = self.whitening.theta(step[None])[0]
        self.whitening = Whitening(center, ordered_root(root @ covariance_z @ root.T, self._first))
        # log densities at the centre, and where one of its scales is 0
        theta = np.tile(center, (1 + scales.stop - scales.start, 1))
        for k, at_scale in enumerate(range(scales.start, scales.stop)):
            theta[1 + k, at_scale] = 0.0
        density = self._exact.value(theta) + self._prior.log_prior(theta)
        self._highest = float(density[0])
        self._near_zero = bool(density[1:].max() > self._highest - NEGLIGIBLE)
        return not (self._near_zero and self._covariance.pairs)

    def fit(self, degrees: list[int]) -> PolynomialLikelihood | None:
        """Polynomials of rising degree, until they are close at draws; None if none is.

        The points of a failed check join the fit, but for those of no weight in it, which may be
        beyond the range of floats.
        """
        exact, P, n_first = self._exact, self._prior.size, self._prior.size - self._d
        n_tests = int(np.clip(300_000 // self._posterior.n_samples, *_TESTS))  # no more than fits
        of_normal = self._near(n_normal_points(self._m, P), n_first)
        fitted = PolynomialLikelihood(
            self._covariance,
            self._scales,
            exact.n_labels,
            self._first,
            n_first,
            of_normal,
            self._at,
        )

        def density(theta: Array) -> Array:
            """Log density by the polynomials."""
            return fitted.value(theta) + self._prior.log_prior(theta)

        points, parts = np.empty((0, P)), list[Found]()
        # with many columns a quadratic that is not close would be refitted for longer than rows
        # take
        rounds = _ROUNDS if degrees[-1] > 2 else 0
        for degree in [*degrees, *degrees[-1:] * rounds]:
            n = int(np.ceil(_EQUATIONS * n_monomials(P, degree) / (1 + P)))
            n = max(n, 2 * fitted.n_features(degree)) - len(points)
            if n > 0:
                some = self._near(n, 0 if parts else n_first)
                points = np.vstack([points, some])
                parts.append(exact.everything(some))
            found = Found.joined(parts)
            if not (np.all(np.isfinite(found.value)) and np.all(np.isfinite(found.grad))):
                return None
            height = self._height(points, found)
            fitted.fit(degree, points, found, self.whitening.root, height)
            tests = draws_by_weight(density, self.whitening, self._rng, n_tests)
            beside = self.whitening.theta(self._rng.standard_normal(tests.shape))
            tests = self._positive(np.vstack([tests, beside]))
            at_tests = exact.everything(tests)
            if self._is_close(fitted, tests, at_tests):
                return fitted
            near = self._height(tests, at_tests) > _LOWEST
            points = np.vstack([points, tests[near]])
            parts.append(at_tests.where(near))
        return None

    def _height(self, theta: Array, found: Found) -> Array:
        """Exact log density above that of typical points."""
        density = found.value + self._prior.log_prior(theta)
        return density - self._highest + 0.5 * self._prior.size

    def _near(self, n: int, n_axes: int) -> Array:
        """Points of a fit."""
        some = self._positive(self.whitening.theta(self._points(n, n_axes)))
        if self._near_zero:
            some[::4, self._scales] *= self._rng.uniform(size=some[::4, self._scales].shape)
        return some

    def _positive(self, theta: Array) -> Array:
        """Points with positive scales, unless correlations depend on their signs."""
        if not self._covariance.pairs:
            theta[:, self._scales] = np.abs(theta[:, self._scales])
        return theta

    def _points(self, n: int, n_first: int) -> Array:
        """About n points, in opposite pairs: near and far, and far along the first coordinates."""
        P = self._prior.size
        half = _WIDTH * self._rng.standard_normal((max(n, 4) // 2, P))
        farthest, distance = np.sqrt(P) + _BEYOND, np.linalg.norm(half, axis=1)
        wanted = np.minimum(distance, farthest)
        wanted[::2] = np.sqrt(P) + _BEYOND * self._rng.uniform(size=len(wanted[::2]))
        axes = np.vstack([r * np.eye(n_first, P) for r in (0.5 * farthest, farthest)])
        half = np.vstack([half * (wanted / distance)[:, None], axes])
        return np.vstack([half, -half])

    def _is_close(self, fitted: PolynomialLikelihood, theta: Array, exact: Found) -> bool:
        """Whether values and means of effects are close to exact ones."""
        with np.errstate(all="ignore"):  # a polynomial that is not close may be beyond floats
            if not np.std(fitted.value(theta) - exact.value) < _CLOSE:
                return False
        factor = self._covariance.root(theta[:, self._d : self._d + self._m])
        roots = np.einsum("cij,jkcl->ikcl", factor, exact.moments.root)
        variance = np.square(roots).sum(axis=1).mean(axis=1, keepdims=True) + 1e-300
        of_means = np.square(fitted.moments(theta).mean - exact.moments.mean) / variance
        return bool(np.sqrt(of_means.mean()) < _CLOSE)
