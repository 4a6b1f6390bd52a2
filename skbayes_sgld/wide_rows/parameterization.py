"""Coordinates in the space of few rows, for models with more columns."""

from __future__ import annotations

from typing import Any

from scipy.sparse import issparse

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.inference.parameterizations.base import Parameterization, takes_metric_and_rows
from skbayes_sgld.inference.parameterizations.learned_scales import LearnedScales
from skbayes_sgld.inference.parameterizations.noncentered import Noncentered
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS
from skbayes_sgld.wide_rows.predictors import collapses
from skbayes_sgld.wide_rows.row_space import HierarchicalRowSpacePosterior, RowSpacePosterior


class RowSpace(Parameterization):
    """Directions that the rows span, for normal priors and fewer rows than columns."""

    needs = "a normal prior and fewer rows than columns"

    @classmethod
    def reason(cls, posterior: Any, settings: Settings) -> str | None:
        """How many directions the rows leave out, if this makes steps cheaper."""
        if posterior.facts.hierarchical:
            # 20 rows of 50 columns take a quarter of the time, 15 rows of 30 the same time
            pays, model = posterior.model.n_features >= 40, posterior.model
        else:
            pays, model = takes_metric_and_rows(settings) and _pays(posterior), posterior
            # trajectories of predictors need no coefficients
            pays = pays and not collapses(posterior, settings)
        n, d = model.n_samples, model.n_features
        return f"{n} rows say nothing of {d - n} directions of {d}" if pays else None

    @classmethod
    def apply(cls, posterior: Any, settings: Settings) -> tuple[BasePosterior, Mode | None]:
        """Posterior in the space of the rows, there in coordinates given scales and noise."""
        if posterior.facts.hierarchical:
            rows = HierarchicalRowSpacePosterior(posterior, settings.tau)
            return LearnedScales.apply(rows, settings)
        in_rows = RowSpacePosterior(posterior, settings.tau)
        if "noncentered" in in_rows.facts.parameterizations:
            return Noncentered.apply(in_rows, settings)
        return in_rows, None


def _pays(posterior: Any) -> bool:
    """Whether steps in the space of the rows are cheaper."""
    # many sparse rows would have a dense basis
    if posterior.n_samples > MAX_DENSE and issparse(posterior.X):
        return False
    # with at most half as many rows as columns, only trajectories in the row space are cheap. But a
    # linear model is normal given its noise, and models of labels take few steps
    likelihood = posterior.likelihood
    soft = likelihood.has_sites and likelihood.bounded_curvature
    costly = 2 * posterior.n_samples <= posterior.n_features and not (soft or likelihood.quadratic)
    most = THRESHOLDS.many_costly_columns if costly else THRESHOLDS.many_columns
    return bool(posterior.n_params > most)
