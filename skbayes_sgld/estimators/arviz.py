"""What every estimator hands to ArviZ: its draws, and what they say of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skbayes_sgld._components import Parametrized, as_random_state
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.inference import arviz
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.prediction.predictive import Array


@numpy_defaults
class ArvizExport(Parametrized):
    """An estimator of which ArviZ can make tables, plots and comparisons."""

    posterior_: PosteriorDraws

    def to_arviz(self, X: Any = None, y: Any = None, random_state: Any = 0) -> Any:
        """The fit as ArviZ takes it; it needs the extra ``arviz``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or None, default=None
            Rows to add: those of ``fit``, for leave-one-out cross-validation, or new ones.
        y : array-like of shape (n_samples,) or None, default=None
            Their observations.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws of observations.

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            The former with ArviZ before 1.0. Its groups are ``posterior``, with coordinates
            ``feature`` and ``class``, and ``sample_stats`` where the posterior was sampled (see
            :meth:`~skbayes_sgld.SamplingResult.to_arviz`). X and y add ``posterior_predictive``,
            an observation of each row under every draw, ``log_likelihood``, ``observed_data`` and
            ``constant_data``; X alone adds ``predictions`` and ``predictions_constant_data``.
            Observations are called ``y``, and rows are counted by ``obs_id``; a label is its
            position in ``classes_``.

        Raises
        ------
        ValueError
            Where y is given without X, or X and y cannot be used.
        """
        return self._to_arviz(X, y, random_state)

    def _to_arviz(self, X: Any, y: Any, random_state: Any, offset: Array | None = None) -> Any:
        check_is_fitted(self)
        return arviz.as_arviz(self._groups(X, y, random_state, offset))

    def _groups(
        self, X: Any, y: Any, random_state: Any, offset: Array | None = None
    ) -> dict[str, Any]:
        groups = self._arviz_groups()
        if X is not None:
            groups |= self._row_groups(X, y, random_state, offset)
        elif y is not None:
            raise ValueError("y is given and X is None; give the rows of y as X.")
        return groups

    def _arviz_groups(self) -> dict[str, Any]:
        """Groups of the draws alone."""
        return {"posterior": self.posterior_.to_xarray()}

    def _row_groups(
        self, X: Any, y: Any, random_state: Any, offset: Array | None
    ) -> dict[str, Any]:
        rows, observed = (self._check_rows(X), None) if y is None else self._check_observed(X, y)
        predictive, shape = self._predictive(), self.posterior_.values.shape[:2]
        offsets = () if offset is None else (offset,)
        drawn = predictive.sample(rows, as_random_state(random_state), *offsets)
        log_likelihood = None
        if observed is not None:
            log_likelihood = predictive.log_likelihood(rows, observed.astype(float), *offsets)
            log_likelihood = log_likelihood.T.reshape(*shape, -1)
        return arviz.row_groups(
            drawn.T.reshape(*shape, -1),
            rows,
            self._feature_labels(),
            observed,
            log_likelihood,
            None if offset is None else {"exposure": np.exp(offset)},
            self._label_attrs(),
        )

    def _feature_labels(self) -> list[str]:
        given = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(self.n_features_in_)] if given is None else given
        return [str(name) for name in names]

    def _label_attrs(self) -> dict[str, Any]:
        """What the numbers of observations stand for (conventions of CF)."""
        return {}

    def _check_rows(self, X: Any) -> Array:
        raise NotImplementedError

    def _check_observed(self, X: Any, y: Any) -> tuple[Array, Array]:
        raise NotImplementedError

    def _predictive(self, chosen: Any = slice(None)) -> Any:
        """The posterior predictive distribution from the chosen draws."""
        raise NotImplementedError
