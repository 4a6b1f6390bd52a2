"""The evidence lower bound as a log density: Langevin dynamics over variational parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from skbayes_sgld._components import check_number, resolve
from skbayes_sgld.posterior import BasePosterior, as_posterior
from skbayes_sgld.variational.families import FAMILIES, Family, Isotropic

Array = NDArray[Any]

_BLOCK = 2**20  # numbers that the draws of a block may hold


class VariationalPosterior(BasePosterior):
    r"""The density ``exp(ELBO)`` of variational parameters, for samplers to draw from.

    Some of a posterior's parameters, z, are given a normal approximation q of variational
    parameters lambda; the others, psi, stay parameters. What is sampled is phi = (psi, lambda)
    with the density

    .. math:: \pi(\psi, \lambda) \propto
        \exp\{ E_{q(z \mid \lambda)}[\log p(y, \psi, z)] + H(q_\lambda) \},

    whose gradient by the reparameterisation z = z(lambda, noise) is unbiased from a few draws of
    the noise. This is SGLD on the loss of B. Keng, "Bayesian Learning via Stochastic Gradient
    Langevin Dynamics and Bayes by Backprop", Section 5.2.1, equations 36 to 39. Its q is
    ``s_i ~ N(mu_i, sigma^2)``, of which only the means are learned, and sigma is the sd of the
    model's own random walk: that is ``family="isotropic"`` with ``tied="log_sigma"``. The mode of
    the density is what :class:`BayesByBackprop` finds; a ``temperature`` near 0 stays there.

    Parameters
    ----------
    posterior : Posterior
        Its gradients are asked for at all draws at once, as if each were a chain.
    family : {"mean_field", "full_rank", "isotropic"} or Family, default="mean_field"
        Family of q.
    over : sequence of str or None, default=None
        Names of the parameters that q approximates; ``"h"`` stands for ``h[0]``, ``h[1]`` ...
        too. None is all.
    tied : str or None, default=None
        Coordinate among the other parameters that is also the ``log_sd`` of an isotropic q.
    start : array-like of shape (n_params,) or None, default=None
        Point to begin at, in the posterior's coordinates; None is the posterior's own.
    scale : float, default=1.0
        Standard deviation of q to begin with.
    n_pairs : int, default=256
        Size of the bank of noise that stands for the expectation: pairs of opposite sign, scaled
        to second moments of 1 (and, where they outnumber z, uncorrelated), so that the expectation
        of a quadratic is exact. A pair is a row, and minibatches of rows are the few draws of the
        noise that a step takes.
    random_state : int, RandomState or None, default=0
        Seed of the bank.

    Attributes
    ----------
    n_samples, n_params, param_names
        Pairs of noise; variational and other parameters.

    Notes
    -----
    What the draws mean. On a normal posterior N(m, C), C the inverse of Lambda, everything is
    known. The *means* are distributed as N(m, C), as the parameters themselves are, whatever the
    family. The scales are no answer to any question about the data: a mean-field sd is
    half-normal of scale ``1 / sqrt(Lambda_jj)``. So draws from q at sampled lambda count the
    uncertainty twice (their covariance is ``C + E[covariance of q]``), and :meth:`at_means`, which
    is what the post plots, is the posterior itself.

    In the post's model the entropy of q undoes the normaliser of the walk: q's ``log sigma`` for
    each step cancels the prior's ``-log sigma``. What is sampled under the name of sigma weighs
    the roughness of the means against a likelihood blurred by q: it is not the sd of the walk's
    steps. On simulated days with sigma = 0.1 it settles near 0.5 (40 days) and 1.3 (300 days); the
    post's 0.025, a quarter of what HMC gives, depends on when it stopped.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import sample
    >>> from skbayes_sgld.posterior import FunctionPosterior
    >>> from skbayes_sgld.variational import VariationalPosterior
    >>> Lambda = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> normal = FunctionPosterior(
    ...     lambda x: -0.5 * (x @ Lambda * x).sum(1), lambda x: -x @ Lambda, 2, ["a", "b"]
    ... )
    >>> elbo = VariationalPosterior(normal)
    >>> elbo.param_names
    ['mean[a]', 'mean[b]', 'log_sd[a]', 'log_sd[b]']
    >>> draws = sample(elbo, "hmc", random_state=0)
    >>> np.cov(elbo.at_means(draws.draws.flat).T).round(1).tolist()  # inverse of Lambda
    [[0.7, -0.3], [-0.3, 0.7]]
    """

    def __init__(
        self,
        posterior: Any,
        family: str | Family = "mean_field",
        *,
        over: Sequence[str] | None = None,
        tied: str | None = None,
        start: ArrayLike | None = None,
        scale: float = 1.0,
        n_pairs: int = 256,
        random_state: Any = 0,
    ) -> None:
        check_number(n_pairs, "n_pairs", low=1, closed="left", integer=True)
        check_number(scale, "scale", low=0)
        self.posterior, self.family = as_posterior(posterior), resolve(family, FAMILIES, "family")
        names = list(self.posterior.param_names)
        self._latent = _positions(names, over)
        self._direct = np.setdiff1d(np.arange(len(names)), self._latent)
        variables = [names[j] for j in self._latent]
        Q, n_direct = len(variables), len(self._direct)
        self.param_names = [names[j] for j in self._direct] + self.family.names(variables)
        self.n_params = len(self.param_names)
        self._columns = np.arange(n_direct, self.n_params)  # of q's parameters in phi
        if tied is not None:
            self._tie(tied, n_direct)
        self._in_entropy = np.zeros(self.n_params)
        self._in_entropy[self._columns] = self.family.log_scales(Q)
        self._noise = _bank(n_pairs, Q, random_state)
        self.n_samples = n_pairs
        self._start = self._check_start(start, scale, len(names))

    def _tie(self, tied: str, n_direct: int) -> None:
        """Let q's log sd be a coordinate of psi."""
        others = self.param_names[:n_direct]
        if not isinstance(self.family, Isotropic) or tied not in others:
            raise ValueError(
                f"tied={tied!r} is not accepted; it takes family='isotropic' and one of the "
                f"parameters that are not in `over`: {', '.join(others) or 'there are none'}."
            )
        self._columns[-1] = others.index(tied)
        self.n_params -= 1
        self.param_names = self.param_names[:-1]

    def _check_start(self, start: ArrayLike | None, scale: float, size: int) -> Array:
        theta = self.posterior.start() if start is None else np.array(start, dtype=float)
        if theta.shape != (size,) or not np.isfinite(theta).all():
            raise ValueError(f"start={start!r} must be {size} finite numbers, one a parameter.")
        phi = self._in_entropy / max(self._in_entropy.max(), 1.0) * np.log(scale)
        phi[: len(self._direct)] = theta[self._direct]
        means = self._columns[: len(self._latent)]
        phi[means] = theta[self._latent]
        return phi

    def start(self) -> Array:
        """Variational parameters to begin at ``(n_params,)``."""
        return self._start.copy()

    # ---- from phi to theta --------------------------------------------------------------------

    def _theta(self, phi: Array, noise: Array) -> Array:
        """Parameters ``(C, B, P)`` of the posterior at draws of q."""
        theta = np.empty((*noise.shape[:2], len(self._direct) + len(self._latent)))
        theta[..., self._direct] = phi[:, None, : len(self._direct)]
        theta[..., self._latent] = self.family.transform(phi[:, self._columns], noise)
        return theta

    def at_means(self, phi: Array) -> Array:
        """Parameters of the posterior ``(C, P)``, each z at the mean of its q."""
        return self._theta(phi, np.zeros((len(phi), 1, len(self._latent))))[:, 0]

    def draw(self, phi: Array, random_state: Any = None) -> Array:
        """Parameters of the posterior ``(C, P)``, each z drawn from its q."""
        rng = check_random_state(random_state)
        return self._theta(phi, rng.standard_normal((len(phi), 1, len(self._latent))))[:, 0]

    # ---- the protocol: a row is a pair of opposite draws, the prior is the entropy ------------

    def _blocks(self, phi: Array, idx: Array | None) -> list[Array]:
        """Noise of the rows by blocks ``(C, B, Q)``, both signs."""
        if idx is None:
            noise = np.broadcast_to(self._noise, (len(phi), *self._noise.shape))
        else:
            noise = self._noise[idx]
        n_blocks = 1 + 2 * noise.size // _BLOCK
        return [
            np.concatenate([part, -part], axis=1)
            for part in np.array_split(noise, min(n_blocks, noise.shape[1]), axis=1)
        ]

    def log_likelihood(self, phi: Array, idx: Array | None = None) -> Array:
        """Each pair's share of the expected log density ``(C, B)``."""
        values = []
        for noise in self._blocks(phi, idx):
            theta = self._theta(phi, noise)
            flat = self.posterior.log_density(theta.reshape(-1, theta.shape[2]))
            values.append(flat.reshape(len(phi), 2, -1).sum(axis=1))
        return np.concatenate(values, axis=1) / (2 * self.n_samples)

    def grad_log_likelihood(self, phi: Array, idx: Array | None = None) -> Array:
        """Gradient of the pairs' shares, summed ``(C, n_params)``."""
        grad = np.zeros_like(phi)
        for noise in self._blocks(phi, idx):
            theta = self._theta(phi, noise)
            flat = self.posterior.grad(theta.reshape(-1, theta.shape[2]))
            in_theta = flat.reshape(theta.shape)
            grad[:, : len(self._direct)] += in_theta[..., self._direct].sum(axis=1)
            in_z = in_theta[..., self._latent]
            grad[:, self._columns] += self.family.pull_back(phi[:, self._columns], noise, in_z)
        return grad / (2 * self.n_samples)

    def log_prior(self, phi: Array) -> Array:
        """Entropy of q ``(C,)``."""
        return self.family.entropy(phi[:, self._columns], len(self._latent))

    def grad_log_prior(self, phi: Array) -> Array:
        """Gradient of the entropy ``(C, n_params)``."""
        return np.tile(self._in_entropy, (len(phi), 1))


def _positions(names: list[str], over: Sequence[str] | None) -> Array:
    """Positions of the parameters that are named, or of their elements."""
    if over is None:
        return np.arange(len(names))
    if isinstance(over, str):
        over = [over]
    chosen: list[int] = []
    for name in over:
        found = [j for j, n in enumerate(names) if n == name or n.startswith(f"{name}[")]
        if not found:
            raise ValueError(
                f"over={list(over)!r}: {name!r} is not a parameter; there are "
                f"{', '.join(names[:6])}{' ...' if len(names) > 6 else ''}."
            )
        chosen += found
    return np.unique(chosen)


def _bank(n_pairs: int, n_variables: int, random_state: Any) -> Array:
    """Standard normal noise ``(n_pairs, Q)`` of second moments 1, uncorrelated where it can be."""
    noise = check_random_state(random_state).standard_normal((n_pairs, n_variables))
    if n_pairs <= n_variables:
        return noise / np.sqrt(np.square(noise).mean(axis=0))
    root = np.linalg.cholesky(noise.T @ noise / n_pairs)
    return np.linalg.solve(root, noise.T).T
