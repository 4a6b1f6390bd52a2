"""Diagnosis of the draws of networks, by their predictions: weights can change places."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from skbayes_sgld.diagnostics import effective_sample_size, potential_scale_reduction
from skbayes_sgld.estimators.base import Array
from skbayes_sgld.inference.choices import EARLY_ENDS, Choice
from skbayes_sgld.inference.diagnosis import warn_of
from skbayes_sgld.inference.run import cap_problem
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

_TAIL = 0.05  # of the predictions may be worse
_MAX_RHAT, _MIN_ESS = 1.2, 20  # of predictions: chains stay near the modes they began at
_FEWEST = 4  # draws of a chain that can be judged


@dataclass
class NetworkDiagnosis:
    """Findings on the draws of a network's outputs; ``print`` gives a report.

    Attributes
    ----------
    figures : dict of str to ndarray of shape (n_rows, n_outputs)
        R-hat, bulk and tail effective sample size of every output at every row that was judged.
    r_hat, ess : float
        R-hat that 95 % of them are below, and bulk effective sample size that 95 % are above.
    clipped : float
        Share of the steps on which the gradient was bounded.
    problems : list of str
        Reasons not to rely on the draws, each with its figure and its remedy.
    """

    figures: dict[str, Array]
    r_hat: float
    ess: float
    clipped: float
    problems: list[str] = field(default_factory=list)

    @property
    def table(self) -> pd.DataFrame:
        """The figures, indexed by row and output."""
        shape = self.figures["r_hat"].shape
        index = pd.MultiIndex.from_product([range(size) for size in shape], names=["row", "output"])
        return pd.DataFrame({k: v.ravel() for k, v in self.figures.items()}, index=index)

    @property
    def usable(self) -> bool:
        """Whether the draws can be relied on."""
        return not self.problems

    def __str__(self) -> str:
        """Report of several lines."""
        verdict = "usable: no problem was found." if self.usable else "NOT usable:"
        n_rows = len(self.figures["r_hat"])
        lines = [
            f"The draws are {verdict}",
            *(f"  * {problem}" for problem in self.problems),
            "",
            f"  Of the predictions at {n_rows} rows, 95 % have",
            f"  {'R-hat below':34s}{self.r_hat:10.3f}",
            f"  {'bulk effective sample size above':34s}{self.ess:10.0f}",
            f"  {'steps with a bounded gradient':34s}{self.clipped:10.1%}",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """One line; ``print`` gives the report."""
        return f"NetworkDiagnosis(usable={self.usable}, {len(self.problems)} problems)"

    def warn(self) -> None:
        """Warn the user who called ``fit``, where there are problems."""
        if self.problems:
            warn_of(self.problems)


def diagnose_outputs(
    outputs: Array,
    clipped: float,
    shift_invariant: bool = False,
    stopped_by: Choice | None = None,
) -> NetworkDiagnosis:
    """Diagnosis from draws of the network's outputs ``(C, S, rows, K)``.

    Where a number that is added to all outputs of a row changes nothing, they are judged without
    their mean, which only the prior holds. ``stopped_by`` is what ended the run, where something
    else than the number of draws could.
    """
    if shift_invariant:
        outputs = outputs - outputs.mean(axis=3, keepdims=True)
    n_chains, n_draws, n_rows, n_outputs = outputs.shape
    flat = outputs.reshape(n_chains, n_draws, -1)
    figures: dict[str, Array] = {
        name: np.full(flat.shape[2], np.nan) for name in ("r_hat", "ess_bulk", "ess_tail")
    }
    if n_draws >= _FEWEST:
        figures = {
            "r_hat": potential_scale_reduction(flat),
            "ess_bulk": effective_sample_size(flat),
            "ess_tail": effective_sample_size(flat, "tail"),
        }
    figures = {name: values.reshape(n_rows, n_outputs) for name, values in figures.items()}
    r_hat = pd.Series(figures["r_hat"].ravel()).quantile(1.0 - _TAIL)  # those that are not a number
    ess = pd.Series(figures["ess_bulk"].ravel()).quantile(_TAIL)  # are left out
    found = NetworkDiagnosis(figures, float(r_hat), float(ess), clipped)
    found.problems = _problems(found, n_draws, stopped_by)
    return found


def _problems(found: NetworkDiagnosis, n_draws: int, stopped_by: Choice | None) -> list[str]:
    more = None if stopped_by is None else EARLY_ENDS.get(stopped_by.value)
    if n_draws < _FEWEST:
        return [f"{n_draws} draws a chain are too few to judge" + (f"; {more}" if more else "")]
    problems = cap_problem(stopped_by)
    if found.r_hat > _MAX_RHAT:
        problems.append(
            f"R-hat of the predictions is {found.r_hat:.2f}, above {_MAX_RHAT}: the chains do not "
            f"agree; {more or 'raise thin, n_burnin or n_chains'}"
        )
    elif found.ess < _MIN_ESS:
        problems.append(
            f"the effective sample size of the predictions is {found.ess:.0f}, below {_MIN_ESS}; "
            f"{more or 'raise thin or n_draws'}"
        )
    if found.clipped > THRESHOLDS.told_clipped:
        problems.append(
            f"the gradient was bounded on {found.clipped:.1%} of the steps; set step_size='auto', "
            "or lower it"
        )
    return problems
