"""Totals: successes among a number of trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, fdtr, gammaln, logit, xlogy

from skbayes_sgld.likelihoods import elementary
from skbayes_sgld.likelihoods.base import RARE, Array, Likelihood
from skbayes_sgld.likelihoods.kernel import RowKernel

_MOST_TRIALS = 1e12  # with more, rounding errors of the log density hide the parameters
TOTALS = np.dtype([("successes", float), ("trials", float)])


def as_totals(successes: Array, trials: Array | float) -> Array:
    """Records of successes and trials: an array that indexes and concatenates like numbers."""
    totals = np.empty(np.shape(successes), TOTALS)
    totals["successes"], totals["trials"] = successes, trials
    return totals


def check_trials(trials: Array) -> None:
    """Raise if a number of trials is not whole, or out of range."""
    wrong = ~((trials >= 0) & (trials <= _MOST_TRIALS)) | (trials != np.floor(trials))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"n_trials has the value {trials[row]:g} in row {row}; numbers of trials must be "
            f"whole, and from 0 to {_MOST_TRIALS:g}."
        )


class BinomialKernel(RowKernel):
    """Totals; log densities are computed relative to their maxima, as large terms would cancel."""

    def __init__(self, likelihood: Likelihood, y: Array, trials: Array) -> None:
        super().__init__(likelihood, y)
        self.trials = trials

    def __getitem__(self, at: Any) -> Self:
        """Kernel of some of the rows."""
        return type(self)(self.likelihood, self.y[at], self.trials[at])

    @cached_property
    def share(self) -> Array:
        """Shares of successes, where the log densities are largest; a half if all trials agree."""
        share = self.y.astype(float) / np.maximum(self.trials, 1.0)
        share[(share == 0.0) | (share == 1.0)] = 0.5
        eps = np.finfo(self.y.dtype).eps
        return np.clip(share, np.finfo(self.y.dtype).tiny, 1.0 - eps).astype(self.y.dtype)

    @cached_property
    def constant(self) -> Array:
        """Log densities at these shares; 0 if all trials agree."""
        y, n = self.y.astype(float), self.trials.astype(float)
        ways = gammaln(n + 1.0) - gammaln(y + 1.0) - gammaln(n - y + 1.0)
        at_share = ways + xlogy(y, y / np.maximum(n, 1.0))
        at_share += xlogy(n - y, (n - y) / np.maximum(n, 1.0))
        return np.where((y == 0.0) | (y == n), 0.0, at_share).astype(self.y.dtype)

    def derivatives(self, u: Array, *orders: int) -> Sequence[Array]:
        """``log C(n, y) + y eta - n log(1 + exp(eta))``, ``y - n p`` and ``n p (1 - p)``."""
        eta, y, n, values = u[:, 0], self.y, self.trials, []
        if 0 in orders:
            delta = eta - np.log(self.share / (1 - self.share))
            beyond = np.maximum(delta - u.dtype.type(50.0), 0)  # beyond, the log density is linear
            value = y * delta - n * (np.log1p(self.share * np.expm1(delta - beyond)) + beyond)
            value += self.constant
            # if all trials agree nothing cancels, and small probabilities keep their precision
            sided = np.where(y == 0, eta, -eta)
            values.append(np.where((y == 0) | (y == n), -n * np.logaddexp(0, sided), value))
        if 1 in orders:
            mean = n * expit(eta)
            values.append((y - mean)[:, None])
        if 2 in orders:
            values.append((mean * expit(-eta))[:, None, None])
        return values


@dataclass(eq=False, repr=False)
class Binomial(Likelihood):
    r"""Successes among trials of equal probability :math:`1 / (1 + e^{-\eta})`.

    In fits y holds records of :func:`as_totals`. In predictions y holds successes, and the family
    takes the trials, by default 1. A total counts as many rows as it has trials.
    """

    kernel: ClassVar[type[BinomialKernel]] = BinomialKernel
    totals = True
    takes: ClassVar[Mapping[str, float]] = {"trials": 1.0}
    exponential = "odds"
    whole = True
    has_sites = True
    improper = "a plane separates the successes from the failures"

    def _kernel(self, y: Array, dtype: type) -> RowKernel:
        successes, trials = split_totals(y)
        return self.kernel(self, successes.astype(dtype), trials.astype(dtype))

    def check_target(self, y: Array) -> Array:
        """Totals; a ValueError names an impossible number of successes or trials."""
        successes, trials = split_totals(y)
        check_trials(trials)
        wrong = ~((successes >= 0) & (successes <= trials)) | (successes != np.floor(successes))
        if wrong.any():
            row, shares = int(wrong.argmax()), np.all((successes >= 0) & (successes <= 1))
            hint = " Shares of successes times n_trials are numbers of successes." * bool(shares)
            raise ValueError(
                f"y has the value {successes[row]:g} in row {row}, of n_trials={trials[row]:g}; "
                f"numbers of successes must be whole, and from 0 to n_trials.{hint}"
            )
        return as_totals(successes, trials)

    def trial_weight(self, y: Array, weight: Array | None) -> Array | None:
        """Weights times trials."""
        trials = split_totals(y)[1]
        return trials if weight is None else weight * trials

    def _outcomes(self, y: Array, weight: Array | None) -> tuple[float, float]:
        """Weighted numbers of failures and of successes."""
        (successes, trials), w = split_totals(y), np.ones(len(y)) if weight is None else weight
        return float(w @ (trials - successes)), float(w @ successes)

    def level_weight(self, y: Array, weight: Array | None = None) -> float:
        """Weight of the rarer outcome."""
        return min(self._outcomes(y, weight))

    def rare(self, y: Array) -> Array | None:
        """Rows with the rare outcome; None if neither is rare."""
        successes, trials = split_totals(y)
        for some in (successes > 0, successes < trials):
            if 0.0 < some.mean() < RARE:
                return some
        return None

    def gains(self, design: Array, y: Array) -> Array:
        """Design of the rows with a success, and minus that of the rows with a failure."""
        successes, trials = split_totals(y)
        return np.concatenate([design[successes > 0], -design[successes < trials]])

    def start(self, y: Array, weight: Array | None, has_level: bool) -> Array:
        """Log odds of the share of all successes."""
        failures, successes = self._outcomes(y, weight)
        n = failures + successes
        share = np.clip(successes / n, 0.5 / n, 1.0 - 0.5 / n)  # at least half a trial
        return np.array([logit(share) if has_level else 0.0])

    # ---- predictions --------------------------------------------------------------------------

    def _trials(self, u: Array) -> Array:
        return u[:, -1] if u.shape[1] > self.n_local else np.ones_like(u[:, 0])

    def log_density(self, u: Array, y: Array) -> Array:
        """Log probability of each total; minus infinity if successes exceed trials."""
        if y.dtype.names is not None:
            return super().log_density(u, y)
        trials = self._trials(u)[:, : y.shape[-1]]
        value = super().log_density(u[:, : self.n_local], as_totals(np.clip(y, 0, trials), trials))
        return np.where((y < 0) | (y > trials), -np.inf, value)

    def mean(self, u: Array) -> Array:
        """``n p``."""
        return self._trials(u) * elementary.expit(u[:, 0])

    def variance(self, u: Array) -> Array:
        """``n p (1 - p)``."""
        return self.mean(u) * expit(-u[:, 0])

    def cdf(self, u: Array, y: Array) -> Array:
        """Probability of at most y successes."""
        trials = self._trials(u)
        whole = np.clip(np.floor(y), 0.0, trials - 1.0)
        # the F distribution function takes a tenth of the time of scipy's incomplete beta function
        some, none = whole + 1.0, np.maximum(trials - whole, 1.0)
        below = fdtr(2.0 * none, 2.0 * some, some / none * np.exp(-u[:, 0]))
        return np.where(y < 0, 0.0, np.where(y >= trials, 1.0, below))

    def sample(self, u: Array, rng: np.random.RandomState) -> Array:
        """Draws of a number of successes."""
        return rng.binomial(self._trials(u).astype(np.int64), expit(u[:, 0]))


def split_totals(y: Array) -> tuple[Array, Array]:
    """Successes and trials of totals; of labels, each with one trial."""
    return (y, np.ones(np.shape(y))) if y.dtype.names is None else (y["successes"], y["trials"])
