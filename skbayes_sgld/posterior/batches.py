"""Some of the rows of a generalised linear model: minibatches, and subsets that stand for all."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skbayes_sgld.posterior.base import BoundBatches
from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.linear_predictors import RowSums
from skbayes_sgld.posterior.linear_prior import LinearPrior
from skbayes_sgld.posterior.protocol import Rows

Array = NDArray[Any]


_ROUNDED_BATCH = 2**15  # numbers of a shared batch from which products in float32 pay
_HELD_SINGLE = 1e15  # of X: float32 holds the squares, too


class _LinearModel(Protocol):
    """The members of a generalised linear model whose rows are gathered."""

    X: Array
    y: Array
    weight: Array | None
    center: Array | None
    likelihood: Likelihood
    n_params: int
    n_features: int
    n_predictors: int
    fit_intercept: bool


class LinearBatches(BoundBatches):
    """Batches of the rows of a generalised linear model.

    A batch is its design and what the likelihood takes of the observations. Of a large X, of which
    no design is held, a column of ones is never gathered: intercepts are added to the predictors,
    and their gradients summed, apart.

    The ``n_walkers`` neighbouring positions of a chain share its batch: the batch is gathered
    once, and each of its products takes all of them. With ``rounded`` products are in single
    precision: a control variate's rest is small, and changes little with a row's predictor.
    """

    def __init__(
        self,
        posterior: _LinearModel,
        design: Array | None,
        n_chains: int,
        batch_size: int,
        n_walkers: int = 1,
        rounded: bool = False,
    ) -> None:
        self.size, self._n_walkers = batch_size, n_walkers
        self._likelihood = posterior.likelihood
        self._y, self._weight = posterior.y, posterior.weight
        held = design is not None
        self._source = posterior.X if design is None else design
        K, width = posterior.n_predictors, posterior.n_features + posterior.fit_intercept
        self._infers_noise = self._likelihood.infers_noise
        self._level = posterior.fit_intercept and not held
        self._bare = not (self._infers_noise or self._level)
        self._center = None if held else posterior.center
        # one vector: its products are the same numbers as in a stack, at half the cost
        plain = not self._infers_noise and self._center is None
        n_positions = n_chains * n_walkers
        self._single = plain and n_positions * K == 1
        self._n_linear, self._P = K * width, posterior.n_params
        self._linear = n_positions, K, width
        self._shape = n_chains, batch_size, self._source.shape[1]
        self._together = n_chains, n_walkers * K, -1
        self._u = np.empty((n_positions, self._likelihood.n_local, batch_size))
        self._u_single = self._u[0, 0]
        self._eta = self._u[:, :K]
        # the predictors of all walkers of a chain are one product
        shared, self._rounded = n_walkers > 1, rounded
        self._product: Array = self._u.reshape(self._together) if shared else self._eta
        if rounded:
            self._product = np.empty(self._product.shape, np.float32)
            self._design32 = np.empty((0, *self._shape), np.float32)
        self._design = np.empty((0, *self._shape))
        # take copies an array that is not in C order as a whole
        self._fast = self._source.flags.c_contiguous and self._source.dtype == np.float64

    def gather(self, idx: Array) -> Sequence[Any]:
        """Batches of the rows ``idx (T, C, B)``, one a step."""
        if len(idx) > len(self._design):
            self._design = np.empty((len(idx), *self._shape))
        design: Array = self._design[: len(idx)]
        if self._fast:
            # any mode but "raise", which would write to a temporary first; no index is out of range
            self._source.take(idx, axis=0, out=design, mode="clip")
        else:
            design[...] = self._source[idx]
        weight = None if self._weight is None else self._weight.take(idx)
        observed = self._likelihood.observed(self._y.take(idx), weight)
        if self._n_walkers > 1:
            observed = tuple(np.repeat(each, self._n_walkers, axis=1) for each in observed)
        if self._single:
            return list(zip(design[:, 0], *observed, strict=True))
        if self._rounded:
            if len(idx) > len(self._design32):
                self._design32 = np.empty(design.shape, np.float32)
            single: Array = self._design32[: len(idx)]
            single[...] = design
            design = single
        return list(zip(design, *observed, strict=True))

    def _predictors(self, theta: Array) -> Array:
        linear = theta[:, : self._n_linear] if self._infers_noise else theta
        return linear.reshape(self._linear)

    def local(self, theta: Array, batch: Any) -> Array:
        """Local parameters ``(C, n_local, B)``."""
        if self._single:
            linear = theta[0]
            if not self._level:
                batch[0].dot(linear, out=self._u_single)
                return self._u
            batch[0].dot(linear[:-1], out=self._u_single)
            self._u_single += linear[-1]
            return self._u
        columns = batch[0].swapaxes(-1, -2)
        if self._bare:
            self._multiply(theta, columns)
            return self._u
        linear = self._predictors(theta)
        if self._level:
            coef, level = linear[..., :-1], linear[..., -1]
            self._multiply(coef, columns)
            if self._center is not None:
                # a dot product a chain rounds alike whatever the number of chains
                level = level - np.vecdot(coef, self._center)
            self._eta += level[..., None]
        else:
            self._multiply(linear, columns)
        if self._infers_noise:
            self._u[:, -1] = theta[:, -1:]
        return self._u

    def _multiply(self, left: Array, columns: Array) -> None:
        """Write the predictors of all walkers, one product a chain."""
        grouped = left.reshape(self._together).astype(columns.dtype, copy=False)
        np.matmul(grouped, columns, out=self._product)
        if self._rounded:
            self._eta[...] = self._product.reshape(self._eta.shape)

    def score(self, u: Array, batch: Any) -> Array:
        """Weighted gradient of each row's log likelihood in u, which may be overwritten."""
        return self._likelihood.observed_score(u, *batch[1:])

    def pullback(self, score: Array, batch: Any, out: Array | None = None) -> Array:
        """Gradient in theta ``(C, P)``: ``out``, or a new array."""
        if self._bare and out is None:
            if self._single:
                return score[0, 0].dot(batch[0])[None]
            return self._pull(score, batch[0]).reshape(-1, self._P)
        grad = np.empty((self._linear[0], self._P)) if out is None else out
        if self._single:
            of_row, width = score[0, 0], self._shape[-1]
            of_row.dot(batch[0], out=grad[0, :width])
            if self._level:
                grad[0, -1] = np.add.reduce(of_row)
            return grad
        linear = self._predictors(grad)
        if self._infers_noise:
            score[:, -1].sum(axis=1, out=grad[:, -1])
            score = score[:, :-1]
        columns = linear[..., :-1] if self._level else linear
        if self._n_walkers > 1:
            columns[...] = self._pull(score, batch[0]).reshape(columns.shape)
        else:
            np.matmul(score, batch[0], out=columns)
        if self._level:
            total = linear[..., -1]
            np.add.reduce(score, axis=2, out=total)
            if self._center is not None:
                columns -= total[..., None] * self._center
        return grad

    def gradient(self, theta: Array, batch: Any) -> Array:
        """Gradient of the batch's log likelihood ``(C, P)``, a new array."""
        if not self._bare:
            return super().gradient(theta, batch)
        design, *observed = batch
        if self._single:
            design.dot(theta[0], out=self._u_single)
            score = self._likelihood.observed_score(self._u, *observed)
            return score[0, 0].dot(design)[None]
        self._multiply(theta, design.swapaxes(-1, -2))
        score = self._likelihood.observed_score(self._u, *observed)
        return self._pull(score, design).reshape(-1, self._P)

    def _pull(self, score: Array, design: Array) -> Array:
        """Scores of all walkers times their rows ``(n_chains, n_walkers * K, d)``."""
        grouped = score.reshape(self._together).astype(design.dtype, copy=False)
        product: Array = np.matmul(grouped, design)
        return product.astype(float, copy=False)


class RowSubsets(RowSums):
    """Rows one by one, gathered for batches or not, and subsets that stand for all of them."""

    linear_prior: LinearPrior
    shareable = True
    _holds: bool | None  # whether single precision holds X

    def take(self, idx: Array) -> Rows:
        """Gathered rows ``idx (..., B)``; a leading axis of steps gathers those of many at once."""
        weight = None if self.weight is None else self.weight.take(idx)
        if self._design is not None:
            return Rows(self._design.take(idx, axis=0), self.y.take(idx), weight)
        design = np.empty((*idx.shape, self._width), dtype=np.float64)
        self._fill(design, self.X.take(idx, axis=0))
        return Rows(design, self.y.take(idx), weight)

    def local(self, theta: Array, rows: Rows) -> Array:
        """Local parameters of gathered rows ``(C, n_local, B)``."""
        return self._append_gamma(self._linear(theta) @ rows.design.swapaxes(-1, -2), theta)

    def score(self, u: Array, rows: Rows) -> Array:
        """Weighted gradient of each gathered row's log likelihood in u ``(C, n_local, B)``."""
        score = self.likelihood.score(u, rows.y)
        return score if rows.weight is None else score * rows.weight[:, None]

    @property
    def shares_batches(self) -> bool:
        """Whether a batch may be that of several walkers: rows are dense, the noise is known."""
        return not (issparse(self.X) or self._infers_noise)

    def bind_batches(self, n_chains: int, batch_size: int, n_walkers: int = 1) -> BoundBatches:
        """Batches of rows for the chains of one run, in one thread."""
        if issparse(self.X):
            of_rows: Any = self
            return BoundBatches(of_rows, batch_size)
        rounded = n_walkers > 1 and self._rounds_batches(batch_size)
        return LinearBatches(self, self._design, n_chains, batch_size, n_walkers, rounded)

    def _rounds_batches(self, batch_size: int) -> bool:
        """Whether products with a shared batch are in single precision: it pays, and holds X."""
        if batch_size * self.n_features < _ROUNDED_BATCH:
            return False
        if self._holds is None:
            self._holds = bool(max(self.X.max(), -self.X.min()) < _HELD_SINGLE)
        return self._holds

    def prior_slope(self) -> Array | None:
        """Factor ``(P,)``, for independent normal priors about zero."""
        if self._infers_noise:
            return None
        return self.linear_prior.slope_of_flat(self.n_predictors, self._width)

    def local_curvature(self, u: Array, rows: Rows) -> Array:
        """Weighted minus Hessian of each row's log likelihood in u ``(C, n_local, n_local, B)``."""
        curvature = self.likelihood.curvature(u, rows.y)
        return curvature if rows.weight is None else curvature * rows.weight[:, None, None]

    def pullback(self, score: Array, rows: Rows) -> Array:
        """Gradient in theta ``(C, P)`` from the rows' gradients in u."""
        linear = score[:, : self.n_predictors] @ rows.design
        grad = linear.reshape(score.shape[0], self._n_linear)
        if self._infers_noise:
            grad = np.concatenate([grad, score[:, -1:].sum(axis=2)], axis=1)
        return grad

    def log_likelihood(self, theta: Array, idx: Array | None = None) -> Array:
        """Weighted log likelihood of each row ``(C, B)``."""
        if idx is not None:
            taken = self.take(idx)
            value = self.likelihood.log_density(self.local(theta, taken), taken.y)
            return value if taken.weight is None else value * taken.weight
        blocks = [self._log_likelihood_block(theta, rows) for rows in self._blocks()]
        return np.concatenate(blocks, axis=1)

    def _log_likelihood_block(self, theta: Array, rows: slice) -> Array:
        value = self.likelihood.log_density(self._local_block(theta, rows), self.y[rows])
        return value if self.weight is None else value * self.weight[rows]

    def _sum_of_log_likelihood(self, theta: Array, blocks: list[slice]) -> Array:
        value = np.zeros(theta.shape[0])
        for rows in blocks:
            value += self._log_likelihood_block(theta, rows).sum(axis=1)
        return value

    # ---- subsets that stand for all rows --------------------------------------------------------

    def subset(self, rows: slice) -> Self:
        """Posterior given some of the rows, each for those left out beside it too.

        Rows of a rare class are all in it: a few of them would say little of where it is.
        """
        return self.with_rows(*self._thinned(rows, self.likelihood.rare(self.y)))

    def with_rows(self, X: Array, y: Array, weight: Array | None) -> Self:
        """Posterior given other rows, under the same prior and in the same coordinates."""
        other = copy(self)
        other._bind(X, y, weight)
        return other

    def _thinned(self, rows: slice, rare: Array | None) -> tuple[Array, Array, Array]:
        """X, y and weights of a subset, whose rows that are not rare count for others too."""
        if rare is None:
            y = self.y[rows]
            each = self.n_samples / len(y)
            weight = np.full(len(y), each) if self.weight is None else each * self.weight[rows]
            return self.X[rows], y, weight
        chosen = np.zeros(self.n_samples, bool)
        chosen[rows] = True
        idx = np.flatnonzero(chosen | rare)
        weight = np.where(rare[idx], 1.0, self.n_samples / chosen.sum())
        if self.weight is not None:
            weight *= self.weight[idx]
        return self.X[idx], self.y[idx], weight
