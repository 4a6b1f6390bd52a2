"""What is asked of a fitted estimator: its summary, its draws, its diagnosis, a pickle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from numbers import Integral
from typing import Any, ClassVar

import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._components import as_random_state, check_number
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._warnings import gather_into, gathering_folder, warn
from skbayes_sgld.estimators.arviz import ArvizExport
from skbayes_sgld.estimators.multi_output import by_output
from skbayes_sgld.inference.diagnosis import Diagnosis
from skbayes_sgld.inference.result import SamplingResult
from skbayes_sgld.prediction.predictors import LinearPredictor, Predictor

Array = NDArray[Any]

_STAMP = "_skbayes_sgld_version"
_FOLDER = "_skbayes_sgld_warnings"


@numpy_defaults
class FittedEstimator(ArvizExport):
    """An estimator with a posterior."""

    random_state: Any
    _validate_rows: Callable[..., Any]
    _check_new_rows: ClassVar[Callable[..., None]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let no setting of the caller's ``np.errstate`` reach the public methods."""
        super().__init_subclass__(**kwargs)
        numpy_defaults(cls)

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

    def _predictor(self, chosen: Any = slice(None)) -> Predictor:
        """Function from rows to their predictors under the chosen draws."""
        raise NotImplementedError

    def _check_rows(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        rows: Array = self._validate_rows(X, reset=False, ensure_all_finite=False)
        self._check_new_rows(rows, self)
        return rows

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

    def __getstate__(self) -> dict[str, Any]:
        """State with the version, since another one may read the attributes otherwise."""
        state = {**super().__getstate__(), _STAMP: version("skbayes-sgld")}
        folder = gathering_folder()  # of a context, at whose end it is removed
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


class FittedLinear(FittedEstimator):
    """An estimator whose posterior is of coefficients."""

    _n_predictors: int

    def _split(self, values: Array) -> dict[str, Array]:
        """Draws by part."""
        raise NotImplementedError

    def _draws(self) -> tuple[dict[str, Array], Array | None]:
        check_is_fitted(self)
        return self._split(self.posterior_.flat), self.posterior_.flat_weights

    def _predictor(self, chosen: Any = slice(None)) -> Predictor:
        parts, _ = self._draws()
        return LinearPredictor(parts["coef"][chosen], parts["intercept"][chosen])

    @by_output(1)
    def sample_posterior(self, n_samples: int | None = None, random_state: Any = None) -> Bunch:
        """Draws from the posterior, by parameter.

        Parameters
        ----------
        n_samples : int or None, default=None
            Number of draws, chosen at random among those of the fit. None: all of them.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the choice; the estimator's own where None.

        Returns
        -------
        draws : Bunch
            ``coef (S, d)``, or ``(S, n_classes, d)`` for more than two classes, ``intercept
            (S,)`` or ``(S, n_classes)``, and what else was inferred, such as ``noise_variance
            (S,)``.
        """
        chosen = self._choose_draws(n_samples, random_state)
        parts, _ = self._draws()
        draws = Bunch(**{name: values[chosen] for name, values in parts.items()})
        if self._n_predictors == 1:
            draws.coef, draws.intercept = draws.coef[:, 0], draws.intercept[:, 0]
        return draws


class FittedSample(FittedEstimator):
    """An estimator whose posterior was sampled.

    Attributes
    ----------
    result_ : SamplingResult
    """

    result_: SamplingResult
    output_names_: list[str]

    def _arviz_groups(self, wanted: Sequence[str]) -> dict[str, Any]:
        return self.result_.arviz_groups("sample_stats" in wanted)

    def diagnose(self) -> Diagnosis | dict[str, Diagnosis]:
        """Diagnosis of the draws, which is printed too.

        Returns
        -------
        diagnosis : Diagnosis
            R-hat, effective sample sizes and standard errors by parameter; the ratio of minibatch
            to injected noise; the bias of the step size, and at half of it; the Metropolis
            acceptance that the chain's own transitions would have had; the distance from the
            Laplace approximation; clipped steps and divergent chains; how far the prior is from
            the data; and the problems, each with its remedy. Of a fit of several outputs a dict:
            one for each, by its name.
        """
        check_is_fitted(self)
        models = vars(self).get("estimators_")
        if models is None:
            return self.result_.diagnose()
        found = {}
        for name, model in zip(self.output_names_, models, strict=True):
            print(f"{name}:")
            found[name] = model.diagnose()
        return found
