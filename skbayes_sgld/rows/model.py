"""A linear model as a value: likelihood, priors, noise and intercept, to be bound to rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.posterior import GLMPosterior, HierarchicalPosterior, NoiseModel
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.propriety import check_proper, check_weights
from skbayes_sgld.priors import CoefficientPrior, NoisePrior
from skbayes_sgld.rows.checks import warn_of_few_rows
from skbayes_sgld.rows.record import Rows

# priors of the coefficients, the intercept, and the likelihood's own parameters
Priors = tuple[CoefficientPrior, CoefficientPrior, tuple[NoisePrior, ...]]


@dataclass(frozen=True)
class LinearModel:
    """Likelihood and priors of a linear model; :meth:`posterior` makes the posterior given rows.

    Attributes
    ----------
    likelihood : Likelihood
    prior : CoefficientPrior or HierarchicalPrior
        Prior of the coefficients; the scale of a hierarchical prior is learned.
    intercept_prior : CoefficientPrior
    own_priors : tuple of NoisePrior
        Priors of the likelihood's own parameters; "auto" scales are in units of the rows.
    noise : NoiseModel or None
        How the noise depends on the row; None if it does not, or there is none.
    fit_intercept : bool
    intercept_at_mean : bool
        Whether theta has the intercept at the mean of X, where it is easier to sample.
    class_names : list of str or None
        Names of the classes in the model; None if y does not hold labels.
    prior_choice : Choice
        The prior's entry in the plan, with its reason.
    prior_as_given : Any
        The estimator's parameter, for errors.
    """

    likelihood: Likelihood
    prior: Any
    intercept_prior: CoefficientPrior
    own_priors: tuple[NoisePrior, ...]
    noise: NoiseModel | None
    fit_intercept: bool
    intercept_at_mean: bool
    class_names: list[str] | None
    prior_choice: Any
    prior_as_given: Any

    def priors(self, rows: Rows) -> Priors:
        """Priors in the units of y; scales of the coefficients are left to the posterior.

        A prior whose scale is learned is that given its scale.
        """
        units = self.likelihood.own_units(rows.values)
        pairs = zip(self.own_priors, units, strict=True)
        prior = self.prior.conditional() if self.prior.hierarchical else self.prior
        return prior, self.intercept_prior, tuple(p.for_data(unit) for p, unit in pairs)

    def with_scales(self, posterior: GLMPosterior) -> BasePosterior:
        """Posterior with the scales of the prior among its parameters, if these are learned."""
        if not self.prior.hierarchical:
            return posterior
        return HierarchicalPosterior(posterior, self.prior)

    def posterior(self, rows: Rows, priors: Priors | None = None) -> GLMPosterior:
        """Posterior of these rows; ``priors`` are those of earlier rows."""
        prior, intercept, own_priors = self.priors(rows) if priors is None else priors
        if self.likelihood.infers_noise and prior.scaled_by_noise and prior.automatic:
            warn_of_few_rows(rows.weight, *rows.X.shape)
        values = rows.values
        make = GLMPosterior if self.noise is None else self.noise.bind
        return make(
            rows.X,
            rows.y,
            self.likelihood,
            prior,
            own_priors,
            intercept_prior=intercept,
            sample_weight=values.weight,
            offset=values.offset,
            n_averaged=values.n_averaged,
            others=values.others,
            fit_intercept=self.fit_intercept,
            intercept_at_mean=self.intercept_at_mean,
            feature_names=rows.column_names,
            class_names=self.class_names,
            moments=rows.moments,
        )

    def check(self, posterior: GLMPosterior) -> None:
        """Raise if the posterior of rows in memory is not proper."""
        check_proper(posterior)
        check_weights(posterior)

    def check_known_scale(self, taker: str) -> None:
        """Raise if the prior learns its scale."""
        if self.prior.hierarchical:
            raise ValueError(
                f"prior={self.prior_as_given!r} learns its scale from all rows; {taker} takes a "
                "prior of a known scale, such as prior='normal'."
            )


def check_sums(estimator: Any, n_columns: int, taker: str) -> None:
    """Raise if the estimator's model is not one whose rows can be added up part by part."""
    if n_columns >= MAX_DENSE:
        raise ValueError(
            f"X has {n_columns} columns; {taker} adds up a matrix of parameters by parameters, "
            f"and takes fewer than {MAX_DENSE}. Use fewer columns."
        )
    if estimator._noise() is not None:
        raise ValueError(
            f"noise_model={estimator.noise_model!r} has no sums over rows that {taker} could add "
            "up; set noise_model='constant', or give fit arrays."
        )
