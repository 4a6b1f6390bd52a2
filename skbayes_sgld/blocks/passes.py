"""The posterior of out-of-core rows: its mode, and an in-memory sample that chains run on.

The first pass collects the moments of the columns, the labels, and a sample of rows; the search
begins at the mode of the sample. Each further pass expands the log likelihood of all rows to second
order at a point, and the sample estimates the higher orders. The mode of that expansion and the
prior is the next point. The distance to the mode falls as its square, times the small error of the
third order: a few passes are enough.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld.blocks.moments import Extent, Moments
from skbayes_sgld.blocks.sample import Sample, Sampling
from skbayes_sgld.blocks.source import Block, RowSource
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.posterior.further_rows import pooled
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.propriety import check_expanded
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.posterior.statistics import GaussianStatistics
from skbayes_sgld.rows.checks import first_fraction
from skbayes_sgld.rows.targets import Labels, Target
from skbayes_sgld.rows.targets.labels import positions
from skbayes_sgld.sampling.tuning.mode import (
    ByExpansion,
    Mode,
    NoModeError,
    approach,
    mode_of_expansion,
    newton_mode,
)

_STRICT = 1e-16  # squared distance from an expansion's mode at which its search ends
_EXACT = 1e-12  # squared distance from a mode, in sds, at which further passes end
_PARTS = 20  # of the sample, whose differences give the error of its higher orders
_LACKING = 0.15  # share of a direction's curvature that rows which the sample lacks may have
_GROUP_ROWS = 1000  # rows sampled of each label, or of counts above 0, so that rare ones count


# ---- the first pass ---------------------------------------------------------------------------


def add_up(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sums, member by member; None adds nothing."""
    pairs = zip(a, b, strict=True)
    return tuple(x if y is None else y if x is None else x.plus(y) for x, y in pairs)


def _numbers(block: Block) -> Block:
    """Block with y in float64; a ValueError names the block whose y is not numeric."""
    if block.y.dtype.kind not in "fiub":
        raise ValueError(
            f"y of block {block.number} has dtype {block.y.dtype}; the target of a regression "
            "must be numeric."
        )
    return block.with_y(block.y.astype(np.float64))


def _sums(
    block: Block, target: Target
) -> tuple[GaussianStatistics | None, Extent | None, Moments | None]:
    block = _numbers(block).with_weight()
    if not len(block.y):
        return None, None, None
    values, X = target.of_block(block.values), block.X
    size = values.n_averaged
    moments = None if size is None else Moments.from_block(block, np.zeros(1), None)
    sums = GaussianStatistics.from_rows(X, values.y_less_offset, values.weight, size=size)
    return sums, Extent.from_rows(X), moments


def sum_up(source: RowSource, target: Target) -> tuple[GaussianStatistics, Extent, Moments | None]:
    """Sufficient statistics of a normal likelihood, and ranges of the columns, in one pass.

    Of averages, moments of the columns too: sizes do not count in these.
    """
    return _require_rows(source.reduce(partial(_sums, target=target), add_up))


class Fraction(float):
    """A count that is not whole: the first of those read."""

    def plus(self, other: Fraction) -> Fraction:
        """First of both."""
        return self


def _moments_and_sample(
    block: Block, target: Target, how: Sampling
) -> tuple[Moments, Extent | None, Sample, Fraction | None]:
    labels, codes, fraction = np.zeros(1), None, None
    if target.has_labels:
        codes, labels = pd.factorize(_check_labels(block), sort=True)
    else:
        block, likelihood = _numbers(block), target.likelihood
        try:
            y = target.of_block(block.values).y
            assert y is not None
            likelihood.check_target(y)
        except ValueError as error:
            raise ValueError(f"block {block.number}: {error}") from None
        # rates without an exposure are what weights are for
        are_rates = likelihood.takes_rates and block.size is None and block.weight is not None
        if likelihood.whole and not are_rates:
            found = first_fraction(block.y)
            fraction = None if found is None else Fraction(found)
    X = block.with_weight().X
    moments = Moments.from_block(block, np.asarray(labels), codes)
    if not len(X):
        return moments, None, Sample.from_block(block, how, *np.zeros((2, X.shape[1]))), fraction
    sample = Sample.from_block(block, how, *moments.together(np.ones(len(labels))))
    return moments, Extent.from_rows(X), sample, fraction


def _check_labels(block: Block) -> Array:
    y = block.y
    if y.dtype.kind == "f" and np.any(y != np.floor(y)):
        value = y[y != np.floor(y)][0]
        raise ValueError(
            f"y of block {block.number} has the value {value:g}, which is no label; labels are "
            "whole numbers, or text."
        )
    return y


def first_pass(
    source: RowSource, target: Target, seed: int
) -> tuple[Moments, Extent, Sample, Fraction | None]:
    """Moments and ranges of the columns, a sample of rows and the first fraction, in one pass."""
    how = Sampling(source.n_sampled, seed, _GROUP_ROWS, target.has_labels, source.n_rows)
    block_values = partial(_moments_and_sample, target=target, how=how)
    totals: tuple[Any, ...] = source.reduce(block_values, add_up)
    return _require_rows(totals)


def _require_rows(totals: tuple[Any, ...]) -> Any:
    if totals[1] is None:  # no row has an extent
        raise ValueError("the weights of all rows are zero; at least one must be positive.")
    return totals


def encode_labels(target: Labels, labels: Array, total: Array) -> tuple[Labels, Array, Array]:
    """Fitted target, and the code of each label that was read and the factor on its weights.

    ``total`` is the weight of the rows of each label.
    """
    y, weight = np.repeat(labels, 2), np.repeat(0.5 * total, 2)  # two rows represent all
    classes = target.find_classes(y)
    codes = positions(y, classes)
    by_class = target.class_factors(y, classes, codes, weight)
    factors = np.ones(len(labels)) if by_class is None else by_class[codes[::2]]
    some = weight[::2] * factors > 0
    present = codes[::2][some]
    target = target.of_classes(classes, present)
    numbers = np.zeros(len(labels))
    numbers[some] = target.in_model(present)
    return target, numbers, np.where(some, factors, 0.0)


@dataclass(frozen=True)
class Encoding:
    """Map from the y of blocks to the numbers and weights of a likelihood.

    Attributes
    ----------
    target : Target
    labels : ndarray of shape (G,) or None, default=None
        Sorted; None where y is a number.
    codes, factors : ndarray of shape (G,)
        Code of each label, and factor on the weights of its rows.
    """

    target: Target
    labels: Array | None = None
    codes: Array = field(default_factory=partial(np.zeros, 1))
    factors: Array = field(default_factory=partial(np.ones, 1))

    def rows(self, block: Block) -> tuple[Array, RowValues]:
        """X of the rows of positive weight, and what they bring, encoded.

        Weights are None where all are 1.
        """
        values = block.values
        if self.labels is not None:
            at = np.searchsorted(self.labels, block.y)
            values = replace(values, y=self.codes[at])
            if np.any(self.factors != 1.0):
                values = values.weighted(self.factors[at])
        block = block._replace(values=values).with_weight()
        values = block.values
        if values.weight is not None and np.all(values.weight == 1.0):
            values = replace(values, weight=None)
        return block.X, self.target.of_block(replace(values, y=block.y.astype(np.float64)))

    def sampled(self, sample: Sample, moments: Moments) -> tuple[Array, RowValues]:
        """Rows of a sample, y encoded, weighted to stand for all rows of their label."""
        block = sample.rows()
        if not sample.complete:
            y, weight, group = block.y, block.weight, np.zeros(len(block.y), int)
            assert weight is not None
            if self.labels is not None:
                group = np.searchsorted(self.labels, y)
            over = weight if block.size is None else weight * block.size
            totals = np.bincount(group, over, minlength=len(moments.total))
            factors = moments.exposed / np.where(totals > 0, totals, 1.0)
            block = block._replace(values=block.values.weighted(factors[group]))
        return self.rows(block)


# ---- the mode ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowsExpansion:
    """Expansion of the log likelihood of some rows.

    Attributes
    ----------
    expansion : Expansion
        Point, value, gradient and minus the Hessian.
    least : float
        Least log likelihood of a row, at weight 1; nan where it was not asked for.
    """

    expansion: Expansion
    least: float

    def plus(self, other: RowsExpansion) -> RowsExpansion:
        """Expansion for the rows of both."""
        a, b = self.expansion, other.expansion
        grad, curvature = a.grad + b.grad, a.curvature + b.curvature
        both = Expansion(a.theta, grad, curvature, value=a.value + b.value)
        return RowsExpansion(both, min(self.least, other.least))


def _expand(
    block: Block, model: GLMPosterior, theta: Array, encoding: Encoding, with_least: bool
) -> tuple[Any]:
    X, values = encoding.rows(block)
    if not len(X):
        return (None,)
    bound, least = model.with_rows(X, values), np.nan
    with one_blas_thread(), np.errstate(all="ignore"):
        expansion = bound.expand_likelihood(theta)._replace(of_rows=())
        if with_least:
            each = bound.log_likelihood(theta[None])[0]
            least = float((each if values.weight is None else each / values.weight).min())
    return (RowsExpansion(expansion, least),)


class _Passes(ByExpansion):
    """Posterior of all rows; its density and derivatives at a point take one pass."""

    def __init__(self, model: GLMPosterior, source: RowSource, encoding: Encoding) -> None:
        self._source, self._encoding, self._prior = source, encoding, model
        # without the sample's rows: no pass needs them
        self._model = model.with_rows(model.X[:0], model.values[:0])
        self.n_params, self.param_names = model.n_params, model.param_names
        self.last_pass: list[RowsExpansion] = []  # for other priors too

    def expand_rows(self, theta: Array) -> RowsExpansion:
        """Expansion of the log likelihood; without a pass if theta is that of the last one."""
        if not self.last_pass or not np.array_equal(self.last_pass[0].expansion.theta, theta):
            work = partial(
                _expand,
                model=self._model,
                theta=theta.copy(),
                encoding=self._encoding,
                with_least=not self._prior.prior.proper,
            )
            self.last_pass[:] = [self._source.reduce(work, add_up)[0]]
        return self.last_pass[0]

    def expand_likelihood(self, theta: Array, curvature: Array | None = None) -> Expansion:
        """Log likelihood and its derivatives."""
        return self.expand_rows(theta).expansion

    def log_prior(self, theta: Array) -> Array:
        """Log prior of the model."""
        return self._prior.log_prior(theta)

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of the model's log prior."""
        return self._prior.grad_log_prior(theta)

    def add_prior_curvature(self, H: Array, theta: Array) -> None:
        """Add the curvature of the model's prior to ``H``."""
        self._prior.add_prior_curvature(H, theta)

    def expand(self, theta: Array) -> Expansion:
        """Log density and its derivatives."""
        return self.with_prior_part(self.expand_likelihood(theta))

    def averaged_over(self, spread: Array | None) -> BasePosterior:
        """Posterior of the same rows under the smoothed prior."""
        smooth = self._prior.averaged_over(spread)
        if smooth is self._prior:
            return self
        other = _Passes(smooth, self._source, self._encoding)
        other.last_pass = self.last_pass
        return other


def find_posterior(
    model: GLMPosterior, source: RowSource, encoding: Encoding, error: float = 0.0
) -> GLMPosterior:
    """Posterior of all rows of a source.

    Parameters
    ----------
    model : GLMPosterior
        Posterior of a sample of the rows.
    source : RowSource
    encoding : Encoding
    error : float, default=0.0
        Standard error of the mode, in sds of each parameter, that spares a further pass.

    Raises
    ------
    NoModeError, ImproperPosteriorError
        Where flat priors leave the posterior without a mode.
    """
    passes, start = _Passes(model, source, encoding), model.start()
    near = start
    with suppress(NoModeError):  # flat priors, of a sample whose classes are separated
        near = newton_mode(model, start).theta
    next_mode = partial(_next_mode, passes, model)
    try:
        # a rare column may be zero in all rows of the sample, or in all but one
        for begin in (near, start):
            with suppress(NoModeError):
                mode = next_mode(begin)
                if not error or _error(model, passes.expand_rows(begin), mode) > error:
                    last = mode.squared_distance(begin)
                    mode = approach(next_mode, mode.theta, _EXACT, last)
                break
        else:
            mode = newton_mode(passes, start)
    except NoModeError:
        (rows,) = passes.last_pass
        at, least = rows.expansion, rows.least
        check_expanded(model, passes.curvature(at.theta), at.value, least)
        raise
    (rows,) = passes.last_pass
    precision = _precision(model, rows.expansion, mode)
    check_expanded(model, precision, rows.expansion.value, rows.least)
    return pooled(model, rows.expansion, mode.theta, precision)


def _precision(model: GLMPosterior, expansion: Expansion, mode: Mode) -> Array:
    """Precision at a mode by an expansion nearby, to which the sample adds the third order."""
    whitened = mode.metric.whiten(np.eye(model.n_params))
    there, here = (model.expand_likelihood(at).curvature for at in (mode.theta, expansion.theta))
    return whitened @ whitened.T + there - here


def _error(model: GLMPosterior, rows: RowsExpansion, mode: Mode) -> float:
    """Standard error of the mode of an expansion and the sample's higher orders, in sds.

    It is the largest of all parameters, from the differences of parts of the sample. It is infinite
    if rows that the sample lacks matter: then its curvature is not that of all rows.
    """
    origin, n_parts = rows.expansion.theta, _PARTS
    rests, missing = [], rows.expansion.curvature.copy()
    for k in range(n_parts):
        part = model.with_rows(model.X[k::n_parts], model.values[k::n_parts])
        own = part.expand_likelihood(origin)
        there = part.expand_likelihood(mode.theta, own.curvature)
        rests.append(there.grad - own.grad + own.curvature @ (mode.theta - origin))
        missing -= own.curvature
    metric = mode.metric
    lacking = np.linalg.norm(metric.sqrt_t(metric.sqrt_t(missing).T), 2)
    if not lacking < _LACKING:
        return np.inf
    shifts = metric.sqrt(metric.sqrt_t(np.array(rests)))
    errors = np.sqrt(n_parts * shifts.var(axis=0, ddof=1)) / metric.marginal_sd
    return float(errors.max())


def _next_mode(passes: _Passes, model: GLMPosterior, origin: Array) -> Mode:
    """Mode of the expansion of all rows, with the sample's estimate of the higher orders.

    Each step takes the expansion's Hessian, and the gradient of the sample's rows.
    """
    expansion, own = passes.expand_likelihood(origin), model.expand_likelihood(origin)
    H = expansion.curvature
    plain = mode_of_expansion(passes, expansion, origin, _STRICT)

    def corrected(theta: Array) -> Mode:
        delta = theta - origin
        there = model.expand_likelihood(theta, own.curvature)
        rest = there.grad - own.grad + own.curvature @ delta
        extrapolated = Expansion(theta, expansion.grad - H @ delta + rest, H)
        return mode_of_expansion(passes, extrapolated, theta, _STRICT)

    try:
        return approach(corrected, plain.theta, 1e-20, plain.squared_distance(origin))
    except NoModeError:  # too far away for the sample to help
        return plain
