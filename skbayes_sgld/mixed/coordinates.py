r"""Mixed models in coordinates in which their posterior is nearly standard normal.

The effects of a label are :math:`u_l = R_l v_l`. If its rows say less of an effect than the prior
does, that row of R_l is one of the factor R(h) of the learned covariance, and v is independent of h
a priori; otherwise it is fixed at the centre, R(h_0) (Papaspiliopoulos, Roberts & Sköld 2007). At
the centre the precision of v and of all other coefficients is an arrow, whose root standardises
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skbayes_sgld._linalg import ALIKE, matmul_rows
from skbayes_sgld._typing import Array
from skbayes_sgld.mixed.collapsed import Marginal
from skbayes_sgld.mixed.given_scales import MOST_EFFECTS, GivenScales
from skbayes_sgld.mixed.mode import JointMode
from skbayes_sgld.mixed.posterior import MixedPosterior, refusing
from skbayes_sgld.mixed.working import WorkingModel
from skbayes_sgld.posterior.parameterizations.base import Expanded, Map, Reparameterized
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning.mode import Mode


class StandardNormals:
    """Normal distribution of all coefficients at one point, standardised.

    The effects of a term are ``R v`` with the factor R of their covariance. The precision of v and
    of the shared coefficients has the shape of an arrow: a block ``(q, q)`` for each label of the
    main term, and a column of blocks for the shared ones.

    Parameters
    ----------
    working : WorkingModel
    marginal : Marginal
        Expansion of the likelihood about the point.
    h : ndarray of shape (m,)
        Hyperparameters there.
    """

    def __init__(self, working: WorkingModel, marginal: Marginal, h: Array) -> None:
        gram, roots = marginal.gram, marginal.roots(h[None])
        R, T = working.main_root(roots)[0], working.shared_root(roots)[0]
        p = len(T)
        blocks = R.T @ gram.labels.transpose(2, 0, 1) @ R + np.eye(len(R))
        self._root = np.linalg.cholesky(blocks)
        self._inverse = np.linalg.inv(self._root)
        cross = R.T @ gram.cross[:, :, :p].transpose(1, 0, 2) @ T
        self._cross = flat = (self._inverse @ cross).reshape(-1, p)
        S = T.T @ gram.shared[:p, :p] @ T + marginal.precision - flat.T @ flat
        self._shared_root = np.linalg.cholesky(S)
        self.shared_root = np.linalg.inv(self._shared_root)
        """Transpose of a root of the covariance of the shared coefficients."""

    def colored(self, labels: Array, shared: Array) -> tuple[Array, Array]:
        """Root of the covariance times standard normals ``(C, L, q)`` and ``(C, p)``."""
        shared = matmul_rows(shared, self.shared_root)
        rest = labels - matmul_rows(shared, self._cross.T, ALIKE).reshape(labels.shape)
        return np.einsum("lji,clj->cli", self._inverse, rest), shared

    def whitened(self, labels: Array, shared: Array) -> tuple[Array, Array]:
        """Inverse of :meth:`colored`."""
        half = np.einsum("lji,clj->cli", self._root, labels)
        half += matmul_rows(shared, self._cross.T, ALIKE).reshape(half.shape)
        return half, matmul_rows(shared, self._shared_root)

    def pulled_back(self, in_labels: Array, in_shared: Array) -> tuple[Array, Array]:
        """Transpose of :meth:`colored`: gradient in the standard normals."""
        half = np.einsum("lij,clj->cli", self._inverse, in_labels)
        rest = in_shared - matmul_rows(half.reshape(len(half), -1), self._cross, ALIKE)
        return half, matmul_rows(rest, self.shared_root.T)


class CenteredOrNot:
    """Coordinates of coefficients and effects, each effect centred or not.

    Parameters
    ----------
    working : WorkingModel
    marginal : Marginal
        Expansion of the likelihood about the centre.
    center : ndarray of shape (n_linear,)
    h : ndarray of shape (m,)
        Hyperparameters at the centre.
    """

    def __init__(self, working: WorkingModel, marginal: Marginal, center: Array, h: Array) -> None:
        self._working, self._posterior = working, working.posterior
        self._normal = StandardNormals(working, marginal, h)
        self._roots = [each[0] for each in marginal.roots(h[None])]
        # effects of the centre as multiples of R; without effects where R is nearly 0
        self._center = center.copy()
        self._noncentered: list[Array] = []
        for k, (R, u) in enumerate(
            zip(self._roots, self._posterior.effects(self._center[None]), strict=True)
        ):
            u[...] = u @ np.linalg.pinv(R, rcond=1e-12).T
            whole = R.T @ working.information(marginal.gram, k) @ R + np.eye(len(R))
            share = np.einsum("lqq->lq", np.linalg.inv(whole))
            self._noncentered.append((share > 0.5).astype(float))

    def _factors(self, h: Array) -> list[tuple[Array, Array]]:
        """Factor ``(C, q, q)`` of each term at h, and that of each label ``(C, L, q, q)``."""
        covariances, out = self._posterior.covariances, []
        pairs = zip(covariances.each, covariances.at, strict=True)
        for (covariance, at), R, free in zip(pairs, self._roots, self._noncentered, strict=True):
            root = covariance.root(h[:, at])
            out.append((root, np.where(free[:, :, None] > 0, root[:, None], R)))
        return out

    def expand(self, z: Array, h: Array) -> Expanded:
        """Linear parameters, the log Jacobian and the chain rule."""
        posterior, working = self._posterior, self._working
        covariances = posterior.covariances
        linear = self._center + working.join(*self._normal.colored(*working.split(z)))
        factors, log_jacobian, standard = self._factors(h), np.zeros(len(z)), []
        for (root, each), v, free in zip(
            factors, posterior.effects(linear), self._noncentered, strict=True
        ):
            standard.append(v.copy())
            v[...] = np.einsum("clij,clj->cli", each, v)
            log_sizes = np.log(np.abs(np.einsum("cii->ci", root)))
            log_jacobian = log_jacobian + np.vecdot(log_sizes, free.sum(axis=0))

        def pull_back(grad: Array, tau: float) -> Array:
            in_linear, in_h = grad.copy(), np.zeros_like(h)
            for k, in_u in enumerate(posterior.effects(in_linear)):
                (root, each), free = factors[k], self._noncentered[k]
                covariance, at = covariances.each[k], covariances.at[k]
                in_root = (in_u * free).swapaxes(1, 2) @ standard[k]
                diagonal = np.arange(root.shape[1])
                sizes = root[:, diagonal, diagonal]
                in_root[:, diagonal, diagonal] += tau * free.sum(axis=0) / sizes
                in_h[:, at] += covariance.pull_back(h[:, at], in_root)
                in_u[...] = np.einsum("clij,cli->clj", each, in_u)
            in_z = working.join(*self._normal.pulled_back(*working.split(in_linear)))
            return np.hstack([in_z, in_h])

        return Expanded(linear, log_jacobian, pull_back)

    def inverse(self, linear: Array, h: Array) -> Array:
        """Coordinates of linear parameters."""
        posterior, working, linear = self._posterior, self._working, linear.copy()
        for (_, each), u in zip(self._factors(h), posterior.effects(linear), strict=True):
            u[...] = np.linalg.solve(each, u[..., None])[..., 0]
        return working.join(*self._normal.whitened(*working.split(linear - self._center)))


class MixedCoordinates(Map):
    """Map from standardised coordinates to the parameters of a mixed model.

    Coordinates are those of the coefficients and effects, in the order of theta, and then those of
    hyperparameters and own parameters.

    Parameters
    ----------
    posterior : MixedPosterior
    linear : CenteredOrNot or GivenScales
        Coordinates of coefficients and effects, which may depend on the hyperparameters.
    eta : ndarray of shape (m,)
        Hyperparameters and own parameters at the centre.
    root : ndarray of shape (m, m)
        Root of their covariance.
    """

    def __init__(
        self,
        posterior: MixedPosterior,
        linear: CenteredOrNot | GivenScales,
        eta: Array,
        root: Array,
    ) -> None:
        self._posterior, self._linear, self._eta, self._root = posterior, linear, eta, root
        self._m = len(posterior.covariances.coordinates)

    def expand(self, phi: Array) -> Expanded:
        """Theta at phi, the log Jacobian and the chain rule."""
        posterior, n, m = self._posterior, self._posterior.n_linear, self._m
        eta = self._eta + matmul_rows(phi[:, n:], self._root.T)
        h, own = eta[:, :m], eta[:, m:]
        linear, log_jacobian, pull_back_linear = self._linear.expand(phi[:, :n], h)
        theta = posterior.parameters.join(np.hstack([linear, own]), h, "scales")

        def pull_back(grad: Array, tau: float) -> Array:
            base, in_h = posterior.split(grad)
            of_linear = pull_back_linear(base[:, :n], tau)
            in_eta = np.hstack([in_h + of_linear[:, n:], base[:, n:]])
            return np.hstack([of_linear[:, :n], matmul_rows(in_eta, self._root)])

        return Expanded(theta, log_jacobian, pull_back)

    def inverse(self, theta: Array) -> Array:
        """Phi at theta."""
        base, h = self._posterior.split(theta)
        linear, own = np.split(base, [self._posterior.n_linear], axis=1)
        x = np.linalg.solve(self._root, (np.hstack([h, own]) - self._eta).T).T
        return np.hstack([self._linear.inverse(linear, h), x])


class StandardisedPosterior(Reparameterized):
    """A mixed model in standardised coordinates; beyond floating point numbers its density is 0."""

    def _grad(self, in_theta: Callable[[Array], Array], phi: Array) -> Array:
        return refusing(np.zeros(len(phi)), super()._grad(in_theta, phi))[1]

    def _value_and_grad(
        self, in_theta: Callable[[Array], tuple[Array, Array]], phi: Array
    ) -> tuple[Array, Array]:
        return refusing(*super()._value_and_grad(in_theta, phi))


def standardise_mixed(
    posterior: MixedPosterior, temperature: float
) -> tuple[StandardisedPosterior, Mode]:
    """Posterior in coordinates about its mode in hyperparameters and own parameters."""
    at = JointMode.of(posterior)
    h = at.eta[: len(posterior.covariances.coordinates)]
    few = posterior.n_linear <= MOST_EFFECTS
    if few:
        linear: Any = GivenScales(at.working, at.marginal)
    else:
        linear = CenteredOrNot(at.working, at.marginal, at.linear, h)
    coordinates = MixedCoordinates(posterior, linear, at.eta, at.root)
    # many effects are nearly normal, and few trajectories meet the tails of scales
    transformed = StandardisedPosterior(posterior, coordinates, temperature, light_tailed=not few)
    P = transformed.n_params
    return transformed, Mode(np.zeros(P), Diagonal(np.ones(P)))
