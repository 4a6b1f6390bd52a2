"""The draws of a fitted model, with the names of the parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(repr=False)
class PosteriorDraws:
    """Draws from a posterior, ``(chain, draw, parameter)``.

    Attributes
    ----------
    values : ndarray of shape (n_chains, n_draws, n_params)
    names : list of str
    weights : ndarray of shape (n_draws,) or None
        Of the draws, averaging 1; None where all weigh the same.
    settings : dict
        How they were drawn: the sampler, its step size and what else was chosen.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.datasets import make_correlated_pair
    >>> X, y = make_correlated_pair(random_state=0)
    >>> model = SGLDLinearRegression(random_state=0).fit(X, y)
    >>> model.posterior_
    PosteriorDraws(4 chains x 1000 draws of coef[x0], intercept, noise_variance;
    sampler=SGLD(integrator='leimkuhler_matthews'), step_size=0.5, gradient=Full(),
    batch_size=None, preconditioner=Curvature(), n_burnin=40, thin=4)
    >>> model.posterior_["intercept"].shape
    (4, 1000)
    """

    values: Array
    names: list[str]
    weights: Array | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def weighted(cls, values: Array, names: list[str], weights: Array | None) -> PosteriorDraws:
        """Return draws whose weights, if they differ at all, average 1."""
        if weights is not None:
            weights = None if np.ptp(weights) == 0 else weights / weights.mean()
        return cls(values, names, weights)

    def __getitem__(self, name: str) -> Array:
        """Return the draws of one parameter ``(n_chains, n_draws)``."""
        if name not in self.names:
            raise KeyError(f"{name!r} is not a parameter; there are {', '.join(self.names)}.")
        return self.values[..., self.names.index(name)]

    def __repr__(self) -> str:
        """Say how many draws there are, and of what."""
        n_chains, n_draws, n_params = self.values.shape
        shown = self.names if n_params <= 6 else [*self.names[:3], "...", *self.names[-2:]]
        what = f"{n_chains} chains x {n_draws} draws of {', '.join(shown)}"
        settings = self.settings.items()
        how = [f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in settings]
        return f"PosteriorDraws({what}{'; ' * bool(how)}{', '.join(how)})"

    @property
    def flat(self) -> Array:
        """The draws of all chains, one row a draw ``(n_chains * n_draws, n_params)``."""
        return self.values.reshape(-1, self.values.shape[2])

    @property
    def flat_weights(self) -> Array | None:
        """The weights of :attr:`flat`, or None."""
        return None if self.weights is None else np.tile(self.weights, self.values.shape[0])

    def to_frame(self) -> pd.DataFrame:
        """Return a table, one row a draw, indexed by chain and draw."""
        n_chains, n_draws, _ = self.values.shape
        index = pd.MultiIndex.from_product([range(n_chains), range(n_draws)])
        return pd.DataFrame(self.flat, columns=self.names, index=index.set_names(["chain", "draw"]))

    def choose(self, n_samples: int | None, rng: np.random.RandomState) -> Array:
        """Return the flat numbers of ``n_samples`` draws, all where None, by their weights."""
        total = self.values.shape[0] * self.values.shape[1]
        weights = self.flat_weights
        if weights is None:
            if n_samples is None:
                return np.arange(total)
            return rng.choice(total, n_samples, replace=n_samples > total)
        size = total if n_samples is None else n_samples
        return rng.choice(total, size, p=weights / weights.sum())
