"""Means and sds of the wide logistic posteriors, from a long run that shares no code with ours.

``python -m benchmarks.wide_reference 3000 1000 300`` runs for 300 CPU seconds and saves what
``benchmarks.wide`` compares the default fits with. It is plain Hamiltonian Monte Carlo (Neal 2011,
Figure 2): leapfrog steps of a fixed number and a jittered size, forces in single precision,
energies in double, 16 chains that begin at the prior's mean and a metric of all rows alike,
``w X^T X + prior precision``, whose one number w makes the mean whitened variance 1.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from scipy import linalg

from benchmarks.wide import make_rows

CACHE = Path(__file__).with_name("cached")
N_CHAINS = 16
PATH = 1.6
WARM_UP = 25  # trajectories of each of four rounds


class Target:
    """Log density in the coordinates z, ``theta = R z``, and its gradient."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        self.precision = np.append(X.var(axis=0), 0.0)  # the prior sd is 1 over a column's sd
        self.rows = np.column_stack([X, np.ones(len(y))]) * (2.0 * y - 1.0)[:, None]

    def whiten(self, weight: float) -> None:
        """Set the metric."""
        H = weight * (self.rows.T @ self.rows) + np.diag(self.precision)
        self.root = linalg.solve_triangular(
            linalg.cholesky(H, lower=True), np.eye(len(H)), lower=True
        ).T
        self.seen = self.rows @ self.root
        self.seen_32 = self.seen.astype(np.float32)
        self.prior_32 = ((self.root.T * self.precision) @ self.root).astype(np.float32)

    def force(self, z: np.ndarray) -> np.ndarray:
        v = np.minimum(z @ self.seen_32.T, np.float32(80.0))
        return (1.0 / (1.0 + np.exp(v))) @ self.seen_32 - z @ self.prior_32

    def energy(self, z: np.ndarray) -> np.ndarray:
        z = z.astype(float)
        theta = z @ self.root.T
        prior = 0.5 * np.square(theta) @ self.precision
        return prior + np.logaddexp(0.0, -(z @ self.seen.T)).sum(axis=1)


def trajectory(
    target: Target, z: np.ndarray, step: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Next positions, and whether each was accepted."""
    sizes = (step * rng.uniform(0.8, 1.2, (len(z), 1))).astype(np.float32)
    p = rng.standard_normal(z.shape).astype(np.float32)
    start = target.energy(z) + 0.5 * np.square(p, dtype=float).sum(axis=1)
    new = z + 0.5 * sizes * p
    for _ in range(round(PATH / step) - 1):
        p = p + sizes * target.force(new)
        new = new + sizes * p
    p = p + sizes * target.force(new)
    new = new + 0.5 * sizes * p
    end = target.energy(new) + 0.5 * np.square(p, dtype=float).sum(axis=1)
    accepted = np.log(rng.random(len(z))) < start - end
    return np.where(accepted[:, None], new, z), accepted


def run(n: int, d: int, seconds: float) -> dict[str, np.ndarray]:
    """Moments of the coefficients and the intercept, after a warm-up."""
    target, rng = Target(*make_rows(n, d)), np.random.default_rng(2024)
    weight, theta = 0.02, np.zeros((N_CHAINS, d + 1))
    step = 0.05
    for _ in range(4):
        target.whiten(weight)
        z = linalg.solve_triangular(target.root, theta.T).T.astype(np.float32)
        draws = []
        for t in range(WARM_UP):
            z, accepted = trajectory(target, z, step, rng)
            step *= np.exp(0.3 * (accepted.mean() - 0.7) / (1.0 + 0.1 * t))
            draws.append(z.astype(float) @ target.root.T)
        theta = draws[-1]
        late = np.concatenate(draws[WARM_UP // 2 :])
        free = d + 1 - target.precision @ late.var(axis=0)
        weight = free / (late @ target.rows.T).var(axis=0).sum()
        print(f"step {step:.3f}, weight {weight:.4f}", flush=True)
    target.whiten(weight)
    z = linalg.solve_triangular(target.root, theta.T).T.astype(np.float32)
    first, second = np.zeros((2, 2, N_CHAINS, d + 1))
    count, rate, begun = 0, 0.0, time.process_time()
    halves = [0, 0]
    while time.process_time() - begun < seconds:
        z, accepted = trajectory(target, z, step, rng)
        theta = z.astype(float) @ target.root.T
        half = int(time.process_time() - begun > seconds / 2)
        first[half] += theta
        second[half] += np.square(theta)
        halves[half] += 1
        count, rate = count + 1, rate + accepted.mean()
    means = (first / np.reshape(halves, (2, 1, 1))).reshape(-1, d + 1)
    mean = first.sum(axis=(0, 1)) / (count * N_CHAINS)
    sd = np.sqrt(second.sum(axis=(0, 1)) / (count * N_CHAINS) - np.square(mean))
    # of the mean of 32 half chains
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    print(
        f"{count} trajectories, acceptance {rate / count:.2f}, step {step:.3f}, standard error of "
        f"a mean {np.sqrt(np.mean(np.square(error / sd))):.4f} sds"
    )
    return {"mean": mean, "sd": sd, "error": error}


def main() -> None:
    """Run and save."""
    n, d, seconds = (int(given) for given in sys.argv[1:4])
    found = {name: values.astype(np.float32) for name, values in run(n, d, seconds).items()}
    np.savez_compressed(CACHE / f"wide-{n}x{d}.npz", **found)


if __name__ == "__main__":
    main()
