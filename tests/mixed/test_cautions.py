"""Warnings of groups about whose scale the rows say nothing: their cause, once, in each family."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skbayes_sgld import (
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from skbayes_sgld.priors import GroupPrior

N = 60
CODES = np.arange(N) % 6
X = np.random.default_rng(0).normal(size=N)
NUMBERS = np.exp(0.3 * X + np.random.default_rng(1).normal(size=N))
COUNTS = np.floor(2.0 * NUMBERS)
FAMILIES = {
    "normal": (SGLDLinearRegression, NUMBERS),
    "student_t": (SGLDLinearRegression, NUMBERS),
    "binary": (SGLDLogisticRegression, np.where(NUMBERS > 1.0, "yes", "no")),
    "poisson": (SGLDPoissonRegressor, COUNTS),
    "negative binomial": (SGLDNegativeBinomialRegressor, COUNTS),
    "gamma": (SGLDGammaRegressor, NUMBERS),
    "ordinal": (SGLDOrdinalClassifier, np.digitize(NUMBERS, [0.7, 1.5])),
    "beta-binomial": (SGLDBetaBinomialRegressor, np.minimum(COUNTS, 10.0)),
}


class Bound(Exception):
    """The posterior is there; draws would take longer."""


@pytest.fixture
def found(monkeypatch):
    """Function that returns what a fit says of its groups, before it samples."""

    def stop(*_):
        raise Bound

    def messages(family, labels, y=None, weight=None, **params):
        kind, default = FAMILIES[family]
        monkeypatch.setattr(kind, "_infer", stop)
        if family == "student_t":
            params["noise_distribution"] = "student_t"
        frame = pd.DataFrame({"g": [f"s{k}" for k in labels], "x": X})
        if any("h" in key for key in params.get("group_effects", ())):
            frame = frame.assign(h=frame["g"] + "!")
        trials = {"n_trials": np.full(N, 10)} if family == "beta-binomial" else {}
        model = kind(**{"group_effects": {"g": "intercept"}, **params})
        with warnings.catch_warnings(record=True) as caught, pytest.raises(Bound):
            warnings.simplefilter("always")
            model.fit(frame, default if y is None else y, sample_weight=weight, **trials)
        return [str(each.message) for each in caught]

    return messages


@pytest.mark.parametrize("family", FAMILIES)
def test_a_single_label_is_told_of(found, family):
    (message,) = found(family, np.zeros(N, int))
    assert "group_effects['g'] has one label, 's0', so that its scale comes from" in message
    assert "set group_prior=skbayes_sgld.priors.GroupPrior(scale=...)" in message
    assert not found(family, np.zeros(N, int), group_prior=GroupPrior(scale=0.5))
    assert not found(family, CODES)
    (message,) = found(family, CODES, weight=(CODES == 2).astype(float))
    assert "has one label, 's2'" in message


@pytest.mark.parametrize("family", FAMILIES)
def test_a_group_a_row_is_told_of_where_rows_have_a_noise_of_their_own(found, family):
    messages = found(family, np.arange(N))
    # Poisson counts have none: a group a row is their overdispersion
    assert len(messages) == (family != "poisson")
    for message in messages:
        assert "has 60 labels for 60 rows, so that effects are not told apart from" in message
    nearly = found(family, np.maximum(np.arange(N), 1))
    assert len(nearly) == (family != "poisson")
    assert not found(family, np.arange(N) // 2)


def test_slopes_that_fit_all_rows_are_told_of(found):
    terms = {"g": ["intercept", "x"]}
    (message,) = found("normal", np.arange(N) // 2, group_effects=terms)
    assert "30 labels with 2 effects each for 60 rows" in message
    assert not found("normal", np.arange(N) // 3, group_effects=terms)


@pytest.mark.parametrize(
    ("family", "apart", "words"),
    [
        ("binary", np.where(CODES % 2, "yes", "no"), "are of one class"),
        ("ordinal", CODES % 3, "are of one class"),
        ("poisson", np.where(CODES == 2, COUNTS + 1.0, 0.0), "have counts of 0 alone"),
        ("negative binomial", np.where(CODES == 2, COUNTS + 1.0, 0.0), "have counts of 0 alone"),
        ("beta-binomial", 10.0 * (CODES % 2), "have no success, or no failure"),
    ],
)
def test_groups_that_separate_rows_are_told_of(found, family, apart, words):
    (message,) = found(family, CODES, apart)
    assert f"{words}, so that effects have no largest size, and their scale comes" in message
    # one label whose rows differ bounds its own effect alone; two bound the scale
    mixed = FAMILIES[family][1]
    (message,) = found(family, CODES, np.where(CODES == 2, mixed, apart))
    assert "all labels but one of 6" in message
    if family not in ("poisson", "negative binomial"):
        assert not found(family, CODES, np.where((CODES == 1) | (CODES == 2), mixed, apart))
    assert not found(family, CODES, apart, group_effects={"g": "x"})


def test_terms_of_the_same_groups_are_told_of(found):
    terms = {"g": "intercept", "h": "intercept"}
    (message,) = found("normal", CODES, group_effects=terms)
    assert "group_effects['h'] has the groups of 'g', under other labels; leave one" in message
    (message,) = found("normal", CODES, group_effects={"g": "intercept", "g:h": "intercept"})
    assert "group_effects['g:h'] has the groups of 'g'" in message
