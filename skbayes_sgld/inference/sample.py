"""Draws from any posterior: the function behind which the estimators' machinery stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld.estimators.base import BayesianEstimator
from skbayes_sgld.inference.draws import PosteriorDraws
from skbayes_sgld.inference.langevin import LangevinSampling, resolve_preconditioner
from skbayes_sgld.posterior import as_posterior
from skbayes_sgld.posterior import check_gradient as compare_gradient
from skbayes_sgld.sampling import Mode, NoModeError, find_mode
from skbayes_sgld.sampling.preconditioners.metric import Diagonal
from skbayes_sgld.sampling.temperature import resolve_temperature

Array = NDArray[Any]


class PosteriorSample(LangevinSampling, BayesianEstimator):
    """Draws from a posterior, and what is known of them; :func:`sample` returns it.

    Attributes
    ----------
    values : ndarray of shape (n_chains, n_draws, n_params)
        In the parameters' own units, as ``posterior.constrain`` gives them.
    names : list of str
    posterior_ : PosteriorDraws
    sampler_, step_size_, gradient_, batch_size_, preconditioner_, n_burnin_, thin_
        What every ``"auto"`` was resolved to.
    """

    _registries = {**BayesianEstimator._registries, **LangevinSampling._registries}

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)

    warm_start = False

    def _draw(self, posterior: Any) -> PosteriorSample:
        self._check_settings()
        preconditioner = resolve_preconditioner(self)
        with one_blas_thread():
            self._sample(posterior, _locate(posterior), preconditioner)
        return self

    def _set_draws(self, posterior: Any, theta: Array, weights: Array | None = None) -> None:
        values = _each(posterior.constrain, theta)
        names = list(posterior.constrained_names)
        self.posterior_ = PosteriorDraws.weighted(values, names, weights)

    @property
    def values(self) -> Array:
        """The draws ``(n_chains, n_draws, n_params)``."""
        return self.posterior_.values

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return self.posterior_.names

    def __getitem__(self, name: str) -> Array:
        """Return the draws of one parameter ``(n_chains, n_draws)``."""
        return self.posterior_[name]

    def __repr__(self) -> str:
        """Say how many draws there are, of what, and how they were made."""
        return repr(self.posterior_).replace("PosteriorDraws", "PosteriorSample", 1)

    def to_frame(self) -> pd.DataFrame:
        """Return a table, one row a draw, indexed by chain and draw."""
        return self.posterior_.to_frame()


def _each(constrain: Any, theta: Array) -> Array:
    values = constrain(theta.reshape(-1, theta.shape[2]))
    return values.reshape(*theta.shape[:2], -1)


def _locate(posterior: Any) -> Mode:
    """Return the mode and the curvature there; where there is none, the start and no metric."""
    start = posterior.start()
    try:
        return find_mode(posterior, start)
    except NoModeError:
        return Mode(start, Diagonal(np.ones(posterior.n_params)))


def sample(
    posterior: Any,
    sampler: Any = "auto",
    *,
    step_size: Any = "auto",
    schedule: Any = "constant",
    temperature: Any = 1.0,
    batch_size: Any = "auto",
    gradient: Any = "auto",
    preconditioner: Any = "auto",
    clip: Any = None,
    n_draws: int = 1000,
    n_burnin: Any = "auto",
    thin: Any = "auto",
    n_chains: int = 4,
    check_gradient: bool = True,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> PosteriorSample:
    r"""Draw from any posterior, with every sampler and automatic setting of the estimators.

    Parameters
    ----------
    posterior : Posterior
        One of the package's, or a model of your own: see
        :class:`~skbayes_sgld.posterior.CustomPosterior`.
    sampler : str or Sampler, default="auto"
        ``"auto"`` is parallel tempering for a posterior that says it is ``multimodal``, and
        ``"sgld"`` for all others.
    check_gradient : bool, default=True
        Whether the posterior's gradient is compared with finite differences first; it costs a
        few hundred evaluations.
    step_size, schedule, temperature, batch_size, gradient, preconditioner, clip, n_draws, \
    n_burnin, thin, n_chains, n_jobs, random_state, verbose : object
        As those of :class:`~skbayes_sgld.SGLDLinearRegression`. A model without linear predictors
        takes all its rows at every step unless a ``gradient`` and a ``batch_size`` are given.

    Returns
    -------
    draws : PosteriorSample
        With ``values``, ``names``, ``summary()`` and ``diagnose()``.

    Raises
    ------
    ValueError, TypeError
        For settings that cannot be used, and for a gradient that is wrong, naming the coordinate.

    Examples
    --------
    >>> import skbayes_sgld
    >>> from skbayes_sgld.posterior import FunctionPosterior
    >>> normal = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=2)
    >>> draws = skbayes_sgld.sample(normal, random_state=0)
    >>> draws.values.std((0, 1)).round(1).tolist()
    [1.0, 1.0]
    """
    posterior = as_posterior(posterior)
    if isinstance(sampler, str) and sampler == "auto":
        sampler = "parallel_tempering" if posterior.multimodal else "sgld"
    draws = PosteriorSample(
        sampler=sampler,
        step_size=step_size,
        schedule=schedule,
        temperature=temperature,
        batch_size=batch_size,
        gradient=gradient,
        preconditioner=preconditioner,
        clip=clip,
        n_draws=n_draws,
        n_burnin=n_burnin,
        thin=thin,
        n_chains=n_chains,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )
    draws._check_settings()
    draws._resolve("sampler")
    if check_gradient:
        compare_gradient(posterior)
    # the Jacobian of its coordinates is not tempered
    return draws._draw(posterior.tempered(resolve_temperature(temperature).final))
