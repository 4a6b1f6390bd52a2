"""The models of the proofs: parameters drawn from the prior, data from the model, a fit to them.

Nothing here takes a density or a random number from the package.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from scipy import stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import (
    SGLDBetaBinomialRegressor,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDOrdinalClassifier,
)
from skbayes_sgld.priors import (
    ConjugateNormal,
    Exponential,
    HierarchicalNormal,
    InverseGamma,
    Laplace,
    LogNormal,
    Normal,
)

N_REPLICATIONS = 500
N_DRAWS = 250  # of each of the four chains; every other setting is the default
N_NEW = 5  # rows to predict
SHAPE, SCALE = 3.0, 2.0  # of the inverse gamma distribution of the noise variance
ROOT_DISPERSION = 0.5  # mean of the root of the dispersion of negative binomial counts
WIDTH = 1.0  # sd of the log of the gap between cut points
# A flat prior cannot be drawn from. Under a normal likelihood the level of y carries no
# information on the other parameters: a fixed intercept leaves every rank and every coverage as
# exact as a drawn one would, its own included (the flat prior is the invariant one), so the
# linear models keep the default fit_intercept=True. The others have no such invariance; they go
# without an intercept. The first cut point of ordered classes is then 0.
INTERCEPT = 3.0
FEWER = 200  # replications of a family whose fits take longer
DESIGNS = ((15, 4), (25, 3), (100, 5))  # rows and columns; replications take turns


def trials(n: int) -> np.ndarray:
    """Numbers of trials of n rows."""
    return 1 + np.arange(n) % 9


@dataclass(frozen=True)
class Family:
    """Observations under the linear predictor ``eta`` and own parameters, by SciPy.

    Attributes
    ----------
    cls : type
        Estimator.
    settings : dict
        Its settings; every other one is the default.
    draw_own : callable
        Own parameters, given a generator and a draw from IG(SHAPE, SCALE).
    law : callable
        Distribution of y, given ``eta (..., n)`` and own parameters.
    mean : callable
        Regression function, or the probability of class 1, of the same rows.
    n_labels : int
        Different values of y that the estimator needs.
    row_data : dict
        Further arguments of fit, each a function of the number of rows.
    """

    cls: type
    settings: dict[str, Any]
    draw_own: Callable[[np.random.Generator, float], list[float]]
    law: Callable[..., Any]
    mean: Callable[..., np.ndarray]
    n_labels: int = 0
    row_data: dict[str, Callable[[int], np.ndarray]] = field(default_factory=dict)


class Ordered:
    """Three classes, whose cut points are 0 and the gap."""

    def __init__(self, eta: np.ndarray, gap: Any) -> None:
        middle = expit(eta) - expit(eta - gap)
        self.p = np.stack([expit(-eta), middle, expit(eta - gap)])

    def rvs(self, random_state: np.random.Generator) -> np.ndarray:
        """One class a row."""
        uniform = random_state.random(self.p.shape[1:])
        return (uniform > np.cumsum(self.p, axis=0)[:2]).sum(axis=0)

    def logpmf(self, y: np.ndarray) -> np.ndarray:
        """Log probability of the classes."""
        return np.log(np.take_along_axis(self.p, y.astype(int)[None, None], axis=0)[0])


def _correlation(rng: np.random.Generator) -> float:
    """Intra-class correlation rho, where the root of rho / (1 - rho) is exponential."""
    dispersion = (ROOT_DISPERSION * rng.standard_exponential()) ** 2
    return float(dispersion / (1.0 + dispersion))


def _beta_binomial(eta: np.ndarray, rho: Any) -> Any:
    precision = (1.0 - rho) / rho
    n = trials(eta.shape[-1])
    return stats.betabinom(n, expit(eta) * precision, expit(-eta) * precision)


def _negative_binomial(eta: np.ndarray, dispersion: Any) -> Any:
    return stats.nbinom(1 / dispersion, 1 / (1 + dispersion * np.exp(eta)))


NO_LEVEL = {"fit_intercept": False}
LINEAR = Family(
    SGLDLinearRegression,
    {"noise_prior": InverseGamma(SHAPE, SCALE)},
    lambda rng, variance: [INTERCEPT, variance],
    lambda eta, level, variance: stats.norm(eta + level, np.sqrt(variance)),
    lambda eta, level, variance: eta + level,
)
LOGISTIC = Family(
    SGLDLogisticRegression,
    NO_LEVEL,
    lambda rng, variance: [],
    lambda eta: stats.bernoulli(expit(eta)),
    expit,
    n_labels=2,
)
TOTALS = Family(
    SGLDLogisticRegression,
    NO_LEVEL,
    lambda rng, variance: [],
    lambda eta: stats.binom(trials(eta.shape[-1]), expit(eta)),
    expit,
    row_data={"n_trials": trials},
)
OVERDISPERSED = Family(
    SGLDBetaBinomialRegressor,
    {"correlation_prior": Exponential(ROOT_DISPERSION), **NO_LEVEL},
    lambda rng, variance: [_correlation(rng)],
    _beta_binomial,
    lambda eta, rho: expit(eta),
    row_data={"n_trials": trials},
)
HEAVY = Family(
    SGLDLinearRegression,
    {"noise_distribution": "student_t", "noise_prior": InverseGamma(SHAPE, SCALE)},
    lambda rng, variance: [INTERCEPT, variance, rng.gamma(2.0, 10.0)],
    lambda eta, level, variance, degrees: stats.t(degrees, eta + level, np.sqrt(variance)),
    lambda eta, level, variance, degrees: eta + level,
)
COUNTS = Family(
    SGLDNegativeBinomialRegressor,
    {"dispersion_prior": Exponential(ROOT_DISPERSION), **NO_LEVEL},
    lambda rng, variance: [(ROOT_DISPERSION * rng.standard_exponential()) ** 2],
    _negative_binomial,
    lambda eta, dispersion: np.exp(eta),
)
POSITIVE = Family(
    SGLDGammaRegressor,
    {"dispersion_prior": InverseGamma(SHAPE, SCALE), **NO_LEVEL},
    lambda rng, variance: [variance],
    lambda eta, dispersion: stats.gamma(1 / dispersion, scale=dispersion * np.exp(eta)),
    lambda eta, dispersion: np.exp(eta),
)
ORDERED = Family(
    SGLDOrdinalClassifier,
    {"gap_prior": LogNormal(WIDTH, 1.0), **NO_LEVEL},
    lambda rng, variance: [np.exp(WIDTH * rng.standard_normal())],
    Ordered,
    lambda eta, gap: expit(eta) - expit(eta - gap),
    n_labels=3,
)


@dataclass(frozen=True)
class Model:
    """A prior as the package has it, the same prior to draw from, and a family.

    ``draw`` returns the coefficients, then ``n_hyper`` hyperparameters of the prior.
    """

    prior: Any
    draw: Callable[[np.random.Generator, int, float], np.ndarray]
    family: Family
    replications: int = N_REPLICATIONS
    n_hyper: int = 0

    def estimator(self, seed: int) -> Any:
        """Estimator whose other settings are the default."""
        # a copy: set_params(prior__scale=...) must not reach the next replication
        settings = {"prior": clone(self.prior), "n_draws": N_DRAWS, "random_state": seed}
        return self.family.cls(**settings, **self.family.settings)


def _normal(sd: float) -> tuple[Any, Callable[..., np.ndarray]]:
    return Normal(sd), lambda rng, d, _: rng.normal(0, sd, d)


def _learned_scale(rng: np.random.Generator, d: int, scale: float) -> np.ndarray:
    return np.append(scale * rng.standard_normal(d), scale)


MODELS = {
    "linear, conjugate normal": Model(
        ConjugateNormal(1.0), lambda rng, d, variance: rng.normal(0, np.sqrt(variance), d), LINEAR
    ),
    "linear, Laplace": Model(Laplace(1.0), lambda rng, d, _: rng.laplace(0, 1, d), LINEAR),
    "logistic, normal": Model(*_normal(2.0), LOGISTIC),
    "logistic, Laplace": Model(Laplace(1.0), lambda rng, d, _: rng.laplace(0, 1, d), LOGISTIC),
    "totals, normal": Model(*_normal(1.0), TOTALS, FEWER),
    "negative binomial, normal": Model(*_normal(0.5), COUNTS, FEWER),
    "Gamma, normal": Model(*_normal(0.5), POSITIVE, FEWER),
    "ordinal, normal": Model(*_normal(1.0), ORDERED, FEWER),
    "beta-binomial, normal": Model(*_normal(1.0), OVERDISPERSED, FEWER),
    "linear with Student-t noise, normal": Model(*_normal(1.0), HEAVY, FEWER),
    "linear, hierarchical normal": Model(
        HierarchicalNormal(1.0),
        lambda rng, d, _: _learned_scale(rng, d, abs(rng.standard_cauchy())),
        LINEAR,
        n_hyper=1,
    ),
    "logistic, hierarchical normal": Model(
        HierarchicalNormal(1.0),
        lambda rng, d, _: _learned_scale(rng, d, abs(rng.normal(0, 2.5 / np.sqrt(d)))),
        LOGISTIC,
        n_hyper=1,
    ),
}


@dataclass
class Sample:
    """One data set and what it was drawn with.

    Attributes
    ----------
    X, y : ndarray
        What the model is fitted to.
    truth : ndarray
        The parameters, in the order of ``posterior_.names``.
    X_new : ndarray of shape (N_NEW, d)
    mean_new : ndarray of shape (N_NEW,)
        The regression function there; the probability of class 1 of a classifier.
    y_new : ndarray of shape (N_NEW,)
        New observations there.
    """

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    X_new: np.ndarray
    mean_new: np.ndarray
    y_new: np.ndarray


def simulate(model: Model, rng: np.random.Generator, n: int, d: int) -> Sample:
    """Draw parameters from the prior and data from the model."""
    family = model.family
    while True:
        # correlated columns, off centre
        X = 0.5 + 0.8 * rng.standard_normal((n + N_NEW, d)) + rng.normal(0, 0.6, (n + N_NEW, 1))
        variance = SCALE / rng.gamma(SHAPE)
        coef, hyper = np.split(model.draw(rng, d, variance), [d])
        own = family.draw_own(rng, variance)
        eta = X @ coef
        y, mean = family.law(eta, *own).rvs(random_state=rng), family.mean(eta, *own)
        # A classifier needs each class. Whether a sample is dropped depends on y alone, so given
        # any y that is kept the parameters still follow their posterior.
        if len(np.unique(y[:n])) >= family.n_labels:
            return Sample(X[:n], y[:n], np.r_[coef, own, hyper], X[n:], mean[n:], y[n:])


def fitted(name: str, number: int, changes: dict[str, Any]) -> tuple[Sample, Any, bool]:
    """Replication ``number`` of a model, its fit, and whether the fit warned.

    Parameters
    ----------
    name : str
        One of ``MODELS``.
    number : int
    changes : dict
        Parameters of the estimator, to make it wrong on purpose.
    """
    model = MODELS[name]
    rng = np.random.default_rng([list(MODELS).index(name), number])
    sample = simulate(model, rng, *DESIGNS[number % len(DESIGNS)])
    estimator = model.estimator(number).set_params(**changes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        row_data = {key: of(len(sample.y)) for key, of in model.family.row_data.items()}
        estimator.fit(sample.X, sample.y, **row_data)
    return sample, estimator, bool(caught)


def log_likelihood(model: Model, sample: Sample, values: np.ndarray) -> np.ndarray:
    """Log likelihood of the data under each row of parameters."""
    d = sample.X.shape[1]
    own = values[:, d : values.shape[1] - model.n_hyper, None].swapaxes(0, 1)
    law = model.family.law(values[:, :d] @ sample.X.T, *own)
    log_mass = getattr(law, "logpmf", None) or law.logpdf
    return log_mass(sample.y).sum(axis=1)


def replicate(
    function: Callable[..., Any], name: str, n_replications: int | None, changes: dict[str, Any]
) -> list[Any]:
    """``function(name, number, changes)`` of every replication, in two processes.

    ``n_replications`` is None for those of the model.
    """
    numbers = range(n_replications or MODELS[name].replications)
    with parallel_config(backend="loky", n_jobs=2, inner_max_num_threads=1):
        return list(Parallel()(delayed(function)(name, number, changes) for number in numbers))
