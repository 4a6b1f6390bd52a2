"""Simulation-based calibration of mixed models, and coverage of seen and of new labels."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.priors import GroupPrior, HalfNormal, Normal

LABELS, ROWS = 10, 80
GROUPS = {"g": ["intercept", "x"]}


def settings(scale, nu):
    normal = Normal(scale=scale)
    return {
        "prior": normal,
        "intercept_prior": normal,
        "group_effects": GROUPS,
        "group_prior": GroupPrior(scale=scale, degrees_of_freedom=nu),
        "n_draws": 100,
    }


def simulated(rng, scale, nu):
    """A frame, its predictor, and the parameters, drawn from the prior."""
    sds = scale * np.abs(rng.standard_t(nu, 2))
    correlation = 2.0 * rng.beta(2.0, 2.0) - 1.0  # LKJ with eta = 2
    coef, intercept = scale * rng.normal(size=2)
    root = sds[:, None] * np.array([[1.0, 0.0], [correlation, np.sqrt(1.0 - correlation**2)]])
    effects = rng.normal(size=(LABELS, 2)) @ root.T
    # unequal groups, each with a row
    labels = np.append(np.arange(LABELS), rng.integers(rng.integers(1, LABELS + 1), size=ROWS))
    x = rng.normal(size=len(labels))
    predictor = intercept + coef * x + effects[labels, 0] + effects[labels, 1] * x
    frame = pd.DataFrame({"g": [f"s{k}" for k in labels], "x": x})
    truth = {
        "sd[g, intercept]": sds[0],
        "sd[g, x]": sds[1],
        "correlation[g, intercept, x]": correlation,
        "effect[g=s3, x]": effects[3, 1],
        "effect[g=s0, intercept]": effects[0, 0],
        "coef[x]": coef,
        "intercept": intercept,
    }
    return frame, predictor, truth


def check_ranks(ranks, n_bins):
    for name, each in ranks.items():
        counts = np.histogram(each, n_bins, (0.0, 1.0))[0]
        # one in 1,000 for each of eight parameters
        assert chisquare(counts).pvalue > 1e-3, (name, counts)


def ranks_of(fitted, truth):
    draws = fitted.posterior_.flat[::4]
    names = fitted.posterior_.names
    return {name: np.mean(draws[:, names.index(name)] < value) for name, value in truth.items()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ranks_of_a_normal_model_are_uniform():
    rng, found = np.random.default_rng(0), []
    for seed in range(200):
        frame, predictor, truth = simulated(rng, 1.0, 4.0)
        sigma = np.abs(rng.normal())
        truth["noise_variance"] = sigma**2
        y = predictor + sigma * rng.normal(size=len(predictor))
        model = SGLDLinearRegression(
            **settings(1.0, 4.0), noise_prior=HalfNormal(scale=1.0), random_state=seed
        )
        found.append(ranks_of(model.fit(frame, y), truth))
    check_ranks(pd.DataFrame(found), 8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_intervals_of_seen_and_new_labels_cover():
    rng, seen, new = np.random.default_rng(2), [], []
    for seed in range(50):
        frame, predictor, truth = simulated(rng, 1.0, 4.0)
        sd = np.array([truth["sd[g, intercept]"], truth["sd[g, x]"]])
        y = predictor + rng.normal(size=len(predictor))
        model = SGLDLinearRegression(
            **settings(1.0, 4.0), noise_variance=1.0, random_state=seed
        ).fit(frame, y)
        low, high = model.predict_interval(frame, coverage=0.8).T
        again = predictor + rng.normal(size=len(predictor))
        seen.append(np.mean((low < again) & (again < high)))
        x = rng.normal(size=20)
        low, high = model.predict_interval(
            pd.DataFrame({"g": [f"n{k}" for k in range(20)], "x": x}), coverage=0.8
        ).T
        rho = truth["correlation[g, intercept, x]"]
        z = rng.normal(size=(20, 2))
        u, v = sd[0] * z[:, 0], sd[1] * (rho * z[:, 0] + np.sqrt(1.0 - rho**2) * z[:, 1])
        response = truth["intercept"] + truth["coef[x]"] * x + u + v * x + rng.normal(size=20)
        new.append(np.mean((low < response) & (response < high)))
    for found in (seen, new):
        error = np.std(found) / np.sqrt(len(found))
        assert abs(np.mean(found) - 0.8) < 3.5 * error, (np.mean(found), error)
