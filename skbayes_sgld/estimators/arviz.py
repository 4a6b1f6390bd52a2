"""What every estimator hands to ArviZ: its draws, and what they say of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from skbayes_sgld._components import Parametrized, as_random_state, naming
from skbayes_sgld._memory import check_memory
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.inference import arviz
from skbayes_sgld.inference.result import PosteriorDraws
from skbayes_sgld.prediction.predictive import Array


@numpy_defaults
class ArvizExport(Parametrized):
    """An estimator of which ArviZ can make tables, plots and comparisons."""

    posterior_: PosteriorDraws

    def to_arviz(
        self, X: Any = None, y: Any = None, random_state: Any = 0, *, groups: Any = None
    ) -> Any:
        """The fit as ArviZ takes it; it needs the extra ``arviz``.

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
            Where y is given without X, or X and y cannot be used; for a group that is not known.
        MemoryError
            Before the groups are made, where they do not fit into the memory that is available.
        """
        return self._to_arviz(X, y, random_state, groups)

    def _to_arviz(
        self, X: Any, y: Any, random_state: Any, groups: Any, offset: Array | None = None
    ) -> Any:
        check_is_fitted(self)
        if X is None and y is not None:
            raise ValueError("y is given and X is None; give the rows of y as X.")
        wanted = arviz.wanted_groups(groups, X is not None, y is not None)
        if X is not None:
            self._check_fits(X, wanted)
        made = self._groups(X, y, random_state, wanted, offset)
        return arviz.as_arviz({name: made[name] for name in made if name in wanted})

    def _check_fits(self, X: Any, wanted: Sequence[str]) -> None:
        """Raise where what is wanted of the rows is more than the memory that is available."""
        large = arviz.BY_ROW_AND_DRAW & set(wanted)
        with naming("X"):
            n = _num_samples(X)
        n_draws, n_outputs = len(self.posterior_.flat), len(getattr(self, "estimators_", [0]))
        n_arrays = len(large) * n_outputs
        if n_outputs > 1 and large:
            n_arrays += n_outputs  # of the group that is joined
        check_memory(
            8 * n * n_draws * n_arrays,
            f"to_arviz of X with {n} rows, under {n_draws} draws, for the groups "
            f"{' and '.join(sorted(large))},",
            "give fewer rows, or name the other groups alone in groups=",
        )

    def _groups(
        self,
        X: Any,
        y: Any,
        random_state: Any,
        wanted: Sequence[str],
        offset: Array | None = None,
    ) -> dict[str, Any]:
        groups = self._arviz_groups(wanted)
        if X is not None:
            groups |= self._row_groups(X, y, random_state, wanted, offset)
        return groups

    def _arviz_groups(self, wanted: Sequence[str]) -> dict[str, Any]:
        """Groups of the draws alone; more than are wanted where they cost nothing."""
        return {"posterior": self.posterior_.to_xarray()}

    def _observed(self, X: Any, y: Any) -> tuple[Array, ...]:
        """Rows and observations as numbers; and the offset, of models that have one."""
        rows, observed = self._check_observed(X, y)
        return rows, observed.astype(float)

    def _row_groups(
        self, X: Any, y: Any, random_state: Any, wanted: Sequence[str], offset: Array | None
    ) -> dict[str, Any]:
        rows, observed = (self._check_rows(X), None) if y is None else self._check_observed(X, y)
        predictive, shape = self._predictive(), self.posterior_.values.shape[:2]
        offsets = () if offset is None else (offset,)
        drawn = log_likelihood = None
        if ("predictions" if y is None else "posterior_predictive") in wanted:
            drawn = predictive.sample(rows, as_random_state(random_state), *offsets)
            drawn = drawn.T.reshape(*shape, -1)
        if observed is not None and "log_likelihood" in wanted:
            log_likelihood = predictive.log_likelihood(rows, observed.astype(float), *offsets)
            log_likelihood = log_likelihood.T.reshape(*shape, -1)
        return arviz.row_groups(
            shape,
            rows,
            self._feature_labels(),
            drawn,
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
