"""The settings of a run of chains: name, default, documentation and check of each, written once.

Estimators inherit them as parameters, ``sample`` takes them as arguments, and a run uses them as
:class:`Settings`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from inspect import Parameter
from typing import Any, Self

import numpy as np

from skbayes_sgld._components import Registry
from skbayes_sgld._random import check_seed
from skbayes_sgld.inference.setting_checks import (
    AUTO,
    Check,
    check_init,
    check_verbose,
    checked,
    component,
    file_path,
    number,
    optional,
    parameterization,
    processes,
    resolve_preconditioner,
    resolve_temperature,
    whole,
)
from skbayes_sgld.sampling import (
    CLIPS,
    GRADIENTS,
    PRECONDITIONERS,
    SAMPLERS,
    SCHEDULES,
    Constant,
)


def setting(default: Any, check: Check, registry: Registry[Any] | None = None) -> Any:
    """Field of a setting: its default, its check, and the registry of its names."""
    return field(default=default, metadata={"check": check, "registry": registry})


@dataclass(kw_only=True, eq=False, repr=False)
class RunSettings:
    """Settings of a run, as written by the user.

    Sampler
    -------
    sampler : str or Sampler, default="auto"
        ``"auto"`` is Leimkuhler-Matthews SGLD; HMC if a pilot finds a bias in it; or on small
        tables, if a pilot accepts most of them, proposals of a normal distribution. A named sampler
        never switches to another: ``"sgld"``, ``"psgld"``, ``"sghmc"``, ``"sgnht"``, which can take
        minibatches; ``"hmc"``, ``"mala"``, ``"random_walk"``, ``"independence"``,
        ``"parallel_tempering"``, which are exact and take all rows at every step; or an instance
        such as ``SGLD(integrator="euler")``.
    step_size : float or "auto", default="auto"
        eta of the recursion, in the preconditioned space. With the curvature preconditioner it has
        no unit: 0.2 moves a fifth of the way to the mode. Without a preconditioner it is in raw
        units. The default is the largest step size with which, in a pilot, no mean or standard
        deviation is off by more than 1 % of a standard deviation.
    schedule : str or Schedule, default="constant"
        Change of the step size: ``"constant"``, ``"harmonic"``, ``"polynomial"``,
        ``"flat_decay_flat"``, ``"cyclical"`` or an instance.
    temperature : float, str or Schedule, default=1.0
        tau; the chains sample the posterior density to the power 1 / tau. A schedule that
        becomes constant, such as ``"cooling"`` or ``Cooling(high=20.0)``, gives tau at every step:
        chains that start hot cross between modes. Draws begin once it is constant. A prior that
        learns its scale takes no tau below 1, and one that learns several, such as a horseshoe,
        only 1: the density of the scales would have no finite integral.
    batch_size : int or "auto", default="auto"
        Rows of a minibatch. By default enough that their noise adds less than 0.5 % to any standard
        deviation, or all rows if that costs no more.
    gradient : str or Gradient, default="auto"
        ``"full"``, ``"minibatch"``, ``"control_variate"``, ``"svrg"``, ``"saga"`` or an instance.
        By default the cheapest without visible noise.
    preconditioner : str, Preconditioner, array-like or None, default="auto"
        G of the recursion. ``"auto"`` chooses ``"curvature"``, the inverse curvature at the mode;
        None is the plain recursion; an array of shape (n_params, n_params) or (n_params,) is
        your own matrix or diagonal. With None, a given ``step_size`` and a full or minibatch
        gradient, the fit is the published algorithm: it looks for no mode and forms no matrix.
    parameterization : str, default="auto"
        Coordinates that the chains move in: ``"centered"`` are the model's own; in
        ``"noncentered"`` ones noise and coefficients are independent (a normal likelihood with
        inferred noise); ``"row_space"`` is the space of the rows (a normal prior and fewer rows
        than columns); in ``"quantiles"`` a dispersion of counts, or a correlation of totals, is
        nearly normal even if it may be 0. Models with effects of groups have two others:
        ``"integrated"``, the scales alone (a normal likelihood and a normal prior), and
        ``"standardised"``. The posterior is the same. ``"auto"`` changes coordinates only if the
        preconditioner is the curvature and every step takes all rows.
    init : {"auto", "mode", "prior", "zeros"} or array-like, default="auto"
        Starting points of the chains. ``"mode"``: overdispersed around the mode. ``"prior"``: draws
        from the prior, or zeros if it is flat, with the variance of y as noise variance.
        ``"zeros"``: zeros. An array has shape (n_params,) or (n_chains, n_params), in the order and
        the units of ``summary()``. ``"auto"`` is the prior, as published, unless the preconditioner
        is the curvature. Then it is the mode, or with HMC and MALA, under a prior that is
        log-concave or learns its scales, the final positions of the pilot chains.
    clip : str, Clip or None, default=None
        Bound on the gradient: ``"norm"``, ``"value"`` or an instance such as
        ``NormClip(threshold=100.0)``. Clipping biases the posterior.

    Run
    ---
    n_draws : int, default=1000
        Draws to keep from each chain.
    n_burnin : int or "auto", default="auto"
        Steps before the first draw.
    thin : int or "auto", default="auto"
        Steps from draw to draw; by default enough that neighbours are nearly independent.
    n_chains : int, default=4
        Number of chains. They start apart, so that R-hat shows whether they have mixed.
    n_jobs : int or None, default=None
        Processes that share the chains, as joblib counts them. They take seconds to start,
        and are used only if a run takes more than a minute. The draws do not depend on them.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the pilots and the chains.
    verbose : int, default=0
        1 shows on standard error which stage runs, a bar of the draws (lines of text without tqdm),
        and at the end the seconds of each stage, as ``result_.timings``.
    checkpoint : str, path or None, default=None
        File to which the run is written at intervals, for ``resume_from``. Use one file for each
        fit. The file of an unfinished run is not replaced.
    resume_from : str, path or None, default=None
        Checkpoint to continue; the draws equal those of a run that never stopped. Data and settings
        must be the same; ``n_draws`` may be larger.
    max_time : float or None, default=None
        Seconds from the beginning of the fit after which no more draws are made. The pilots
        and the mode come first, and are not cut short.
    target_ess : float or None, default=None
        Bulk effective sample size of every parameter at which a run ends, after a tenth of
        ``n_draws`` to ten times ``n_draws``.
    """

    sampler: Any = setting("auto", component(SAMPLERS, auto=True), SAMPLERS)
    step_size: Any = setting("auto", number(auto=True, any_size=True))
    schedule: Any = setting("constant", component(SCHEDULES), SCHEDULES)
    temperature: Any = setting(1.0, lambda value, _: resolve_temperature(value), SCHEDULES)
    batch_size: Any = setting("auto", whole(1, auto=True))
    gradient: Any = setting("auto", component(GRADIENTS, auto=True), GRADIENTS)
    preconditioner: Any = setting(
        "auto", lambda value, _: resolve_preconditioner(value), PRECONDITIONERS
    )
    parameterization: str = setting("auto", parameterization)
    init: Any = setting("auto", lambda value, _: check_init(value))
    clip: Any = setting(None, optional(component(CLIPS)), CLIPS)
    n_draws: int = setting(1000, whole(1))
    n_burnin: Any = setting("auto", whole(0, auto=True))
    thin: Any = setting("auto", whole(1, auto=True))
    n_chains: int = setting(4, whole(1))
    n_jobs: int | None = setting(None, optional(processes))
    random_state: Any = setting(None, checked(check_seed))
    verbose: int = setting(0, checked(check_verbose))
    checkpoint: Any = setting(None, optional(file_path))
    resume_from: Any = setting(None, optional(file_path))
    max_time: float | None = setting(None, optional(number()))
    target_ess: float | None = setting(None, optional(number()))


def registries() -> dict[str, Registry[Any]]:
    """Registries of the settings that are components, by setting."""
    found = {each.name: each.metadata["registry"] for each in fields(RunSettings)}
    return {name: registry for name, registry in found.items() if registry is not None}


def as_arguments() -> list[Parameter]:
    """Settings as keyword-only parameters of a signature."""
    kind = Parameter.KEYWORD_ONLY
    return [
        Parameter(each.name, kind, default=each.default, annotation=each.type)
        for each in fields(RunSettings)
    ]


@dataclass(kw_only=True, eq=False)
class Settings(RunSettings):
    """Checked settings of a run.

    A setting that the user leaves to the plan is
    :data:`~skbayes_sgld.inference.setting_checks.AUTO`. Names are components: instances, copied
    from the user's. None is never "auto": it is a limit, a bound or a file that is not there.

    Attributes
    ----------
    tau : float
        Temperature of the draws, for which metric, step size, batch size and starting points are
        chosen.
    temperature : Schedule or None
        Schedule that leads to ``tau``; None if the temperature is ``tau`` throughout.
    """

    tau: float = 1.0

    @classmethod
    def of(cls, owner: Any) -> Self:
        """Checked settings of ``owner``, an estimator or a namespace.

        A setting that ``owner`` lacks has its default. Unused settings are checked too.

        Raises
        ------
        ValueError, TypeError
            The error names the setting, its value and the accepted values.
        """
        values = {
            each.name: each.metadata["check"](getattr(owner, each.name, each.default), each.name)
            for each in fields(RunSettings)
        }
        tau, values["temperature"] = values["temperature"]
        return cls(**values, tau=tau)

    @property
    def names_files(self) -> bool:
        """Whether the run is written to a file or resumed from one."""
        return self.checkpoint is not None or self.resume_from is not None

    @property
    def in_parts(self) -> bool:
        """Whether chains run in parts: they may stop early, are written or are resumed."""
        may_stop = self.max_time is not None or self.target_ess is not None
        return may_stop or self.names_files

    @property
    def n_hot(self) -> int:
        """Number of steps before the final temperature."""
        return 0 if self.temperature is None else int(self.temperature.settles_at)

    @property
    def automatic(self) -> bool:
        """Whether the tuning chooses sampler, step size and metric."""
        return self.sampler is AUTO and self.step_size is AUTO and self.uses_curvature

    @property
    def left_to_tuning(self) -> bool:
        """Whether the tuning also chooses the rows, so that it may choose any sampler."""
        return self.automatic and self.may_take_all_rows and self.clip is None

    @property
    def all_left_to_tuning(self) -> bool:
        """Whether no rows are asked for either, not even all of them."""
        return self.left_to_tuning and self.gradient is AUTO

    @property
    def uses_curvature(self) -> bool:
        """Whether the metric is the inverse curvature at the mode."""
        return self.preconditioner is AUTO or self.preconditioner.uses_curvature

    @property
    def starts_at_mode(self) -> bool:
        """Whether the user asks for starts around the mode."""
        return isinstance(self.init, str) and self.init == "mode"

    @property
    def allows_walkers(self) -> bool:
        """Whether a chain's draws may come from walkers: if stationary and not run in parts."""
        return self.is_steady and not self.in_parts and not isinstance(self.init, np.ndarray)

    @property
    def is_steady(self) -> bool:
        """Whether steps and temperature stay the same."""
        return isinstance(self.schedule, Constant) and self.temperature is None

    @property
    def may_take_all_rows(self) -> bool:
        """Whether neither ``batch_size`` nor ``gradient`` asks for minibatches.

        If both are "auto", the plan may still choose minibatches.
        """
        minibatch = self.gradient is not AUTO and self.gradient.minibatch
        return self.batch_size is AUTO and not minibatch

    @property
    def given_temperature(self) -> Any:
        """Tau, or the schedule that leads to it."""
        return self.tau if self.temperature is None else self.temperature

    @property
    def why_no_learned_scale(self) -> str:
        """Setting that excludes a prior with a learned scale, as ``name=value``; "" if none does.

        Such a setting belongs to the model's own coordinates; a learned scale needs others. At a
        temperature below 1 it has no density.
        """
        if self.tau < 1.0:
            return f"temperature={self.given_temperature!r}"
        if not self.uses_curvature:
            return f"preconditioner={self.preconditioner!r}"
        if not self.may_take_all_rows:
            return "minibatches"
        name = self.parameterization
        return f"parameterization={name!r}" if name == "centered" else ""
