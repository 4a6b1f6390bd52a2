"""Densities of the non-centered coordinates where the likelihood is diagonal in their basis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skbayes_sgld.posterior.linear_prior import LinearPrior
from skbayes_sgld.posterior.parameterizations.noise_coordinate import NormalQuantiles, StraightLine
from skbayes_sgld.posterior.priors.noise import NoisePrior

Array = NDArray[Any]


class ClosedForm(NamedTuple):
    """What the noise scales, as a function of phi.

    With w the linear parameters minus the centre in the basis U, its log density is
    ``c - (N gamma + exp(-gamma) R) / 2 + t (kappa' w - w' a w / 2)``, t being
    ``exp(level - gamma)``. Only priors that the noise does not scale take the parameters
    themselves.

    Attributes
    ----------
    basis : ndarray of shape (L, L)
        U.
    share, pull, center : ndarray of shape (L,)
        a, kappa and the centre.
    level : float
        Log noise variance at the centre.
    constant, exponent, square : float
        c, N and R.
    temperature : float
        That of the Jacobian.
    noise : StraightLine or NormalQuantiles
        Gamma as a function of the last of phi.
    noise_prior : NoisePrior or None
        None where N and R have it.
    """

    basis: Array
    share: Array
    pull: Array
    center: Array
    level: float
    constant: float
    exponent: float
    square: float
    temperature: float
    noise: StraightLine | NormalQuantiles
    noise_prior: NoisePrior | None

    def bind(
        self, prior: LinearPrior, followed: LinearPrior, n_chains: int, group: int
    ) -> Callable[[Array, bool], tuple[Array | None, Array]]:
        """Log density ``(C,)``, None unless wanted, and gradient under the prior that is followed.

        Arrays hold a row a parameter, so that what a chain has one of is a row too; products take
        ``group`` chains together.

        Parameters
        ----------
        prior, followed : LinearPrior
            Priors that the noise does not scale.
        n_chains, group : int
        """
        noise, noise_prior, tau = self.noise, self.noise_prior, self.temperature
        moves = bool(self.pull.any())  # not under the conjugate prior
        square_there = np.exp(-self.level) * self.square
        # the parameters that a prior depends on
        alone = prior.of_coef_alone and followed.of_coef_alone
        seen = slice(prior.n_features if alone else len(self.center))
        forward, back = self.basis[seen], np.ascontiguousarray(self.basis[seen].T)
        slopes = followed.bind_grad(np.zeros((1, len(forward))))
        n_slots = -(-n_chains // group) * group
        # beside a chain's numbers rather than one for all, which costs twice as much
        share, pull, center = (
            np.repeat(a[:, None], n_slots, axis=1)
            for a in (self.share, self.pull, self.center[seen])
        )

        def product(matrix: Array, rows: Array) -> Array:
            out = np.empty((len(matrix), n_slots))
            np.matmul(matrix, by_group(rows), out=by_group(out))
            return out

        def by_group(rows: Array) -> Array:
            return rows.reshape(len(rows), -1, group).swapaxes(0, 1)

        def evaluate(phi: Array, wants_value: bool) -> tuple[Array | None, Array]:
            place = np.zeros((len(share) + 1, n_slots))  # where chains that fill a group stay
            place[:, :n_chains] = phi.T
            g = place[-1]
            gamma = noise.gamma(g)
            ratio = np.exp(self.level - gamma)
            t = np.empty_like(share)
            t[...] = ratio
            ahead = t - 1.0
            D = share * ahead
            D += 1.0
            inverse = 1.0 / D
            root = np.sqrt(inverse)
            w = place[:-1] * root
            scaled = share * t
            scaled *= inverse
            moved = w * scaled  # twice the derivative of w in gamma
            if moves:
                shift = pull * inverse
                ahead *= shift
                w += ahead
                shift *= inverse
                shift *= t
                shift *= 2.0
                moved -= shift
            pulled = pull - share * w
            inner = ratio * np.add.reduce((pull + pulled) * w, axis=0)
            square = ratio * square_there
            at = product(forward, w)
            at += center
            linear = at.T[:, None]
            in_w = product(back, slopes(linear)[:, 0].T)
            pulled *= t
            in_w += pulled
            moved *= in_w
            scaled *= tau
            moved += scaled
            slope = np.add.reduce(moved, axis=0)
            slope += square
            slope -= inner
            slope -= self.exponent
            slope *= 0.5
            if noise_prior is not None:
                slope += noise_prior.grad(gamma)
            in_w *= root
            grad = np.empty((n_chains, len(place)))
            grad[:, :-1] = in_w[:, :n_chains].T
            grad[:, -1] = (noise.slope(g) * slope + tau * noise.bend(g))[:n_chains]
            if not wants_value:
                return None, grad
            value = inner - self.exponent * gamma - square
            value -= tau * np.add.reduce(np.log(D, out=D), axis=0)
            value *= 0.5
            if noise_prior is not None:
                value += noise_prior.log_density(gamma)
            value += prior.log_density(linear, None)
            value += tau * noise.log_stretch(g) + self.constant
            return value[:n_chains], grad

        return evaluate
