"""Diagnosis of a network's draws: chains are compared by their predictions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from skbayes_sgld._typing import Array
from skbayes_sgld.diagnostics import (
    NOT_CONVERGED,
    effective_sample_size,
    potential_scale_reduction,
)
from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.inference.diagnosis import EARLY_ENDS, Judgement, as_report, cap_problem
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

_TAIL = 0.05  # share of the predictions that may be worse
_MAX_RHAT, _MIN_ESS = 1.2, 20  # limits of predictions: a chain stays near one mode


@dataclass(repr=False)
class NetworkDiagnosis(Judgement):
    """Findings on the draws of a network's outputs; it shows itself as a report.

    Attributes
    ----------
    figures : dict of str to ndarray of shape (n_rows, n_outputs)
        R-hat, bulk and tail effective sample size of every output at every row that was judged.
    r_hat, ess : float
        R-hat that 95 % of the outputs are below, and bulk effective sample size that 95 % are
        above.
    clipped : float
        Share of the steps on which the gradient was bounded.
    own_pull : tuple or None
        Own parameter of the likelihood (a dispersion, a gap) that its prior moves most, the setting
        that is this prior, and the move in posterior sds. Beyond 2 sds the report has a note.
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

    def _report_on_draws(self) -> str:
        n_rows = len(self.figures["r_hat"])
        lines = [
            *self._verdict(),
            "",
            f"  Of the predictions at {n_rows} rows, 95 % have",
            f"  {'R-hat below':34s}{self.r_hat:10.3f}",
            f"  {'bulk effective sample size above':34s}{self.ess:10.0f}",
            f"  {'steps with a bounded gradient':34s}{self.clipped:10.1%}",
        ]
        return as_report(lines)


def diagnose_outputs(
    outputs: Array,
    clipped: float,
    shift_invariant: bool = False,
    stopped_by: Choice | None = None,
) -> NetworkDiagnosis:
    """Diagnosis of draws of the network's outputs ``(C, S, rows, K)``.

    With ``shift_invariant``, adding a number to all outputs of a row leaves the likelihood as it
    is: the outputs are judged less their mean, which the prior alone holds. ``stopped_by`` is the
    reason why the run ended, if not by the number of draws.
    """
    if shift_invariant:
        outputs = outputs - outputs.mean(axis=3, keepdims=True)
    n_chains, n_draws, n_rows, n_outputs = outputs.shape
    flat = outputs.reshape(n_chains, n_draws, -1)
    figures: dict[str, Array] = {
        "r_hat": potential_scale_reduction(flat),
        "ess_bulk": effective_sample_size(flat),
        "ess_tail": effective_sample_size(flat, "tail"),
    }
    figures = {name: values.reshape(n_rows, n_outputs) for name, values in figures.items()}
    # pandas leaves NaN out
    r_hat = pd.Series(figures["r_hat"].ravel()).quantile(1.0 - _TAIL)
    ess = pd.Series(figures["ess_bulk"].ravel()).quantile(_TAIL)
    more = None if stopped_by is None else EARLY_ENDS.get(stopped_by.value)
    problems = cap_problem(stopped_by)
    if n_draws < 4:
        few = f"{n_draws} draws a chain are too few to judge"
        problems.append(f"{few}; {more}" if more else few)
    elif r_hat > _MAX_RHAT:
        problems.append(
            f"{NOT_CONVERGED}: R-hat of the predictions is {r_hat:.2f}, above {_MAX_RHAT}; "
            f"{more or 'raise thin, n_burnin or n_chains'}"
        )
    elif ess < _MIN_ESS:
        problems.append(
            f"the effective sample size of the predictions is {np.floor(ess):.0f}, below "
            f"{_MIN_ESS}; {more or 'raise thin or n_draws'}"
        )
    if clipped > THRESHOLDS.warn_clipped:
        problems.append(
            f"the gradient was bounded on {clipped:.1%} of the steps; set step_size='auto', "
            "or lower it"
        )
    return NetworkDiagnosis(figures, float(r_hat), float(ess), clipped, problems)
