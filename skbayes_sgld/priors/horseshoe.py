"""The regularised horseshoe prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from skbayes_sgld._checks import check_number
from skbayes_sgld.likelihoods import Likelihood
from skbayes_sgld.priors.base import Array
from skbayes_sgld.priors.hierarchical import HierarchicalPrior, log_half_cauchy


@dataclass(eq=False, repr=False)
class Horseshoe(HierarchicalPrior):
    r"""Regularised horseshoe prior (Piironen & Vehtari 2017, eq. 2.8): few columns matter.

    .. math::

        \beta_j &\sim N(0, s_j^2 \tau^2 \tilde\lambda_j^2), \quad
        \tilde\lambda_j^2 = \frac{c^2 \lambda_j^2}{c^2 + \tau^2 \lambda_j^2}, \\
        \lambda_j &\sim C^+(0, 1), \quad \tau \sim C^+(0, \tau_0), \quad
        c^2 \sim \mathrm{IG}(\nu / 2, \nu s^2 / 2).

    Coefficients of irrelevant columns shrink to nearly 0. Those of relevant columns hardly shrink;
    c, the scale of the slab, bounds them. The number p of columns expected to matter sets
    :math:`\tau_0 = \frac{p}{d - p} \frac{\sigma}{u \sqrt n}`. Here u is the geometric mean of
    :math:`s_j \, \mathrm{sd}(x_j)`, so that tau has no unit. If u is 1, as under a scale of 1
    on standardised columns, this is eq. (3.12) of the paper. Under the automatic scale u is
    2.5 sd(y) in linear models and 1 in others.

    In linear models sigma is the sd of the noise. In other models it is the root of the paper's
    pseudo-variance (Section 3.5): the inverse mean count, and :math:`1 / (\bar y (1 - \bar y))` for
    two classes. For more classes with the shares :math:`\bar y_k` it is the inverse of the mean of
    :math:`\bar y_k (1 - \bar y_k)`. The fit reports tau, lambda and c, in units of s_j, as
    ``prior_scale``, ``local_scale[...]`` and ``slab_scale``.

    Parameters
    ----------
    n_relevant : float or "auto", default="auto"
        p, above 0 and below the number of columns; ``"auto"`` is a tenth of the columns.
    slab_scale : float, default=2.0
        s, in units of s_j.
    slab_df : float, default=4.0
        nu, the degrees of freedom of the slab.
    scale : float, array-like of shape (n_features,) or "auto", default="auto"
        s_j; ``"auto"`` is that of :class:`Normal`.

    Notes
    -----
    The chains move in coordinates in which each log scale is nearly normal under its prior, and
    each coefficient is standardised given its scale. If columns are nearly dependent, coefficients
    are standardised together instead. Each step then takes a Cholesky factor of their precision
    matrix, whose cost grows as d^3 with d columns. With more than a few hundred columns choose
    ``"laplace"`` or ``"hierarchical_normal"``.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.priors import Horseshoe
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 8))
    >>> y = 2.0 * X[:, 0] + rng.standard_normal(60)
    >>> prior = Horseshoe(n_relevant=1)
    >>> model = SGLDLinearRegression(prior=prior, n_draws=250, random_state=0).fit(X, y)
    >>> print(abs(model.coef_[0] - 2.0) < 0.5, np.abs(model.coef_[1:]).max() < 0.2)
    True True
    """

    n_relevant: Any = "auto"
    slab_scale: float = 2.0
    slab_df: float = 4.0
    scale: Any = "auto"

    def check(self, n_features: int | None = None, argument: str = "prior") -> None:
        """Raise if a parameter is out of range."""
        super().check(n_features, argument)
        check_number(self.slab_scale, f"{argument}.slab_scale", low=0)
        check_number(self.slab_df, f"{argument}.slab_df", low=0)
        if not (isinstance(self.n_relevant, str) and self.n_relevant == "auto"):
            high = np.inf if n_features is None else n_features
            check_number(self.n_relevant, f"{argument}.n_relevant", low=0, high=high)

    def _set_for(self, spread: Array, likelihood: Likelihood, y: Array, weight: Any) -> None:
        d, total = len(self.scale), float(len(y) if weight is None else weight.sum())
        self.check(d)
        p = 0.1 * d if isinstance(self.n_relevant, str) else self.n_relevant
        unit = float(np.mean(np.log(self.scale) + np.log(spread)))
        self._log_tau = float(np.log(p / (d - p)) - 0.5 * np.log(total) - unit)
        self._follows = likelihood.infers_noise
        if not likelihood.infers_noise:
            self._log_tau += 0.5 * float(np.log(likelihood.pseudo_variance(y, weight)))

    _log_tau = 0.0  # log tau_0; log(tau_0 / sigma) if sigma is inferred
    _follows = False

    def names(self, features: Sequence[str]) -> list[str]:
        """``prior_scale``, ``local_scale[...]`` of each column, and ``slab_scale``."""
        return ["prior_scale", *(f"local_scale{name}" for name in features), "slab_scale"]

    def start(self) -> Array:
        """``tau = tau_0`` at ``sigma = 1``, ``lambda = 1`` and ``c = slab_scale``."""
        h = np.zeros(np.size(self.scale) + 2)
        h[0], h[-1] = self._log_tau, np.log(float(self.slab_scale))
        return h

    def log_medians(self, gamma: float | None) -> Array:
        """Logs of tau_0 and of 1 for each lambda; c has no long tails."""
        logs = np.zeros(np.size(self.scale) + 2)
        logs[0] = self._log_tau + (0.5 * gamma if self._follows and gamma is not None else 0.0)
        logs[-1] = np.nan
        return logs

    def log_scale(self, h: Array) -> Array:
        """``log(s_j tau lambda_j) - log(1 + tau^2 lambda_j^2 / c^2) / 2``."""
        own = h[:, :1] + h[:, 1:-1]
        beyond = own - h[:, -1:]
        # log(1 + exp(2 x)) / 2, in half of logaddexp's time
        bound = np.maximum(beyond, 0.0) + 0.5 * np.log(1.0 + np.exp(-2.0 * np.abs(beyond)))
        return np.log(self.scale) + own - bound

    def pull_back(self, h: Array, in_log_scale: Array) -> Array:
        """Gradient in h ``(C, d + 2)``."""
        # share of the slab in each scale: 1 if c alone determines it
        bounded = expit(2.0 * (h[:, :1] + h[:, 1:-1] - h[:, -1:]))
        free = in_log_scale * (1.0 - bounded)
        return np.column_stack([free.sum(axis=1), free, (in_log_scale * bounded).sum(axis=1)])

    def value_and_grad(self, h: Array, gamma: Array | None) -> tuple[Array, Array, Array]:
        """Log density of the logs of tau, lambda and c, and its gradients."""
        ratio = h[:, 0] - self._log_tau  # log(tau / tau_0)
        if self._follows and gamma is not None:
            ratio = ratio - 0.5 * gamma
        global_value, in_tau = log_half_cauchy(ratio)
        local_values, in_local = log_half_cauchy(h[:, 1:-1])
        rate = float(self.slab_scale) ** 2 * np.exp(-2.0 * h[:, -1])
        value = global_value + local_values.sum(axis=1) - self.slab_df * (h[:, -1] + 0.5 * rate)
        in_h = np.column_stack([in_tau, in_local, self.slab_df * (rate - 1.0)])
        return value, in_h, -0.5 * in_tau * self._follows

    def sample_hyper(self, rng: np.random.Generator, gamma: float | None) -> Array:
        """Draw of the logs of tau, lambda and c ``(d + 2,)``."""
        h = self.log_medians(gamma)
        h[:-1] += np.log(np.abs(rng.standard_cauchy(len(h) - 1)))
        shape = 0.5 * self.slab_df
        h[-1] = 0.5 * (np.log(shape * float(self.slab_scale) ** 2) - np.log(rng.gamma(shape)))
        return h
