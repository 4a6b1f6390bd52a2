"""Linear models whose posterior is sampled: settings, a run, and batches of ``partial_fit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from skbayes_sgld._checks import check_flag, check_number
from skbayes_sgld._components import Registry
from skbayes_sgld._random import draw_seed, screen_generator
from skbayes_sgld._warnings import ModelMisfitWarning, warn
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.criticism.screen import screen, screen_size
from skbayes_sgld.criticism.weights import screen_weights
from skbayes_sgld.estimators.base import Array, Rows
from skbayes_sgld.estimators.callbacks import show_progress
from skbayes_sgld.estimators.diagnose import diagnose
from skbayes_sgld.estimators.linear import LinearEstimator, Priors
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.inference.automatic_prior import choose_prior
from skbayes_sgld.inference.choices import GIVEN, Choice
from skbayes_sgld.inference.diagnosis import Diagnosis
from skbayes_sgld.inference.result import PosteriorDraws, SamplingResult
from skbayes_sgld.inference.run import plan_and_run
from skbayes_sgld.inference.settings import RunSettings, Settings, registries
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.conflict import own_pull
from skbayes_sgld.posterior.further_rows import normal_site, under_priors
from skbayes_sgld.posterior.hierarchical import HierarchicalPosterior
from skbayes_sgld.posterior.linear_prior import in_units
from skbayes_sgld.posterior.propriety import check_proper, intercept_is_proper
from skbayes_sgld.posterior.protocol import Expansion
from skbayes_sgld.posterior.statistics import GaussianStatistics
from skbayes_sgld.priors import HIERARCHICAL_PRIORS, PRIORS, Prior
from skbayes_sgld.sampling import NoModeError

_KEPT = 2**22  # numbers in X, up to which a fit keeps a copy: 32 megabytes
_KEPT_BATCHES = 2**20  # numbers in X, y and the weights of a stream's rows: 8 megabytes
_SAFE_SIZE = 1e12  # of y, up to which rounding errors hide no mode under a log link
_RESOLVED = (
    "sampler",
    "step_size",
    "gradient",
    "batch_size",
    "preconditioner",
    "parameterization",
    "init",
    "n_burnin",
    "thin",
)


@dataclass(frozen=True)
class Stream:
    """Earlier batches of ``partial_fit``.

    Attributes
    ----------
    n_batches : int
    summary : GaussianStatistics, Expansion or None
        Their likelihood: sums of products of a normal model; of others a normal density for the
        rows that are no longer kept, None while all are.
    rows : Rows or None
        Rows that are kept, of a model that has no sums over rows.
    priors : tuple or None
        Priors of the coefficients, the intercept and the noise in the units of the first batch.
    """

    n_batches: int = 0
    summary: GaussianStatistics | Expansion | None = None
    rows: Rows | None = None
    priors: Priors | None = None

    def sampled(self, posterior: GLMPosterior, draws: PosteriorDraws) -> Stream:
        """Batches once their posterior is sampled: a normal density stands for rows not kept."""
        summary = self.summary
        if self.rows is None and not posterior.likelihood.quadratic:
            share = np.ones(len(draws.flat)) if draws.flat_weights is None else draws.flat_weights
            summary = normal_site(
                posterior, posterior.reported.theta(draws.flat), share / share.sum()
            )
        return replace(self, n_batches=self.n_batches + 1, summary=summary)


@parameters
class SampledEstimator(RunSettings, LinearEstimator):
    """A linear model whose posterior is sampled: settings, posterior, plan, run, result.

    Parameters
    ----------
    prior : str, Prior or dict, default="auto"
        Prior of the coefficients of the X that ``fit`` sees. ``"auto"`` is ``"normal"``, or with
        few rows a column ``"hierarchical_normal"``; ``print(result_.plan)`` tells which, and why.
        Others are ``"laplace"``, ``"student_t"``, ``"cauchy"``, ``"horseshoe"``, ``"flat"``, in
        linear regression ``"conjugate_normal"``, whose scale is in units of the noise (the
        lecture's model), or an instance such as ``Normal(scale=2.5)``. By name its scale is in the
        units of each column, and in linear regression of y, so that no prediction depends on them.
        The intercept has a prior of its own. A dict gives some columns priors of their own:
        ``{"age": Normal(scale=1.0), "bmi": "laplace"}``. A key is a column's name or position, or a
        tuple of these, whose coefficients then have one prior together; other columns have
        ``"auto"``.

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
        are their means, weighted by step size where the schedule decays.
    result_ : SamplingResult
        The result that :func:`~skbayes_sgld.sample` returns; ``print(result_.plan)`` is a table of
        every setting and the reason for it.
    sampler_, step_size_, batch_size_, gradient_, preconditioner_ : object
        Values that were used; ``batch_size_`` is None where every step takes all rows.
    parameterization_, init_, n_burnin_, thin_ : object
        Values that were used.
    clipped_fraction_ : float
        Share of the steps on which the gradient was clipped.
    """

    prior: Any = "auto"
    warm_start: bool = False
    forgetting: float = 1.0

    _registries: ClassVar[dict[str, Registry]] = {
        **LinearEstimator._registries,
        **registries(),
        "prior": Registry(Prior, PRIORS, HIERARCHICAL_PRIORS),
    }

    def _settings(self) -> Settings:
        super()._settings()
        check_flag(self.warm_start, "warm_start")
        check_number(self.forgetting, "forgetting", low=0, high=1, closed="right")
        return Settings.of(self)

    def _resolve(self, name: str, also: tuple[str, ...] = ()) -> Any:
        """Component that a parameter stands for; "auto" is normal until it is chosen."""
        if name != "prior":
            return super()._resolve(name, also)
        if isinstance(self.prior, str) and self.prior == "auto":
            return self._prior_of_others()
        return super()._resolve(name, ("auto",))

    def _prior_of_others(self) -> Any:
        """Component that "auto" stands for: normal until it is chosen."""
        choice = self._prior_choice
        return self._registries["prior"]["normal" if choice is None else choice.value]()

    def _choose_prior(
        self, settings: Settings, rows: Rows, likelihood: Likelihood, obstacle: str = ""
    ) -> None:
        self._prior_choice = None
        if isinstance(self.prior, Mapping):
            names = getattr(self, "feature_names_in_", None)
            if not self._resolve("prior").others_at(rows.X.shape[1], names).size:
                return
        elif not (isinstance(self.prior, str) and self.prior == "auto"):
            return
        weight = likelihood.trial_weight(rows.y, rows.weight)
        total = len(rows.y) if weight is None else float(weight.sum())
        if self._stream is not None:
            obstacle = "a scale is not learned from batches"
        elif not self._noise().constant:
            obstacle = f"noise_model={self.noise_model!r}"
        obstacle = obstacle or settings.why_no_learned_scale
        self._prior_choice = choose_prior(rows.X.shape, likelihood, total, obstacle)

    def _choice_of_prior(self) -> Choice:
        """The prior in the plan."""
        choice = self._prior_choice
        if not isinstance(self.prior, Mapping) or not (self.prior or choice is None):
            name = self.prior if isinstance(self.prior, str) else type(self.prior).__name__
            return choice or Choice(name, GIVEN)
        named = ", ".join(map(repr, self._resolve("prior").given))
        others = f"; {choice.value!r} for the others: {choice.why}" if choice else ""
        return Choice("by column", f"{GIVEN} for {named}{others}")

    def _model(self, settings: Settings, rows: Any) -> GLMPosterior:
        """Posterior of the rows, and of the earlier batches of ``partial_fit``."""
        if isinstance(rows, RowSource):
            return super()._model(settings, rows)
        self._choose_prior(settings, rows, self._likelihood())
        if self._stream is not None:
            posterior, self._stream = self._model_of_batches(settings, self._stream, rows)
            return posterior
        # the diagnosis measures on the rows, which must not change with the caller's arrays
        return super()._model(settings, copied(rows) if rows.X.size <= _KEPT else rows)

    def _run(self, settings: Settings, posterior: GLMPosterior, rows: Any) -> None:
        """Plan and run the chains, and set the fitted attributes."""
        prior, stream = self._fitted_prior(), self._stream
        settings = replace(settings, prior=self._choice_of_prior())
        target: Any = HierarchicalPosterior(posterior, prior) if prior.hierarchical else posterior
        positions, n_fits = self._last_positions(settings, target.reported.names)
        n_batches = 0 if stream is None else stream.n_batches
        # chains that continue, and batches, must not repeat earlier noise
        seed = draw_seed(self.random_state) + n_fits + n_batches
        workers = rows.workers(settings.n_jobs) if isinstance(rows, RowSource) else None
        data = {"X": posterior.X, "y": posterior.y, "sample_weight": posterior.weight}
        data[next(iter(self._row_arguments), "offset")] = posterior.offset
        inputs = {**self.get_params(deep=False), **data, "n_batches": n_batches}
        watch = partial(show_progress, self)
        try:
            result = plan_and_run(target, settings, inputs, seed, positions, watch, workers)
        except (NoModeError, np.linalg.LinAlgError) as error:
            raise NoModeError(_why_no_mode(error, posterior)) from error
        result = result if posterior.X.size <= _KEPT else result.without_data()
        self.result_: SamplingResult = result
        self.posterior_, self._n_fits = result.draws, n_fits + 1
        for name in _RESOLVED:
            setattr(self, f"{name}_", result.draws.choices[name].value)
        self.clipped_fraction_ = result.clipped
        self._set_layout(target)
        self._set_point(result.mean)
        if stream is not None:
            self._stream = stream.sampled(posterior, result.draws)
        self._screen(rows)

    def _screen(self, rows: Any) -> None:
        """Warn where the model is decisively wrong about rows that are left out in turn.

        Nothing is screened if rows are in blocks or batches of ``partial_fit`` (they are not all at
        hand); if the temperature is not 1; if a class has no weight; if there are at most as many
        rows as columns (a row then says too much of the parameters to be left out by weights); or
        if the draws have problems. Of weighted rows, each of which may stand for several or for
        part of one, it is asked whether the weights are sizes of averages.
        """
        result = self.result_
        if isinstance(rows, RowSource) or self._stream is not None:
            return
        weighted, likelihood = rows.weight is not None, self._likelihood()
        if weighted and (rows.offset is not None or "n_averaged" not in self._row_arguments):
            return
        absent = getattr(self, "_present", None) is not None  # the rows have codes of those present
        if result.temperature != 1.0 or result.problems or absent:
            return
        n, S = len(rows.y), len(result.draws.flat)
        if n <= rows.X.shape[1]:
            return
        n_rows, n_draws = screen_size(n, likelihood)
        if n_rows == 0 or n_draws > S:
            return
        rng = screen_generator(result.plan.seed)
        sample = np.sort(rng.choice(n, n_rows, replace=False, shuffle=False))
        y = (rows.y,) if rows.y.dtype.names is None else (rows.y["successes"], rows.y["trials"])
        data = tuple(each[sample] for each in (rows.X, *y, rows.offset) if each is not None)
        predictive = self._predictive(np.linspace(0, S - 1, n_draws).astype(int))
        if weighted:
            message = screen_weights(predictive, data, rows.weight[sample])
        else:
            pull = partial(own_pull, result.plan.posterior, result.mean)
            state = np.random.RandomState(rng.bit_generator)
            message = screen(predictive, data, state, self, pull)
        if message:
            warn(f"{type(self).__name__}: {message}.", ModelMisfitWarning)

    def _last_positions(self, settings: Settings, names: list[str]) -> tuple[Array | None, int]:
        """Last positions of the chains that this fit continues, if any, and the fits before it."""
        last: Any = vars(self).get("result_")
        same = last is not None and last.names == names and len(last.positions) == settings.n_chains
        return (last.positions, self._n_fits) if self.warm_start and same else (None, 0)

    def diagnose(self, X: Any = None, y: Any = None, **params: Any) -> Any:
        """Diagnosis of the draws, and of the model where X and y are given.

        Of a pipeline or a search call :func:`skbayes_sgld.diagnose`, which names its columns.

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
            It shows itself as a report. Of a fit of several outputs a dict: one for each, by its
            name.
        """
        return diagnose(self, X, y, **params)

    def _diagnosis(self, X: Any = None) -> Diagnosis:
        """Diagnosis of the draws, which no rows are needed for."""
        diagnosis = self.result_.diagnose()
        assert isinstance(diagnosis, Diagnosis)
        return diagnosis

    # ---- batches of partial_fit ---------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, **by_row: Any) -> Self:
        """Fit with one more batch of rows.

        The posterior is that of all rows since the first call, as one ``fit`` would have it, with
        scales in the units of the first batch. ``forgetting`` multiplies the weights of all earlier
        rows.

        Of a linear model with normal noise, sums of products are kept, and no rows. Of other models
        rows are kept while they hold up to a million numbers; then a normal density takes the place
        of their likelihood, with the gradient and the curvature that it has on average over the
        draws. While all counts are zero, or all trials have one outcome, an intercept whose prior
        is flat has that of ``intercept_prior="normal"``, and all rows are kept.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative. A row of weight w counts as w rows.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            As of ``fit``, and where the number of columns changes or is 3,000 or more.
        """
        return self._partial_fit(X, y, sample_weight, by_row)

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, by_row: dict[str, Any]) -> Any:
        """Fit with one more batch; an error leaves the estimator as it was."""
        return self._fit(X, y, sample_weight, by_row, self._stream or Stream())

    def _model_of_batches(
        self, settings: Settings, stream: Stream, rows: Rows
    ) -> tuple[GLMPosterior, Stream]:
        """Posterior of all batches, given the rows of the last; and the batches with these rows."""
        self._check_sums(rows.X.shape[1], "partial_fit")
        self._check_known_scale("partial_fit")
        add = self._add_to_sums if self._likelihood().quadratic else self._add_to_rows
        posterior, stream = add(settings, stream, rows)
        check_proper(posterior)
        return posterior, stream

    def _add_to_sums(
        self, settings: Settings, stream: Stream, rows: Rows
    ) -> tuple[GLMPosterior, Stream]:
        """Posterior by the sums of products of all batches, which are all a normal model needs."""
        if stream.priors is None:
            stream = replace(stream, priors=self._priors_of(self._bind(rows, center=False)))
        size = None if rows.offset is None else np.exp(-rows.offset)
        statistics = GaussianStatistics.from_rows(rows.X, rows.y, rows.weight, size=size)
        if stream.summary is not None:
            assert isinstance(stream.summary, GaussianStatistics)
            statistics = stream.summary.tempered(float(self.forgetting)).plus(statistics)
        X, y, weight, size = statistics.as_rows()
        sums = Rows(X, y, weight, offset=None if size is None else -np.log(size))
        posterior = self._bind(sums, center=settings.uses_curvature, priors=stream.priors)
        return posterior, replace(stream, summary=statistics)

    def _add_to_rows(
        self, settings: Settings, stream: Stream, rows: Rows
    ) -> tuple[GLMPosterior, Stream]:
        """Posterior of the rows of all batches, or with a normal density for the earlier ones.

        Rows are kept while they are few; then a normal density replaces their likelihood, with the
        mean gradient and the mean curvature over the draws. Rows stay as long as the intercept has
        a flat prior and they do not hold it, as counts that are all 0; its prior is normal then.
        """
        power = float(self.forgetting)
        rows = copied(rows) if stream.rows is None else joined(stream.rows, power, rows)
        posterior = self._bind(rows, center=settings.uses_curvature)
        if stream.priors is None:
            stream = replace(stream, priors=self._priors_of(posterior))
        assert stream.priors is not None and not isinstance(stream.summary, GaussianStatistics)
        site = None if stream.summary is None else stream.summary.tempered(power)
        held = site is not None or intercept_is_proper(posterior)
        if site is not None and site.theta.size != posterior.n_params:
            raise ValueError(
                "fit_intercept was changed since the last batch; call fit to start anew."
            )
        coef, intercept, own = stream.priors
        posterior = posterior.with_own_priors(own)
        if not held:
            data = posterior.likelihood, posterior.y, posterior.weight
            intercept = in_units(posterior.prior, PRIORS["normal"](), None, *data)[1]
        keeps = not held or rows.X.size + 2 * len(rows.y) <= _KEPT_BATCHES
        stream = replace(stream, summary=site, rows=rows._replace(columns=None) if keeps else None)
        return under_priors(posterior, coef, intercept, site), stream

    def _priors_of(self, posterior: GLMPosterior) -> Priors:
        """Priors of a posterior, with numbers for scales."""
        prior = posterior.linear_prior
        return prior.coef, prior.intercept, posterior.own_priors


def _why_no_mode(error: Exception, posterior: GLMPosterior) -> str:
    """Message of a fit without a mode, which names y where its size is the likelier reason."""
    size = float(posterior.y.max()) if posterior.likelihood.log_link else 0.0
    if size > _SAFE_SIZE:
        return (
            f"y has values of size {size:.3g}, and the mode of the posterior was lost in rounding "
            f"errors; give values up to {_SAFE_SIZE:g}, in larger units."
        )
    if isinstance(error, NoModeError):
        return str(error)
    return (
        f"the curvature of the posterior is not positive definite ({error}), so it has no mode "
        "that could be found; give the coefficients a proper prior of a smaller scale, such as "
        "prior='normal'."
    )


def copied(rows: Rows) -> Rows:
    """Copy of rows that the caller's arrays cannot change."""
    weight, offset = (None if v is None else v.copy() for v in (rows.weight, rows.offset))
    return Rows(rows.X.copy(), rows.y.copy(), weight, rows.columns, offset)


def joined(earlier: Rows, power: float, rows: Rows) -> Rows:
    """Earlier rows, their weights multiplied by ``power``, followed by further rows."""
    weight = offset = None
    if rows.weight is not None or earlier.weight is not None or power < 1.0:
        old, new = (np.ones(len(r.y)) if r.weight is None else r.weight for r in (earlier, rows))
        weight = np.concatenate([power * old, new])
    if rows.offset is not None or earlier.offset is not None:
        both = (np.zeros(len(r.y)) if r.offset is None else r.offset for r in (earlier, rows))
        offset = np.concatenate(list(both))
    stacked = (
        sparse.csr_array(sparse.vstack([earlier.X, rows.X]))
        if sparse.issparse(earlier.X) or sparse.issparse(rows.X)
        else np.concatenate([earlier.X, rows.X])
    )
    return Rows(stacked, np.concatenate([earlier.y, rows.y]), weight, rows.columns, offset)
