"""Comparison of fitted models by the leave-one-out log density of the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skbayes_sgld._checks import check_flag, escaped, naming
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._random import draw_seed
from skbayes_sgld._typing import Array
from skbayes_sgld.criticism.leave_one_out import good_k, rows_of_fit
from skbayes_sgld.criticism.left_out_groups import (
    group_log_densities,
    groups_of_fit,
    row_log_densities,
)


@numpy_defaults
def compare_models(
    estimators: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: Any = None,
    n_rows: int | None = 2000,
    held_out: bool = False,
    random_state: Any = 0,
    groups: Any = None,
    **by_row: Any,
) -> pd.DataFrame:
    """Compare fitted models by leave-one-out log density, in the units of y.

    All models are judged on the same rows, so that differences have much smaller standard errors
    than the log densities themselves (Vehtari, Gelman & Gabry 2017).

    Parameters
    ----------
    estimators : dict of str to estimator
        Estimators by name, fitted to the same rows: of this package, or pipelines, searches and
        transformed targets around one.
    X : array-like of shape (n_samples, n_features)
        Rows of the fits, in any order, as the outermost wrappers take them; with
        ``held_out=True`` new rows. Of a data frame each model takes the columns of its fit.
    y : array-like of shape (n_samples,)
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the fits. A row of weight w counts as w equal rows.
    n_rows : int or None, default=2000
        Number of rows, or of groups, to leave out, one at a time, chosen at random. None: all.
    held_out : bool, default=False
        Whether the rows are new to all models, which may then be fitted to different rows. None
        is left out.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the choice.
    groups : array-like of shape (n_samples,), str or int, default=None
        Labels of the rows, or the column of X that has them: whole groups are then left out, as by
        :func:`skbayes_sgld.metrics.loo`.
    **by_row : dict
        Arguments by row of the fits, such as ``exposure``.

    Returns
    -------
    table : pandas.DataFrame
        A row for each model, the best first. ``elpd`` is the log density of all rows, each under
        the posterior without it, and ``se`` its standard error; ``difference`` is ``elpd`` minus
        that of the best model, and ``se_difference`` its standard error. ``weight`` is the stacking
        weight: the model's share of the mixture that predicts best (Yao et al. 2018). ``bad_k``
        counts rows, or groups, that cannot be left out reliably.

    Raises
    ------
    ValueError
        If the rows are not those of every fit, and ``held_out`` is False.

    See Also
    --------
    check_model : Checks of one model, and remedies.
    skbayes_sgld.plotting.ModelComparisonDisplay : The table as a picture.

    Notes
    -----
    A difference below 4, or below two standard errors, is too small to prefer a model (Sivula et
    al. 2020).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> from skbayes_sgld import SGLDLinearRegression, compare_models
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 1))
    >>> y = np.exp(X[:, 0] + 0.5 * rng.standard_normal(200))
    >>> plain = SGLDLinearRegression(random_state=0).fit(X, y)
    >>> logs = TransformedTargetRegressor(
    ...     SGLDLinearRegression(random_state=0), func=np.log, inverse_func=np.exp
    ... ).fit(X, y)
    >>> table = compare_models({"plain": plain, "log": logs}, X, y)
    >>> table.index.tolist()
    ['log', 'plain']
    >>> bool(table.loc["plain", "difference"] < -4 * table.loc["plain", "se_difference"])
    True
    """
    if not isinstance(estimators, Mapping) or not estimators:
        raise TypeError(
            f"estimators={estimators!r} is not accepted; give a dict of fitted estimators by name."
        )
    check_flag(held_out, "held_out")
    each: dict[str, Array] = {}
    bad, families, seed = {}, {}, draw_seed(random_state)
    for name, estimator in estimators.items():
        with naming(f"estimators[{name!r}]"):
            own = _columns_of_fit(estimator, X)
            fit = rows_of_fit("compare_models", estimator, own, y, sample_weight, by_row, held_out)
        name, weight = escaped(name), fit.weight
        if groups is None:
            rows, slope = fit.choose(n_rows, seed), fit.log_slope
            log_density, _, k = row_log_densities(fit, rows)
        else:
            among = groups_of_fit(fit, groups, X)
            slope = np.bincount(among.codes, weight * fit.log_slope)
            weight = np.ones(len(among.labels))
            rows = fit.choose(n_rows, seed, len(weight))
            log_density, _, k = group_log_densities(fit, among.codes, rows)
        each[name], families[name] = log_density - slope[rows], fit.family
        bad[name] = int((k > good_k(len(fit.unwrapped.model.posterior_.flat))).sum())
        if not np.isfinite(each[name]).all():
            raise ValueError(
                f"estimators[{name!r}] gives some row of X and y no finite log density; give the "
                "rows of its fit."
            )
    if len(set(families.values())) > 1:
        listed = ", ".join(f"{name} is of {family}" for name, family in families.items())
        raise ValueError(
            f"estimators are not comparable: {listed}. Densities of numbers and probabilities of "
            "counts or labels have different units; give models of one kind."
        )
    log_density = np.column_stack(list(each.values()))
    table = pd.DataFrame(_totals(log_density, weight, rows), index=pd.Index(each, name="model"))
    best = int(table["elpd"].to_numpy().argmax())
    apart = _totals(log_density - log_density[:, [best]], weight, rows)
    table["difference"], table["se_difference"] = apart["elpd"], apart["se"]
    table["weight"] = stacking_weights(log_density, weight[rows]).round(4)
    table["bad_k"] = list(bad.values())
    table.attrs["held_out"] = held_out
    return table.sort_values("elpd", ascending=False)


def _columns_of_fit(estimator: Any, X: Any) -> Any:
    """Data frame without columns that the estimator was not fitted to; anything else as it is."""
    known = list(getattr(X, "column_names", getattr(X, "columns", ())))
    own = [name for name in getattr(estimator, "feature_names_in_", ()) if name in known]
    if not 0 < len(own) < len(known):
        return X
    return X[own] if isinstance(X, pd.DataFrame) else X.select(own)


def _totals(values: Array, weight: Array, rows: Array) -> dict[str, Array]:
    """Totals over all rows, estimated from values of some rows ``(m, K)``, and standard errors."""
    weighed, n, m = weight[rows, None] * values, len(weight), len(rows)
    return {"elpd": n * weighed.mean(axis=0), "se": n * weighed.std(axis=0, ddof=1) / np.sqrt(m)}


def stacking_weights(log_density: Array, weight: Array) -> Array:
    """Weights ``(K,)`` of the mixture of highest log density, by expectation maximisation.

    Parameters
    ----------
    log_density : ndarray of shape (m, K)
    weight : ndarray of shape (m,)
        Weights of the rows.
    """
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    share, weights = weight / weight.sum(), np.full(log_density.shape[1], 1 / log_density.shape[1])
    for _ in range(2000):
        last = weights
        weights = weights * (share @ (density / (density @ weights)[:, None]))
        if np.abs(weights - last).max() < 1e-7:
            break
    return weights
