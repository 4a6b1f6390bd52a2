"""Priors of some columns of X each, joined to one prior of all columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.priors.base import Array, CoefficientPrior
from skbayes_sgld.priors.flat import Flat
from skbayes_sgld.priors.hierarchical import HierarchicalPrior
from skbayes_sgld.priors.location_scale import LocationScale, Normal


class Part(NamedTuple):
    """Some columns of X and the prior of their coefficients.

    Attributes
    ----------
    name : str
        Name that the user gave the columns, for messages.
    columns : ndarray of int of shape (m,)
    prior : Prior
        Prior of m columns.
    """

    name: str
    columns: NDArray[np.intp]
    prior: Any


def joined(parts: Sequence[Part]) -> CoefficientPrior:
    """Prior of all columns; parts of one kind become one prior with a scale for each column.

    A step then takes as long as under a single prior.
    """
    kinds: dict[Any, list[Part]] = {}
    for number, part in enumerate(parts):
        kinds.setdefault(_kind(part.prior) or number, []).append(part)
    merged = [_merged(alike) for alike in kinds.values()]
    columns = merged[0].columns
    if len(merged) == 1 and np.array_equal(columns, np.arange(len(columns))):
        prior: CoefficientPrior = merged[0].prior
        return prior
    return ByColumn(merged)


def _kind(prior: Any) -> Any:
    """Key shared by priors that differ only in location and scale; None for other priors."""
    if type(prior) is Flat:
        return Flat
    if not isinstance(prior, LocationScale) or getattr(prior, "covariance", None) is not None:
        return None
    others = prior.get_params(deep=False)
    scale, _ = others.pop("scale"), others.pop("location")
    if isinstance(scale, str) or any(np.ndim(value) for value in others.values()):
        return None
    return type(prior), tuple(others.items())


def _merged(parts: list[Part]) -> Part:
    columns = np.concatenate([part.columns for part in parts])
    order, prior = np.argsort(columns), parts[0].prior
    if len(parts) > 1 and not isinstance(prior, Flat):
        vectors = {
            name: np.concatenate([np.broadcast_to(getattr(p, name), len(c)) for _, c, p in parts])
            for name in ("scale", "location")
        }
        prior = clone(prior).set_params(**{name: each[order] for name, each in vectors.items()})
    elif len(parts) == 1:
        return parts[0]
    return Part(" and ".join(part.name for part in parts), columns[order], prior)


class ByColumn(CoefficientPrior):
    """Priors of disjoint columns, independent of each other, that cover all columns.

    ``prior={"age": Normal(scale=1.0)}`` makes one if the priors are of several kinds.

    Parameters
    ----------
    parts : sequence of Part
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        priors = [part.prior for part in parts]
        self.proper = all(prior.proper for prior in priors)
        self.flat = all(prior.flat for prior in priors)
        self.normal = all(prior.normal for prior in priors)
        self.log_concave = all(prior.log_concave for prior in priors)
        self.nonsmooth = any(prior.nonsmooth for prior in priors)
        self.scaled_by_noise = any(prior.scaled_by_noise for prior in priors)

    def __repr__(self, **how: Any) -> str:
        """Priors by the user's names, as in the dict."""
        return f"{{{', '.join(f'{part.name}: {part.prior!r}' for part in self.parts)}}}"

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise if a parameter is out of range, or is not one number per column."""
        for part in self.parts:
            part.prior.check(len(part.columns), f"{argument}[{part.name}]")

    @property
    def automatic(self) -> bool:
        """Whether the data set the scale of some columns."""
        return any(part.prior.automatic for part in self.parts)

    @property
    def scale(self) -> Array:
        """Scale of each column ``(d,)``, infinite under a flat prior."""
        return self._vector(_scale)

    @property
    def location(self) -> Array:
        """Location of each column ``(d,)``."""
        return self._vector(lambda prior: getattr(prior, "location", 0.0))

    def _vector(self, of: Callable[[Any], Any]) -> Array:
        out = np.empty(sum(len(part.columns) for part in self.parts))
        for _, columns, prior in self.parts:
            out[columns] = of(prior)
        return out

    def _changed(self, change: Callable[[Part], Any]) -> list[Part]:
        return [part._replace(prior=change(part)) for part in self.parts]

    # ---- the density ----------------------------------------------------------------------------

    def log_density(self, coef: Array, gamma: Array | None) -> Array:
        """Sum of the log densities of the parts ``(C,)``."""
        value = np.zeros(len(coef))
        for _, columns, prior in self.parts:
            value += prior.log_density(coef[..., columns], gamma)
        return value

    def grad(self, coef: Array, gamma: Array | None) -> tuple[Array, Array | None]:
        """Gradients of the parts."""
        out, in_gamma = np.empty(coef.shape), None
        for _, columns, prior in self.parts:
            out[..., columns], more = prior.grad(coef[..., columns], gamma)
            if more is not None:
                in_gamma = more if in_gamma is None else in_gamma + more
        return out, in_gamma

    def curvature(self, coef: Array, gamma: float | None) -> tuple[Array, Array | None, float]:
        """Curvatures of the parts: a matrix for each predictor if a part has a covariance."""
        (K, d), corner, cross = coef.shape, 0.0, np.zeros(coef.shape)
        found = [prior.curvature(coef[:, columns], gamma) for _, columns, prior in self.parts]
        matrices = any(each[0].ndim > 2 for each in found)
        out = np.zeros((K, d, d) if matrices else (K, d))
        for (_, columns, _), (own, with_gamma, more) in zip(self.parts, found, strict=True):
            corner += more
            if with_gamma is not None:
                cross[:, columns] = with_gamma
            if not matrices:
                out[:, columns] = own
            elif own.ndim > 2:
                out[:, columns[:, None], columns] = own
            else:
                out[:, columns, columns] = own
        return out, cross if self.scaled_by_noise else None, corner

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], noise_variance: float
    ) -> Array:
        """Draws of the parts, in turn."""
        out = np.empty(shape)
        for _, columns, prior in self.parts:
            out[:, columns] = prior.sample(rng, (shape[0], len(columns)), noise_variance)
        return out

    def quantiles(self, u: Array, d: int) -> Array | None:
        """Quantiles ``(len(u), d)`` of the parts; None if those of one are not known."""
        out = np.empty((len(u), d))
        for _, columns, prior in self.parts:
            own = prior.quantiles(u, len(columns))
            if own is None:
                return None
            out[:, columns] = own
        return out

    def root(self, d: int) -> Array:
        """Roots of the parts' covariances, side by side."""
        out = np.zeros((d, d))
        for _, columns, prior in self.parts:
            out[columns[:, None], columns] = prior.root(len(columns))
        return out

    # ---- the prior in other forms ---------------------------------------------------------------

    def for_data(self, unit: float, spread: float | Array) -> CoefficientPrior:
        """Prior whose automatic scales are in units of the spread of their columns."""
        spread = np.asarray(spread)
        return joined(self._changed(lambda part: part.prior.for_data(unit, spread[part.columns])))

    def given_noise(self, variance: float) -> CoefficientPrior:
        """Prior if the noise variance is known."""
        return joined(self._changed(lambda part: part.prior.given_noise(variance)))

    def averaged_over(self, spread: Array | None) -> CoefficientPrior:
        """Prior averaged over normal errors of sd ``spread (K, d)``; itself if it is smooth."""
        parts = self._changed(
            lambda part: part.prior.averaged_over(
                None if spread is None else spread[:, part.columns]
            )
        )
        same = all(new.prior is old.prior for new, old in zip(parts, self.parts, strict=True))
        return self if same else ByColumn(parts)


def _scale(prior: Any) -> Any:
    covariance = getattr(prior, "covariance", None)
    if covariance is not None:
        return np.sqrt(np.diagonal(covariance))
    return np.inf if getattr(prior, "flat", False) else getattr(prior, "scale", np.nan)


class LearnedByColumn(HierarchicalPrior):
    """Priors of disjoint columns, at least one of which has a learned scale.

    Parameters
    ----------
    parts : sequence of Part
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        known = [part.prior for part in parts if not part.prior.hierarchical]
        self.proper = all(prior.proper for prior in known)
        self.scaled_by_noise = any(prior.scaled_by_noise for prior in known)

    __repr__ = ByColumn.__repr__
    check = ByColumn.check

    @property
    def automatic(self) -> bool:
        """Whether the data set the scale of some columns."""
        return any(part.prior.automatic for part in self.parts)

    @property
    def learned(self) -> tuple[tuple[Any, HierarchicalPrior], ...]:
        """Columns of each part whose scale is learned, and its prior."""
        return tuple((c, prior) for _, c, prior in self.parts if prior.hierarchical)

    def conditional(self) -> CoefficientPrior:
        """Prior at hyperparameters of 1."""
        return joined([p._replace(prior=_conditional(p.prior)) for p in self.parts])

    def with_scales_of(
        self,
        known: CoefficientPrior,
        spread: Array,
        likelihood: Likelihood,
        y: Array,
        weight: Array | None,
    ) -> Self:
        """Prior with the scales of the model's prior at hyperparameters of 1, which are numbers."""
        parts = []
        for part in self.parts:
            ((_, columns, prior),) = pieces(known, part.columns)
            if part.prior.hierarchical:
                prior = part.prior.with_scales_of(prior, spread[columns], likelihood, y, weight)
            parts.append(Part(part.name, columns, prior))
        return type(self)(parts)

    sample = ByColumn.sample
    scale = ByColumn.scale
    _vector = ByColumn._vector


def _conditional(prior: Any) -> CoefficientPrior:
    of_one: CoefficientPrior = prior.conditional() if prior.hierarchical else prior
    return of_one


# ---- any prior, by column -----------------------------------------------------------------------


def _parts(prior: CoefficientPrior, d: int) -> Sequence[Part]:
    return prior.parts if isinstance(prior, ByColumn) else [Part("", np.arange(d), prior)]


def columns_where(prior: CoefficientPrior, d: int, attribute: str, value: bool = True) -> Any:
    """Columns ``(m,)`` under a prior whose attribute, such as ``proper``, has this value."""
    parts = _parts(prior, d)
    found = [part.columns for part in parts if bool(getattr(part.prior, attribute)) is value]
    return np.sort(np.concatenate([np.arange(0), *found]))


def independent_normal(prior: CoefficientPrior, d: int) -> tuple[Array, Array] | None:
    """Locations and scales ``(d,)``, infinite where flat, of independent normals; else None."""
    location, scale = np.zeros(d), np.full(d, np.inf)
    for _, columns, own in _parts(prior, d):
        if own.flat:
            continue
        if not isinstance(own, Normal) or own.scaled_by_noise or own.covariance is not None:
            return None
        location[columns], scale[columns] = own.location, own.scale
    return location, scale


def pieces(prior: CoefficientPrior, columns: NDArray[np.intp]) -> list[Part]:
    """Parts of a prior that apply to some of the columns."""
    if not isinstance(prior, ByColumn):
        return [Part("", columns, _of_some(prior, columns))] if len(columns) else []
    found = []
    for part in prior.parts:
        inside = np.flatnonzero(np.isin(part.columns, columns))
        if len(inside) == len(part.columns):
            found.append(part)
        elif len(inside):
            found.append(Part(part.name, part.columns[inside], _of_some(part.prior, inside)))
    return found


def _of_some(prior: Any, columns: NDArray[np.intp]) -> Any:
    if isinstance(prior, Normal) and prior.covariance is not None:
        covariance = np.asarray(prior.covariance)[np.ix_(columns, columns)]
        return clone(prior).set_params(covariance=covariance, location=_at(prior.location, columns))
    if not isinstance(prior, LocationScale):
        return prior
    at = {name: _at(getattr(prior, name), columns) for name in ("scale", "location")}
    return clone(prior).set_params(**at)


def _at(values: Any, columns: NDArray[np.intp]) -> Any:
    return np.asarray(values)[columns] if np.ndim(values) else values


def replaced(prior: CoefficientPrior, columns: Any, new: CoefficientPrior) -> CoefficientPrior:
    """Prior with another prior of some columns; a slice stands for all columns."""
    if isinstance(columns, slice):
        return new
    if isinstance(prior, ByColumn):
        d = sum(len(part.columns) for part in prior.parts)
    else:
        d = np.size(getattr(prior, "scale", 0.0))
    rest = np.setdiff1d(np.arange(d), columns)
    return joined([*pieces(prior, rest), Part("", columns, new)])


def scaled_part(prior: CoefficientPrior, scaled_by_noise: bool) -> CoefficientPrior:
    """Prior restricted to columns with this ``scaled_by_noise``; flat for the others."""
    if isinstance(prior, ByColumn):
        return joined(
            [p._replace(prior=scaled_part(p.prior, scaled_by_noise)) for p in prior.parts]
        )
    return prior if prior.scaled_by_noise == scaled_by_noise else Flat()
