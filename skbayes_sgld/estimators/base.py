"""What a fit runs: parameters, checks of the data, and the posterior of a linear model, sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from skbayes_sgld._components import (
    LARGEST,
    SMALLEST,
    ByColumnRegistry,
    Registry,
    check_flag,
    check_number,
    parameters,
    resolve,
    with_instances,
)
from skbayes_sgld._doc_link import doc_link_template
from skbayes_sgld._linalg import column_ranges, one_blas_thread, sums_of_squares
from skbayes_sgld._sparse import as_rows
from skbayes_sgld.blocks import as_source
from skbayes_sgld.blocks.source import RowSource, without_exposure
from skbayes_sgld.estimators import callbacks
from skbayes_sgld.estimators.fitted import FittedEstimator, FittedLinear, FittedSample
from skbayes_sgld.estimators.validation import (
    FLOATS,
    check_finite,
    check_ranges,
    check_real,
    check_weight,
    raise_naming_rows,
    warn_of_light_rows,
)
from skbayes_sgld.inference.run import plan_and_run
from skbayes_sgld.inference.sample import run_in_parts
from skbayes_sgld.inference.settings import REGISTRIES, Settings
from skbayes_sgld.posterior import (
    NOISE_MODELS,
    NOISE_PRIORS,
    CoefficientPrior,
    Flat,
    GLMPosterior,
    NoisePrior,
)
from skbayes_sgld.posterior.base import by_name
from skbayes_sgld.posterior.hierarchical import with_hyperparameters
from skbayes_sgld.posterior.priors import HIERARCHICAL_PRIORS, PRIORS, Prior
from skbayes_sgld.sampling import CLIPS, PRECONDITIONERS, SCHEDULES
from skbayes_sgld.sampling.workers import Workers

Array = NDArray[Any]

_WIDE = 500  # columns; below, passes over rows share the cores, and BLAS would wait for itself
_KEPT = 2**22  # numbers in X, up to which a fit keeps a copy: 32 megabytes
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


def limit_blas(X: Array) -> AbstractContextManager[None]:
    """Context of a fit of these rows: with one thread of BLAS, unless X is wide."""
    return one_blas_thread() if X.shape[1] < _WIDE else nullcontext()


def check_columns(X: Array, estimator: Any, smallest: float = SMALLEST) -> None:
    """Raise where X is not finite, or a column's values are of a size that cannot be squared."""
    squares = sums_of_squares(X)  # in range, they show the same of every value, in one cheap pass
    low, high = 1e4 * smallest**2, 1e-4 * LARGEST**2
    if np.all((squares > low) & (squares < high)):
        return
    check_finite(X, estimator)
    check_ranges(*column_ranges(X), estimator, smallest)


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


class BayesianEstimator(callbacks.CallbackSupportMixin, FittedEstimator):
    """Base of all estimators, linear models and networks."""

    _registries: ClassVar[dict[str, Registry]] = {
        "prior": PRIORS,
        "noise_prior": NOISE_PRIORS,
        "noise_model": NOISE_MODELS,
    }
    _automatic: ClassVar[set[str]] = set()  # parameters of these that may be "auto"
    _settings_type: ClassVar[type[Settings] | None] = None
    _doc_link_module = "skbayes_sgld"  # scikit-learn's names, for the link of the HTML
    _doc_link_template = property(lambda self: doc_link_template())
    _takes_sparse: ClassVar[bool] = False
    _check_values_of: ClassVar[Callable[..., None]] = staticmethod(check_finite)
    _check_new_rows = staticmethod(check_finite)
    _stream: Any = None  # what earlier calls of partial_fit told; None after fit
    prior: Any
    fit_intercept: bool
    forgetting: float

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: whether rows may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

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
        return super().set_params(**with_instances(self, params, self._registries))

    def _resolve(self, name: str) -> Any:
        """Component that a parameter stands for; None stays None."""
        value = getattr(self, name)
        if value is None and name in ("clip", "preconditioner"):
            return None
        also = ("auto",) if name in self._automatic else ()
        return resolve(value, self._registries[name], name, also)

    def _resolve_unscaled_prior(self, name: str = "prior") -> CoefficientPrior:
        """Prior of a model without noise to infer."""
        prior = self._resolve(name)
        if prior.scaled_by_noise:
            unscaled = sorted(repr(k) for k, v in PRIORS.items() if not v.scaled_by_noise)
            raise ValueError(
                f"{name}={getattr(self, name)!r} is scaled by the noise, and this model has "
                f"none; choose one of {', '.join(unscaled)}."
            )
        return prior.conditional() if prior.hierarchical else prior

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

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _validate_rows(self, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        """Rows as scikit-learn checks them, of sparse ones in compressed form; y too if given."""
        formats = "csr" if self._takes_sparse else False
        with_target = not (isinstance(y, str) and y == "no_validation")
        checks = {"dtype": FLOATS, "accept_sparse": formats, **checks}
        check_real(X)
        try:
            with np.errstate(all="ignore"):  # infinities are added
                checked = validate_data(self, X, y, **checks)
        except (TypeError, ValueError) as error:
            raise_naming_rows(error, self, X, with_target, checks)
        rows, *target = checked if with_target else (checked,)
        rows = as_rows(rows) if issparse(rows) else rows
        return (rows, *target) if target else rows


@parameters
class LinearEstimator(FittedLinear, BayesianEstimator):
    """Base of the estimators whose rows see the parameters through linear predictors."""

    prior: Any = "normal"
    fit_intercept: bool = True
    intercept_prior: Any = "flat"

    _registries: ClassVar[dict[str, Registry]] = {
        **BayesianEstimator._registries,
        "intercept_prior": PRIORS,
        "schedule": SCHEDULES,
        "preconditioner": PRECONDITIONERS,
        "clip": CLIPS,
    }
    _automatic = {"gradient", "preconditioner"}
    _takes_sparse: ClassVar[bool] = True
    _check_values_of = staticmethod(check_columns)
    _check_new_rows = staticmethod(partial(check_columns, smallest=0.0))

    def _make_posterior(
        self, X: Array, y: Array, weight: Array | None, center: bool, **known: Any
    ) -> GLMPosterior:
        raise NotImplementedError

    def _set_layout(self, posterior: GLMPosterior) -> None:
        """Remember how a draw splits into coefficients, intercepts and noise."""
        self.prior_: CoefficientPrior = posterior.prior
        self.noise_prior_: NoisePrior | None = posterior.noise_prior
        of_intercept = posterior.linear_prior.intercept or Flat()
        self.intercept_prior_: CoefficientPrior | None = (
            of_intercept if self.fit_intercept else None
        )
        self._names = list(posterior.constrained_names)
        self._n_predictors = posterior.n_predictors
        self._has_intercept = bool(self.fit_intercept)  # which set_params may change after the fit

    # ---- how a draw splits ----------------------------------------------------------------------

    def _split(self, values: Array) -> dict[str, Array]:
        """Draws by part: ``coef (S, K, d)``, ``intercept (S, K)``, and all others by their names.

        Parameters that share a name and differ in their index are ``(S, m)``.
        """
        d, K = self.n_features_in_, self._n_predictors
        width = d + self._has_intercept
        linear = values[:, : K * width].reshape(len(values), K, width)
        intercept = linear[..., -1] if width > d else np.zeros(linear.shape[:2])
        parts = {"coef": linear[..., :d], "intercept": intercept}
        others = self._names[K * width :]
        for name, columns in by_name(others).items() if others else ():
            several = others[columns[0]] != name
            own = values[:, [K * width + j for j in columns]]
            parts[name] = own if several else own[:, 0]
        return parts

    def _set_point(self, values: Array) -> None:
        """Set ``coef_``, ``intercept_`` (and the noise's) from one vector of values."""
        parts = self._split(values[None])
        self.coef_, self.intercept_ = parts["coef"][0].copy(), parts["intercept"][0].copy()
        self._set_others({name: part[0] for name, part in parts.items()})

    def _set_others(self, parts: dict[str, Any]) -> None:
        """Set the point estimates of further parameters, where the model has some."""


@parameters
class SampledEstimator(FittedSample, LinearEstimator):
    """A linear model whose posterior is sampled: settings, posterior, plan, run, result."""

    sampler: Any = "auto"
    step_size: Any = "auto"
    schedule: Any = "constant"
    temperature: Any = 1.0
    batch_size: Any = "auto"
    gradient: Any = "auto"
    preconditioner: Any = "auto"
    parameterization: str = "auto"
    init: Any = "auto"
    clip: Any = None
    n_draws: int = 1000
    n_burnin: Any = "auto"
    thin: Any = "auto"
    n_chains: int = 4
    warm_start: bool = False
    forgetting: float = 1.0
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    checkpoint: Any = None
    resume_from: Any = None
    max_time: float | None = None
    target_ess: float | None = None

    _registries: ClassVar[dict[str, Registry]] = {
        **LinearEstimator._registries,
        **REGISTRIES,
        "prior": ByColumnRegistry(Prior, **PRIORS, **HIERARCHICAL_PRIORS),
    }
    _automatic = {"sampler", "gradient", "preconditioner"}
    _settings_type: ClassVar[type[Settings]] = Settings

    def _infer(self, X: Array, y: Array, weight: Array | None) -> None:
        if self._stream is not None:
            self._infer_batch(X, y, weight)
            return
        settings = Settings.check(self)
        posterior = self._own_posterior(settings, X, y, weight)
        posterior.check_proper()
        posterior.check_weights()
        self._sample(settings, posterior, self._resolve("prior"))

    def _infer_batch(self, X: Array, y: Array, weight: Array | None) -> None:
        """Find the posterior of all batches, of which these are the rows of the last."""
        raise NotImplementedError

    def _own_posterior(
        self, settings: Settings, X: Array, y: Array, weight: Array | None
    ) -> GLMPosterior:
        """Posterior of a copy of the rows, unless they are many."""
        # what the diagnosis measures on the data must not change with the caller's arrays
        if X.size <= _KEPT:
            X, y, weight = X.copy(), y.copy(), None if weight is None else weight.copy()
        return self._make_posterior(X, y, weight, center=settings.uses_curvature)

    def _sample(
        self,
        settings: Settings,
        model: GLMPosterior,
        prior: Prior,
        n_batches: int = 0,
        workers: Workers | None = None,
    ) -> None:
        """Sample the posterior of a model, of rows before which there were ``n_batches``."""
        posterior: Any = with_hyperparameters(model, prior) if prior.hierarchical else model
        positions, n_fits = self._last_positions(settings, posterior.constrained_names)
        # chains that continue must not repeat their old noise
        seed = settings.draw_seed() + n_fits + n_batches
        told = self.verbose or has_callbacks(self)
        watch = partial(callbacks.show_progress, self) if told else None
        if settings.in_parts:
            data = {"X": model.X, "y": model.y, "sample_weight": model.weight}
            inputs = {**self.get_params(deep=False), **data, "n_batches": n_batches}
            result = run_in_parts(posterior, settings, inputs, seed, positions, watch, workers)
        else:
            result = plan_and_run(posterior, settings, seed, positions, watch, None, workers)
        result = result if model.X.size <= _KEPT else result.without_data()
        self.result_, self.posterior_, self._n_fits = result, result.draws, n_fits + 1
        for name in _RESOLVED:
            setattr(self, f"{name}_", result.draws.choices[name].value)
        self.clipped_fraction_ = result.clipped
        self._set_layout(posterior)
        self._set_point(result.mean)

    def _last_positions(self, settings: Settings, names: list[str]) -> tuple[Array | None, int]:
        """Last positions of the chains that this fit continues, if any, and the fits before it."""
        last = vars(self).get("result_")
        if not settings.warm_start or last is None or last.names != names:
            return None, 0
        if len(last.positions) != settings.n_chains:
            return None, 0
        return last.positions, self._n_fits
