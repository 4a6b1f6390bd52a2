"""Variational inference: the normal law with independent coordinates that is nearest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._components import Component, check_number
from skbayes_sgld.sampling import Adam
from skbayes_sgld.sampling.randomness import ChainStreams

Array = NDArray[Any]

_RECORDS = 100  # points of the learning curve
_BLOCK = 64  # steps whose random numbers are drawn at a time


class BayesByBackprop(Component):
    """Mean-field normal approximation of a posterior, by the reparameterisation trick.

    Among the laws ``q = N(mean, diag(sd^2))`` it finds the one that maximises the evidence lower
    bound ``E_q[log p(y, theta)] + H(q)``, that is, minimises ``KL(q || posterior)`` (Blundell,
    Cornebise, Kavukcuoglu & Wierstra 2015, eq. 1). With ``theta = mean + sd e`` and e standard
    normal the bound's gradient needs only that of the log posterior g (their Section 3.2)::

        d / d mean = E[g(theta)]        d / d log sd = sd E[g(theta) e] + 1

    The 1 is the entropy's, in closed form. A minibatch's likelihood is rescaled by n / B, which
    is the same as spreading the KL evenly over the batches (their Section 3.4). The draws e come
    in pairs of opposite sign, so that on a normal posterior the mean's gradient has no noise; the
    step size falls linearly to zero, and mean and variance are averaged over the second half of
    the steps (Polyak & Juditsky 1992).

    On a normal posterior of precision Lambda the mean is exact and the variances are
    ``1 / Lambda_jj``: those of the conditional laws, smaller than the posterior's own wherever
    parameters are correlated (Bishop 2006, Section 10.1.2).

    Parameters
    ----------
    step_size : float, default=0.05
        Of Adam, at the start, in units of ``scale``.
    max_iter : int, default=2000
        Steps.
    n_particles : int, default=8
        Draws of theta a step; even.
    batch_size : int or None, default=None
        Rows of a minibatch, drawn without replacement; None takes all.
    random_state : int, RandomState or None, default=None
        Fixes the draws and the minibatches.

    Attributes
    ----------
    mean_, sd_ : ndarray of shape (n_params,)
        Of the approximation.
    elbo_ : ndarray of shape (n_points,)
        The learning curve: estimates of the evidence lower bound, up to the prior's constant.
    elbo_steps_ : ndarray of shape (n_points,)
        The steps at which they were taken.

    Examples
    --------
    >>> from skbayes_sgld.datasets import make_two_clusters
    >>> from skbayes_sgld.posterior import Bernoulli, GLMPosterior, Normal
    >>> from skbayes_sgld.variational import BayesByBackprop
    >>> X, y = make_two_clusters(random_state=0)
    >>> posterior = GLMPosterior(X, y.astype(float), Bernoulli(), Normal())
    >>> q = BayesByBackprop(random_state=0).fit(posterior)
    >>> q.sample(1000, random_state=0).shape
    (1000, 3)
    >>> bool(q.elbo_[-1] > q.elbo_[0])
    True
    """

    def __init__(
        self,
        *,
        step_size: float = 0.05,
        max_iter: int = 2000,
        n_particles: int = 8,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.step_size = step_size
        self.max_iter = max_iter
        self.n_particles = n_particles
        self.batch_size = batch_size
        self.random_state = random_state

    def check(self) -> None:
        """Raise where a parameter is out of range."""
        check_number(self.step_size, "step_size", low=0)
        for name in ("max_iter", "n_particles"):
            check_number(getattr(self, name), name, low=1, closed="left", integer=True)
        if self.n_particles % 2:
            raise ValueError(
                f"n_particles={self.n_particles} is odd; the draws come in pairs of opposite "
                "sign, so it must be even."
            )
        if self.batch_size is not None:
            check_number(self.batch_size, "batch_size", low=1, closed="left", integer=True)

    def fit(
        self, posterior: Any, start: ArrayLike | None = None, scale: ArrayLike = 1.0
    ) -> BayesByBackprop:
        """Fit the approximation to a posterior.

        Parameters
        ----------
        posterior : Posterior
            Any of the package's, or one of your own: it needs the four methods of
            :class:`skbayes_sgld.posterior.Posterior`.
        start : array-like of shape (n_params,) or None, default=None
            The mean to begin with; None is zero.
        scale : float or array-like of shape (n_params,), default=1.0
            The standard deviations to begin with, and the units in which the step size is taken.

        Returns
        -------
        self : BayesByBackprop

        Raises
        ------
        ValueError
            When a parameter is out of range, or the approximation overflows.
        """
        self.check()
        n, P = posterior.n_samples, posterior.n_params
        if self.batch_size is not None and self.batch_size > n:
            raise ValueError(
                f"batch_size={self.batch_size} is larger than the {n} rows, and the batches are "
                f"drawn without replacement; give at most {n}, or None for all."
            )
        entropy = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        streams = ChainStreams(entropy, 0)
        origin = np.zeros(P) if start is None else np.array(start, dtype=float)
        unit = np.broadcast_to(np.asarray(scale, dtype=float), (P,))
        every = max(1, self.max_iter // _RECORDS)
        adam, n_pairs = Adam(), self.n_particles // 2
        # phi holds (mean - origin) / unit and log(sd / unit)
        state = adam.init(np.zeros((1, 2 * P)), None)
        average, first = np.zeros((2, P)), self.max_iter // 2
        curve, steps = [], []
        for t in range(self.max_iter):
            phi = state["theta"][0]
            sd = unit * np.exp(phi[P:])
            if t % _BLOCK == 0:
                normals = streams.normals(_BLOCK * n_pairs, P).reshape(_BLOCK, n_pairs, P)
            e = np.concatenate([normals[t % _BLOCK], -normals[t % _BLOCK]])
            theta = origin + unit * phi[:P] + sd * e
            idx = self._rows(streams, n, n_pairs)
            if t % every == 0 or t == self.max_iter - 1:
                curve.append(self._elbo(posterior, theta, idx, sd))
                steps.append(t)
            grad = posterior.grad_log_likelihood(theta, idx) * self._rescale(n)
            grad += posterior.grad_log_prior(theta)
            ascent = np.concatenate([unit * grad.mean(axis=0), sd * (grad * e).mean(axis=0) + 1.0])
            if not np.isfinite(ascent).all():
                raise ValueError(
                    f"step_size={self.step_size:g}: the approximation overflowed at step {t}; "
                    "set a smaller step_size or scale."
                )
            eta = self.step_size * (1.0 - t / self.max_iter)
            state["count"] = state["count"] + 1
            state["theta"] = state["theta"] + eta * adam.direction(state, ascent[None])
            if t >= first:  # variances and not their logs: it is they whose gradient is linear
                phi = state["theta"][0]
                average += np.array([phi[:P], np.exp(2.0 * phi[P:])]) / (self.max_iter - first)
        self.mean_, self.sd_ = origin + unit * average[0], unit * np.sqrt(average[1])
        self.elbo_, self.elbo_steps_ = np.array(curve), np.array(steps)
        return self

    def _rows(self, streams: ChainStreams, n: int, n_pairs: int) -> Array | None:
        """Return the minibatches of the particles; those of a pair share theirs."""
        if self.batch_size is None:
            return None
        return np.tile(streams.rows(n_pairs, n, self.batch_size, False), (2, 1))

    def _rescale(self, n: int) -> float:
        return 1.0 if self.batch_size is None else n / self.batch_size

    def _elbo(self, posterior: Any, theta: Array, idx: Array | None, sd: Array) -> float:
        """Return an estimate of the evidence lower bound from the particles."""
        log_likelihood = posterior.log_likelihood(theta, idx).sum(axis=1)
        joint = log_likelihood * self._rescale(posterior.n_samples) + posterior.log_prior(theta)
        entropy = np.log(sd).sum() + 0.5 * len(sd) * np.log(2.0 * np.pi * np.e)
        return float(joint.mean() + entropy)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Return independent draws from the approximation.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None

        Returns
        -------
        draws : ndarray of shape (n_samples, n_params)
        """
        check_is_fitted(self)
        check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
        rng = check_random_state(random_state)
        return self.mean_ + self.sd_ * rng.standard_normal((n_samples, len(self.mean_)))
