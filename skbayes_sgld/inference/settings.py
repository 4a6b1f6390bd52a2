"""The settings of a run of chains, as the user wrote them, checked once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from skbayes_sgld._checks import check_choice, check_flag, check_number, check_path
from skbayes_sgld._components import Component, Registry, resolve
from skbayes_sgld._memory import check_memory
from skbayes_sgld._random import check_seed
from skbayes_sgld.sampling import (
    CLIPS,
    GRADIENTS,
    PRECONDITIONERS,
    SAMPLERS,
    SCHEDULES,
    Clip,
    Constant,
    Gradient,
    Preconditioner,
    Sampler,
    Schedule,
)
from skbayes_sgld.sampling.preconditioners import preconditioner_of

REGISTRIES: dict[str, Registry[Any]] = {
    "sampler": SAMPLERS,
    "schedule": SCHEDULES,
    "gradient": GRADIENTS,
    "preconditioner": PRECONDITIONERS,
    "clip": CLIPS,
    "temperature": SCHEDULES,
}
_PARAMETERIZATIONS = ("auto", "centered", "noncentered", "row_space")
_INITS = ("auto", "mode", "prior", "zeros")

_TEMPERATURES = 1e-15, 1e15  # beyond them draws are the mode, or overflow

# defaults of the settings that networks lack
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("sampler", "gradient", "preconditioner", "parameterization", "init"), "auto"),
    "schedule": "constant",
    "warm_start": False,
}


@dataclass(frozen=True)
class Settings:
    """The settings of a run, as the user gave them; None stands for ``"auto"``, but for ``init``.

    Components are instances, copied from the user's: where the user wrote ``preconditioner=None``
    it is the identity. ``clip=None`` is no clip. ``init`` is a name or an array. ``tau`` is the
    temperature of the draws, and ``temperature`` the schedule that leads to it, None where it is
    ``tau`` throughout: metric, step size, batch size and starting points are chosen for ``tau``.
    ``prior`` is the choice of a linear model's prior, which is made before the run; None elsewhere.
    """

    sampler: Sampler | None
    step_size: float | None
    schedule: Schedule
    temperature: Schedule | None
    tau: float
    batch_size: int | None
    gradient: Gradient | None
    preconditioner: Preconditioner | None
    parameterization: str | None
    init: Any
    clip: Clip | None
    n_draws: int
    n_burnin: int | None
    thin: int | None
    n_chains: int
    verbose: int
    warm_start: bool
    n_jobs: int | None
    random_state: Any
    checkpoint: Path | None
    resume_from: Path | None
    max_time: float | None
    target_ess: float | None
    prior: Any = None

    @classmethod
    def of(cls, owner: Any) -> Settings:
        """Settings of ``owner``, an estimator or a namespace, all checked, used or not.

        A setting that ``owner`` lacks has its default.

        Raises
        ------
        ValueError, TypeError
            Naming the setting, its value and what is accepted.
        """
        values: dict[str, Any] = {
            field.name: getattr(owner, field.name, _DEFAULTS.get(field.name))
            for field in fields(cls)
            if field.name not in ("prior", "tau")
        }
        for name in ("sampler", "gradient"):
            value, registry = values[name], REGISTRIES[name]
            is_auto = isinstance(value, str) and value == "auto"
            values[name] = None if is_auto else resolve(value, registry, name, ("auto",))
        values["schedule"] = resolve(values["schedule"], SCHEDULES, "schedule")
        if values["clip"] is not None:
            values["clip"] = resolve(values["clip"], CLIPS, "clip")
        values["preconditioner"] = resolve_preconditioner(values["preconditioner"])
        name = values["parameterization"]
        check_choice(name, "parameterization", _PARAMETERIZATIONS)
        values["parameterization"] = None if name == "auto" else name
        values["init"] = check_init(values["init"])
        values["tau"], values["temperature"] = resolve_temperature(values["temperature"])
        for name in ("n_draws", "n_chains"):
            check_number(values[name], name, low=1, closed="left", integer=True)
            values[name] = int(values[name])  # one of NumPy's may overflow
        values["step_size"] = number_or_auto(values["step_size"], "step_size", low=0, any_size=True)
        for name, low in (("batch_size", 1), ("n_burnin", 0), ("thin", 1)):
            values[name] = number_or_auto(values[name], name, low=low, closed="left", integer=True)
        check_verbose(values["verbose"])
        check_flag(values["warm_start"], "warm_start")
        if values["n_jobs"] is not None:
            check_number(values["n_jobs"], "n_jobs", integer=True)
            if values["n_jobs"] == 0:
                raise ValueError(
                    "n_jobs=0 is out of range; give None, a positive number, or -1 for all."
                )
        check_seed(values["random_state"])
        for name in ("checkpoint", "resume_from"):
            if values[name] is not None:
                check_path(values[name], name)
                values[name] = path = Path(values[name])
                if path.is_dir():
                    raise IsADirectoryError(
                        f"{name}={str(path)!r} is a folder; give the path of a file, or None."
                    )
        for name in ("max_time", "target_ess"):
            if values[name] is not None:
                check_number(values[name], name, low=0)
        return cls(**values)

    @property
    def names_files(self) -> bool:
        """Whether the run is written to a file, or resumed from one."""
        return self.checkpoint is not None or self.resume_from is not None

    @property
    def in_parts(self) -> bool:
        """Whether chains run in parts, since they may stop, are written or are resumed."""
        may_stop = self.max_time is not None or self.target_ess is not None
        return may_stop or self.names_files

    @property
    def n_hot(self) -> int:
        """Number of steps before the final temperature."""
        return 0 if self.temperature is None else int(self.temperature.settles_at)

    @property
    def automatic(self) -> bool:
        """Whether sampler, step size and metric are all left to the tuning."""
        return self.sampler is None and self.step_size is None and self.uses_curvature

    @property
    def left_to_tuning(self) -> bool:
        """Whether sampler, step size, metric and rows are, so that any sampler may be chosen."""
        return self.automatic and self.may_take_all_rows and self.clip is None

    @property
    def uses_curvature(self) -> bool:
        """Whether the metric is the inverse curvature at the mode."""
        return self.preconditioner is None or self.preconditioner.uses_curvature

    def init_is(self, name: str) -> bool:
        """Whether ``init`` is this name."""
        return isinstance(self.init, str) and self.init == name

    @property
    def allows_walkers(self) -> bool:
        """Whether walkers may share the draws of a chain: it is stationary, and runs in one go."""
        steady = isinstance(self.schedule, Constant) and self.temperature is None
        return steady and not self.in_parts and isinstance(self.init, str)

    @property
    def may_take_all_rows(self) -> bool:
        """Whether neither ``batch_size`` nor ``gradient`` asks for minibatches.

        If both are "auto", minibatches may still be the plan's choice.
        """
        minibatch = self.gradient is not None and self.gradient.minibatch
        return self.batch_size is None and not minibatch

    @property
    def why_no_learned_scale(self) -> str:
        """Setting that excludes a prior with a learned scale, as ``name=value``; "" if none does.

        Such a setting belongs to the model's own coordinates; a learned scale needs others.
        """
        if not self.uses_curvature:
            return f"preconditioner={self.preconditioner!r}"
        if not self.may_take_all_rows:
            return "minibatches"
        name = self.parameterization
        return f"parameterization={name!r}" if name == "centered" else ""


def resolve_preconditioner(value: Any) -> Preconditioner | None:
    """Preconditioner as a component; None for "auto", the identity for the user's None."""
    if isinstance(value, str) and value == "auto":
        return None
    return preconditioner_of(value, ("auto",))


def check_temperature(value: Any) -> None:
    """Raise unless 1e-15 <= temperature <= 1e15."""
    low, high = _TEMPERATURES
    check_number(value, "temperature", low=low, high=high, closed="both")


def resolve_temperature(value: float | str | Schedule) -> tuple[float, Schedule | None]:
    """Final temperature of a number, or of a schedule by name or as an instance; and the schedule.

    Raises
    ------
    ValueError, TypeError
        Where it is neither, or a schedule that never settles: its draws would not come from one
        distribution.
    """
    if not isinstance(value, (str, Component)):
        check_temperature(value)
        return float(value), None
    if isinstance(value, str) and value not in SCHEDULES:
        settling = (n for n, schedule in SCHEDULES.items() if np.isfinite(schedule().settles_at))
        names = ", ".join(map(repr, sorted(settling)))
        raise ValueError(
            f"temperature={value!r} is not accepted; it must be a number in [{_TEMPERATURES[0]:g}, "
            f"{_TEMPERATURES[1]:g}], or a schedule that settles, by name ({names}) or as an "
            "instance."
        )
    schedule = resolve(value, SCHEDULES, "temperature")
    if not np.isfinite(schedule.settles_at):
        raise ValueError(
            f"temperature={value!r} never settles, and draws at a temperature that goes on "
            "changing are of no one distribution; give a positive number, 'cooling', or another "
            "schedule that ends in a constant, such as FlatDecayFlat."
        )
    if schedule.settles_at > 1e9:
        raise ValueError(
            f"temperature={value!r} settles after {schedule.settles_at:.3g} steps, and draws are "
            f"made from there on; give a schedule that settles within 1e+09."
        )
    final = float(schedule(schedule.settles_at))
    check_temperature(final)
    return final, schedule if schedule.settles_at > 0 else None


def check_init(value: Any, names: tuple[str, ...] = _INITS, n_dims: int = 2) -> Any:
    """Starting point as a name, or as a new array of finite numbers of at most ``n_dims`` axes."""
    if isinstance(value, str):
        check_choice(value, "init", names)
        return value
    accepted = f"give one of {', '.join(map(repr, names))}, or an array of finite numbers"
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"init={value!r} is not accepted; {accepted}.") from None
    if not 1 <= array.ndim <= n_dims:
        either = " or (n_chains, n_params)" * (n_dims == 2)
        raise ValueError(f"init has shape {array.shape}; it must be (n_params,){either}.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"init={value!r} has values that are not finite; {accepted}.")
    return array


def number_or_auto(value: Any, argument: str, **bounds: Any) -> Any:
    """Checked number, or None for ``"auto"``."""
    if isinstance(value, str):
        if value == "auto":
            return None
        raise ValueError(f"{argument}={value!r} is not accepted; give 'auto' or a number.")
    check_number(value, argument, **bounds)
    return int(value) if bounds.get("integer") else float(value)


def check_room(n_chains: int, n_draws: int, n_params: int) -> None:
    """Raise MemoryError where the draws are more than the memory that is left."""
    check_memory(
        8 * n_chains * n_draws * n_params,
        f"n_draws={n_draws} of {n_params} parameters from {n_chains} chains",
        "give fewer draws, with a larger thin if the steps between them are to add up to as many",
    )


def check_verbose(value: Any) -> None:
    """Raise where ``verbose`` is neither a bool nor a whole number from 0 on."""
    if not isinstance(value, (bool, np.bool_)):
        check_number(value, "verbose", low=0, closed="left", integer=True)
