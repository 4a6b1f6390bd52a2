"""Interface of the likelihoods: everything that a model knows about y.

Conventions
-----------
The likelihood of a row depends on the parameters through its ``n_local`` local parameters ``u``:
first its linear predictors, then the coordinates of the likelihood's own parameters, such as
``gamma = log sigma^2``, which are the same in every row. ``u`` is ``(C, n_local, B)`` for C chains
and B rows; ``y`` is ``(B,)``, or ``(C, B)`` if every chain has its own rows. In predictions, C is
the number of rows and B that of draws, and ``y`` is ``(C, 1)``.

Own parameters
--------------
A likelihood lists its own parameters, such as a dispersion, in ``own``, a tuple of
:class:`~skbayes_sgld.likelihoods.own.OwnParameter`. Each has an unbounded coordinate at the end of
theta and of u; score and curvature include its derivatives, like those of a linear predictor. It
also gets a prior, from the estimator's argument of that name; a start, by :meth:`Likelihood.start`;
a row of ``summary()`` and a fitted attribute, by :meth:`Likelihood.constrain_own`. By default each
coordinate is transformed by itself. A likelihood whose parameters depend on each other, such as
increasing cut points, overrides :meth:`Likelihood.constrain_own` and
:meth:`Likelihood.unconstrain_own`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np
from scipy.sparse import sparray
from scipy.special import ndtri

from skbayes_sgld._checks import LARGEST, SMALLEST
from skbayes_sgld._components import Component
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.kernel import (
    GivenKernel,
    OffsetKernel,
    RowKernel,
    with_offset_and_weight,
)
from skbayes_sgld.likelihoods.mixture import Mixture, solve_quantile
from skbayes_sgld.likelihoods.own import OwnParameter
from skbayes_sgld.likelihoods.row_values import RowValues

RARE = 0.02  # share of the rows below which a class is rare


HIGHEST = 350.0  # largest log mean: the square of its exponential is finite


class FarRowError(ValueError):
    """A row to predict has a mean whose square overflows under some draw, or such a noise."""


class Likelihood(Component):
    """The distribution of one observation given its local parameters u.

    A new family defines :meth:`check_target`, :meth:`log_density`, :meth:`score`,
    :meth:`curvature`, :meth:`mean`, :meth:`variance`, :meth:`cdf` and :meth:`sample`; everything
    else has a default. If y has a unit, it also defines :meth:`typical_effect` and
    :meth:`own_units`, the units of automatic priors. :meth:`start`, :meth:`level_weight` and
    :meth:`gains` have defaults that suit few families: a search starts at zeros, and improper
    posteriors are told by the others.

    Attributes
    ----------
    n_predictors : int
        Number of linear predictors of a row.
    own : tuple of OwnParameter
        Own parameters, such as a dispersion; the noise variance, if inferred, is the first.
    quadratic : bool
        Whether the log density is quadratic in eta, so that sufficient statistics replace the rows.
    has_sites : bool
        Whether normal sites may stand for the rows (``wide_rows/matching.py``): the family is
        log-concave, has one predictor and no own parameters.
    whole : bool
        Whether the observations are whole numbers.
    totals : bool
        Whether an observation is a number of successes among known trials. In fits it is a record
        of both; in predictions it is a number, and the family takes the trials.
    takes : dict of str to float
        Names of further values of a row that the family takes, each with the number that stands
        for a value that is missing beside another. If the rows bring one of them, all are the last
        rows of u, after the own parameters, in this order. If they bring none, u has no such rows.
    shift_invariant : bool
        Whether adding one number to all predictors of a row changes nothing.
    increasing : bool
        Whether the mean depends on the only linear predictor alone, and increases with it: its
        quantiles are then the predictor's, transformed.
    log_concave : bool
        Whether the log density is concave in eta, so that it adds no mode to a posterior.
    several_modes : bool
        Whether the posterior may have several modes. The family then defines
        :meth:`other_starts`.
    bounded_curvature : bool
        Whether the curvature is bounded, whatever the linear predictor and the noise.
    reach : float
        Scale of a network's output weights: that of the predictors to expect.
    improper : str
        For errors: what is wrong with data whose likelihood does not go to 0 along some direction.
    log_link : tuple of str
        If the mean is the exponential of the predictor: its name, and what to check if it
        overflows. Else empty.
    finite_variance : bool
        Whether the variance of an observation is finite, whatever its local parameters.
    exponential : str
        Name of the exponential of the only linear predictor, such as an odds, of which exponentials
        of coefficients are ratios; "" if there is none.
    takes_rates : bool
        Whether rates weighted by their exposures have the likelihood of the counts.
    sizes : tuple of float
        Bounds on the largest absolute value of y, unless that is 0.
    spread_at : int or None
        Position among the local parameters of the log of a variance, or of a dispersion, that falls
        by log k for the mean of k observations; None if such a mean has another distribution.
    kernel : type of RowKernel
        Functions of the rows that sums over rows call. A family with its own kernel defines
        log density, score and curvature only there.
    """

    n_predictors = 1
    own: tuple[OwnParameter, ...] = ()
    quadratic = False
    has_sites = False
    whole = False
    totals = False
    takes: ClassVar[Mapping[str, float]] = {}
    shift_invariant = False
    increasing = False
    log_concave = True
    several_modes = False
    bounded_curvature = True
    reach: ClassVar[float] = 1.0
    improper: ClassVar[str] = ""
    log_link: ClassVar[tuple[str, ...]] = ()
    finite_variance: ClassVar[bool] = True
    exponential: ClassVar[str] = ""
    takes_rates: ClassVar[bool] = False
    sizes: ClassVar[tuple[float, float]] = SMALLEST, LARGEST
    spread_at: int | None = None
    kernel: ClassVar[type[RowKernel]] = RowKernel

    def with_inferred_noise(self) -> Likelihood:
        """Same family, whose noise variance is an own parameter even if it is known."""
        return self

    def with_unequal_noise(self) -> Likelihood:
        """Same family, whose noise variance may differ from row to row."""
        return self

    @property
    def n_local(self) -> int:
        """Number of local parameters of a row."""
        return self.n_predictors + len(self.own)

    @property
    def infers_noise(self) -> bool:
        """Whether the first own parameter is the noise variance."""
        return bool(self.own) and self.own[0].is_noise

    @property
    def in_units_of_y(self) -> bool:
        """Whether the first predictor is a location of y, and has its unit."""
        return self.quadratic or self.infers_noise

    def constrain_own(self, theta: Array) -> Array:
        """Own parameters ``(S, n_own)``, as reported, from their coordinates."""
        values = np.empty_like(theta)
        for j, own in enumerate(self.own):
            low, high = own.transform.low, own.transform.high
            # a value at a finite end would have no coordinate; infinity shows an overflow
            least = np.nextafter(low, high)
            most = np.nextafter(high, low) if np.isfinite(high) else high
            values[:, j] = np.clip(own.transform.forward(theta[:, j]), least, most)
        return values

    def unconstrain_own(self, values: Array) -> Array:
        """Coordinates ``(S, n_own)`` of own parameters."""
        columns = zip(self.own, values.T, strict=True)
        return np.column_stack([own.transform.inverse(x) for own, x in columns])

    def reported_names(self, names: list[str], labels: Sequence[str] | None) -> list[str]:
        """Names of the reported intercepts and own parameters, from those in theta.

        ``labels`` are those of the classes.
        """
        return names

    def to_reported(self, values: Array, has_level: bool) -> None:
        """Change intercepts and own parameters ``(S, m)`` in place, if others are reported."""

    def from_reported(self, values: Array, has_level: bool) -> None:
        """Undo :meth:`to_reported`, in place."""

    # ---- the data -----------------------------------------------------------------------------

    def check_target(self, y: Array) -> Array:
        """Observations as floats; a ValueError names a value that is out of range."""
        raise self._undefined("check_target")

    def check_predictors(self, eta: Array) -> None:
        """Raise FarRowError if a mean at these linear predictors, or its square, overflows."""
        largest = float(eta.max(initial=0.0)) if self.log_link else 0.0
        if not largest <= HIGHEST:
            raise FarRowError(
                f"X has a row whose {self.log_link[0]} is exp({largest:.3g}) under a draw, out of "
                f"the range of floating point numbers; check {self.log_link[1]}."
            )

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Local parameters ``(n_local,)`` of a model without columns, from which a search begins.

        Parameters
        ----------
        y : ndarray of shape (n,)
        weight : ndarray of shape (n,) or None
        has_level : bool
            Whether the model has an intercept; the predictors are zero without one.
        """
        return np.zeros(self.n_local)

    def other_starts(self, design: Array, y: Array, weight: Array | None) -> list[Array]:
        """Further starting points ``(width + n_own,)`` of a search for modes.

        Parameters
        ----------
        design : ndarray of shape (n, width)
            Columns of X, with one of ones for an intercept.
        y : ndarray of shape (n,)
        weight : ndarray of shape (n,) or None
        """
        return []

    def typical_effect(self, y: Array, weight: Array | None, level: float | None = None) -> float:
        """Typical change of the predictor over one spread of a column, for automatic prior scales.

        For the prior of an intercept, ``level`` is the centre of that prior.
        """
        return 1.0

    def level_weight(self, y: Array, weight: Array | None = None) -> float:
        """Weight of the observations that bound an intercept under a flat prior.

        Far out, the posterior density of an intercept b falls like ``exp(-level_weight |b|)``.
        Infinity stands for a density that falls faster, as a normal one does, or like an integrable
        power of b. At 0 the density does not go to 0, and the posterior is improper.
        """
        return np.inf

    def pseudo_variance(self, y: Array, weight: Array | None) -> float:
        """Variance of a normal observation of the predictor as informative as an average row.

        It is the inverse curvature at the predictor of a model without columns (Piironen & Vehtari
        2017, Section 3.5).
        """
        u = np.repeat(self.start(y, weight, True)[None, :, None], len(y), axis=2)
        return 1.0 / float(np.average(self.curvature(u, y)[0, 0, 0], weights=weight))

    def trial_weight(self, y: Array, weight: Array | None) -> Array | None:
        """Weight of each row as a number of observations: multiplied by its trials, if any."""
        return weight

    def gains(self, design: Array, y: Array) -> Array | sparray | None:
        """Matrix G such that the likelihood does not go to 0 along v if ``G v >= 0``.

        If some such v has ``G v != 0``, the posterior under flat priors is improper.

        Parameters
        ----------
        design : ndarray of shape (n, width)
            Columns of X, with one of ones for an intercept.
        y : ndarray of shape (n,)

        Returns
        -------
        gains : ndarray or sparse array of shape (m, n_predictors * width), or None
            None if the likelihood goes to 0 along every direction that changes a predictor.
        """
        return None

    def rare(self, y: Array) -> Array | None:
        """Rows ``(n,)`` of observations so rare that a subset of the data should keep them all."""
        return None

    # ---- one observation ----------------------------------------------------------------------

    def bind(self, values: RowValues, dtype: type = np.float64) -> RowKernel:
        """Kernel of rows, which computes in ``dtype``.

        Parameters
        ----------
        values : RowValues
            Everything that the rows bring besides their columns; its arrays are ``(..., B)``.
        dtype : type, default=numpy.float64
            float64 or float32.
        """
        assert values.y is not None
        kernel = self._kernel(values.y, dtype)
        if taken := self.taken(values):
            kernel = GivenKernel(kernel, np.stack(taken, axis=-2).astype(dtype, copy=False))
        if values.n_averaged is not None:
            log_size: Array = np.log(values.n_averaged).astype(dtype, copy=False)
            if self.spread_at is None:
                raise ValueError(
                    f"n_averaged is given, and a mean of several observations of {self!r} has "
                    "another distribution; leave it out, or define spread_at."
                )
            kernel = OffsetKernel(kernel, -log_size, self.spread_at)
        return with_offset_and_weight(kernel, values.offset, values.weight, dtype)

    def taken(self, values: RowValues) -> list[Array]:
        """Values of the rows that are their last local parameters; none if none are given."""
        if self.takes.keys().isdisjoint(values.others):
            return []
        shape = next(v.shape for name, v in values.others.items() if name in self.takes)
        return [values.others.get(k, np.full(shape, one)) for k, one in self.takes.items()]

    def has_sums(self, values: RowValues) -> bool:
        """Whether sufficient statistics replace these rows."""
        return self.quadratic and not self.taken(values)

    def own_units(self, values: RowValues) -> list[float]:
        """Unit of each own parameter, of which automatic scales are made, given these rows.

        For the noise variance it is the variance of y, or if y are means that of a single
        observation. Parameters without a unit name theirs.
        """
        units = [own.unit for own in self.own]
        if self.infers_noise:
            y, weight, size = values.y_less_offset, values.weight, values.n_averaged
            size = np.ones(len(y)) if size is None else size
            level = np.average(y, weights=size if weight is None else size * weight)
            units[0] = float(np.average(size * np.square(y - level), weights=weight))
        return units

    def _kernel(self, y: Array, dtype: type) -> RowKernel:
        return self.kernel.bind(self, y.astype(dtype, copy=False))

    @property
    def n_products(self) -> int:
        """Number of local parameters that kernels take; a shift-invariant family has contrasts."""
        return self.n_local - self.shift_invariant

    def log_density(self, u: Array, y: Array) -> Array:
        """Log density of each observation ``(C, B)``."""
        return self._kernel_values(u, y, 0)[0]

    def score(self, u: Array, y: Array) -> Array:
        """Gradient of the log density in u ``(C, n_local, B)``."""
        return self._kernel_values(u, y, 1)[0]

    def curvature(self, u: Array, y: Array) -> Array:
        """Minus the Hessian of the log density in u ``(C, n_local, n_local, B)``."""
        return self._kernel_values(u, y, 1, 2)[1]

    def value_and_score(self, u: Array, y: Array) -> tuple[Array, Array]:
        """Log density and score."""
        if self.kernel is RowKernel:
            return self.log_density(u, y), self.score(u, y)
        value, score = self._kernel_values(u, y, 0, 1)
        return value, score

    def _kernel_values(self, u: Array, y: Array, *orders: int) -> list[Array]:
        """Log density and derivatives in all local parameters, from the kernel's own."""
        if self.kernel is RowKernel:
            raise NotImplementedError(
                f"{type(self).__name__} defines neither log_density, score and curvature nor a "
                "kernel."
            )
        local = u[:, :-1] - u[:, -1:] if self.shift_invariant else np.array(u, dtype=float)
        with np.errstate(over="ignore"):
            values = list(self.bind(RowValues(y)).derivatives(local, *orders))
        for i, order in enumerate(orders):
            for axis in range(1, 1 + order * self.shift_invariant):  # derivatives sum to zero
                last = -values[i].sum(axis=axis, keepdims=True)
                values[i] = np.concatenate([values[i], last], axis=axis)
        return values

    def noise_variance(self, gamma: Array | None) -> Array | float:
        """Variance of an observation, if it does not depend on eta."""
        raise self._undefined("noise_variance")

    # ---- predictions --------------------------------------------------------------------------

    def mean(self, u: Array) -> Array:
        """Mean of an observation ``(C, B)``; for K classes their probabilities ``(C, K, B)``."""
        raise self._undefined("mean")

    def variance(self, u: Array) -> Array:
        """Variance of an observation ``(C, B)``."""
        raise self._undefined("variance")

    def cdf(self, u: Array, y: Array) -> Array:
        """Probability ``(C, B)`` that an observation is at most ``y``, of shape ``(C, 1)``."""
        raise self._undefined("cdf")

    def ratios(self, u: Array) -> Callable[[float, int], Array]:
        """Ratios of the probabilities of neighbouring counts; a family may leave it out.

        The function takes a count k and a number c. It returns the probability of ``k + 1`` over
        that of k ``(c, B)``, in the first c of the C rows of u.
        """
        raise self._undefined("ratios")

    @property
    def has_ratios(self) -> bool:
        """Whether there are ratios that belong to the distribution function.

        They do if no subclass of the class that defines them overrides the latter.
        """
        owners = type(self).__mro__

        def owner(name: str) -> int:
            return next(i for i, each in enumerate(owners) if name in vars(each))

        return type(self).ratios is not Likelihood.ratios and owner("ratios") <= owner("cdf")

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of an observation ``(C, B)``."""
        raise self._undefined("sample")

    def quantile_start(self, u: Array, q: float) -> tuple[Array, Array]:
        """Quantile ``(C,)`` at the local parameters ``u (C, n_local, 1)``, and its unit ``(C,)``.

        The quantile under a mixture is searched from there, and solved to 1e-5 of these units.
        """
        mean, sd = self.mean(u)[:, 0], np.sqrt(self.variance(u)[:, 0])
        cdf = Mixture(u, np.ones(1)).cdf(self.cdf)
        return solve_quantile(cdf, q, mean + sd * ndtri(q), sd, self.whole).quantile, sd

    def averaged_quantile(self, mixture: Mixture, q: float) -> Array:
        """Quantile ``(n,)`` of each row's observation under a mixture of local parameters."""
        start, unit = self.quantile_start(mixture.center(), q)
        return mixture.quantile(self.cdf, q, start, unit, self.whole)


class LabelLikelihood(Likelihood):
    """The distribution of one label; y holds codes 0 ... ``n_classes - 1``.

    Attributes
    ----------
    n_classes : int
    symmetric : bool
        Whether there are two classes that swap when the predictor changes sign. The family then
        defines :meth:`mean_smaller`.
    """

    n_classes = 2
    symmetric = False
    reach = 20.0  # wide enough for labels without noise: see the network's prior
    improper = "a plane separates the classes of y, completely or nearly"

    def check_target(self, y: Array) -> Array:
        """Class codes as floats; a ValueError names a value that is no code."""
        labels, codes = np.asarray(y), np.asarray(y, dtype=float)
        if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < self.n_classes:
            return codes
        valid = (codes >= 0) & (codes < self.n_classes) & (codes == np.floor(codes))
        if not valid.all():
            raise ValueError(
                f"y has the value {codes[~valid][0]:g}, which is not a code; the codes of "
                f"{self.n_classes} classes are 0 ... {self.n_classes - 1}."
            )
        return codes

    def level_weight(self, y: Array, weight: Array | None = None) -> float:
        """Weight of the class of the least weight."""
        return float(np.bincount(y.astype(np.intp), weight, self.n_classes).min())

    def pseudo_variance(self, y: Array, weight: Array | None) -> float:
        """Inverse of the mean of ``p (1 - p)``; p is a class's share, at least half a row's."""
        rows = np.bincount(y.astype(np.intp), weight, minlength=self.n_classes)
        least = 0.5 / rows.sum()
        share = np.clip(rows / rows.sum(), least, 1.0 - least)
        return 1.0 / float(np.mean(share * (1.0 - share)))

    def rare(self, y: Array) -> Array | None:
        """Rows of rare classes; None if there is no such class."""
        codes = y.astype(np.intp)
        few = np.bincount(codes, minlength=self.n_classes) < RARE * len(y)
        return few[codes] if few.any() else None

    def probabilities(self, u: Array) -> tuple[Array, Array]:
        """Probability of each class, and of all others together, each ``(C, n_classes, B)``.

        Neither is computed as 1 minus the other, so a tiny probability keeps its precision.
        """
        raise self._undefined("probabilities")

    def log_probabilities(self, u: Array) -> tuple[Array, Array]:
        """Logs of :meth:`probabilities`, finite even if those underflow."""
        raise self._undefined("log_probabilities")

    def mean_probabilities(self, eta: Array, own: Array, share: Array) -> Array:
        """Probability of each class, averaged over the draws ``(C, n_classes)``.

        ``eta (C, n_free, B)`` are the predictors or, if the family is shift invariant, their
        contrasts with the last one. They may be in single precision, and may be overwritten;
        ``own`` is ``(B, n_own)``. A tiny probability keeps its precision.
        """
        p = self.probability_draws(eta, own)
        return (p @ share.astype(p.dtype)).astype(float)

    def probability_draws(self, eta: Array, own: Array) -> Array:
        """Probability of each class under every draw ``(C, n_classes, B)``.

        The arguments are those of :meth:`mean_probabilities`.
        """
        return self.probabilities(self._beside_own(eta, own))[0]

    def log_probability_draws(self, eta: Array, own: Array, codes: Array) -> Array:
        """Log probability of each row's class ``(C,)`` under every draw ``(C, B)``.

        The other arguments are those of :meth:`mean_probabilities`.
        """
        return self.log_density(self._beside_own(eta, own), codes[:, None])

    def _beside_own(self, eta: Array, own: Array) -> Array:
        """Local parameters ``(C, n_local, B)``; the last of contrasts is 0."""
        last = np.zeros((len(eta), int(self.shift_invariant), eta.shape[2]), eta.dtype)
        known = np.broadcast_to(own.T.astype(eta.dtype), (len(eta), *own.T.shape))
        return np.concatenate([eta, last, known], axis=1)

    def total_probabilities(self, eta: Array, own: Array, weight: Array) -> Array:
        """Weighted sums over rows of each class's probability ``(M, n_classes, B)``.

        The other arguments are those of :meth:`mean_probabilities`, and each of the M columns of
        ``weight (C, M)`` is for one sum. A tiny sum has the rounding error of the sum over all
        classes.
        """
        p = self.probability_draws(eta, own)
        return np.tensordot(weight.T.astype(p.dtype), p, 1).astype(float)

    def decided(self, mean: Array, variance: Array, own: Array, share: Array) -> Array:
        """Code of the most probable class ``(C,)``; -1 where these moments do not decide.

        ``mean`` and ``variance`` are those of the predictors over the draws ``(n_predictors, C)``;
        ``own (B, n_own)`` are the own coordinates. A mean of a function differs from the function
        at the mean predictors by half the variance times its largest second derivative at most.
        """
        return np.full(mean.shape[1], -1)

    def mean_smaller(self, eta: Array, share: Array) -> Array:
        """Probability of class 0 ``(C,)``, averaged over the draws of predictors ``eta (C, B)``.

        The mean of eta is not negative, so this is the smaller of the two probabilities; a tiny one
        keeps its precision. ``eta`` may be in single precision, and may be overwritten.
        """
        raise self._undefined("mean_smaller")

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of class codes ``(C, B)``."""
        p = self.probabilities(u)[0]
        uniform = rng.random_sample((p.shape[0], 1, p.shape[2]))
        return (uniform > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
