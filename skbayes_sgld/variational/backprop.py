"""Bayes by Backprop: the member of a family of distributions that is nearest to a posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._checks import as_numbers, as_vector, check_batch_size, check_number
from skbayes_sgld._components import Component, resolve
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._random import ChainStreams, RandomSource, as_random_state, draw_seed
from skbayes_sgld._typing import Array
from skbayes_sgld.optimizers import Adam
from skbayes_sgld.own_models import as_posterior
from skbayes_sgld.posterior.protocol import HasRows, Posterior
from skbayes_sgld.sampling import Full, Minibatch
from skbayes_sgld.variational.families import FAMILIES, Family, FullRank

_BLOCK = 64  # steps whose random numbers are drawn at once
_MAX_FULL_RANK = 1000  # parameters; with more, a covariance takes minutes and gigabytes


@numpy_defaults
@dataclass(eq=False, repr=False, kw_only=True)
class BayesByBackprop(Component):
    """Approximation of a posterior by a normal distribution, or logarithms of gamma variables.

    It finds the member q of a family of distributions that maximises the evidence lower bound
    ``E_q[log p(y, theta)] + H(q)``, and so minimises ``KL(q || posterior)`` (Blundell, Cornebise,
    Kavukcuoglu & Wierstra 2015, eq. 1). It uses the reparameterisation trick: theta is a function
    of the parameters of q and of standard normal noise. For normal distributions, with
    ``theta = mean + R e`` and e standard normal, the gradient of the bound needs only that of the
    log posterior, g (their Section 3.2)::

        d / d mean = E[g(theta)]        d / d R = E[g(theta) e^T] + d H(q) / d R

    R is diagonal for the mean-field family and lower triangular for the full-rank one; the
    gradient of the entropy is in closed form. The log likelihood of a minibatch is rescaled by
    n / B, which amounts to spreading the KL evenly over the minibatches (their Section 3.4). The
    draws e come in pairs of opposite sign, so that on a normal posterior the gradient in the mean
    has no noise. The step size falls linearly to zero, and means and log scales are averaged over
    the second half of the steps (Polyak & Juditsky 1992).

    On a normal posterior of precision Lambda the mean is exact. The mean-field variances are
    ``1 / Lambda_jj``: the conditional variances, smaller than the posterior's if parameters are
    correlated (Bishop 2006, Section 10.1.2). The full-rank covariance is the posterior's.

    Parameters
    ----------
    family : {"mean_field", "full_rank", "isotropic", "gamma"} or Family, default="mean_field"
        Family of the approximation. ``"full_rank"`` stores a P by P matrix for P parameters.
        ``"gamma"`` is for posteriors of positive parameters, sampled by their logarithms: it
        approximates the parameters by independent gamma variables.
    step_size : float, default=0.05
        Initial step size of Adam, in units of ``scale``.
    max_iter : int, default=2000
        Number of steps.
    n_particles : int, default=8
        Number of draws of theta in each step; even.
    batch_size : int or None, default=None
        Number of rows of a minibatch, drawn without replacement; None takes all rows.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws and the minibatches.

    Attributes
    ----------
    mean_, sd_ : ndarray of shape (n_params,)
        Mean and marginal standard deviations of the approximation.
    covariance_ : ndarray of shape (n_params, n_params)
        Covariance of the approximation; only for the full-rank family.
    elbo_ : ndarray of shape (n_points,)
        Learning curve: estimates of the evidence lower bound, up to the prior's constant.
    elbo_steps_ : ndarray of shape (n_points,)
        Steps at which the learning curve was recorded.

    Examples
    --------
    >>> from skbayes_sgld.datasets import make_two_clusters
    >>> from skbayes_sgld.likelihoods import Bernoulli
    >>> from skbayes_sgld.posterior import GLMPosterior
    >>> from skbayes_sgld.priors import Normal
    >>> from skbayes_sgld.variational import BayesByBackprop
    >>> X, y = make_two_clusters(random_state=0)
    >>> posterior = GLMPosterior(X, y.astype(float), Bernoulli(), Normal())
    >>> q = BayesByBackprop(max_iter=500, random_state=0).fit(posterior)
    >>> q.sample(1000, random_state=0).shape
    (1000, 3)
    >>> bool(q.elbo_[-1] > q.elbo_[0])
    True
    >>> full = BayesByBackprop(family="full_rank", max_iter=500, random_state=0).fit(posterior)
    >>> bool((full.sd_ > q.sd_).all())
    True
    """

    family: str | Family = "mean_field"
    step_size: float = 0.05
    max_iter: int = 2000
    n_particles: int = 8
    batch_size: int | None = None
    random_state: RandomSource = None

    def check(self) -> None:
        """Raise if a parameter is out of range."""
        resolve(self.family, FAMILIES, "family")
        check_number(self.step_size, "step_size", low=0, any_size=True)
        for name in ("max_iter", "n_particles"):
            check_number(getattr(self, name), name, low=1, closed="left", integer=True)
        if self.n_particles % 2:
            raise ValueError(
                f"n_particles={self.n_particles} is odd; the draws come in pairs of opposite "
                "sign, so it must be even."
            )
        if self.batch_size is not None:
            check_number(self.batch_size, "batch_size", low=1, closed="left", integer=True)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # an error will name the step
    def fit(
        self,
        posterior: Posterior | HasRows,
        start: ArrayLike | None = None,
        scale: ArrayLike = 1.0,
        progress: Callable[[int], object] | None = None,
    ) -> BayesByBackprop:
        """Fit the approximation to a posterior.

        Parameters
        ----------
        posterior : Posterior
            One of the package's posteriors or of your own: see
            :func:`~skbayes_sgld.own_models.as_posterior`.
        start : array-like of shape (n_params,) or None, default=None
            Initial mean; None is zero.
        scale : float or array-like of shape (n_params,), default=1.0
            Initial standard deviations, which are also the units of the step size.
        progress : callable or None, default=None
            Called with 1 after every step.

        Returns
        -------
        self : BayesByBackprop

        Raises
        ------
        ValueError
            When a parameter is out of range, or the approximation overflows.
        """
        self.check()
        target, family = as_posterior(posterior), resolve(self.family, FAMILIES, "family")
        n, P = target.n_samples, target.n_params
        self._check_sizes(family, n, P)
        origin = as_vector(np.zeros(P) if start is None else start, "start", P)
        widths = as_numbers(scale, "scale")
        unit = as_vector(np.full(P, widths) if widths.ndim == 0 else widths, "scale", P)
        if np.any(unit <= 0.0):
            raise ValueError(f"scale={scale!r} is out of range; it must be positive.")
        streams = ChainStreams(draw_seed(self.random_state), 0)
        every = max(1, self.max_iter // 100)  # steps between points of the learning curve
        gradient = (Full() if self.batch_size is None else Minibatch()).bind(target)
        adam, n_pairs = Adam(), self.n_particles // 2
        begin, unit = family.begin(unit)  # phi describes (theta - origin) / unit
        log_unit = np.log(unit).sum()
        state = adam.init(begin[None])
        first = self.max_iter // 2
        average = np.zeros(len(begin))
        curve, steps = [], []
        for t in range(self.max_iter):
            phi = state["theta"]
            if t % _BLOCK == 0:
                normals = streams.normals(_BLOCK * n_pairs, P).reshape(_BLOCK, n_pairs, P)
            noise = np.concatenate([normals[t % _BLOCK], -normals[t % _BLOCK]])[None]
            theta = origin + unit * family.transform(phi, noise)[0]
            idx = None  # all rows
            if self.batch_size is not None:  # a minibatch for each pair
                idx = np.tile(streams.rows(n_pairs, n, self.batch_size, False), (2, 1))
            if t % every == 0 or t == self.max_iter - 1:
                if idx is None:
                    value = target.log_density(theta)
                else:
                    value = target.log_prior(theta)
                    value += target.log_likelihood(theta, idx).sum(axis=1) * (n / idx.shape[1])
                curve.append(value.mean() + family.entropy(phi, P)[0] + log_unit)
                steps.append(t)
            batch = None if idx is None else gradient.prepare(idx[None])[0]
            grad = gradient(theta, batch)
            ascent = family.pull_back(phi, noise, unit * grad[None] / self.n_particles)
            ascent += family.grad_entropy(phi, P)
            if not np.isfinite(ascent).all():
                raise ValueError(
                    f"step_size={self.step_size:g}: the approximation overflowed at step {t}; "
                    "set a smaller step_size."
                )
            eta = self.step_size * (1.0 - t / self.max_iter)
            state["count"] = state["count"] + 1
            state["theta"] = phi + eta * adam.direction(state, ascent)
            if t >= first:
                average += state["theta"][0] / (self.max_iter - first)
            if progress is not None:
                progress(1)
        self._set(family, average, origin, unit)
        self.elbo_, self.elbo_steps_ = np.array(curve), np.array(steps)
        return self

    def _check_sizes(self, family: Family, n_samples: int, n_params: int) -> None:
        if self.batch_size is not None and not n_samples:
            raise ValueError(
                f"batch_size={self.batch_size} takes rows, and the posterior has none; give None."
            )
        advice = "as batches are drawn without replacement, or None for all"
        check_batch_size(self.batch_size, n_samples, advice)
        if isinstance(family, FullRank) and n_params > _MAX_FULL_RANK:
            raise ValueError(
                f"family={self.family!r} takes a matrix of parameters by parameters, and there are "
                f"{n_params} of them; at most {_MAX_FULL_RANK} are accepted: give "
                "family='mean_field'."
            )

    def _set(self, family: Family, phi: Array, origin: Array, unit: Array) -> None:
        """Set the fitted attributes; phi describes (theta - origin) / unit."""
        self._fitted = family, phi, origin, unit
        self.mean_ = origin + unit * family.mean(phi, len(unit))
        covariance = family.covariance(phi)
        if covariance.ndim == 1:
            self.sd_ = unit * np.sqrt(covariance)
        else:
            self.covariance_ = unit[:, None] * covariance * unit
            self.sd_ = np.sqrt(np.diag(self.covariance_))
        if not (np.isfinite(self.mean_).all() and np.isfinite(self.sd_).all()):
            raise ValueError(
                f"step_size={self.step_size:g}: the approximation overflowed; set a smaller "
                "step_size."
            )

    def sample(self, n_samples: int = 1, random_state: RandomSource = 0) -> Array:
        """Independent draws from the approximation.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws.

        Returns
        -------
        draws : ndarray of shape (n_samples, n_params)
        """
        check_is_fitted(self)
        check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
        rng = as_random_state(random_state)
        noise = rng.standard_normal((n_samples, len(self.mean_)))
        family, phi, origin, unit = self._fitted
        return origin + unit * family.transform(phi[None], noise[None])[0]
