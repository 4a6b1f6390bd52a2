"""The posterior of rows that are read in passes: its mode, and a sample next to which chains run.

The first pass tells the moments of the columns, the labels that there are, and a sample of rows,
whose own mode is where the search begins. Each further pass expands the log likelihood of all rows
to second order at a point, and the sample estimates the orders above; the mode of both and the
prior is the next point. The distance to the mode falls as its square does, times the small error of
the third order, so that a few passes do.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld.blocks.moments import Extent, Moments
from skbayes_sgld.blocks.sample import Sample, Sampling
from skbayes_sgld.blocks.source import Block, RowSource
from skbayes_sgld.posterior.accumulated import Sums
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.likelihoods import Likelihood
from skbayes_sgld.posterior.pooled import PooledPosterior
from skbayes_sgld.posterior.propriety import check_expanded
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.sampling.tuning.mode import Mode, NoModeError, find_mode, mode_of_expansion

Array = NDArray[Any]

_NEAR = 1e-6  # distance from the mode in sds at which the search ends
_STRICT = 1e-16  # squared distance from the mode of an expansion
_SHRUNK = 0.2  # of the distance at most, where what is left of the next one is known
_MOST = 20  # expansions
_TURNS, _SETTLED = 20, 1e-20  # of a search that the sample refines, and its last squared step
_GROUP_ROWS = 1000  # of each label, or of counts above 0, at least: they tell where rare ones lie


# ---- the first pass ---------------------------------------------------------------------------


def add_up(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sums of the members of both; None stands for nothing."""
    pairs = zip(a, b, strict=True)
    return tuple(x if y is None else y if x is None else x.plus(y) for x, y in pairs)


def _with_weight(block: Block) -> tuple[Array, Array, Array | None]:
    """Rows of a block whose weight is above zero."""
    if block.weight is None or block.weight.all():
        return block.X, block.y, block.weight
    kept = block.weight > 0
    return block.X[kept], block.y[kept], block.weight[kept]


def _numbers(block: Block) -> Block:
    """The block with a numeric target; a ValueError names the block."""
    if block.y.dtype.kind not in "fiub":
        raise ValueError(
            f"y of block {block.number} has dtype {block.y.dtype}; the target of a regression "
            "must be numeric."
        )
    return block._replace(y=block.y.astype(np.float64))


def _sums(block: Block) -> tuple[Sums | None, Extent | None]:
    X, y, weight = _with_weight(_numbers(block))
    return (Sums.of_rows(X, y, weight), Extent.of_rows(X)) if len(y) else (None, None)


def sum_up(source: RowSource) -> tuple[Sums, Extent]:
    """What a normal likelihood takes of the rows, in one pass."""
    return _some(source.reduce(_sums, add_up))


def _look(
    block: Block, likelihood: Likelihood | None, how: Sampling
) -> tuple[Moments, Extent | None, Sample]:
    labels, codes = np.zeros(1), None
    if likelihood is None:
        codes, labels = pd.factorize(_check_labels(block), sort=True)
    else:
        block = _numbers(block)
        _check_target(block, likelihood)
    X, _, weight = _with_weight(block)
    moments = Moments.of_block(block, np.asarray(labels), codes)
    if not len(X):
        return moments, None, Sample.of_block(block, how, *np.zeros((2, X.shape[1])))
    sample = Sample.of_block(block, how, *moments.together(np.ones(len(labels))))
    return moments, Extent.of_rows(X), sample


def _check_labels(block: Block) -> Array:
    y = block.y
    if y.dtype.kind == "f" and np.any(y != np.floor(y)):
        value = y[y != np.floor(y)][0]
        raise ValueError(
            f"y of block {block.number} has the value {value:g}, which is no label; labels are "
            "whole numbers, or text."
        )
    return y


def _check_target(block: Block, likelihood: Likelihood) -> None:
    try:
        likelihood.check_target(block.y)
    except ValueError as error:
        raise ValueError(f"block {block.number}: {error}") from None


def look(
    source: RowSource, likelihood: Likelihood | None, seed: int
) -> tuple[Moments, Extent, Sample]:
    """Moments of the columns, their extent and a sample of the rows, in one pass.

    ``likelihood`` is that of numbers, and None where y is a label.
    """
    how = Sampling(source.pool_size, seed, _GROUP_ROWS, likelihood is None, source.n_rows)
    found: tuple[Any, ...] = source.reduce(partial(_look, likelihood=likelihood, how=how), add_up)
    return _some(found)


def _some(found: tuple[Any, ...]) -> Any:
    if any(part is None for part in found):
        raise ValueError("the weights of all rows are zero; at least one must be positive.")
    return found


@dataclass(frozen=True)
class Encoding:
    """The target as a likelihood takes it.

    Attributes
    ----------
    labels : ndarray of shape (G,) or None
        Sorted; None where y is a number.
    codes, factors : ndarray of shape (G,)
        Code of each label, and what the weights of its rows are multiplied by.
    """

    labels: Array | None
    codes: Array
    factors: Array

    def rows(self, X: Array, y: Array, weight: Array | None) -> tuple[Array, Array, Array | None]:
        """Rows with weights above zero, y encoded; weights are None where all are 1."""
        if self.labels is None:
            y = y.astype(np.float64)
        else:
            at = np.searchsorted(self.labels, y)
            y = self.codes[at]
            if np.any(self.factors != 1.0):
                factor = self.factors[at]
                weight = factor if weight is None else weight * factor
        if weight is not None and not weight.all():
            kept = weight > 0
            X, y, weight = X[kept], y[kept], weight[kept]
        if weight is not None and np.all(weight == 1.0):
            weight = None
        return X, y, weight

    def sampled(self, sample: Sample, moments: Moments) -> tuple[Array, Array, Array | None]:
        """Rows of a sample, each for those that it stands for.

        The rows of each label have the weight of all its rows together.
        """
        X, y, weight = sample.rows()
        if not sample.complete:
            group = np.zeros(len(y), int)
            if self.labels is not None:
                group = np.searchsorted(self.labels, y)
            found = np.bincount(group, weight, minlength=len(moments.total))
            weight *= (moments.total / np.where(found > 0, found, 1.0))[group]
        return self.rows(X, y, weight)


NUMBERS = Encoding(None, np.zeros(1), np.ones(1))
"""Encoding of a target that is a number as it is."""


# ---- the mode ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slope:
    """Expansion of the log likelihood of some rows.

    Attributes
    ----------
    sums : ndarray of shape (P + 1, P)
        Minus the Hessian, and the gradient as a last row.
    value : float
        Log likelihood; nan where it was not asked for.
    least : float
        The least log likelihood of a row of weight 1.
    """

    sums: Array
    value: float
    least: float

    def plus(self, other: Slope) -> Slope:
        """That of the rows of both."""
        least = min(self.least, other.least)
        return Slope(self.sums + other.sums, self.value + other.value, least)


def _expand(
    block: Block, model: GLMPosterior, theta: Array, encoding: Encoding, with_value: bool
) -> tuple[Any]:
    X, y, weight = encoding.rows(block.X, block.y, block.weight)
    if not len(y):
        return (None,)
    bound, value, least = model.with_rows(X, y, weight), np.nan, np.nan
    with one_blas_thread(), np.errstate(all="ignore"):
        found = bound.expand_likelihood(theta)
        if with_value:
            by_row = bound.log_likelihood(theta[None])[0]
            each = by_row if weight is None else by_row / weight
            value, least = float(by_row.sum()), float(each.min())
    return (Slope(np.vstack([found.curvature, found.grad]), value, least),)


class _Passes(BasePosterior):
    """The posterior of all rows, of which a density with its derivatives takes a pass."""

    def __init__(self, model: GLMPosterior, source: RowSource, encoding: Encoding) -> None:
        self._source, self._encoding, self._prior = source, encoding, model
        # without the sample's rows, which no pass needs
        self._model = model.with_rows(model.X[:0], model.y[:0], None)
        self.n_params, self.param_names = model.n_params, model.param_names
        # only a search that goes astray, or a flat prior, asks for the log likelihood
        self._with_value = not model.prior.proper
        self._known: list[tuple[Array, Slope]] = []  # at most one, which other priors share

    def expand(self, theta: Array) -> Slope:
        """Value and derivatives at one theta, those of the last one without a pass."""
        if not self._known or not np.array_equal(self._known[0][0], theta):
            work = partial(
                _expand,
                model=self._model,
                theta=theta,
                encoding=self._encoding,
                with_value=self._with_value,
            )
            self._known[:] = [(theta.copy(), self._source.reduce(work, add_up)[0])]
        return self._known[0][1]

    def last(self) -> tuple[Expansion, Slope]:
        """What the last pass found."""
        theta, found = self._known[0]
        return Expansion(theta, found.sums[-1], found.sums[:-1]), found

    def expand_likelihood(self, theta: Array, curvature: Array | None = None) -> Expansion:
        """Gradient and Hessian of the log likelihood."""
        self.expand(theta)
        return self.last()[0]

    def log_prior(self, theta: Array) -> Array:
        """That of the model."""
        return self._prior.log_prior(theta)

    def grad_log_prior(self, theta: Array) -> Array:
        """That of the model."""
        return self._prior.grad_log_prior(theta)

    def add_prior_curvature(self, H: Array, theta: Array) -> None:
        """Add that of the model."""
        self._prior.add_prior_curvature(H, theta)

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log density and gradient at one ``theta (1, P)``."""
        self._with_value = True
        found = self.expand(theta[0])
        if np.isnan(found.value):  # of a pass that did not ask for it
            self._known.clear()
            found = self.expand(theta[0])
        return found.value + self.log_prior(theta), found.sums[-1] + self.grad_log_prior(theta)

    def curvature(self, theta: Array) -> Array:
        """Minus the Hessian of the log density."""
        H = self.expand(theta).sums[:-1].copy()
        self.add_prior_curvature(H, theta)
        return H

    def smoothed(self, spread: Array | None) -> BasePosterior:
        """The same rows under the smoothed prior."""
        smooth = self._prior.smoothed(spread)
        if smooth is self._prior:
            return self
        other = _Passes(smooth, self._source, self._encoding)
        other._known = self._known
        return other


def find_posterior(model: GLMPosterior, source: RowSource, encoding: Encoding) -> PooledPosterior:
    """Posterior of all rows of a source.

    Parameters
    ----------
    model : GLMPosterior
        That of a sample of the rows.
    source : RowSource
    encoding : Encoding

    Raises
    ------
    NoModeError, ImproperPosteriorError
        Where flat priors leave the posterior without a mode.
    """
    passes, start = _Passes(model, source, encoding), model.start()
    near = start
    with suppress(NoModeError):  # flat priors, of a sample whose classes are separated
        near = find_mode(model, start).theta
    try:
        # the sample may have no row that a rare column is not zero in, or one
        mode = (
            _approach(passes, near, model)
            or _approach(passes, start, model)
            or find_mode(passes, start)
        )
    except NoModeError:
        expansion, found = passes.last()
        check_expanded(model, passes.curvature(expansion.theta), found.value, found.least)
        raise
    expansion, found = passes.last()
    whitened = mode.whiten(np.eye(model.n_params))
    precision = whitened @ whitened.T
    check_expanded(model, precision, found.value, found.least)
    return PooledPosterior(model, expansion, mode.theta, precision)


def _approach(passes: _Passes, theta: Array, model: GLMPosterior) -> Mode | None:
    """Mode by expansions, each at the mode of the last; None where they do not come nearer."""
    last = np.inf
    for _ in range(_MOST):
        try:
            mode = _next_mode(passes, passes.expand_likelihood(theta), model)
        except NoModeError:
            return None
        left = np.sqrt(mode.squared_distance(theta))
        shrunk = left / last if np.isfinite(last) else 1.0
        # the next distance is to this one as this one to the last, squared
        if left < _NEAR or (shrunk < _SHRUNK and left * shrunk**2 < _NEAR):
            return mode
        if not left < last:
            return None
        last, theta = left, mode.theta
    return None


def _next_mode(passes: _Passes, expansion: Expansion, model: GLMPosterior) -> Mode:
    """Mode of the expansion of all rows, and of the sample's estimate of the orders above.

    By steps with the expansion's Hessian, each of which takes the gradient of the sample's rows.
    """
    origin, H = expansion.theta, expansion.curvature
    mode = mode_of_expansion(passes, expansion, origin, _STRICT)
    own, last = model.expand_likelihood(origin), mode.squared_distance(origin)
    plain = mode
    for _ in range(_TURNS):
        theta = mode.theta
        delta = theta - origin
        there = model.expand_likelihood(theta, own.curvature)
        rest = there.grad - own.grad + own.curvature @ delta
        moved = Expansion(theta, expansion.grad - H @ delta + rest, H)
        mode = mode_of_expansion(passes, moved, theta, _STRICT)
        step = mode.squared_distance(theta)
        if not step < last:  # far from where the sample is of use
            return plain
        if step < _SETTLED:
            break
        last = step
    return mode
