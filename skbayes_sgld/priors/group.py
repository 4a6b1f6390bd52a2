r"""Priors of effects that vary: normal, with scales, and correlations, that are learned.

Conventions
-----------
``h (C, m)`` holds the hyperparameters of a term: ``asinh(s / c)`` for each scale s of its q
effects, and then, row by row, the inverse hyperbolic tangents of the partial correlations of the
Cholesky factor of their correlation matrix (Lewandowski, Kurowicka & Joe 2009). Densities of h
include the Jacobian. The effects of a label are ``root(h) z``, z standard normal.

Scales have signs: the density is even in them, and the standard deviation is ``|s|``. So a scale of
0 is an ordinary point, without the tail to minus infinity that the logarithm has. c is the scale
below which the rows cannot tell s from 0; far above it h is a logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._checks import check_array_or_number, check_flag, check_number
from skbayes_sgld._components import Component
from skbayes_sgld._typing import Array

_LARGEST = 1.0 - 2.0**-52  # partial correlation


@dataclass(eq=False, repr=False)
class GroupPrior(Component):
    r"""Half-Student-t scales of the effects of groups, and an LKJ prior of their correlations.

    The effects of a label are normal with mean 0. Their standard deviations have half-Student-t
    priors, and the matrix R of their correlations the density :math:`|R|^{\eta - 1}`.

    Parameters
    ----------
    scale : "auto", number or array-like of shape (q,), default="auto"
        Scale of the half-Student-t priors. ``"auto"`` is, for an intercept, the standard deviation
        of y in models with noise and 1 in others, on the scale of the link; for a slope it is this
        divided by the standard deviation of its column. A half of the prior is below 0.76 scales,
        and 5 % above 3.2.
    degrees_of_freedom : float, default=3.0
        Of the half-Student-t priors.
    eta : float, default=2.0
        Shape of the LKJ prior; 1 is uniform over matrices, larger values prefer small correlations.
    correlated : bool, default=True
        Whether the intercepts and slopes of a label are correlated.

    References
    ----------
    Lewandowski, Kurowicka & Joe (2009), Generating random correlation matrices based on vines and
    extended onion method. Journal of Multivariate Analysis 100.

    Examples
    --------
    >>> from skbayes_sgld.priors import GroupPrior
    >>> GroupPrior(scale=2.5, correlated=False)
    GroupPrior(correlated=False, scale=2.5)
    """

    scale: Any = "auto"
    degrees_of_freedom: float = 3.0
    eta: float = 2.0
    correlated: bool = True

    def check(self) -> None:
        """Raise if a parameter is out of range."""
        if not (isinstance(self.scale, str) and self.scale == "auto"):
            check_array_or_number(self.scale, "scale", None, positive=True)
        check_number(self.degrees_of_freedom, "degrees_of_freedom", low=0)
        check_number(self.eta, "eta", low=0)
        check_flag(self.correlated, "correlated")

    def for_term(self, unit: Array, least: Array) -> LearnedCovariance:
        """Prior of a term.

        ``unit (q,)`` are the automatic scales of its effects, and ``least (q,)`` the scales below
        which rows cannot tell them from 0.
        """
        auto = isinstance(self.scale, str)
        if not auto and np.size(self.scale) not in (1, len(unit)):
            raise ValueError(
                f"group_prior has scale={self.scale!r}, and a term of group_effects has "
                f"{len(unit)} effect{'s' * (len(unit) > 1)}; give one number, or one for each "
                "effect of a term."
            )
        scale = np.array(np.broadcast_to(unit if auto else self.scale, unit.shape), dtype=float)
        eta = self.eta if self.correlated and len(unit) > 1 else None
        return LearnedCovariance(scale, float(self.degrees_of_freedom), eta, least)


class LearnedCovariance:
    """Covariance of the q effects of each label of a term, and its prior.

    Parameters
    ----------
    scale : ndarray of shape (q,)
        Scales of the half-Student-t priors of the standard deviations.
    degrees_of_freedom : float
    eta : float or None
        Shape of the LKJ prior; None for independent effects.
    least : ndarray of shape (q,)
        Scales c below which rows cannot tell a standard deviation from 0.

    Attributes
    ----------
    n_effects, n_hyper : int
        Numbers q of effects and m of hyperparameters.
    """

    def __init__(
        self, scale: Array, degrees_of_freedom: float, eta: float | None, least: Array
    ) -> None:
        self.scale, self._nu, self._eta = scale, degrees_of_freedom, eta
        self._least = np.minimum(least, scale)
        self.n_effects = self._n_scales = len(scale)
        self.pairs = [] if eta is None else [(i, j) for i in range(len(scale)) for j in range(i)]
        self.n_hyper = self._n_scales + len(self.pairs)
        q = self.n_effects
        # exponents of 1 - z^2 in the density of the partial correlations z, with the Jacobian
        self._exponents = np.array([(eta or 1.0) + 0.5 * (q - 2 - j) for _, j in self.pairs])

    @property
    def prior(self) -> GroupPrior:
        """The prior, with numbers as scales."""
        given = {} if self._eta is None else {"eta": self._eta}
        correlated = self._eta is not None or self.n_effects == 1
        return GroupPrior(self.scale, self._nu, correlated=correlated, **given)

    def start(self) -> Array:
        """A point h ``(m,)`` in the middle of the prior."""
        return np.append(np.arcsinh(0.5 * self.scale / self._least), np.zeros(len(self.pairs)))

    def value_and_grad(self, h: Array) -> tuple[Array, Array]:
        """Log density of h ``(C,)`` up to a constant, and its gradient ``(C, m)``."""
        x, y = np.split(h, [self._n_scales], axis=1)
        nu, unit = self._nu, self._least / self.scale
        with np.errstate(over="ignore"):
            square = np.square(unit * np.sinh(x)) / nu
            log_cosh = np.logaddexp(x, -x)
        value = (log_cosh - 0.5 * (nu + 1.0) * np.log1p(square)).sum(axis=1)
        # coth(x) square / (1 + square), written without a division by 0
        share = np.square(unit) / nu * np.sinh(x) * np.cosh(x) / (1.0 + square)
        slope = np.tanh(x) - (nu + 1.0) * np.where(np.isfinite(share), share, np.sign(x))
        if y.size:
            value = value - 2.0 * np.vecdot(np.log(np.cosh(y)), self._exponents)
            slope = np.hstack([slope, -2.0 * np.tanh(y) * self._exponents])
        return value, slope

    def sample(self, rng: np.random.Generator) -> Array:
        """Draw of h ``(m,)``."""
        scales = np.abs(rng.standard_t(self._nu, self._n_scales)) * self.scale
        halves = rng.beta(self._exponents, self._exponents)
        return np.append(np.arcsinh(scales / self._least), np.arctanh(2.0 * halves - 1.0))

    # ---- the factor of the covariance -----------------------------------------------------------

    def _correlation_root(self, y: Array) -> tuple[Array, Array]:
        """Factor ``(C, q, q)`` of the correlation matrix, and what its rows have left.

        The second array has, before each entry, the root of 1 minus the squares so far.
        """
        C, q = len(y), self.n_effects
        root, left = np.zeros((C, q, q)), np.ones((C, q, q))
        for k, (i, j) in enumerate(self.pairs):
            root[:, i, j] = np.tanh(y[:, k]) * left[:, i, j]
            left[:, i, j + 1] = left[:, i, j] / np.cosh(y[:, k])
        at = np.arange(q)
        root[:, at, at] = left[:, at, at]
        return root, left

    def _scales(self, h: Array) -> Array:
        """Scales ``(C, n_scales)``, with their signs."""
        scales: Array = self._least * np.sinh(h[:, : self._n_scales])
        return scales

    def root(self, h: Array) -> Array:
        """Lower triangular factor ``(C, q, q)`` of the covariance of the effects of a label."""
        root, _ = self._correlation_root(h[:, self._n_scales :])
        return self._scales(h)[:, :, None] * root

    def inverse_root(self, h: Array) -> tuple[Array, Array]:
        """Factor ``(C, q, q)`` and its inverse, nan where that is beyond floating point."""
        root = self.root(h)
        diagonal = np.einsum("cii->ci", root)
        size = np.abs(diagonal)
        inside = np.all((size > 1e-150) & (size < 1e150), axis=1)
        inverse = np.full_like(root, np.nan)
        if self.pairs:
            inverse[inside] = np.linalg.inv(root[inside])
        else:
            inverse[inside] = np.eye(self.n_effects) / diagonal[inside][:, None]
        return root, inverse

    def pull_back(self, h: Array, in_root: Array) -> Array:
        """Gradient in h ``(C, m)`` from that in the lower triangle of the factor."""
        slope = self._least * np.cosh(h[:, : self._n_scales])
        if not self.pairs:  # the factor is diagonal
            return slope * np.einsum("cii->ci", in_root)
        y = h[:, self._n_scales :]
        root, left = self._correlation_root(y)
        in_x = slope * np.einsum("cij,cij->ci", in_root, root)
        in_L, in_y = self._scales(h)[:, :, None] * in_root, np.zeros_like(y)
        in_left = np.zeros_like(left)
        at = np.arange(self.n_effects)
        in_left[:, at, at] = in_L[:, at, at]
        for k in reversed(range(len(self.pairs))):
            i, j = self.pairs[k]
            z, sech = np.tanh(y[:, k]), 1.0 / np.cosh(y[:, k])
            # root[i, j] = z left[i, j], left[i, j + 1] = sech left[i, j]
            in_left[:, i, j] += z * in_L[:, i, j] + sech * in_left[:, i, j + 1]
            in_y[:, k] = left[:, i, j] * (
                np.square(sech) * in_L[:, i, j] - z * sech * in_left[:, i, j + 1]
            )
        return np.hstack([in_x, in_y])

    # ---- reported values ------------------------------------------------------------------------

    def to_reported(self, h: Array) -> Array:
        """Standard deviations and correlations ``(C, m)``."""
        scales = self._scales(h)
        if not self.pairs:
            return np.abs(scales)
        root, sign = self._correlation_root(h[:, self._n_scales :])[0], np.sign(scales)
        correlation = sign[:, :, None] * (root @ root.swapaxes(1, 2)) * sign[:, None]
        off_diagonal = [correlation[:, i, j] for i, j in self.pairs]
        return np.column_stack([np.abs(scales), *off_diagonal])

    def from_reported(self, values: Array) -> Array:
        """Hyperparameters ``(C, m)``, with positive scales."""
        scales, correlations = np.split(values, [self._n_scales], axis=1)
        x = np.arcsinh(scales / self._least)
        if not self.pairs:
            return x
        # Cholesky's recursion, with partial correlations that rounding cannot take to 1 or beyond
        C, q = len(values), self.n_effects
        root, left, y = np.zeros((C, q, q)), np.ones((C, q)), np.empty_like(correlations)
        root[:, 0, 0] = 1.0
        for k, (i, j) in enumerate(self.pairs):
            rest = correlations[:, k] - np.einsum("ck,ck->c", root[:, i, :j], root[:, j, :j])
            z = np.clip(rest / (root[:, j, j] * left[:, i]), -_LARGEST, _LARGEST)
            y[:, k] = np.arctanh(z)
            root[:, i, j] = z * left[:, i]
            left[:, i] *= np.sqrt(1.0 - np.square(z))
            root[:, i, i] = left[:, i]
        return np.hstack([x, y])
