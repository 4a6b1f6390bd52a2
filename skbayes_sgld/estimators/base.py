"""The base of all estimators: parameters, checks of the data, ``fit``, and the fitted posterior."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import fields, replace
from functools import partial
from html import escape
from importlib.metadata import version
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import (
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from skbayes_sgld._checks import check_collected, check_flag, check_number, escaped, naming
from skbayes_sgld._components import Component, Registry, resolve
from skbayes_sgld._doc_link import doc_link_template
from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._random import as_random_state
from skbayes_sgld._sparse import as_rows
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import gather_into, gathering_folder, warn
from skbayes_sgld.blocks import as_source
from skbayes_sgld.blocks.fingerprint import Fingerprint
from skbayes_sgld.blocks.source import RowSource, refuse_exposure
from skbayes_sgld.estimators import arviz
from skbayes_sgld.estimators.callbacks import CallbackSupportMixin, fit_task, with_callbacks
from skbayes_sgld.estimators.column_priors import nested_params, with_params
from skbayes_sgld.estimators.outputs import has_outputs
from skbayes_sgld.inference.choices import Choice, shown
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.posterior import NOISE_MODELS
from skbayes_sgld.prediction.predictions import Predictions, of_outputs, split_columns
from skbayes_sgld.prediction.predictive import Predictive
from skbayes_sgld.prediction.predictors import Predictor
from skbayes_sgld.prediction.wrappers import warn_of_random_walks
from skbayes_sgld.priors import NOISE_PRIORS, PRIORS, CoefficientPrior, Prior
from skbayes_sgld.rows.arguments import (
    ROW_ARGUMENTS,
    check_by_row_given,
    check_names,
    metadata_requests,
    totals_of,
)
from skbayes_sgld.rows.checks import (
    FLOATS,
    check_finite,
    check_no_gap,
    check_numeric,
    check_real,
    check_weight,
    warn_of_light_rows,
)

_STAMP = "_skbayes_sgld_version"
_FOLDER = "_skbayes_sgld_warnings"


class Rows(NamedTuple):
    """Checked rows of a fit.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, d)
    y : ndarray of shape (n,)
        Numbers, as the likelihood takes them.
    weight : ndarray of shape (n,) or None
        Positive; None where all are 1.
    columns : tuple of two ndarrays of shape (d,) or None
        Mean and spread of each column, in place of those of X.
    offset : ndarray of shape (n,) or None
        Known part of each row's linear predictor.
    """

    X: Any
    y: Array
    weight: Array | None
    columns: tuple[Array, Array] | None = None
    offset: Array | None = None


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was when the block raises."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


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
        "noise_model": NOISE_MODELS,
    }
    _doc_link_module = "skbayes_sgld"  # scikit-learn's names, for the link of the HTML
    _doc_link_template = property(lambda self: doc_link_template())
    _takes_sparse: ClassVar[bool] = False
    _y_checks: ClassVar[dict[str, Any]] = {}  # further arguments of scikit-learn's validate_data
    _row_arguments: ClassVar[tuple[str, ...]] = ()  # names in ROW_ARGUMENTS
    _target: ClassVar[str] = ""  # contents of y, for the notes
    _advice_on_columns: ClassVar[str] = ""  # what to give instead of a y with several columns
    # what to do instead of giving an argument that a method does not take
    _argument_hints: ClassVar[dict[str, str]] = {
        **{name: each.elsewhere for name, each in ROW_ARGUMENTS.items()},
        "offset": "a known part of the mean is subtracted from y before the fit",
        "as_frame": "the functions of the same names, such as skbayes_sgld.predict_interval(model, "
        "X, as_frame=True), give a frame",
    }
    _exponential: ClassVar[str] = ""  # name of the exponential of the only linear predictor
    _n_predictors: int  # set by linear models only
    _stream: Any = None  # earlier batches of partial_fit; None after fit
    _prior_choice: Any = None  # prior="auto": the choice of the last fit
    _by_row = cast("str", "")  # name of the argument by row that the fit had
    _fingerprint: Fingerprint | None = None  # of the rows of the fit

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Ask scikit-learn for the arguments by row, and keep the caller's ``np.errstate`` out."""
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
    def _get_param_names(cls) -> list[str]:
        return sorted(field.name for field in fields(cls))

    @classmethod
    def _registry(cls, name: str) -> Registry[Any] | None:
        """Registry of the components that a parameter takes; None where it takes no component.

        Any prior that no class lists is that of one of the likelihood's own parameters.
        """
        default = NOISE_PRIORS if name.endswith("_prior") else None
        return cls._registries.get(name, default)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of components too: ``set_params(prior__scale=0.5)``.

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
        """Parameters, and with ``deep`` those of components: ``prior__scale``.

        Of priors of single columns they are ``prior__age`` and ``prior__age__scale``.
        """
        params: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(params.get("prior"), Mapping):
            params |= nested_params(params["prior"])
        return params

    def _resolve(self, name: str, also: tuple[str, ...] = ()) -> Any:
        """Component that a parameter stands for; ``also`` are further names that it takes."""
        registry = self._registry(name)
        assert registry is not None
        return resolve(getattr(self, name), registry, name, also)

    def _resolve_conditional(self, name: str, likelihood: Likelihood) -> CoefficientPrior:
        """Prior given its hyperparameters; raise where the noise that scales it is not inferred."""
        prior = self._resolve(name)
        self._check_noise_scales(prior, name, getattr(self, name), likelihood)
        return prior.conditional() if prior.hierarchical else prior

    def _check_noise_scales(
        self, prior: Prior, name: str, given: Any, likelihood: Likelihood
    ) -> None:
        """Raise if the prior is in units of the noise, and the model does not infer it."""
        if prior.scaled_by_noise and not likelihood.quadratic:
            if likelihood.infers_noise:
                raise ValueError(
                    f"{name}={given!r} is conjugate to normal noise, and "
                    f"noise_distribution={self.noise_distribution!r} has other noise; "
                    f"set {name}='normal'."
                )
            unscaled = sorted(repr(k) for k, v in PRIORS.items() if not v.scaled_by_noise)
            raise ValueError(
                f"{name}={given!r} is scaled by the noise, and this model has "
                f"none; choose one of {', '.join(unscaled)}."
            )

    def _settings(self) -> Any:
        """Raise where a parameter is out of range, used or not; subclasses return settings."""
        for name in self._get_param_names():
            if BayesianEstimator._registry(name) is not None:
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
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            For data or parameters that cannot be used; the estimator stays as it was.
        """
        return self._fit(X, y, sample_weight, by_row)

    @with_callbacks
    def _fit(
        self, X: Any, y: Any, sample_weight: Any, by_row: dict[str, Any], stream: Any = None
    ) -> Self:
        """Fit to all rows, or to one more batch of a ``stream``: check, model, run."""
        check_names(self, by_row)
        data = X, y, sample_weight, by_row
        with fit_task(self, *data), unchanged_on_error(self):
            self._stream = stream
            settings = self._settings()
            rows = self._source(*data) or self._check_data(*data)
            earlier = self._fingerprint if self._is_later_batch else None
            n_columns = rows.n_features if isinstance(rows, RowSource) else rows.X.shape[1]
            # with few columns, passes over rows share the cores: threads of BLAS would compete
            with one_blas_thread() if n_columns < 500 else nullcontext():
                posterior = self._model(settings, rows)
                self._run(settings, posterior, rows)
            self._fingerprint = self._fingerprint_of(rows, earlier)
        return self

    def _fingerprint_of(self, rows: Any, earlier: Fingerprint | None) -> Fingerprint | None:
        """Fingerprint of the rows of this fit, and of earlier batches."""
        if isinstance(rows, RowSource):
            found = rows.fingerprint
            labels = hasattr(self, "classes_") and not self._likelihood().totals
            return found.without_target() if found is not None and labels else found
        y, present = rows.y, getattr(self, "_present", None)
        if present is not None:
            y = present[y.astype(int)]
        found = Fingerprint.of(rows.X, y, rows.offset, rows.weight)
        if getattr(self, "class_weight", None) is not None:
            found = replace(found, weight=np.nan)
        return found if earlier is None else earlier.plus(found)

    def _source(
        self, X: Any, y: Any, sample_weight: Any, by_row: dict[str, Any]
    ) -> RowSource | None:
        """Rows in blocks; None where they are an array like any other."""
        check_names(self, by_row)
        source = as_source(X, y, sample_weight, **dict.fromkeys(self._row_arguments) | by_row)
        return source if self._row_arguments else refuse_exposure(source)

    def _check_data(self, X: Any, y: Any, sample_weight: Any, by_row: dict[str, Any]) -> Rows:
        """Checked rows of positive weight; sets ``n_features_in_``, ``classes_`` and the like."""
        if self._advice_on_columns and has_outputs(y) and np.asarray(y).shape[1] > 1:
            raise ValueError(f"y has shape {np.asarray(y).shape}; {self._advice_on_columns}")
        checks = {**self._y_checks, "reset": not self._is_later_batch}
        if self._is_later_batch:  # a batch may be a single row
            checks["ensure_min_samples"] = 1
        X, y = self._validate_rows(X, y, ensure_all_finite=False, **checks)
        self._check_values(X)
        weight = None if sample_weight is None else check_weight(sample_weight, X)
        y, weight, offset = self._target_of_fit(X, y, weight, by_row)
        if weight is not None:
            if not weight.all():
                some = weight > 0
                X, y, weight = X[some], y[some], weight[some]
                offset = None if offset is None else offset[some]
            if np.all(weight == 1.0):
                weight = None
            elif sample_weight is not None:
                warn_of_light_rows(float(weight.sum()), *X.shape)
        return Rows(X, self._as_numbers(y), weight, offset=offset)

    @property
    def _is_later_batch(self) -> bool:
        """Whether ``partial_fit`` has fitted a batch before these rows."""
        return self._stream is not None and self._stream.n_batches > 0

    def _check_values(self, X: Array, fitting: bool = True) -> None:
        """Raise where values of X cannot be used to fit, or to predict."""
        check_finite(X, self)

    def _target_of_fit(
        self, X: Any, y: Array, weight: Array | None, by_row: dict[str, Any]
    ) -> tuple[Array, Array | None, Array | None]:
        """Target, weight and offset of all rows: codes of labels, weights times those of classes.

        It remembers whether the rows have the argument by row.
        """
        offset = self._offset(X, by_row)
        self._remember_by_row(by_row)
        return y, weight, offset

    def _remember_by_row(self, by_row: dict[str, Any]) -> None:
        """Remember which argument by row the rows have, as all batches do or none."""
        given = next((name for name, value in by_row.items() if value is not None), "")
        if self._is_later_batch and given != self._by_row:
            raise ValueError(
                f"{given or self._by_row} is {'' if given else 'not '}given, and earlier calls of "
                f"partial_fit had {'none' if given else 'it'}; give it in all calls, or in none."
            )
        self._by_row = given

    def _as_numbers(self, y: Array, fitting: bool = True) -> Array:
        """Target as the numbers that the likelihood takes; of a fit, of rows of positive weight."""
        return self._likelihood().check_target(y)

    def _own_draws(self) -> Array | None:
        """Coordinates ``(S, n_own)`` of the likelihood's own parameters; None without any."""
        return None

    def _likelihood(self) -> Likelihood:
        """Distribution of an observation, given parameters of the estimator and labels of y."""
        raise NotImplementedError

    def _model(self, settings: Any, rows: Any) -> Any:
        """Posterior of the rows, which are :class:`Rows` or a RowSource."""
        raise NotImplementedError

    def _run(self, settings: Any, posterior: Any, rows: Any) -> None:
        """Find draws of the posterior, or its mode, and set the fitted attributes."""
        raise NotImplementedError

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [escaped(name) for name in names]

    def _validate_rows(self, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        """Rows checked by scikit-learn, sparse ones in compressed form; and y, if given."""
        formats, y_numeric = "csr" if self._takes_sparse else False, checks.pop("y_numeric", False)
        checks = {"dtype": FLOATS, "accept_sparse": formats, **checks}
        check_real(X)
        check_collected(y, "y")
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; give "
                "the observation of each row of X."
            )
        with np.errstate(all="ignore"), naming("X"):  # infinities are added
            rows = validate_data(self, X, **checks)
        rows = as_rows(rows) if issparse(rows) else rows
        if isinstance(y, str) and y == "no_validation":
            return rows
        if y_numeric:
            check_numeric(y)
        with np.errstate(all="ignore"), naming("y"):
            check_no_gap(y)
            y = _check_y(y, y_numeric=y_numeric, estimator=self)
        with naming("X", "y"):
            check_consistent_length(rows, y)
        return rows, y

    # ---- the fitted estimator -----------------------------------------------------------------

    def _check_rows(self, X: ArrayLike) -> Array:
        """Rows to predict."""
        check_is_fitted(self)
        warn_of_random_walks(self)
        rows: Array = self._validate_rows(X, reset=False, ensure_all_finite=False)
        self._check_values(rows, fitting=False)
        return rows

    def _rows_of(self, X: Any, by_row: dict[str, Any]) -> tuple[Array, Array | None]:
        """Checked rows to predict, and the offset of their linear predictors if they have one."""
        check_names(self, by_row)
        return self._check_rows(X), self._offset(X, by_row)

    def _row_values(self, X: Any, by_row: dict[str, Any]) -> dict[str, Array]:
        """Numbers ``(n,)`` of the arguments by row that are given."""
        check_names(self, by_row)
        given = {name: value for name, value in by_row.items() if value is not None}
        return {name: ROW_ARGUMENTS[name].check(value, X) for name, value in given.items()}

    def _offset(self, X: Any, by_row: dict[str, Any]) -> Array | None:
        """The argument by row ``(n,)`` as a predictive distribution takes it; None without one."""
        for name, values in self._row_values(X, by_row).items():
            return ROW_ARGUMENTS[name].offset(values)
        return None

    def _observed(self, X: Any, y: Any, by_row: dict[str, Any]) -> tuple[Array, ...]:
        """Checked rows, observations (numbers or codes) and, if there is one, the offset."""
        check_names(self, by_row)
        check_is_fitted(self)
        check_by_row_given(self, by_row)
        numeric = self._y_checks.get("y_numeric", False)
        X, y = self._validate_rows(X, y, reset=False, y_numeric=numeric)
        self._check_values(X, fitting=False)
        offset = self._offset(X, by_row)
        if self._likelihood().totals:
            totals = totals_of(X, y, 1 if offset is None else offset)
            return X, totals["successes"], totals["trials"]
        observed = self._as_numbers(y, fitting=False).astype(float)
        return (X, observed) if offset is None else (X, observed, offset)

    def _predictor(self, selection: Any = slice(None)) -> Predictor:
        """Map from rows to their predictors under the chosen draws."""
        raise NotImplementedError

    def _predictive(self, selection: Any = slice(None)) -> Any:
        """Posterior predictive distribution from the chosen draws."""
        predictor, likelihood = self._predictor(selection), self._likelihood()
        return self._mixture(predictor, likelihood, self._own_draws(), selection)

    def _mixture(
        self, predictor: Predictor, likelihood: Likelihood, own: Array | None, selection: Any
    ) -> Predictive:
        """Predictive distribution from the chosen draws, given own coordinates of all draws."""
        weights = self.posterior_.flat_weights
        own, weights = (None if v is None else v[selection] for v in (own, weights))
        return Predictive(predictor, likelihood, own, weights)

    def _point_predictive(self) -> Predictive:
        """Predictive distribution that means and probabilities are taken from."""
        return self._predictive()

    def _predictions(
        self, X: Any, by_row: dict[str, Any], selection: Any = slice(None)
    ) -> Predictions:
        """Predictive distributions of the rows X from the chosen draws."""
        models = vars(self).get("estimators_")
        if models is not None:
            return of_outputs(model._predictions(X, by_row, selection) for model in models)
        rows, offset = self._rows_of(X, by_row)
        laws = partial(self._predictive, selection), self._point_predictive
        return Predictions(*laws, rows, offset, classes=getattr(self, "classes_", None))

    def _predictions_of(self, X: Any, y: Any, by_row: dict[str, Any]) -> Predictions:
        """Predictive distributions of the rows X, with their observations y."""
        models = vars(self).get("estimators_")
        if models is not None:
            pairs = zip(models, split_columns(y, len(models)), strict=True)
            return of_outputs(model._predictions_of(X, own, by_row) for model, own in pairs)
        rows, observed, *more = self._observed(X, y, by_row)
        offset = more[0] if more else None
        laws = self._predictive, self._point_predictive
        return Predictions(*laws, rows, offset, observed, getattr(self, "classes_", None))

    def _choose_draws(self, n_samples: int | None, random_state: Any) -> Array:
        """Indices of ``n_samples`` draws among those of all chains; None: all."""
        check_is_fitted(self)
        if n_samples is not None:
            check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
        return self.posterior_.choose(n_samples, random_state)

    def log_likelihood(self, X: ArrayLike, y: ArrayLike, **by_row: Any) -> Array:
        """Log density of every observation under every draw; of a label its log probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            For a classifier labels among ``classes_``, or successes.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples, n_draws) or (n_samples, n_outputs, n_draws)
            Under the draws of all chains, in the order of ``posterior_.flat``. Under a decaying
            schedule the draws have weights, ``posterior_.flat_weights``.
        """
        return self._predictions_of(X, y, by_row).log_likelihood()

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0, **by_row: Any
    ) -> Array:
        """Draws of y from the posterior predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=0
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples) or (n_rows, n_outputs, n_samples)
            Numbers; of a classifier labels, or successes.
        """
        check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
        rng = as_random_state(random_state)
        selection = self._choose_draws(n_samples, rng)
        return self._predictions(X, by_row, selection).sample(rng)

    def summary(self, coverage: float = 0.9, exponentiate: bool = False) -> pd.DataFrame:
        """Summary table of the posterior, one row a parameter.

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
            mean and sd, and the interval's ends. Its ``attrs`` have the value of every setting
            by its name, and under ``"plan"`` a table of the values and their reasons.
        """
        check_is_fitted(self)
        draws = self.posterior_
        if not check_flag(exponentiate, "exponentiate"):
            return draws.summary(coverage)
        unit = self._exponential
        if not unit or self._n_predictors > 1:
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

    def to_arviz(
        self,
        X: Any = None,
        y: Any = None,
        random_state: Any = 0,
        *,
        groups: Any = None,
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
        groups : sequence of str or None, default=None
            Groups to make, of those below. None: all of them. ``posterior_predictive`` and
            ``log_likelihood`` hold a number for every row and draw each, 8 bytes: for 20,000 rows
            and 4,000 draws 0.64 GB.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            The former with ArviZ before 1.0. Its groups are ``posterior``, with coordinates
            ``feature`` and ``class``, and ``sample_stats`` where the posterior was sampled (see
            :meth:`~skbayes_sgld.SamplingResult.to_arviz`). X and y add ``posterior_predictive``,
            an observation of each row under every draw, ``log_likelihood``, ``observed_data`` and
            ``constant_data`` with exposures or trials; X alone adds ``predictions`` and
            ``predictions_constant_data``.
            Observations are called ``y``, and rows are counted by ``obs_id``; a label is its
            position in ``classes_``.

        Raises
        ------
        ValueError
            Where y is given without X, or X and y cannot be used; for a group that is not known.
        MemoryError
            Before the groups are made, where they do not fit into the memory that is available.
        """
        return arviz.to_arviz(self, X, y, random_state, groups, by_row)

    def __getstate__(self) -> dict[str, Any]:
        """State with the version, since another one may read the attributes otherwise."""
        state = {**super().__getstate__(), _STAMP: version("skbayes-sgld")}
        folder = gathering_folder()  # removed at the end of the context
        return state if folder is None else {**state, _FOLDER: folder}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Warn where another version of the package made the pickle."""
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


@np.errstate(over="ignore")  # what floats do not hold is infinite
def exponentiated(draws: PosteriorDraws, coverage: float) -> pd.DataFrame:
    """Summary table of exp(draws), without an overflow where only some of it is out of range."""
    unit = draws.values.max(axis=(0, 1))
    table = replace(draws, values=np.exp(draws.values - unit)).summary(coverage)
    for name in ("mean", "sd", "mcse_mean", "mcse_sd"):
        with np.errstate(divide="ignore"):  # of an sd of 0
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
