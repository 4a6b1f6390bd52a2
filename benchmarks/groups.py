"""Effects of groups at the default settings: seconds, effective draws, and agreement with a rival.

``python -m benchmarks.groups`` fits normal, binary and count responses of 100,000 rows in 1,000
groups, and of 2,000 rows in 50; ``python -m benchmarks.groups 1e6 10000`` another size. Each fit is
beside the maximum likelihood estimate of GPBoost, where it is installed, in the same run.
Seconds are of one core: set ``OMP_NUM_THREADS=1``.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from scipy.special import expit

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression, SGLDPoissonRegressor

FAMILIES: dict[str, tuple[Any, str]] = {
    "normal": (SGLDLinearRegression, "gaussian"),
    "binary": (SGLDLogisticRegression, "bernoulli_logit"),
    "counts": (SGLDPoissonRegressor, "poisson"),
}


def make_rows(family: str, n: int, n_groups: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels of groups beside five columns, and the response; the sd of the effects is 1."""
    rng = np.random.default_rng(seed)
    labels, X = rng.integers(n_groups, size=n), rng.standard_normal((n, 5))
    predictor = 0.3 * X.sum(axis=1) + rng.standard_normal(n_groups)[labels]
    return np.column_stack([labels, X]), response(family, predictor, rng)


def response(family: str, predictor: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Normal, binary or count y with a linear predictor."""
    n = len(predictor)
    if family == "normal":
        return predictor + rng.standard_normal(n)
    if family == "binary":
        return (rng.random(n) < expit(predictor)).astype(float)
    return rng.poisson(np.exp(predictor)).astype(float)


def rival(family: str, rows: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Seconds and estimated sd of GPBoost; nan if it is not installed."""
    try:
        import gpboost
    except ImportError:
        return np.nan, np.nan
    X = np.column_stack([np.ones(len(y)), rows[:, 1:]])
    begin = time.process_time()
    model = gpboost.GPModel(group_data=rows[:, 0].astype(int), likelihood=FAMILIES[family][1])
    model.fit(y=y, X=X)
    seconds = time.process_time() - begin
    return seconds, float(np.sqrt(model.get_cov_pars().to_numpy().ravel()[-1]))


def main() -> None:
    """Fit and print a table."""
    sizes = [(2_000, 50), (100_000, 1_000)]
    if len(sys.argv) > 2:
        sizes = [(int(float(sys.argv[1])), int(float(sys.argv[2])))]
    print("family    rows  groups  seconds  GPBoost  ratio  sd of effects      GPBoost  ESS")
    for n, n_groups in sizes:
        for family, (kind, _) in FAMILIES.items():
            rows, y = make_rows(family, n, n_groups)
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fits are timed, whatever they say
                model = kind(group_effects={0: "intercept"}, random_state=0).fit(rows, y)
            seconds = time.process_time() - begin
            theirs, sd = rival(family, rows, y)
            table = model.posterior_.summary()
            name = next(each for each in table.index if each.startswith("sd["))
            mean, spread, ess = table.loc[name, ["mean", "sd", "ess_bulk"]]
            print(
                f"{family:8}{n:>8,}{n_groups:>7,}{seconds:8.2f}{theirs:9.2f}{seconds / theirs:7.1f}"
                f"    {mean:.3f} +- {spread:.3f}    {sd:8.3f}{ess:6.0f}"
            )


if __name__ == "__main__":
    main()
