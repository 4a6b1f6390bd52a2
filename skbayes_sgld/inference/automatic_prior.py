"""The automatic prior of the coefficients: with few rows per column its scale is learned."""

from __future__ import annotations

from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

_TOO_FEW = 2.5  # weight of the rows up to which nothing bounds a learned scale from above


def choose_prior(
    shape: tuple[int, int], likelihood: Likelihood, weight: float, obstacle: str = ""
) -> Choice:
    """Name of the prior of the coefficients: with few rows per column its scale is learned.

    Parameters
    ----------
    shape : tuple of int
        Numbers of rows, and of columns that have coefficients.
    likelihood : Likelihood
    weight : float
        Sum of the weights of the rows; for totals, the number of trials.
    obstacle : str, default=""
        Setting that excludes a learned scale; empty if there is none.
    """
    if not shape[1]:
        return Choice("normal", "no column has a coefficient")
    several = max(likelihood.n_predictors - 1, 1)  # one class's predictor is redundant
    each, of = weight / (shape[1] * several), "column" if several == 1 else "free coefficient"
    why = f"{each:{'.3g' if each < 1000 else ',.0f'}} rows a {of}"
    fewest = THRESHOLDS.few_rows_each * (2.0 if getattr(likelihood, "n_classes", 2) > 2 else 1.0)
    if each >= fewest:
        return Choice("normal", why)
    if weight < _TOO_FEW:
        obstacle = obstacle or f"no scale is learned from {weight:.3g} rows in all"
    if likelihood.infers_noise and not likelihood.quadratic:
        # with t-distributed noise 15 rows of 30 columns take minutes; under a known scale, seconds
        obstacle = obstacle or "chains mix slowly where the tails of the noise are inferred too"
    n_values = min(shape) * likelihood.n_predictors
    if n_values > (MAX_DENSE if likelihood.quadratic else THRESHOLDS.learned_parameters):
        obstacle = obstacle or "learning a scale takes long"
    if obstacle:
        return Choice("normal", f"{why}, but {obstacle}")
    return Choice("hierarchical_normal", f"{why}: its scale is learned from them")
