"""Facts about a posterior's shape and cost, by which settings are chosen."""

from __future__ import annotations

from dataclasses import dataclass


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
