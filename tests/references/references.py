"""Reference posteriors and the problems that they solve; no code of the package is used.

Every reference is of the parameters that users see, in the order of ``posterior_.names``:
coefficients, intercept, noise variance; with more than two classes, class by class, the mean over
the classes taken out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy import stats

LEVELS = (0.05, 0.95)


@dataclass(frozen=True)
class Prior:
    """A prior on the coefficients, by family and numbers."""

    family: str
    scale: object = 1.0
    location: object = 0.0
    df: float = 4.0


@dataclass(frozen=True)
class Noise:
    """A prior on the noise, by family and numbers; scale None follows y."""

    family: str
    scale: float | None = None
    shape: float = 1e-3
    df: float = 3.0


@dataclass
class Problem:
    """Data and model, spelt out: every default is a number here."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    prior: Prior
    noise: Noise | None = None
    variance: float | None = None
    temperature: float = 1.0
    fit_intercept: bool = True
    n_classes: int = 0  # 0: a linear model

    def __post_init__(self):
        d = self.X.shape[1]
        self.scale = np.broadcast_to(np.asarray(self.prior.scale, dtype=float), d)
        self.location = np.broadcast_to(np.asarray(self.prior.location, dtype=float), d)
        total = self.weight.sum()
        self.x_mean = self.weight @ self.X / total if self.fit_intercept else np.zeros(d)
        self.centred = self.X - self.x_mean

    def collapsed(self):
        """Problem with equal rows counted once, if there are many rows."""
        if len(self.y) < 200_000:
            return self
        key = self.X @ np.sqrt(np.arange(2.0, self.X.shape[1] + 2)) + np.pi * self.y
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        counts = np.bincount(inverse, weights=self.weight)
        return replace(self, X=self.X[first], y=self.y[first], weight=counts)

    def fingerprint(self):
        """A few numbers that change when the problem does."""
        rows = np.sin(np.arange(len(self.y)))
        numbers = [*self.X.shape, rows @ self.X @ np.cos(np.arange(self.X.shape[1])), rows @ self.y]
        numbers += [rows @ self.weight, self.scale.sum(), self.location.sum(), self.prior.df]
        numbers += [self.temperature, self.fit_intercept, sum(map(ord, self.prior.family))]
        if self.noise is not None:
            numbers += [sum(map(ord, self.noise.family)), self.noise.shape, self.noise.scale or 0]
        return np.array(numbers + [self.variance or 0.0], dtype=float)


@dataclass
class Reference:
    """Moments and quantiles of every parameter, and what they are worth."""

    kind: str
    worth: str
    mean: np.ndarray
    sd: np.ndarray
    quantiles: np.ndarray  # (2, P)
    kurtosis: np.ndarray
    problems: list[str] = field(default_factory=list)


def from_draws(draws, weights=None):
    """Mean, sd, quantiles and kurtosis of ``draws (S, P)``."""
    mean = np.average(draws, axis=0, weights=weights)
    deviation = draws - mean
    sd = np.sqrt(np.average(deviation**2, axis=0, weights=weights))
    kurtosis = np.average((deviation / sd) ** 4, axis=0, weights=weights)
    if weights is None:
        return mean, sd, np.quantile(draws, LEVELS, axis=0), kurtosis
    quantiles = np.empty((2, draws.shape[1]))
    for j, values in enumerate(draws.T):
        order = np.argsort(values)
        quantiles[:, j] = np.interp(LEVELS, np.cumsum(weights[order]), values[order])
    return mean, sd, quantiles, kurtosis


# ---- linear models whose coefficients are normal given the noise -------------------------------


def log_noise_density(noise, gamma, variance_of_y):
    """Log density of ``gamma = log sigma^2``."""
    sigma, square = np.exp(gamma / 2), np.exp(gamma)
    scale = noise.scale
    if noise.family == "inverse_gamma":
        rate = noise.shape * variance_of_y if scale is None else scale
        return -noise.shape * gamma - rate / square
    if noise.family == "flat":
        return gamma / 2
    s = np.sqrt(variance_of_y) if scale is None else scale
    if noise.family == "half_normal":
        return gamma / 2 - square / s**2 / 2
    if noise.family == "exponential":
        return gamma / 2 - sigma / s
    df = {"half_cauchy": 1.0, "half_student_t": noise.df}[noise.family]
    return gamma / 2 - (df + 1) / 2 * np.log1p(square / s**2 / df)


def variance_of(problem):
    level = np.average(problem.y, weights=problem.weight)
    return np.average((problem.y - level) ** 2, weights=problem.weight)


class _GivenNoise:
    """Normal distribution of (coefficients, intercept) given log variances ``gamma (G,)``."""

    def __init__(self, problem):
        self.problem, self.tau = problem, problem.temperature
        flat = problem.prior.family == "flat"
        self.total = problem.weight.sum()
        self.y_mean = problem.weight @ problem.y / self.total if problem.fit_intercept else 0.0
        spread = np.sqrt(np.mean(problem.centred**2, axis=0))
        self.unit = 1.0 / spread if flat else problem.scale
        root = np.sqrt(problem.weight)
        design = root[:, None] * problem.centred * self.unit
        target = root * (problem.y - self.y_mean - problem.centred @ problem.location)
        U, self.singular, Vt = np.linalg.svd(design, full_matrices=False)
        self.V, self.u = Vt.T, U.T @ target
        self.rest = np.sum((target - U @ self.u) ** 2)  # what no coefficients explain

    def precisions(self, gamma):
        """Precisions along the singular vectors ``(G, r)`` and of the prior ``(G, 1)``."""
        family = self.problem.prior.family
        prior = {
            "normal": np.ones_like(gamma),
            "conjugate_normal": np.exp(-gamma),
            "flat": np.zeros_like(gamma),
        }[family][:, None]
        return np.exp(-gamma)[:, None] * self.singular**2 + prior, prior

    def log_density(self, gamma):
        """Log density of gamma, the coefficients and intercept integrated out."""
        problem, d = self.problem, self.problem.X.shape[1]
        precision, prior = self.precisions(gamma)
        unexplained = self.rest + (self.u**2 * prior / precision).sum(1)
        value = -0.5 * (self.total * gamma + np.exp(-gamma) * unexplained)
        value += log_noise_density(problem.noise, gamma, variance_of(problem))
        if problem.prior.family == "conjugate_normal":
            value -= 0.5 * d * gamma
        value = value / self.tau - 0.5 * np.log(precision).sum(1)
        if d > len(self.singular):
            value -= 0.5 * (d - len(self.singular)) * np.log(prior[:, 0])
        return value + 0.5 * gamma * problem.fit_intercept

    def moments(self, gamma):
        """Mean and variance ``(G, P)``."""
        precision, prior = self.precisions(gamma)
        solution = np.exp(-gamma)[:, None] * self.singular * self.u / precision
        mean = self.problem.location + solution @ (self.unit[:, None] * self.V).T
        rows = self.V * self.unit[:, None]
        variance = self._form(rows, self.unit**2, precision, prior)
        if self.problem.fit_intercept:
            x_mean = self.problem.x_mean
            along = ((x_mean * self.unit) @ self.V)[None]
            size = np.sum((x_mean * self.unit) ** 2, keepdims=True)
            level = self.tau * np.exp(gamma)[:, None] / self.total
            variance = np.hstack([variance, level + self._form(along, size, precision, prior)])
            mean = np.hstack([mean, (self.y_mean - mean @ x_mean)[:, None]])
        return mean, variance

    def _form(self, rows, size, precision, prior):
        value = (1 / precision) @ (rows**2).T
        if self.problem.X.shape[1] > len(self.singular):  # what the data do not see
            value = value + np.maximum(size - (rows**2).sum(1), 0) / prior
        return self.tau * value


def quadrature(problem):
    """Exact posterior: normal given sigma, and sigma by quadrature on 400 points."""
    exact = _GivenNoise(problem)
    if problem.variance is not None:
        gamma, weight = np.log([problem.variance]), np.ones(1)
    else:
        wide = np.log(variance_of(problem)) + np.linspace(-30, 30, 6001)
        value = exact.log_density(wide)
        near = wide[value > value.max() - 60]
        gamma = np.linspace(near[0], near[-1], 401)
        value = exact.log_density(gamma)
        weight = np.exp(value - value.max())
        weight /= weight.sum()
    means, variances = exact.moments(gamma)
    mean = weight @ means
    deviation = (means - mean) ** 2
    sd = np.sqrt(weight @ (variances + deviation))
    fourth = weight @ (3 * variances**2 + 6 * variances * deviation + deviation**2)
    quantiles = _mixture_quantiles(weight, means, np.sqrt(variances), mean, sd)
    kurtosis = fourth / sd**4
    if problem.variance is None:
        square = np.exp(gamma)
        m = weight @ square
        s = np.sqrt(weight @ (square - m) ** 2)
        cdf = np.cumsum(weight) - weight / 2
        q = np.exp(np.interp(stats.norm.ppf(LEVELS), *_normal_scale(cdf, gamma)))
        mean, sd, kurtosis = np.r_[mean, m], np.r_[sd, s], np.r_[kurtosis, _fourth(weight, square)]
        quantiles = np.column_stack([quantiles, q])
    return Reference("quadrature", "exact", mean, sd, quantiles, kurtosis)


def _fourth(weight, values):
    centred = values - weight @ values
    return weight @ centred**4 / (weight @ centred**2) ** 2


def _normal_scale(cdf, gamma):
    """Distribution function by its normal scores, nearly a line: easy to invert."""
    inside = (cdf > 1e-9) & (cdf < 1 - 1e-9)
    return stats.norm.ppf(cdf[inside]), gamma[inside]


def _mixture_quantiles(weight, means, sds, mean, sd):
    quantiles = []
    kept = weight > 1e-12
    weight, means, sds = weight[kept], means[kept], sds[kept]
    for level in LEVELS:
        low, high = mean - 40 * sd, mean + 40 * sd
        for _ in range(50):
            middle = (low + high) / 2
            below = weight @ stats.norm.cdf((middle - means) / sds) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        quantiles.append((low + high) / 2)
    return np.array(quantiles)
