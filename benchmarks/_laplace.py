"""Posterior sds of a logistic regression of many rows, by no code of the package.

The Laplace approximation, corrected by importance sampling. Over many rows the weights are close
to 1, so that what is estimated is a small correction: draws come in pairs on both sides of the
mode, which takes out the odd terms of the weights, and the known moments of the normal serve as
control variates.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.special import expit

_BLOCK = 20_000  # rows


def fingerprint(X: np.ndarray, y: np.ndarray) -> float:
    """Number that changes when the data do."""
    return float(np.cos(np.arange(X.shape[1])) @ (X.T @ (y + np.sin(np.arange(len(y))))))


def reference(X: np.ndarray, y: np.ndarray, prior_sd: float, n_pairs: int = 200) -> dict:
    """Posterior sds of the coefficients under a normal prior and no intercept, and their error.

    The error is one standard error of the norm of the sds, over that norm.
    """
    d, precision = X.shape[1], 1.0 / prior_sd**2
    mode = np.zeros(d)
    for _ in range(50):
        p = expit(X @ mode)
        gradient = X.T @ (y - p) - precision * mode
        hessian = (X * (p * (1 - p))[:, None]).T @ X + precision * np.eye(d)
        step = cho_solve(cho_factor(hessian), gradient)
        mode += step / max(1.0, np.sqrt(step @ hessian @ step) / 100)
        if np.sqrt(step @ hessian @ step) < 1e-9:
            break
    # rows of `moves` have covariance hessian^-1
    z = np.random.default_rng(0).standard_normal((n_pairs, d))
    moves = solve_triangular(cholesky(hessian), z.T).T
    log_weight = np.zeros((2, n_pairs))
    for start in range(0, len(y), _BLOCK):
        rows = slice(start, start + _BLOCK)
        eta = X[rows] @ mode
        shift = X[rows] @ moves.T
        base = np.logaddexp(0.0, eta)[:, None]
        for side, sign in enumerate((1.0, -1.0)):
            moved = eta[:, None] + sign * shift
            gain = np.maximum(moved, 0) + np.log1p(np.exp(-np.abs(moved))) - base
            log_weight[side] += sign * (y[rows] @ shift) - gain.sum(axis=0)
    for side, sign in enumerate((1.0, -1.0)):
        at = mode + sign * moves
        log_weight[side] -= 0.5 * precision * (np.square(at).sum(axis=1) - mode @ mode)
    log_weight += 0.5 * np.square(z).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.mean()
    # E[w m], and E[w m^2] with the normal's own second moment put in its place
    even, odd = (weight[0] + weight[1]) / 2 - 1, (weight[0] - weight[1]) / 2
    variance = np.diag(np.linalg.inv(hessian))
    first, second = odd[:, None] * moves, even[:, None] * (np.square(moves) - variance)
    sd = np.sqrt(variance + second.mean(axis=0) - first.mean(axis=0) ** 2)
    of_sd = second.std(axis=0) / np.sqrt(n_pairs) / (2 * sd)
    return {
        "fingerprint": fingerprint(X, y),
        "sd": sd.tolist(),
        "laplace_sd": np.sqrt(variance).tolist(),
        "error": float(np.linalg.norm(of_sd) / np.linalg.norm(sd)),
    }
