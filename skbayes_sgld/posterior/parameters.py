"""Theta as a list of named blocks, each with its place, its prior and its reported values.

The blocks of a linear model, in the order of theta:

=================  ================================================================================
coefficients       for each linear predictor its coefficients, then its intercept
noise_slopes       slopes of the log noise variance, under ``noise_model="log_linear"``
scales             hyperparameters of priors with learned scales
own                unbounded coordinates of the likelihood's own parameters: ``log sigma^2``
=================  ================================================================================

:class:`Parameters` is the list. Only this file knows the places of blocks in theta.

A further block derives from :class:`ParameterBlock`; ``Parameters.plus`` puts it between the
coefficients and the own parameters. Its entries say which coefficients of the design they are
(``in_design``), and its reported names which part of the report they make. A block of coefficients
whose scale is learned, such as the effects of a group or the bend of a curve, is

1. a block with the names of its labels, whose entries multiply further columns of the design: a
   :class:`~skbayes_sgld.posterior.design.Design` of its own, such as a sparse one, beside X's; a
   subclass of :class:`~skbayes_sgld.posterior.glm.GLMPosterior` puts together in ``_design``;
2. a :class:`~skbayes_sgld.priors.HierarchicalPrior` of its coefficients, whose hyperparameters are
   further entries of the block ``scales``;
3. coordinates in which chains move, a file of their own where a precision for each column is not
   enough, as for correlated effects.

Columns of X whose scale is learned need no block: they are a
:class:`~skbayes_sgld.priors.by_column.Part` of a prior.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.posterior.linear_prior import LinearPrior
from skbayes_sgld.priors.hierarchical import HierarchicalPrior, SideBySide
from skbayes_sgld.priors.noise import NoisePrior
from skbayes_sgld.transforms import by_name


class ParameterBlock:
    """Neighbouring entries of theta with a common prior and common reported values.

    Attributes
    ----------
    name : str
    coordinates : sequence of str
        Names of the entries in theta.
    reported_last : bool
        Whether the block is reported after all others, wherever it is in theta.
    of_likelihood : bool
        Whether its entries belong to the likelihood rather than to a prior.
    """

    name: ClassVar[str]
    coordinates: Sequence[str]
    reported_last: ClassVar[bool] = False
    of_likelihood: ClassVar[bool] = False

    def in_design(self, n_predictors: int, level: int) -> tuple[Array, Array]:
        """Place of each entry in the coefficients ``(n_products, width)`` of the design.

        The linear predictors are the first ``n_predictors`` products; each own parameter of the
        likelihood is one more, as a multiple of ``level``, the design's column of ones.

        Returns
        -------
        product, column : ndarray of int of shape (m,)
        """
        raise NotImplementedError

    def log_prior(self, values: Array) -> Array:
        """Log prior ``(C,)`` of ``values (C, m)`` up to a constant."""
        raise NotImplementedError

    def grad_log_prior(self, values: Array) -> Array:
        """Gradient of the log prior ``(C, m)``."""
        raise NotImplementedError

    def prior_curvature(self, values: Array) -> Array:
        """Minus the second derivatives of the log prior ``(m,)`` at one ``values (m,)``."""
        raise NotImplementedError

    def draw(self, rng: np.random.Generator, start: Array) -> Array:
        """Draw of the entries ``(m,)`` from the prior; by default the start of a search."""
        return start

    def name_reported(self, names: list[str], at: slice) -> None:
        """Replace the names of theta's entries by those of the reported values."""

    def to_reported(self, values: Array, theta: Array, at: slice) -> None:
        """Write the reported values of ``theta (S, P)`` into ``values (S, P)`` at ``at``."""

    def from_reported(self, theta: Array, at: slice) -> None:
        """Replace reported values in ``theta (S, P)`` by entries of theta."""


@dataclass(frozen=True)
class Coefficients(ParameterBlock):
    """Coefficients of K linear predictors, each followed by its intercept, if there is one.

    Intercepts are reported at X = 0. Reported predictors of several classes sum to zero.
    """

    name = "coefficients"
    coordinates: Sequence[str]
    n_predictors: int
    prior: LinearPrior

    @property
    def has_intercept(self) -> bool:
        """Whether each predictor has an intercept."""
        return self.prior.width > self.prior.n_features

    def in_design(self, n_predictors: int, level: int) -> tuple[Array, Array]:
        """Each predictor's columns and level, in turn."""
        product, column = np.indices((n_predictors, self.prior.width))
        return product.ravel(), column.ravel()

    def rows(self, values: Array) -> Array:
        """View ``(C, K, width)`` of the values, one row for each predictor."""
        return values.reshape(len(values), self.n_predictors, self.prior.width)

    def to_reported(self, values: Array, theta: Array, at: slice) -> None:
        """Centre the predictors, and move the intercepts to X = 0."""
        linear = self.rows(values[:, at])
        if self.n_predictors > 1:
            linear -= linear.mean(axis=1, keepdims=True)
        if self.prior.x_mean is not None:
            # einsum, unlike matmul, is a single call for any number of draws
            linear[..., -1] -= np.einsum("skd,d->sk", linear[..., :-1], self.prior.x_mean)

    def from_reported(self, theta: Array, at: slice) -> None:
        """Move the intercepts to the point of X at which theta has them."""
        if self.prior.x_mean is not None:
            linear = self.rows(theta[:, at])
            linear[..., -1] += linear[..., :-1] @ self.prior.x_mean


@dataclass(frozen=True)
class NoiseSlopes(ParameterBlock):
    r"""Slopes of the log noise variance; the next entry of theta is its level.

    Reported values are the coefficients :math:`\alpha` and the intercept at X = 0 of the log
    standard deviation.

    Attributes
    ----------
    mean : ndarray of shape (m,)
        Point of these columns at which theta has the level.
    scale : ndarray of shape (m,)
        Prior standard deviations of alpha.
    features : sequence of str
        Names of the columns, in brackets.
    columns : ndarray of int of shape (m,)
        Their positions in X.
    """

    name = "noise_slopes"
    of_likelihood = True
    mean: Array
    scale: Array
    features: Sequence[str]
    columns: Array

    @property
    def coordinates(self) -> Sequence[str]:  # type: ignore[override]
        """Names in theta."""
        return [f"log_variance_slope{name}" for name in self.features]

    def in_design(self, n_predictors: int, level: int) -> tuple[Array, Array]:
        """The columns on which the first own parameter depends."""
        return np.full(len(self.columns), n_predictors), self.columns

    @cached_property
    def precision(self) -> Array:
        """Prior precision ``(m,)`` of the slopes."""
        return 1.0 / np.square(2.0 * self.scale)

    def log_prior(self, values: Array) -> Array:
        """Log density of independent normals."""
        # einsum's rounding, unlike matmul's, does not depend on the number of chains
        return -0.5 * np.einsum("cm,m->c", np.square(values), self.precision)

    def grad_log_prior(self, values: Array) -> Array:
        """Gradient of the log density."""
        return -values * self.precision

    def prior_curvature(self, values: Array) -> Array:
        """The precision."""
        return self.precision

    def draw(self, rng: np.random.Generator, start: Array) -> Array:
        """Draw of the slopes ``(m,)``."""
        return 2.0 * self.scale * rng.standard_normal(len(self.scale))

    def name_reported(self, names: list[str], at: slice) -> None:
        """Name alpha, and the intercept."""
        names[at] = [f"noise_coef{name}" for name in self.features]
        names[at.stop] = "noise_intercept"

    def to_reported(self, values: Array, theta: Array, at: slice) -> None:
        """Write alpha, and the log standard deviation at X = 0."""
        alpha = 0.5 * theta[:, at]
        values[:, at] = alpha
        values[:, at.stop] = 0.5 * theta[:, at.stop] - alpha @ self.mean

    def from_reported(self, theta: Array, at: slice) -> None:
        """Write the slopes, and the noise variance at the mean of the columns."""
        alpha = theta[:, at].copy()
        theta[:, at] = 2.0 * alpha
        theta[:, at.stop] = np.exp(2.0 * (theta[:, at.stop] + alpha @ self.mean))


@dataclass(frozen=True)
class Own(ParameterBlock):
    """The likelihood's own parameters, with independent priors.

    Attributes
    ----------
    likelihood : Likelihood
    priors : tuple of NoisePrior
    labels : sequence of str or None, default=None
        Names of the classes, for names of the reported parameters.
    """

    name = "own"
    of_likelihood = True
    likelihood: Likelihood
    priors: tuple[NoisePrior, ...]
    labels: Sequence[str] | None = None

    @property
    def coordinates(self) -> Sequence[str]:  # type: ignore[override]
        """Names of the unbounded coordinates."""
        return [own.coordinate for own in self.likelihood.own]

    def in_design(self, n_predictors: int, level: int) -> tuple[Array, Array]:
        """The level, of one product each."""
        n_own = len(self.likelihood.own)
        return n_predictors + np.arange(n_own), np.full(n_own, level)

    def log_prior(self, values: Array) -> Array:
        """Sum of the log densities."""
        return sum(prior.log_density(values[:, j]) for j, prior in enumerate(self.priors))  # type: ignore[return-value]

    def grad_log_prior(self, values: Array) -> Array:
        """Gradients of the log densities."""
        return np.column_stack([prior.grad(values[:, j]) for j, prior in enumerate(self.priors)])

    def prior_curvature(self, values: Array) -> Array:
        """Minus the second derivatives."""
        return np.array([p.curvature(float(values[j])) for j, p in enumerate(self.priors)])

    def name_reported(self, names: list[str], at: slice) -> None:
        """Name the parameters."""
        names[at] = [own.name for own in self.likelihood.own]

    def to_reported(self, values: Array, theta: Array, at: slice) -> None:
        """Write the parameters, from their coordinates."""
        values[:, at] = self.likelihood.constrain_own(theta[:, at])

    def from_reported(self, theta: Array, at: slice) -> None:
        """Replace the parameters by their coordinates."""
        theta[:, at] = self.likelihood.unconstrain_own(theta[:, at])


Columns = Any  # slice, or ndarray of int: positions of columns of X


@dataclass(frozen=True)
class Scales(ParameterBlock):
    """Hyperparameters ``h (C, m)`` of all priors with learned scales, prior by prior.

    Given them, the coefficients of each part are normal with mean 0.

    Attributes
    ----------
    parts : tuple of pairs of columns and HierarchicalPrior
        Columns of X, and the prior of their coefficients.
    features : sequence of str
        Names of all columns of X.
    """

    name = "scales"
    reported_last = True
    parts: tuple[tuple[Columns, HierarchicalPrior], ...]
    features: Sequence[str]

    @cached_property
    def coordinates(self) -> Sequence[str]:  # type: ignore[override]
        """Reported names, which the entries of theta have too."""
        named, several = [], len(self.parts) > 1
        for columns, prior in self.parts:
            features = [self.features[j] for j in np.arange(len(self.features))[columns]]
            about = f"[{', '.join(features)}]"
            for name in prior.names([f"[{feature}]" for feature in features]):
                named.append(name + about if several and "[" not in name else name)
        return named

    @cached_property
    def columns(self) -> Columns:
        """Columns of all parts, one part after the other."""
        each = [columns for columns, _ in self.parts]
        if len(each) == 1:
            return each[0]
        return np.concatenate([np.arange(len(self.features))[columns] for columns in each])

    @cached_property
    def prior(self) -> Any:
        """Prior of the hyperparameters, and of the coefficients of :attr:`columns` given them."""
        (_, first), *others = self.parts
        return first if not others else SideBySide([prior for _, prior in self.parts])

    def to_reported(self, values: Array, theta: Array, at: slice) -> None:
        """Write what the priors report."""
        values[:, at] = self.prior.to_reported(theta[:, at])

    def from_reported(self, theta: Array, at: slice) -> None:
        """Replace what the priors report by their hyperparameters."""
        theta[:, at] = self.prior.from_reported(theta[:, at])


class Parameters:
    """The blocks of theta, in order: coefficients first, own parameters last.

    Parameters
    ----------
    *blocks : ParameterBlock

    Attributes
    ----------
    size : int
        Number of parameters P.
    names : list of str
        Names of the entries of theta.
    n_linear, n_own : int
        Number of coefficients and intercepts, which are the first entries, and of own parameters,
        which are the last.
    noise : int or None
        Position of the log noise variance; None if it is not inferred.
    """

    def __init__(self, *blocks: ParameterBlock) -> None:
        self.blocks = blocks
        self.coefficients: Any = blocks[0]
        self.likelihood: Likelihood = blocks[-1].likelihood  # type: ignore[attr-defined]
        self.names = [name for block in blocks for name in block.coordinates]
        self._at, self.size = dict[str, slice](), 0
        for block in blocks:
            first, self.size = self.size, self.size + len(block.coordinates)
            self._at[block.name] = slice(first, self.size)
        self.n_linear = self._at["coefficients"].stop
        self.n_own = self.size - self._at["own"].start
        self.noise = self._at["own"].start if self.n_own and self.likelihood.infers_noise else None
        self._others = [(block, self._at[block.name]) for block in blocks[1:] if block.coordinates]
        # positions in theta, in the order of the report
        self._report_order = sorted(blocks, key=lambda block: block.reported_last)
        places = [np.arange(self.size)[self._at[block.name]] for block in self._report_order]
        self._in_report = np.concatenate(places)
        self._reorders = self._report_order != list(blocks)

    def __getitem__(self, name: str) -> Any:
        """Block of this name."""
        return next(block for block in self.blocks if block.name == name)

    def __contains__(self, name: str) -> bool:
        """Whether there is a block of this name."""
        return name in self._at

    def at(self, name: str) -> slice:
        """Place of a block in theta."""
        return self._at[name]

    @property
    def noise_columns(self) -> Array | None:
        """Columns of X on which the noise depends; None if it is constant."""
        return self["noise_slopes"].columns if "noise_slopes" in self else None

    # ---- parts of theta, as views ---------------------------------------------------------------

    def linear(self, theta: Array) -> Array:
        """Coefficients and intercepts ``(C, K, width)``, one row for each predictor."""
        linear: Array = self.coefficients.rows(theta[:, : self.n_linear])
        return linear

    def coef(self, theta: Array) -> Array:
        """Coefficients ``(C, K, d)``."""
        return self.linear(theta)[..., : self.coefficients.prior.n_features]

    def intercept(self, theta: Array) -> Array:
        """Intercepts ``(C, K, 1)``; ``(C, K, 0)`` without any."""
        return self.linear(theta)[..., self.coefficients.prior.n_features :]

    def own(self, theta: Array) -> Array:
        """Own parameters ``(C, n_own)``."""
        return theta[:, self.size - self.n_own :]

    def gamma(self, theta: Array) -> Array | None:
        """Log noise variance ``(C,)``; None if it is not inferred."""
        return None if self.noise is None else theta[:, self.noise]

    def at_one(self, theta: Array) -> tuple[Array, float | None]:
        """Linear parameters ``(K, width)`` and log noise variance of one ``theta (P,)``."""
        return self.linear(theta[None])[0], None if self.noise is None else float(theta[self.noise])

    def split(self, theta: Array, name: str) -> tuple[Array, Array]:
        """All other blocks, side by side, and the block of this name."""
        at = self._at[name]
        return np.hstack([theta[:, : at.start], theta[:, at.stop :]]), theta[:, at]

    def join(self, others: Array, part: Array, name: str) -> Array:
        """Theta of all other blocks and the block of this name."""
        first = self._at[name].start
        return np.hstack([others[:, :first], part, others[:, first:]])

    # ---- the prior ------------------------------------------------------------------------------

    def log_prior(self, theta: Array) -> Array:
        """Log prior up to a constant ``(C,)``."""
        value: Array = self.coefficients.prior.log_density(self.linear(theta), self.gamma(theta))
        for block, at in self._others:
            value = value + block.log_prior(theta[:, at])
        return value

    def grad_log_prior(self, theta: Array) -> Array:
        """Gradient of the log prior ``(C, P)``."""
        slope, in_gamma = self.coefficients.prior.grad(self.linear(theta), self.gamma(theta))
        if not self._others:
            return slope.reshape(theta.shape)
        grad = np.empty_like(theta)
        self.linear(grad)[...] = slope
        for block, at in self._others:
            grad[:, at] = block.grad_log_prior(theta[:, at])
        if in_gamma is not None:
            grad[:, self.noise] += in_gamma
        return grad

    def add_prior_curvature(self, H: Array, theta: Array) -> None:
        """Add minus the Hessian of the log prior at one ``theta (P,)`` to ``H (P, P)``."""
        (linear, gamma), L = self.at_one(theta), self.n_linear
        cross, corner = self.coefficients.prior.add_curvature(H[:L, :L], linear, gamma)
        for block, place in self._others:
            at = np.arange(place.start, place.stop)
            H[at, at] += block.prior_curvature(theta[place])
        if self.noise is not None:
            H[:L, self.noise] += cross
            H[self.noise, :L] += cross
            H[self.noise, self.noise] += corner

    def prior_diagonal(self, theta: Array) -> Array:
        """Diagonal of that Hessian ``(P,)``."""
        linear, gamma = self.at_one(theta)
        diagonal, corner = self.coefficients.prior.diagonal(linear, gamma)
        parts = [diagonal.ravel()]
        parts += [block.prior_curvature(theta[at]) for block, at in self._others]
        whole = np.concatenate(parts)
        if self.noise is not None:
            whole[self.noise] += corner
        return whole

    def draw_prior(self, start: Array, generators: Sequence[np.random.Generator]) -> Array:
        """Reported parameters ``(C, P)`` from the prior; 0 if flat, own ones at their start."""
        theta = np.tile(start, (len(generators), 1))
        linear, gamma = self.linear(theta), self.at_one(start)[1]
        noise = 1.0 if gamma is None else float(np.exp(gamma))
        for c, rng in enumerate(generators):
            linear[c] = self.coefficients.prior.sample(rng, linear.shape[1:], noise)
            for block, at in self._others:
                theta[c, at] = block.draw(rng, theta[c, at])
        return self._report(theta.copy(), theta)  # with intercepts at X = 0

    # ---- the reported parameters ----------------------------------------------------------------

    @cached_property
    def reported_names(self) -> list[str]:
        """Names of the reported parameters."""
        names, at = self._block_names(), self._levels
        found = self.likelihood.reported_names([names[j] for j in at], self["own"].labels)
        for j, name in zip(at, found, strict=True):
            names[j] = name
        return [names[j] for j in self._in_report]

    @cached_property
    def _levels(self) -> Array:
        """Places of intercepts and own parameters in theta, which the likelihood may report."""
        at = np.arange(self.size)[None]
        return np.append(self.intercept(at)[0], self.own(at)[0])

    def _block_names(self) -> list[str]:
        names = list(self.names)
        for block, at in reversed(self._others):
            block.name_reported(names, at)
        return names

    def to_reported(self, theta: Array) -> Array:
        """Reported parameters ``(S, P)`` at ``theta (S, P)``."""
        return self._report(self.moves(theta), theta)

    def _report(self, values: Array, theta: Array) -> Array:
        """Reported parameters, from ``values`` with the linear ones as reported."""
        for block, at in reversed(self._others):
            block.to_reported(values, theta, at)
        levels = values[:, self._levels]
        self.likelihood.to_reported(levels, self.coefficients.has_intercept)
        values[:, self._levels] = levels
        # an index would leave the numbers column by column, and a pickled copy would sum otherwise
        return np.take(values, self._in_report, axis=1) if self._reorders else values

    def moves(self, moves: Array) -> Array:
        """Moves of theta ``(M, P)`` with linear parameters as reported."""
        values = moves.copy()
        self.coefficients.to_reported(values, moves, self._at["coefficients"])
        return values

    def from_reported(self, values: Array) -> Array:
        """Theta ``(S, P)`` at the reported parameters."""
        theta = np.empty_like(values)
        theta[:, self._in_report] = values
        levels = theta[:, self._levels]
        self.likelihood.from_reported(levels, self.coefficients.has_intercept)
        theta[:, self._levels] = levels
        for block in self.blocks:
            if block.coordinates:
                block.from_reported(theta, self._at[block.name])
        return theta

    def layout(self, reported: Sequence[str]) -> Layout:
        """Places in the reported parameters, of which ``reported`` are the names, block by block.

        Entries of a block that differ only in their index are a part, with the name before it.
        """
        in_theta, place = self._block_names(), np.argsort(self._in_report)[None]
        others, own = dict[str, Any](), list[str]()
        for block in self._report_order[1:]:
            at = self._at[block.name]
            places = place[0, at]
            names = [reported[j] for j in places]
            for name, some in by_name(names).items():
                others[name] = int(places[some[0]]) if names[some[0]] == name else places[some]
            if block.of_likelihood:  # cut points are reported in place of gaps and intercept
                own += [name for name in by_name(in_theta[at]) if name in by_name(names)]
        return Layout(self.coef(place)[0], self.intercept(place)[0], others, own)

    # ---- other lists ----------------------------------------------------------------------------

    def changed(self, block: ParameterBlock) -> Parameters:
        """List with a block in place of the one with its name."""
        return Parameters(*(block if b.name == block.name else b for b in self.blocks))

    def plus(self, block: ParameterBlock) -> Parameters:
        """List with a further block before the own parameters."""
        return Parameters(*self.blocks[:-1], block, self.blocks[-1])

    def given_own(self, likelihood: Likelihood, noise_variance: float | None) -> Parameters:
        """Only the coefficients, under a likelihood with known own parameters."""
        coefficients = self.coefficients
        if noise_variance is not None:
            prior = coefficients.prior.given_noise(noise_variance)
            coefficients = replace(coefficients, prior=prior)
        return Parameters(coefficients, Own(likelihood, ()))


class Layout(NamedTuple):
    """Places of the parts of a linear model in a vector of its reported parameters.

    Attributes
    ----------
    coef : ndarray of int of shape (K, d)
    intercept : ndarray of int of shape (K, 1)
        Of shape (K, 0) without intercepts.
    others : dict of str to int, or to ndarray of int
        All other parameters by name; those that differ only in their index share a name.
    own : list of str
        Names of the others that belong to the likelihood rather than to a prior.
    """

    coef: Array
    intercept: Array
    others: dict[str, Any]
    own: list[str]

    def split(self, values: Array) -> dict[str, Array]:
        """Draws by part: ``coef (S, K, d)``, ``intercept (S, K)``, and all others by name."""
        intercept = np.zeros((len(values), len(self.coef)))
        if self.intercept.size:
            intercept = values[:, _as_slice(self.intercept[:, 0])]
        coef = values[:, _as_slice(self.coef.ravel())].reshape(len(values), *self.coef.shape)
        parts = {"coef": coef, "intercept": intercept}
        return parts | {name: values[:, _as_slice(at)] for name, at in self.others.items()}


def _as_slice(at: Any) -> Any:
    """Neighbouring places as a slice, which makes a view of many draws rather than a copy."""
    if isinstance(at, int) or not len(at) or np.any(np.diff(at) != 1):
        return at
    return slice(at[0], at[-1] + 1)


def linear_parameters(
    prior: LinearPrior,
    likelihood: Likelihood,
    own_priors: tuple[NoisePrior, ...],
    features: Sequence[str],
    classes: Sequence[str] | None,
) -> tuple[Parameters, Mapping[str, Sequence[str]]]:
    """Blocks of a linear model, and the names of columns and classes by dimension."""
    names: list[str] = []
    level = ["intercept"] if prior.width > prior.n_features else []
    labels = list(classes or map(str, range(likelihood.n_predictors)))
    if likelihood.n_predictors == 1:
        names = [f"coef[{feature}]" for feature in features] + level
        coords = {"feature": features}
    else:
        for k in labels:
            names += [f"coef[{k}, {feature}]" for feature in features]
            names += [f"{name}[{k}]" for name in level]
        coords = {"class": labels, "feature": features}
    coefficients = Coefficients(names, likelihood.n_predictors, prior)
    return Parameters(coefficients, Own(likelihood, own_priors, classes)), coords
