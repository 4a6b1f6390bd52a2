"""The evidence lower bound as a log density: Langevin dynamics over variational parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._checks import as_vector, check_number
from skbayes_sgld._components import resolve
from skbayes_sgld._random import RandomSource, as_random_state
from skbayes_sgld._typing import Array
from skbayes_sgld.own_models import as_posterior
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import HasRows, Posterior
from skbayes_sgld.variational.families import FAMILIES, Family, Isotropic


class VariationalPosterior(BasePosterior):
    r"""The density ``exp(ELBO)`` of variational parameters, for samplers to draw from.

    Some parameters of a posterior, z, are approximated by a distribution q with variational
    parameters lambda; the others are psi. Samplers draw phi = (psi, lambda) from the density

    .. math:: \pi(\psi, \lambda) \propto
        \exp\{ E_{q(z \mid \lambda)}[\log p(y, \psi, z)] + H(q_\lambda) \},

    whose gradient, by the reparameterisation z = z(lambda, noise), is estimated without bias from
    a few draws of the noise. This is SGLD on the loss of B. Keng, "Bayesian Learning via
    Stochastic Gradient Langevin Dynamics and Bayes by Backprop", Section 5.2.1, equations 36 to
    39. The post's q is ``s_i ~ N(mu_i, sigma^2)``: only the means are learned, and sigma is the sd
    of the model's random walk. That is ``family="isotropic"`` with ``tied="log_sigma"``.
    :class:`BayesByBackprop` finds the mode of the density; at a ``temperature`` near 0 the draws
    stay at the mode.

    Parameters
    ----------
    posterior : Posterior
        Posterior whose gradients are evaluated at all draws at once, as if each were a chain.
    family : {"mean_field", "full_rank", "isotropic", "gamma"} or Family, default="mean_field"
        Family of q; ``"gamma"`` for logarithms of positive parameters.
    over : sequence of str or None, default=None
        Names of the parameters z that q approximates; ``"h"`` also stands for ``h[0]``, ``h[1]``,
        ... None is all parameters.
    tied : str or None, default=None
        Coordinate among the other parameters that is also the ``log_sd`` of an isotropic q.
    start : array-like of shape (n_params,) or None, default=None
        Starting point, in the posterior's coordinates; None takes the posterior's.
    scale : float, default=1.0
        Initial standard deviation of q.
    n_pairs : int, default=256
        Number of pairs of noise of opposite sign, whose average replaces the expectation. They are
        scaled to second moments of 1, and made uncorrelated if they outnumber z, so that the
        expectation of a quadratic is exact. A pair counts as a row of data: a minibatch is a few
        pairs.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the noise.

    Attributes
    ----------
    n_samples : int
        Number of pairs of noise.
    n_params : int
        Number of parameters psi and lambda together.
    param_names : list of str
        Their names, psi first.

    Notes
    -----
    How to read the draws: for a normal posterior N(m, C), with C the inverse of Lambda, their
    distribution is known. The *means* are distributed as N(m, C), like the parameters themselves,
    for every family. The scales carry no information about the data: a mean-field sd is half-normal
    with scale ``1 / sqrt(Lambda_jj)``. Draws from q at sampled lambda therefore count the
    uncertainty twice: their covariance is ``C + E[covariance of q]``. :meth:`at_means`, which the
    post plots, has the distribution of the posterior.

    In the post's model the entropy of q cancels the normalising constant of the walk: ``log
    sigma`` from q against ``-log sigma`` from the prior, for each step. The sampled sigma then
    balances the roughness of the means against a likelihood blurred by q, and is not the sd of the
    walk's steps. In simulations with sigma = 0.1 it ends near 0.5 (40 days) and 1.3 (300 days). The
    post's 0.025, a quarter of the value by HMC, depends on when the run stopped.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import sample
    >>> from skbayes_sgld.own_models import FunctionPosterior
    >>> from skbayes_sgld.variational import VariationalPosterior
    >>> Lambda = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> normal = FunctionPosterior(
    ...     lambda x: -0.5 * (x @ Lambda * x).sum(1), lambda x: -x @ Lambda, 2, ["a", "b"]
    ... )
    >>> elbo = VariationalPosterior(normal)
    >>> elbo.param_names
    ['mean[a]', 'mean[b]', 'log_sd[a]', 'log_sd[b]']
    >>> draws = sample(elbo, "hmc", n_draws=400, random_state=0)
    >>> found = np.cov(elbo.at_means(draws.draws.flat).T)
    >>> bool(np.allclose(found, np.linalg.inv(Lambda), atol=0.1))
    True
    """

    def __init__(
        self,
        posterior: Posterior | HasRows,
        family: str | Family = "mean_field",
        *,
        over: Sequence[str] | None = None,
        tied: str | None = None,
        start: ArrayLike | None = None,
        scale: float = 1.0,
        n_pairs: int = 256,
        random_state: RandomSource = 0,
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
        self._columns = np.arange(n_direct, self.n_params)  # positions of q's parameters in phi
        if tied is not None:
            self._tie(tied, n_direct)
        self._noise = _bank(n_pairs, Q, random_state)
        self.n_samples = n_pairs
        theta = self.posterior.start() if start is None else as_vector(start, "start", len(names))
        in_entropy = self.family.log_scales(Q)
        self._start = np.zeros(self.n_params)
        self._start[self._columns] = in_entropy / max(in_entropy.max(), 1.0) * np.log(scale)
        self._start[:n_direct] = theta[self._direct]
        self._start[self._columns[:Q]] = theta[self._latent]

    def _tie(self, tied: str, n_direct: int) -> None:
        """Use one coordinate of psi as the log sd of q."""
        others = self.param_names[:n_direct]
        if not isinstance(self.family, Isotropic) or tied not in others:
            raise ValueError(
                f"tied={tied!r} is not accepted; it takes family='isotropic' and one of the "
                f"parameters that are not in `over`: {', '.join(others) or 'there are none'}."
            )
        self._columns[-1] = others.index(tied)
        self.n_params -= 1
        self.param_names = self.param_names[:-1]

    def start(self) -> Array:
        """Starting point phi ``(n_params,)``."""
        return self._start.copy()

    # ---- from phi to theta --------------------------------------------------------------------

    def _theta(self, phi: Array, noise: Array) -> Array:
        """Parameters ``(C, B, P)`` of the posterior, with z drawn from q by the noise."""
        theta = np.empty((*noise.shape[:2], len(self._direct) + len(self._latent)))
        theta[..., self._direct] = phi[:, None, : len(self._direct)]
        theta[..., self._latent] = self.family.transform(phi[:, self._columns], noise)
        return theta

    def at_means(self, phi: Array) -> Array:
        """Parameters of the posterior ``(C, P)``, with z at the mean of q."""
        theta = self._theta(phi, np.zeros((len(phi), 1, len(self._latent))))[:, 0]
        theta[:, self._latent] = [
            self.family.mean(one, len(self._latent)) for one in phi[:, self._columns]
        ]
        return theta

    def draw(self, phi: Array, random_state: RandomSource = None) -> Array:
        """Parameters of the posterior ``(C, P)``, with z drawn from q."""
        rng = as_random_state(random_state)
        return self._theta(phi, rng.standard_normal((len(phi), 1, len(self._latent))))[:, 0]

    # ---- the protocol: a row is a pair of opposite draws, the prior is the entropy ------------

    def _blocks(self, phi: Array, idx: Array | None) -> list[Array]:
        """Noise of the rows in blocks ``(C, B, Q)``, with both signs."""
        if idx is None:
            noise = np.broadcast_to(self._noise, (len(phi), *self._noise.shape))
        else:
            noise = self._noise[idx]
        n_blocks = 1 + 2 * noise.size // 2**20  # at most 2^20 numbers in each
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
        """Gradient of the pairs' shares in phi, summed over the pairs ``(C, n_params)``."""
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
        grad = np.zeros_like(phi)
        grad[:, self._columns] = self.family.grad_entropy(phi[:, self._columns], len(self._latent))
        return grad


def _positions(names: list[str], over: Sequence[str] | None) -> Array:
    """Positions of the named parameters, or of their elements."""
    if over is None:
        return np.arange(len(names))
    if isinstance(over, str):
        over = [over]
    selection: list[int] = []
    for name in over:
        matches = [j for j, n in enumerate(names) if n == name or n.startswith(f"{name}[")]
        if not matches:
            raise ValueError(
                f"over={list(over)!r}: {name!r} is not a parameter; there are "
                f"{', '.join(names[:6])}{' ...' if len(names) > 6 else ''}."
            )
        selection += matches
    return np.unique(selection)


def _bank(n_pairs: int, n_variables: int, random_state: RandomSource) -> Array:
    """Normal noise ``(n_pairs, Q)`` of second moments 1, uncorrelated if n_pairs > Q."""
    noise = as_random_state(random_state).standard_normal((n_pairs, n_variables))
    if n_pairs <= n_variables:
        return noise / np.sqrt(np.square(noise).mean(axis=0))
    root = np.linalg.cholesky(noise.T @ noise / n_pairs)
    return np.linalg.solve(root, noise.T).T
