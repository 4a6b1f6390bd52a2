"""What a user sees of effects of groups: tables, draws by term, variables of data sets, priors."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
    effects,
)
from skbayes_sgld.priors import GroupPrior
from tests.marks import SHORT, short_chains

pytestmark = short_chains
# Means of well determined effects are near those of long chains
FEW = {"n_draws": 50, "n_burnin": 30, "thin": 1, "n_chains": 2}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 240
    return pd.DataFrame(
        {
            "subject": rng.choice([308, 309, 310, 330], n),
            "draw": rng.choice(list("pq"), n),
            "x": rng.normal(size=n),
        }
    )


@pytest.fixture(scope="module")
def target(frame):
    rng = np.random.default_rng(1)
    slope = frame["subject"].map({308: 2.0, 309: 0.0, 310: -1.0, 330: 1.0})
    return 1.0 + slope * (0.5 + frame["x"]) + rng.normal(size=len(frame))


@pytest.fixture(scope="module")
def model(frame, target):
    terms = {"subject": ["intercept", "x"], "subject:draw": "intercept", "draw": "intercept"}
    model = SGLDLinearRegression(group_effects=terms, random_state=0, **FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few draws
        return model.fit(frame, target)


def test_effects_are_a_frame_by_term_label_and_effect(model):
    table = model.group_effects_
    assert table.index.names == ["term", "label", "effect"]
    assert list(table) == ["mean", "sd", "lower", "upper", "ess_bulk"]
    assert len(table) == 4 * 2 + 8 + 2
    draws = model.posterior_["effect[subject=308, x]"].ravel()
    row = table.loc[("subject", 308, "x")]
    assert row["mean"] == pytest.approx(draws.mean())
    assert row["sd"] == pytest.approx(draws.std())
    np.testing.assert_allclose(row[["lower", "upper"]], np.quantile(draws, [0.05, 0.95]))
    full = model.result_.summary()
    pair = table.loc[("subject:draw", "308:p", "intercept")]
    assert pair["ess_bulk"] == full.loc["effect[subject:draw=308:p, intercept]", "ess_bulk"]
    # a label's own slope is the coefficient plus its effect
    slopes = model.coef_[0] + table.loc["subject"]["mean"].xs("x", level="effect")
    np.testing.assert_allclose(slopes.loc[[308, 309, 310, 330]], [2, 0, -1, 1], atol=0.5)
    assert model.group_effects_ is table
    of_label = table.loc[("subject", 310)]  # pandas warns of an index that is not sorted
    np.testing.assert_array_equal(of_label["mean"], table.loc["subject"].loc[310]["mean"])
    again = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(again.group_effects_, table)


def test_attributes_of_groups_are_there_with_groups_alone(model, frame, target):
    assert not hasattr(SGLDLinearRegression(), "group_effects_")
    plain = SGLDLinearRegression(random_state=0).fit(frame[["x"]], target)
    assert not hasattr(plain, "group_effects_")
    assert not hasattr(plain, "group_prior_")
    with pytest.raises(AttributeError, match="needs group_effects"):
        _ = plain.group_effects_
    with pytest.raises(AttributeError, match="set by fit"):
        _ = SGLDLinearRegression(group_effects={"a": "intercept"}).group_effects_


def test_a_later_fit_has_other_effects(frame, target):
    model = SGLDLinearRegression(group_effects={"subject": "intercept"}, random_state=0, **FEW)
    X = frame[["subject", "x"]]
    first = model.fit(X, target).group_effects_
    second = model.fit(X, target + 3.0 * (frame["subject"] == 310)).group_effects_
    at = ("subject", 310, "intercept")
    assert second.loc[at, "mean"] > first.loc[at, "mean"] + 0.5


def test_priors_by_term_have_numbers_as_scales(model, frame, target):
    sd, unit = np.std(target), np.std(frame["x"])
    prior = model.group_prior_["subject"]
    np.testing.assert_allclose(prior.scale, [sd, sd / unit])
    assert prior.correlated
    assert list(model.group_prior_) == ["subject", "subject:draw", "draw"]
    assert repr(model.group_prior_["draw"]) == f"GroupPrior(scale={np.array([sd])!r})"
    given = GroupPrior(scale=2.5, degrees_of_freedom=4.0, correlated=False)
    other = SGLDLinearRegression(
        group_effects={"subject": ["intercept", "x"]}, group_prior=given, random_state=0, **SHORT
    ).fit(frame[["subject", "x"]], target)
    np.testing.assert_array_equal(other.group_prior_["subject"].scale, [2.5, 2.5])
    assert not other.group_prior_["subject"].correlated
    assert other.group_prior_["subject"].degrees_of_freedom == 4.0


def test_the_summary_leaves_effects_out_and_the_diagnosis_does_not(model, frame, target):
    names = list(model.summary().index)
    assert names == [
        "coef[x]",
        "intercept",
        "sd[subject, intercept]",
        "sd[subject, x]",
        "correlation[subject, intercept, x]",
        "sd[subject:draw, intercept]",
        "sd[draw, intercept]",
        "noise_variance",
    ]
    assert "effect[draw=p, intercept]" in model.diagnose().table.index
    assert "effect[draw=p, intercept]" in model.result_.summary().index
    labels = SGLDLogisticRegression(group_effects={"subject": "intercept"}, random_state=0, **SHORT)
    labels.fit(frame[["subject", "x"]], target > 1.0)
    assert list(labels.summary(exponentiate=True).index) == ["odds_ratio[x]", "odds"]


def test_draws_are_arrays_by_term(model):
    draws = model.sample_posterior(50)
    assert {name: each.shape for name, each in draws.effect.items()} == {
        "subject": (50, 4, 2),
        "subject:draw": (50, 8, 1),
        "draw": (50, 2, 1),
    }
    chosen = model.posterior_.choose(50)
    label = model.group_effects_.loc["subject"].index.get_level_values("label").unique()
    for k, effect in enumerate(["intercept", "x"]):
        for at in range(4):
            expected = model.posterior_[f"effect[subject={label[at]}, {effect}]"].ravel()[chosen]
            np.testing.assert_array_equal(draws.effect["subject"][:, at, k], expected)
        expected = model.posterior_[f"sd[subject, {effect}]"].ravel()[chosen]
        np.testing.assert_allclose(draws.sd["subject"][:, k], expected)
    assert list(draws.correlation) == ["subject"]
    expected = model.posterior_["correlation[subject, intercept, x]"].ravel()[chosen]
    np.testing.assert_allclose(draws.correlation["subject"][:, 1, 0], expected)
    np.testing.assert_allclose(draws.correlation["subject"][:, 0, 0], 1.0)


def test_data_sets_have_dimensions_by_label(model, frame, target):
    pytest.importorskip("xarray")
    data = model.posterior_.to_xarray()
    of_label = data["effect_subject"].sel(subject=330, subject_effect="x")
    np.testing.assert_array_equal(of_label, model.posterior_["effect[subject=330, x]"])
    # "draw" is a dimension of every variable
    assert data["effect_draw"].dims == ("chain", "draw", "draw_label", "draw_label_effect")
    of_label = data["effect_subject:draw"].sel({"subject:draw": "330:q"}).squeeze()
    np.testing.assert_array_equal(
        of_label, model.posterior_["effect[subject:draw=330:q, intercept]"]
    )
    assert data["sd_subject"].dims == ("chain", "draw", "subject_effect")
    assert data["correlation_subject"].dims == ("chain", "draw", "subject_pair")
    assert data["coef"].dims == ("chain", "draw", "feature")
    np.testing.assert_array_equal(data["sd_draw"][..., 0], model.posterior_["sd[draw, intercept]"])
    constant = model.to_arviz(frame, target, only=["constant_data"])["constant_data"]
    np.testing.assert_array_equal(constant["subject"], frame["subject"])
    np.testing.assert_array_equal(constant["X"][:, 0], frame["x"])


def test_data_sets_of_other_likelihoods_have_them_too(frame, target):
    pytest.importorskip("xarray")
    model = SGLDLogisticRegression(group_effects={"subject": "intercept"}, random_state=0, **SHORT)
    data = model.fit(frame[["subject", "x"]], target > 1.0).posterior_.to_xarray()
    assert data["effect_subject"].dims == ("chain", "draw", "subject", "subject_effect")


def test_data_sets_have_them_where_effects_are_integrated_out():
    pytest.importorskip("xarray")
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 10
    counts = rng.poisson(np.exp(1.5 + 0.4 * rng.normal(size=10)[labels]))
    model = SGLDPoissonRegressor(group_effects={"g": "intercept"}, random_state=0)
    model.fit(pd.DataFrame({"g": labels, "x": rng.normal(size=200)}), counts)
    assert model.parameterization_ == "by_label"
    data = model.posterior_.to_xarray()
    assert data["coef"].dims == ("chain", "draw", "feature")
    of_label = data["effect_g"].sel(g=7, g_effect="intercept")
    np.testing.assert_array_equal(of_label, model.posterior_["effect[g=7, intercept]"])


def test_outputs_have_effects_of_their_own(frame, target):
    both = pd.DataFrame({"u": target, "v": -target})
    model = SGLDLinearRegression(group_effects={"subject": "intercept"}, random_state=0, **SHORT)
    model.fit(frame[["subject", "x"]], both)
    assert model.sample_posterior(7).effect["subject"].shape == (7, 2, 4, 1)
    assert not any(name.startswith("effect") for name in model.summary().index)
    with pytest.raises(AttributeError, match="each of estimators_"):
        _ = model.group_effects_
    assert len(model.estimators_[0].group_effects_) == 4


def test_bends_of_curves_are_no_effects_of_groups(frame, target):
    terms = {"group_effects": {"subject": "intercept"}, "smooth_effects": {"x": 6}}
    model = SGLDLinearRegression(**terms, random_state=0, **SHORT)
    model.fit(frame[["subject", "x"]], target)
    assert set(model.group_effects_.index.get_level_values("term")) == {"subject"}
    assert list(model.group_prior_) == ["subject"]
    assert list(model.summary().index[2:]) == [
        "sd[subject, intercept]",
        "sd[smooth(x)]",
        "noise_variance",
    ]
    assert list(effects(model, frame[["subject", "x"]])["column"]) == ["x"]
    curve = SGLDLinearRegression(smooth_effects={"x": 6}, random_state=0, **SHORT)
    assert not hasattr(curve.fit(frame[["x"]], target), "group_effects_")
