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
has been integrated out is drawn at the end: u given eta and y, b given u, and z given both.

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

from skbayes_sgld._linalg import matmul_rows, one_blas_thread, row_slices
from skbayes_sgld._random import probe_generator
from skbayes_sgld._sparse import scale_columns
from skbayes_sgld._typing import Array
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.whitening import CollapsedPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.wide_rows.own_noise import KINDS, LEAST_SD, OwnNoise, inverse_mills

# Positions in a product, always this many, so that rounding does not depend on their number. A
# product of 32 takes 1.5 times as long as one of 16
_GROUP = 32
MOST_ROWS = 6000  # three matrices of rows by rows then take 430 megabytes
_LEAST_EIGENVALUE = 0.02  # of rows of length 1; with less, rows have hardly any noise of their own
_SHARE = 0.93  # of the largest noise that leaves V positive definite


class Predictors(CollapsedPosterior):
    """Posterior of the predictors of few rows, whose own noise is integrated out.

    The position of a chain is x and v, ``(C, 2 n)``.

    Parameters
    ----------
    posterior : GLMPosterior
        It has few rows without weights, labels or counts, and independent normal priors.

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
        with one_blas_thread(), np.errstate(over="ignore"):
            self._set_prior(posterior)
            kernel = self._kernel()
            self._set_noise(posterior, kernel)
            self._set_metric(kernel)
        n = self.n_rows
        self.softness = 1.0
        self.work = float(n) ** 2
        # in products with 32 columns a sparse multiplication takes 9 times as long as a dense one
        size = 9.0 * self._A.nnz if issparse(self._A) else float(self._A.size)
        self.work_of_draw = self.work + 2.0 * size

    def work_of(self, n_steps: int) -> float:
        """Cost of a trajectory, its momentum and the draw at its end, in multiplications."""
        return self.work * (n_steps + 2) + self.work_of_draw

    # ---- the prior ------------------------------------------------------------------------------

    def _set_prior(self, posterior: GLMPosterior) -> None:
        """Rows A, those whose predictor has a side first, and the prior mean of the predictors."""
        self.n_rows, self.n_params = posterior.n_samples, posterior.n_params
        prior, d, y = posterior.prior, posterior.n_features, posterior.y
        assert isinstance(prior, Normal)
        counts = not posterior.likelihood.bounded_curvature
        order = np.argsort(y > 0, kind="stable") if counts else np.arange(self.n_rows)
        self._has_level = posterior.fit_intercept
        root = np.broadcast_to(np.asarray(prior.scale, dtype=float), (d,))
        location = np.broadcast_to(np.asarray(prior.location, dtype=float), (d,))
        self.root = np.append(root, np.ones(self.n_params - d))
        self.inverse, self.inverse_t = 1.0 / np.square(self.root), 1.0 / self.root
        self.center = np.append(location, np.zeros(self.n_params - d))
        mean = np.zeros(d) if posterior.x_mean is None else posterior.x_mean
        X = posterior.X[order]
        self._y = y[order]
        offset = posterior.offset
        self._offset = np.zeros(self.n_rows) if offset is None else offset[order]
        self._prior_mean = X @ location - mean @ location
        if issparse(X):
            lengths = np.asarray(np.square(scale_columns(X, root)).sum(axis=1)).ravel()
        else:
            lengths = np.square(X - mean) @ np.square(root)
        # Rows minus their mean add up to 0, and would depend on each other. Minus a share of their
        # mean they are independent, with another intercept
        mean = mean * root
        steepness = np.sqrt(np.sum(1.0 / np.maximum(lengths, 1e-24))) * np.linalg.norm(mean)
        share = 1.0 / max(1.0, steepness) if self._has_level else 0.0
        self._slope, rest = share * mean, (1.0 - share) * mean
        if issparse(X):
            self._A: Any = scale_columns(X, root).astype(np.float32).tocsr()
            self._rest = rest.astype(np.float32)
        else:
            self._A = (X * root - rest).astype(np.float32)
            self._rest = np.zeros(d, np.float32)

    def _kernel(self) -> Array:
        """``K``, in single precision."""
        A, rest = self._A, self._rest
        if not issparse(A):
            return A @ A.T
        K, back = np.empty((self.n_rows,) * 2, np.float32), A.T.tocsr()
        for rows in row_slices(self.n_rows, self.n_rows, numbers=2**22):
            K[rows] = (A[rows] @ back).toarray()
        if rest.any():
            along = (A @ rest).astype(np.float32)
            K -= along
            K -= along[:, None]
            K += rest @ rest
        return K

    def _predictors(self, z: Array) -> Array:
        """``A z (C, n)``, without the intercept, for z ``(C, d)``."""
        if not issparse(self._A):
            return matmul_rows(z, self._A.T, _GROUP)
        u = np.ascontiguousarray((self._A @ np.ascontiguousarray(z.T)).T)
        return u - np.einsum("cd,d->c", z, self._rest)[:, None] if self._rest.any() else u

    def _back(self, x: Array) -> Array:
        """``A^T x (C, d)``."""
        if not issparse(self._A):
            return matmul_rows(x, self._A, _GROUP)
        z = np.ascontiguousarray((self._A.T @ np.ascontiguousarray(x.T)).T)
        return z - x.sum(axis=1)[:, None] * self._rest if self._rest.any() else z

    # ---- the noise of rows ----------------------------------------------------------------------

    def _set_noise(self, posterior: GLMPosterior, kernel: Array) -> None:
        """Variances D of the rows' own noise, and ``K^{-1}``."""
        norms = np.sqrt(np.diagonal(kernel).astype(float))
        if not norms.min() > LEAST_SD:
            raise ValueError("the rows are too short")
        self._inverse = _inverse(kernel.copy())
        scaled = norms.astype(np.float32)

        def product(x: Array) -> Array:
            return scaled * (self._inverse @ (scaled * x.ravel().astype(np.float32)))

        n = self.n_rows
        operator = LinearOperator((n, n), product, dtype=np.float32)
        start = probe_generator().standard_normal(n, dtype=np.float32)
        # of a dominant eigenvalue, from inside the spectrum
        options = {"which": "LA", "ncv": min(n, 20), "maxiter": 20, "tol": 0.01, "v0": start}
        low = 1.0 / float(eigsh(operator, 1, return_eigenvectors=False, **options)[0])
        variance = _SHARE * low * np.square(norms)
        if not (low > _LEAST_EIGENVALUE and np.sqrt(variance.min()) > LEAST_SD):
            raise ValueError("the rows are too dependent on each other, or too short")
        self._variance = variance
        self._noise = OwnNoise(posterior.likelihood, self._y, variance, self._offset)
        level = self._inverse.sum(axis=0, dtype=float)
        self._of_level, self._level_precision = level, float(level.sum())

    # ---- the metric -----------------------------------------------------------------------------

    def _set_metric(self, kernel: Array) -> None:
        """Centre c, weights W, and ``S`` with its root R.

        The normal distribution is found with the covariance of a guess of W, and rows as if their
        curvatures changed only their own variances; ``S`` is then made once more.
        """
        noise, k = self._noise, self._noise.n_sided
        kernel.flat[:: self.n_rows + 1] -= self._variance.astype(np.float32)
        guess = 1.0 / np.square(noise.total)
        guess[:k] *= 0.35  # of rows of text, at the end: 0.1 to 0.5
        S = self._covariance(kernel, guess)
        rest = 1.0 / np.diagonal(S).astype(float) - guess  # precision without the row's own
        c, a, W = self._prior_mean.copy(), np.zeros(self.n_rows), guess
        nodes, shares = np.polynomial.hermite_e.hermegauss(7)
        shares = shares / shares.sum()
        for _ in range(30):
            sds = 1.0 / np.sqrt(rest + W)
            score, W = (
                np.tensordot(shares, each, axes=1)
                for each in noise.score_and_curvature(c + nodes[:, None] * sds)
            )
            W = np.maximum(W, 0.02 / np.square(noise.total))
            force = score - a
            move = (S @ force.astype(np.float32)).astype(float)
            c, a = c + move, a + force - guess * move
            if move @ force < 1e-4 * self.n_rows:
                break
        level = 0.0
        if self._has_level:
            a -= a.mean()  # exactly 0, since the intercept has a flat prior
            level = np.mean(c - self._prior_mean - kernel @ a)
        c = self._prior_mean + level + kernel @ a
        covariance = self._covariance(kernel, W)
        lower = linalg.cholesky(covariance, lower=True, check_finite=False)
        self._S, self._R = covariance, np.ascontiguousarray(lower)
        side, total, f32 = noise.side[:k], noise.total, np.float32
        self._at = (side * (c - noise.mean)[:k] / total[:k]).astype(f32)
        self._unit = (side / total[:k]).astype(f32)
        self._W, self._a, self._c = W, a, c
        self._weights, self._pull = W[:k].astype(f32), a[:k].astype(f32)
        # rows with t = u are normal, and their weights exact
        self._rest_force = ((noise.mean - c) / np.square(total) - a)[k:].astype(f32)

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

    def first(self, generators: list[np.random.Generator]) -> Array:
        """Positions from the normal distribution nearest, moved by trajectories.

        The normal distribution is 5 % too narrow.
        """
        x = self._normals(generators, self.n_rows)
        dual = np.hstack([x, matmul_rows(x, self._R.T, _GROUP)])
        for _ in range(3):
            dual, _ = self.move(dual, np.full(len(dual), 0.32), 5, generators)
        return dual

    def _force(self, v: Array) -> Array:
        """Derivative of the rows' part of the log density in v ``(C, n)``."""
        k = len(self._at)
        force = np.empty_like(v)
        sided = v[:, :k]
        mills = inverse_mills(self._at + self._unit * sided)
        mills *= self._unit
        mills -= self._pull
        mills += self._weights * sided
        force[:, :k], force[:, k:] = mills, self._rest_force
        return force

    def _value(self, v: Array) -> Array:
        """Rows' part of the log density ``(C,)``."""
        k = len(self._at)
        sided = v[:, :k]
        value = log_ndtr(self._at + self._unit * sided)
        value += sided * (0.5 * self._weights * sided - self._pull)
        return _sums(value) + _sums(v[:, k:] * self._rest_force)

    def move(
        self, dual: Array, step: Array, n_steps: int, generators: list[np.random.Generator]
    ) -> tuple[Array, Array]:
        """Ends ``(C, 2 n)`` of trajectories, and their gains of log density ``(C,)``."""
        n, step = self.n_rows, step[:, None].astype(np.float32)
        x, v = dual[:, :n].astype(np.float32), dual[:, n:].astype(np.float32)
        m = self._normals(generators, n)
        w = matmul_rows(m, self._R.T, _GROUP)
        energy = 0.5 * (_sums(x * x) + _sums(m * m)) - self._value(v)
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
        quadratic = _sums(x_end * x_end) + _sums(in_x * (v_end + v))
        quadratic += _sums(m_end * m_end) + _sums(in_m * (w_end + w))
        x_end += matmul_rows(in_x, self._R, _GROUP)
        return np.hstack([x_end, v]), energy - 0.5 * quadratic + self._value(v)

    def leave(self, dual: Array, generators: list[np.random.Generator]) -> Array:
        """Whitened positions z ``(C, P)``, drawn given predictors without their noise."""
        eta = self._c + dual[:, self.n_rows :]
        d = self._A.shape[1]
        z = self._normals(generators, d)
        u = np.array([self._noise.draw(*each) for each in zip(eta, generators, strict=True)])
        u -= self._prior_mean
        if self._has_level:
            normals = np.array([rng.standard_normal() for rng in generators])
            level = np.einsum("cn,n->c", u, self._of_level) / self._level_precision
            level += normals / np.sqrt(self._level_precision)
            u -= level[:, None]
        residual = u.astype(np.float32) - self._predictors(z)
        z = (z + self._back(matmul_rows(residual, self._inverse, _GROUP))).astype(float)
        if not self._has_level:
            return z
        # the intercept of rows minus their whole mean
        return np.column_stack([z, level + np.einsum("cd,d->c", z, self._slope)])

    def _normals(self, generators: list[np.random.Generator], size: int) -> Array:
        """Standard normals ``(C, size)``, those of each chain from its own generator."""
        return np.array([rng.standard_normal(size, dtype=np.float32) for rng in generators])


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
    prior, y = posterior.prior, posterior.y
    if not (posterior.facts.far_from_mode and type(posterior.likelihood) in KINDS):
        return False
    separate = isinstance(prior, Normal) and prior.covariance is None and prior.proper
    flat = posterior.linear_prior.intercept.flat
    few = 2 < posterior.n_samples <= min(posterior.n_params, MOST_ROWS)
    # all labels, or counts of 0, alike say too little about an intercept
    return few and separate and flat and posterior.weight is None and bool(np.ptp(y) > 0)


def _inverse(K: Array) -> Array:
    """Inverse of a symmetric positive definite matrix, which is overwritten."""
    lower = linalg.cholesky(K.T, lower=True, overwrite_a=True, check_finite=False)
    inverse, _ = linalg.lapack.get_lapack_funcs("potri", (lower,))(lower, lower=1, overwrite_c=True)
    for rows in row_slices(len(K), len(K)):  # its lower triangle to the upper one, which is 0
        inverse[: rows.start, rows] = inverse[rows, : rows.start].T
        inverse[rows, rows] += np.tril(inverse[rows, rows], -1).T
    return inverse.T


def _sums(x: Array) -> Array:
    """Sums ``(C,)`` over the rows ``(C, n)``, in double precision, independent of other chains."""
    return x.astype(float).sum(axis=1)
