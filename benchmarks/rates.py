"""Measure the rates by which batches and all rows are compared: ``python -m benchmarks.rates``.

Prints, for two, three and ten classes and 5 to 150 columns, the nanoseconds of processor time that
one more row costs each of 64 positions: in a gradient of all rows in single precision, and in a
batch that the sixteen walkers of a chain share, gathered anew at every step. Beside each is what
the rates of ``skbayes_sgld/sampling/tuning/thresholds.py`` make it: ``row_of_all``, ``shared_row``
and, for what a batch costs whatever its rows, ``control_variate``. AVX-512 is hidden from NumPy and
OpenBLAS, which has one thread, and every time is the least of several: what else the machine does
only adds to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from time import process_time

import numpy as np

from benchmarks import _machine
from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld.likelihoods import Bernoulli, Categorical
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import ControlVariate
from skbayes_sgld.sampling.tuning.noise import step_costs

_CLASSES, _COLUMNS = (2, 3, 10), (5, 20, 50, 150)
_CHAINS, _WALKERS = 4, 16
_ROWS, _BATCHES = (1000, 3000), (32, 256)
_ROUNDS, _TIMES = 15, 3


def nanoseconds(work: Callable[[], object]) -> float:
    """Least processor time of a call, for each position."""
    found = []
    for _ in range(_ROUNDS):
        begin = process_time()
        for _ in range(_TIMES):
            work()
        found.append((process_time() - begin) / _TIMES)
    return 1e9 * min(found) / (_CHAINS * _WALKERS)


def model(n: int, d: int, n_classes: int) -> GLMPosterior:
    """Posterior of standard normal columns."""
    X = np.random.default_rng(0).standard_normal((n, d))
    likelihood = Bernoulli() if n_classes == 2 else Categorical(n_classes)
    return GLMPosterior(X, np.arange(n) % n_classes, likelihood, Normal(scale=1.0))


def positions(posterior: GLMPosterior) -> np.ndarray:
    """Positions of all walkers near zero."""
    shape = _CHAINS * _WALKERS, posterior.n_params
    return 0.1 * np.random.default_rng(1).standard_normal(shape)


def of_all(posterior: GLMPosterior) -> float:
    """Nanoseconds of a gradient of all rows, for each position."""
    theta = positions(posterior)
    bound = posterior.rounded().bind_grad(_WALKERS)
    return nanoseconds(lambda: bound(theta))


def of_batch(posterior: GLMPosterior, size: int) -> float:
    """Nanoseconds of a gradient by batches of so many rows, for each position."""
    theta = positions(posterior)
    gradient = ControlVariate().bind(posterior, np.zeros(posterior.n_params))
    estimate = replace(gradient, group=_WALKERS, n_sharing=_WALKERS)
    idx = np.random.default_rng(2).integers(0, posterior.n_samples, (1, _CHAINS, size))

    def work() -> None:
        estimate(theta, estimate.prepare(idx)[0])

    return nanoseconds(work)


def main() -> None:
    if _machine.avx512():
        command = [sys.executable, "-m", "benchmarks.rates"]
        sys.exit(subprocess.run(command, env=os.environ | _machine.hidden()).returncode)
    print(_machine.heading(_machine.describe()))
    with one_blas_thread():
        for n_classes in _CLASSES:
            for d in _COLUMNS:
                few, many = (model(n, d, n_classes) for n in _ROWS)
                row = (of_all(many) - of_all(few)) / (_ROWS[1] - _ROWS[0])
                small, large = (of_batch(few, size) for size in _BATCHES)
                shared = (large - small) / (_BATCHES[1] - _BATCHES[0])
                (_, all_rows), costs = step_costs(few, 0), [step_costs(few, b)[0] for b in _BATCHES]
                told = (costs[1] - costs[0]) / (_BATCHES[1] - _BATCHES[0])
                print(
                    f"{n_classes:2d} classes, {d:3d} columns: {row:5.2f} a row of all "
                    f"({all_rows / _ROWS[0]:.2f}), {shared:5.1f} a shared row ({told:.1f}), "
                    f"{small - _BATCHES[0] * shared:6.0f} a batch ({step_costs(few, 0)[0]:.0f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
