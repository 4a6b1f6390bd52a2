"""Odds ratios and rate ratios are summaries of exponentiated draws."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.base import clone

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from tests.annexes import later, made

# the runs are short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((80, 2)), columns=["age", "intercept"])
Z = X["age"].to_numpy() + RNG.standard_normal(80)
DRAWS = {"n_draws": 100, "n_chains": 2, "random_state": 0}
FITS = {
    "odds": [
        (SGLDLogisticRegression(**DRAWS), Z > 0),
        (SGLDLogisticRegression(prior="hierarchical_normal", **DRAWS), Z > 0),
    ],
    "odds at the mode": [(later("SGDMAPClassifier", random_state=0), Z > 0)],
    "rate": [(SGLDPoissonRegressor(**DRAWS), RNG.poisson(np.exp(0.3 * Z)))],
}


@pytest.mark.parametrize("name", FITS)
def test_ratios_are_summaries_of_exponentials_of_the_draws(name):
    unit = name.partition(" ")[0]
    for model, y in FITS[name]:
        model = made(model).fit(X, y)
        table = model.summary(coverage=0.8, exponentiate=True)
        names = [f"{unit}_ratio[age]", f"{unit}_ratio[intercept]", unit]
        assert table.index.tolist() == names
        for of_ratio, own in zip(names, ["coef[age]", "coef[intercept]", "intercept"], strict=True):
            ratio = np.exp(model.posterior_[own]).ravel()
            row = table.loc[of_ratio]
            assert_allclose(row["mean"], ratio.mean(), rtol=1e-12)
            assert_allclose(row["sd"], ratio.std(), rtol=1e-12)
            ends = np.quantile(np.log(ratio), [0.1, 0.9])
            assert_allclose(row[["lower", "upper"]], np.exp(ends), rtol=1e-12)
        without = type(model)(**model.get_params() | {"fit_intercept": False}).fit(X, y)
        assert without.summary(exponentiate=True).index.tolist() == names[:2]


REFUSED = {
    "numbers": (SGLDLinearRegression(**DRAWS), Z),
    "several outputs": (SGLDLinearRegression(**DRAWS), np.column_stack([Z, Z**2])),
    "three classes": (SGLDLogisticRegression(**DRAWS), np.digitize(Z, [-0.5, 0.5])),
    "network": (
        later("SGLDMLPClassifier", n_draws=5, n_burnin=5, n_chains=2, random_state=0),
        Z > 0,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_models_without_odds_or_rates_are_refused(name):
    model, y = REFUSED[name]
    model = made(model).fit(X, y)
    with pytest.raises(ValueError, match=f"exponentiate=True .* {type(model).__name__}: .*effects"):
        model.summary(exponentiate=True)
    with pytest.raises(TypeError, match="exponentiate='yes' is not accepted"):
        model.summary(exponentiate="yes")


@pytest.mark.parametrize("center", [1000.0, 600.0, -1000.0])
def test_ratios_beyond_the_range_of_floats_are_infinite_and_their_quantiles_are_kept(center):
    model, y = FITS["rate"][0]
    model = clone(model).fit(X, y)
    draws = model.posterior_
    coef = center + 300.0 * np.random.default_rng(0).standard_normal(draws.values.shape[:2])
    draws.values[..., 0] = coef  # as of a column of size 1e-3 that separates the counts
    with np.errstate(all="raise"):
        row = model.summary(exponentiate=True).iloc[0]
    assert not row.isna().any()
    ends = np.quantile(coef, [0.05, 0.95])
    representable = np.abs(ends) < 700.0
    assert representable.any()
    assert_allclose(np.log(row[["lower", "upper"]][representable]), ends[representable], rtol=1e-12)
    logs = logsumexp(coef) - np.log(coef.size)
    if logs < 700.0:
        assert_allclose(np.log(row["mean"]), logs, rtol=1e-12)
    else:
        assert row["mean"] == row["sd"] == row["mcse_mean"] == np.inf
    assert row[["ess_bulk", "ess_tail", "r_hat"]].between(0.9, 500.0).all()
