"""How far effects of groups are drawn towards the population, label by label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.columns import MixedColumns
from skbayes_sgld.mixed.report import places_of_effects

_NUMBERS = 2**22  # of the draws of a block of rows


@dataclass(frozen=True)
class EffectDraws:
    """Draws of the effects of some labels of a term, sorted by their means.

    Attributes
    ----------
    term : str
    labels : list
    effects : list of str
    values : ndarray of shape (S, n_labels, n_effects)
    codes : ndarray of int of shape (n_labels,)
        Positions of the labels among all.
    n_labels : int
        Number of all labels.
    """

    term: str
    labels: list[Any]
    effects: list[str]
    values: Array
    codes: Array
    n_labels: int


def effects_of_term(
    model: Any, name: str | None, effect: str | None, n_labels: int | None
) -> EffectDraws:
    """Draws of one effect, or of all, of the labels of a term with the lowest and highest means.

    Labels are sorted by the means of the first effect that is shown.
    """
    columns, draws = model._fitted.mixed, model.posterior_
    k = position_of_term(columns, name)
    term = columns.terms[k]
    if effect is not None and effect not in term.effects:
        raise ValueError(
            f"effect={effect!r} is not an effect of the term {term.name!r}, which has "
            f"{', '.join(map(repr, term.effects))}."
        )
    q = list(range(len(term.effects))) if effect is None else [term.effects.index(effect)]
    first = places_of_effects(draws.names)[0] + sum(each.size for each in columns.terms[:k])
    values = draws.flat[:, first : first + term.size]
    values = values.reshape(-1, len(term.labels), len(term.effects))
    order = np.argsort(np.average(values[..., q[0]], axis=0, weights=draws.flat_weights))
    if n_labels is not None and len(order) > n_labels:
        order = np.r_[order[: n_labels // 2], order[len(order) - (n_labels + 1) // 2 :]]
    return EffectDraws(
        term.name,
        [term.labels[at] for at in order],
        [term.effects[at] for at in q],
        values[:, order][..., q],
        order,
        len(term.labels),
    )


def position_of_term(columns: MixedColumns, name: str | None) -> int:
    """Position of the term of this name; None: the first."""
    places = {term.name: k for k, term in enumerate(columns.terms) if term.by_label}
    if name is None:
        return min(places.values())
    if name not in places:
        raise ValueError(
            f"term={name!r} is not a term of group_effects, which has "
            f"{', '.join(map(repr, places))}."
        )
    return places[name]


def own_means(
    model: Any, X: Any, y: Any, effects: EffectDraws, by_row: dict[str, Any]
) -> tuple[Array, Array, Array]:
    """Mean differences of the rows of each label, without pooling and with it.

    Returns
    -------
    own : ndarray of shape (n_labels,)
        Mean difference of the observations from the model's mean without the term; nan without
        rows.
    n_rows : ndarray of int of shape (n_labels,)
    pooled : ndarray of shape (S, n_labels)
        Mean difference of the model's mean from that without the term, under every draw.
    """
    rows, observed, row_values = model._observed(X, y, by_row)
    columns, predictor = model._fitted.mixed, model._predictor()
    k = position_of_term(columns, effects.term)
    likelihood, every = model._fitted.target.likelihood, slice(None)
    coordinates = model._own_draws(every)
    full, base = (
        model._mixture(each, likelihood, coordinates, every)
        for each in (predictor, predictor.without(k))
    )
    codes = columns.terms[k].codes(rows)
    S = predictor.n_draws
    own, n_rows = np.full(len(effects.codes), np.nan), np.zeros(len(effects.codes), dtype=int)
    pooled = np.full((S, len(effects.codes)), np.nan)
    size = max(1, _NUMBERS // S)
    for at, code in enumerate(effects.codes):
        of_label = np.flatnonzero(codes == code)
        if not len(of_label):
            continue
        without, added = np.zeros(S), np.zeros(S)
        for first in range(0, len(of_label), size):
            some = of_label[first : first + size]
            mean = base.mean_draws(rows[some], row_values[some])
            without += mean.sum(axis=0)
            added += (full.mean_draws(rows[some], row_values[some]) - mean).sum(axis=0)
        n_rows[at] = len(of_label)
        share = model.posterior_.flat_weights
        own[at] = observed[of_label].mean() - np.average(without, weights=share) / len(of_label)
        pooled[:, at] = added / len(of_label)
    return own, n_rows, pooled
