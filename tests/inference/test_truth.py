"""The default posterior against references that share no code with the package."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.priors import ConjugateNormal, InverseGamma
from tests.references.closed_forms import (
    importance_sampling,
    laplace_fit,
    logistic_log_density,
    normal_inverse_gamma,
)


def agrees(model, reference, mean_tolerance=0.1, sd_tolerance=0.05):
    """Check the bounds that every default fit must keep, and the effective sample size."""
    table = model.summary()
    mean_error = np.abs(table["mean"].to_numpy() - reference.mean) / reference.sd
    sd_error = np.abs(table["sd"].to_numpy() / reference.sd - 1.0)
    assert mean_error.max() < mean_tolerance, table.index[mean_error.argmax()]
    assert sd_error.max() < sd_tolerance, table.index[sd_error.argmax()]
    assert table["ess_bulk"].min() >= 1000
    assert table["r_hat"].max() < 1.01


def test_rookies_agree_with_importance_sampling(rookies, default_fit):
    log_density = logistic_log_density(*rookies, scale=1.0)
    reference = importance_sampling(log_density, *laplace_fit(log_density, 20), n_draws=10_000)
    assert reference.ess > 5000  # the reference is worth more than what it judges
    agrees(default_fit, reference)


@pytest.mark.parametrize("given", [False, True], ids=["default", "given noise prior"])
def test_the_linear_model_agrees_with_the_closed_form(given):
    from skbayes_sgld.datasets import make_correlated_pair

    X, y = make_correlated_pair(200, random_state=2) if given else load_diabetes(return_X_y=True)
    shape, scale, rate = (3.0, 0.5, 1.0) if given else (1e-3, 10.0, 1e-3 * y.var())
    # with a noise prior of its own the model goes without an intercept, too
    settings = {"noise_prior": InverseGamma(shape, rate), "fit_intercept": False} if given else {}
    model = SGLDLinearRegression(prior=ConjugateNormal(scale), **settings, random_state=0).fit(X, y)
    exact = {"scale": scale, "shape": shape, "rate": rate, "fit_intercept": not given}
    agrees(model, normal_inverse_gamma(X, y, **exact))


def test_temperature_scales_the_variance_of_a_normal_posterior():
    from skbayes_sgld.datasets import make_correlated_pair

    X, y = make_correlated_pair(2000, random_state=0)
    cold, hot = (
        SGLDLinearRegression(noise_variance=0.2, temperature=tau, random_state=0).fit(X, y)
        for tau in (1.0, 9.0)
    )
    # the same noise drives both chains: the deviations are three times as large, draw by draw
    near = cold.posterior_.flat - cold.posterior_.flat.mean(0)
    far = hot.posterior_.flat - hot.posterior_.flat.mean(0)
    np.testing.assert_allclose(far, 3.0 * near, rtol=1e-6, atol=1e-9)
