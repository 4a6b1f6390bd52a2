"""``sample``: draws from any posterior, by the same plan and run as the estimators."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from skbayes_sgld._checks import check_flag
from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._random import draw_seed
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.inference.run import plan_and_run
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.own_models import as_posterior
from skbayes_sgld.own_models import check_gradient as compare_gradient
from skbayes_sgld.posterior import Posterior


@numpy_defaults
def sample(
    posterior: Posterior,
    sampler: Any = "auto",
    *,
    step_size: Any = "auto",
    schedule: Any = "constant",
    temperature: float = 1.0,
    batch_size: Any = "auto",
    gradient: Any = "auto",
    preconditioner: Any = "auto",
    parameterization: str = "auto",
    init: Any = "auto",
    clip: Any = None,
    n_draws: int = 1000,
    n_burnin: Any = "auto",
    thin: Any = "auto",
    n_chains: int = 4,
    check_gradient: bool = True,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    checkpoint: Any = None,
    resume_from: Any = None,
    max_time: float | None = None,
    target_ess: float | None = None,
) -> SamplingResult:
    r"""Draws from any posterior, with the samplers and automatic settings of the estimators.

    Parameters
    ----------
    posterior : Posterior
        One of the package's, or a model of your own with ``n_params``, ``param_names``,
        ``log_density`` and ``grad``: see :class:`~skbayes_sgld.own_models.CustomPosterior` for
        ranges and minibatches.
    sampler : str or Sampler, default="auto"
        ``"auto"`` is parallel tempering for a posterior that says it is ``multimodal``, and for a
        model of your own where climbs from several points end at several modes, or where a tenth
        of the mass is more than 8 sds from the mode; for all others
        Leimkuhler-Matthews SGLD, or HMC where a pilot finds an error in it.
    check_gradient : bool, default=True
        Whether the posterior's gradient is compared with finite differences first; it costs a
        few hundred evaluations.
    step_size, schedule, temperature, batch_size, gradient, preconditioner, parameterization, \
    init, clip, n_draws, n_burnin, thin, n_chains, n_jobs, random_state, verbose, checkpoint, \
    resume_from, max_time, target_ess : object
        As those of :class:`~skbayes_sgld.SGLDLinearRegression`. A model without linear predictors
        takes all its rows at every step unless a ``gradient`` and a ``batch_size`` are given.

    Returns
    -------
    result : SamplingResult
        With ``values``, ``names``, ``summary()`` and ``diagnose()``; ``print(result.plan)`` says
        what was chosen and why.

    Raises
    ------
    ValueError, TypeError
        For settings that cannot be used, and for a gradient that is wrong, naming the coordinate.

    Examples
    --------
    >>> import skbayes_sgld
    >>> from skbayes_sgld.own_models import FunctionPosterior
    >>> normal = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=2)
    >>> result = skbayes_sgld.sample(normal, random_state=0)
    >>> result.values.std((0, 1)).round(1).tolist()
    [1.0, 1.0]
    """
    arguments = dict(locals())  # the settings by name, among others
    settings = Settings.of(SimpleNamespace(**arguments))
    model = as_posterior(posterior)
    if check_flag(check_gradient, "check_gradient"):
        compare_gradient(model)
    with one_blas_thread():
        # a checkpoint tells a changed model or other data by the first steps of the chains
        inputs = vars(settings) | {"posterior": (type(posterior).__name__, model.param_names)}
        return plan_and_run(model, settings, inputs, draw_seed(random_state))
