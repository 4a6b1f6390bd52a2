"""Fitting the MAP estimators: settings, a climb, and the Laplace approximation at its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from sys import maxsize
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld._components import (
    Registry,
    check_number,
    draw_seed,
    parameters,
    start_generators,
)
from skbayes_sgld._warnings import warn
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.base import Array, LinearEstimator
from skbayes_sgld.estimators.callbacks import show_progress
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.inference.settings import (
    check_temperature,
    number_or_auto,
    resolve_preconditioner,
)
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.sampling import OPTIMIZERS, PROJECTIONS, Curvature, Newton, Projection, find_mode
from skbayes_sgld.sampling.optimizers.climb import Climb, climb
from skbayes_sgld.sampling.optimizers.find import check_batch_size, far_message
from skbayes_sgld.sampling.optimizers.projections import BoundProjection
from skbayes_sgld.sampling.optimizers.settings import ClimbSettings
from skbayes_sgld.sampling.optimizers.standing import Standing, measure
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.preconditioners import Identity

_LAPLACE_DRAWS = 4000
_PROJECTED_DRAWS = 1000  # each is a problem of its own
_PATH_ROWS = 2_000_000  # that the log density along the path may take
_FEWEST_POINTS = 10
_HALVINGS = 40
_INITS = ("auto", "zeros", "prior")


@dataclass(frozen=True)
class MAPSettings:
    """Settings of a fit, checked: those of the climb, its start and its set."""

    climb: ClimbSettings
    projection: Projection | None
    init: Any
    seed: int

    @property
    def centers(self) -> bool:
        """Whether the intercept is taken at the mean of X: not where steps are in raw units."""
        plain = isinstance(self.climb.preconditioner, Identity)
        return self.climb.step_size is None if plain else self.climb.preconditioner.uses_curvature


@parameters
class MAPEstimator(LinearEstimator):
    """An estimator that climbs towards the posterior mode by (stochastic) gradients."""

    _registries: ClassVar[dict[str, Registry]] = {
        **LinearEstimator._registries,
        "optimizer": OPTIMIZERS,
        "projection": PROJECTIONS,
    }
    optimizer: Any = "sgd"
    step_size: Any = "auto"
    schedule: Any = "polynomial"
    temperature: float = 1.0
    batch_size: Any = "auto"
    replacement: bool = True
    projection: Any = None
    average: bool | int = False
    preconditioner: Any = None
    init: Any = "auto"
    clip: Any = None
    max_iter: int = 2000
    tol: float = 0.1
    random_state: Any = None
    verbose: int = 0

    def _infer(self, X: Array, y: Array, weight: Array | None) -> None:
        settings = self._settings(len(y))
        posterior = self._make_posterior(X, y, weight, center=settings.centers)
        posterior.check_proper()
        posterior.check_weights()
        self._climb(posterior, settings)

    def _centers(self) -> bool:
        """Whether the intercept is taken at the mean of X."""
        return self._settings(maxsize).centers

    def _infer_posterior(self, posterior: GLMPosterior, source: RowSource) -> None:
        """Climb towards the mode of rows in blocks, next to a sample of them."""
        self._climb(posterior, self._settings(posterior.n_samples))

    def _climb(self, posterior: GLMPosterior, settings: MAPSettings) -> None:
        if settings.projection is not None and posterior.n_predictors > 1:
            raise ValueError(
                f"projection={self.projection!r} is of one vector of coefficients, and y has "
                f"{posterior.n_predictors} classes with one each; set projection=None."
            )
        start = start_of(posterior, settings)
        with show_progress(self, settings.climb.max_iter, "climbing") as progress:
            found = find(posterior, start, settings, progress)
        posterior.check_mode(found.end.theta)
        if not found.end.distance <= settings.climb.tol:
            message = far_message(found.end.distance, settings.climb)
            warn(message, ConvergenceWarning)
        self._keep(posterior, found, laplace_draws(posterior, found.end, settings))

    def _settings(self, n_samples: int) -> MAPSettings:
        """Checked settings; raise where one of them, used or not, is not accepted."""
        check_number(self.max_iter, "max_iter", low=1, closed="left", integer=True)
        check_number(self.tol, "tol", low=0, closed="left")
        check_temperature(self.temperature)
        if not isinstance(self.replacement, (bool, np.bool_)):
            raise TypeError(f"replacement={self.replacement!r} is not accepted; give a bool.")
        if not isinstance(self.verbose, (bool, np.bool_)):
            check_number(self.verbose, "verbose", low=0, closed="left", integer=True)
        average = check_average(self.average, int(self.max_iter))
        step_size = number_or_auto(self.step_size, "step_size", low=0, any_size=True)
        batch_size = number_or_auto(
            self.batch_size, "batch_size", low=1, closed="left", integer=True
        )
        rule, projection = self._resolve("optimizer"), None
        if self.projection is not None:
            projection = self._resolve("projection")
        if rule.full_gradient and batch_size is not None:
            raise ValueError(
                f"batch_size={batch_size!r} is not used by optimizer={self.optimizer!r}, "
                "which takes all rows; set optimizer='sgd' or batch_size='auto'."
            )
        check_batch_size(batch_size, n_samples)
        preconditioner = resolve_preconditioner(self.preconditioner) or Curvature()
        if isinstance(rule, Newton):
            unused = {"step_size": step_size, "projection": projection, "clip": self.clip}
            for name, value in unused.items():
                if value is not None:
                    raise ValueError(
                        f"{name}={getattr(self, name)!r} is not used by optimizer='newton'; "
                        f"choose another optimizer, or leave {name} at its default."
                    )
        for name in ("prior", *(("noise_prior",) if "noise_prior" in self.get_params() else ())):
            self._resolve(name)
        seed = draw_seed(self.random_state)
        return MAPSettings(
            ClimbSettings(
                optimizer=rule,
                step_size=None if step_size is None else float(step_size),
                schedule=self._resolve("schedule"),
                batch_size=None if batch_size is None else int(batch_size),
                replacement=bool(self.replacement),
                preconditioner=preconditioner,
                clip=self._resolve("clip"),
                average=average,
                temperature=float(self.temperature),
                max_iter=int(self.max_iter),
                tol=float(self.tol),
                seed=seed,
            ),
            projection,
            check_init(self.init),
            seed,
        )

    def _set_draws(self, posterior: GLMPosterior, theta: Array, temperature: float) -> None:
        """Set ``posterior_`` from draws ``theta (C, S, P)``, in the units of the data."""
        with np.errstate(all="ignore"):
            values = posterior.constrain(theta.reshape(-1, theta.shape[2]))
        finite = (np.abs(values) < np.sqrt(np.finfo(float).max)).all(axis=0)
        if not finite.all():
            raise ValueError(
                f"at temperature={temperature:g} the draws of "
                f"{posterior.constrained_names[int(finite.argmin())]} leave the range of floating "
                "point numbers; lower temperature, or give its prior more weight."
            )
        self.posterior_ = PosteriorDraws(
            values.reshape(*theta.shape[:2], -1),
            posterior.constrained_names,
            coords=posterior.coords,
        )
        self._set_layout(posterior)

    def _keep(self, posterior: GLMPosterior, found: Climb, draws: Array) -> None:
        """Set the fitted attributes."""
        self._set_draws(posterior, draws[None], self.temperature)
        self.step_size_, self.batch_size_ = found.step_size, found.batch_size
        self.n_iter_, self.distance_ = found.n_iter, found.end.distance
        self.clipped_fraction_ = found.clipped
        given = "given"
        self.posterior_.choices = {
            "optimizer": Choice(self._resolve("optimizer"), given),
            "step_size": Choice(self.step_size_, given if self.step_size != "auto" else "stable"),
            "batch_size": Choice(self.batch_size_, given if self.batch_size != "auto" else "auto"),
            "temperature": Choice(float(self.temperature), given),
            "n_iter": Choice(self.n_iter_, "until the mode was near, or max_iter"),
            "distance": Choice(self.distance_, "largest, from the mode, in posterior sds"),
        }
        self._set_point(posterior.constrain(found.end.theta[None])[0])
        points = max(_FEWEST_POINTS, _PATH_ROWS // posterior.n_samples)
        last = len(found.path) - 1
        kept = np.unique(np.linspace(0, last, min(last + 1, points)).astype(int))
        path, self.path_iter_ = found.path[kept], found.passes[kept]
        self.log_posterior_path_ = np.concatenate([posterior.log_density(p[None]) for p in path])
        parts = self._split(posterior.constrain(path))
        one = posterior.n_predictors == 1
        self.coef_path_ = parts["coef"][:, 0] if one else parts["coef"]
        self.intercept_path_ = parts["intercept"][:, 0] if one else parts["intercept"]
        if "noise_variance" in parts:
            self.noise_variance_path_ = parts["noise_variance"]


def check_average(average: Any, max_iter: int) -> int:
    """First pass whose iterates are averaged, or 0."""
    if isinstance(average, (bool, np.bool_)):
        return int(average)
    accepted = f"give False, True or the first pass to average, a whole number in [1, {max_iter}]"
    if not isinstance(average, Integral):
        raise TypeError(f"average={average!r} is not accepted; {accepted}.")
    first = int(average)
    if not 1 <= first <= max_iter:
        raise ValueError(f"average={average!r} is out of range; {accepted}.")
    return first


def check_init(init: Any) -> Any:
    """Start of the climb as given: a name, or an array of numbers."""
    accepted = f"choose one of {', '.join(map(repr, _INITS))}, or give an array (n_params,)"
    if isinstance(init, str):
        if init not in _INITS:
            raise ValueError(f"init={init!r} is not known; {accepted}.")
        return init
    try:
        values = np.asarray(init, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"init={init!r} is not accepted; {accepted}.") from None
    if values.ndim != 1:
        raise ValueError(f"init has shape {values.shape}; {accepted}.")
    if not np.isfinite(values).all():
        raise ValueError(f"init={init!r} has values that are not finite; {accepted}.")
    return values


def start_of(posterior: GLMPosterior, settings: MAPSettings) -> Array:
    """Point ``(P,)`` that the climb starts from."""
    init, start = settings.init, posterior.start()
    if not isinstance(init, str):
        names = posterior.constrained_names
        if init.size != posterior.n_params:
            raise ValueError(
                f"init has {init.size} values; it must have {posterior.n_params}, one for each of "
                f"{', '.join(names[:6])}{', ...' * (len(names) > 6)}."
            )
        noise = posterior.noise_index
        if noise is not None and init[noise] <= 0:
            raise ValueError(f"init has a noise variance of {init[noise]:g}; it must be positive.")
        return posterior.unconstrain(init[None])[0]
    if init == "zeros":
        return posterior.zeros()
    if init == "prior":
        drawn = posterior.draw_prior(start_generators(settings.seed, range(1)))
        return posterior.unconstrain(drawn)[0]
    return start


def find(posterior: GLMPosterior, start: Array, settings: MAPSettings, progress: Any) -> Climb:
    """Climb from ``start (P,)``; raise an error that names a step size where one overflows."""
    rule, projection = settings.climb.optimizer, settings.projection
    if isinstance(rule, Newton):
        mode = find_mode(posterior, start)
        end = Standing(mode.theta, mode.metric, 0.0, np.zeros_like(start))
        return Climb(end, np.array([start, mode.theta]), np.arange(2), 1, 1.0, None, 0.0)
    bound = None
    if projection is not None:
        bound = BoundProjection(projection, posterior.n_features)
    plan = replace(settings.climb, projection=bound)
    target: Any = posterior
    if posterior.prior.nonsmooth:  # a climb over kinks would not come to rest
        target = posterior.softened(measure(posterior, start).metric.marginal_sd)
    try:
        return climb(target, start, plan, progress)
    except ChainOverflowError as error:
        raise _overflow(error, posterior, start, plan) from None


def _overflow(
    error: ChainOverflowError, posterior: GLMPosterior, start: Array, plan: ClimbSettings
) -> ChainOverflowError:
    """Error that names step, parameter and a step size that did not overflow."""
    assert plan.step_size is not None
    remedy = "set step_size='auto', or a smaller step_size"
    holds, begin, held = plan.step_size, measure(posterior, start).distance, None
    for _ in range(_HALVINGS):
        holds = float(f"{0.5 * holds:.2g}")
        try:
            found = climb(posterior, start, replace(plan, step_size=holds))
        except ChainOverflowError:
            continue
        if found.end.distance <= max(begin, 1.0):  # what goes further off is on its way
            per_pass = -(-posterior.n_samples // (found.batch_size or posterior.n_samples))
            n_steps = found.n_iter * per_pass
            remedy = f"With step_size={holds:.2g} a run of {n_steps} steps did not; {remedy}"
            held = holds
            break
    return error.explained(
        f"step_size={plan.step_size:g}: the optimizer overflowed at step {error.step} in "
        f"{posterior.param_names[error.parameter]}. {remedy}.",
        held,
    )


def laplace_draws(posterior: GLMPosterior, end: Standing, settings: MAPSettings) -> Array:
    """Draws ``(S, P)`` of the normal approximation at the end, in pairs about it.

    Under a projection each is taken to the nearest point of the set.
    """
    projection = settings.projection
    n_pairs = (_LAPLACE_DRAWS if projection is None else _PROJECTED_DRAWS) // 2
    (generator,) = start_generators(settings.seed + 1, range(1))
    normals = generator.standard_normal((n_pairs, posterior.n_params))
    moves = np.sqrt(settings.climb.temperature) * end.metric.sqrt(normals)
    theta = end.theta + np.concatenate([moves, -moves])
    if projection is not None:
        root = end.metric.sqrt(np.eye(posterior.n_params)).T
        theta = BoundProjection(projection, posterior.n_features)(theta, root)[0]
    return theta
