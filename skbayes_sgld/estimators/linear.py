"""Linear models: their priors as a model of rows, and how a draw splits into parts."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._checks import SMALLEST, check_flag
from skbayes_sgld._components import Registry
from skbayes_sgld.estimators.base import Array, BayesianEstimator
from skbayes_sgld.estimators.fitted import FittedLinear, of_rows
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.prior_predictive import draw_prior_predictive
from skbayes_sgld.estimators.priors import GivenPrior, check_noise_scales, read_prior
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.posterior import NoiseModel
from skbayes_sgld.prediction.predictors import LinearPredictor, Predictor
from skbayes_sgld.rows.checks import check_columns
from skbayes_sgld.rows.model import LinearModel
from skbayes_sgld.rows.reading import FitRows
from skbayes_sgld.rows.targets import Target
from skbayes_sgld.sampling import CLIPS, PRECONDITIONERS, SCHEDULES


@parameters
class LinearEstimator(BayesianEstimator):
    """Base of the estimators whose rows see the parameters through linear predictors.

    A subclass for a kind of target defines ``_target``; a subclass for a kind of inference defines
    ``_settings``, which checks its parameters, and ``_infer``.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    intercept_prior : str or CoefficientPrior, default="flat"
        Prior of the intercept: any that ``prior`` takes for one number, such as
        ``Normal(scale=10.0)``. It acts on the intercept at X = 0.

    Attributes
    ----------
    prior_ : CoefficientPrior
        The prior, whose scale is one number or one for each column.
    intercept_prior_, noise_prior_ : CoefficientPrior, NoisePrior
        Priors of intercept and noise, with numbers as scales; None if there is nothing to infer.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X had names of columns.
    """

    fit_intercept: bool = True
    intercept_prior: Any = "flat"

    _registries: ClassVar[dict[str, Registry]] = {
        **BayesianEstimator._registries,
        "schedule": SCHEDULES,
        "preconditioner": PRECONDITIONERS,
        "clip": CLIPS,
    }
    _takes_sparse: ClassVar[bool] = True
    _takes_blocks: ClassVar[bool] = True
    # in sds, that spares a further pass over blocks: a third of that of a mean of 4,000 draws
    _error_of_mode: ClassVar[float] = 0.005

    def _settings(self) -> Any:
        """Raise if a parameter is out of range; subclasses return the settings.

        The settings have ``uses_curvature``. If it is true, the posterior is bound to centered X.
        """
        if not hasattr(self, "prior"):
            raise TypeError(
                f"{type(self).__name__} is a model without an inference; derive it from one too, "
                "such as SampledEstimator of skbayes_sgld.estimators.sampled, after the model."
            )
        super()._settings()
        self._given_prior()
        check_flag(self.fit_intercept, "fit_intercept")

    def _check_values(self, X: Array, names: list[str] | None, fitting: bool) -> None:
        check_columns(X, names, SMALLEST if fitting else 0.0)

    # ---- the model ----------------------------------------------------------------------------

    def _noise(self) -> NoiseModel | None:
        """Model of noise that differs from row to row; None if it does not, or there is none."""
        return None

    def _given_prior(self) -> GivenPrior:
        """Priors of the coefficients that the user gives."""
        registry = self._registry("prior")
        assert registry is not None
        return read_prior(self.prior, registry, type(self).prior)

    def _choose_prior(self, settings: Any, rows: FitRows, likelihood: Likelihood) -> Choice:
        """Choice of the prior for these rows, of an estimator whose prior may be "auto"."""
        raise NotImplementedError

    def _model(
        self,
        settings: Any,
        likelihood: Likelihood,
        rows: FitRows,
        class_names: list[str] | None = None,
    ) -> LinearModel:
        """Model of the rows: likelihood, priors, noise and intercept."""
        for own in likelihood.own:
            if not hasattr(self, own.argument):
                raise TypeError(
                    f"{type(self).__name__} has no parameter {own.argument}, the prior of its "
                    f"likelihood's own parameter {own.name}; declare the field "
                    f"`{own.argument}: Any = {own.default!r}` in the class, below @parameters."
                )
        given, intercept_prior = self._given_prior(), self._resolve("intercept_prior")
        given.check_noise(likelihood)
        check_noise_scales("intercept_prior", self.intercept_prior, intercept_prior, likelihood)
        choose = partial(self._choose_prior, settings, rows, likelihood)
        prior, choice = given.of_columns(*rows.with_coefficients, choose)
        return LinearModel(
            likelihood=likelihood,
            prior=prior,
            intercept_prior=intercept_prior,
            own_priors=tuple(self._resolve(own.argument) for own in likelihood.own),
            noise=self._noise(),
            fit_intercept=self.fit_intercept,
            intercept_at_mean=settings.uses_curvature,
            class_names=class_names,
            prior_choice=choice,
            prior_as_given=self.prior,
        )

    def _keep(
        self,
        posterior: Any,
        model: LinearModel,
        rows: FitRows,
        target: Target,
        draws: PosteriorDraws,
        point: Array,
        **attributes: Any,
    ) -> FittedLinear:
        """Everything that is kept of a fit; ``point`` has the reported values of the estimate."""
        layout = posterior.parameters.layout(posterior.reported.names)
        own = zip(posterior.likelihood.own, posterior.own_priors, strict=True)
        parts = target.parts_to_report(layout.split(point[None]))
        return FittedLinear(
            target=target,
            rows=rows if rows.is_copy else rows.fingerprint(target),
            stream=rows.stream(posterior, draws, target),
            layout=layout,
            n_predictors=posterior.n_predictors,
            noise_columns=posterior.parameters.noise_columns,
            mixed=rows.mixed,
            attributes={
                **of_rows(rows, target),
                "posterior_": draws,
                "prior_": posterior.prior,
                "noise_prior_": None,
                **{f"{parameter.argument}_": prior for parameter, prior in own},
                "intercept_prior_": posterior.linear_prior.intercept
                if model.fit_intercept
                else None,
                **target.fitted_attributes(parts, layout.own),
                **attributes,
            },
        )

    # ---- draws, split into parts --------------------------------------------------------------

    def _split(self, selection: Any) -> dict[str, Array]:
        """Chosen draws of theta's parts, as the layout of the fit has them."""
        check_is_fitted(self)
        split: dict[str, Array] = self._fitted.layout.split(self.posterior_.flat[selection])
        return split

    def _parts(self, selection: Any) -> dict[str, Array]:
        """Chosen draws, part by part, for the classes in the model."""
        return self._fitted.target.parts_to_predict(self._split(selection))

    def _draws(self, selection: Any) -> dict[str, Array]:
        """Chosen draws, part by part: ``coef (S, K, d)``, ``intercept (S, K)``, others by name.

        Parameters that share a name and differ in their index are ``(S, m)``.
        """
        return self._fitted.target.parts_to_report(self._split(selection))

    def _own_draws(self, selection: Any) -> Array | None:
        target = self._fitted.target
        return target.own_coordinates(self._parts(selection)) if target.likelihood.own else None

    def _predictor(self, selection: Any = slice(None)) -> Predictor:
        """Linear predictors of a regression, or of the classes in the model."""
        parts = self._parts(selection)
        return LinearPredictor(parts["coef"], parts["intercept"])

    def _exponential(self) -> str:
        likelihood = self._fitted.target.likelihood
        return likelihood.exponential if likelihood.n_predictors == 1 else ""

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
            (S,)``. With several outputs each array has them as its second axis. With
            ``group_effects`` three entries are dicts by term: ``effect`` of ``(S, n_labels,
            n_effects)``, in the order of ``group_effects_``, ``sd`` of ``(S, n_effects)``, and
            ``correlation`` of matrices ``(S, n_effects, n_effects)``, if there are any.
        """
        return self._draws_at(self._choose_draws(n_samples, random_state))

    def _draws_at(self, selection: Array) -> Bunch:
        """Chosen draws by parameter."""
        draws = Bunch(**self._draws(selection))
        if self._fitted.n_predictors == 1:
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

        They show what a prior implies for data. Each column of the result has its own parameters,
        the same for all rows. All priors must be proper. By default the intercept's is flat, and
        that of a linear model's noise is nearly flat: set ``intercept_prior="normal"`` and
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
        **by_row : array-like of shape (n_rows,) or number
            Arguments by row, for estimators that take some: see the notes of the class.

        Returns
        -------
        y : ndarray of shape (n_rows, n_samples)

        Raises
        ------
        ValueError
            If nothing can be drawn from ``prior``, ``intercept_prior`` or ``noise_prior``, or one
            of them needs ``y``; the error names it.

        Examples
        --------
        >>> import numpy as np
        >>> from skbayes_sgld import SGLDLogisticRegression
        >>> model = SGLDLogisticRegression(prior="normal", intercept_prior="normal")
        >>> model.sample_prior(np.zeros((3, 2)), n_samples=5).shape
        (3, 5)
        """
        return self._draw_prior(X, n_samples, random_state, y, by_row)

    def _draw_prior(
        self, X: Any, n_samples: int, random_state: Any, y: Any, by_row: dict[str, Any]
    ) -> Array:
        """Draws of y ``(n, n_samples)`` from the prior predictive distribution."""
        return draw_prior_predictive(self, X, n_samples, random_state, y, by_row)
