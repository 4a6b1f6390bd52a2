"""The base of all estimators: parameters, checks of the data, ``fit``, and the fitted posterior."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import fields, replace
from functools import cache, partial
from html import escape
from importlib.metadata import version
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._checks import check_flag, check_number, escaped
from skbayes_sgld._components import Component, Registry, resolve
from skbayes_sgld._doc_link import doc_link_template
from skbayes_sgld._doors import Door
from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._random import as_random_state
from skbayes_sgld._timings import stage, timed
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import gather_into, gathering_folder, warn
from skbayes_sgld.estimators.callbacks import CallbackSupportMixin, fit_task, with_callbacks
from skbayes_sgld.estimators.fitted import Fitted
from skbayes_sgld.estimators.priors import nested_params, with_params
from skbayes_sgld.inference.choices import Choice, shown
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.likelihoods.row_values import RowValues
from skbayes_sgld.prediction.distribution import PredictiveDistribution
from skbayes_sgld.prediction.predicted_rows import PredictedRows
from skbayes_sgld.prediction.predictors import Predictor
from skbayes_sgld.prediction.random_walks import warn_of_random_walks
from skbayes_sgld.priors import NOISE_PRIORS, PRIORS
from skbayes_sgld.rows.arguments import (
    ROW_ARGUMENTS,
    check_by_row_given,
    check_names,
    metadata_requests,
    values_brought,
)
from skbayes_sgld.rows.arrays import checked_X, checked_y
from skbayes_sgld.rows.checks import check_finite
from skbayes_sgld.rows.fingerprint import Fingerprint
from skbayes_sgld.rows.reading import FitRows, UnreadRows, read_rows
from skbayes_sgld.rows.targets import Target

_STAMP = "_skbayes_sgld_version"
_FOLDER = "_skbayes_sgld_warnings"
_TO_ARVIZ = Door("skbayes_sgld.arviz.rows", "to_arviz")


@numpy_defaults
class BayesianEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of all estimators, linear models and networks.

    Attributes
    ----------
    posterior_ : PosteriorDraws
        Draws, ``(chain, draw, parameter)``, and the names of the parameters.
    """

    prior: Any
    random_state: Any
    posterior_: PosteriorDraws

    _registries: ClassVar[dict[str, Registry]] = {
        "prior": PRIORS,
        "intercept_prior": PRIORS,
    }
    _doc_link_module = "skbayes_sgld"  # for the link to the documentation in scikit-learn's HTML
    _doc_link_template = property(lambda self: doc_link_template())
    # ---- what a kind of estimator says of itself: a subclass sets it ----
    _takes_sparse: ClassVar[bool] = False  # whether X may be sparse
    _takes_blocks: ClassVar[bool] = False  # whether fit takes rows in blocks
    _row_arguments: ClassVar[tuple[str, ...]] = ()  # arguments by row, out of ROW_ARGUMENTS
    _y_holds: ClassVar[str] = ""  # end of the sentence "y holds ..." in the docstring's notes
    _advice_on_columns: ClassVar[str] = ""  # for the error of a y with several columns
    # what to do instead of giving an argument that a method does not take, for its error
    _argument_hints: ClassVar[dict[str, str]] = {
        **{name: each.elsewhere for name, each in ROW_ARGUMENTS.items()},
        "offset": "a known part of the mean is subtracted from y before the fit",
        "as_frame": "the functions of the same names, such as skbayes_sgld.predict_interval(model, "
        "X, as_frame=True), give a frame",
    }
    _is_mixed: bool = False  # whether X has labels of groups
    _fitted: Any = None  # what is kept of the last fit; see estimators/fitted.py

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Request the arguments by row in scikit-learn, and ignore the caller's ``np.errstate``."""
        for name, request in metadata_requests(cls, cls._row_arguments).items():
            setattr(cls, name, request)
        super().__init_subclass__(**kwargs)
        numpy_defaults(cls)

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: whether rows may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    # ---- parameters ---------------------------------------------------------------------------

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        return sorted(field.name for field in fields(cls))

    @classmethod
    def _registry(cls, name: str) -> Registry[Any] | None:
        """Registry of the components that a parameter takes; None if it takes no component.

        A prior that no class lists is that of one of the likelihood's own parameters.
        """
        default = NOISE_PRIORS if name.endswith("_prior") else None
        return cls._registries.get(name, default)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of components: ``set_params(prior__scale=0.5)``.

        A component given by name is replaced by an instance when a parameter of its own is set;
        ``prior="auto"`` is then the normal prior.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : object
        """
        prior = params.get("prior", getattr(self, "prior", None))
        if isinstance(prior, Mapping):
            of_columns = [key for key in params if key.startswith("prior__")]
            given = {key.removeprefix("prior__"): params.pop(key) for key in of_columns}
            registry = self._registry("prior")
            if given and registry is not None:
                params["prior"] = with_params(prior, given, registry)
        for key in list(params):
            name, nested, _ = key.partition("__")
            registry = self._registry(name)
            if not nested or registry is None or name not in self._get_param_names():
                continue
            current = params.get(name, getattr(self, name, None))
            if name == "prior" and isinstance(current, str) and current == "auto":
                current = "normal"
            if not isinstance(current, (str, Component)) or current == "auto":
                names = ", ".join(map(repr, registry))
                raise ValueError(
                    f"{key}={params[key]!r} has nothing to be set on: {name}={current!r}; give "
                    f"{name} one of {names} as well, or an instance."
                )
            if isinstance(current, str):
                params[name] = resolve(current, registry, name)
        return super().set_params(**params)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, and if ``deep`` also those of components: ``prior__scale``.

        For priors of single columns they are ``prior__age`` and ``prior__age__scale``.
        """
        params: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(params.get("prior"), Mapping):
            params |= nested_params(params["prior"])
        return params

    def _resolve(self, name: str) -> Any:
        """Component that a parameter stands for."""
        registry = self._registry(name)
        assert registry is not None
        return resolve(getattr(self, name), registry, name)

    def _settings(self) -> Any:
        """Raise if a parameter, used or not, is out of range; subclasses return settings."""
        for name in self._get_param_names():
            if name.endswith("_prior"):  # the settings of a run check the other components
                self._resolve(name)

    def _get_params_html(self, *args: Any, **kwargs: Any) -> Any:
        """Parameters in the HTML representation, scikit-learn's hook; the plan of a fit follows."""
        params = super()._get_params_html(*args, **kwargs)
        draws = vars(self).get("posterior_")
        if draws is not None and draws.choices:
            tables = params._repr_html_inner() + _plan_html(draws.choices)
            params._repr_html_inner = lambda: tables
        return params

    # ---- fit ----------------------------------------------------------------------------------

    # Two wrappers are not seen here. ``numpy_defaults``, above the class, ignores the caller's
    # ``np.errstate`` in every public method and completes errors on arguments; ``with_callbacks``
    # is scikit-learn's.
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **by_row: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or RowBlocks
            Not copied, unless its type is not float64 or float32. The blocks of RowBlocks hold the
            other arguments too.
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
            If data or parameters cannot be used; the estimator stays as it was.
        """
        return self._fit(X, y, sample_weight, by_row)

    @with_callbacks
    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        by_row: dict[str, Any],
        read: Callable[..., UnreadRows] = read_rows,
    ) -> Self:
        """Fit to the rows that ``read`` makes of the arguments: rows, model, posterior, result."""
        check_names(self, by_row)
        settings = self._settings()
        with (
            fit_task(self, X, y, sample_weight, by_row),
            timed(type(self).__name__, self.verbose),
        ):
            with stage("reading"):
                unread = read(X, y, sample_weight, by_row, self)
                target, rows = unread.encode(self._target(unread), self)
            # with few columns, passes over rows share the cores: threads of BLAS would compete
            with one_blas_thread() if rows.n_features < 500 else nullcontext():
                with stage("reading"):
                    model = self._model(settings, target.likelihood, rows, target.class_names)
                    # the rows come back with what is kept of a fit: copies, the batches so far
                    posterior, rows = self._bind(settings, model, rows)
                fitted = self._infer(settings, model, posterior, rows, target)
                with stage("screen"), _last_fit_kept(self):
                    self._write(fitted)
                    self._screen(rows)
        return self

    def _target(self, rows: UnreadRows) -> Target:
        """Kind of target that the rows have, which are not checked yet."""
        raise NotImplementedError

    def _check_values(self, X: Array, names: list[str] | None, fitting: bool) -> None:
        """Raise if values of X cannot be used to fit, or to predict."""
        check_finite(X, names)

    def _model(
        self,
        settings: Any,
        likelihood: Likelihood,
        rows: FitRows,
        class_names: list[str] | None = None,
    ) -> Any:
        """Model of the rows: likelihood and priors."""
        raise NotImplementedError

    def _bind(self, settings: Any, model: Any, rows: FitRows) -> tuple[Any, FitRows]:
        """Posterior of the rows under the model, and the rows that later calls need."""
        return rows.bind(model)

    def _infer(
        self, settings: Any, model: Any, posterior: Any, rows: FitRows, target: Target
    ) -> Fitted:
        """Draws of the posterior, or its mode, and all that the estimator keeps of a fit."""
        raise NotImplementedError

    def _write(self, fitted: Fitted) -> None:
        """Replace the last fit by this one; no other method sets fitted attributes."""
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            delattr(self, name)
        self._fitted = fitted
        for name, value in fitted.attributes.items():
            setattr(self, name, value)

    def _screen(self, rows: FitRows) -> None:
        """Warn, at the end of a fit to these rows, if the model is wrong about them."""

    # ---- the fitted estimator -----------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a fit: ``check_is_fitted`` asks every attribute without this."""
        return self._fitted is not None

    @property
    def _arguments_of_fit(self) -> tuple[str, ...]:
        """Names of the arguments by row that the fit had."""
        return () if self._fitted is None else self._fitted.target.arguments

    @property
    def _fingerprint(self) -> Fingerprint | None:
        """Sums over the rows of the fit."""
        return None if self._fitted is None else self._fitted.fingerprint

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [escaped(name) for name in names]

    def _check_rows(self, X: ArrayLike) -> Array:
        """Rows to predict."""
        check_is_fitted(self)
        warn_of_random_walks(self)
        rows, names = checked_X(self, X)
        self._check_values(rows, names, fitting=False)
        return rows

    def _rows_of(self, X: Any, by_row: dict[str, Any]) -> tuple[Array, RowValues]:
        """Checked rows to predict, and what they bring besides."""
        check_names(self, by_row)
        rows, target = self._check_rows(X), self._fitted.target
        return rows, values_brought(target.check_by_row(X, by_row))

    def _observed(self, X: Any, y: Any, by_row: dict[str, Any]) -> tuple[Array, Array, RowValues]:
        """Checked rows, observations (numbers or codes), and what the rows bring besides."""
        check_names(self, by_row)
        check_is_fitted(self)
        check_by_row_given(self, by_row)
        target: Target = self._fitted.target
        rows, names = checked_X(self, X)
        y = checked_y(self, target.read_type(y)[1], rows, target.numeric)
        self._check_values(rows, names, fitting=False)
        return rows, *target.encode_later(rows, y, target.check_by_row(rows, by_row))

    def _predictor(self, selection: Any = slice(None)) -> Predictor:
        """Map from rows to their predictors under the chosen draws."""
        raise NotImplementedError

    def _predictive(self, selection: Any = slice(None)) -> Any:
        """Posterior predictive distribution from the chosen draws."""
        likelihood, own = self._fitted.target.likelihood, self._own_draws(selection)
        return self._mixture(self._predictor(selection), likelihood, own, selection)

    def _own_draws(self, selection: Any) -> Array | None:
        """Coordinates ``(S, n_own)`` of own parameters in the chosen draws; None without any."""
        return None

    def _mixture(
        self, predictor: Predictor, likelihood: Likelihood, own: Array | None, selection: Any
    ) -> PredictiveDistribution:
        """Predictive distribution from the chosen draws, whose own coordinates are given."""
        weights = self.posterior_.flat_weights
        weights = None if weights is None else weights[selection]
        return PredictiveDistribution(predictor, likelihood, own, weights)

    def _exponential(self) -> str:
        """Name of the exponential of the only linear predictor; "" if there is none."""
        return ""

    def _point_predictive(self) -> PredictiveDistribution:
        """Predictive distribution whose mean and probabilities are reported."""
        return self._predictive()

    def _predictions(
        self, X: Any, by_row: dict[str, Any], selection: Any = slice(None)
    ) -> PredictedRows:
        """Predictive distributions of the rows X from the chosen draws."""
        rows, row_values = self._rows_of(X, by_row)
        of_draws, classes = partial(self._predictive, selection), getattr(self, "classes_", None)
        return PredictedRows(of_draws, self._point_predictive, rows, row_values, classes=classes)

    def _predictions_of_observed(self, X: Any, y: Any, by_row: dict[str, Any]) -> PredictedRows:
        """Predictive distributions of the rows X, with their observations y."""
        rows, observed, row_values = self._observed(X, y, by_row)
        of_draws, of_point = self._predictive, self._point_predictive
        classes = getattr(self, "classes_", None)
        return PredictedRows(of_draws, of_point, rows, row_values, observed, classes)

    def _choose_draws(self, n_samples: int | None, random_state: Any) -> Array:
        """Indices of ``n_samples`` draws among those of all chains; None: all."""
        check_is_fitted(self)
        if n_samples is not None:
            check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
        return self.posterior_.choose(n_samples, random_state)

    def log_likelihood(self, X: ArrayLike, y: ArrayLike, **by_row: Any) -> Array:
        """Log density of every observation under every draw; for a label its log probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            For a classifier labels among ``classes_``, or successes.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples, n_draws) or (n_samples, n_outputs, n_draws)
            One column for each draw of all chains, in the order of ``posterior_.flat``. Under a
            decaying schedule the draws have weights, ``posterior_.flat_weights``. Of 200 rows or
            more they are within 5e-5, relative to a log density below -1.
        """
        return self._predictions_of_observed(X, y, by_row).log_likelihood()

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0, **by_row: Any
    ) -> Array:
        """Draws of y from the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=0
        **by_row : array-like of shape (n_rows,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples) or (n_rows, n_outputs, n_samples)
            Numbers; for a classifier labels, or successes.
        """
        check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
        rng = as_random_state(random_state)
        selection = self._choose_draws(n_samples, rng)
        return self._predictions(X, by_row, selection).sample(rng)

    def summary(self, coverage: float = 0.9, exponentiate: bool = False) -> pd.DataFrame:
        """Summary table of the posterior, one row for each parameter.

        Parameters
        ----------
        coverage : float, default=0.9
            Probability of the equal-tailed credible interval, in (0, 1).
        exponentiate : bool, default=False
            Summarise exp(draws) of the coefficients and the intercept: odds ratios
            ``odds_ratio[column]`` and the ``odds`` where all columns are 0, for two classes; rate
            ratios ``rate_ratio[column]`` and the ``rate`` of counts; ``mean_ratio[column]`` and the
            ``mean`` of a gamma regression. The interval's ends are the exponentials of those of the
            parameter. Figures beyond the range of floats are infinite. Other models raise a
            ValueError.

        Returns
        -------
        table : pandas.DataFrame
            Mean, sd, bulk and tail effective sample size, R-hat, the Monte Carlo standard errors of
            mean and sd, and the interval's ends. Effects of groups are not among the parameters:
            ``group_effects_`` has them. Its ``attrs`` have the value of every setting
            by its name, and under ``"plan"`` a table of the values and their reasons.
        """
        check_is_fitted(self)
        draws = self._summarised()
        if not check_flag(exponentiate, "exponentiate"):
            return draws.summary(coverage)
        unit = self._exponential()
        if not unit:
            raise ValueError(
                f"exponentiate=True is not accepted by this {type(self).__name__}: exponentials of "
                "coefficients are odds ratios of two classes and rate ratios of counts. "
                "skbayes_sgld.effects has the effects on the response of any model."
            )
        ratios = {"intercept": unit}
        ratios |= {n: f"{unit}_ratio{n[4:]}" for n in draws.names if n.startswith("coef[")}
        positions = [k for k, name in enumerate(draws.names) if name in ratios]
        names = [ratios[draws.names[k]] for k in positions]
        return exponentiated(
            replace(draws, values=draws.values[..., positions], names=names), coverage
        )

    def _summarised(self) -> PosteriorDraws:
        """Draws of the parameters that the summary has."""
        return self.posterior_

    def to_arviz(
        self,
        X: Any = None,
        y: Any = None,
        random_state: Any = 0,
        *,
        only: Any = None,
        **by_row: Any,
    ) -> Any:
        """Convert the fit to ArviZ; it needs the extra ``arviz``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None, default=None
            Rows to add: those of ``fit``, for leave-one-out cross-validation, or new ones.
        y : array-like of shape (n_samples,) or None, default=None
            Their observations.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws of observations.
        only : sequence of str or None, default=None
            Groups to make, of those below. None: all of them. ``posterior_predictive`` and
            ``log_likelihood`` hold a number for every row and draw each, 8 bytes: for 20,000 rows
            and 4,000 draws 0.64 GB.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            The former with ArviZ before 1.0. Its groups are ``posterior``, with coordinates
            ``feature`` and ``class``, and ``sample_stats`` if the posterior was sampled (see
            :meth:`~skbayes_sgld.SamplingResult.to_arviz`). Effects of the groups in a column
            ``Subject`` are variables ``effect_Subject``, ``sd_Subject`` and
            ``correlation_Subject``, with the coordinates ``Subject``, its labels, and
            ``Subject_effect``. X and y add ``posterior_predictive``,
            an observation of each row under every draw, ``log_likelihood``, ``observed_data`` and
            ``constant_data`` with exposures or trials; X alone adds ``predictions`` and
            ``predictions_constant_data``.
            Observations are called ``y``, and rows are counted by ``obs_id``; a label is its
            position in ``classes_``.

        Raises
        ------
        ValueError
            If y is given without X, X and y cannot be used, or a group is not known.
        MemoryError
            If the groups do not fit into the available memory, before they are made.
        """
        return _TO_ARVIZ.open()(self, X, y, random_state, only, by_row)

    def __getstate__(self) -> dict[str, Any]:
        """State with the package's version: in another one attributes may have another meaning."""
        state = {**super().__getstate__(), _STAMP: version("skbayes-sgld")}
        folder = gathering_folder()  # a folder that is removed at the end of the context
        return state if folder is None else {**state, _FOLDER: folder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Warn if another version of the package made the pickle."""
        state = dict(state)
        gather_into(state.pop(_FOLDER, None))
        theirs, ours = state.pop(_STAMP, "unknown"), version("skbayes-sgld")
        if theirs != ours:
            warn(
                f"This {type(self).__name__} was pickled by skbayes-sgld {theirs} and is read by "
                f"{ours}: attributes may be missing or mean something else. Fit it again, or "
                "install the version that made it.",
                UserWarning,
            )
        super().__setstate__(state)


@contextmanager
def _last_fit_kept(estimator: BayesianEstimator) -> Iterator[None]:
    """Keep the last fit if an error is raised, such as a warning that is an error."""
    last = dict(vars(estimator))
    try:
        yield
    except Exception:
        estimator.__dict__ = last
        raise


@np.errstate(over="ignore")  # what is beyond the floats becomes infinite
def exponentiated(draws: PosteriorDraws, coverage: float) -> pd.DataFrame:
    """Summary table of exp(draws), in which only the parts out of range are infinite."""
    unit = draws.values.max(axis=(0, 1))
    table = replace(draws, values=np.exp(draws.values - unit)).summary(coverage)
    for name in ("mean", "sd", "mcse_mean", "mcse_sd"):
        with np.errstate(divide="ignore"):  # an sd may be 0
            table[name] = np.exp(np.log(table[name]) + unit)
    ends = ["lower", "upper"]
    table[ends] = np.exp(draws.summary(coverage)[ends])
    return table


def _plan_html(choices: dict[str, Choice]) -> str:
    """Folded table of settings, values and reasons, in the style of scikit-learn's parameters."""
    rows = "".join(
        f'<tr class="{"user-set" if choice.given else "default"}"><td>{escape(name)}</td>'
        f"<td>{escape(shown(choice.value))}</td><td>{escape(choice.why)}</td></tr>"
        for name, choice in choices.items()
    )
    return (
        '<div class="estimator-table"><details><summary>Plan of the fit</summary>'
        '<table class="parameters-table"><tbody><tr><th>Setting</th><th>Value</th>'
        f"<th>Reason</th></tr>{rows}</tbody></table></details></div>"
    )
