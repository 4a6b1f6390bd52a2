"""Linear models: Bayesian regression and classification as scikit-learn estimators.

``estimators.base.BayesianEstimator`` has ``fit`` and the predictions, which call these methods:

- ``_settings``: sampler and run, of ``sampled``; priors, of ``linear`` and of the models below
- ``_target``, with ``_likelihood`` or ``_label_likelihood``: what y is and its distribution, of
  ``regression``, ``counts``, ``classification`` and ``ordinal``
- ``_check_values``: whether numbers of X can be used, of ``linear``
- ``_model``: priors and columns, of ``linear``, with ``_choose_prior``
- ``_bind``, ``_infer``, ``_screen``: posterior of the rows, its draws, and the check of the model
  that ends a fit, of ``sampled``
- ``_predictive``: mixture over the draws, of ``base``; for normal noise of ``regression``, for
  classes without rows of ``classification``. ``linear`` has its ``_predictor`` and ``_own_draws``

``mixed_effects.MixedEffects`` adds the effects of groups and curves, if there are any, to
predictions. ``outputs.SeveralOutputs`` stands before them, and calls them once for each column of
y.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

from sklearn.utils import Tags

from skbayes_sgld._checks import check_choice
from skbayes_sgld._components import Registry
from skbayes_sgld.estimators.classification import LinearClassifier
from skbayes_sgld.estimators.counts import CountRegressor, TotalsRegressor
from skbayes_sgld.estimators.ordinal import OrdinalClassifier
from skbayes_sgld.estimators.parameters import parameters
from skbayes_sgld.estimators.regression import NormalRegressor, RegressionModel
from skbayes_sgld.estimators.sampled import SampledEstimator
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.likelihoods import Likelihood, StudentTNoise
from skbayes_sgld.posterior import NOISE_MODELS, NoiseModel
from skbayes_sgld.rows.scores import D2_GAMMA
from skbayes_sgld.rows.stream import next_batch

__all__ = [
    "SGLDBetaBinomialRegressor",
    "SGLDGammaRegressor",
    "SGLDLinearRegression",
    "SGLDLogisticRegression",
    "SGLDNegativeBinomialRegressor",
    "SGLDOrdinalClassifier",
    "SGLDPoissonRegressor",
]


@parameters
class SGLDLinearRegression(NormalRegressor, SampledEstimator):
    r"""Bayesian linear regression sampled by stochastic gradient Langevin dynamics.

    The model is :math:`y_i \sim N(x_i^\top \beta + \beta_0, \sigma^2)`, with priors on the
    coefficients :math:`\beta`, the intercept :math:`\beta_0` and the noise variance
    :math:`\sigma^2`. The draws are of :math:`\theta = (\beta, \beta_0, \log \sigma^2)`, by
    :class:`skbayes_sgld.sampling.SGLD`, or by :class:`~skbayes_sgld.sampling.HMC` where a pilot
    finds an error in it. Nothing has to be tuned. If y are means of several observations, pass
    their numbers to ``fit`` as ``n_averaged``: the variances are then :math:`\sigma^2` divided by
    these.

    y may have a column for each of several outputs. Given X they are independent, each with its own
    noise and coefficients: ``estimators_`` holds the model of each, as if each output were fitted
    separately, with seeds drawn in turn from one ``RandomState``. ``coef_`` is
    ``(n_outputs, n_features)``, ``predict`` and its standard deviation ``(n_samples, n_outputs)``,
    an interval ``(n_samples, n_outputs, 2)``; names of parameters begin with the output's,
    ``coef[output, column]``.

    Parameters
    ----------
    noise_model : {"constant", "log_linear"} or NoiseModel, default="constant"
        Whether the noise is the same in every row, or its log standard deviation is linear in the
        columns of X; ``LogLinearNoise(columns=["age"])`` chooses columns. ``noise_prior`` is then
        that of the noise at the mean of these columns.
    noise_distribution : {"normal", "student_t"}, default="normal"
        ``"student_t"`` is noise with heavy tails on both sides: X beta + intercept + sigma T, where
        T has a t distribution. Outliers then weigh little. ``noise_variance_`` is then the squared
        scale sigma^2; the variance of the noise is sigma^2 nu / (nu - 2) for nu degrees of freedom.
    degrees_of_freedom_prior : str or NoisePrior, default="gamma"
        Prior of the degrees of freedom: a gamma distribution of shape 2 and rate 0.1 (Juarez &
        Steel 2010), or another of the noise priors.

    Attributes
    ----------
    noise_coef_ : ndarray of shape (n_noise_columns,)
    noise_intercept_ : float
        Slopes and intercept of the log standard deviation of the noise, in place of
        ``noise_variance_``, under ``noise_model="log_linear"``.
    degrees_of_freedom_ : float
        Posterior mean of nu, under ``noise_distribution="student_t"``.

    See Also
    --------
    SGDMAPRegressor : The posterior mode by stochastic gradients.

    References
    ----------
    Karagiannis, Handout 6, Section 4.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SGLDLinearRegression(random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:1], return_std=True)
    >>> print(f"{mean[0]:.0f} +- {std[0]:.0f}")
    206 +- 55
    >>> low, high = model.predict_interval(X[:1], coverage=0.9)[0]
    >>> print(f"90 % of such patients are between {low:.0f} and {high:.0f}")
    90 % of such patients are between 116 and 296
    """

    noise_model: Any = "constant"
    noise_distribution: Any = "normal"
    degrees_of_freedom_prior: Any = "gamma"

    _registries: ClassVar[dict[str, Registry]] = {
        **SampledEstimator._registries,
        "noise_model": NOISE_MODELS,
    }

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: unequal noise takes dense rows."""
        tags = super().__sklearn_tags__()
        if isinstance(self.noise_model, NoiseModel):
            tags.input_tags.sparse = self.noise_model.constant
        else:
            tags.input_tags.sparse = self.noise_model == "constant"
        return tags

    def _settings(self) -> Settings:
        self._noise()
        return super()._settings()

    def _noise(self) -> NoiseModel | None:
        """Model of noise that differs from row to row; None if it does not."""
        noise: NoiseModel = self._resolve("noise_model")
        return None if noise.constant else noise

    def _likelihood(self) -> Likelihood:
        check_choice(self.noise_distribution, "noise_distribution", ("normal", "student_t"))
        normal = super()._likelihood()
        if self.noise_distribution == "normal":
            return normal
        if not isinstance(self.noise_variance, str):
            raise ValueError(
                f"noise_variance={self.noise_variance!r} fixes the noise, and noise_distribution="
                f"{self.noise_distribution!r} infers its scale; set noise_variance='infer'."
            )
        return StudentTNoise()


@parameters
class SampledClassifier(LinearClassifier, SampledEstimator):
    """A linear classifier whose posterior is sampled."""

    def partial_fit(  # type: ignore[override]
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, **by_row: Any
    ) -> Self:
        """Fit with one more batch of rows.

        The posterior is that of all rows since the first call, as one ``fit`` would have it, with
        scales in the units of the first batch. Rows are kept while they hold up to a million
        numbers; then a normal density takes the place of their likelihood, with the gradient and
        the curvature that it has on average over the draws. ``forgetting`` multiplies the weights
        of all earlier rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All labels that there will be; needed at the first call, unless ``fit`` has seen them or
            y holds totals. A batch may have rows of some of them only. Until there are rows of
            each, intercepts whose prior is flat have that of ``intercept_prior="normal"``, and all
            rows are kept. An ordered pandas categorical gives the order of ordered classes.
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
            As of ``fit``; where a label is none of ``classes``; and where the number of columns
            changes or is 3,000 or more.
        """
        if classes is None and by_row.get("n_trials") is not None:
            classes = [0, 1]  # failure and success: y holds totals
        stream = self._earlier()
        known, order = self._known_classes(classes, starts=not stream.n_batches)
        stream = replace(stream, classes=known, order=order)
        return self._fit(X, y, sample_weight, by_row, partial(next_batch, stream))


@parameters
class SGLDLogisticRegression(SampledClassifier):
    r"""Bayesian logistic regression sampled by stochastic gradient Langevin dynamics.

    Two classes have one linear predictor :math:`\eta_i = x_i^\top \beta + \beta_0` and the
    probability :math:`P(y_i = 1) = 1 / (1 + e^{-\eta_i})`. More classes have a predictor each, and
    :math:`P(y_i = k) = e^{\eta_{ik}} / \sum_l e^{\eta_{il}}`. Their coefficients are reported with
    sum zero over the classes, which the data determine. Nothing has to be tuned: the sampler is
    :class:`~skbayes_sgld.sampling.SGLD`, or :class:`~skbayes_sgld.sampling.HMC` where a pilot finds
    an error in it, as ``print(result_.plan)`` tells.

    See Also
    --------
    SGDMAPClassifier : The posterior mode by stochastic gradients.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLogisticRegression
    >>> from skbayes_sgld.datasets import make_two_clusters
    >>> X, y = make_two_clusters(random_state=0)
    >>> model = SGLDLogisticRegression(random_state=0).fit(X, y)
    >>> print(model.predict_proba([[0.5, 0.5]]).round(2))
    [[0.56 0.44]]
    >>> low, high = model.predict_proba_interval([[0.5, 0.5]], coverage=0.9)[0, 1]
    >>> print(f"between {low:.2f} and {high:.2f}")
    between 0.35 and 0.54

    Totals, the beetles of Bliss (1935) that died of so many:

    >>> dose = [[1.691], [1.724], [1.755], [1.784], [1.811], [1.837], [1.861], [1.884]]
    >>> died, n = [6, 13, 18, 28, 52, 53, 61, 60], [59, 60, 62, 56, 63, 59, 62, 60]
    >>> model = SGLDLogisticRegression(prior="flat", random_state=0).fit(dose, died, n_trials=n)
    >>> print(model.predict_proba([[1.8]]).round(2))
    [[0.27 0.73]]
    """


@parameters
class SGLDOrdinalClassifier(OrdinalClassifier, SampledClassifier):
    r"""Bayesian ordinal regression sampled by stochastic gradient Langevin dynamics.

    The classes have an order, such as grades or answers from "never" to "always". The model is the
    cumulative logit: one linear predictor, and cut points :math:`c_k` between the classes,
    :math:`P(y_i > k) = 1 / (1 + e^{c_k - x_i^\top \beta})`. A column moves all log odds of a higher
    class alike. Two classes are logistic regression. Nothing has to be tuned.

    scikit-learn's scorers of probabilities take the labels to be sorted. For those give classes
    whose order is that of their labels, such as whole numbers.

    See Also
    --------
    SGLDLogisticRegression : Classes without an order.
    statsmodels.miscmodels.ordinal_model.OrderedModel : The maximum of the likelihood.

    References
    ----------
    McCullagh 1980, Regression models for ordinal data.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbayes_sgld import SGLDOrdinalClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2))
    >>> grade = np.digitize(X[:, 0] + rng.logistic(size=300), [-1.0, 1.5])
    >>> y = pd.Categorical.from_codes(grade, ["poor", "fair", "good"], ordered=True)
    >>> model = SGLDOrdinalClassifier(random_state=0).fit(X, y)
    >>> print(model.classes_, model.cut_points_.round(1))
    ['poor' 'fair' 'good'] [-1.   1.6]
    >>> print(model.predict_proba([[1.0, 0.0]]).round(2))
    [[0.12 0.53 0.36]]
    """


@parameters
class SGLDPoissonRegressor(CountRegressor, SampledEstimator):
    r"""Bayesian Poisson regression sampled by stochastic gradient Langevin dynamics.

    The model is :math:`y_i \sim \text{Poisson}(t_i e^{x_i^\top \beta + \beta_0})`, with the
    exposure :math:`t_i` of the row, by default 1. Predictions are rates, or counts if they are
    given an exposure. Nothing has to be tuned.

    See Also
    --------
    sklearn.linear_model.PoissonRegressor : The posterior mode under a normal prior.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, years = rng.standard_normal((200, 2)), rng.uniform(0.5, 10.0, 200)
    >>> y = rng.poisson(years * np.exp(X[:, 0] - 0.5))
    >>> model = SGLDPoissonRegressor(random_state=0).fit(X, y, exposure=years)
    >>> print(f"{model.predict([[1.0, 0.0]])[0]:.1f} a year")
    1.6 a year
    >>> low, high = model.predict_interval([[1.0, 0.0]], coverage=0.9, exposure=10.0)[0]
    >>> print(f"{low:.0f} to {high:.0f} in ten years")
    10 to 23 in ten years
    """


@parameters
class SGLDNegativeBinomialRegressor(CountRegressor, SampledEstimator):
    r"""Bayesian negative binomial regression sampled by stochastic gradient Langevin dynamics.

    Real counts often vary more than Poisson counts do. Here a count over the exposure :math:`t_i`
    has the mean :math:`\mu_i = t_i e^{x_i^\top \beta + \beta_0}` and the variance :math:`\mu_i +
    \alpha \mu_i^2` (NB2). The dispersion :math:`\alpha` is inferred. Each row has its own Poisson
    rate, of mean :math:`\mu_i` and coefficient of variation :math:`\sqrt\alpha`; as the dispersion
    falls to 0 the counts are Poisson. Nothing has to be tuned.

    Parameters
    ----------
    dispersion_prior : str or NoisePrior, default="exponential"
        Prior of the dispersion. ``"exponential"`` is an exponential distribution of
        sqrt(dispersion) with mean 1, which prefers Poisson counts unless the data say otherwise (a
        penalised complexity prior: Simpson, Rue, Riebler, Martins & Sorbye 2017, Section 3). In
        terms of sqrt(dispersion), ``"half_normal"``, ``"half_student_t"`` and ``"half_cauchy"`` are
        further choices; ``"inverse_gamma"``, on the dispersion itself, is nearly flat in its
        logarithm. Each takes a scale, ``Exponential(scale=0.5)``; ``"auto"`` is 1.

    Attributes
    ----------
    dispersion_ : float
    dispersion_prior_ : NoisePrior

    See Also
    --------
    SGLDPoissonRegressor : Counts whose variance is their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDNegativeBinomialRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2))
    >>> y = rng.poisson(np.exp(X[:, 0] + 1.0) * rng.gamma(2.0, 0.5, 300))  # a dispersion of 1 / 2
    >>> model = SGLDNegativeBinomialRegressor(random_state=0).fit(X, y)
    >>> print(f"{model.dispersion_:.1f}")
    0.5
    >>> low, high = model.predict_interval([[1.0, 0.0]], coverage=0.9)[0]
    >>> print(f"{low:.0f} to {high:.0f}")
    0 to 17
    """

    dispersion_prior: Any = "exponential"

    _family = "negative_binomial"


@parameters
class SGLDBetaBinomialRegressor(TotalsRegressor, SampledEstimator):
    r"""Bayesian beta-binomial regression sampled by stochastic gradient Langevin dynamics.

    The observations are numbers of successes y among n trials, as those of
    :class:`SGLDLogisticRegression` with ``n_trials``, and vary more than binomial numbers do,
    because the trials of a row share influences that are not in the columns. Each row has its own
    probability, from a beta distribution of mean
    :math:`p_i = 1 / (1 + e^{-x_i^\top \beta - \beta_0})`. Two trials of a row have the intra-class
    correlation :math:`\rho`, and the variance of y is
    :math:`n_i p_i (1 - p_i) (1 + (n_i - 1) \rho)`. The correlation is inferred; as it falls to 0
    the numbers are binomial. Nothing has to be tuned.

    Predictions are shares of successes, or numbers of successes if they are given trials. Each row
    counts once in the automatic scale of the prior, whatever its trials.

    Parameters
    ----------
    correlation_prior : str or NoisePrior, default="exponential"
        Prior of the correlation, as a density of rho / (1 - rho), the inverse precision of the beta
        distribution. ``"exponential"`` is an exponential distribution of its square root with
        mean 1, to which the probabilities' standard deviation is proportional while it is small. It
        prefers binomial numbers unless the data say otherwise (a penalised complexity prior:
        Simpson, Rue, Riebler, Martins & Sorbye 2017, Section 3). ``"half_normal"``,
        ``"half_student_t"`` and ``"half_cauchy"`` are further densities of the square root;
        ``"inverse_gamma"``, of rho / (1 - rho) itself, is nearly flat in its logarithm. Each takes
        a scale, ``Exponential(scale=0.5)``; ``"auto"`` is 1.

    Attributes
    ----------
    correlation_ : float
        rho.
    correlation_prior_ : NoisePrior

    See Also
    --------
    SGLDLogisticRegression : Totals whose variance is binomial.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDBetaBinomialRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, n = rng.standard_normal((300, 2)), rng.integers(5, 40, 300)
    >>> p = 1 / (1 + np.exp(-X[:, 0]))
    >>> y = rng.binomial(n, rng.beta(4 * p, 4 * (1 - p)))  # a correlation of 1 / 5
    >>> model = SGLDBetaBinomialRegressor(random_state=0).fit(X, y, n_trials=n)
    >>> print(f"{model.correlation_:.2f}")
    0.21
    >>> low, high = model.predict_interval([[1.0, 0.0]], coverage=0.9, n_trials=20)[0]
    >>> print(f"{low:.0f} to {high:.0f} of 20")
    5 to 20 of 20
    """

    correlation_prior: Any = "exponential"


@parameters
class SGLDGammaRegressor(RegressionModel, SampledEstimator):
    r"""Bayesian gamma regression sampled by stochastic gradient Langevin dynamics.

    The observations are positive, and their standard deviation is in proportion to their mean: the
    mean is :math:`\mu_i = e^{x_i^\top \beta + \beta_0}` and the variance :math:`\alpha \mu_i^2`.
    The dispersion :math:`\alpha`, the inverse of the gamma distribution's shape, is inferred.
    Nothing has to be tuned. If y are means of several observations, pass their numbers to
    ``fit`` as ``n_averaged``: the variances are then :math:`\alpha \mu_i^2` divided by these.

    Parameters
    ----------
    prior : str, Prior or dict, default="auto"
        Prior of the coefficients of the X that ``fit`` sees, as of :class:`SGLDPoissonRegressor`.
        Under a normal prior of scale s, and with a known dispersion, the posterior mode is the fit
        of ``GammaRegressor(alpha=dispersion / (s**2 * W))``, where W is the sum of the weights.
    dispersion_prior : str or NoisePrior, default="inverse_gamma"
        Prior of the dispersion: the noise priors of :class:`SGLDLinearRegression`, of a variance
        relative to the squared mean. ``"inverse_gamma"`` has next to no weight, and keeps the
        dispersion above 0 if the mean fits every row; ``"half_normal"``, ``"half_student_t"``,
        ``"half_cauchy"`` and ``"exponential"`` are densities of sqrt(dispersion), the coefficient
        of variation. Each takes a scale, ``HalfNormal(scale=0.5)``; ``"auto"`` is 1.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_, dispersion_ : float
    dispersion_prior_ : NoisePrior

    See Also
    --------
    sklearn.linear_model.GammaRegressor : The posterior mode under a normal prior.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDGammaRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2))
    >>> y = np.exp(X[:, 0] + 1.0) * rng.gamma(4.0, 0.25, 300)  # a dispersion of 1 / 4
    >>> model = SGLDGammaRegressor(random_state=0).fit(X, y)
    >>> print(f"{model.dispersion_:.2f}")
    0.23
    >>> low, high = model.predict_interval([[1.0, 0.0]], coverage=0.9)[0]
    >>> print(f"{low:.0f} to {high:.0f}")
    3 to 14
    """

    dispersion_prior: Any = "inverse_gamma"

    _family = "gamma"
    _row_arguments = ("n_averaged",)
    _argument_hints: ClassVar[dict[str, str]] = {
        **RegressionModel._argument_hints,
        "offset": "an offset is the log of a factor of the mean: divide y by np.exp(offset)",
    }
    _score = D2_GAMMA
    _positive = True
    _y_holds = "numbers above 0."
