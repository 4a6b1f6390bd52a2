"""Reports of a mixed model: tables of effects, draws by term, and variables of data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skbayes_sgld._typing import Array
from skbayes_sgld.diagnostics import effective_sample_size, moments_of_draws, quantiles, tails
from skbayes_sgld.mixed.columns import MixedColumns
from skbayes_sgld.mixed.term import Term
from skbayes_sgld.priors.group import GroupPrior, LearnedCovariance

COVERAGE = 0.9
# dimensions of other variables and of other groups of a data set
_TAKEN = {"chain", "draw", "obs_id", "output", "feature", "class"}
_STEM = "effect["


def table_of_effects(columns: MixedColumns, draws: Any) -> pd.DataFrame:
    """Frame of the effects of groups, indexed by term, label and effect."""
    values = draws.values[..., places_of_effects(draws.names)]
    mean, sd = moments_of_draws(values, draws.weights)
    flat = values.reshape(-1, values.shape[2]).T
    lower, upper = quantiles(flat, tails(COVERAGE), draws.flat_weights).T
    ess = effective_sample_size(values)
    figures = {"mean": mean, "sd": sd, "lower": lower, "upper": upper, "ess_bulk": ess}
    index = [
        (term.name, label, effect)
        for term in columns.terms
        for label in term.labels
        for effect in term.effects
    ]
    # levels in the order of rows, without which pandas warns of an index that is not sorted
    parts = [pd.factorize(pd.Index(part, tupleize_cols=False)) for part in zip(*index, strict=True)]
    codes, levels = zip(*parts, strict=True)
    frame = pd.DataFrame(figures, pd.MultiIndex(levels, codes, names=["term", "label", "effect"]))
    frame.attrs["coverage"] = COVERAGE
    of_groups = [term.by_label for term in columns.terms]
    return frame[np.repeat(of_groups, [term.size for term in columns.terms])]


def places_of_effects(names: Sequence[str]) -> Array:
    """Positions of the effects among the names of parameters."""
    return np.array([k for k, name in enumerate(names) if name.startswith(_STEM)], dtype=np.int64)


def without_effects(draws: Any) -> Any:
    """Draws of all parameters but the effects."""
    keep = np.setdiff1d(np.arange(len(draws.names)), places_of_effects(draws.names))
    return replace(draws, values=draws.values[..., keep], names=[draws.names[k] for k in keep])


def priors_by_term(columns: MixedColumns) -> dict[str, GroupPrior]:
    """Prior of the scales and correlations of each term, with numbers as scales."""
    found = {}
    for term, covariance in zip(columns.terms, columns.covariances, strict=True):
        if term.by_label:
            found[term.name] = covariance.prior
    return found


def draws_by_term(columns: MixedColumns, draws: Mapping[str, Array]) -> dict[str, Any]:
    """Effects ``(S, L, q)``, sds ``(S, q)`` and correlation matrices ``(S, q, q)`` by term."""
    effects, roots = columns.effects_and_roots(dict(draws))
    found: dict[str, dict[str, Array]] = {"effect": {}, "sd": {}, "correlation": {}}
    each = zip(columns.terms, columns.covariances, effects, roots, strict=True)
    for term, covariance, effect, root in each:
        cov = root @ root.swapaxes(1, 2)
        sd = np.sqrt(np.einsum("sqq->sq", cov))
        found["effect"][term.name], found["sd"][term.name] = effect, sd
        if covariance.pairs:
            with np.errstate(invalid="ignore", divide="ignore"):
                found["correlation"][term.name] = cov / (sd[:, :, None] * sd[:, None, :])
    return {name: Bunch(**by_term) for name, by_term in found.items() if by_term}


def variables_of(
    terms: Sequence[Term], covariances: Sequence[LearnedCovariance]
) -> tuple[dict[str, Sequence[Any]], dict[str, dict[str, tuple[str, ...]]]]:
    """Labels of the dimensions of a data set, and dimensions of the variables of each term."""
    coords: dict[str, Sequence[Any]] = {}
    variables: dict[str, dict[str, tuple[str, ...]]] = {"effect": {}, "sd": {}, "correlation": {}}
    for term, covariance in zip(terms, covariances, strict=True):
        label = f"{term.name}_label" if term.name in _TAKEN else term.name
        if not term.by_label:  # the bend of a curve
            coords[label] = term.labels
            variables["effect"][f"effect_{term.name}"] = (label,)
            variables["sd"][f"sd_{term.name}"] = ()
            continue
        effect, pair = f"{label}_effect", f"{label}_pair"
        coords |= {label: term.labels, effect: term.effects}
        variables["effect"][f"effect_{term.name}"] = (label, effect)
        variables["sd"][f"sd_{term.name}"] = (effect,)
        if covariance.pairs:
            named = [f"{term.effects[j]}, {term.effects[i]}" for i, j in covariance.pairs]
            coords[pair] = named
            variables["correlation"][f"correlation_{term.name}"] = (pair,)
    return coords, {stem: each for stem, each in variables.items() if each}
