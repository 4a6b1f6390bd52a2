"""Leave-one-out cross-validation from the draws of one fit, for some or all of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.criticism.leave_one_out import Data, good_k, rows_of_fit
from skbayes_sgld.criticism.left_out_groups import (
    group_log_densities,
    groups_of_fit,
    row_log_densities,
)


@dataclass(frozen=True, repr=False)
class LeaveOneOut:
    """Estimate of a fit's log predictive density for rows that it has not seen.

    Attributes
    ----------
    elpd : float
        Sum of the log densities of all rows, each under the posterior without it; greater is
        better.
    se : float
        Standard error of ``elpd`` over other data of the same size: the spread between the rows.
    subsampling_se : float
        Standard error of ``elpd`` from using only a part of the rows; 0 if all are used.
    p_loo : float
        Effective number of parameters: the sum of the log densities with each row, minus the sum
        without.
    p_loo_subsampling_se : float
        Standard error of ``p_loo`` from using only a part of the rows.
    counted : ndarray of shape (n_samples,)
        Positions of the rows with a weight above 0; or labels of all groups, in place of rows here
        and below.
    surrogate : ndarray of shape (n_samples,)
        Log density of each counted row at the posterior mean of the parameters.
    rows : ndarray of shape (n_rows,)
        Positions of the rows that were left out, in increasing order.
    pointwise : ndarray of shape (n_rows,)
        Log density of each row that was left out, under the posterior without it.
    pareto_k : ndarray of shape (n_rows,)
        Shape of the tail of each row's importance weights; -inf if all are nearly equal. Above
        ``good_k``, leaving the row out changes the posterior too much to reuse the draws.
    good_k : float
        The smaller of 0.7 and ``1 - 1 / log10(S)``, with S draws (Vehtari et al. 2024).
    unit : {"row", "group"}
        What was left out, one at a time.
    """

    elpd: float
    se: float
    subsampling_se: float
    p_loo: float
    p_loo_subsampling_se: float
    counted: Array
    surrogate: Array
    rows: Array
    pointwise: Array
    pareto_k: Array
    good_k: float
    unit: str = "row"

    @property
    def n_data_points(self) -> int:
        """Number of rows with a weight above 0."""
        return len(self.counted)

    @property
    def n_rows(self) -> int:
        """Number of rows that were left out, one at a time."""
        return len(self.rows)

    def __repr__(self) -> str:
        """Report in eight lines."""
        bad = int((self.pareto_k > self.good_k).sum())
        title = "Leave-one-out" if self.unit == "row" else "Leave-one-group-out"
        return "\n".join(
            [
                f"{title} of {self.n_data_points} {self.unit}s, from {self.n_rows} of them",
                "",
                f"{'':8s}{'estimate':>12s}{'se':>10s}{'subsampling se':>16s}",
                f"{'elpd':8s}{self.elpd:12.1f}{self.se:10.1f}{self.subsampling_se:16.2f}",
                f"{'p_loo':8s}{self.p_loo:12.1f}{'':10s}{self.p_loo_subsampling_se:16.2f}",
                "",
                f"Pareto k is above {self.good_k:.2g} in {bad} of {self.n_rows} {self.unit}s.",
            ]
        )


@numpy_defaults
def loo(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: Any = None,
    n_rows: int | None = 2000,
    random_state: Any = 0,
    groups: Any = None,
    **by_row: Any,
) -> LeaveOneOut:
    """Leave-one-out cross-validation of a fit, from a random part of its rows.

    Each chosen row is left out by importance sampling from the draws of the fit, with smoothed
    tails of the weights (PSIS; Vehtari, Gelman & Gabry 2017). The sum over all rows uses the log
    density at the posterior mean, which is cheap, corrected by the mean difference in the chosen
    rows (difference estimator of Magnusson et al. 2020). It is unbiased and has a known standard
    error.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator, or a pipeline, a search or a transformed target around one.
    X : array-like of shape (n_samples, n_features)
        Rows of the fit, in any order, as the outermost wrapper takes them.
    y : array-like of shape (n_samples,)
        Observations of the rows. Densities are in the units of y, before any transformation.
    n_rows : int or None, default=2000
        Number of rows, or of groups, to leave out, one at a time, chosen at random. None: all.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the fit. A row of weight w counts as w equal rows, one of which is left out; if
        w is below 1, the whole row is left out.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the choice. The same seed chooses the same rows for every fit.
    groups : array-like of shape (n_samples,), str or int, default=None
        Labels of the rows, or the column of X that has them: whole groups are then left out, since
        leaving out one row of a group is too easy if rows of new groups are to be predicted. Rows
        of weight w count as w equal rows, all of which are left out. Of a model with
        ``group_effects``, effects of labels that are in one group alone are integrated out.
    **by_row : dict
        Arguments by row of the fit, such as ``exposure``.

    Returns
    -------
    result : LeaveOneOut
        ``elpd``, its ``se`` and ``subsampling_se``, ``p_loo`` and ``pareto_k``. It shows
        itself as a report.

    Raises
    ------
    ValueError
        If the rows are not those of the fit. For new rows use ``get_scorer``, with
        ``"log_predictive_density"``, or :func:`skbayes_sgld.compare_models` with
        ``held_out=True``.

    Warns
    -----
    UserWarning
        If the Pareto k of a row, or group, is above ``good_k``.

    Notes
    -----
    ``SGDMAP*`` draws from its Laplace approximation. Weights by ``class_weight`` count only if
    ``sample_weight`` gives them.

    References
    ----------
    Vehtari, Gelman & Gabry (2017), Practical Bayesian model evaluation using leave-one-out
    cross-validation and WAIC. Magnusson, Andersen, Jonasson & Vehtari (2020), Leave-one-out
    cross-validation for Bayesian model comparison in large data. Vehtari, Simpson, Gelman, Yao &
    Gabry (2024), Pareto smoothed importance sampling.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.metrics import loo
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SGLDLinearRegression(random_state=0).fit(X, y)
    >>> print(loo(model, X, y))
    Leave-one-out of 442 rows, from 442 of them
    <BLANKLINE>
                estimate        se  subsampling se
    elpd         -2397.9      13.8            0.00
    p_loo           11.2                      0.00
    <BLANKLINE>
    Pareto k is above 0.7 in 0 of 442 rows.
    """
    fit = rows_of_fit("loo", estimator, X, y, sample_weight, by_row)
    model = fit.unwrapped.model
    surrogate = _surrogate(model, fit.data, fit.counted) - fit.log_slope
    if groups is None:
        weight, counted, what = fit.weight, fit.counted, "row"
        rows = fit.choose(n_rows, random_state)
        pointwise, log_density, k = row_log_densities(fit, rows)
        slope = fit.log_slope[rows]
    else:
        among, what = groups_of_fit(fit, groups, X), "group"
        counted, weight = among.labels.to_numpy(), np.ones(len(among.labels))
        surrogate = np.bincount(among.codes, fit.weight * surrogate)
        rows = fit.choose(n_rows, random_state, len(counted))
        pointwise, log_density, k = group_log_densities(fit, among.codes, rows)
        slope = np.bincount(among.codes, fit.weight * fit.log_slope)[rows]
    pointwise -= slope
    elpd, error, se = _difference_estimate(weight * surrogate, weight[rows] * pointwise, rows)
    losses = weight[rows] * (log_density - slope - pointwise)
    p_loo, p_error, _ = _difference_estimate(np.zeros(len(weight)), losses, rows)
    most = good_k(len(model.posterior_.flat))
    if np.any(k > most):
        other = "" if groups is None else ", groups=groups, cv=LeaveOneGroupOut()"
        warn(
            f"The Pareto k of {np.sum(k > most)} of {len(k)} {what}s is above {most:.2g}, up to "
            f"{k.max():.2g}: leaving such a {what} out changes the posterior too much for its "
            "draws, and elpd is not reliable; use cross_val_score with "
            f"scoring=get_scorer('log_predictive_density'){other}.",
            UserWarning,
        )
    return LeaveOneOut(
        elpd=elpd,
        se=se,
        subsampling_se=error,
        p_loo=p_loo,
        p_loo_subsampling_se=p_error,
        counted=counted,
        surrogate=surrogate,
        rows=counted[rows],
        pointwise=pointwise,
        pareto_k=k,
        good_k=most,
        unit=what,
    )


def _surrogate(model: Any, data: Data, counted: Array) -> Array:
    """Log density of every row at the mean of the draws; for a network, over 100 draws."""
    predictive = model._predictive().at_mean()
    if predictive is None:
        some = np.linspace(0, len(model.posterior_.flat) - 1, 100).astype(int)
        predictive = model._predictive(np.unique(some))
    log_density: Array = predictive.log_density(*data)
    if not np.isfinite(log_density).all():
        row = int(np.argmin(np.isfinite(log_density)))
        raise ValueError(
            f"the log density of row {counted[row]} of X and y is {log_density[row]:g}; give the "
            "rows of the fit, or give this one the weight 0."
        )
    return log_density


def _difference_estimate(
    surrogate: Array, values: Array, rows: Array
) -> tuple[float, float, float]:
    """Estimate a total over all rows from randomly chosen ones, with its error and spread.

    Magnusson et al. (2020), eqs. 6, 7 and 9, for values minus the surrogate's mean.

    Parameters
    ----------
    surrogate : ndarray of shape (n,)
    values : ndarray of shape (m,)
        Values of the chosen rows.
    rows : ndarray of shape (m,)

    Returns
    -------
    total : float
    error : float
        Standard error of the total that comes from the choice of rows.
    spread : float
        Root of n times the variance of the values over all rows.
    """
    n, m, center = len(surrogate), len(values), surrogate.mean()
    about, deviations = surrogate - center, values - center
    difference = deviations - about[rows]
    total = n * difference.mean()
    variance = n**2 * (1.0 - m / n) * difference.var(ddof=1) / m
    squares = np.square(about).sum() + n * (np.square(deviations) - np.square(about[rows])).mean()
    spread = squares - (total**2 - variance) / n
    return (
        float(n * center + total),
        float(np.sqrt(variance)),
        float(np.sqrt(max(spread, 0.0) * n / (n - 1))),
    )
