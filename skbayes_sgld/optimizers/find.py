"""The mode of any posterior that has rows, by Newton's method or by any optimizer."""

from __future__ import annotations

from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld._checks import as_numbers, check_number
from skbayes_sgld._components import resolve
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._warnings import warn
from skbayes_sgld.optimizers.climb import climb
from skbayes_sgld.optimizers.climb_schedule import ClimbSettings
from skbayes_sgld.optimizers.rules import OPTIMIZERS, Newton, Optimizer
from skbayes_sgld.own_models.boundary import as_posterior
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Posterior
from skbayes_sgld.sampling.base import Schedule
from skbayes_sgld.sampling.clipping import CLIPS, Clip
from skbayes_sgld.sampling.preconditioners import Preconditioner, preconditioner_of
from skbayes_sgld.sampling.schedules import SCHEDULES
from skbayes_sgld.sampling.tuning import mode as tuning

__all__ = ["far_message", "find_mode"]


@numpy_defaults
def find_mode(
    posterior: Posterior | BasePosterior,
    start: ArrayLike | None = None,
    optimizer: str | Optimizer = "newton",
    *,
    step_size: float | None = None,
    schedule: str | Schedule = "polynomial",
    batch_size: int | None = None,
    replacement: bool = True,
    preconditioner: str | Preconditioner | ArrayLike | None = None,
    clip: str | Clip | None = None,
    max_iter: int = 2000,
    tol: float = 0.1,
    random_state: int = 0,
) -> tuning.Mode:
    """Find the mode of any posterior, by Newton's method or by stochastic gradients.

    Parameters
    ----------
    posterior : Posterior
        One of the package's, or a model of your own. Minibatches need rows: ``n_samples`` of
        them, and functions that take ``idx``.
    start : array-like of shape (n_params,), default=None
        Starting point; by default that of the posterior if it has one, else zeros.
    optimizer : str or Optimizer, default="newton"
        ``"newton"``, which takes none of the settings below, or an optimizer of
        :class:`~skbayes_sgld.SGDMAPClassifier`, such as ``"sgd"``.
    step_size : float, default=None
        By default a step size for each parameter, from the curvature at the start.
    schedule : str or Schedule, default="polynomial"
    batch_size : int, default=None
        By default batches that grow, up to all rows.
    replacement : bool, default=True
        Whether batches of a given size are drawn with replacement.
    preconditioner : str, Preconditioner or array-like, default=None
        Metric of the steps, bound at the start.
    clip : str or Clip, default=None
    max_iter : int, default=2000
        Passes over the rows.
    tol : float, default=0.1
        Distance to the mode at which the search ends: the largest over the parameters, in
        posterior standard deviations.
    random_state : int, default=0

    Returns
    -------
    mode : Mode
        The point where the search ended, and the inverse curvature there.

    Warns
    -----
    ConvergenceWarning
        If the search ended further than ``tol`` from the mode, with the distance.

    Raises
    ------
    NoModeError
        If Newton's method finds no mode: the posterior is improper, or nearly.
    TypeError, ValueError
        If a setting is out of range, or the posterior lacks what the optimizer needs.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.own_models import FunctionPosterior
    >>> from skbayes_sgld.optimizers import find_mode
    >>> normal = FunctionPosterior(lambda x: -(x - 3.0)[:, 0] ** 2, lambda x: 6.0 - 2.0 * x, 1)
    >>> find_mode(normal, np.zeros(1), optimizer="gd").theta.round(2).tolist()
    [3.0]
    """
    bound = as_posterior(posterior)
    theta = as_numbers(bound.start() if start is None else start, "start")
    if theta.shape != (bound.n_params,):
        raise ValueError(f"start has shape {theta.shape}; it must be ({bound.n_params},).")
    rule = resolve(optimizer, OPTIMIZERS, "optimizer")
    if isinstance(rule, Newton):
        return tuning.newton_mode(bound, theta, near=tuning.TOLERANCE)
    check_number(max_iter, "max_iter", low=1, closed="left", integer=True)
    check_number(tol, "tol", low=0, closed="left")
    if step_size is not None:
        check_number(step_size, "step_size", low=0, any_size=True)
    if batch_size is not None:
        check_number(batch_size, "batch_size", low=1, closed="left", integer=True)
    settings = ClimbSettings(
        optimizer=rule,
        step_size=step_size,
        schedule=resolve(schedule, SCHEDULES, "schedule"),
        batch_size=batch_size,
        replacement=replacement,
        preconditioner=preconditioner_of(preconditioner),
        clip=None if clip is None else resolve(clip, CLIPS, "clip"),
        max_iter=max_iter,
        tol=tol,
        seed=random_state,
    )
    end = climb(bound, theta, settings).end
    if not end.distance <= tol:
        warn(far_message(end.distance, settings), ConvergenceWarning)
    return tuning.Mode(end.theta, end.metric)


def far_message(distance: float, settings: ClimbSettings) -> str:
    """Warning of an optimizer that ended far from the mode, with remedies that are not set."""
    remedies = ["raise max_iter"]
    if settings.step_size is not None:
        remedies.append("leave the step size to be chosen")
    if not settings.preconditioner.uses_curvature:
        remedies.append("set preconditioner='curvature', which undoes the correlation of columns")
    remedies.append("set optimizer='newton', which finds the mode")
    return (
        f"The optimizer is {distance:.3g} posterior standard deviations from the mode in the "
        f"worst coordinate after max_iter={settings.max_iter} passes over the rows, and "
        f"tol={settings.tol:g}; "
        f"{', or '.join(remedies)}."
    )
