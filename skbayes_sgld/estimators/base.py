"""The base of all estimators: parameters, validation of data, the posterior, its summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.metadata import version
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from skbayes_sgld._components import (
    Component,
    Registry,
    as_random_state,
    check_flag,
    check_number,
    resolve,
)
from skbayes_sgld._doc_link import doc_link_template
from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._sparse import as_rows
from skbayes_sgld._warnings import warn
from skbayes_sgld.blocks import as_source
from skbayes_sgld.blocks.source import RowSource, without_exposure
from skbayes_sgld.estimators import callbacks
from skbayes_sgld.estimators.arviz import ArvizExport
from skbayes_sgld.estimators.validation import (
    FLOATS,
    check_finite,
    check_real,
    check_weight,
    raise_naming_rows,
    warn_of_light_rows,
)
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.posterior import (
    NOISE_MODELS,
    NOISE_PRIORS,
    PRIORS,
    CoefficientPrior,
)
from skbayes_sgld.prediction.predictors import Predictor

Array = NDArray[Any]

_STAMP = "_skbayes_sgld_version"
_WIDE = 500  # columns; below, passes over rows share the cores, and BLAS would wait for itself


def limit_blas(X: Array) -> AbstractContextManager[None]:
    """Context of a fit of these rows: with one thread of BLAS, unless X is wide."""
    return one_blas_thread() if X.shape[1] < _WIDE else nullcontext()


def has_callbacks(estimator: Any) -> bool:
    """Whether scikit-learn's callbacks are told of a fit."""
    return bool(vars(estimator).get("_skl_callbacks"))


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
class BayesianEstimator(callbacks.CallbackSupportMixin, ArvizExport):
    """Base of all estimators, linear models and networks."""

    _registries: ClassVar[dict[str, Registry]] = {
        "prior": PRIORS,
        "noise_prior": NOISE_PRIORS,
        "noise_model": NOISE_MODELS,
    }
    _automatic: ClassVar[dict[str, tuple[str, ...]]] = {}
    _settings_type: ClassVar[type[Settings] | None] = None
    _doc_link_module = "skbayes_sgld"  # scikit-learn's names, for the link of the HTML
    _doc_link_template = property(lambda self: doc_link_template())
    _takes_sparse: ClassVar[bool] = False
    _check_values_of: ClassVar[Callable[..., None]] = staticmethod(check_finite)
    _check_new_rows: ClassVar[Callable[..., None]] = staticmethod(check_finite)
    _stream: Any = None  # what earlier calls of partial_fit told; None after fit
    prior: Any
    fit_intercept: Any
    forgetting: Any

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: whether rows may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let no setting of the caller's ``np.errstate`` reach the public methods."""
        super().__init_subclass__(**kwargs)
        numpy_defaults(cls)

    # ---- parameters ---------------------------------------------------------------------------

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of components too: ``set_params(prior__scale=0.5)``.

        A component given by name is replaced by an instance when a parameter of its own is set.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : object
        """
        for key in list(params):
            head, nested, _ = key.partition("__")
            if nested and head in self._registries:
                current = params.get(head, getattr(self, head, None))
                if not isinstance(current, (str, Component)) or current == "auto":
                    names = ", ".join(map(repr, self._registries[head]))
                    raise ValueError(
                        f"{key}={params[key]!r} has nothing to be set on: {head}={current!r}; give "
                        f"{head} one of {names} as well, or an instance."
                    )
                if isinstance(current, str):
                    params[head] = resolve(current, self._registries[head], head)
        return super().set_params(**params)

    def _resolve(self, name: str) -> Any:
        """Component that a parameter stands for; None stays None."""
        value = getattr(self, name)
        if value is None and name in ("clip", "preconditioner"):
            return None
        return resolve(value, self._registries[name], name, self._automatic.get(name, ()))

    def _resolve_unscaled_prior(self, name: str = "prior") -> CoefficientPrior:
        """Prior of a model without noise to infer."""
        prior = self._resolve(name)
        if prior.scaled_by_noise:
            unscaled = sorted(repr(k) for k, v in PRIORS.items() if not v.scaled_by_noise)
            raise ValueError(
                f"{name}={getattr(self, name)!r} is scaled by the noise, and this model has "
                f"none; choose one of {', '.join(unscaled)}."
            )
        return prior.conditional()

    def _check_params(self) -> None:
        """Raise where a parameter, used or not, is out of range."""
        names = self.get_params(deep=False)
        for name in {"prior", "noise_prior", "noise_model", "intercept_prior"} & names.keys():
            self._resolve(name)
        if "fit_intercept" in names:
            check_flag(self.fit_intercept, "fit_intercept")
        if "forgetting" in names:
            check_number(self.forgetting, "forgetting", low=0, high=1, closed="right")
        if self._settings_type is not None:
            self._settings_type.check(self)

    def _resolve_intercept_prior(self) -> CoefficientPrior:
        return self._resolve_unscaled_prior("intercept_prior")

    # ---- fit ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or RowBlocks
            Not copied, unless its type is not float64 or float32. Of rows in blocks y and
            sample_weight are in the blocks.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative. A row of weight w counts as w rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            For data or parameters that cannot be used; the estimator stays as it was.
        """
        return self._fit(X, y, sample_weight)

    @callbacks.with_callbacks
    def _fit(self, X: Any, y: Any, sample_weight: Any, stream: Any = None, **row_data: Any) -> Any:
        given = {name: value for name, value in row_data.items() if value is not None}
        if sample_weight is not None:
            given["sample_weight"] = sample_weight
        data = {"X": X, "y": y, "metadata": given or None}
        if has_callbacks(self):
            callbacks.begin_fit(self, **data)
        with unchanged_on_error(self):
            self._stream = stream
            self._check_params()
            source = None
            if type(X) is not np.ndarray:
                source = self._source(X, y, sample_weight, **row_data)
            if source is not None:
                self._infer_source(source)
            else:
                X, y, weight = self._validate(X, y, sample_weight, **row_data)
                with limit_blas(X):
                    self._infer(X, y, weight)
        if has_callbacks(self):
            callbacks.end_fit(self, **data)
        return self

    def _source(self, X: Any, y: Any, sample_weight: Any) -> RowSource | None:
        """Rows in blocks; None where they are an array like any other."""
        return without_exposure(as_source(X, y, sample_weight))

    def _infer_source(self, source: RowSource) -> None:
        """Find the posterior of rows in blocks."""
        what = f"{type(self).__name__} does not take {type(source).__name__}"
        raise TypeError(f"{what}, as linear models do; give arrays, such as a sample of the rows.")

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array | None]:
        checks = {"ensure_min_samples": 1} if self._goes_on else {}
        checks = {**self._y_checks, **checks, "reset": not self._goes_on}
        X, y = self._validate_rows(X, y, ensure_all_finite=False, **checks)
        self._check_values_of(X, self)
        weight = None if sample_weight is None else check_weight(sample_weight, X)
        y, weight = (self._label_batch if self._stream else self._label)(y, weight)
        if weight is not None:
            if not weight.all():
                X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
            if np.all(weight == 1.0):
                weight = None
            elif sample_weight is not None:
                warn_of_light_rows(float(weight.sum()), *X.shape)
        return self._encode(X, y, weight)

    _y_checks: ClassVar[dict[str, Any]] = {}

    @property
    def _goes_on(self) -> bool:
        """Whether the rows are further ones of a fit that goes on."""
        return self._stream is not None and self._stream.n_batches > 0

    def _label(self, y: Array, weight: Array | None) -> tuple[Array, Array | None]:
        """Target and weights of all rows, before those of weight zero are left out."""
        return y, weight

    def _label_batch(self, y: Array, weight: Array | None) -> tuple[Array, Array | None]:
        """Those of the rows of one call of ``partial_fit``."""
        return self._label(y, weight)

    def _encode(
        self, X: Array, y: Array, weight: Array | None
    ) -> tuple[Array, Array, Array | None]:
        """The data, with y as numbers."""
        raise NotImplementedError

    def _infer(self, X: Array, y: Array, weight: Array | None) -> None:
        """Find the posterior and set the fitted attributes."""
        raise NotImplementedError

    def _predictor(self, chosen: Any = slice(None)) -> Predictor:
        """Function from rows to their predictors under the chosen draws."""
        raise NotImplementedError

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _validate_rows(self, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        """Rows as scikit-learn checks them, of sparse ones in compressed form; y too if given."""
        formats = "csr" if self._takes_sparse else False
        with_target = not (isinstance(y, str) and y == "no_validation")
        checks = {"dtype": FLOATS, "accept_sparse": formats, **checks}
        if hasattr(X, "columns"):
            check_real(X)
        try:
            with np.errstate(all="ignore"):  # infinities are added
                checked = validate_data(self, X, y, **checks)
        except (TypeError, ValueError) as error:
            raise_naming_rows(error, self, X, with_target, checks)
        rows, *target = checked if with_target else (checked,)
        rows = as_rows(rows) if issparse(rows) else rows
        return (rows, *target) if target else rows

    def _check_rows(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        rows: Array = self._validate_rows(X, reset=False, ensure_all_finite=False)
        self._check_new_rows(rows, self)
        return rows

    # ---- the posterior ------------------------------------------------------------------------

    def summary(self, coverage: float = 0.9) -> pd.DataFrame:
        """Summary table of the posterior, one row a parameter.

        Parameters
        ----------
        coverage : float, default=0.9
            Probability of the equal-tailed credible interval, in (0, 1).

        Returns
        -------
        table : pandas.DataFrame
            Mean, sd, the interval's ends, bulk and tail effective sample size, R-hat and the
            Monte Carlo standard error of the mean. Its ``attrs`` have the value of every setting
            by its name, and under ``"plan"`` a table of the values and their reasons.
        """
        check_is_fitted(self)
        return self.posterior_.summary(coverage)

    def _choose_draws(self, n_samples: int | None, random_state: Any) -> Array:
        """Indices of ``n_samples`` draws among those of all chains; None: all."""
        check_is_fitted(self)
        if n_samples is not None:
            check_number(n_samples, "n_samples", low=1, closed="left", integer=True)
        if random_state is None:  # the estimator's own: two calls agree
            own = self.random_state
            random_state = own if isinstance(own, Integral) else 0
        return self.posterior_.choose(n_samples, as_random_state(random_state))

    def _weights_of(self, chosen: Any) -> Array | None:
        """Weights of the chosen draws; None where all count alike."""
        weights = self.posterior_.flat_weights
        return None if weights is None else weights[chosen]

    # ---- pickles ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """State with the version, since another one may read the attributes otherwise."""
        return {**super().__getstate__(), _STAMP: version("skbayes-sgld")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Warn where another version of the package made the pickle."""
        state = dict(state)
        theirs, ours = state.pop(_STAMP, "unknown"), version("skbayes-sgld")
        if theirs != ours:
            warn(
                f"This {type(self).__name__} was pickled by skbayes-sgld {theirs} and is read by "
                f"{ours}: attributes may be missing or mean something else. Fit it again, or "
                "install the version that made it.",
                UserWarning,
            )
        super().__setstate__(state)
