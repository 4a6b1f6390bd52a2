r"""Sparse rows whose predictors have noise of their own, which is integrated out of the likelihood.

Under independent normal priors the predictors of n rows are ``u = m + A z``, z standard normal, and
have the covariance ``K = A A^T``. Where the rows are linearly independent ``K - D`` is positive
definite for a diagonal D, and u is the sum of v, of covariance ``K - D``, and of independent noise
of variance D, which can be integrated out row by row: the logistic function becomes one as wide as
the noise, and steps of leapfrog are as long (a collapsed likelihood; Liu 1994). The logistic
distribution is nearly a normal one beside that noise, which is several times as wide: the sum of
both is taken for normal, and the likelihood of v for a product of normal distribution functions.

With ``v = (K - D) a``, trajectories are of mass ``(K - D)^{-1}``: the prior turns a and its
momentum as it does v, and a kick by the gradient g of the log likelihood is g in the one and
``(K - D) g``, a product with the rows and back, in the other. What has been integrated out is drawn
at the end: u given v and y, and z given u, by one linear system in K.

A default fit to 5,000 documents of 12,500 words (``benchmarks/text.py``) takes 42 s of processor
time for 1,248 to 2,225 effective draws a word; along :mod:`skbayes_sgld.posterior.sparse_rows` it
takes 123 s for 52 to 340.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from skbayes_sgld._linalg import in_threads
from skbayes_sgld._random import probe_generator
from skbayes_sgld._sparse import scale_columns
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.likelihoods import Bernoulli
from skbayes_sgld.posterior.priors import Normal
from skbayes_sgld.posterior.sparse_design import SparseDesign
from skbayes_sgld.posterior.whitening import CollapsedPosterior, Place

Array = NDArray[Any]

_SHARE = 0.5  # of K's least eigenvalue, rows of unit length, that is noise of the rows' own
# Restarts of the Lanczos process, of 40 products at most, and its error: at 0.05 it passes over
# rows that are there twice
_LANCZOS = {"maxiter": 10, "tol": 0.01}
_MARGINS = 0.9, 1.05  # on the extreme eigenvalues: those that it finds are inside the spectrum
_LEAST = 0.02, 4.0  # eigenvalue, and noise of every row in logits, for which it is worth while
_ERROR = 3e-3  # of a polynomial, relative: of the root, it changes a momentum by as much
_LOGISTIC = np.pi**2 / 3.0  # variance of the logistic distribution
_SLOWER = 9.0  # a multiplication of a sparse product of 16 columns than one of a dense one
# Curvature of a row in the intercept, over that of its noise: what the coefficients leave of it
_OF_A_ROW = 0.015


class CollapsedRows(CollapsedPosterior):
    """Posterior of sparse rows in the prior's coordinates, with the rows' own noise split off.

    Parameters
    ----------
    posterior : GLMPosterior
        Of sparse rows without weights, with a logistic likelihood and independent normal priors.
    theta : ndarray of shape (P,)
        Any parameters; the intercept is taken about its value there.

    Raises
    ------
    ValueError
        Where the rows are not independent enough, or too short.
    """

    n_fewest = 8

    def __init__(self, posterior: GLMPosterior, theta: Array) -> None:
        P, n = posterior.n_params, posterior.n_samples
        self.n_rows = n
        self.n_params, self.param_names = P, [f"z[{j}]" for j in range(P)]
        own, pull = posterior.prior_diagonal(theta), posterior.grad_log_prior(theta[None])[0]
        flat = own <= 0.0  # of the intercept
        self._set_metric(np.where(flat, 1.0, own))
        self.center = theta + np.where(flat, 0.0, pull / self.inverse)
        design = posterior.design(slice(0, n))
        self._d, signs = design.columns.shape[1], 2.0 * posterior.y - 1.0
        self._has_level = np.float32(self._d < P)
        self._offset = (signs * (design @ self.center))[:, None].astype(np.float32)
        design = self._less_centered(design)
        norms = np.sqrt(design.lengths(self.root[: self._d]))
        # columns in units of the prior, and rows, signed, of unit length
        center = None if design.center is None else design.center * self.root[: self._d]
        X = scale_columns(design.columns, self.root[: self._d]).astype(np.float32)
        self._design = SparseDesign(X, center, self._d < P)
        self._unit = (signs / norms)[:, None].astype(np.float32)
        self._norms, self._signs = norms[:, None].astype(np.float32), signs[:, None].astype("f4")
        low, high = self._bounds = self._extremes()
        if low < _LEAST[0]:
            raise ValueError("the rows are too dependent on each other")
        self._own = _SHARE * low
        self._noise = np.float32(np.sqrt(self._own)) * self._norms
        if self._noise.min() < _LEAST[1]:
            raise ValueError("the rows are too short")
        self._total = np.sqrt(np.square(self._noise) + np.float32(_LOGISTIC))
        # a flat prior of the intercept is followed in the unit that the rows give it
        of_rows = _OF_A_ROW * float(np.sum(1.0 / np.square(self._total), dtype=float))
        self._set_metric(np.where(flat, of_rows, own))
        self._level_root = np.float32(self.root[-1]) * self._has_level
        self._slope /= np.float32(self.root[-1])
        self._root_terms = _terms(lambda x: 1.0 / np.sqrt(x - self._own), low, high, _ERROR)
        self._inverse_terms = _terms(lambda x: 1.0 / x, low, high, _ERROR)
        self.softness = float(np.sqrt(self._own))
        self.work = _SLOWER * 2.0 * posterior.X.nnz

    def _set_metric(self, inverse: Array) -> None:
        self.inverse, self.inverse_t = inverse, np.sqrt(inverse)
        self.root = 1.0 / self.inverse_t

    def _less_centered(self, design: SparseDesign) -> SparseDesign:
        """Rows about a share of their centre, which leaves them independent.

        The intercept is then elsewhere. Rows about their mean add up to 0; about 0 they have a
        direction in common, which would be the steepest by far.
        """
        self._slope = np.zeros((self._d, 1), np.float32)
        if design.center is None:
            return design
        scaled = design.center * self.root[: self._d]
        steepness = np.sqrt(np.sum(1.0 / design.lengths(self.root[: self._d])))
        left = min(1.0, 1.0 / max(float(steepness * np.linalg.norm(scaled)), 1e-12))
        self._slope = (left * scaled)[:, None].astype(np.float32)
        return SparseDesign(design.columns, (1.0 - left) * design.center, True)

    def work_of(self, n_steps: int) -> float:
        """Multiplications of a trajectory, its momentum and the draw at its end."""
        return self.work * (n_steps + len(self._root_terms) + len(self._inverse_terms))

    # ---- products -----------------------------------------------------------------------------

    def _predictors(self, z: Array) -> Array:
        """``A z (n, C)`` for coefficients ``(P, C)``, the intercept left out."""
        coefficients = z.T.copy(order="C")  # sums along a chain then round alike
        coefficients[:, self._d :] = 0.0
        return self._unit * self._design.predictors(coefficients[:, None])[:, 0].T

    def _back(self, x: Array) -> Array:
        """``A^T x``, for coefficients ``(P, C)``: the intercept's entry is 0."""
        score = np.ascontiguousarray((self._unit * x).T)[:, None]
        pulled: Array = (score @ self._design)[:, 0].T
        pulled[self._d :] = 0.0
        return pulled

    def _gram(self, x: Array) -> Array:
        """``K x``, rows scaled to unit length."""
        return self._predictors(self._back(x))

    def _less_own(self, x: Array) -> Array:
        """``(K - D) x``."""
        product = self._gram(x)
        product -= np.float32(self._own) * x
        return product

    def _polynomial(self, terms: Array, x: Array) -> Array:
        """Chebyshev series in K, applied to ``x (n, C)``."""
        low, high = self._bounds
        scale, shift = np.float32(2.0 / (high - low)), np.float32((high + low) / (high - low))
        before, now = x, scale * self._gram(x) - shift * x
        total = np.float32(terms[0]) * before + np.float32(terms[1]) * now
        for term in terms[2:]:
            after = self._gram(now)
            after *= np.float32(2.0) * scale
            after -= np.float32(2.0) * shift * now
            after -= before
            total += np.float32(term) * after
            before, now = now, after
        return total

    def _extremes(self) -> tuple[float, float]:
        """Bounds on the eigenvalues of K."""
        n = self.n_rows
        gram = LinearOperator((n, n), lambda x: self._gram(x.reshape(n, 1))[:, 0], dtype=np.float32)
        start = probe_generator().standard_normal(n, dtype=np.float32)
        try:
            found = eigsh(gram, 2, which="BE", ncv=min(n, 40), v0=start, **_LANCZOS)[0]
        except ArpackNoConvergence:
            raise ValueError("the rows are too dependent on each other") from None
        return _MARGINS[0] * float(found[0]), _MARGINS[1] * float(found[-1])

    # ---- likelihood of the duals ---------------------------------------------------------------

    def _logits(self, value: Array, level: Array) -> Array:
        """Signed predictors over the sd of both noises."""
        scaled = self._norms * value
        scaled += self._offset + self._signs * (self._level_root * level)
        scaled /= self._total
        return scaled

    def _kick(self, value: Array, level: Array) -> tuple[Array, Array]:
        """Gradient of the log likelihood in v, and in the intercept, in its unit."""
        x = self._logits(value, level)
        mills = np.concatenate(in_threads(_inverse_mills, np.array_split(x, 4)))
        mills /= self._total
        of_level = self._level_root * _sums(self._signs, mills).astype(np.float32)
        mills *= self._norms
        return mills, of_level

    def log_likelihood_at(self, place: Place) -> Array:
        """Log likelihood ``(C,)``, the rows' own noise integrated out."""
        x = self._logits(place.value, place.level)
        return np.concatenate(in_threads(_sum_of_log_ndtr, np.array_split(x, 4, axis=1)))

    def energy(self, place: Place, momentum: Place) -> Array:
        """Minus the log density ``(C,)`` of a place and a momentum."""
        quadratic = _sums(place.dual, place.value) + _sums(momentum.dual, momentum.value)
        quadratic += np.square(momentum.level.astype(float))
        return 0.5 * quadratic - self.log_likelihood_at(place)

    # ---- moves --------------------------------------------------------------------------------

    def enter(self, z: Array, generators: list[np.random.Generator]) -> Place:
        """Place given ``z (C, P)``: v is drawn from its distribution given u."""
        columns = np.ascontiguousarray(z.T, dtype=np.float32)
        level = columns[-1] * self._has_level
        if self._has_level:
            level -= _sums(self._slope, columns[:-1]).astype(np.float32)
            columns[-1] = 0.0
        u = self._predictors(columns)
        normals = self._normals(generators, 2 * len(u)).reshape(2, len(u), -1)
        dual = self._polynomial(self._root_terms, normals[0])
        v = self._less_own(dual)
        left = u - v - np.float32(np.sqrt(self._own)) * normals[1]
        dual += self._polynomial(self._inverse_terms, left)
        return Place(dual, level, self._less_own(dual))

    def place(self, dual: Array, level: Array) -> Place:
        """Place of duals ``(n, C)``."""
        dual = np.ascontiguousarray(dual, dtype=np.float32)
        return Place(dual, level.astype(np.float32), self._less_own(dual))

    def momentum(self, generators: list[np.random.Generator]) -> Place:
        """Momentum of a trajectory."""
        normals = self._normals(generators, len(self._norms) + 1)
        dual = self._polynomial(self._root_terms, normals[:-1])
        return Place(dual, normals[-1] * self._has_level, self._less_own(dual))

    def follow(
        self, place: Place, momentum: Place, step: Array, n_steps: int
    ) -> tuple[Place, Place]:
        """Ends of trajectories by steps ``(C,)`` that turn by half, kick, and turn by half."""
        step = step.astype(np.float32)
        place, momentum = _turned(place, momentum, 0.5 * step)
        for number in range(n_steps):
            force, of_level = self._kick(place.value, place.level)
            force *= step
            momentum = Place(
                momentum.dual + force,
                momentum.level + step * (of_level + place.level),
                momentum.value + self._less_own(force),
            )
            last = number == n_steps - 1
            place, momentum = _turned(place, momentum, step * np.float32(0.5 if last else 1.0))
        return place, momentum

    def leave(self, place: Place, generators: list[np.random.Generator]) -> Array:
        """Whitened positions z ``(C, P)`` given where trajectories are."""
        n, P = self.n_rows, self._d
        normals = self._normals(generators, 2 * n + P)
        chosen, own = normals[: 2 * n].reshape(2, n, -1)
        x = self._logits(place.value, place.level).astype(float)
        # of both noises together, given that the label is as it is
        both = -ndtri(ndtr(chosen.astype(float)) * ndtr(x))
        both = np.where(np.isfinite(both), both, -x).astype(np.float32)
        other = np.float32(np.sqrt(_LOGISTIC))
        noise = (np.square(self._noise) * both + self._noise * other * own) / self._total
        u = place.value + noise / self._norms
        columns = np.zeros((self.n_params, u.shape[1]), np.float32)
        columns[:P] = normals[2 * n :]
        left = u - self._predictors(columns)
        columns += self._back(self._polynomial(self._inverse_terms, left))
        if self._has_level:
            columns[-1] = place.level + _sums(self._slope, columns[:-1])
        return np.asarray(columns.T, dtype=float)

    def _normals(self, generators: list[np.random.Generator], size: int) -> Array:
        """Standard normals ``(size, C)``, those of each chain from a generator of its own."""
        drawn = [rng.standard_normal(size, dtype=np.float32) for rng in generators]
        return np.ascontiguousarray(np.transpose(drawn))

    def matched(self, draws: Array, temperature: float) -> CollapsedRows:
        """Itself: the metric is the prior's, whatever the draws."""
        return self


def collapsed_rows(posterior: GLMPosterior, theta: Array) -> CollapsedRows | None:
    """Sparse rows with noise of their own split off; None where they cannot be, or need not."""
    if not 2 < posterior.n_samples <= posterior.n_params:
        return None
    if posterior.weight is not None or posterior.offset is not None:
        return None
    prior = posterior.prior
    separate = isinstance(prior, Normal) and prior.covariance is None and prior.proper
    flat = posterior.linear_prior.intercept is None
    if not (type(posterior.likelihood) is Bernoulli and separate and flat):
        return None
    try:
        return CollapsedRows(posterior, theta)
    except ValueError:
        return None


def _terms(function: Any, low: float, high: float, error: float) -> Array:
    """Coefficients of as many Chebyshev polynomials on an interval as leave this relative error."""
    x = np.linspace(low, high, 1001)
    for degree in range(2, 200):
        series = Chebyshev.interpolate(function, degree, [low, high])
        if np.abs(series(x) / function(x) - 1.0).max() < error:
            break
    return np.asarray(series.coef)


def _turned(place: Place, momentum: Place, angle: Array) -> tuple[Place, Place]:
    """Places and momenta that the prior has turned by ``angle (C,)``."""
    cos, sin = np.cos(angle), np.sin(angle)
    ahead = [cos * p + sin * q for p, q in zip(place, momentum, strict=True)]
    moving = [cos * q - sin * p for p, q in zip(place, momentum, strict=True)]
    return Place(*ahead), Place(*moving)


def _inverse_mills(x: Array) -> Array:
    """Derivative of the log of the normal distribution function."""
    return np.float32(np.sqrt(2.0 / np.pi)) / erfcx(x * np.float32(-np.sqrt(0.5)))


def _sum_of_log_ndtr(x: Array) -> Array:
    return np.ascontiguousarray(log_ndtr(x).T).sum(axis=1, dtype=float)


def _sums(x: Array, y: Array) -> Array:
    """Sums ``(C,)`` over the rows of a product, each chain's alike whatever the others."""
    return np.ascontiguousarray((x * y).T).sum(axis=1, dtype=float)
