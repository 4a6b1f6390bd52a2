"""``sample``: draws from any posterior, by the same plan and run as the estimators."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from textwrap import wrap
from types import SimpleNamespace
from typing import Any, TypeVar

from skbayes_sgld._checks import check_flag
from skbayes_sgld._doors import Door
from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._random import draw_seed
from skbayes_sgld._timings import timed
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.inference.run import plan_and_run
from skbayes_sgld.inference.settings import Settings, as_arguments
from skbayes_sgld.own_models import as_posterior
from skbayes_sgld.own_models import check_gradient as compare_gradient
from skbayes_sgld.posterior import Posterior

_NETWORK = Door("skbayes_sgld.neural_network.ensemble", "sample_network")

F = TypeVar("F", bound=Callable[..., Any])


def _with_settings(function: F) -> F:
    """Give a function of ``**settings`` the signature and documentation of all settings."""
    shown: Any = function
    taken = signature(function)
    own = [each for each in taken.parameters.values() if each.kind != Parameter.VAR_KEYWORD]
    named = {each.name for each in own}
    settings = [each for each in as_arguments() if each.name not in named]
    shown.__signature__ = taken.replace(parameters=[*own, *settings])
    names = " \\\n    ".join(wrap(", ".join(each.name for each in settings), 90))
    shown.__doc__ = (function.__doc__ or "").replace("**settings :", f"{names} :")
    return function


@numpy_defaults
@_with_settings
def sample(
    posterior: Posterior,
    sampler: Any = "auto",
    *,
    check_gradient: bool = True,
    **settings: Any,
) -> SamplingResult:
    r"""Draws from any posterior, with the samplers and automatic settings of the estimators.

    Parameters
    ----------
    posterior : Posterior
        One of the package's, or a model of your own with ``n_params``, ``param_names``,
        ``log_density`` and ``grad``: see :class:`~skbayes_sgld.own_models.CustomPosterior` for
        ranges and minibatches.
    sampler : str or Sampler, default="auto"
        ``"auto"`` is parallel tempering for a posterior that declares itself ``multimodal``, and
        for your own model if climbs from several points end at several modes, or a tenth of the
        mass is more than 8 sds from the mode. Otherwise it is Leimkuhler-Matthews SGLD, or HMC if a
        pilot finds a bias in it.
    check_gradient : bool, default=True
        Whether to compare the posterior's gradient with finite differences first, which takes a
        few hundred evaluations.
    **settings : object
        Settings as for :class:`~skbayes_sgld.SGLDLinearRegression`. A model without linear
        predictors takes all its rows at every step, unless ``gradient`` and ``batch_size`` are
        given.

    Returns
    -------
    result : SamplingResult
        It has ``values``, ``names``, ``summary()`` and ``diagnose()``; ``print(result.plan)`` shows
        every choice and its reason.

    Raises
    ------
    ValueError, TypeError
        If a setting cannot be used, or the gradient is wrong; the error names the coordinate.

    Examples
    --------
    >>> import skbayes_sgld
    >>> from skbayes_sgld.own_models import FunctionPosterior
    >>> normal = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=2)
    >>> result = skbayes_sgld.sample(normal, random_state=0)
    >>> result.values.std((0, 1)).round(1).tolist()
    [1.0, 1.0]
    """
    signature(sample).bind(posterior, sampler, **settings)  # raise on an unknown name
    run = Settings.of(SimpleNamespace(sampler=sampler, **settings))
    model = as_posterior(posterior)
    if check_flag(check_gradient, "check_gradient"):
        compare_gradient(model)
    inputs = partial(_inputs, posterior, model, run)
    with one_blas_thread(), timed("sample", run.verbose):
        way = _NETWORK.open() if model.facts.ensemble else plan_and_run
        return way(model, run, inputs, draw_seed(run.random_state))


def _inputs(posterior: Any, model: Any, run: Settings) -> dict[str, Any]:
    """Settings and names by which a checkpoint recognises its run.

    It recognises another model, or other data, by the first steps of the chains.
    """
    return vars(run) | {"posterior": (type(posterior).__name__, model.param_names)}
