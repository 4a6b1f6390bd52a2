"""Checks that a posterior is proper; errors name what a flat prior leaves undetermined."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from skbayes_sgld._linalg import column_moments, column_ranges, gram_about
from skbayes_sgld._typing import Array
from skbayes_sgld.likelihoods.base import LabelLikelihood
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.sparse_design import as_array
from skbayes_sgld.priors.by_column import columns_where

_REMEDY = "give the coefficients a proper prior, such as prior='normal'"
_MAX_LP = 2_000_000  # largest number of coefficients of the linear programme
_HELD = 1e-3  # least weight of rows that determines a parameter with a flat prior


class ImproperPosteriorError(ValueError):
    """The posterior has no finite integral: the data leave flat priors undetermined."""


def check_proper(posterior: GLMPosterior) -> None:
    """Raise ImproperPosteriorError, with a remedy, if a flat prior makes the posterior improper."""
    for own, prior in zip(posterior.likelihood.own, posterior.own_priors, strict=True):
        if not (own.is_noise or prior.proper):
            raise ImproperPosteriorError(
                f"{own.argument}={prior!r} is improper, and the posterior may be too; use "
                f"{own.argument}={own.default!r}."
            )
    noise_is_proper = posterior.noise_prior is None or posterior.noise_prior.proper
    n, n_free = posterior.n_samples, posterior.n_params - posterior.n_own
    # with flat coefficients integrated out, the density of sigma is like sigma^-(n - d), and must
    # fall faster than 1 / sigma
    needed = n_free + 1 + (not posterior.prior.proper)
    if not noise_is_proper and n < needed:
        raise ImproperPosteriorError(
            f"noise_prior='flat' needs {needed} rows for {n_free} coefficients, and there are {n} "
            "rows: the posterior is improper; use noise_prior='inverse_gamma'."
        )
    if posterior.intercept_is_free and posterior.likelihood.level_weight(posterior.y) == 0.0:
        y = posterior.y
        if posterior.likelihood.totals:
            why = "all trials have one outcome"
        elif y.min() == y.max():
            why = f"y is {y[0]:g} in every row"
        elif isinstance(posterior.likelihood, LabelLikelihood):
            why = "a class has no rows"
        else:
            why = "the likelihood does not go to 0 as the intercept goes to infinity"
        raise ImproperPosteriorError(
            f"{why}: under its flat prior the intercept would go to infinity; check the target, "
            "or set intercept_prior='normal' or fit_intercept=False."
        )
    if not posterior.prior.proper:
        _check_rank(posterior, posterior.param_names)
        _check_directions(posterior)


def weight_of_level(posterior: GLMPosterior) -> float:
    """Total weight of the rows that bound the intercept; infinite under a proper prior."""
    if not posterior.intercept_is_free:
        return np.inf
    return posterior.likelihood.level_weight(posterior.y, posterior.weight)


def intercept_is_proper(posterior: GLMPosterior) -> bool:
    """Whether the rows or the prior determine the intercept."""
    return weight_of_level(posterior) >= _HELD


def check_weights(posterior: GLMPosterior) -> None:
    """Raise if the weights of the rows are so small that the posterior is nearly a flat prior.

    Raises
    ------
    ImproperPosteriorError
        With the total weight and a remedy.
    """
    if posterior.likelihood.quadratic:
        return  # a normal density is computed whatever its width
    weight = np.ones(posterior.n_samples) if posterior.weight is None else posterior.weight
    held = weight_of_level(posterior)
    if posterior.intercept_is_free and np.isinf(held):  # all rows bound it, by a power
        held = float(weight.sum())
    if held < _HELD:
        raise ImproperPosteriorError(
            f"the rows that keep the intercept from infinity count as {held:.2g} in all: under its "
            "flat prior the posterior is improper, or nearly. Check the weights, which may have to "
            "be multiplied so that they average 1, or set intercept_prior='normal'."
        )
    heaviest = int(weight.argmax())
    rest = float(np.delete(weight, heaviest).sum())
    scaled = posterior.linear_prior.from_data and rest < _HELD * weight[heaviest]
    if rest < _HELD and (scaled or not posterior.prior.proper):
        beside = f"the rows beside that of the largest weight count as {rest:.2g} in all"
        raise ImproperPosteriorError(
            f"{'one row has a weight (n_samples=1)' if posterior.n_samples == 1 else beside}: "
            "neither the coefficients nor the spread of the columns can be learned, and the "
            "posterior is improper, or nearly. Check the weights, or give the prior a scale, such "
            "as prior=Normal(scale=1.0)."
        )


def check_mode(posterior: Any, theta: Array) -> None:
    """Raise if coefficients under a flat prior would grow without limit from ``theta (P,)``.

    The likelihood at the supposed mode is then 1. Classes are also separated if some theta gives
    every label a probability above a half.

    Parameters
    ----------
    posterior : GLMPosterior
    theta : ndarray of shape (P,)
        Mode that a search found.

    Raises
    ------
    ImproperPosteriorError
        With the reason and a remedy.
    """
    flat = isinstance(posterior, GLMPosterior) and posterior.prior.flat
    if flat and separated(posterior, theta):
        raise _unbounded(posterior)


def separated(posterior: GLMPosterior, theta: Array) -> bool:
    """Whether the coefficients have no maximum likelihood estimate, judged at ``theta (P,)``.

    That is so if the likelihood is 1, or every label has a probability above a half.
    """
    if not _has_probabilities(posterior):
        return False
    each_row = posterior.log_likelihood(theta[None])[0]
    weight = 1.0 if posterior.weight is None else posterior.weight
    labels = isinstance(posterior.likelihood, LabelLikelihood)
    return bool(each_row.sum() > -1e-3 or (labels and np.all(each_row > weight * np.log(0.5))))


def _has_probabilities(posterior: GLMPosterior) -> bool:
    """Whether the likelihood of a row is a probability; a density may be above 1."""
    return posterior.likelihood.whole or isinstance(posterior.likelihood, LabelLikelihood)


def check_expanded(posterior: GLMPosterior, precision: Array, value: float, least: float) -> None:
    """Raise if the rows at a supposed mode show that the likelihood has no maximum.

    Parameters
    ----------
    posterior : GLMPosterior
        Posterior with some of the rows.
    precision : ndarray of shape (P, P)
        Curvature of the log posterior of all rows.
    value, least : float
        Log likelihood of all rows, and the smallest log likelihood of a row at weight 1.

    Raises
    ------
    ImproperPosteriorError
        With the reason and a remedy.
    """
    diagonal = np.diagonal(precision)
    if not posterior.prior.flat or not (np.isfinite(precision).all() and np.all(diagonal > 0)):
        return
    _check_independent(precision, np.sqrt(diagonal), posterior.param_names)
    labels = isinstance(posterior.likelihood, LabelLikelihood)
    certain = value > -1e-3 or (labels and least > np.log(0.5))
    if certain and _has_probabilities(posterior):
        raise _unbounded(posterior)


def _check_independent(H: Array, scale: Array, names: list[str]) -> None:
    """Raise if the columns with these products, in units of ``scale``, are linearly dependent."""
    eigenvalues, vectors = np.linalg.eigh(H / scale / scale[:, None])
    if eigenvalues[0] < 1e-14 * eigenvalues[-1]:
        involved = [names[j] for j in np.flatnonzero(np.abs(vectors[:, 0]) > 1e-3)[:5]]
        raise ImproperPosteriorError(
            f"columns {', '.join(involved)} of X are linearly dependent: under prior='flat' the "
            f"posterior is improper; drop one of them or {_REMEDY}."
        )


def _unbounded(posterior: GLMPosterior) -> ImproperPosteriorError:
    why = posterior.likelihood.improper or (
        "along some combination of the columns the likelihood does not go to 0"
    )
    return ImproperPosteriorError(
        f"{why}: under prior='flat' the coefficients would go to infinity; {_REMEDY}."
    )


def _flat_columns(posterior: GLMPosterior) -> tuple[Any, Array]:
    """Columns of X under a flat prior, and their positions; all of X is not copied."""
    flat = columns_where(posterior.prior, posterior.n_features, "proper", False)
    return posterior.X if len(flat) == posterior.n_features else posterior.X[:, flat], flat


def _check_rank(posterior: GLMPosterior, names: list[str]) -> None:
    X, flat = _flat_columns(posterior)
    d, names = len(flat), [names[j] for j in flat]
    free = posterior.intercept_is_free  # with a proper prior the data need not determine it
    mean = column_moments(X, posterior.weight)[0] if free else np.zeros(d)
    low, high = column_ranges(X)
    largest = np.maximum(np.abs(low), np.abs(high))
    spread = high - low if free else largest
    constant = np.flatnonzero(spread <= 1e-12 * largest)
    if len(constant):
        beside = ", which an intercept stands beside" if free else " at zero"
        raise ImproperPosteriorError(
            f"column {flat[constant[0]]} of X ({names[constant[0]]}) is constant{beside}: under "
            f"prior='flat' the posterior is improper; drop the column or {_REMEDY}."
        )
    if posterior.n_samples < d + free:
        raise ImproperPosteriorError(
            f"X has {posterior.n_samples} rows and there are {d + free} "
            f"coefficients: under prior='flat' the posterior is improper; {_REMEDY}."
        )
    _check_independent(gram_about(X, mean), spread, names)


def _check_directions(posterior: GLMPosterior) -> None:
    """Raise if along some direction the likelihood rises for some row and falls for no row.

    A linear programme (Konis 2007, Section 4) finds the direction from the likelihood's
    :meth:`~skbayes_sgld.likelihoods.Likelihood.gains`.
    """
    (X, _), K = _flat_columns(posterior), posterior.n_predictors
    free = posterior.intercept_is_free
    n, width = X.shape[0], X.shape[1] + free
    if n * width * max(K - 1, 1) * 2 > _MAX_LP:
        return  # the programme is too large; the search for the mode fails instead
    spread = np.abs(column_ranges(X)).max(axis=0)
    design = as_array(X) / np.where(spread > 0, spread, 1.0)
    if free:
        design = np.hstack([design, np.ones((n, 1))])
    gains = posterior.likelihood.gains(design, posterior.y)
    if gains is None:
        return
    objective = -np.asarray(gains.sum(axis=0)).ravel()
    result = linprog(objective, A_ub=-gains, b_ub=np.zeros(gains.shape[0]), bounds=(-1, 1))
    if result.status == 0 and -result.fun > 1e-7 * n:
        raise _unbounded(posterior)
    if K == 1 and _leave_some_free(np.asarray(gains), free):
        raise _unbounded(posterior)


def _leave_some_free(gains: Array, free: bool) -> bool:
    """Whether the rows that fall in some direction do not determine all coefficients.

    A row that falls in neither direction has no gains: the likelihood stays above 0 along a
    direction in which no other row changes.
    """
    if free:  # the other columns about their mean
        columns, ones = gains[:, :-1], gains[:, -1]
        weight = float(ones @ ones)
        if not weight:
            return True
        gains = columns - np.outer(ones, ones @ columns / weight)
    size = np.linalg.norm(gains, axis=0)
    if not np.all(size > 0):
        return True
    return bool(np.linalg.eigvalsh((gains / size).T @ (gains / size))[:1].min(initial=1.0) < 1e-14)
