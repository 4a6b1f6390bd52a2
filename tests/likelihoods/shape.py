"""What a likelihood promises of its shape: concavity, bounds, its link, an increasing mean."""

import numpy as np

from tests.likelihoods.known import reference, wide


def check_shape(name, likelihood):
    """Raise where the curvature is not of the sign, or of the size, that is promised.

    A posterior under a log-concave prior is taken for log-concave, so that a likelihood must be
    so in its predictors.
    """
    K = likelihood.n_predictors
    of_row = reference(name, likelihood)
    u, y = wide(likelihood, 8.0)
    direction = np.random.default_rng(7).standard_normal((1, K, u.shape[2]))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    step = np.zeros_like(u)
    step[:, :K] = 0.02 * direction
    with np.errstate(invalid="ignore"):  # where all three densities are 0, nothing is said
        bend = of_row(u + step, y[None]) - 2.0 * of_row(u, y[None]) + of_row(u - step, y[None])
    scale = np.abs(of_row(u, y[None])) * 1e-14
    concave = not np.any(bend > 4.0 * scale + 1e-15)
    told = "the log density is not concave in the predictors, or its terms cancel and lose digits"
    assert concave or not likelihood.log_concave, told
    assert likelihood.log_concave or not concave, "the log density is concave: log_concave=True"
    largest = []
    for reach in (5.0, 10.0):
        u, y = wide(likelihood, reach)
        H = likelihood.curvature(u, y)[0]
        largest.append(np.abs(np.linalg.eigvalsh(np.moveaxis(H, 2, 0))).max())
    bounded = largest[1] < 3.0 * largest[0]
    said = likelihood.bounded_curvature
    assert bounded == said, f"bounded_curvature={said}, and it grows by {largest[1] / largest[0]:g}"


def check_link(name, likelihood):
    """Raise where predictions overflow, and no error would name what to check."""
    u = np.zeros((1, likelihood.n_local, 1))
    u[:, : likelihood.n_predictors] = 800.0  # own coordinates have no link
    with np.errstate(all="ignore"):
        mean = likelihood.mean(u)
    assert likelihood.log_link or np.isfinite(mean).all(), "log_link is empty, and means overflow"


def check_increasing(name, likelihood):
    """Raise where the mean does not increase with the predictor alone, as is promised."""
    if not likelihood.increasing:
        return
    eta = np.linspace(-8.0, 8.0, 161)
    mean = likelihood.mean(eta[None, None])  # without own parameters, as predictions call it
    assert np.all(np.diff(mean) > 0), "increasing=True, and the mean does not increase"
    for t in (-1.0, 1.0):
        own = np.full((1, len(likelihood.own), len(eta)), t)
        beside = likelihood.mean(np.concatenate([eta[None, None], own], axis=1))
        assert np.all(beside == mean), "increasing=True, and the mean depends on own parameters"
