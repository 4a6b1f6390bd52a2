"""Models whose prior has hyperparameters, in coordinates without their funnels.

Given hyperparameters and noise, the coefficients are normal under a normal likelihood, and nearly
so under others. The coordinates are z, the coefficients standardised by this conditional
distribution, and the standardised hyperparameters and own parameters of the likelihood.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skbayes_sgld._linalg import inverse_root
from skbayes_sgld._typing import Array
from skbayes_sgld.posterior.glm import GLMPosterior
from skbayes_sgld.posterior.hierarchical import HierarchicalPosterior
from skbayes_sgld.posterior.parameterizations.base import Affine, Map, Reparameterized
from skbayes_sgld.posterior.parameterizations.conditional import (
    CholeskyScales,
    EigenScales,
    NormalCoefficients,
    NormalGivenScales,
)
from skbayes_sgld.posterior.parameterizations.half_cauchy import HalfCauchyScales
from skbayes_sgld.posterior.parameterizations.noncentered import NoiseScale
from skbayes_sgld.priors import Flat
from skbayes_sgld.priors.by_column import independent_normal

# Time of trajectories, longer than HMC's, as the common scale of a horseshoe is the slowest
# parameter. An independent draw of it takes 4.3, 22 and 12 gradients with 10, 30 (breast cancer)
# and 60 columns, in place of 5.8, 27 and 18
_PATH_LENGTH = 2.2
# Time with normal coordinates of the scales: those of a hierarchical normal prior, and of a
# horseshoe with copied columns. Squares mix slowly in trajectories of the usual 2.0, which need
# longer burn-ins: 234 rows of 64 columns and seven classes take 5 seconds in place of 3
_SHORT_PATH = 1.8

# Correlation of two columns from which an effect may belong to either. Their scales then move along
# a narrow bend, which is narrower still in the coordinates of HalfCauchyScales: with three copied
# columns of eleven they take twice as long to an effective draw
_COPIES = 0.999


class HyperScales:
    """Log r and log t as functions of the hyperparameters and the likelihood's own parameters.

    Under a common scale r is the ratio of the prior precisions to those at ``eta``; otherwise log r
    holds the logs of all prior precisions.

    Parameters
    ----------
    posterior : HierarchicalPosterior
    theta : ndarray of shape (P,)
        Parameters with the coefficients and intercepts of the origin, and the reference of the
        hyperparameters and own parameters, at which t is 1.
    known : ndarray of shape (L,)
        Logs of the prior precisions that are not learned, about the origin; minus infinity for the
        others, and for those that are counted with the rows.
    """

    def __init__(self, posterior: HierarchicalPosterior, theta: Array, known: Array) -> None:
        self._posterior, self._prior = posterior, posterior.scales.prior
        self._columns = posterior.scales.columns
        base, h, _ = posterior.split(theta[None])
        self._blocks, self._m = posterior.model.parameters, h.shape[1]
        self._known = known
        self._noise = NoiseScale.of(posterior.flat, base[0]) if posterior.infers_noise else None
        self._constant = 0.0 if self._noise else float(posterior.flat.log_density(base)[0])
        self._log_scale = self._prior.log_scale(h)[0]

    def log_precision(self, eta: Array) -> Array:
        """Logs of the prior precisions ``(C, L)``; minus infinity for intercepts."""
        full = np.tile(self._known, (len(eta), 1))
        log_scale = self._prior.log_scale(eta[:, : self._m])
        self._blocks.coef(full)[..., self._columns] = -2.0 * log_scale[:, None]
        return full

    def at(self, eta: Array) -> tuple[Array, Array]:
        """Log r and log t."""
        log_t = self._noise.at(eta)[1] if self._noise else np.zeros(len(eta))
        if not self._prior.common:
            return self.log_precision(eta), log_t
        log_scale = self._prior.log_scale(eta[:, : self._m])
        return -2.0 * (log_scale[:, 0] - self._log_scale[0]), log_t

    def pull_back(self, eta: Array, in_log_r: Array, in_log_t: Array) -> Array:
        """Gradient in eta ``(C, m)``."""
        if self._prior.common:
            in_log_scale = np.zeros((len(eta), len(self._log_scale)))
            in_log_scale[:, 0] = -2.0 * in_log_r
        else:
            learned = self._blocks.coef(in_log_r)[..., self._columns]
            in_log_scale = -2.0 * learned.sum(axis=1)
        in_eta = np.zeros_like(eta)
        in_eta[:, : self._m] = self._prior.pull_back(eta[:, : self._m], in_log_scale)
        if self._noise:
            in_eta[:, self._m] = -in_log_t
        return in_eta

    def value_and_grad(self, eta: Array) -> tuple[Array, Array]:
        """Log density at the origin ``(C,)``, of one predictor, and its gradient."""
        h, gamma = eta[:, : self._m], eta[:, self._m] if self._noise else None
        value, in_h, in_gamma = self._posterior.hyper_value_and_grad(h, gamma)
        log_scale = self._prior.log_scale(h)
        value = value + self._constant - log_scale.sum(axis=1)
        in_h = in_h + self._prior.pull_back(h, np.full(log_scale.shape, -1.0))
        if self._noise is None:
            return value, in_h
        noise_value, slope = self._noise.value_and_grad(eta)
        return value + noise_value, np.column_stack([in_h, slope[:, 0] + in_gamma])


def noncentered_scales(
    posterior: HierarchicalPosterior,
    center: Array,
    eta: Array,
    root: Array | None,
    power: float,
    temperature: float,
) -> Reparameterized:
    """The posterior in coordinates of standardised coefficients and scales.

    Parameters
    ----------
    posterior : HierarchicalPosterior
    center : ndarray of shape (n_linear,)
        Coefficients and intercepts at which the log likelihood is expanded.
    eta : ndarray of shape (m,)
        Hyperparameters and own parameters whose new coordinates are 0.
    root : ndarray of shape (m, m) or None
        Root of their covariance; None for the identity.
    power : float
        Parameter of :class:`EigenScales`, under a common scale.
    temperature : float
        Temperature of the sampler.
    """
    blocks, L = posterior.model.parameters, posterior.n_linear
    log_known = np.full((1, L), -np.inf)
    origin = posterior.start()[:L]  # coefficients of 0, so that the level of y costs no precision
    rows, known = _rows(posterior)
    if known is not None:
        location, scale = known
        blocks.coef(origin[None])[...] = location
        blocks.coef(log_known)[...] = -2.0 * np.log(scale)
    scales = HyperScales(posterior, np.append(origin, eta), log_known[0])
    about = CholeskyScales(
        **_expansion(rows, origin, center[None], eta[len(eta) - posterior.n_own :])
    )
    coefficients: EigenScales | CholeskyScales = about
    if posterior.scales.prior.common:
        prior = np.exp(scales.log_precision(eta[None])[0])
        unit = inverse_root(about.H + np.diag(prior))
        share, vectors = np.linalg.eigh(unit.T @ (prior[:, None] * unit))
        basis = unit @ _without_ties(share, vectors)
        coefficients = EigenScales(basis, np.clip(share, 0.0, 1.0), about.g @ basis, 0.0, power)
    of_coef = np.isfinite(scales.log_precision(eta[None])[0])
    curved = not posterior.scales.prior.common and not _has_copies(about.H, of_coef)
    root = np.eye(len(eta)) if root is None else root
    scale_map = _scale_map(posterior, eta, root) if curved else Affine(eta, root)
    coordinates = NormalGivenScales(origin, coefficients, scales, scale_map)
    quadratic, facts = posterior.model.likelihood.quadratic, {"path_length": _SHORT_PATH}
    if isinstance(scale_map, HalfCauchyScales):
        light_tailed = known is not None and (quadratic or not posterior.n_own)
        facts = {"light_tailed": light_tailed, "path_length": _PATH_LENGTH}
    kind = Reparameterized if quadratic or posterior.scales.prior.common else GivenScales
    if quadratic and rows.linear_prior.flat:
        kind = NormalCoefficients
    return kind(posterior, coordinates, temperature, **facts)


def _rows(posterior: HierarchicalPosterior) -> tuple[GLMPosterior, tuple[Array, Array] | None]:
    """Model whose log density is expanded, and location and scale of known normal priors.

    If columns have separate precisions, these priors are not counted with the rows.
    """
    flat = posterior.flat
    known = independent_normal(flat.prior, posterior.model.n_features)
    if posterior.scales.prior.common or known is None:
        return flat, None
    return flat.with_prior(replace(flat.linear_prior, coef=Flat())), known


def _expansion(rows: GLMPosterior, origin: Array, draws: Array, own: Array) -> dict[str, Array]:
    """Quadratic expansion ``g' x - x' H x / 2`` of a log density about the origin: H and g.

    Its score and curvature are averaged over ``draws (S, L)`` of the coefficients, with the own
    parameters ``own``.
    """
    theta = np.hstack([draws, np.tile(own, (len(draws), 1))])
    found, L = rows.averaged_over(None).expand(theta), len(origin)  # a kink has no curvature
    H = found.curvature[:L, :L]
    return {"H": H, "g": H @ (draws.mean(axis=0) - origin) + found.grad[:L]}


class GivenScales(Reparameterized):
    """Posterior in :class:`CholeskyScales`, whose likelihood is not quadratic."""

    def about_draws(self, draws: Array) -> GivenScales:
        """Posterior whose likelihood is expanded over draws ``(S, P)``.

        Averages over draws are the best quadratic approximation over the posterior (Opper &
        Archambeau 2009, eq. 8). With 30 columns (breast cancer) the curvature at the mode of the
        scales is 1.5 times the average, and coefficients are up to 1.2 sds off their means: 4,000
        draws are worth 1,750, and 2,400 about the draws of a pilot. Coefficients that are
        standardised one by one gain nothing. If the curvature overflows at a draw, the coordinates
        stay as they are.
        """
        inner, at, L = self.inner, self.coordinates, self.inner.n_linear
        eta = at.scale_map.forward(np.zeros((1, self.n_params - L)))[0]
        own = eta[len(eta) - inner.n_own :]
        with np.errstate(all="ignore"):
            coef = at.forward(draws)[:, :L]
            expansion = _expansion(_rows(inner)[0], at.origin, coef, own)
        if not all(np.isfinite(each).all() for each in expansion.values()):
            return self
        about = replace(at.coefficients, **expansion)
        return self._with(coordinates=NormalGivenScales(at.origin, about, at.scales, at.scale_map))


def _scale_map(posterior: HierarchicalPosterior, eta: Array, root: Array) -> Map:
    """Map from coordinates to hyperparameters and own parameters, which are ``eta (m,)`` at 0."""
    gamma = float(eta[-1]) if posterior.infers_noise else None
    log_medians = posterior.scales.prior.log_medians(gamma)
    if np.isnan(log_medians).all():
        return Affine(eta, root)
    return HalfCauchyScales(np.append(log_medians, np.full(posterior.n_own, np.nan)), eta, root)


def _has_copies(H: Array, of_coef: Array) -> bool:
    """Whether two columns are nearly the same, by the information of the rows about them.

    ``of_coef (L,)`` are the coefficients; the other parameters are intercepts.
    """
    others = ~of_coef
    across = H[of_coef][:, others]
    S = H[of_coef][:, of_coef] - across @ np.linalg.pinv(H[others][:, others]) @ across.T
    with np.errstate(all="ignore"):  # columns that the rows do not inform about
        size = np.sqrt(np.diagonal(S))
        correlation = np.abs(S / size / size[:, None])
    np.fill_diagonal(correlation, 0.0)
    return bool(np.any(correlation > _COPIES))


def by_columns(found: Reparameterized) -> Reparameterized:
    """Posterior with :class:`ColumnScales` in place of :class:`CholeskyScales`.

    They agree where the coordinates of the scales are 0.
    """
    at, facts = found.coordinates, found.facts
    eta = at.scale_map.forward(np.zeros((1, found.n_params - len(at.origin))))
    (log_r,), (log_t,) = at.scales.at(eta)
    coefficients = at.coefficients.by_columns(log_r, log_t)
    coordinates = NormalGivenScales(at.origin, coefficients, at.scales, at.scale_map)
    same = {"light_tailed": facts.light_tailed, "path_length": facts.path_length}
    return Reparameterized(found.inner, coordinates, found.temperature, **same)


def _without_ties(share: Array, vectors: Array) -> Array:
    """Eigenvectors whose signs, and basis for equal eigenvalues, do not depend on rounding errors.

    Directions without a prior have share 0, and directions without data share 1. In either space
    the basis consists of eigenvectors of the matrix ``diag(1, ..., L)``.
    """
    number, unique = np.arange(1.0, len(vectors) + 1.0), vectors.copy()
    for among in (share < 1e-9, share > 1.0 - 1e-9):
        tied = vectors[:, among]
        unique[:, among] = tied @ np.linalg.eigh((tied.T * number) @ tied)[1]
    return unique * np.where(np.sqrt(number) @ unique < 0.0, -1.0, 1.0)
