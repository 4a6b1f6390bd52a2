"""How a likelihood falls far out: along an intercept, and along directions of the columns."""

import numpy as np

from skbayes_sgld.likelihoods import LabelLikelihood
from tests.likelihoods.known import reference, wide


def accepts(likelihood, y):
    """Whether the observations are ones that the likelihood can have."""
    try:
        likelihood.check_target(y)
    except ValueError:
        return False
    return True


def check_level(name, likelihood):
    """Raise where the tails of an intercept are not those that are promised."""
    of_row, K = reference(name, likelihood), likelihood.n_predictors
    weight = np.array([0.5, 1.0, 2.0, 0.25])
    samples = [[0.0] * 4, [1.0] * 4, [0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 1.0]]
    if isinstance(likelihood, LabelLikelihood) and likelihood.n_classes > 2:
        samples += [[0.0, 1.0, 2.0, 1.0], [2.0] * 4]
    if likelihood.whole and not accepts(likelihood, np.zeros(4)):  # counts of at least 1
        samples = np.array(samples) + 1.0
    if not (likelihood.whole or isinstance(likelihood, LabelLikelihood)):
        at_zero = np.zeros((3, likelihood.n_local, 4))
        samples = likelihood.sample(at_zero, np.random.RandomState(2))
    for y in map(np.array, samples):
        falls = []
        for direction in np.vstack([np.eye(K), -np.eye(K)]):
            at = []
            for far in (30.0, 31.0):
                u = np.zeros((1, likelihood.n_local, 4))
                u[0, :K] = far * direction[:, None]
                at.append(float(of_row(u, y[None])[0] @ weight))
            falls.append(at[0] - at[1])
        held = likelihood.level_weight(y, weight)
        free = min(falls) < 1e-6
        without = likelihood.level_weight(y) == 0.0
        told = (
            f"level_weight without weights is {likelihood.level_weight(y):g}, not that of the tail"
        )
        assert without == free, f"{told}, whose slope with weights is {min(falls):g}, at y={y}"
        if np.isfinite(held):
            told = f"level_weight is {held:g}, not the slope of the tail, {min(falls):g}"
            assert abs(min(falls) - held) < 1e-6, told
        else:
            least = 10.0 if likelihood.log_concave else 0.0  # where it falls like a power
            told = f"level_weight is inf, and the slope of the tail {min(falls):g}"
            assert min(falls) > least, told


def check_gains(name, likelihood):
    """Raise where a row goes to 0 along a direction of which its gains say otherwise."""
    rng, of_row, K = np.random.default_rng(9), reference(name, likelihood), likelihood.n_predictors
    u, y = wide(likelihood, 1.0)
    design = rng.standard_normal((40, 3))
    if likelihood.gains(design, y[:40]) is None:
        here = u[..., :40]  # the parameters that the observations were drawn under
        there = here.copy()
        there[:, 0] += rng.choice([-200.0, 200.0], 40)
        with np.errstate(over="ignore"):
            falls = of_row(there, y[None, :40]) < of_row(here, y[None, :40])
        near = np.abs(y[:40] - here[0, 0]) < 100.0  # of heavy tails, some are nearer to there
        assert falls[0, near].all(), "rows that do not fall have no gains"
        return
    for i in range(40):
        gains = likelihood.gains(design[i : i + 1], y[i : i + 1])
        for _ in range(4):
            v, way = rng.standard_normal(K * 3), np.zeros(likelihood.n_local)
            way[:K] = v.reshape(K, 3) @ design[i]
            way /= np.abs(way).max()
            path = u[0, :, i, None] + way[:, None] * np.linspace(0.0, 30.0, 61)
            with np.errstate(all="ignore"):  # beyond the range of numbers there is no difference
                change = np.diff(of_row(path[None], np.full((1, 61), y[i]))[0])
            rises, end = not np.any(change < -1e-12), np.abs(change[-4:])
            settles = end[-1] < max(1e-9, 0.8 * end[0])  # a fall to 0 goes on, or like a power
            held = bool(np.all(gains @ v >= 0.0))
            told = f"gains of row {i}, y={y[i]:g}: along {way[:K]} the log density "
            told += "does not go to -inf" if rises or settles else "goes to -inf"
            assert held == (rises or settles), f"{told}, and gains @ v is {gains @ v}"
