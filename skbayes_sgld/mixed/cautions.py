"""Warnings of groups about whose scale the rows say little or nothing, with the cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.likelihoods.binomial import split_totals
from skbayes_sgld.mixed.groups import GroupEffects
from skbayes_sgld.priors.group import GroupPrior

_FEW = 3  # rows beyond those that effects may fit, below which effects are not told from noise
_KNOWN = (
    "set group_prior=skbayes_sgld.priors.GroupPrior(scale=...) to the size of effects that you "
    "expect"
)


def warn_of_groups(posterior: Any, X: Any, weight: Array | None, prior: GroupPrior) -> None:
    """Warn once of each term of groups whose scales come from their prior alone.

    Parameters
    ----------
    posterior : MixedPosterior
    X : array-like of shape (n, d)
        Encoded rows.
    weight : ndarray of shape (n,) or None
    prior : GroupPrior
        One with a scale that the user knows needs no warning.
    """
    of_groups = [term for term in posterior.terms if term.by_label]
    counted = slice(None) if weight is None else weight > 0
    each = []
    for term in of_groups:
        present, codes = np.unique(term.codes(X)[counted], return_inverse=True)
        each.append((term, codes.ravel(), [term.labels[int(at)] for at in present]))
    ends = _ends(posterior.likelihood, posterior.y[counted])
    known = not isinstance(prior.scale, str)
    for k, (term, codes, labels) in enumerate(each):
        why = _same_groups(codes, len(labels), each[:k])
        if not (why or known):
            why = _nothing_said(term, codes, labels, posterior.model, ends)
        if why:
            warn(f"group_effects[{term.name!r}] {why}.", UserWarning)


def _nothing_said(
    term: GroupEffects, codes: Array, labels: list[Any], model: Any, ends: Any
) -> str:
    """Reason why the rows set no bound to the scales of a term, or ""."""
    n_labels = len(labels)
    if n_labels < 2:
        return f"has one label, {labels[0]!r}, so that its scale comes from its prior; {_KNOWN}"
    likelihood = model.likelihood
    own = bool(likelihood.own) and model.n_averaged is None
    q, n = len(term.effects), len(codes)
    told_apart = n - np.minimum(np.bincount(codes), q).sum() >= _FEW
    if not told_apart and (own or hasattr(likelihood, "n_classes")):
        return (
            f"has {n_labels} labels{f' with {q} effects each' * (q > 1)} for {n} rows, so that "
            "effects are not told apart from the noise of rows, and their scale comes from its "
            f"prior; {_KNOWN}"
        )
    if ends is None or not term.given.intercept:
        return ""
    least, most = np.full(n_labels, np.inf), np.full(n_labels, -np.inf)
    np.minimum.at(least, codes, ends[0])
    np.maximum.at(most, codes, ends[1])
    n_open = int((least == most).sum())
    if n_open < n_labels - 1:
        return ""
    which = "each label" if n_open == n_labels else f"all labels but one of {n_labels}"
    of_rows = "have no success, or no failure" if likelihood.totals else "have counts of 0 alone"
    if hasattr(likelihood, "n_classes"):
        of_rows = "are of one class"
    return (
        f"separates the rows: those of {which} {of_rows}, so that effects have no largest size, "
        f"and their scale comes from its prior; {_KNOWN}"
    )


def _same_groups(codes: Array, n_labels: int, others: Sequence[Any]) -> str:
    """Reason why a term is that of an earlier one, or ""."""
    for other, of_other, of_labels in others:
        if n_labels != len(of_labels) or n_labels < 2:
            continue
        if len(np.unique(codes * n_labels + of_other)) == n_labels:
            return f"has the groups of {other.name!r}, under other labels; leave one of them out"
    return ""


def _ends(likelihood: Any, y: Array) -> tuple[Array, Array] | None:
    """Ends of the range of y at which rows are, the lowest and the highest; None if it has none.

    Labels whose rows are all at one end have a likelihood that is highest at infinity.
    """
    if likelihood.totals:
        successes, trials = split_totals(y)
        return (successes == trials).astype(float), (successes > 0.0).astype(float)
    if hasattr(likelihood, "n_classes"):
        return y.astype(float), y.astype(float)
    return (np.zeros(len(y)), (y > 0.0).astype(float)) if likelihood.whole else None
