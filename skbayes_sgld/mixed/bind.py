"""The posterior of a mixed model, from a linear model and rows whose labels are codes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.cautions import warn_of_groups
from skbayes_sgld.mixed.columns import MixedColumns
from skbayes_sgld.mixed.posterior import EffectsModel, MixedPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.priors.group import GroupPrior
from skbayes_sgld.rows.model import LinearModel
from skbayes_sgld.rows.record import Rows


def bind_mixed(
    model: LinearModel, rows: Rows, columns: MixedColumns, group_prior: GroupPrior
) -> MixedPosterior:
    """Posterior of a linear model with effects of groups and curves, given encoded rows.

    Raises
    ------
    ValueError
        If the rows have several linear predictors.
    """
    if model.likelihood.n_predictors > 1:
        raise ValueError(
            "Only binary classification is supported with group_effects and smooth_effects, which "
            f"are of one linear predictor, and this model has {model.likelihood.n_predictors}, one "
            "for each class; fit each class against the others, or leave them out."
        )
    if model.noise is not None:
        raise ValueError(
            "group_effects and smooth_effects are of models with one noise variance; set "
            "noise_model='constant'."
        )
    if model.prior.hierarchical or model.prior.scaled_by_noise:
        raise ValueError(
            f"prior={model.prior_as_given!r} does not go with group_effects and smooth_effects, "
            "whose scales are learned beside coefficients of a known scale; set prior='normal'."
        )
    _, names, _ = rows.with_coefficients
    fixed, moments = columns.fixed, rows.moments
    if moments is not None:  # of rows that were pooled
        moments = moments[0][fixed], moments[1][fixed]
    numbers = replace(rows, X=rows.X[:, fixed], names=names, moments=moments)
    if len(columns.fixed):
        posterior = replace(model, intercept_at_mean=True).posterior(numbers)
    else:  # no column has a scale
        posterior = replace(model, prior=Normal(scale=1.0), intercept_at_mean=False).posterior(
            numbers
        )
    model.check(posterior)
    effects = [term.matrix(rows.X) for term in columns.terms]
    wide = EffectsModel(posterior, columns.terms, effects)
    unit = 1.0
    if model.likelihood.infers_noise:
        y = posterior.values.y_less_offset
        level = np.average(y, weights=rows.weight)
        unit = float(np.sqrt(np.average(np.square(y - level), weights=rows.weight)))
    covariances = []
    for term, each in zip(columns.terms, effects, strict=True):
        least = unit / _information(each, len(term.effects), rows.weight)
        scale = unit * term.unit(rows.X, rows.weight)
        covariances.append(term.prior(group_prior).for_term(scale, least))
    mixed = MixedPosterior(wide, columns.terms, covariances)
    warn_of_groups(mixed, rows.X, rows.weight, group_prior)
    return mixed


def _information(effects: Any, q: int, weight: Array | None) -> Array:
    """Root of what rows of unit noise say of the variance of each effect ``(q,)``."""
    squares = effects**2
    each = squares.sum(axis=0) if weight is None else squares.T @ weight
    by_label = np.reshape(each, (-1, q))
    return np.maximum(np.sum(np.square(by_label), axis=0) / 2.0, 1e-300) ** 0.25
