r"""Predictors of few rows, in the metric of the normal distribution nearest to their posterior.

Under independent normal priors the predictors of n rows are ``u = m + A z + b``, z standard normal
and b the intercept, and ``A z`` has the covariance ``K = A A^T``. If the rows are linearly
independent, ``V = K - D`` is positive definite for some diagonal D: u is the sum of a predictor eta
of covariance V, and of independent noise of variance D, which is integrated out row by row (a
collapsed likelihood; Liu 1994). What is left is smooth enough for a normal approximation with mean
c and covariance ``S = (P + W)^{-1}``, P the prior precision of eta and W the rows' mean curvatures
(Opper & Archambeau 2009). With ``eta = c + v``, ``v = R x`` and ``S = R R^T`` the log posterior is

.. math:: \sum_i [\ell_i(c_i + v_i) - a_i v_i + \tfrac12 W_i v_i^2] - \tfrac12 x^T x,

with ``a = P (c - m)``, which the rounds for c keep. Trajectories rotate x and v together. A kick by
the force h of the rows changes the momentum of x by ``R^T h``, and that of v by ``S h``, so that
the products ``R^T h`` are added up and made once: a leapfrog step takes one product of n by n. What
has been integrated out is drawn at the end: u given eta and y, b given u, and z given both. Rows
that have little noise of their own, such as two that are almost alike or those of a few words, have
none in D, and keep their own likelihood. Equal rows are one row of their total or sum.

A default logistic fit of 2,000 documents of 5,000 words (``benchmarks/text.py``) takes leapfrog
steps of 0.4; in the metric of the prior they are 0.09.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import linalg
from scipy.sparse import issparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from scipy.special import log_ndtr

from skbayes_sgld._linalg import equal_slices, matmul_rows, one_blas_thread, row_slices
from skbayes_sgld._random import probe_generator
from skbayes_sgld._sparse import scale_columns
from skbayes_sgld._typing import Array
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.whitening import CollapsedPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.wide_rows.equal_rows import DistinctRows, distinct_rows
from skbayes_sgld.wide_rows.matching import MOST_ROWS, site_moments
from skbayes_sgld.wide_rows.own_noise import (
    KINDS,
    OwnNoise,
    inverse_mills,
    latent_of,
    may_collapse,
)

# Positions in a product, always this many, so that rounding does not depend on their number. A
# product of 64 takes 1.6 times as long as one of 32
_GROUP = 64
_MOST_COPIES = 0.01  # share of the rows that others explain; among many, steps are very short
# Fall of the log density at which a trajectory has diverged, or a start is in a wall, out of which
# leapfrog steps do not lead
_DIVERGED = 10.0
_FEWEST_ROWS = 30  # fewer are quicker in the space of the rows
_TILE = 256  # rows of a square that is transposed in cache
_RIDGE = 3e-6  # variance that is added to all predictors, relative to the prior's
_FAR = 0.003
_SHARE = 0.93  # of the largest noise that leaves V positive definite


class Predictors(CollapsedPosterior):
    """Posterior of the predictors of few rows, whose own noise is integrated out.

    The position of a chain is x and v, ``(C, 2 n)``.

    Parameters
    ----------
    posterior : GLMPosterior
        It has labels, totals or counts, few distinct rows, and independent normal priors.

    Attributes
    ----------
    work_of_draw : float
        Cost of a draw of the coefficients, in multiplications.

    Raises
    ------
    ValueError, LinAlgError, ArpackNoConvergence
        If the rows are not independent enough, or too short.
    """

    n_fewest = n_together = group = _GROUP

    def __init__(self, posterior: GLMPosterior) -> None:
        rows = distinct_rows(posterior, min(MOST_ROWS, posterior.n_params))
        if rows is None or len(rows.y) < _FEWEST_ROWS:
            raise ValueError("too many or too few distinct rows")
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            self._set_prior(posterior, rows)
            kernel = self._kernel()
            kernel = self._set_noise(rows.likelihood, kernel)
            self._set_metric(kernel)
        n = self.n_rows
        self.softness = 1.0
        self.has_bare = self._n_noisy < n
        self.work = float(n) ** 2
        # in products with 32 columns a sparse multiplication takes 9 times as long as a dense one
        size = 9.0 * self._A.nnz if issparse(self._A) else float(self._A.size)
        self.work_of_draw = self.work + 2.0 * size

    def work_of(self, n_steps: int) -> float:
        """Cost of a trajectory, its momentum and the draw at its end, in multiplications."""
        return self.work * (n_steps + 2) + self.work_of_draw

    # ---- the prior ------------------------------------------------------------------------------

    def _set_prior(self, posterior: GLMPosterior, rows: DistinctRows) -> None:
        """Rows A, and the prior mean of the predictors."""
        self.n_rows, self.n_params = len(rows.y), posterior.n_params
        prior, d = posterior.prior, posterior.n_features
        assert isinstance(prior, Normal)
        self._has_level = posterior.fit_intercept
        root = np.broadcast_to(np.asarray(prior.scale, dtype=float), (d,))
        location = np.broadcast_to(np.asarray(prior.location, dtype=float), (d,))
        self.root = np.append(root, np.ones(self.n_params - d))
        self.inverse, self.inverse_t = 1.0 / np.square(self.root), 1.0 / self.root
        self.center = np.append(location, np.zeros(self.n_params - d))
        mean = np.zeros(d) if posterior.x_mean is None else posterior.x_mean
        # rows whose predictor has a side come first
        order = np.argsort(latent_of(rows.y).side == 0, kind="stable")
        X, self._y, self._offset = rows.X[order], rows.y[order], rows.offset[order]
        self._prior_mean = X @ location - mean @ location
        self._slope = mean * root
        if issparse(X):
            self._A: Any = scale_columns(X, root).astype(np.float32).tocsr()
            return
        A, lengths = X * root, np.square(X - mean) @ np.square(root)
        if self._slope @ self._slope > lengths.mean():
            # a large mean costs digits. Rows minus their mean add up to 0, and would depend on each
            # other. Minus a share of their mean they are independent, with another intercept
            steepness = np.sqrt(np.sum(1.0 / lengths)) * np.linalg.norm(self._slope)
            share = 1.0 / max(1.0, steepness)
            A -= (1.0 - share) * self._slope
            self._slope *= share
        self._A = A.astype(np.float32)

    def _kernel(self) -> Array:
        """``K``, in single precision."""
        A = self._A
        if not issparse(A):
            return A @ A.T
        K, back = np.empty((self.n_rows,) * 2, np.float32), A.T.tocsr()
        for rows in row_slices(self.n_rows, self.n_rows, numbers=2**22):
            K[rows, rows.start :] = (A[rows] @ back[:, rows.start :]).toarray()
        return _symmetric(K)

    def _predictors(self, z: Array) -> Array:
        """``A z (C, n)``, without the intercept, for z ``(C, d)``."""
        if not issparse(self._A):
            return matmul_rows(z, self._A.T, _GROUP)
        return np.ascontiguousarray((self._A @ np.ascontiguousarray(z.T)).T)

    def _back(self, x: Array) -> Array:
        """``A^T x (C, d)``."""
        if not issparse(self._A):
            return matmul_rows(x, self._A, _GROUP)
        return np.ascontiguousarray((self._A.T @ np.ascontiguousarray(x.T)).T)

    # ---- the noise of rows ----------------------------------------------------------------------

    def _set_noise(self, likelihood: Likelihood, kernel: Array) -> Array:
        """Variances D of the rows' own noise, ``K^{-1}``, and the order of the rows, that of K too.

        Rows with too little noise come last, and keep their own likelihood.
        """
        n, latent = self.n_rows, latent_of(self._y)
        squares = np.diagonal(kernel).astype(float)
        # for rows that hardly differ
        ridge = _RIDGE * (squares + squares.mean())
        kernel.flat[:: n + 1] += ridge.astype(np.float32)
        inverse = _inverse(kernel.copy())
        alone = 1.0 / np.diagonal(inverse).astype(float)  # variances of predictors given the others
        # the ridge keeps predictors this far from those of the coefficients, in squares of the sds
        # that large counts leave; a second solution removes it
        far = np.square(ridge) / (alone * latent.variance)
        self._n_solves = 1 if far.max() < _FAR else 2
        # the others' noise is that given rows without any
        bare = _SHARE * alone < latent.least_noise
        if np.sum(alone < 10.0 * ridge) > max(1.0, _MOST_COPIES * n):  # as empty rows are one
            raise ValueError("too many rows depend on each other")
        scaled = np.sqrt(np.where(bare, 0.0, alone)).astype(np.float32)

        def product(x: Array) -> Array:
            return scaled * (inverse @ (scaled * x.ravel().astype(np.float32)))

        operator = LinearOperator((n, n), product, dtype=np.float32)
        start = probe_generator().standard_normal(n, dtype=np.float32)
        # of a dominant eigenvalue, from inside the spectrum
        options = {"which": "LA", "ncv": min(n, 20), "maxiter": 20, "tol": 0.01, "v0": start}
        variance = np.zeros(n)
        if not bare.all():
            low = 1.0 / float(eigsh(operator, 1, return_eigenvectors=False, **options)[0])
            variance = _SHARE * low * alone
            bare |= variance < latent.least_noise
            variance[bare] = 0.0
        order = np.argsort(bare, kind="stable")
        if bare.any():
            kernel, inverse = (M[np.ix_(order, order)] for M in (kernel, inverse))
            self._A, self._prior_mean = self._A[order], self._prior_mean[order]
            self._y, self._offset, variance = self._y[order], self._offset[order], variance[order]
        self._inverse, self._variance = inverse, variance
        m = self._n_noisy = n - int(bare.sum())
        self._noise = OwnNoise(self._y[:m], variance[:m], self._offset[:m])
        # in double precision: energies of large counts are differences of large numbers
        self._bare = likelihood.bind(RowValues(self._y[m:], offset=self._offset[m:]), np.float64)
        level = self._inverse.sum(axis=0, dtype=float)
        self._of_level, self._level_precision = level, float(level.sum())
        return kernel

    # ---- the metric -----------------------------------------------------------------------------

    def _set_metric(self, kernel: Array) -> None:
        """Centre c, weights W, and ``S`` with its root R.

        The normal distribution is found with the covariance of a guess of W, and rows as if their
        curvatures changed only their own variances. The guess is as good a metric as the weights
        that are found, and ``S`` is made once.
        """
        noise, m, k = self._noise, self._n_noisy, self._noise.n_sided
        if m < self.n_rows:  # rows without noise may be copies
            kernel = kernel.astype(float)
        kernel.flat[:: self.n_rows + 1] -= self._variance.astype(kernel.dtype)
        latent = latent_of(self._y)
        variance = np.append(np.square(noise.total), latent.variance[m:])
        W = 1.0 / variance
        W[:k] *= 0.25  # as of rows of text, where weights that fit are 0.1 to 0.5
        bare = latent.side[m:] != 0
        wide = variance + np.diagonal(kernel)
        W[m:][bare] = 2.0 / wide[m:][bare]
        least = 0.02 / np.append(variance[:m], wide[m:])
        c, a = self._prior_mean.copy(), np.zeros(self.n_rows)
        for _ in range(1 if m == self.n_rows else 3):
            guess, S = W, self._covariance(kernel, W)
            rest = 1.0 / np.diagonal(S).astype(float) - guess  # precision without the row's own
            for _ in range(30):
                score, W = self._averaged(c, a, W, rest)
                W = np.maximum(W, least)
                force = score - a
                move = (S @ force.astype(S.dtype)).astype(float)
                part = min(1.0, 2.0 / np.max(np.abs(move) * np.sqrt(rest + W)))
                c, a = c + part * move, a + part * (force - guess * move)
                if move @ force < 1e-4 * self.n_rows:
                    break
        if not np.isfinite(W).all():
            raise ValueError("no normal distribution is near")
        level = 0.0
        if self._has_level:
            a -= a.mean()  # exactly 0, since the intercept has a flat prior
            level = np.mean(c - self._prior_mean - kernel @ a)
        c = self._prior_mean + level + kernel @ a
        self._c, self._a, self._W, f32 = c, a, guess, np.float32
        self._weights, self._pull = guess.astype(f32), a.astype(f32)
        side, total = noise.side[:k], noise.total
        self._at = (side * (c[:k] - noise.mean[:k]) / total[:k]).astype(f32)
        self._unit = (side / total[:k]).astype(f32)
        upper = linalg.cholesky(S.T, check_finite=False)
        self._S, self._R = S.astype(f32, copy=False), upper.T.astype(f32, copy=False)
        # rows with t = u are normal, and their weights exact
        self._rest_force = ((noise.mean - c[:m]) / np.square(total) - a[:m])[k:].astype(f32)

    def _averaged(self, c: Array, a: Array, W: Array, rest: Array) -> tuple[Array, Array]:
        """Score and curvature of each row over a normal distribution of its predictor.

        The distribution has mean c, and the precision ``rest`` without the row's own, W. For rows
        with their own likelihood score and curvature are those that match its moments.
        """
        m = self._n_noisy
        score, new = np.empty((2, self.n_rows))
        nodes, shares = np.polynomial.hermite_e.hermegauss(7)
        sds = 1.0 / np.sqrt(rest[:m] + W[:m])
        averages = self._noise.score_and_curvature(c[:m] + nodes[:, None] * sds)
        score[:m], new[:m] = (shares @ each / shares.sum() for each in averages)
        if m < self.n_rows:
            at, rest = c[m:], rest[m:]
            others = at - a[m:] / rest  # mean without the row
            mean, spread = site_moments(self._bare, 1.0, others, rest)
            new[m:] = 1.0 / spread - rest
            score[m:] = mean / spread - rest * others - new[m:] * at
        return score, new

    def _covariance(self, prior: Array, weights: Array) -> Array:
        """``(P + W)^{-1}``, from the covariance V of eta without the intercept."""
        variances = 1.0 / weights
        S = prior.copy()
        S.flat[:: self.n_rows + 1] += variances.astype(np.float32)
        S = _inverse(S)
        scale = variances.astype(np.float32)
        S *= -scale
        S *= scale[:, None]
        S.flat[:: self.n_rows + 1] += scale
        if self._has_level:
            own = 1.0 - (S @ weights.astype(np.float32)).astype(float)
            own /= np.sqrt(weights @ own)
            column = own.astype(np.float32)[:, None]
            S += column * column.T
        return S

    # ---- trajectories ---------------------------------------------------------------------------

    def _rooted(self, x: Array) -> Array:
        """``R x (C, n)``, in parts, since half of R is 0."""
        R, parts = self._R, _parts(self.n_rows)
        return np.hstack([matmul_rows(x[:, : p.stop], R[p, : p.stop].T, _GROUP) for p in parts])

    def _pulled_back(self, force: Array) -> Array:
        """``R^T force (C, n)``, in parts, since half of R is 0."""
        R, parts = self._R, _parts(self.n_rows)
        each = [matmul_rows(force[:, p.start :], R[p.start :, p], _GROUP) for p in parts]
        return np.hstack(each)

    def first(self, generators: list[np.random.Generator]) -> Array:
        """Positions from the normal distribution nearest, moved by trajectories.

        The normal distribution is 5 % too narrow.
        """
        x = self._normals(generators, self.n_rows)
        v, least = self._rooted(x), self._value(np.zeros_like(x)) - _DIVERGED
        for _ in range(10):  # a wall may be nearer than the normal distribution reaches
            far = ~(self._value(v) > least)
            if not far.any():
                break
            x[far], v[far] = 0.5 * x[far], 0.5 * v[far]
        dual = np.hstack([x, v])
        smooth = self._n_noisy == self.n_rows
        n_steps = 4 if smooth else 20
        for _ in range(2 if smooth else 3):
            step = np.full(len(dual), 1.6 / n_steps)
            end, gain = self.move(dual, step, n_steps, generators)
            # a wall may throw a trajectory far away
            dual = np.where((gain > -_DIVERGED)[:, None], end, dual)
        return dual

    def _force(self, v: Array) -> Array:
        """Derivative of the rows' part of the log density in v ``(C, n)``."""
        k, m, force = len(self._at), self._n_noisy, np.empty_like(v)
        mills = inverse_mills(self._at + self._unit * v[:, :k])
        mills *= self._unit
        force[:, :k] = mills
        force[:, k:m] = self._rest_force
        if m < self.n_rows:
            force[:, m:] = self._bare.derivatives((self._c[m:] + v[:, m:])[:, None], 1)[0][:, 0]
        for part in (slice(0, k), slice(m, None)):
            force[:, part] += self._weights[part] * v[:, part] - self._pull[part]
        return force

    def _value(self, v: Array) -> Array:
        """Rows' part of the log density ``(C,)``."""
        k, m = len(self._at), self._n_noisy
        value = np.empty_like(v)
        value[:, :k] = log_ndtr(self._at + self._unit * v[:, :k])
        value[:, k:m] = v[:, k:m] * self._rest_force
        if m < self.n_rows:
            value[:, m:] = self._bare.derivatives((self._c[m:] + v[:, m:])[:, None], 0)[0]
        for part in (slice(0, k), slice(m, None)):
            value[:, part] += v[:, part] * (
                0.5 * self._weights[part] * v[:, part] - self._pull[part]
            )
        return self._sums(value)

    def move(
        self, dual: Array, step: Array, n_steps: int, generators: list[np.random.Generator]
    ) -> tuple[Array, Array]:
        """Ends ``(C, 2 n)`` of trajectories, and their gains of log density ``(C,)``."""
        n, step = self.n_rows, step[:, None].astype(np.float32)
        x, v = dual[:, :n].astype(np.float32), dual[:, n:].astype(np.float32)
        m = self._normals(generators, n)
        w = self._rooted(m)
        energy = 0.5 * (self._sums(x * x) + self._sums(m * m)) - self._value(v)
        # without the kicks
        cos, sin = np.cos(n_steps * step), np.sin(n_steps * step)
        x_end, m_end = cos * x + sin * m, cos * m - sin * x
        v_end, w_end = cos * v + sin * w, cos * w - sin * v
        in_x, in_m = np.zeros_like(v), np.zeros_like(v)  # sums of kicks in the end
        for number in range(n_steps + 1):
            angle = step * np.float32(0.5 if number in (0, n_steps) else 1.0)
            cos, sin = np.cos(angle), np.sin(angle)
            v, w = cos * v + sin * w, cos * w - sin * v
            if number < n_steps:
                kick = step * self._force(v)
                w += matmul_rows(kick, self._S, _GROUP)
                left = step * np.float32(n_steps - number - 0.5)
                in_x += np.sin(left) * kick
                in_m += np.cos(left) * kick
        quadratic = self._sums(x_end * x_end) + self._sums(in_x * (v_end + v))
        quadratic += self._sums(m_end * m_end) + self._sums(in_m * (w_end + w))
        x_end += self._pulled_back(in_x)
        return np.hstack([x_end, v]), energy - 0.5 * quadratic + self._value(v)

    def leave(self, dual: Array, generators: list[np.random.Generator]) -> Array:
        """Whitened positions z ``(C, P)``, drawn given predictors without their noise."""
        eta = self._c + dual[:, self.n_rows :]
        d = self._A.shape[1]
        z = self._normals(generators, d)
        u, m = eta.astype(float), self._n_noisy
        u[:, :m] = [self._noise.draw(*each) for each in zip(eta[:, :m], generators, strict=True)]
        u -= self._prior_mean
        if self._has_level:
            normals = np.array([rng.standard_normal() for rng in generators])
            level = np.einsum("cn,n->c", u, self._of_level) / self._level_precision
            level += normals / np.sqrt(self._level_precision)
            u -= level[:, None]
        for _ in range(self._n_solves):
            residual = (u - self._predictors(z)).astype(np.float32)
            z += self._back(matmul_rows(residual, self._inverse, _GROUP))
        draws = np.empty((len(z), self.n_params))
        draws[:, :d] = z
        if self._has_level:  # the intercept of rows minus their whole mean
            draws[:, d] = level + np.einsum("cd,d->c", draws[:, :d], self._slope)
        return draws


_KNOWN: WeakKeyDictionary[GLMPosterior, Predictors | None] = WeakKeyDictionary()


def predictors_of(posterior: Any) -> Predictors | None:
    """Predictors of a posterior's rows; None if trajectories of them are impossible or useless.

    They are kept as long as the posterior, since choosing coordinates takes them first.
    """
    if type(posterior) is not GLMPosterior or not _may_collapse(posterior):
        return None
    if posterior not in _KNOWN:
        try:
            _KNOWN[posterior] = Predictors(posterior)
        except (ValueError, ArpackNoConvergence, np.linalg.LinAlgError):
            _KNOWN[posterior] = None
    return _KNOWN[posterior]


def collapses(posterior: Any, settings: Settings) -> bool:
    """Whether default chains of a posterior move the predictors of its rows."""
    # at another temperature the tempered likelihood would have to be integrated
    usual = settings.left_to_tuning and settings.tau == 1.0 and settings.temperature is None
    usual = usual and settings.parameterization in (AUTO, "centered")
    return usual and predictors_of(posterior) is not None


def _may_collapse(posterior: GLMPosterior) -> bool:
    """Whether model and rows are of the kind whose noise can be integrated out."""
    if not (posterior.facts.far_from_mode and type(posterior.likelihood) in KINDS):
        return False
    # all labels, or counts of 0, alike say too little about an intercept
    level = posterior.likelihood.level_weight(posterior.y, posterior.weight)
    return may_collapse(posterior) and level > 0.0


def _parts(n: int) -> list[slice]:
    """Eighths of n rows; among few, products of less than all of them gain nothing."""
    return equal_slices(n, min(8, -(-n // 256)))


def _inverse(K: Array) -> Array:
    """Inverse of a symmetric positive definite matrix, which is overwritten."""
    lower = linalg.cholesky(K.T, lower=True, overwrite_a=True, check_finite=False)
    inverse, _ = linalg.lapack.get_lapack_funcs("potri", (lower,))(lower, lower=1, overwrite_c=True)
    return _symmetric(inverse.T)


def _symmetric(M: Array) -> Array:
    """M, whose lower triangle is overwritten by the upper one."""
    tiles = [slice(first, first + _TILE) for first in range(0, len(M), _TILE)]
    for i, rows in enumerate(tiles):
        M[rows, rows] = np.triu(M[rows, rows]) + np.triu(M[rows, rows], 1).T
        for columns in tiles[i + 1 :]:
            M[columns, rows] = M[rows, columns].T
    return M
