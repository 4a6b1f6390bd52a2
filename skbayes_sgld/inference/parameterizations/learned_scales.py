"""Coordinates of a model whose prior learns its scales, without their funnel."""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld.inference.parameterizations.base import Parameterization
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior.base import Array
from skbayes_sgld.posterior.differences import difference_curvature
from skbayes_sgld.posterior.hierarchical import HierarchicalPosterior
from skbayes_sgld.posterior.parameterizations.base import Reparameterized
from skbayes_sgld.posterior.parameterizations.hyperparameters import by_columns, noncentered_scales
from skbayes_sgld.sampling.metric import Dense, Diagonal
from skbayes_sgld.sampling.tuning.mode import Mode, climb_whitened, newton_mode
from skbayes_sgld.sampling.tuning.mode_survey import survey

# Smallest eigenvalue of the coefficients' correlation matrix, at scales that leave all as free as
# the freest, from which they are standardised one by one. At 0.6 and 0.13 (10 and 60 normal
# columns) trajectories then take as many gradients as with a factor at each point, of which each
# takes half to a fifth of the time. At 0.03 (diabetes) and 0.01 (breast cancer) they take 2.4 times
# as many, and with copied columns chains cross between these ten times less often
_COLLINEAR = 0.1


class LearnedScales(Parameterization):
    """Coefficients standardised given their scales and the noise, for priors that learn scales."""

    needs = "a prior that learns its scale"

    @classmethod
    def suits(cls, posterior: Any) -> bool:
        """Whether the prior learns a scale."""
        return bool(posterior.facts.hierarchical)

    @classmethod
    def reason(cls, posterior: Any, settings: Settings) -> str:
        """They are always taken: the model's own coordinates have a funnel."""
        return "coefficients and their scale are then nearly independent"

    @classmethod
    def apply(cls, posterior: Any, settings: Settings) -> tuple[Reparameterized, Mode | None]:
        """Posterior in these coordinates, and its mode there if the metric is the curvature's."""
        common = posterior.scales.prior.common
        if settings.tau < 1.0 or not common:
            check_temperature_of_scales(settings, cls.needs)
        if settings.uses_curvature:
            found, mode = standardise(posterior, settings.tau)
            return (found, mode) if common else _cheaper(found, mode)
        center, eta = np.split(posterior.start(), [posterior.n_linear])
        return noncentered_scales(posterior, center, eta, None, 0.0, settings.tau), None


def check_temperature_of_scales(settings: Settings, what: str) -> None:
    """Raise unless the temperature is 1; ``what`` has the scales, in words of the user.

    With L coefficients and a temperature tau below 1, the density near a scale s of 0 is of the
    order of ``s^(L - L / tau)``, whose integral is infinite; above 1 it is 0 there, whatever the
    rows say. From 2 on the tails of half-Cauchy scales have an infinite integral, where nothing
    else bounds these.
    """
    if settings.tau != 1.0:
        raise ValueError(
            f"temperature={settings.given_temperature!r} does not go with {what}, whose scales a "
            "temperature takes to 0 or away from it, whatever the rows say; set temperature=1, and "
            "give all rows one sample_weight, such as 0.5, to weaken what they say."
        )


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
        eta, covariance = _marginal_mode(transformed, L)
    power = _power(posterior, center, eta, np.sqrt(covariance[0, 0]))
    if power:  # at 0 the density of the scales stays
        transformed = noncentered_scales(posterior, center, eta, None, power, temperature)
        eta, covariance = _marginal_mode(transformed, L)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 1e-3 * eigenvalues[-1]))
    transformed = noncentered_scales(posterior, center, eta, root, power, temperature)
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
    """Mode eta of the scales at z = 0, and the covariance of their coordinates there."""

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
    eta = posterior.coordinates.scale_map.forward((unit * np.rint(mode / unit))[None])[0]
    return eta, np.reshape(digits, covariance.shape)


def _cheaper(found: Reparameterized, mode: Mode) -> tuple[Reparameterized, Mode]:
    """Coefficients standardised one by one, if no scales make them collinear."""
    at = found.coordinates
    L = len(at.origin)
    scales = at.scale_map.forward(np.zeros((1, found.n_params - L)))[0], found.inner.start()[L:]
    (log_r, of_prior), log_t = at.scales.at(np.stack(scales))
    learned = np.isfinite(log_r)
    free = of_prior + (log_r[learned] - of_prior[learned]).min()  # all as free as the freest
    if np.linalg.eigvalsh(at.coefficients.correlation(free, log_t[0]))[0] < _COLLINEAR:
        return found, mode
    precision = np.eye(found.n_params)
    precision[:L, :L] = np.linalg.inv(at.coefficients.correlation(log_r, log_t[0]))
    return by_columns(found), Mode(mode.theta, Dense.from_curvature(precision))
