"""Estimators of posterior modes: settings, climb and Laplace approximation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld._checks import check_flag, check_number
from skbayes_sgld._components import Registry
from skbayes_sgld._random import check_seed, draw_seed, start_generators
from skbayes_sgld._warnings import warn
from skbayes_sgld.estimators.base import Array
from skbayes_sgld.estimators.callbacks import show_progress
from skbayes_sgld.estimators.classification import LinearClassifier
from skbayes_sgld.estimators.fitted import FittedLinear
from skbayes_sgld.estimators.linear import LinearEstimator
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.regression import NormalRegressor
from skbayes_sgld.inference.choices import DEFAULT, Choice
from skbayes_sgld.inference.planning.named_starts import named_start
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.inference.setting_checks import (
    AUTO,
    check_init,
    check_temperature,
    check_verbose,
    given_or,
    number_or_auto,
    resolve_preconditioner,
)
from skbayes_sgld.optimizers.climb import Climb, climb
from skbayes_sgld.optimizers.climb_schedule import ClimbSettings
from skbayes_sgld.optimizers.find import far_message, find_mode
from skbayes_sgld.optimizers.newton_step import NewtonStep, newton_step
from skbayes_sgld.optimizers.projections import PROJECTIONS, BoundProjection, Projection
from skbayes_sgld.optimizers.rules import OPTIMIZERS, Newton
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.propriety import check_mode
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.predictors import LinearPredictor
from skbayes_sgld.rows.record import Rows
from skbayes_sgld.rows.targets import Target
from skbayes_sgld.sampling import Curvature
from skbayes_sgld.sampling.overflow import ChainOverflowError
from skbayes_sgld.sampling.preconditioners import Identity

_INITS = ("auto", "zeros", "prior")


@dataclass(frozen=True)
class MAPSettings:
    """Checked settings of a fit: the climb, its starting point and its projection."""

    climb: ClimbSettings
    projection: Projection | None
    init: Any

    @property
    def uses_curvature(self) -> bool:
        """Whether steps are in units of the curvature, and X is centred."""
        plain = isinstance(self.climb.preconditioner, Identity)
        return self.climb.step_size is None if plain else self.climb.preconditioner.uses_curvature


@parameters
class MAPEstimator(LinearEstimator):
    """An estimator that climbs towards the posterior mode by (stochastic) gradients.

    Optimizer
    ---------
    optimizer : str or Optimizer, default="sgd"
        ``"sgd"``, ``"gd"`` (all rows at every step), ``"momentum"``, ``"svrg"`` (batches with
        variance reduction: the choice for a small ``tol``), ``"adagrad"``, ``"rmsprop"``,
        ``"adam"`` or an instance; or ``"newton"``, which converges to the mode.
    step_size : float or "auto", default="auto"
        eta of the recursion. The default gives each parameter its own step size, from the
        curvature at the start, and adapts to the largest curvature on the way: columns may be in
        any units. A number is used as given; without a preconditioner it is in raw units.
    schedule : str or Schedule, default="polynomial"
        Change of the step size: ``"constant"``, ``"harmonic"``, ``"polynomial"`` or an instance.
        It counts steps if ``batch_size`` is given, and passes over the rows otherwise. The default
        is not constant, as it is for sampled estimators, since with minibatches only vanishing
        steps converge to the mode.
    temperature : float, default=1.0
        tau; ``posterior_`` approximates the posterior density to the power 1 / tau. The mode is the
        same.
    batch_size : int or "auto", default="auto"
        Rows of a minibatch. By default each pass takes contiguous batches of a shuffled order; they
        are small while many steps per pass bring the mode nearer, and grow to all rows.
    replacement : bool, default=True
        Whether batches of a given size are drawn with replacement; otherwise a pass takes each row
        at most once.
    projection : str, Projection or None, default=None
        Set onto which every step is projected: ``"box"`` (no negative coefficients), ``"ball"`` (a
        vector of length at most 1) or an instance such as ``Box(low=-1.0, high=[1.0, 2.0])`` or
        ``Ball(radius=3.0)``. It constrains the coefficients of the X that ``fit`` sees, not the
        intercept; the estimate is the mode within the set. Not available for more than two
        classes.
    average : bool or int, default=False
        Report the mean of the iterates, from the first pass or from this one on, in place of the
        last iterate (Polyak & Juditsky 1992). Under a constant step size it is nearer to the mode.
        Begin it after the iterates that are far from the mode.
    preconditioner : str, Preconditioner, array-like or None, default=None
        ``"auto"`` and ``"curvature"`` are the inverse curvature at the start, which undoes the
        correlation of the columns; an array is a matrix or a diagonal of your own. The
        default is None, the published recursion, rather than ``"auto"``, as for sampled estimators,
        which use the curvature at the mode.
    init : {"auto", "zeros", "prior"} or array-like of shape (n_params,), default="auto"
        Starting point: by default coefficients of 0, with intercept and noise from y; zeros; a draw
        from the prior, with zeros if it is flat; or a point in the order of ``posterior_.names``.
    clip : str, Clip or None, default=None
        Bound on the gradient: ``"norm"``, ``"value"`` or an instance.

    Run
    ---
    max_iter : int, default=2000
        Largest number of passes over the rows.
    tol : float, default=0.1
        The path stops once ``distance_`` is at most ``tol``. A fit that ends further away warns,
        with the distance.
    random_state : int, RandomState, Generator or None, default=None
        Fixes the minibatches.
    verbose : int, default=0
        1 shows progress on standard error: a bar if tqdm is installed, else lines of text.

    Attributes
    ----------
    posterior_ : PosteriorDraws
        4,000 draws from the Laplace approximation at the end of the path, in pairs about ``coef_``:
        normal, with the inverse curvature there times the temperature. Under a projection 1,000
        draws, each moved to the nearest point of the set in that metric (Dunson & Neelon 2003).
    distance_ : float
        Largest distance of a parameter from the posterior mode, in the parameter's posterior
        standard deviations: over ``coef_``, ``intercept_`` and the logarithm of the noise variance.
        Gradient and curvature measure it (by Newton's step and the Laplace approximation); under a
        projection it is the distance from the mode among the coefficients in the set.
    path_iter_ : ndarray of shape (n_points,)
        Passes after which the path was recorded.
    log_posterior_path_ : ndarray of shape (n_points,)
        Log posterior density along the path, up to a constant.
    coef_path_, intercept_path_ : ndarray of shape (n_points, ...)
        Parameters along the path; their averages with ``average``.
    n_iter_ : int
        Passes made over the rows.
    step_size_, batch_size_ : object
        Final values; ``batch_size_`` is None if the optimizer takes all rows.
    clipped_fraction_ : float
        Share of the steps on which the gradient was clipped.
    """

    _error_of_mode: ClassVar[float] = 0.0  # the mode is the estimate
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

    def _bind(self, settings: MAPSettings, model: Any, rows: Any) -> tuple[Any, Any]:
        """Posterior of the rows; X is not centred if a prior alone determines the intercept.

        Such a prior correlates the intercept at the mean of X with all coefficients, which slows
        gradient steps.
        """
        posterior, rows = rows.bind(model)
        free = not self.fit_intercept or posterior.linear_prior.intercept.flat
        if free or not settings.uses_curvature or not isinstance(rows, Rows):
            return posterior, rows
        start, blocks = posterior.start(), posterior.parameters
        by_rows = blocks.intercept(posterior.row_sum().hessian_diagonal(start)[None])[0, 0, 0]
        by_prior = blocks.intercept(posterior.prior_diagonal(start)[None])[0, 0, 0]
        if by_prior > by_rows:
            posterior = replace(model, intercept_at_mean=False).posterior(rows)
        return posterior, rows

    def _infer(
        self, settings: MAPSettings, model: Any, posterior: GLMPosterior, rows: Any, target: Target
    ) -> FittedLinear:
        """Climb towards the mode."""
        plan = replace(settings.climb, seed=draw_seed(self.random_state))
        if settings.projection is not None:
            if posterior.n_predictors > 1:
                raise ValueError(
                    f"projection={self.projection!r} is of one vector of coefficients, and y has "
                    f"{posterior.n_predictors} classes with one each; set projection=None."
                )
            projection = BoundProjection(settings.projection, posterior.n_features)
            plan = replace(plan, projection=projection)
        with show_progress(self, plan.max_iter, "climbing") as progress:
            ascent = find(posterior, plan, settings.init, progress)
        check_mode(posterior, ascent.end.theta)
        if not ascent.end.distance <= plan.tol:
            warn(far_message(ascent.end.distance, plan), ConvergenceWarning)
        draws = self._draws_of(posterior, ascent, laplace_draws(posterior, ascent.end, plan))
        point = posterior.reported.values(ascent.end.theta[None])[0]
        found: dict[str, Any] = {"step_size_": ascent.step_size, "batch_size_": ascent.batch_size}
        found |= {"n_iter_": ascent.n_iter, "distance_": ascent.end.distance}
        found |= {"clipped_fraction_": ascent.clipped, **path_of(posterior, ascent, target)}
        return self._keep(posterior, model, rows, target, draws, point, **found)

    def _settings(self) -> MAPSettings:
        """Settings of the climb; raise if any parameter, used or not, is out of range."""
        super()._settings()
        check_number(self.max_iter, "max_iter", low=1, closed="left", integer=True)
        check_number(self.tol, "tol", low=0, closed="left")
        check_temperature(self.temperature)
        check_flag(self.replacement, "replacement")
        check_verbose(self.verbose)
        check_seed(self.random_state)
        average = check_average(self.average, int(self.max_iter))
        step_size = given_or(
            number_or_auto(self.step_size, "step_size", low=0, any_size=True), None
        )
        whole = number_or_auto(self.batch_size, "batch_size", low=1, closed="left", integer=True)
        batch_size = given_or(whole, None)
        rule = self._resolve("optimizer")
        projection = None if self.projection is None else self._resolve("projection")
        if rule.full_gradient and batch_size is not None:
            raise ValueError(
                f"batch_size={batch_size!r} is not used by optimizer={self.optimizer!r}, "
                "which takes all rows; set optimizer='sgd' or batch_size='auto'."
            )
        if isinstance(rule, Newton):
            unused = {"step_size": step_size, "projection": projection, "clip": self.clip}
            for name, value in unused.items():
                if value is not None:
                    raise ValueError(
                        f"{name}={getattr(self, name)!r} is not used by optimizer='newton'; "
                        f"choose another optimizer, or leave {name} at its default."
                    )
        return MAPSettings(
            ClimbSettings(
                optimizer=rule,
                step_size=step_size,
                schedule=self._resolve("schedule"),
                batch_size=batch_size,
                replacement=bool(self.replacement),
                preconditioner=given_or(resolve_preconditioner(self.preconditioner), Curvature()),
                clip=None if self.clip is None else self._resolve("clip"),
                average=average,
                temperature=float(self.temperature),
                max_iter=int(self.max_iter),
                tol=float(self.tol),
            ),
            projection,
            check_init(self.init, _INITS, n_dims=1),
        )

    def _draws_of(self, posterior: GLMPosterior, climb: Climb, draws: Array) -> PosteriorDraws:
        """Draws of the approximation, with the settings of the climb and their reasons."""
        with np.errstate(all="ignore"):
            values = posterior.reported.values(draws)
        finite = (np.abs(values) < np.sqrt(np.finfo(float).max)).all(axis=0)
        if not finite.all():
            raise ValueError(
                f"at temperature={self.temperature:g} the draws of "
                f"{posterior.reported.names[int(finite.argmin())]} leave the range of floating "
                "point numbers; lower temperature, or give its prior more weight."
            )

        def choice(name: str, value: Any, default: str = DEFAULT) -> Choice:
            is_default = getattr(self, name) == getattr(type(self), name)
            return Choice(value, default) if is_default else Choice.by_user(value)

        choices = {
            "optimizer": choice("optimizer", self._resolve("optimizer")),
            "step_size": choice("step_size", climb.step_size, "stable"),
            "batch_size": choice("batch_size", climb.batch_size, "auto"),
            "temperature": choice("temperature", float(self.temperature)),
            "n_iter": Choice(climb.n_iter, "until the mode was near, or max_iter"),
            "distance": Choice(climb.end.distance, "largest, from the mode, in posterior sds"),
        }
        names, coords = posterior.reported.names, posterior.reported.coords
        return PosteriorDraws(values[None], names, choices=choices, coords=coords)


def path_of(posterior: GLMPosterior, climb: Climb, target: Target) -> dict[str, Array]:
    """Fitted attributes of the path: passes, log density and parameters."""
    points = max(10, 2_000_000 // posterior.n_samples)  # the log density of each takes all rows
    last = len(climb.path) - 1
    points_kept = np.unique(np.linspace(0, last, min(last + 1, points)).astype(int))
    path = climb.path[points_kept]
    values = posterior.reported.values(path)
    layout = posterior.parameters.layout(posterior.reported.names)
    parts = target.parts_to_report(layout.split(values))
    one = posterior.n_predictors == 1
    found = {
        "path_iter_": climb.passes[points_kept],
        "log_posterior_path_": np.concatenate([posterior.log_density(p[None]) for p in path]),
        "coef_path_": parts["coef"][:, 0] if one else parts["coef"],
        "intercept_path_": parts["intercept"][:, 0] if one else parts["intercept"],
    }
    if "noise_variance" in parts:
        found["noise_variance_path_"] = parts["noise_variance"]
    return found


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


def find(posterior: GLMPosterior, plan: ClimbSettings, init: Any, progress: Any) -> Climb:
    """Climb from ``init``; an overflow raises an error that names a step size that works."""
    start = posterior.start()
    if init is not AUTO:
        start = named_start(posterior, init, 1, plan.seed, range(1))[0][0]
    if isinstance(plan.optimizer, Newton):
        mode = find_mode(posterior, start)
        end = NewtonStep(mode.theta, mode.metric, 0.0, np.zeros_like(start))
        return Climb(end, np.array([start, mode.theta]), np.arange(2), 1, 1.0, None, 0.0)
    target: Any = posterior
    if posterior.prior.nonsmooth:  # a climb over kinks would not converge
        target = posterior.with_rounded_kinks(newton_step(posterior, start).metric.marginal_sd)
    try:
        return climb(target, start, plan, progress)
    except ChainOverflowError as error:
        raise _overflow(error, posterior, start, plan) from None


def _overflow(
    error: ChainOverflowError, posterior: GLMPosterior, start: Array, plan: ClimbSettings
) -> ChainOverflowError:
    """Error that names the step, the parameter and a step size that does not overflow."""
    assert plan.step_size is not None
    remedy = "set step_size='auto', or a smaller step_size"
    holds, begin, held = plan.step_size, newton_step(posterior, start).distance, None
    for _ in range(40):
        holds = float(f"{0.5 * holds:.2g}")
        try:
            trial = climb(posterior, start, replace(plan, step_size=holds))
        except ChainOverflowError:
            continue
        if trial.end.distance <= max(begin, 1.0):  # one that goes farther away would overflow later
            per_pass = -(-posterior.n_samples // (trial.batch_size or posterior.n_samples))
            n_steps = trial.n_iter * per_pass
            remedy = f"With step_size={holds:.2g} a run of {n_steps} steps did not; {remedy}"
            held = holds
            break
    return error.explained(
        f"step_size={plan.step_size:g}: the optimizer overflowed at step {error.step} in "
        f"{posterior.param_names[error.parameter]}. {remedy}.",
        held,
    )


def laplace_draws(posterior: GLMPosterior, end: NewtonStep, plan: ClimbSettings) -> Array:
    """Draws ``(S, P)`` of the normal approximation at the end, in pairs about it.

    Under a projection each draw is moved to the nearest point of the set.
    """
    n_pairs = 2000 if plan.projection is None else 500  # each projection is an optimisation
    (generator,) = start_generators(plan.seed + 1, range(1))
    normals = generator.standard_normal((n_pairs, posterior.n_params))
    moves = np.sqrt(plan.temperature) * end.metric.sqrt(normals)
    theta = end.theta + np.concatenate([moves, -moves])
    return theta if plan.projection is None else plan.projection(theta, end.metric.root)


@parameters
class SGDMAPRegressor(NormalRegressor, MAPEstimator):
    r"""Posterior mode of Bayesian linear regression by stochastic gradient descent.

    The estimate is the final point of the optimizer. Uncertainty comes from the Laplace
    approximation there, in :math:`\theta = (\beta, \beta_0, \log \sigma^2)`. A last pass over the
    rows measures the distance to the mode in the worst coordinate.

    y may have several columns, as in :class:`SGLDLinearRegression`.

    Parameters
    ----------
    prior : str or CoefficientPrior, default="conjugate_normal"
        Prior of the coefficients of the X that ``fit`` sees: one of ``"conjugate_normal"`` (its
        scale is in units of the noise), ``"normal"``, ``"laplace"``, ``"student_t"``, ``"cauchy"``,
        ``"flat"``, or an instance such as ``Laplace(scale=0.5)``. By name its scale is in the units
        of each column and of y, so that no prediction depends on units. The default is the model of
        the handout that these algorithms come from: on standardised columns the
        normal-inverse-gamma model, :math:`\beta \mid \sigma^2 \sim N(0, 100 \sigma^2 I)`. With
        fewer than about ten rows per column it underestimates the noise; choose ``"normal"`` then.
        ``"auto"``, as for sampled estimators, is not available, since the mode of a learned scale
        does not estimate it. The intercept has its own prior.

    See Also
    --------
    SGLDLinearRegression : Samples the posterior itself.

    References
    ----------
    Karagiannis, Handout 6, Algorithms 11 and 14.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGDMAPRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X = X[:, [2, 3, 8]]  # body mass index, blood pressure and triglycerides
    >>> model = SGDMAPRegressor(random_state=0).fit(X, y)
    >>> print(f"{model.score(X, y):.2f}")
    0.48
    """

    prior: Any = "conjugate_normal"


@parameters
class SGDMAPClassifier(LinearClassifier, MAPEstimator):
    """Posterior mode of Bayesian logistic regression by stochastic gradient descent.

    The estimate is the final point of the optimizer. Uncertainty comes from the Laplace
    approximation there. A last pass over the rows measures the distance to the mode in the worst
    coordinate. Probabilities are those at ``coef_``; their intervals come from the approximation.

    Parameters
    ----------
    prior : str, CoefficientPrior or dict, default="normal"
        Prior of the coefficients of the X that ``fit`` sees: one of ``"normal"``, ``"laplace"``,
        ``"student_t"``, ``"cauchy"``, ``"flat"``, or an instance such as ``Normal(scale=2.5)``. By
        name its scale is in the units of each column, ``1 / sd(x_j)``, so that no prediction
        depends on units; on standardised columns the mode under the default is the fit of
        ``LogisticRegression(C=1)``. ``"auto"``, as for sampled estimators, is not available, since
        the mode of a learned scale does not estimate it. The intercept has its own prior; with more
        than two classes that of each class has it, and their common shift, which the data do not
        determine, is not reported. A dict such as ``{"age": Normal(scale=1.0)}`` gives some
        columns, by name or position, priors of their own; the others have the default.

    See Also
    --------
    SGLDLogisticRegression : Samples the posterior itself.

    References
    ----------
    Karagiannis, Handout 6, Algorithms 11 and 14.

    Examples
    --------
    >>> from skbayes_sgld import SGDMAPClassifier
    >>> from skbayes_sgld.datasets import make_two_clusters
    >>> X, y = make_two_clusters(random_state=0)
    >>> model = SGDMAPClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    prior: Any = "normal"

    def _point_predictive(self) -> PredictiveDistribution:
        present = self._fitted.target.present
        present = slice(None) if present is None else present
        point = LinearPredictor(self.coef_[None, present], self.intercept_[None, present])
        return replace(self._predictive(), predictor=point)
