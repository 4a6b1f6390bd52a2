"""The point from which the search for a mode begins."""

import numpy as np
from scipy import optimize

from skbayes_sgld.likelihoods import LabelLikelihood
from tests.likelihoods.known import reference


def check_start(name, likelihood):
    """Raise where the search for the mode begins far below the best constant predictor."""
    of_row = reference(name, likelihood)
    rng = np.random.default_rng(8)
    weight = rng.uniform(0.5, 2.0, 300)
    for level in (-1.5, 0.0, 2.0):
        u = np.zeros((1, likelihood.n_local, 300))
        u[:, 0] = level
        y = likelihood.sample(u, np.random.RandomState(1))[0].astype(float)

        def mean_value(local, y=y):
            return of_row(np.repeat(local[None, :, None], 300, axis=2), y[None])[0] @ weight / 300

        start = likelihood.start(y, weight, True)
        best = optimize.minimize(lambda local: -mean_value(local), start).fun
        # equal probabilities of all classes cost at most the log of their number
        most = np.log(likelihood.n_classes) if isinstance(likelihood, LabelLikelihood) else 0.01
        worse = -best - mean_value(start)
        assert worse <= most * weight.mean() + 1e-9, f"a start that is {worse:.3g} nats a row worse"
        times = rng.integers(1, 4, 300)
        for has_level in (True, False):
            repeated = likelihood.start(np.repeat(y, times), None, has_level)
            weighted = likelihood.start(y, times.astype(float), has_level)
            np.testing.assert_allclose(
                *(weighted, repeated), rtol=1e-3, atol=1e-3, err_msg="a weight of w is w rows"
            )
        bare, K = likelihood.start(y, weight, False), likelihood.n_predictors
        assert not bare[:K].any(), "predictors without a level are zero"
        if likelihood.own:
            best, found = best_own(likelihood, bare, mean_value)
            told = f"without an intercept a start that is {best - found:.3g} nats a row worse"
            assert best - found <= most * weight.mean() + 1e-9, told


def best_own(likelihood, start, mean_value):
    """Largest value with predictors of 0, and the value at the start."""
    zeros = np.zeros(likelihood.n_predictors)

    def loss(own):
        return -mean_value(np.append(zeros, own))

    own = start[likelihood.n_predictors :]
    return -optimize.minimize(loss, own, method="Nelder-Mead").fun, -loss(own)
