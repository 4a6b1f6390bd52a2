"""Linear models whose posterior is sampled: settings, a run, and batches of ``partial_fit``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from skbayes_sgld._checks import check_flag, check_number
from skbayes_sgld._components import Registry
from skbayes_sgld._doors import Door
from skbayes_sgld._random import draw_seed
from skbayes_sgld._warnings import warn
from skbayes_sgld.estimators.base import Array
from skbayes_sgld.estimators.callbacks import show_progress
from skbayes_sgld.estimators.diagnose import diagnose
from skbayes_sgld.estimators.fitted import FittedLinear
from skbayes_sgld.estimators.mixed_effects import MixedEffects
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.inference.automatic_prior import choose_prior
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.diagnosis import Diagnosis, rows_of_own_noise
from skbayes_sgld.inference.run import plan_and_run
from skbayes_sgld.inference.settings import RunSettings, Settings, registries
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import GROUP_PRIORS, HIERARCHICAL_PRIORS, PRIORS, Prior
from skbayes_sgld.rows.reading import FitRows
from skbayes_sgld.rows.record import MOST_KEPT
from skbayes_sgld.rows.stream import Stream, next_batch
from skbayes_sgld.rows.targets import Target
from skbayes_sgld.sampling import NoModeError

_WIDE_OFFSETS = 14.0  # range of offsets, as logarithms, that may be why there is no mode
_SAFE_SIZE = 1e12  # up to this y, rounding errors hide no mode under a log link
_SCREEN = Door("skbayes_sgld.criticism.of_fit", "screen_fit")


@parameters
class SampledEstimator(RunSettings, MixedEffects):
    """A linear model whose posterior is sampled: settings, posterior, plan, run, result.

    Parameters
    ----------
    prior : str, Prior or dict, default="auto"
        Prior of the coefficients of the X that ``fit`` sees. ``"auto"`` is ``"normal"``, or with
        few rows for each column ``"hierarchical_normal"``; ``print(result_.plan)`` shows which,
        and why.
        Others are ``"laplace"``, ``"student_t"``, ``"cauchy"``, ``"horseshoe"``, ``"flat"``, in
        linear regression ``"conjugate_normal"``, whose scale is in units of the noise (the
        lecture's model), or an instance such as ``Normal(scale=2.5)``. By name its scale is in the
        units of each column, and in linear regression of y, so that no prediction depends on them.
        The intercept has its own prior. A dict gives some columns their own priors:
        ``{"age": Normal(scale=1.0), "bmi": "laplace"}``. A key is a column's name or position, or a
        tuple of these, whose coefficients then have one prior together; other columns have
        ``"auto"``.
    group_effects : dict or None, default=None
        Effects that vary by group, whose scales are learned:
        ``{"Subject": ["intercept", "Days"], "Item": "intercept"}``. A key is the name or position
        of a column of labels of any kind, which then has no coefficient of its own, or
        ``"a:b"`` for the pairs of labels of two columns; the value is ``"intercept"``, a column of
        numbers, whose slope varies, or a list of these.
    group_prior : str or GroupPrior, default="half_student_t"
        Prior of the scales and correlations of these effects, for all of them:
        ``GroupPrior(scale=2.5, correlated=False)``. By name the scales are in the units of y, or of
        the link, and of each column.
    smooth_effects : dict or None, default=None
        Curves of columns, whose smoothness is learned: ``{"age": 10}`` or
        ``{"age": Smooth(n_basis=10, degree=3)}``, see :class:`~skbayes_sgld.Smooth`. A key is the
        name or position of a column of numbers, the value a number of basis functions. The straight
        line of the column remains its coefficient.

    Run
    ---
    warm_start : bool, default=False
        Start the chains where those of the last ``fit`` stopped, without a burn-in.
    forgetting : float, default=1.0
        Factor by which ``partial_fit`` multiplies the weights of all earlier rows, in (0, 1]; below
        1 the model follows a drift.

    Attributes
    ----------
    posterior_ : PosteriorDraws
        The draws, ``(chain, draw, parameter)``, with the parameters' names. ``coef_`` and the like
        are their means, weighted by step size if the schedule decays.
    result_ : SamplingResult
        The result that :func:`~skbayes_sgld.sample` returns; ``print(result_.plan)`` is a table of
        every setting and the reason for it.
    sampler_, step_size_, batch_size_, gradient_, preconditioner_ : object
        Values that were used; ``batch_size_`` is None if every step takes all rows.
    parameterization_, init_, n_burnin_, thin_ : object
        Values that were used.
    clipped_fraction_ : float
        Share of the steps on which the gradient was clipped.
    group_effects_ : pandas.DataFrame
        Only with ``group_effects``: mean, sd, the ends of the 90 % interval and the effective
        sample size of each effect, indexed by ``term``, ``label`` and ``effect``:
        ``group_effects_.loc[("Subject", 308, "Days")]``. Effects are deviations from the
        population: a label's own slope is the column's coefficient plus its effect. Labels have
        their types, and pairs of labels are text, ``"first:second"``. The frame is made when it is
        first asked for.
    group_prior_ : dict of str to GroupPrior
        Only with ``group_effects``: prior of each term, with numbers as scales.
    """

    prior: Any = "auto"
    group_effects: Any = None
    group_prior: Any = "half_student_t"
    smooth_effects: Any = None
    warm_start: bool = False
    forgetting: float = 1.0

    _registries: ClassVar[dict[str, Registry]] = {
        **MixedEffects._registries,
        **registries(),
        "prior": Registry(Prior, PRIORS, HIERARCHICAL_PRIORS),
        "group_prior": GROUP_PRIORS,
    }

    @property
    def _is_mixed(self) -> bool:  # type: ignore[override]
        return self.group_effects is not None or self.smooth_effects is not None

    def _settings(self) -> Settings:
        super()._settings()
        check_flag(self.warm_start, "warm_start")
        check_number(self.forgetting, "forgetting", low=0, high=1, closed="right")
        return Settings.of(self)

    def _choose_prior(self, settings: Any, rows: FitRows, likelihood: Likelihood) -> Choice:
        """Choice of the prior that "auto" stands for, given these rows."""
        obstacle = rows.why_no_learned_scale
        if not obstacle and self._noise() is not None:
            obstacle = "the noise differs from row to row"
        obstacle = obstacle or settings.why_no_learned_scale
        shape = rows.X.shape[0], rows.with_coefficients[0]
        return choose_prior(shape, likelihood, rows.total(likelihood), obstacle)

    def _bind(self, settings: Any, model: Any, rows: FitRows) -> tuple[Any, FitRows]:
        """Posterior of the rows under the model, and the rows that later calls need.

        The result measures on these rows, which must not change with the caller's arrays.
        """
        return rows.kept().bind(model)

    def _infer(
        self, settings: Settings, model: Any, posterior: Any, rows: FitRows, target: Target
    ) -> FittedLinear:
        """Plan and run the chains."""
        sampled = model.with_scales(posterior)
        positions, n_fits = self._last_positions(settings, sampled.reported.names)
        # chains that go on from the last fit, and each batch, have a seed of their own
        seed = draw_seed(self.random_state) + n_fits + rows.n_batches
        inputs = partial(self._inputs, posterior, rows, target)
        watch, workers = partial(show_progress, self), rows.workers(settings.n_jobs)
        choices = {"prior": model.prior_choice}
        try:
            result = plan_and_run(
                sampled, settings, inputs, seed, positions, watch, workers, choices
            )
        except (NoModeError, np.linalg.LinAlgError) as error:
            raise NoModeError(_why_no_mode(error, posterior)) from error
        result = result if posterior.X.size <= MOST_KEPT else result.without_data()
        used = {name: choice.value for name, choice in result.draws.choices.items()}
        fitted = self._keep(
            sampled,
            model,
            rows,
            target,
            result.draws,
            result.mean,
            result_=result,
            clipped_fraction_=result.clipped,
            sampler_=used["sampler"],
            step_size_=used["step_size"],
            gradient_=used["gradient"],
            batch_size_=used["batch_size"],
            preconditioner_=used["preconditioner"],
            parameterization_=used["parameterization"],
            init_=used["init"],
            n_burnin_=used["n_burnin"],
            thin_=used["thin"],
        )
        return replace(fitted, n_fits=n_fits + 1)

    def _screen(self, rows: FitRows) -> None:
        """Warn, at the end of a fit to these rows, if the model is wrong about them."""
        if _SCREEN.is_there:
            _SCREEN.open()(self, rows.screened)

    def _last_positions(self, settings: Settings, names: list[str]) -> tuple[Array | None, int]:
        """Last positions of the chains that this fit continues, if any, and the fits before it."""
        last: Any = vars(self).get("result_")
        same = last is not None and last.names == names and len(last.positions) == settings.n_chains
        return (last.positions, self._fitted.n_fits) if self.warm_start and same else (None, 0)

    def _inputs(self, posterior: Any, rows: FitRows, target: Target) -> dict[str, Any]:
        """Parameters and data by which a checkpoint recognises its run."""
        data = {"X": posterior.X, "y": posterior.y, "sample_weight": posterior.weight}
        values = posterior.values
        data |= {"offset": values.offset, "n_averaged": values.n_averaged, **values.others}
        return {**self.get_params(deep=False), **data, "n_batches": rows.n_batches}

    def diagnose(self, X: Any = None, y: Any = None, **params: Any) -> Any:
        """Diagnosis of the draws, and also of the model if X and y are given.

        For a pipeline or a search call :func:`skbayes_sgld.diagnose`, which names its columns.

        The first part of the report asks whether the sampler worked, the second whether the model
        fits the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None, default=None
            Rows of the fit. None: the second part is left out.
        y : array-like of shape (n_samples,) or None, default=None
        **params : dict
            Further arguments of :func:`skbayes_sgld.check_model`, such as ``exposure``, or
            ``remedies=False``.

        Returns
        -------
        diagnosis : Diagnosis
            R-hat, effective sample sizes and standard errors by parameter; the ratio of minibatch
            to injected noise; the bias of the step size, and at half of it; the Metropolis
            acceptance that the chain's own transitions would have had; the distance from the
            Laplace approximation; clipped steps and divergent chains; how far the prior is from
            the data; and the problems, each with its remedy. ``model_check`` is the second part.
            It shows itself as a report. For several outputs it is a dict with one for each, by its
            name.
        """
        return diagnose(self, X, y, **params)

    def _diagnosis(self, X: Any = None) -> Diagnosis:
        """Diagnosis of the draws, for which no rows are needed."""
        diagnosis = self.result_.diagnose()
        assert isinstance(diagnosis, Diagnosis)
        return diagnosis

    # ---- batches of partial_fit ---------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, **by_row: Any) -> Self:
        """Fit with one more batch of rows.

        The posterior is that of a single ``fit`` to all rows since the first call, with scales in
        the units of the first batch. ``forgetting`` multiplies the weights of all earlier
        rows. The rows of an earlier ``fit`` do not count: after it batches begin anew, with a
        warning.

        For a linear model with normal noise, sums of products are kept, and no rows. For other
        models rows are kept while they hold up to a million numbers; then their likelihood is
        replaced by a normal density whose gradient and curvature are the likelihood's average over
        the draws. While all counts are zero, or all trials have the same outcome, a flat prior of
        the intercept is replaced by that of ``intercept_prior="normal"``, and all rows are kept.

        With ``group_effects`` or ``smooth_effects`` a label may first appear in a later batch, and
        scales are in the units of all batches. With normal noise rows of equal labels become a few
        rows with the same sums of products; for other models all rows are kept.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative. A row of weight w counts as w rows.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            As for ``fit``, and if the number of columns changes or is 3,000 or more.
        """
        after_fit = self._fitted is not None and self._fitted.stream is None
        self._fit(X, y, sample_weight, by_row, partial(next_batch, self._earlier()))
        if after_fit:
            warn(
                "partial_fit began anew: the rows that fit had do not count; give them to "
                "partial_fit as the first batch, or clone the estimator for other rows.",
                UserWarning,
            )
        return self

    def _earlier(self) -> Stream:
        """Earlier batches: none after ``fit``."""
        stream = None if self._fitted is None else self._fitted.stream
        return Stream() if stream is None else stream


def _why_no_mode(error: Exception, posterior: GLMPosterior) -> str:
    """Error message of a fit without a mode; it names y if its size is the likelier reason."""
    size = float(posterior.y.max()) if posterior.likelihood.log_link else 0.0
    if size > _SAFE_SIZE:
        return (
            f"y has values of size {size:.3g}, and the mode of the posterior was lost in rounding "
            f"errors; give values up to {_SAFE_SIZE:g}, in larger units."
        )
    if posterior.prior.proper and (own := rows_of_own_noise(posterior.reported.names)):
        return f"the mode of the posterior was not found: {own}."
    offset = posterior.values.offset
    if offset is not None and (width := float(np.ptp(offset))) > _WIDE_OFFSETS:
        return (
            "the mode of the posterior was not found. Exposures, or exponentials of offsets, "
            f"differ between rows by a factor of {np.exp(width):.1g}: check that all have the same "
            "unit."
        )
    if isinstance(error, NoModeError):
        return str(error)
    return (
        f"the curvature of the posterior is not positive definite ({error}), so it has no mode "
        "that could be found; give the coefficients a proper prior of a smaller scale, such as "
        "prior='normal'."
    )
