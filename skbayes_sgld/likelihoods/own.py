"""Own parameters of a likelihood, which all rows share, such as a noise variance or dispersion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skbayes_sgld._components import resolve
from skbayes_sgld._typing import Array
from skbayes_sgld.transforms import TRANSFORMS

_LIMIT = 60.0  # size of a log coordinate beyond which floating point results do not change


@dataclass(frozen=True)
class OwnParameter:
    """A parameter that a likelihood has besides its linear predictors.

    The last entries of theta are the own parameters, as unbounded coordinates t that ``transform``
    maps to their values. The prior, a :class:`~skbayes_sgld.priors.NoisePrior`, is a density of t:
    that of the log of a positive value, or of the log of the odds x / (1 - x) of a value in (0, 1).

    Parameters
    ----------
    name : str
        Name in ``summary()`` and of the fitted attribute, such as ``"dispersion"``.
    argument : str
        Argument of an estimator that sets the prior, such as ``"dispersion_prior"``; it ends in
        ``"_prior"``.
    default : str
        Name of the default prior.
    is_noise : bool, default=False
        Whether it is the noise variance, the unit of some priors. It must then be the first own
        parameter.
    transform : Transform or str
        Range of the values: ``"positive"``, ``"unit_interval"`` or an instance, from
        :data:`~skbayes_sgld.transforms.TRANSFORMS`. It has no default: under a wrong one nothing
        but the meaning of the reported value is wrong.
    unit : float, default=1.0
        Unit of the parameter, of which automatic scales of priors are made; that of the noise
        variance comes from y. Priors ``half_normal``, ``half_student_t``, ``half_cauchy`` and
        ``exponential`` are of the square root of a positive value, and in its unit.
    has_limit : bool, default=False
        Whether the likelihood has a limit as the coordinate falls, as that of counts becomes
        Poisson's as their dispersion falls to 0. The posterior of the coordinate may then have a
        long tail, which its quantiles do not have.
    """

    name: str
    argument: str
    default: str
    is_noise: bool = False
    unit: float = 1.0
    transform: Any = field(kw_only=True)
    has_limit: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Raise if the transform is not known, or the argument is not named after a prior."""
        if not self.argument.endswith("_prior"):
            raise ValueError(
                f"argument={self.argument!r} of {self.name!r} must end in '_prior', by which "
                f"estimators find priors; give '{self.name}_prior'."
            )
        object.__setattr__(self, "transform", resolve(self.transform, TRANSFORMS, "transform"))

    @property
    def coordinate(self) -> str:
        """Name of the coordinate in theta, such as ``"log_dispersion"``."""
        return f"{self.transform.prefix}_{self.name}"


def clip_log(t: Array) -> Array:
    """Log coordinates, clipped so that their exponentials are finite and above 0."""
    return np.clip(t, -_LIMIT, _LIMIT)


def first_if_equal(values: Array, axis: int = 1) -> Array:
    """First value along an axis, as an axis of length 1, if all are equal; else all values.

    An own parameter is often the same in all rows: costly functions are then computed once.
    """
    first = values[:, :1] if axis else values[:1]
    return first if (values == first).all() else values


def first_of_equal(values: Array) -> Array:
    """Values ``(C, B)`` with length 1 along the first of both axes that has equal ones.

    In a fit they are often the same in all columns, its rows, and in predictions in all C rows.
    """
    first = first_if_equal(values)
    return first_if_equal(values, axis=0) if first is values else first
