"""The coordinates in which a model is sampled, if others are better than its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from skbayes_sgld._doors import Door
from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.setting_checks import AUTO
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.posterior.differences import difference_curvature
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.hierarchical import HierarchicalPosterior
from skbayes_sgld.posterior.noise_models import LogLinearNoisePosterior
from skbayes_sgld.posterior.parameterizations.base import Reparameterized
from skbayes_sgld.posterior.parameterizations.hyperparameters import noncentered_scales
from skbayes_sgld.posterior.parameterizations.noncentered import noncentered
from skbayes_sgld.posterior.parameterizations.unequal_noise import UnequalNoisePosterior
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning.mode import Mode, climb_whitened, newton_mode
from skbayes_sgld.sampling.tuning.mode_survey import survey
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

_ROWS = Door("skbayes_sgld.wide_rows.row_space", "RowSpacePosterior")
_HIERARCHICAL_ROWS = Door("skbayes_sgld.wide_rows.row_space", "HierarchicalRowSpacePosterior")
_NEEDS = {
    "centered": "a prior without hyperparameters",
    "noncentered": "a normal likelihood whose noise is inferred, and if that is unequal also few "
    "rows and normal priors",
    "row_space": "a normal prior and fewer rows than columns",
}


def reparameterize(posterior: Any, settings: Settings) -> tuple[BasePosterior, Mode | None, Choice]:
    """Posterior in the coordinates to be sampled, its mode there, if known, and the reason.

    ``"auto"`` leaves the model's own coordinates only if the metric is the curvature's and every
    step takes all rows: minibatches and other metrics refer to the coefficients themselves.

    Raises
    ------
    ValueError
        If the parameterization is not available for this model.
    """
    name, offered = settings.parameterization, posterior.facts.parameterizations
    choice = Choice.by_user(name)
    if name is AUTO:
        choice = Choice(*_choose(posterior, settings))
        name = choice.value
    elif name not in offered:
        raise ValueError(
            f"parameterization={name!r} needs {_NEEDS[name]}; set parameterization='auto' or "
            f"{offered[0]!r}."
        )
    if posterior.facts.hierarchical:
        if name == "row_space":
            posterior = _HIERARCHICAL_ROWS.open()(posterior, settings.tau)
        if settings.uses_curvature:
            return *standardise(posterior, settings.tau), choice
        center, eta = np.split(posterior.start(), [posterior.n_linear])
        coordinates = noncentered_scales(posterior, center, eta, None, 0.0, settings.tau)
        return coordinates, None, choice
    if name == "row_space":
        posterior = _ROWS.open()(posterior, settings.tau)
    if name == "noncentered" and isinstance(posterior, LogLinearNoisePosterior):
        return *integrate_mean(posterior, settings.tau), choice
    if name != "centered" and "noncentered" in posterior.facts.parameterizations:
        return *noncenter(posterior, settings.tau), choice
    return posterior, None, choice


def _choose(posterior: Any, settings: Settings) -> tuple[str, str]:
    offered = posterior.facts.parameterizations
    if len(offered) == 1:
        return offered[0], "the model's own coordinates"
    if posterior.facts.hierarchical:
        n, d = posterior.n_samples, posterior.model.n_features
        # in the row space 20 rows of 50 columns take a quarter of the time, 15 rows of 30 the same
        # time
        if d < 40:
            return "noncentered", "coefficients and their scale are then nearly independent"
        return "row_space", f"{n} rows say nothing of {d - n} directions of {d}"
    if not settings.uses_curvature:
        name = settings.preconditioner
        return "centered", f"preconditioner={name!r} is of the model's own coordinates"
    if not settings.may_take_all_rows:
        return "centered", "minibatches are of the model's own coordinates"
    # many sparse rows would have a dense basis
    spans = posterior.n_samples <= MAX_DENSE or not issparse(posterior.X)
    # with at most half as many rows as columns, only trajectories in the row space are cheap. But a
    # linear model is normal given its noise, and models of labels take few steps
    likelihood = posterior.likelihood
    soft = likelihood.averages and likelihood.bounded_curvature
    costly = 2 * posterior.n_samples <= posterior.n_features and not (soft or likelihood.quadratic)
    most = THRESHOLDS.many_costly_columns if costly else THRESHOLDS.many_columns
    many = posterior.n_params > most
    if "row_space" in offered and many and spans:
        n, d = posterior.n_samples, posterior.n_features
        return "row_space", f"{n} rows say nothing of {d - n} directions of {d}"
    if "noncentered" in offered:
        return "noncentered", "noise and coefficients are then independent"
    return "centered", "the model's own coordinates"


def integrate_mean(
    posterior: LogLinearNoisePosterior, temperature: float
) -> tuple[UnequalNoisePosterior, Mode | None]:
    """Linear model with unequal noise in coordinates of normal coefficients, and its centre."""
    transformed = UnequalNoisePosterior(posterior, temperature)
    moments = posterior.centered_normal() or posterior.centered_normal(anyway=True)
    if moments is None:
        return transformed, None
    center, precision = moments
    L = posterior.parameters.n_linear
    H = np.eye(len(center))
    H[L:, L:] = precision[L:, L:]
    center = np.append(np.zeros(L), center[L:])
    return transformed, Mode.from_curvature(center, H)


def noncenter(posterior: GLMPosterior, temperature: float) -> tuple[Reparameterized, Mode]:
    """Normal linear model in non-centered coordinates, and its mode there.

    Under a normal prior all coordinates but the noise are standard normal: the mode is the origin
    and the metric the identity.
    """
    start, spread = posterior.start(), None
    gamma = float(start[-1])
    # if the noise scales all priors, mode and coordinates do not depend on its level; otherwise two
    # rounds find the level, and the third uses it
    for _ in range(1 if posterior.linear_prior.follows_noise else 3):
        conditional = posterior.given_own(np.array([gamma]))
        center = newton_mode(conditional, start[:-1], spread=spread)
        root = center.metric.root
        transformed, line = noncentered(posterior, center.theta, root, gamma, temperature)
        distance = abs(line.level[0] - gamma)
        # in sds of the log noise variance; any level gives the same posterior
        if distance < 0.01 * line.root[0, 0]:
            break
        start, spread = np.append(center.theta, gamma), center.metric.marginal_sd
        gamma = float(line.level[0])
    P = posterior.n_params
    return transformed, Mode(np.zeros(P), Diagonal(np.ones(P)))


def standardise(
    posterior: HierarchicalPosterior, temperature: float = 1.0
) -> tuple[Reparameterized, Mode]:
    """Posterior in coordinates about its mode in the hyperparameters, and its mode there.

    At z = 0 the log density is that of the hyperparameters with the coefficients integrated out:
    exactly for a normal likelihood, otherwise by the Laplace approximation.
    """
    L = posterior.n_linear
    center, eta = np.split(posterior.start(), [L])
    if (model := posterior.model).facts.has_other_starts:  # under the prior's unit of scale
        best = survey(model, newton_mode(model, model.start()), temperature).mode.theta
        center, eta[-posterior.n_own :] = best[:L], best[L:]
    for _ in range(3):  # each expands the likelihood at the last one's mode
        center = newton_mode(posterior.given(eta), center).theta
        transformed = noncentered_scales(posterior, center, eta, None, 0.0, temperature)
        shift, covariance = _marginal_mode(transformed, L)
        eta = eta + shift
    power = _power(posterior, center, eta, np.sqrt(covariance[0, 0]))
    transformed = noncentered_scales(posterior, center, eta, None, power, temperature)
    shift, covariance = _marginal_mode(transformed, L)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 1e-3 * eigenvalues[-1]))
    transformed = noncentered_scales(posterior, center, eta + shift, root, power, temperature)
    P = transformed.n_params
    return transformed, Mode(np.zeros(P), Diagonal(np.ones(P)))


def _power(posterior: HierarchicalPosterior, start: Array, eta: Array, sd: float) -> float:
    """Power of the prior precision that the information of the rows follows, from 0 to 1.

    It is measured at the conditional modes, one sd of the log common scale apart.
    """
    if posterior.model.likelihood.quadratic or not posterior.scales.prior.common:
        return 0.0
    ends = [posterior.given(np.append(eta[0] + shift, eta[1:])) for shift in (0.0, sd)]
    modes = [newton_mode(conditional, start) for conditional in ends]
    root = modes[0].metric.root
    logs = []
    for conditional, mode in zip(ends, modes, strict=True):
        H = conditional.expand_likelihood(mode.theta).curvature
        logs.append(np.log(np.trace(root.T @ H @ root)))
    return float(np.clip(0.5 * (logs[0] - logs[1]) / sd, 0.0, 1.0))


def _marginal_mode(posterior: Reparameterized, n_linear: int) -> tuple[Array, Array]:
    """Mode in the hyperparameters at z = 0, and their covariance by the curvature there."""

    def at(v: Array) -> Array:
        return np.hstack([np.zeros((len(v), n_linear)), v])

    def value_and_grad(v: Array) -> tuple[Array, Array]:
        value, grad = posterior.value_and_grad(at(v))
        return value, grad[:, n_linear:]

    with np.errstate(all="ignore"):
        start = np.zeros(posterior.n_params - n_linear)
        mode = climb_whitened(value_and_grad, start, Diagonal(np.ones(len(start))), start)
        H = difference_curvature(lambda v: posterior.grad(at(v))[:, n_linear:], mode, 0)
    eigenvalues, vectors = np.linalg.eigh(0.5 * (H + H.T))
    variances = 1.0 / np.maximum(eigenvalues, 3.0**-2)  # no log scale has an sd above 3
    covariance = (vectors * variances) @ vectors.T
    # any coordinates are valid; these are rounded, the mode to about a hundredth of an sd and the
    # covariance to three digits, so that rounding errors of the data do not change them
    unit = np.exp2(np.rint(0.5 * np.log2(np.diagonal(covariance))) - 6.0)
    digits = [float(f"{value:.2e}") for value in covariance.flat]
    return unit * np.rint(mode / unit), np.reshape(digits, covariance.shape)
