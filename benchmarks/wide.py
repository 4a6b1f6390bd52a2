"""Logistic fits with many columns, at the default settings: seconds, and whether they are right.

``python -m benchmarks.wide`` fits the sizes of the table below; ``python -m benchmarks.wide 3000
1000`` fits one size. Rows are standard normal and the labels come from a logistic model. Two
figures say how the time was spent: elapsed seconds, which other work on the machine lengthens, and
CPU seconds. Means and sds are compared with those of a long run that shares no code with the
package, where ``benchmarks.wide_reference`` has saved one: the root mean square and the largest
difference over the columns, of a mean in sds, of an sd relative, and what Monte Carlo error alone
would make the root mean square of the means. A warning of the fit is shown, and means that its
chains have not converged, or its draws are biased.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.diagnostics import effective_sample_size, potential_scale_reduction

SIZES = ((3000, 1000), (3000, 2100), (5000, 2500), (1000, 3000), (500, 10_000))
CACHE = Path(__file__).with_name("cached")


def make_rows(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal columns, whose effects add up to a variance of 4."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    effects = X @ rng.standard_normal(d) * 2 / np.sqrt(d)
    return X, (effects + rng.logistic(size=n) > 0).astype(int)


def measure(n: int, d: int) -> str:
    """Line of the table for one size."""
    X, y = make_rows(n, d)
    elapsed, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SGLDLogisticRegression(random_state=0).fit(X, y)
    elapsed, cpu = time.perf_counter() - elapsed, time.process_time() - cpu
    draws = model.result_.draws.values
    some = draws[..., np.linspace(0, d, 500).astype(int)]
    ess, r_hat = effective_sample_size(some).min(), potential_scale_reduction(some).max()
    told = str(caught[0].message) if caught else "none"
    figures = f"{n:6d} {d:7d} {elapsed:8.1f} {cpu:7.1f} {ess:8.0f} {r_hat:7.3f}"
    return f"{figures}  {beside_reference(n, d, draws):34s}  {told}"


def beside_reference(n: int, d: int, draws: np.ndarray) -> str:
    """Differences from the saved moments, if there are any."""
    path = CACHE / f"wide-{n}x{d}.npz"
    if not path.exists():
        return "none"
    saved, flat = np.load(path), draws.reshape(-1, draws.shape[2])[:, :d]
    mean, sd, error = (saved[name][:d] for name in ("mean", "sd", "error"))
    shift, width = (flat.mean(axis=0) - mean) / sd, flat.std(axis=0) / sd - 1.0
    worth = effective_sample_size(draws[..., np.linspace(0, d - 1, 100).astype(int)])
    chance = np.sqrt(np.mean(1.0 / worth) + np.mean(np.square(error / sd)))
    rms, most = np.sqrt(np.mean(np.square(shift))), np.abs(shift).max()
    of_sds = f"{np.sqrt(np.mean(np.square(width))):.1%} {np.abs(width).max():.1%}"
    return f"{rms:.3f} ({chance:.3f}) {most:.3f}; {of_sds}"


def main() -> None:
    """Print the table."""
    given = tuple(map(int, sys.argv[1:3]))
    sizes = ((given[0], given[1]),) if len(given) == 2 else SIZES
    compared = "means; sds: rms, most"
    print(f"  rows columns  seconds     CPU  min ESS   R-hat  {compared:34s}  warning")
    for n, d in sizes:
        print(measure(n, d), flush=True)


if __name__ == "__main__":
    main()
