"""Log densities of whole groups of rows, each under the posterior without the group.

A group is left out by weighting the draws by one over the density of all its rows. In a mixed model
whose effects belong to the groups, that is the density with these effects integrated out: given its
effects, a group says so much of them that no draw would be near those without it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld._doors import Door
from skbayes_sgld._typing import Array
from skbayes_sgld.criticism.groups import Groups, groups_given
from skbayes_sgld.criticism.leave_one_out import FittedRows, log_mean, relative_ess, weights_without
from skbayes_sgld.prediction.tables import Table

_MARGINAL = Door("skbayes_sgld.mixed.group_density", "marginal_log_likelihood")
_LABELS = Door("skbayes_sgld.mixed.group_density", "labels_of_one_group")
_NUMBERS = 2**22  # densities that are computed at once


def groups_of_fit(fit: FittedRows, groups: Any, X: Any) -> Groups:
    """Groups of the rows of a fit that have a weight.

    Raises
    ------
    ValueError
        If there are fewer than two groups.
    """
    given = groups_given(groups, X, Table.of(X).n_rows).take(fit.counted)
    if len(given.labels) < 2:
        raise ValueError(f"groups has one label, {given.labels[0]!r}; give two or more.")
    return given


def group_log_densities(fit: FittedRows, codes: Array, chosen: Array) -> tuple[Array, Array, Array]:
    """Log densities of groups without each and with it, and Pareto k.

    Parameters
    ----------
    fit : FittedRows
    codes : ndarray of shape (n,)
        Position of the group of each row.
    chosen : ndarray of shape (m,)
        Positions of the groups to leave out.
    """
    fit.check_draws()
    predictive = fit.some_draws(None)
    share = predictive.share
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(codes.max() + 2))
    sizes = np.diff(ends)[chosen]
    found, first = np.empty((3, len(chosen))), 0
    at_once = max(1, _NUMBERS // len(share))
    relative, labels = relative_ess(fit, len(share)), list[Array]()
    if fit.numbers is not None:
        terms = predictive.predictor.terms
        labels = [np.zeros(len(term.labels), bool) for term in terms]
        if not fit.held_out:
            labels = _LABELS.open()(terms, fit.data[0], codes)
    while first < len(chosen):
        n_rows = np.cumsum(sizes[first:])
        last = first + max(1, int(np.searchsorted(n_rows, at_once, side="right")))
        some = chosen[first:last]
        rows = np.concatenate([order[ends[g] : ends[g + 1]] for g in some])
        of_rows = np.repeat(np.arange(len(some)), sizes[first:last])
        values = _values(fit, predictive, rows, of_rows, labels)
        with_group = log_mean(values, np.log(share))
        if fit.held_out:
            without, k = with_group, np.full(len(some), -np.inf)
        else:
            log_weight, k = weights_without(values, share, relative)
            without = log_mean(values, log_weight)
        found[:, first:last] = without, with_group, k
        first = last
    without, with_group, k = found
    return without, with_group, k


def row_log_densities(fit: FittedRows, rows: Array) -> tuple[Array, Array, Array]:
    """Log densities of the chosen rows without each and with it, and Pareto k.

    A row with a label of its own in a mixed model is left out as a group of one row.
    """
    own = fit.decide_alone(rows) & (fit.weight[rows] == 1.0)
    found = np.empty((3, len(rows)))
    found[:, ~own] = fit.log_densities(rows[~own])
    if own.any():
        found[:, own] = group_log_densities(fit, np.arange(len(fit.counted)), rows[own])
    without, with_row, k = found
    return without, with_row, k


def _values(
    fit: FittedRows, predictive: Any, rows: Array, groups: Array, labels: list[Array]
) -> Array:
    """Log density of each group under every draw ``(G, S)``."""
    X, y, row_values = fit.data
    data, weight = (X[rows], y[rows], row_values[rows]), fit.weight[rows]
    if fit.numbers is not None:
        values: Array = _MARGINAL.open()(predictive, data, weight, groups, labels)
        return values
    each = predictive.log_likelihood(*data) * weight[:, None]
    values = np.add.reduceat(each, np.searchsorted(groups, np.arange(groups[-1] + 1)), axis=0)
    return values
