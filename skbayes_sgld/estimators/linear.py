"""Linear models: the posterior of rows in arrays or in blocks, and how a draw splits into parts."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._checks import SMALLEST, check_flag, check_size
from skbayes_sgld._components import Registry, resolve
from skbayes_sgld._linalg import MAX_DENSE
from skbayes_sgld._random import as_random_state
from skbayes_sgld.blocks.moments import Moments
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.estimators.base import Array, BayesianEstimator, Rows
from skbayes_sgld.estimators.column_priors import ColumnPriors, resolve_columns
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.prior_predictive import draw_prior_predictive
from skbayes_sgld.inference.passes import (
    AVERAGES,
    NUMBERS,
    TOTALS,
    Encoding,
    find_posterior,
    first_pass,
    sum_up,
)
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.posterior import GLMPosterior, NoiseModel
from skbayes_sgld.posterior.glm import own_units
from skbayes_sgld.posterior.propriety import check_proper, check_weights
from skbayes_sgld.prediction.predictions import split_columns, stacked
from skbayes_sgld.prediction.predictors import LinearPredictor
from skbayes_sgld.priors import CoefficientPrior, NoisePrior
from skbayes_sgld.rows.checks import (
    check_columns,
    check_ranges,
    warn_of_few_rows,
    warn_of_fraction,
    warn_of_light_rows,
)
from skbayes_sgld.sampling import CLIPS, PRECONDITIONERS, SCHEDULES

# priors of the coefficients, the intercept, and the likelihood's own parameters
Priors = tuple[Any, CoefficientPrior, tuple[NoisePrior, ...]]


@parameters
class LinearEstimator(BayesianEstimator):
    """Base of the estimators whose rows see the parameters through linear predictors.

    A subclass for a kind of target defines the likelihood and the priors; a subclass for a kind of
    inference defines ``_settings``, which checks its parameters, and ``_run``.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    intercept_prior : str or CoefficientPrior, default="flat"
        Prior of the intercept: any that ``prior`` takes, of one number, such as
        ``Normal(scale=10.0)``. It acts on the intercept at X = 0.

    Attributes
    ----------
    prior_ : CoefficientPrior
        The prior, with its scale as a number or one for each column.
    intercept_prior_, noise_prior_ : CoefficientPrior, NoisePrior
        Priors of intercept and noise, with numbers for scales; None without one to infer.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X had names.
    """

    fit_intercept: bool = True
    intercept_prior: Any = "flat"

    noise_model = "constant"  # a parameter of the normal model alone
    _takes_rates: ClassVar[bool] = False  # whether fractions that have weights are rates

    _registries: ClassVar[dict[str, Registry]] = {
        **BayesianEstimator._registries,
        "schedule": SCHEDULES,
        "preconditioner": PRECONDITIONERS,
        "clip": CLIPS,
    }
    _takes_sparse: ClassVar[bool] = True

    def _settings(self) -> Any:
        """Raise where a parameter is out of range; subclasses return the settings.

        These have ``uses_curvature``. Where it is true, the posterior is bound to centered X.
        """
        super()._settings()
        check_flag(self.fit_intercept, "fit_intercept")

    def _check_values(self, X: Array, fitting: bool = True) -> None:
        check_columns(X, self, SMALLEST if fitting else 0.0)

    # ---- the model ----------------------------------------------------------------------------

    def _choose_prior(
        self, settings: Any, rows: Rows, likelihood: Likelihood, obstacle: str = ""
    ) -> None:
        """Choose an automatic prior for these rows; an ``obstacle`` excludes a learned scale."""

    def _noise(self) -> NoiseModel:
        """Model of how the noise depends on the row."""
        return self._resolve("noise_model")

    def _priors(
        self,
        likelihood: Likelihood,
        y: Array,
        weight: Array | None,
        offset: Array | None = None,
    ) -> Priors:
        """Priors given the target; automatic scales are left to the posterior."""
        size = np.exp(-offset) if offset is not None and likelihood.offset_at else None
        for own in likelihood.own:
            if not hasattr(self, own.argument):
                raise TypeError(
                    f"{type(self).__name__} has no parameter {own.argument}, the prior of its "
                    f"likelihood's own parameter {own.name}; declare the field "
                    f"`{own.argument}: Any = {own.default!r}` in the class, below @parameters."
                )
        prior = self._resolve_conditional("prior", likelihood)
        intercept = self._resolve_conditional("intercept_prior", likelihood)
        pairs = zip(likelihood.own, own_units(likelihood, y, weight, size), strict=True)
        own_priors = tuple(self._resolve(own.argument).for_data(unit) for own, unit in pairs)
        return prior, intercept, own_priors

    def _resolve(self, name: str, also: tuple[str, ...] = ()) -> Any:
        """Component that a parameter stands for; of priors of columns, one for each key."""
        if name == "prior" and isinstance(self.prior, Mapping):
            registry = self._registry(name)
            assert registry is not None
            return resolve_columns(self.prior, registry, self._prior_of_others())
        return super()._resolve(name, also)

    def _prior_of_others(self) -> Any:
        """Prior of the columns that ``prior`` does not name: the default of the class."""
        registry = self._registry("prior")
        assert registry is not None
        return resolve(type(self).prior, registry, "prior")

    def _fitted_prior(self) -> Any:
        """Prior of the columns of the rows that are being fitted."""
        prior = self._resolve("prior")
        if not isinstance(prior, ColumnPriors):
            return prior
        return prior.bound(self.n_features_in_, getattr(self, "feature_names_in_", None))

    def _resolve_conditional(self, name: str, likelihood: Likelihood) -> CoefficientPrior:
        if name != "prior" or not isinstance(self.prior, Mapping):
            return super()._resolve_conditional(name, likelihood)
        priors = self._resolve("prior")
        for key, each in priors.given.items():
            self._check_noise_scales(each, f"prior[{key!r}]", self.prior[key], likelihood)
        prior = self._fitted_prior()
        return prior.conditional() if prior.hierarchical else prior

    def _class_names(self) -> list[str] | None:
        """Names of the classes that have a linear predictor each; None without classes."""
        return None

    def _model(self, settings: Any, rows: Rows | RowSource) -> GLMPosterior:
        """Posterior of the rows, checked to be proper."""
        if isinstance(rows, RowSource):
            return self._model_of_source(settings, rows)
        posterior = self._bind(rows, center=settings.uses_curvature)
        check_proper(posterior)
        check_weights(posterior)
        return posterior

    def _bind(self, rows: Rows, *, center: bool, priors: Priors | None = None) -> GLMPosterior:
        """Posterior of these rows; ``priors`` are those of earlier rows.

        ``center`` puts the intercept in theta at the mean of X, which is easier to sample.
        """
        X, y, weight, columns, offset = rows
        likelihood = self._likelihood()
        priors = self._priors(likelihood, y, weight, offset) if priors is None else priors
        prior, intercept, own_priors = priors
        if likelihood.infers_noise and prior.scaled_by_noise and prior.automatic:
            warn_of_few_rows(weight, *X.shape)
        options = {"class_names": self._class_names(), "columns": columns, "offset": offset}
        # models without noise have the constant one, which binds a plain GLMPosterior
        return self._noise().bind(
            X,
            y,
            likelihood,
            prior,
            own_priors,
            intercept_prior=intercept,
            sample_weight=weight,
            fit_intercept=self.fit_intercept,
            center=center,
            feature_names=self._feature_names(),
            **{name: value for name, value in options.items() if value is not None},
        )

    # ---- rows in blocks -----------------------------------------------------------------------

    def _model_of_source(self, settings: Any, source: RowSource) -> GLMPosterior:
        """Posterior of rows in blocks."""
        if self._stream is not None:
            raise TypeError(
                f"partial_fit takes the rows of one block, and X is {type(source).__name__}; call "
                "it once a block, or call fit."
            )
        (name,) = self._row_arguments or ("",)
        self._by_row = name * source.has_exposure
        self._check_sums(source.n_features, "a pass over blocks")
        self.n_features_in_ = source.n_features
        self.__dict__.pop("feature_names_in_", None)
        if source.feature_names is not None:
            self.feature_names_in_ = np.array(source.feature_names, dtype=object)
        likelihood = None  # unknown until the labels are read
        if isinstance(self, RegressorMixin) or self._by_row:
            likelihood = self._likelihood()
            if likelihood.quadratic:
                return self._model_of_sums(settings, source, likelihood)
        return self._model_of_sample(settings, source, likelihood)

    def _check_sums(self, n_columns: int, taker: str) -> None:
        """Raise where the model is not one whose rows can be added up part by part."""
        if n_columns >= MAX_DENSE:
            raise ValueError(
                f"X has {n_columns} columns; {taker} adds up a matrix of parameters by parameters, "
                f"and takes fewer than {MAX_DENSE}. Use fewer columns."
            )
        if not self._noise().constant:
            raise ValueError(
                f"noise_model={self.noise_model!r} has no sums over rows that {taker} could add "
                "up; set noise_model='constant', or give fit arrays."
            )

    def _check_known_scale(self, taker: str) -> None:
        """Raise where the prior learns its scale."""
        if self._fitted_prior().hierarchical:
            raise ValueError(
                f"prior={self.prior!r} learns its scale from all rows; {taker} takes a prior of a "
                "known scale, such as prior='normal'."
            )

    def _model_of_sums(
        self, settings: Any, source: RowSource, likelihood: Likelihood
    ) -> GLMPosterior:
        """Posterior by sums of products, which one pass adds up: all that a normal model needs."""
        sums, extent, moments = sum_up(source)
        check_ranges(extent.low, extent.high, self)
        X, y, weight, size = sums.as_rows()
        likelihood.check_target(y)
        mean, sd = sums.mean[:-1], np.sqrt(np.diagonal(sums.products)[:-1] / sums.total)
        if moments is not None:  # of averages, whose sizes are in the sums
            mean, sd = moments.together(np.ones(1))
        offset = None if size is None else -np.log(size)
        rows = Rows(X, y, weight, (mean, extent.spread(sd)), offset)
        self._choose_prior(settings, rows, likelihood)
        posterior = self._bind(rows, center=settings.uses_curvature)
        check_proper(posterior)
        return posterior

    def _model_of_sample(
        self, settings: Any, source: RowSource, likelihood: Likelihood | None
    ) -> GLMPosterior:
        """Posterior by a sample of the rows and an expansion of all; of all rows if they are few.

        ``likelihood`` is None where y is a label.
        """
        seed = int(self.random_state) if isinstance(self.random_state, Integral) else 0
        moments, extent, sample, fraction = first_pass(source, likelihood, seed, self._takes_rates)
        check_ranges(extent.low, extent.high, self)
        warn_of_fraction(fraction, source.has_exposure)
        if likelihood is None:
            encoding = self._encoding(moments)
        else:
            encoding = TOTALS if likelihood.totals else NUMBERS
            encoding = AVERAGES if likelihood.offset_at else encoding
        X, y, weight, offset = encoding.sampled(sample, moments)
        if weight is not None:
            total, n_rows = float(moments.total @ encoding.factors), int(moments.n_rows.sum())
            warn_of_light_rows(total, n_rows, source.n_features)
        mean, sd = moments.together(encoding.factors)
        rows = Rows(X, y, weight, (mean, extent.spread(sd)), offset)
        if sample.complete:
            return self._model(settings, rows._replace(columns=None))
        obstacle = "a scale is not learned from rows in blocks"
        self._choose_prior(settings, rows, self._likelihood(), obstacle)
        self._check_known_scale("a sample of the rows of blocks")
        model = self._bind(rows, center=settings.uses_curvature)
        check_weights(model)
        return find_posterior(model, source, encoding)

    def _encoding(self, moments: Moments) -> Encoding:
        """Map from the labels in the blocks to their codes."""
        raise NotImplementedError

    # ---- draws, split into parts --------------------------------------------------------------

    def _set_layout(self, posterior: GLMPosterior) -> None:
        """Remember how a draw splits into coefficients, intercepts and noise."""
        self.prior_: CoefficientPrior = posterior.prior
        self.noise_prior_: NoisePrior | None = None
        own = posterior.likelihood.own
        for parameter, prior in zip(own, posterior.own_priors, strict=True):
            setattr(self, f"{parameter.argument}_", prior)
        intercept_prior = posterior.linear_prior.intercept if self.fit_intercept else None
        self.intercept_prior_: CoefficientPrior | None = intercept_prior
        self._layout = posterior.parameters.layout(posterior.reported.names)
        self._noise_columns = posterior.noise_columns
        self._n_predictors = posterior.n_predictors

    def _split(self, values: Array) -> dict[str, Array]:
        """Draws by part: ``coef (S, K, d)``, ``intercept (S, K)``, and all others by their names.

        Parameters that share a name and differ in their index are ``(S, m)``.
        """
        return self._layout.split(values)

    def _draws(self) -> dict[str, Array]:
        """All draws by part."""
        check_is_fitted(self)
        return self._split(self.posterior_.flat)

    def _own_draws(self) -> Array | None:
        if not self._layout.own:
            return None
        parts = self._draws()
        values = np.column_stack([parts[name] for name in self._layout.own])
        return self._likelihood().unconstrain_own(values)

    def _predictor(self, selection: Any = slice(None)) -> LinearPredictor:
        parts = self._draws()
        return LinearPredictor(parts["coef"][selection], parts["intercept"][selection])

    def _set_point(self, values: Array) -> None:
        """Set ``coef_``, ``intercept_`` and the like from one vector of values."""
        parts = self._split(values[None])
        self.coef_, self.intercept_ = parts["coef"][0].copy(), parts["intercept"][0].copy()
        if isinstance(self, RegressorMixin):  # a regression has one predictor
            self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        for name in self._layout.own:
            own = parts[name][0]
            setattr(self, f"{name}_", own if np.ndim(own) else float(own))

    def sample_posterior(self, n_samples: int | None = None, random_state: Any = 0) -> Bunch:
        """Draws from the posterior, by parameter.

        Parameters
        ----------
        n_samples : int or None, default=None
            Number of draws, chosen at random among those of the fit. None: all of them.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the choice.

        Returns
        -------
        draws : Bunch
            ``coef (S, d)``, or ``(S, n_classes, d)`` for more than two classes, ``intercept
            (S,)`` or ``(S, n_classes)``, and what else was inferred, such as ``noise_variance
            (S,)``. Of several outputs each has these as second axis.
        """
        return self._draws_at(self._choose_draws(n_samples, random_state))

    def _draws_at(self, selection: Array) -> Bunch:
        """Chosen draws by parameter."""
        models = vars(self).get("estimators_")
        if models is not None:
            return stacked(model._draws_at(selection) for model in models)
        draws = Bunch(**{name: values[selection] for name, values in self._draws().items()})
        if self._n_predictors == 1:
            draws.coef, draws.intercept = draws.coef[:, 0], draws.intercept[:, 0]
        return draws

    # ---- before the fit -----------------------------------------------------------------------

    def sample_prior(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: Any = 0,
        y: Any = None,
        **by_row: Any,
    ) -> Array:
        """Draws of y from the prior predictive distribution: from the prior and the likelihood.

        They show what a prior implies for data. Each column has parameters of its own, the same for
        all rows. All priors must be proper. By default the intercept's is flat, and that of the
        noise of a linear model nearly so: set ``intercept_prior="normal"`` and
        ``noise_prior="half_normal"``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Before ``fit`` automatic scales are in the units of these columns; afterwards they are
            those of the fit.
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=0
        y : array-like of shape (n_rows,) or None, default=None
            Before ``fit``: the target whose units the automatic scales of a linear regression take,
            and whose classes a classifier takes; 0 and 1 without it. Counts and totals do not use
            it.
        **by_row : array-like of shape (n_samples,) or number
            Arguments by row, of the estimators that take some: see the notes of the class.

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples)

        Raises
        ------
        ValueError
            Naming ``prior``, ``intercept_prior`` or ``noise_prior``, where nothing can be drawn
            from it or it needs ``y``.

        Examples
        --------
        >>> import numpy as np
        >>> from skbayes_sgld import SGLDLogisticRegression
        >>> model = SGLDLogisticRegression(prior="normal", intercept_prior="normal")
        >>> model.sample_prior(np.zeros((3, 2)), n_samples=5).shape
        (3, 5)
        """
        models = vars(self).get("estimators_")
        if models is not None:
            rng, columns = as_random_state(random_state), split_columns(y, len(models))
            pairs = zip(models, columns, strict=True)
            return stacked(m.sample_prior(X, n_samples, rng, own, **by_row) for m, own in pairs)
        return draw_prior_predictive(self, X, n_samples, random_state, y, self._offset(X, by_row))

    def _target_before_fit(self, y: Any, n_rows: int) -> tuple[Array, Likelihood, Array | None]:
        """Numbers for y (NaN if not given), the likelihood, and labels its draws are positions of.

        Labels are None where y is a number.
        """
        likelihood = self._likelihood()
        if y is None or likelihood.totals:
            return np.full(n_rows, np.nan), likelihood, None
        y = likelihood.check_target(np.asarray(y))
        if likelihood.infers_noise:
            check_size(float(np.abs(y).max(initial=0.0)), "y")
        return y, likelihood, None
