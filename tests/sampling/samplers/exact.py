"""What the steps of a sampler say without a run: variances of linear chains, and rejections.

Both show a force that is off by one per cent, which the Monte Carlo error of draws would hide.
"""

import numpy as np
from scipy import linalg


class Steps:
    """One step of a run as a map of vectors: the state of a chain, and the normals of its step."""

    def __init__(self, run, theta):
        self.run, self.arrays = run, run.sampler.init(theta[None])
        self.n_normals = run.sampler.n_normals(len(theta))
        self.sizes = {name: array.size for name, array in self.arrays.items()}
        self.origin = np.append(self._join(self.arrays), np.zeros(self.n_normals))

    def _join(self, state):
        return np.concatenate([np.reshape(state[k], (len(state[k]), -1)) for k in self.arrays], 1)

    def prepare(self, normals, previous):
        """Noise of steps, from normals ``(T, C, n)``."""
        eta = np.full(len(normals), self.run.step_size)
        return self.run.sampler.prepare(normals, previous, eta, self.run.dynamics)

    def __call__(self, vectors, normals):
        """Vectors ``(C, size)`` after a step with ``normals (C, n)``."""
        *parts, previous = np.split(vectors, np.cumsum([*self.sizes.values()]), axis=1)
        state = {
            name: part.reshape(len(vectors), *array.shape[1:])
            for (name, array), part in zip(self.arrays.items(), parts, strict=True)
        }
        noise = self.prepare(normals[None], previous)[0]
        self.run.sampler.step(state, self.run.step_size, noise, None, self.run.dynamics)
        return np.append(self._join(state), normals, axis=1)

    def matrices(self):
        """Matrices of the state and of the normals in a step, or None where it is not linear."""
        n, size = self.n_normals, self.origin.size
        rng, here = np.random.default_rng(0), self.origin
        some, normals = rng.standard_normal((20, size)), rng.standard_normal((20, n))
        with np.errstate(all="ignore"):
            still = self(here[None], np.zeros((1, n)))
            of_state = self(here + np.eye(size), np.zeros((size, n))) - still
            of_normals = self(np.tile(here, (n, 1)), np.eye(n)) - still
            moved = self(here + some, normals) - still
            linear = np.allclose(moved, some @ of_state + normals @ of_normals, rtol=1e-7)
        return (of_state.T, of_normals.T) if linear else None

    def check_prepare(self):
        """Raise where the noise of several steps is not that of one after another."""
        normals = np.random.default_rng(1).standard_normal((4, 2, self.n_normals))
        each = [self.prepare(normals[t : t + 1], normals[t - 1])[0] for t in (1, 2, 3)]
        found = self.prepare(normals[1:], normals[0])
        np.testing.assert_allclose(found, each, rtol=1e-9, err_msg="noise of several steps")


def linear_covariance(run, mean):
    """Covariance ``(P, P)`` of the chain of a run on a normal target; None if it is not linear."""
    steps = Steps(run, mean)
    found = steps.matrices()
    if found is None:
        return None
    steps.check_prepare()
    of_state, of_normals = found
    assert np.abs(np.linalg.eigvals(of_state)).max() < 1.0, "the chain does not settle"
    covariance = linalg.solve_discrete_lyapunov(of_state, of_normals @ of_normals.T)
    first = sum([*steps.sizes.values()][: list(steps.sizes).index("theta")])
    at = slice(first, first + len(mean))
    return covariance[at, at]


def rejection(run, theta):
    """Mean probability that a proposal from ``theta (C, P)`` is rejected."""
    sampler, dynamics, eta = run.sampler, run.dynamics, run.step_size
    shape = (1, len(theta), sampler.n_normals(theta.shape[1]))
    normals = np.random.default_rng(1).standard_normal(shape)
    noise = sampler.prepare(normals, normals[0], np.array([eta]), dynamics)[0]
    state = sampler.init(theta) | sampler.evaluate(theta, dynamics)
    log_ratio = sampler.propose(state, eta, noise, dynamics)[1] / float(dynamics.temperature)
    return float(-np.expm1(np.minimum(log_ratio, 0.0)).mean())
