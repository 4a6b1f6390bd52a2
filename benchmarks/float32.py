"""Logistic fits of float32 data: failures, and moments and seconds beside the float64 fit's.

Random sets of 50 to 1,000,000 rows and 1 to 60 columns, first around zero, then with columns
whose offset is up to 1,000 times their spread. The float64 fit is that of the same numbers.
"""

from __future__ import annotations

import argparse
import warnings
from time import process_time

import numpy as np

from benchmarks._tools import heading
from skbayes_sgld import SGLDLogisticRegression

_LARGEST_OFFSET = 1000.0
_SIZES = (50, 1_000, 20_000, 200_000, 1_000_000)  # rows: the edges of the table's groups
_NAMED = ((500, 20, 1), (500, 20, 2), (200_000, 20, 0), (1_000_000, 50, 0))


def make(n_rows: int, n_columns: int, seed: int, offset: float) -> tuple[np.ndarray, np.ndarray]:
    """Float32 columns around ``offset`` spreads, and classes by a logistic model."""
    rng = np.random.default_rng(seed)
    spread = np.exp(rng.standard_normal(n_columns)).astype(np.float32)
    unit = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    effects = rng.standard_normal(n_columns) / np.sqrt(n_columns)
    y = unit @ effects + rng.logistic(size=n_rows) > 0
    y[:2] = False, True
    unit += np.float32(offset)
    unit *= spread
    return unit, y


def fit(X: np.ndarray, y: np.ndarray, n_draws: int) -> tuple[np.ndarray | None, float]:
    """Draws of the coefficients, None where there is no fit, and the seconds."""
    model = SGLDLogisticRegression(n_draws=n_draws, random_state=0)
    start = process_time()
    try:
        model.fit(X, y)
    except ValueError:
        return None, process_time() - start
    return model.posterior_.flat[:, : X.shape[1]], process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--largest", type=int, default=_SIZES[-1], help="rows of a set at most")
    options = parser.parse_args()
    heading(__doc__)
    for largest_offset in (0.0, _LARGEST_OFFSET):
        rng = np.random.default_rng(int(largest_offset))
        n_rows = np.exp(rng.uniform(np.log(50), np.log(options.largest), options.sets)).astype(int)
        n_columns = rng.integers(1, 61, options.sets)
        offsets = largest_offset ** rng.uniform(size=options.sets) if largest_offset else n_rows * 0
        tasks = [
            (n, d, s, a) for s, (n, d, a) in enumerate(zip(n_rows, n_columns, offsets, strict=True))
        ]
        tasks += [(n, d, s, largest_offset) for n, d, s in _NAMED if n <= options.largest]
        print(f"\noffset over spread up to {largest_offset:g}")
        print(f"{'rows':>20s}{'sets':>6s}{'failed':>8s}{'mean, sds':>11s}{'sd':>9s}{'time':>7s}")
        report(tasks, options.draws)


def report(tasks: list[tuple[int, int, int, float]], n_draws: int) -> None:
    """Print a line a group of sizes: worst differences from float64, and the ratio of seconds."""
    found: dict[int, list[tuple[bool, float, float, float, float]]] = {}
    for n, d, seed, offset in tasks:
        X, y = make(n, d, seed, offset)
        draws, seconds = fit(X, y, n_draws)
        group = int(np.searchsorted(_SIZES, n))
        double, seconds_double = fit(X.astype(np.float64), y, n_draws)
        if draws is None or double is None:
            found.setdefault(group, []).append((True, np.nan, np.nan, seconds, seconds_double))
            continue
        sd = double.std(axis=0)
        shift = np.abs((draws.mean(axis=0) - double.mean(axis=0)) / sd).max()
        width = np.abs(draws.std(axis=0) / sd - 1.0).max()
        found.setdefault(group, []).append((False, shift, width, seconds, seconds_double))
    for group, rows in sorted(found.items()):
        failed, shift, width, seconds, seconds_double = map(np.array, zip(*rows, strict=True))
        print(
            f"{f'up to {_SIZES[group]:,}':>20s}{len(rows):6d}{failed.sum():8d}"
            f"{np.nanmax(shift):11.1e}{np.nanmax(width):9.1e}"
            f"{seconds.sum() / seconds_double.sum():7.2f}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # a hundred draws are told to be few
    main()
