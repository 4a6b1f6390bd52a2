"""Measurements behind the automatic settings, for ``docs/how_auto_works.md``; about two minutes."""

from __future__ import annotations

import time
import warnings

import numpy as np
from _figure import parse, show_rows
from _numbers import measured
from scipy.optimize import brentq
from scipy.special import polygamma
from scipy.stats import loggamma, skew
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, sample
from skbayes_sgld.datasets import load_nba_rookies
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.optimizers import find_mode
from skbayes_sgld.own_models import FunctionPosterior
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import PSGLD, SGLD, ControlVariate, Minibatch
from skbayes_sgld.sampling.tuning.noise import measure_noise
from skbayes_sgld.sampling.tuning.pilots import normal_inflation
from tests.references.cases import all_cases


def rows_of_batches(quick):
    """Rows that a batch needs at step 1, for minibatch noise of 1 % of a variance."""
    table, y = load_nba_rookies(return_X_y=True)
    data = {"NBA rookies": (StandardScaler().fit_transform(table.fillna(0.0)), y.to_numpy(float))}
    if not quick:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((100_000, 50))
        y = rng.random(len(X)) < 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(50) / 5.0))
        data["standard normal columns"] = X, y.astype(float)
    rows = {}
    gradients = {
        "plain minibatch": Minibatch(),
        "control variate, order 1": ControlVariate(order=1),
        "order 2": ControlVariate(order=2),
    }
    for name, (X, y) in data.items():
        posterior = GLMPosterior(X, y, Bernoulli(), Normal(2.5))
        mode = find_mode(posterior)
        n, P = posterior.n_samples, posterior.n_params
        rows[name] = {"data": f"{name}, n = {n:,}, {P} parameters"}
        for kind, gradient in gradients.items():
            levels = [measure_noise(posterior, gradient, mode, 1.0, seed) for seed in range(4)]
            sizes = [level.batch_size(1.0, 1.0) for level in levels]
            error = max(np.std(sizes, ddof=1) / 2.0, 0.01 * np.mean(sizes))
            rows[name][kind] = measured(round_to_two(np.mean(sizes)), error, ",.0f")
    return rows


def round_to_two(value):
    """Number to two digits."""
    return float(f"{value:.2g}")


def skewed(skewness):
    """Density of the logarithm of a gamma variable, and its distribution."""
    a = brentq(lambda a: -polygamma(2, a) / polygamma(1, a) ** 1.5 - skewness, 0.5, 1e4)
    posterior = FunctionPosterior(
        lambda x: (a * x - np.exp(x))[:, 0], lambda x: a - np.exp(x), n_params=1
    )
    return posterior, loggamma(a)


def by_skewness(quick):
    """Error that the pilot reads, and that the draws have, by the skewness of the density."""
    rows = {}
    for skewness in (0.5,) if quick else (0.1, 0.2, 0.3, 0.5):
        posterior, truth = skewed(skewness)
        mean, sd, far = truth.mean(), truth.std(), truth.ppf(0.995)
        lengths = {"n_chains": 64, "n_draws": 1000 if quick else 16_000}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the draws are measured here, warned of or not
            found = sample(posterior, SGLD(), step_size=1.0, random_state=0, **lengths)
        size, doubt = found.bias
        draws = found.values.reshape(-1)
        chance = 1.5 / np.sqrt(draws.size)
        rows[f"{skewness:g}"] = {
            "skewness": f"{skewness:g}",
            "read by the pilot": measured(size, doubt / 2.0, ".1f %"),
            "mean of the draws, in sds": measured(abs(draws.mean() - mean) / sd, chance, ".1f %"),
            "sd of the draws": measured(abs(draws.std() / sd - 1.0), chance, ".1f %"),
            "skewness of the draws": measured(-skew(draws), 3.0 * chance, ".2f"),
            "99.5 % quantile, in sds": measured(
                (np.quantile(draws, 0.995) - far) / sd, 6.0 * chance, "+.2f"
            ),
        }
    return rows


def by_data(quick):
    """Error that the pilot reads on data, by the step size."""
    cases = {
        "NBA rookies": "nba-rookies",
        "digits 3 and 8": "digits-3-8",
        "iris": "iris",
        "breast cancer, prior sd 1": "breast-cancer-sd-1",
        "breast cancer, prior sd 10": "breast-cancer-sd-10",
    }
    rows = {}
    for label in list(cases)[:1] if quick else cases:
        case = all_cases()[cases[label]]
        X, y, *_ = case.data()
        rows[label] = {"data": label}
        for eta in (1.0, 0.7, 0.5):
            model = case.estimator().set_params(sampler="sgld", step_size=eta, n_draws=100)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a hundred draws are told to be few
                size, doubt = model.fit(X, y).result_.bias
            shown = ".1f %" if size < 0.095 else ",.0f %"
            rows[label][f"error at {eta:g}"] = measured(size, doubt / 2.0 + 0.02 * size, shown)
    return rows


def euler(quick):
    """Error of an sd that a published run's draws tell, on a standard normal density."""
    posterior = FunctionPosterior(lambda x: -0.5 * x[:, 0] ** 2, lambda x: -x, n_params=1)
    rows = {}
    for eta in (0.5,) if quick else (0.1, 0.5, 1.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a biased step is the subject here
            found = sample(
                posterior,
                SGLD("euler"),
                step_size=eta,
                preconditioner=None,
                gradient="full",
                random_state=0,
            )
        size, doubt = found.bias
        rows[f"{eta:g}"] = {
            "eta": f"{eta:g}",
            "error of the sd, from the draws": measured(size, doubt / 2.0, "±.1f %"),
            "in closed form": measured(1.0 / np.sqrt(1.0 - eta / 2.0) - 1.0, show=".1f %"),
        }
    return rows


def psgld():
    """Excess of a variance on a normal target of precision 1, by memory and step size."""
    found = {}
    for decay in (0.99, 0.999):
        for eta in (0.02, 0.1):
            excess = normal_inflation(PSGLD(decay=decay), eta, 1) - 1.0
            found[f"{decay:g} at {eta:g}"] = measured(excess, 0.01, ".0f %")
    return found


def mala_and_hmc():
    """Processor seconds and smallest effective sample size of 4,000 draws."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 100))
    wide = X, (X[:, 0] + rng.standard_normal(40) > 0).astype(int)
    cancer, diabetes = load_breast_cancer(return_X_y=True), load_diabetes(return_X_y=True)
    problems = {
        "breast cancer, prior sd 2.5": (SGLDLogisticRegression(prior=Normal(2.5)), cancer),
        "iris, prior sd 1": (SGLDLogisticRegression(prior=Normal(1.0)), load_iris(return_X_y=True)),
        "diabetes, Cauchy prior": (SGLDLinearRegression(prior="cauchy"), diabetes),
        "100 columns, 40 rows, logistic": (SGLDLogisticRegression(prior=Normal(1.0)), wide),
    }
    rows = {}
    for label, (model, (X, y)) in problems.items():
        X = StandardScaler().fit_transform(X)
        rows[label] = {"data": label}
        for sampler in ("mala", "hmc"):
            model.set_params(sampler=sampler, random_state=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the cost is measured, whatever the fit says
                began = time.process_time()
                fitted = model.fit(X, y)
                seconds = time.process_time() - began
            ess = float(fitted.summary()["ess_bulk"].min())
            rows[label][f"{sampler.upper()}: seconds"] = measured(seconds, None)
            rows[label][f"{sampler.upper()}: draws' worth"] = measured(ess, 0.1 * ess, ",.0f")
    return rows


def main(arguments=None):
    options = parse(__doc__, arguments)
    found = {
        "batches": rows_of_batches(options.quick),
        "skewness": by_skewness(options.quick),
        "data": by_data(options.quick),
        "euler": euler(options.quick),
    }
    if not options.quick:
        found["MALA and HMC"] = mala_and_hmc()
    for rows in found.values():
        show_rows(rows)
    return found | {"psgld": psgld()}


if __name__ == "__main__":
    main()
