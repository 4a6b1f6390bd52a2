"""Posterior sd of a group scale when SGLD takes minibatches of groups, against a grid.

The model has 1,000 groups of 5 rows with normal noise of sd 1, and effects that are integrated out.
"""

from __future__ import annotations

import numpy as np
from _figure import parse
from _numbers import measured

L, M, BATCH, ETA, CHAINS, STEPS = 1000, 5, 50, 0.05, 64, 6000


class Groups:
    """Log density of (log scale, log noise sd) as a sum over groups."""

    def __init__(self, scale, rng):
        rows = scale * rng.normal(size=(L, 1)) + rng.normal(size=(L, M))
        self.within = np.square(rows - rows.mean(axis=1, keepdims=True)).sum(axis=1)
        self.between = M * np.square(rows.mean(axis=1))

    def log_density(self, a, c):
        """Log posterior at log scales a and log noise sds c."""
        s2, v = np.exp(2 * a), np.exp(2 * c)
        total = v + M * s2
        rows = L * (M - 1) * np.log(v) + self.within.sum() / v
        rows = rows + L * np.log(total) + self.between.sum() / total
        return -0.5 * rows - s2 / 9 + a

    def scores(self, theta, groups):
        """Gradient ``(C, batch, 2)`` of the log densities of groups."""
        s2, v = np.exp(2 * theta[:, :1]), np.exp(2 * theta[:, 1:])
        total = v + M * s2
        common = 0.5 * (self.between[groups] / total - 1.0) / total
        own = 0.5 * (self.within[groups] / v - (M - 1)) / v
        return np.stack([2 * M * s2 * common, 2 * v * (common + own)], axis=-1)


def run(groups, mode, covariance, control, rng):
    """Log scales ``(n, CHAINS)`` of chains that begin at the mode."""
    root = np.linalg.cholesky(covariance)
    theta, kept = np.repeat(mode[None], CHAINS, axis=0), []
    at_mode = groups.scores(mode[None], np.arange(L)[None])[0]
    for step in range(STEPS):
        batch = rng.integers(0, L, (CHAINS, BATCH))
        each = groups.scores(theta, batch)
        if control:
            grad = (each - at_mode[batch]).sum(axis=1) * L / BATCH + at_mode.sum(axis=0)
        else:
            grad = each.sum(axis=1) * L / BATCH
        grad[:, 0] += 1.0 - 2 * np.exp(2 * theta[:, 0]) / 9
        noise = rng.normal(size=theta.shape) @ root.T
        theta = theta + ETA * grad @ covariance + np.sqrt(2 * ETA) * noise
        if step >= STEPS // 10:
            kept.append(theta[:, 0])
    return np.array(kept)


def ratio(scale, control):
    """Posterior sd of the log scale by SGLD over that by a grid, with its standard error."""
    rng = np.random.default_rng(0)
    groups = Groups(scale, rng)
    width = (0.25, 0.25) if scale == 1.0 else (4.0, 1.2)
    a = np.linspace(np.log(scale) - width[0], np.log(scale) + width[1], 801)
    c = np.linspace(-0.12, 0.12, 401)
    value = groups.log_density(a[:, None], c)
    i, j = np.unravel_index(value.argmax(), value.shape)
    share = np.exp(value - value.max()).sum(axis=1)
    share /= share.sum()
    sd = np.sqrt(share @ np.square(a - share @ a))
    mode = np.array([a[i], c[j]])
    h = 1e-3 * np.eye(2)
    curvature = np.empty((2, 2))
    for k in range(2):
        for m in range(2):
            ends = [
                s * t * groups.log_density(*(mode + s * h[k] + t * h[m]))
                for s in (1, -1)
                for t in (1, -1)
            ]
            curvature[k, m] = -sum(ends) / 4e-6
    draws = run(groups, mode, np.linalg.inv(curvature), control, rng)
    squares = np.square(draws - draws.mean()).mean(axis=0)
    value = np.sqrt(squares.mean())
    error = squares.std() / np.sqrt(CHAINS) / (2 * value)
    return value / sd, error / sd


def main(arguments=None):
    parse(__doc__, arguments)  # --quick is no shorter: four seconds
    values = {}
    for scale, called in ((1.0, "equal to the noise"), (0.15, "small")):
        for control in (False, True):
            name = f"{called}, {'with' if control else 'without'} control variates"
            values[name] = measured(*ratio(scale, control), ".2f")
    return values


if __name__ == "__main__":
    print(main())
