"""The error of a pool, against quadrature over all rows, and against its derived size."""

import numpy as np
import pytest

from skbayes_sgld.posterior import Bernoulli, GLMPosterior, Normal
from skbayes_sgld.posterior.pooled import PooledPosterior
from skbayes_sgld.sampling import find_mode

RNG = np.random.default_rng(0)
N = 2000
X = np.exp(0.6 * RNG.standard_normal((N, 1)))  # skew, so that the third order counts
Y = (RNG.random(N) < 1 / (1 + np.exp(1.5 - X[:, 0]))).astype(float)
FULL = GLMPosterior(X, Y, Bernoulli(), Normal(scale=5.0))
MODE = find_mode(FULL, FULL.start()).theta
PRECISION = FULL.curvature(MODE)
ROOT = np.linalg.inv(np.linalg.cholesky(PRECISION)).T
AXIS = np.linspace(-5.0, 5.0, 21)
GRID = np.stack(np.meshgrid(AXIS, AXIS), axis=-1).reshape(-1, 2)
EXPANSION = FULL.expand_likelihood(MODE)


def moments(posterior):
    """Mean and sd of the whitened parameters, by quadrature."""
    log_density = posterior.log_density(MODE + GRID @ ROOT.T)
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    mean = share @ GRID
    return mean, np.sqrt(share @ np.square(GRID - mean))


EXACT = moments(FULL)


def errors(size, n_pools):
    """Errors of means and sds next to pools of so many rows ``(n_pools, 2)``."""
    found = []
    for _ in range(n_pools):
        rows = RNG.choice(N, size, replace=False)
        weight = np.full(size, N / size)
        pool = GLMPosterior(X[rows], Y[rows], Bernoulli(), Normal(scale=5.0), sample_weight=weight)
        mean, sd = moments(PooledPosterior(pool, EXPANSION, MODE, PRECISION))
        found.append((mean - EXACT[0], sd / EXACT[1] - 1.0))
    return np.moveaxis(np.array(found), 1, 0)


@pytest.fixture(scope="module")
def measured():
    return {size: errors(size, 50) for size in (50, 200, 800)}


def test_errors_of_means_are_as_large_as_derived(measured):
    design = np.column_stack([X, np.ones(N)])
    p = 1.0 / (1.0 + np.exp(-design @ MODE))
    z = design @ ROOT
    third = -p * (1 - p) * (1 - 2 * p)
    each = 0.5 * N * third[:, None] * np.square(z).sum(axis=1, keepdims=True) * z
    for size, (of_mean, _) in measured.items():
        expected = np.sqrt(each.var(axis=0) / size * (1 - size / N))
        # a root mean square of 50 errors, of heavier tails than the normal
        assert np.allclose(np.sqrt(np.mean(of_mean**2, axis=0)), expected, rtol=0.4)
        assert np.abs(of_mean.mean(axis=0)).max() < 4 * expected.max() / np.sqrt(50) + 0.002


def test_errors_fall_with_the_root_of_the_pool(measured):
    for k in (0, 1):
        rms = [np.sqrt(np.mean(found[k] ** 2)) for found in measured.values()]
        # four times the rows, of which the last step leaves 0.6 out where 0.9 were
        assert 1.4 < rms[0] / rms[1] < 3.2 and 1.7 < rms[1] / rms[2] < 3.7
    assert np.abs(measured[800][0]).max() < 0.02
    assert np.abs(measured[800][1]).max() < 0.02
