"""Facts about a posterior's shape and cost, by which settings are chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Facts:
    """Facts about a posterior; the defaults are those of a density of which nothing is known.

    Attributes
    ----------
    has_mode : bool
        Whether there is a mode, so that failing to find it is an error.
    one_mode : bool
        Whether chains are expected to meet soon: many short ones then serve as well as few long.
    multimodal : bool
        Whether there are several modes between which chains are not expected to cross.
    ensemble : bool
        Whether each chain is to begin at a mode of its own, and chains are compared by their
        predictions, since parameters can change places.
    log_concave : bool
        Whether the log density is concave, or nearly, so that chains miss no mode.
    light_tailed : bool
        Whether the tails are no heavier than those of a normal distribution.
    far_from_mode : bool
        Whether most of the posterior is far from its mode.
    steep : bool
        Whether steps without an accept-reject test may become unstable.
    full_support : bool
        Whether the density is positive everywhere.
    bounded_curvature : bool
        Whether the density has no walls, where it falls like ``exp(-exp(x))``.
    quadratic_prior : bool
        Whether the log prior is a polynomial of second order, or constant.
    hierarchical : bool
        Whether hyperparameters of a prior are among the parameters.
    cheap_full_gradient : bool
        Whether the gradient from all rows costs no more than one from a few.
    shares_batches : bool
        Whether several walkers of a chain can share each batch.
    thread_safe : bool
        Whether threads may call the posterior side by side.
    user_defined : bool
        Whether it is a user's own, of which neither the number of modes nor the gradient is known.
    n_predictors : int
        Number of linear predictors of a row.
    total_weight : float
        Sum of the rows' weights; 0 where it is not known.
    noise_index : int or None
        Position of the log noise variance among the parameters; None without one.
    parameterizations : tuple of str
        Names of the coordinates in which the posterior can be sampled.
    slope_of_last : tuple of three floats or None
        ``(a, b, w)`` where the derivative in the last coordinate x is ``a exp(-w x) + b``, and all
        others are standard normal, independent of it and of each other. None elsewhere.
    precision : float
        Relative rounding error of the returned arrays: that of float64 or of float32.
    """

    has_mode: bool = False
    one_mode: bool = False
    multimodal: bool = False
    ensemble: bool = False
    log_concave: bool = False
    light_tailed: bool = False
    far_from_mode: bool = False
    steep: bool = False
    full_support: bool = True
    bounded_curvature: bool = True
    quadratic_prior: bool = False
    hierarchical: bool = False
    cheap_full_gradient: bool = False
    shares_batches: bool = False
    thread_safe: bool = False
    user_defined: bool = False
    n_predictors: int = 1
    total_weight: float = 0.0
    noise_index: int | None = None
    parameterizations: tuple[str, ...] = ("centered",)
    slope_of_last: tuple[float, float, float] | None = None
    precision: float = float(np.finfo(float).eps)
