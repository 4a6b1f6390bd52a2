"""The lecture's model, its posterior in closed form, and fits (Karagiannis, Handout 6, Sec. 4)."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from _plain_sgld import PLAIN
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.priors import ConjugateNormal, InverseGamma

PRIOR_SCALE, PHI, PSI = 10.0, 1.0, 1.0  # V = 100 I and IG(1, 1)
PLAIN_STEP = 1e-5  # eta of the handout's code
PLAIN_START = (-2.0, 1.1, 1.0)  # of the handout's code: slope, intercept, noise variance
PLAIN_STEPS = 1250  # kept, after 500 of burn-in, of each chain
N_PARALLEL = 16  # chains: sixteen times a thousand draws, for small Monte Carlo errors
SLOPE, INTERCEPT, NOISE = "coef[x0]", "intercept", "noise_variance"


class Exact:
    """The lecture's posterior, to the power 1 / tau, in (w, gamma = log sigma^2).

    w is the slopes and the intercept, d + 1 numbers, and A the precision of w for sigma = 1. With
    the Jacobian of gamma the log density is, up to a constant,

        -(phi + (n + d) / 2) gamma - exp(-gamma) (psi + rss / 2 + (w - m)' A (w - m) / 2).

    To the power 1 / tau, w given gamma is normal, of covariance tau exp(gamma) A^{-1}. The
    integral over w is proportional to exp((d + 1) gamma / 2), which leaves sigma^2 ~ IG(a, b),

        a = (phi + (n + d) / 2) / tau - (d + 1) / 2,    b = (psi + rss / 2) / tau,

    and a multivariate t of 2 a degrees of freedom for w. Where the noise is known w is normal.
    """

    def __init__(
        self, X: np.ndarray, y: np.ndarray, tau: float = 1.0, noise: float | None = None
    ) -> None:
        n, d = X.shape
        design = np.column_stack([X, np.ones(n)])
        shrink = np.r_[np.full(d, PRIOR_SCALE**-2.0), 0.0]
        precision = design.T @ design + np.diag(shrink)
        m = np.linalg.solve(precision, design.T @ y)
        rss = np.sum((y - design @ m) ** 2) + shrink @ m**2
        unit = tau * np.diag(np.linalg.inv(precision))
        a = (PHI + 0.5 * (n + d)) / tau - 0.5 * (d + 1)
        b = (PSI + 0.5 * rss) / tau
        self.marginals: dict[str, Any] = {}
        for name, center, variance in zip((SLOPE, INTERCEPT), m, unit, strict=True):
            if noise is None:
                self.marginals[name] = stats.t(2.0 * a, center, np.sqrt(variance * b / a))
            else:
                self.marginals[name] = stats.norm(center, np.sqrt(variance * noise))
        if noise is None:
            self.marginals[NOISE] = stats.invgamma(a, scale=b)
        self.mean = {name: float(marginal.mean()) for name, marginal in self.marginals.items()}
        self.sd = {name: float(marginal.std()) for name, marginal in self.marginals.items()}

    def density(self, name: str, grid: np.ndarray) -> np.ndarray:
        """Marginal density of a parameter."""
        return self.marginals[name].pdf(grid)


@dataclass
class Lecture:
    """The lecture's data, the fits on them, and how many of them warned."""

    X: np.ndarray
    y: np.ndarray
    quick: bool = False
    fits: Counter = field(default_factory=Counter)
    warned: Counter = field(default_factory=Counter)
    messages: dict[str, str] = field(default_factory=dict)

    @cached_property
    def exact(self) -> Exact:
        """The posterior at temperature 1."""
        return Exact(self.X, self.y)

    def fit(self, kind: str, rows: slice = slice(None), **settings: Any) -> SGLDLinearRegression:
        """Fitted model with the lecture's prior; count whether it warned."""
        lengths = {"n_chains": 4, "n_draws": 300} if self.quick else {"n_chains": N_PARALLEL}
        settings = {"random_state": 0, **lengths, **settings}
        model = SGLDLinearRegression(
            prior=ConjugateNormal(PRIOR_SCALE), noise_prior=InverseGamma(PHI, PSI), **settings
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("error")  # there is to be no other warning
            warnings.simplefilter("always", ConvergenceWarning)
            model.fit(self.X[rows], self.y[rows])
        self.fits[kind] += 1
        self.warned[kind] += bool(caught)
        if caught:
            self.messages[kind] = str(caught[0].message)
        return model

    def fit_plain(self, batch_size: int | None, **settings: Any) -> SGLDLinearRegression:
        """Fit by Algorithm 21 to the letter, with the step size of the handout's code."""
        kind, gradient = "plain, all rows", {"gradient": "full"}
        if batch_size is not None:
            kind = f"plain, m = {batch_size:,}"
            gradient = {"gradient": "minibatch", "batch_size": batch_size}
        lengths = {"n_burnin": 500, "n_draws": PLAIN_STEPS}
        own = {"step_size": PLAIN_STEP, "init": PLAIN_START}
        return self.fit(kind, **PLAIN | lengths | own | gradient | settings)
