r"""Mixed models with normal noise, whose coefficients and effects are integrated out.

Given the hyperparameters h and the noise variance, all coefficients are normal. What is sampled are
the few numbers ``(h, log sigma^2)``; the gradient of their log density is the mean of that of the
joint density over the coefficients (Fisher's identity), which takes their second moments. The
coefficients of a draw are an exact draw given these numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skbayes_sgld._linalg import GROUP, inverse_factors
from skbayes_sgld._random import normals_of
from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.gram import LabelGram
from skbayes_sgld.mixed.integrated import IntegratedPosterior
from skbayes_sgld.mixed.posterior import MixedPosterior
from skbayes_sgld.mixed.working import WorkingModel

_NUMBERS = 2**21  # of the largest array of a pass over positions
_DRAWN = 2**17  # coefficients that are drawn together and stay in cache
_FEW_NUMBERS = 2048  # that an evaluation reads, so that many positions cost little more than one


class Marginal:
    """Log density of hyperparameters and noise variance, with all coefficients integrated out.

    The log likelihood is ``-scale (square - 2 b' theta + theta' G theta) / 2``, where scale is the
    inverse of the noise variance, and G and b are a gram of all rows; also half the number of rows
    times the log of scale.

    Parameters
    ----------
    working : WorkingModel
    gram : LabelGram
    n_total : float
        Sum of the weights of rows.
    origin : ndarray of shape (1, n_linear)
        Coefficients from which those of the gram are measured.
    """

    def __init__(
        self, working: WorkingModel, gram: LabelGram, n_total: float, origin: Array
    ) -> None:
        self.working, self.gram, self.origin = working, gram, origin
        self._n_total = n_total
        self._covariances = working.posterior.covariances
        self._of_fixed, self.pull, self._n_fixed = working.fixed_prior(origin)
        # effects of other terms are standardised
        self.precision = self._of_fixed + np.diag(working.is_effect.astype(float))
        self.step = max(1, _NUMBERS // gram.size)
        self.step_of_draws = GROUP * max(1, _DRAWN // (GROUP * working.posterior.n_linear))

    def roots(self, h: Array) -> list[Array]:
        """Factor ``(C, q, q)`` of the covariance of each term."""
        pairs = zip(self._covariances.each, self._covariances.at, strict=True)
        return [covariance.root(h[:, at]) for covariance, at in pairs]

    def _shared(self, N: Array, roots: list[Array], scale: Array) -> tuple[Array, Array, Array]:
        """Precision S ``(C, p, p)`` of the shared coefficients, its side, and their factor T.

        Effects of other terms are standardised: the shared coefficients are T times these.
        """
        p, phi = len(self.pull), scale[:, None]
        T = self.working.shared_root(roots)
        S = phi[..., None] * (T.swapaxes(1, 2) @ N[:, :p, :p] @ T) + self.precision
        side = phi * np.einsum("crp,cr->cp", T, N[:, :p, p]) + self.pull
        return S, side, T

    def value_and_grad(self, h: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Log density ``(C,)``, its gradient in h ``(C, m)`` and in the log variance ``(C,)``."""
        at = [slice(k, k + self.step) for k in range(0, len(h), self.step)]
        with np.errstate(all="ignore"):
            parts = [self._value_and_grad(h[some], variance[some]) for some in at]
        value, in_h, in_gamma = (np.concatenate(each) for each in zip(*parts, strict=True))
        value = np.where(np.isfinite(value), value, -np.inf)
        return value, in_h, in_gamma

    def _eliminate(self, roots: list[Array], scale: Array) -> tuple[Array, Array, Any]:
        """Matrix N of the shared coefficients, log determinants ``(C,)``, and what slopes take."""
        return self.gram.eliminate(self.working.main_root(roots), scale)

    def _slopes(
        self, moments: Array, found: Any, roots: list[Array], scale: Array
    ) -> dict[int, Array]:
        """Gradient in the lower triangle of the factor ``(C, q, q)`` of each eliminated term.

        ``found`` is the last of the results of :meth:`_eliminate`.
        """
        main = self.working.main
        if main is None:
            return {}
        return {main: self.gram.slope(moments, found, roots[main], scale)}

    def _integrated(
        self, variance: Array, roots: list[Array], N: Array, log_det: Array
    ) -> tuple[Array, ...]:
        """Log likelihood ``(C,)`` without the shared coefficients, and the parts of its gradient.

        They are the inverse factor of the precision of these, its product with their side, their
        factor T, and the quadratic form in the observations.
        """
        scale, p = 1.0 / variance, len(self.pull)
        S, side, T = self._shared(N, roots, scale)
        inverse, log_root = inverse_factors(S, many=True)
        half = np.einsum("cij,cj->ci", inverse, side)
        quadratic = N[:, p, p] * scale - np.einsum("ci,ci->c", half, half)
        value = log_root - 0.5 * (log_det + quadratic + self._n_total * np.log(variance))
        return value, inverse, half, T, quadratic

    def _value_and_grad(self, h: Array, variance: Array) -> tuple[Array, Array, Array]:
        covariances, working = self._covariances, self.working
        value, in_h = covariances.value_and_grad(h)
        roots, scale, p = self.roots(h), 1.0 / variance, len(self.pull)
        N, log_det, found = self._eliminate(roots, scale)
        of_rows, inverse, half, T, quadratic = self._integrated(variance, roots, N, log_det)
        value = value + of_rows
        # moments of the shared coefficients, standardised and then as they are
        covariance, mean = inverse.swapaxes(1, 2) @ inverse, np.einsum("cji,cj->ci", inverse, half)
        of_prior = np.einsum("pr,crp->c", self._of_fixed, covariance)
        of_prior += np.einsum("ci,ij,cj->c", mean, self._of_fixed, mean)
        TV, w = T @ covariance, np.einsum("cij,cj->ci", T, mean)
        moments = np.empty_like(N)
        moments[:, :p, :p] = TV @ T.swapaxes(1, 2) + w[:, :, None] * w[:, None]
        moments[:, :p, p] = moments[:, p, :p] = -w
        moments[:, p, p] = 1.0
        slopes = self._slopes(moments, found, roots, scale)
        for k, at in zip(working.other_terms, working.at_others, strict=True):
            q = roots[k].shape[1]
            blocks = (len(h), (at.stop - at.start) // q, q)
            rest = N[:, at, p] - np.einsum("cij,cj->ci", N[:, at, :p], w)
            slope = np.einsum("cli,clj->cij", rest.reshape(blocks), mean[:, at].reshape(blocks))
            rows = N[:, at, :p].reshape(*blocks, p)
            columns = TV[:, :, at].reshape(len(h), p, *blocks[1:])
            slope -= np.einsum("clad,cdlb->cab", rows, columns)
            slopes[k] = slope * scale[:, None, None]
        residual = quadratic + self._n_fixed - of_prior + 2.0 * np.vecdot(mean, self.pull)
        for k, (covariance_, at) in enumerate(zip(covariances.each, covariances.at, strict=True)):
            in_h[:, at] += covariance_.pull_back(h[:, at], slopes[k])
            residual -= np.einsum("cij,cij->c", slopes[k], roots[k])
        return value, in_h, 0.5 * (residual - self._n_total)

    def draw(self, h: Array, variance: Array, normals: Array) -> Array:
        """Linear parameters ``(C, n)`` given h, from standard normals ``(C, n)``."""
        roots, scale, working = self.roots(h), 1.0 / variance, self.working
        N, _, _ = self._eliminate(roots, scale)
        labels, shared = working.split(normals)
        w = self._draw_shared(N, shared, roots, scale)
        side = self.gram.side(w, scale)
        effects = self.gram.draw(side, labels, working.main_root(roots), scale)
        return working.join(effects, w) + self.origin

    def _draw_shared(self, N: Array, normals: Array, roots: list[Array], scale: Array) -> Array:
        """Shared coefficients ``(C, p)`` given h, from standard normals."""
        S, side, T = self._shared(N, roots, scale)
        inverse, _ = inverse_factors(S, many=True)
        half = np.einsum("cij,cj->ci", inverse, side) + normals
        return np.einsum("cij,cj->ci", T, np.einsum("cji,cj->ci", inverse, half))


class CollapsedPosterior(IntegratedPosterior):
    """Posterior of hyperparameters and log noise variance of a mixed model with normal noise.

    Parameters
    ----------
    posterior : MixedPosterior
        With normal noise and a normal prior of the coefficients, which the noise does not scale.
    """

    def __init__(self, posterior: MixedPosterior) -> None:
        self.model, model = posterior, posterior.model
        self.param_names = [*posterior.covariances.coordinates]
        self._n_hyper = len(self.param_names)
        self.param_names += [own.coordinate for own in model.likelihood.own]
        self.n_params = len(self.param_names)
        self._own = model.own_priors[0] if model.n_own else None
        weight = np.ones(model.n_samples) if model.weight is None else model.weight
        self._n_total = float(weight.sum())
        if model.n_averaged is not None:
            weight = weight * model.n_averaged
        # about the mean of y, so that its level costs no precision
        known = model.values.y_less_offset
        level = float(np.average(known, weights=weight)) if model.fit_intercept else 0.0
        y, origin = known - level, np.zeros((1, posterior.n_linear))
        origin[0, model.n_features : model.linear_prior.width] = level
        self._square = float(weight @ np.square(y))
        self.marginal = self._marginal_of(weight, y, origin)
        self.many_at_once = self.marginal.gram.size <= _FEW_NUMBERS

    def _marginal_of(self, weight: Array, y: Array, origin: Array) -> Marginal:
        working = WorkingModel(self.model)
        gram = working.gram(weight, weight * y, self._square)
        return Marginal(working, gram, self._n_total, origin)

    # ---- the density ----------------------------------------------------------------------------

    def _split(self, theta: Array) -> tuple[Array, Array]:
        """Hyperparameters ``(C, m)`` and noise variance ``(C,)``."""
        h = theta[:, : self._n_hyper]
        if self._own is None:
            return h, np.full(len(theta), self.model.likelihood.noise_variance(None))
        return h, np.exp(theta[:, self._n_hyper])

    def value_and_grad(self, theta: Array) -> tuple[Array, Array]:
        """Log posterior density ``(C,)`` and its gradient ``(C, P)``."""
        value, in_h, in_gamma = self.marginal.value_and_grad(*self._split(theta))
        if self._own is None:
            return value, in_h
        gamma = theta[:, -1]
        in_gamma = in_gamma + self._own.grad(gamma)
        return value + self._own.log_density(gamma), np.column_stack([in_h, in_gamma])

    def log_density(self, theta: Array) -> Array:
        """Log posterior density of theta up to a constant ``(C,)``."""
        return self.value_and_grad(theta)[0]

    def start(self) -> Array:
        """Hyperparameters in the middle of their prior, half the variance of y for the noise."""
        h = self.model.covariances.start()
        if self._own is None:
            return h
        return np.append(h, np.log(0.5 * self._square / self._n_total))

    # ---- reported parameters --------------------------------------------------------------------

    def complete(self, theta: Array) -> Array:
        """Reported parameters ``(S, n_reported)``: the draw of coefficients belongs to theta."""
        out = np.empty((len(theta), self.model.n_params))
        step = self.marginal.step_of_draws
        for first in range(0, len(theta), step):
            some = theta[first : first + step]
            normals = np.empty((len(some), self.model.n_linear))
            normals_of(some, normals)
            linear = self.marginal.draw(*self._split(some), normals)
            h, own = np.split(some, [self._n_hyper], axis=1)
            whole = self.model.parameters.join(np.hstack([linear, own]), h, "scales")
            out[first : first + len(some)] = self.model.reported.values(whole)
        return out

    def shortened(self, values: Array) -> Array:
        """Theta ``(S, P)`` of reported parameters."""
        base, h = self.model.split(self.model.reported.theta(values))
        return np.hstack([h, base[:, self.model.n_linear :]])
