"""Measure the rates by which the cost of a step is told: ``python -m benchmarks.rates``.

Prints nanoseconds of processor time, in one thread, for each row of a gradient and each position:
one figure for a number of the row, one for a linear predictor, its exponential included, and one
for a pair of two predictors, of ten classes. Their like are the constants ``shared_row`` and
``row_of_all`` of ``skbayes_sgld/sampling/tuning/thresholds.py``. AVX-512 is hidden from NumPy and
OpenBLAS, and every figure is the least of several rounds: what else the machine does only adds to
it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from time import process_time

import numpy as np

from benchmarks import _machine
from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld.posterior import Bernoulli, Categorical, GLMPosterior, Normal
from skbayes_sgld.sampling import ControlVariate

_COLUMNS = 40, 400
_CLASSES, _OF_CLASSES = 10, 30  # and their columns
_ROWS, _BATCH = 8000, 1000
_ROUNDS, _TIMES = 15, 3


def seconds(work: Callable[[], object]) -> float:
    """Least processor time of a call."""
    found = []
    for _ in range(_ROUNDS):
        begin = process_time()
        for _ in range(_TIMES):
            work()
        found.append((process_time() - begin) / _TIMES)
    return min(found)


def gradient(d: int, n_positions: int, kind: str, n_classes: int = 2) -> float:
    """Nanoseconds for each row and position of a gradient of d columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((_ROWS, d))
    likelihood = Bernoulli() if n_classes == 2 else Categorical(n_classes)
    y = (X[:, 0] > 0).astype(float) if n_classes == 2 else np.arange(_ROWS) % n_classes
    posterior = GLMPosterior(X, y, likelihood, Normal(scale=1.0))
    theta = 0.1 * rng.standard_normal((n_positions, posterior.n_params))
    if kind.startswith("all rows"):
        grouped = posterior.in_groups_of(n_positions)
        bound = (grouped.rounded() if "single" in kind else grouped).bind_grad(n_positions)
        return 1e9 * seconds(lambda: bound(theta)) / (_ROWS * n_positions)
    n_walkers = n_positions if kind == "shared batch" else 1
    whole = ControlVariate().bind(posterior, np.zeros(posterior.n_params)).in_groups_of(n_positions)
    estimate = whole.shared_by(n_walkers).of_run()
    idx = rng.integers(0, _ROWS, (1, n_positions // n_walkers, _BATCH))

    def work() -> None:
        estimate(theta, estimate.prepare(idx)[0])

    return 1e9 * seconds(work) / (_BATCH * n_positions)


def main() -> None:
    if _machine.avx512():
        command = [sys.executable, "-m", "benchmarks.rates"]
        sys.exit(subprocess.run(command, env=os.environ | _machine.hidden()).returncode)
    print(_machine.heading(_machine.describe()))
    kinds = "all rows, single precision", "all rows, double precision", "shared batch", "own batch"
    with one_blas_thread():
        for kind in kinds:
            for n_positions in (4, 16, 32):
                few, many = (gradient(d, n_positions, kind) for d in _COLUMNS)
                number = (many - few) / (_COLUMNS[1] - _COLUMNS[0])
                predictor = few - number * (_COLUMNS[0] + 1)
                of_classes = gradient(_OF_CLASSES, n_positions, kind, _CLASSES)
                alone = number * (_OF_CLASSES + 1) + predictor
                pair = (of_classes - _CLASSES * alone) / (_CLASSES * (_CLASSES - 1))
                print(
                    f"{kind}, {n_positions} positions: {number:.3f} a number, {predictor:.1f} "
                    f"a predictor, {pair:.2f} a pair"
                )


if __name__ == "__main__":
    main()
