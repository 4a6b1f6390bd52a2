"""The log likelihood without effects as a polynomial, and the moments of the effects.

With many labels the posterior of coefficients, hyperparameters and own parameters is nearly normal:
in standardised coordinates z the terms of degree k of its log density are of order
``n_labels ** (1 - k / 2)``. So are the moments of the effects given z, which are regressed on z.
A step then reads no rows.

Most of it is known without passes over the rows: the normal model at the joint mode has a
likelihood in closed form. A polynomial of low degree, fitted to few exact values, is what is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld._linalg import matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.by_label import Found, Moments, normal_mean_and_root
from skbayes_sgld.mixed.mode import JointMode
from skbayes_sgld.mixed.polynomial import Monomials, Polynomial, Whitening, n_monomials
from skbayes_sgld.priors.group import LearnedCovariance

_NORMAL_DEGREE, _NORMAL_POINTS = 4, 6  # of the normal model; points for each term
NEGLIGIBLE = 8.0  # fall of a log density


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
        self._terms = Monomials(self._m, _NORMAL_DEGREE)
        flat = -0.5 * np.column_stack([N.reshape(len(N), -1), log_det])
        design = self._terms.design(z[:, : self._m])[0]
        self._entries = np.linalg.lstsq(design, flat, rcond=1e-12)[0]
        self._transposed = np.ascontiguousarray(self._entries[:, :-1].T)
        # information of each label, and its side, linear in the coefficients
        labels, cross = self._gram.labels[:, :, None], self._gram.cross
        side, of_side = cross @ np.append(-self._center, 1.0), -cross[:, :, : self._d]
        diagonal, sds = np.einsum("iicl->il", labels), np.linalg.norm(self._root, axis=1)
        self.dtype = _precision(diagonal.max(axis=1), sds, np.abs(of_side).max(axis=(0, 1)))
        self._information, self._side = labels.astype(self.dtype), side.astype(self.dtype).ravel()
        self._of_side = of_side.astype(self.dtype).reshape(-1, self._d).T.copy()

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
        """Mean and root of the effects given theta."""
        away = (theta[:, : self._d] - self._center).astype(self.dtype)
        side = self._side + matmul_rows(away, self._of_side)
        side = side.reshape(len(theta), self._gram.q, -1).swapaxes(0, 1)
        factor = self._factor(theta).astype(self.dtype)
        return normal_mean_and_root(self._information, side, factor)


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
        self._scales, self._P = scales, len(first)
        self._products = np.array([(a, b) for a in range(n_first) for b in range(a, self._P)]).T
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
        self._radius = float(distance[height > -NEGLIGIBLE].max(initial=1.0))
        jacobian = (self._whitening.inverse * slope[:, None]) @ unit
        self._polynomial = Polynomial(z.shape[1], degree)
        value, in_z = self._normal.value_and_grad(z)
        grad = found.grad @ unit - np.einsum("cp,cpr->cr", in_z, jacobian)
        self._polynomial.fit(z, found.value - value, grad, jacobian, weight)
        self._of_products = degree > 2
        rest = np.concatenate([each.reshape(-1, len(z), self.n_labels) for each in found.moments])
        normal = [each.reshape(-1, *rest.shape[1:]) for each in self._normal.moments(theta)]
        rest[: self.q + self.q**2] -= np.concatenate(normal)
        flat = (rest.swapaxes(0, 1) * weight[:, None, None]).reshape(len(z), -1)
        of_z = np.linalg.lstsq(self._features(z) * weight[:, None], flat, rcond=1e-10)[0]
        self._moments = of_z.astype(self._normal.dtype)

    def n_features(self, degree: int) -> int:
        """Number of features of the regressions of moments, beside a polynomial of this degree."""
        return 1 + self._P + self._products.shape[1] * (degree > 2)

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
        rest = matmul_rows(features.astype(self._normal.dtype), self._moments)
        rest = rest.reshape(len(z), -1, self.n_labels).swapaxes(0, 1)
        mean, root = self._normal.moments(theta)
        mean += rest[:q]
        root += rest[q : q + q * q].reshape(root.shape)
        return Moments(mean, root, *np.split(rest[q + q * q :], 2))


def _precision(*sizes: Array) -> Any:
    """Single precision, which is enough for moments and takes half the time, if its range is."""
    size = np.concatenate(sizes)
    size = size[size > 0]
    return np.float32 if np.all((size > 1e-18) & (size < 1e18)) else np.float64


def n_normal_points(m: int, P: int) -> int:
    """Number of points of the fit of the normal model, with m hyperparameters among P."""
    return _NORMAL_POINTS * max(n_monomials(m, _NORMAL_DEGREE), P)


def normal_slopes(at: JointMode, covariance: LearnedCovariance, theta: Array) -> Array:
    """Gradient ``(C, P)`` of the log likelihood of the normal model without effects."""
    gram, d, one = at.marginal.gram, at.working.fixed.shape[1], np.ones(len(theta))
    h, w = theta[:, d:], np.column_stack([theta[:, :d], -one])
    R = covariance.root(h)
    N, _, U = gram.eliminate(R, one)
    in_root = gram.slope(w[:, :, None] * w[:, None], U, R, one)
    in_b = -np.einsum("cij,cj->ci", N[:, :d], w)
    return np.hstack([in_b, covariance.pull_back(h, in_root)])
