"""Coverage and scores of the built-in priors, from half a row a column to twenty.

``python -m benchmarks.priors [family ...]`` simulates data with a known truth and
fits every prior to the same rows. It keeps what it measures in ``benchmarks/results/priors.json``
after every replicate of a family, and does not measure again what is there; ``--show`` prints the
tables alone, and ``--cells`` the coverage of the default prior in each cell.

A case has 5 or 20 columns (of half a row a column also 50), which are independent or neighbours
correlated by 0.8; all columns matter, or a fifth of them; the variance of the linear predictor is
0.2, 1 or 5 times that of the noise. Linear predictors of labels have these variances themselves,
log rates a quarter of them. The measures are of 200 new rows:

``linear``
    Shares of new observations in 90 % and 50 % intervals, and the interval score of the first
    (Gneiting & Raftery 2007), in standard deviations of the noise.
``poisson``
    The same shares, by randomised probability integral transforms, for which an interval of counts
    holds its level exactly; excess of the log score over that of the truth.
``logistic``
    Share of 90 % credible intervals that hold the true probability; slope of the true on the
    predicted probabilities (1 where they are calibrated, less where they are too extreme); excess
    of the expected log score over that of the truth.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax
from scipy.stats import gamma, nbinom, poisson

from benchmarks._tools import table
from skbayes_sgld import (
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDNegativeBinomialRegressor,
    SGLDOrdinalClassifier,
    SGLDPoissonRegressor,
)
from skbayes_sgld.metrics import interval_score
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

RESULTS = Path(__file__).parent / "results" / "priors.json"
RATIOS = 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0
PRIORS = {
    "linear": ("conjugate_normal", "normal", "hierarchical_normal", "laplace", "horseshoe"),
    "logistic": ("normal", "hierarchical_normal", "laplace"),
    "poisson": ("normal", "hierarchical_normal", "laplace"),
    "negative_binomial": ("normal", "hierarchical_normal"),
    "gamma": ("normal", "hierarchical_normal"),
    "three_classes": ("normal", "hierarchical_normal"),
    "ordinal": ("normal", "hierarchical_normal"),
}
MEASURES = {
    "linear": ("90 %", "50 %", "score against normal"),
    "logistic": ("90 %", "slope", "score against normal"),
    "poisson": ("90 %", "50 %", "score against normal"),
    "negative_binomial": ("90 %", "50 %", "score against normal"),
    "gamma": ("90 %", "50 %", "score against normal"),
    "three_classes": ("90 %", "50 %", "score against normal"),
    "ordinal": ("90 %", "50 %", "score against normal"),
}
_RELATED = "negative_binomial", "gamma", "three_classes", "ordinal"  # of fewer cases
_SLOW = "horseshoe"  # a fit takes a second or more: one replicate, of five columns
_NEW = 200
_FIT = {"n_draws": 250, "random_state": 0}


class Case(NamedTuple):
    """Rows a column, columns, their correlation, the truth's kind, and signal over noise."""

    ratio: float
    d: int
    correlation: float
    truth: str
    signal: float


def cases(family: str = "linear") -> Iterator[Case]:
    """All cases of a family."""
    if family in _RELATED:
        for ratio, *rest in itertools.product(RATIOS[:5], (0.0, 0.8), ("dense", "sparse")):
            yield Case(ratio, 20, *rest, 1.0)
        return
    for ratio, d in [*itertools.product(RATIOS, (5, 20)), (0.5, 50)]:
        for rest in itertools.product((0.0, 0.8), ("dense", "sparse"), (0.2, 1.0, 5.0)):
            yield Case(ratio, d, *rest)


def simulate(case: Case, variance: float, seed: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Rows, the first of them those to fit, their linear predictors, and the generator."""
    rng = np.random.default_rng([seed, *(int(10 * v) for v in (*case[:3], case.signal))])
    n, d = max(3, round(case.ratio * case.d)) + _NEW, case.d
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = case.correlation * X[:, j - 1] + np.sqrt(1 - case.correlation**2) * X[:, j]
    coef = rng.standard_normal(d)
    if case.truth == "sparse":
        coef[rng.permutation(d)[max(1, d // 5) :]] = 0.0
    covariance = case.correlation ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    coef *= np.sqrt(variance / (coef @ covariance @ coef))
    return X, X @ coef, rng


def linear(case: Case, prior: str, seed: int) -> tuple[float, ...]:
    """Coverage of 90 % and 50 % intervals, and the interval score."""
    X, u, rng = simulate(case, case.signal, seed)
    y = 3.0 + u + rng.standard_normal(len(u))
    model = SGLDLinearRegression(prior=prior, **_FIT).fit(X[:-_NEW], y[:-_NEW])
    X, y = X[-_NEW:], y[-_NEW:]
    wide, narrow = (model.predict_interval(X, coverage=level) for level in (0.9, 0.5))
    inside = [np.mean((b[:, 0] < y) & (y < b[:, 1])) for b in (wide, narrow)]
    return *inside, float(interval_score(y, wide, coverage=0.9))


def logistic(case: Case, prior: str, seed: int) -> tuple[float, ...]:
    """Coverage of the true probabilities, calibration slope, and excess log score."""
    X, u, rng = simulate(case, case.signal, seed)
    p, y = expit(u), np.zeros(len(u))
    while np.ptp(y[:-_NEW]) == 0:  # both classes are seen
        y = (rng.random(len(u)) < p).astype(float)
    model = SGLDLogisticRegression(prior=prior, **_FIT).fit(X[:-_NEW], y[:-_NEW])
    X, p = X[-_NEW:], p[-_NEW:]
    draws = model.sample_posterior()
    drawn = expit(X @ draws.coef.T + draws.intercept)
    low, high = np.quantile(drawn, [0.05, 0.95], axis=1)
    mean = drawn.mean(axis=1)
    slope = np.cov(p, mean)[0, 1] / mean.var(ddof=1)
    excess = np.mean(p * np.log(p / mean) + (1 - p) * np.log((1 - p) / (1 - mean)))
    return float(np.mean((low < p) & (p < high))), float(slope), float(excess)


def counts(case: Case, prior: str, seed: int) -> tuple[float, ...]:
    """Coverage of 90 % and 50 % intervals, and the excess log score."""
    X, u, rng = simulate(case, case.signal / 4.0, seed)
    y = np.zeros(len(u))
    while not y[:-_NEW].any():
        y = rng.poisson(np.exp(1.0 + u))
    model = SGLDPoissonRegressor(prior=prior, **_FIT).fit(X[:-_NEW], y[:-_NEW])
    X, y = X[-_NEW:], y[-_NEW:]
    draws = model.sample_posterior()
    rate = np.exp(np.clip(X @ draws.coef.T + draws.intercept, -50.0, 50.0))
    at, below = (poisson.cdf(k[:, None], rate).mean(axis=1) for k in (y, y - 1))
    pit = below + rng.random(_NEW) * (at - below)
    inside = [float(np.mean(np.abs(pit - 0.5) < level / 2)) for level in (0.9, 0.5)]
    mass = poisson.pmf(y[:, None], rate).mean(axis=1)
    excess = poisson.logpmf(y, np.exp(1.0 + u[-_NEW:])) - np.log(np.maximum(mass, 1e-300))
    return *inside, float(excess.mean())


def _of_numbers(
    pit: np.ndarray, log_density: np.ndarray, of_truth: np.ndarray
) -> tuple[float, ...]:
    inside = [float(np.mean(np.abs(pit - 0.5) < level / 2)) for level in (0.9, 0.5)]
    mean = logsumexp(log_density, axis=1) - np.log(log_density.shape[1])
    return *inside, float(np.mean(of_truth - mean))


def negative_binomial(case: Case, prior: str, seed: int) -> tuple[float, ...]:
    """Coverage of 90 % and 50 % intervals, and the excess log score."""
    X, u, rng = simulate(case, case.signal / 4.0, seed)
    mean, y = np.exp(1.0 + u), np.zeros(len(u))
    while not y[:-_NEW].any():
        y = nbinom.rvs(2.0, 2.0 / (2.0 + mean), random_state=rng).astype(float)
    model = SGLDNegativeBinomialRegressor(prior=prior, **_FIT).fit(X[:-_NEW], y[:-_NEW])
    X, y = X[-_NEW:], y[-_NEW:, None]
    draws = model.sample_posterior()
    rate = np.exp(np.clip(X @ draws.coef.T + draws.intercept, -50.0, 50.0))
    known = nbinom(1.0 / draws.dispersion, 1.0 / (1.0 + draws.dispersion * rate))
    at, below = (known.cdf(k).mean(axis=1) for k in (y, y - 1))
    pit = below + rng.random(_NEW) * (at - below)
    truth = nbinom.logpmf(y[:, 0], 2.0, 2.0 / (2.0 + mean[-_NEW:]))
    return _of_numbers(pit, known.logpmf(y), truth)


def gammas(case: Case, prior: str, seed: int) -> tuple[float, ...]:
    """Coverage of 90 % and 50 % intervals, and the excess log score."""
    X, u, rng = simulate(case, case.signal / 4.0, seed)
    mean = np.exp(1.0 + u)
    y = rng.gamma(2.0, mean / 2.0)
    model = SGLDGammaRegressor(prior=prior, **_FIT).fit(X[:-_NEW], y[:-_NEW])
    X, y = X[-_NEW:], y[-_NEW:, None]
    draws = model.sample_posterior()
    rate = np.exp(np.clip(X @ draws.coef.T + draws.intercept, -50.0, 50.0))
    known = gamma(1.0 / draws.dispersion, scale=rate * draws.dispersion)
    truth = gamma.logpdf(y[:, 0], 2.0, scale=mean[-_NEW:] / 2.0)
    return _of_numbers(known.cdf(y).mean(axis=1), known.logpdf(y), truth)


def _of_classes(drawn: np.ndarray, p: np.ndarray) -> tuple[float, ...]:
    """Measures of drawn probabilities ``(S, n, K)``."""
    inside = []
    for level in (0.9, 0.5):
        low, high = np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        inside.append(float(np.mean((low < p) & (p < high))))
    return *inside, float(np.mean((p * np.log(p / drawn.mean(axis=0))).sum(axis=1)))


def three_classes(case: Case, prior: str, seed: int) -> tuple[float, ...]:
    """Coverage of the true probabilities, and the excess log score."""
    parts = [simulate(case, case.signal, seed)]
    X, rng = parts[0][0], parts[0][2]
    covariance = case.correlation ** np.abs(np.subtract.outer(np.arange(case.d), np.arange(case.d)))
    other = rng.standard_normal(case.d) * (rng.random(case.d) < (1.0, 0.2)[case.truth == "sparse"])
    other *= np.sqrt(case.signal / max(other @ covariance @ other, 1e-12))
    p = softmax(np.column_stack([np.zeros(len(X)), parts[0][1], X @ other]), axis=1)
    y = np.zeros(len(X))
    while len(np.unique(y[:-_NEW])) < 3:
        y = (rng.random(len(X))[:, None] > np.cumsum(p, axis=1)[:, :2]).sum(axis=1)
    model = SGLDLogisticRegression(prior=prior, **_FIT).fit(X[:-_NEW], y[:-_NEW])
    draws = model.sample_posterior()
    u = np.einsum("nd,skd->snk", X[-_NEW:], draws.coef) + draws.intercept[:, None]
    return _of_classes(softmax(u, axis=2), p[-_NEW:])


def ordinal(case: Case, prior: str, seed: int) -> tuple[float, ...]:
    """Coverage of the true probabilities, and the excess log score."""
    X, u, rng = simulate(case, case.signal, seed)
    y = np.zeros(len(u))
    while len(np.unique(y[:-_NEW])) < 3:
        latent = u + rng.logistic(size=len(u))
        y = (latent > -1.0).astype(int) + (latent > 1.0)
    model = SGLDOrdinalClassifier(prior=prior, **_FIT).fit(X[:-_NEW], y[:-_NEW])
    draws = model.sample_posterior()
    of_draws = _by_cuts(draws.coef @ X[-_NEW:].T, draws.cut_point)
    return _of_classes(of_draws, _by_cuts(u[None, -_NEW:], np.array([[-1.0, 1.0]]))[0])


def _by_cuts(u: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Probabilities ``(S, n, 3)`` at predictors ``(S, n)`` and cut points ``(S, 2)``."""
    below = expit(cuts[:, None] - u[:, :, None])
    return np.diff(below, axis=2, prepend=0.0, append=1.0)


FITS = {
    "linear": linear,
    "logistic": logistic,
    "poisson": counts,
    "negative_binomial": negative_binomial,
    "gamma": gammas,
    "three_classes": three_classes,
    "ordinal": ordinal,
}


def load() -> dict[str, list[list[float]]]:
    """Measures of each family, prior and case, by replicate."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def key(family: str, prior: str, case: Case) -> str:
    """Name of the measures of one prior in one case."""
    return " ".join(map(str, (family, prior, *case)))


def measure(family: str, priors: Sequence[str], n_replicates: int) -> None:
    """Measure what is missing of a family, one replicate of all cases after the other."""
    found = load()
    for seed, prior in itertools.product(range(n_replicates), priors):
        for case in cases(family):
            rows = found.setdefault(key(family, prior, case), [])
            if len(rows) > seed or (prior == _SLOW and (case.d > 5 or seed)):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of few rows, which are the subject
                rows.append([float(f"{v:.4g}") for v in FITS[family](case, prior, seed)])
        found = {name: rows for name, rows in found.items() if rows}
        lines = (f" {json.dumps(name)}: {json.dumps(rows)}" for name, rows in found.items())
        RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def pooled(
    found: dict[str, list[list[float]]], family: str, prior: str, ratio: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Means over the cases of a number of rows a column, and their standard errors.

    Scores are those over (``linear``) or minus (others) the normal prior's on the same data, a
    geometric mean of ratios. None without any fit.
    """
    chosen = [case for case in cases(family) if case.ratio == ratio]
    pairs = [
        (row, normal)
        for case in chosen
        for row, normal in zip(
            found.get(key(family, prior, case), []),
            found.get(key(family, "normal", case), []),
            strict=False,
        )
    ]
    if not pairs:
        return None
    rows, normal = (np.array(each) for each in zip(*pairs, strict=True))
    linear = family == "linear"
    rows[:, 2] = np.log(rows[:, 2] / normal[:, 2]) if linear else rows[:, 2] - normal[:, 2]
    mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    if linear:
        mean[2] = np.exp(mean[2])
        error[2] *= mean[2]
    return mean, error


def show(family: str) -> None:
    """Print a table of each measure: rows a column by priors."""
    found = load()
    for m, measure_name in enumerate(MEASURES[family]):
        rows = []
        for ratio in RATIOS:
            cells = [pooled(found, family, prior, ratio) for prior in PRIORS[family]]
            shown = ["" if c is None else f"{c[0][m]:.3f} +- {c[1][m]:.3f}" for c in cells]
            rows.append([f"{ratio:g}", *shown])
        print(f"\n{family}, {measure_name}")
        table(["rows a column", *PRIORS[family]], rows)


def show_cells(family: str) -> None:
    """Print the coverage of 90 % intervals of the default prior in each cell, missed ones marked.

    A cell has a number of rows a column, a truth and a signal over noise; a mean that is further
    than two standard errors from 90 % is marked.
    """
    found = load()
    signals = sorted({case.signal for case in cases(family)})
    rows = []
    for ratio, truth in itertools.product(RATIOS, ("dense", "sparse")):
        prior = "hierarchical_normal" if ratio < THRESHOLDS.few_rows_each else "normal"
        shown = []
        for signal in signals:
            chosen = (
                c for c in cases(family) if (c.ratio, c.truth, c.signal) == (ratio, truth, signal)
            )
            share = [row[0] for c in chosen for row in found.get(key(family, prior, c), [])]
            if len(share) > 1:
                mean, error = np.mean(share), np.std(share, ddof=1) / np.sqrt(len(share))
                missed = " *" if abs(mean - 0.9) > 2.0 * error else ""
                shown.append(f"{mean:.3f} +- {error:.3f} ({len(share)}){missed}")
        if shown:
            rows.append([f"{ratio:g}", truth, prior, *shown])
    print(f"\n{family}, 90 %, by cell")
    table(["rows a column", "truth", "prior", *(f"signal {signal:g}" for signal in signals)], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("families", nargs="*", default=list(FITS), metavar="family")
    parser.add_argument("--priors", nargs="*", metavar="prior", help="these alone")
    parser.add_argument("--replicates", type=int, default=4)
    parser.add_argument("--show", action="store_true", help="print what is kept")
    parser.add_argument("--cells", action="store_true", help="print the default prior's coverage")
    options = parser.parse_args(arguments)
    for family in options.families:
        if options.cells:
            show_cells(family)
            continue
        if not options.show:
            chosen = [p for p in PRIORS[family] if p in (options.priors or PRIORS[family])]
            measure(family, chosen, options.replicates)
        show(family)


if __name__ == "__main__":
    main()
