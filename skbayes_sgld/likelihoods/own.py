"""Parameters of a likelihood's own, which all rows share: a noise variance, a dispersion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._components import resolve
from skbayes_sgld._typing import Array
from skbayes_sgld.transforms import TRANSFORMS, Positive

_LIMIT = 60.0  # size of a log coordinate beyond which nothing changes in floating point


@dataclass(frozen=True)
class OwnParameter:
    """A parameter of a likelihood's own, inferred beside the linear predictors.

    Theta has it last, as an unbounded coordinate t that ``transform`` maps to the parameter. Its
    prior, a :class:`~skbayes_sgld.priors.NoisePrior`, is a density of t.

    Parameters
    ----------
    name : str
        Name in ``summary()``, and of the fitted attribute: ``"dispersion"``.
    argument : str
        Argument of an estimator that sets the prior: ``"dispersion_prior"``.
    default : str
        Name of the prior of a posterior that is given none.
    is_noise : bool, default=False
        Whether it is the noise variance, which priors in units of the noise refer to. It is then
        the first of a likelihood's own parameters.
    transform : Transform or str, default=Positive()
        :class:`~skbayes_sgld.transforms.Positive` or
        :class:`~skbayes_sgld.transforms.Interval`, or the name of one in
        :data:`~skbayes_sgld.transforms.TRANSFORMS`.
    unit : float, default=1.0
        Unit of the automatic scale of its prior; the noise variance has that of y instead.
    """

    name: str
    argument: str
    default: str
    is_noise: bool = False
    transform: Any = Positive()
    unit: float = 1.0

    def __post_init__(self) -> None:
        """Raise where the transform is not known."""
        object.__setattr__(self, "transform", resolve(self.transform, TRANSFORMS, "transform"))

    @property
    def coordinate(self) -> str:
        """Name of the coordinate in theta: ``"log_dispersion"``."""
        return f"{self.transform.prefix}_{self.name}"


def clip_log(t: Array) -> Array:
    """Log coordinates, those far out replaced by ones whose exponentials are numbers."""
    return np.clip(t, -_LIMIT, _LIMIT)


def first_if_equal(values: Array, axis: int = 1) -> Array:
    """First value along an axis, kept as an axis of length 1, if all are equal; else all values.

    An own parameter is often the same in all rows: what is costly is then computed once.
    """
    first = values[:, :1] if axis else values[:1]
    return first if (values == first).all() else values
