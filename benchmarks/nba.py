"""The NBA rookies: `SGLDLogisticRegression().fit` as it stands, beside NumPyro's NUTS.

The same posterior: 19 standardised columns, normal prior of sd 1 on the coefficients, flat on the
intercept, float64. Ours has every setting at its default (4 chains of 1000 draws, one core); its
time is that of the whole `fit`. NUTS has 4 chains of 1000 draws and 1000 steps of warm-up, in
parallel on all cores; its time is that of the warm-up and the draws, with the compiler's told
apart. Both are repeated with other seeds, interleaved: the figures are medians, those in brackets
minima. ESS is the smallest bulk effective sample size of a coefficient or the intercept, by the
same function. The ratios of ESS/s are ours over theirs, and above 1 where ours is faster.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from benchmarks._tools import heading, rival, table
from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.datasets import load_nba_rookies
from skbayes_sgld.diagnostics import effective_sample_size

ROUNDS = 5
N_DRAWS = 1000
OURS, NUTS, DENSE = "SGLDLogisticRegression()", "NUTS, defaults", "NUTS, dense mass matrix"


def load() -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns, no attempt being 0 per cent, and the labels."""
    X, y = load_nba_rookies(return_X_y=True, as_frame=False)
    X = np.nan_to_num(X)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def main() -> None:
    peer = rival("numpyro")
    heading(__doc__)
    X, y = load()

    def ours(seed: int) -> tuple[np.ndarray, float]:
        return SGLDLogisticRegression(random_state=seed).fit(X, y).posterior_.values, 0.0

    def nuts(dense_mass: bool, seed: int) -> tuple[np.ndarray, float]:
        return peer.nuts(X, y, n_draws=N_DRAWS, dense_mass=dense_mass, seed=seed)

    tasks = {OURS: ours, NUTS: lambda s: nuts(False, s), DENSE: lambda s: nuts(True, s)}
    seconds, compiling, ess = ({name: [] for name in tasks} for _ in range(3))
    pooled = {name: [] for name in tasks}
    for seed in range(ROUNDS):
        for name, task in tasks.items():
            start = perf_counter()
            draws, compile_time = task(seed)
            seconds[name].append(perf_counter() - start - compile_time)
            compiling[name].append(compile_time)
            ess[name].append(effective_sample_size(draws).min())
            pooled[name].append(draws.reshape(-1, draws.shape[2]))

    rate = {name: np.median(np.divide(ess[name], seconds[name])) for name in tasks}
    print(f"{peer.VERSION}; {ROUNDS} rounds, {peer.CORES} cores")
    table(
        ["sampler", "seconds", "compiling", "ESS", "ESS/s", "ours/it"],
        [
            [
                name,
                f"{np.median(seconds[name]):.2f} ({min(seconds[name]):.2f})",
                f"{np.median(compiling[name]):.1f}",
                f"{np.median(ess[name]):.0f}",
                f"{rate[name]:.0f}",
                f"{rate[OURS] / rate[name]:.1f}",
            ]
            for name in tasks
        ],
    )

    rows = []
    for name in (NUTS, DENSE):
        a, b = np.concatenate(pooled[OURS]), np.concatenate(pooled[name])
        shift = np.abs(a.mean(axis=0) - b.mean(axis=0)) / b.std(axis=0)
        ratio = a.std(axis=0) / b.std(axis=0)
        error = np.sqrt(1.0 / sum(ess[OURS]) + 1.0 / sum(ess[name]))
        worst = ratio[np.argmax(np.abs(np.log(ratio)))]
        rows.append([f"ours, beside {name}", f"{shift.max():.3f}", f"{worst:.3f}", f"{error:.3f}"])
    print(f"Agreement, on the draws of all {ROUNDS} rounds; the last column is one standard error")
    print("of the difference of the means, in sds, for the parameter with the smallest ESS")
    table(["posterior", "worst |mean difference|/sd", "worst sd ratio", "Monte Carlo"], rows)


if __name__ == "__main__":
    main()
