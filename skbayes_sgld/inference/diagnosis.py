"""Diagnosis of the draws: figures, problems with their remedies, and a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import Any, Self

import numpy as np
import pandas as pd

from skbayes_sgld.inference.choices import Choice
from skbayes_sgld.posterior.base import Array, BasePosterior
from skbayes_sgld.posterior.conflict import PriorConflict
from skbayes_sgld.sampling.base import Schedule
from skbayes_sgld.sampling.schedules import Constant
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

NORMAL_SHIFT, NORMAL_WIDTH = 0.1, 0.05  # in sds; within both, the Laplace approximation is good

# reasons for a run to end before its last draw, with the remedy of each
EARLY_ENDS = {"max_time": "raise max_time", "callback": "let the callback stop later"}


class Judgement:
    """Base of diagnoses: whether the draws are usable.

    Attributes
    ----------
    problems : list of str
    model_check : ModelCheck or None
        Check of the model, if the estimator's ``diagnose`` had the rows.
    """

    problems: list[str]
    model_check: Any = None
    _of_estimator = False  # whether the report has a second part about the model

    @property
    def usable(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """Verdict on the draws, as in the report: "usable" or "not usable"."""
        return "usable" if self.usable else "not usable"

    def with_model_check(self, check: Any) -> Self:
        """Diagnosis with a check of the model, or with a line that there was none."""
        diagnosis = copy(self)
        diagnosis.model_check, diagnosis._of_estimator = check, True
        return diagnosis

    def __repr__(self) -> str:
        """Report."""
        parts = [self._report_on_draws()]
        if self._of_estimator:
            missing = "Does the model fit? not checked: give the rows of the fit, X and y."
            parts.append(missing if self.model_check is None else str(self.model_check))
        return "\n\n".join(parts)

    def _report_on_draws(self) -> str:
        raise NotImplementedError

    def renamed(self, rename: Callable[[str], str]) -> Self:
        """Diagnosis with ``rename`` applied to all texts; it puts in the names of columns."""
        return self

    def _verdict(self) -> list[str]:
        """First lines of the report."""
        found = "" if self.problems else " no problem was found."
        answer = f"Did the sampler work? {self.verdict}:{found}"
        return [answer, *(f"  * {problem}" for problem in self.problems)]


@dataclass(repr=False)
class Diagnosis(Judgement):
    """Diagnosis of the draws of a fit; it prints as a report.

    Attributes
    ----------
    table : pandas.DataFrame
        Summary by parameter, with the Monte Carlo standard errors of mean and sd in units of the
        sd (``error_mean``, ``error_sd``).
    noise_ratio : float
        alpha, the ratio of the variance of minibatch noise to that of the injected noise, in the
        direction in which it is largest (Welling & Teh 2011, Section 4.2). Posterior variances
        grow by the factor 1 + alpha; if alpha is small, standard deviations grow by half of it.
    bias, bias_error : float
        Largest bias of the step size (means in posterior sds, sds relative), with twice its
        standard error. If no pilot has measured it, the bias of the draws' sds, which includes the
        effect of minibatch noise.
    halved_bias : float
        Bias at half the step size; if it is much smaller, shorter steps help.
    acceptance : float
        Mean Metropolis acceptance of the chains' transitions; if the sampler accepts all, of Euler
        transitions from the draws. nan if the data were not kept: after pickling, and with more
        than four million numbers in X.
    shift, width : float
        Distance from the Laplace approximation in the worst parameter: mean in sds, sd relative.
    clipped : float
        Share of the steps on which the gradient was clipped.
    divergent : list of int
        Numbers of the chains that stayed far from the mode.
    conflict : PriorConflict or None
        Conflict of the prior of the coefficients with the data. ``probability``: that data drawn
        from the prior are at least as far from it (Evans & Moshonov 2006). ``distance``: of each
        coefficient from the prior's centre, in sds (Box 1980). ``pull``: how far the prior moves
        each coefficient from the maximum likelihood estimate, in posterior sds. None if the scale
        is learned or the data were not kept. Notes report a low probability with a visible pull,
        for a scale that was given; and for any scale a pull of more than 2 sds, and coefficients
        that the data alone do not determine.
    own_pull : tuple or None
        Own parameter of the likelihood, such as a dispersion, that its prior moves most, the
        setting of this prior, and the move in posterior sds. A note reports more than 2 sds.
    problems : list of str
        Reasons not to rely on the draws, each with its figure and its remedy.
    notes : list of str
        Remarks that do not make the draws unusable: a schedule that violates Condition 27, a prior
        far from the data, few rows under a wide prior.
    bfmi, diverged : float
        For Hamiltonian trajectories: the energy's fraction of missing information (E-BFMI,
        Betancourt 2016), 0.5 for a normal posterior, and the share that diverged. A low fraction
        with divergences shows a funnel whose narrow part chains miss. nan and 0 for other
        samplers.
    tested : bool
        Whether the sampler accepts or rejects.
    """

    table: pd.DataFrame
    noise_ratio: float
    bias: float
    bias_error: float
    halved_bias: float
    acceptance: float
    shift: float
    width: float
    clipped: float
    divergent: list[int] = field(default_factory=list)
    conflict: PriorConflict | None = None
    own_pull: tuple[str, str, float] | None = None
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bfmi: float = np.nan
    diverged: float = 0.0
    tested: bool = False

    def renamed(self, rename: Callable[[str], str]) -> Self:
        """Diagnosis with ``rename`` applied to all texts; it puts in the names of columns."""
        conflict = self.conflict
        if conflict is not None:
            conflict = replace(conflict, names=[rename(name) for name in conflict.names])
        return replace(
            self,
            table=self.table.rename(index=rename),
            conflict=conflict,
            problems=[rename(problem) for problem in self.problems],
            notes=[rename(note) for note in self.notes],
        )

    def _report_on_draws(self) -> str:
        table = self.table
        near = abs(self.shift) <= NORMAL_SHIFT and abs(self.width) <= NORMAL_WIDTH
        normality = "a normal approximation would do" if near else "not normal: the samples matter"
        if not self.usable:  # the draws themselves may be far from the posterior
            normality = ""
        halved = "" if np.isnan(self.halved_bias) else f"; {self.halved_bias:.1%} at half of it"
        wider = f"an sd is {np.sqrt(1.0 + self.noise_ratio) - 1.0:.1%} too wide at most"
        pull, pulled = np.nan, ""
        if self.conflict is not None:
            worst, pull = self.conflict.furthest
            alone = "" if np.isfinite(pull) else ": not determined by the data"
            pulled = self.conflict.names[worst] + alone
        energy = []
        if not np.isnan(self.bfmi):  # a sampler with trajectories
            energy = [
                _figure("energy: E-BFMI", self.bfmi, ".2f"),
                _figure("trajectories that diverged", self.diverged, ".1%"),
            ]
        acceptance = "acceptance" if self.tested else "acceptance, were steps tested"
        no_data, no_mode = ": the data were not kept", ": no mode was looked for"
        lines = [
            *self._verdict(),
            *(f"  Note: {note}" for note in self.notes),
            "",
            _line("R-hat", "r_hat", table, largest=True, fmt=".3f"),
            _line("bulk effective sample size", "ess_bulk", table, largest=False, fmt=".0f"),
            _line("tail effective sample size", "ess_tail", table, largest=False, fmt=".0f"),
            _line("standard error of a mean, in sds", "error_mean", table, largest=True, fmt=".3f"),
            _line("standard error of an sd, relative", "error_sd", table, largest=True, fmt=".3f"),
            _figure("minibatch over injected noise", self.noise_ratio, ".3f", wider),
            _figure("bias of the step size", self.bias, ".1%", f"+- {self.bias_error:.1%}{halved}"),
            _figure(acceptance, self.acceptance, ".2f", "", no_data),
            *energy,
            _figure("steps with a clipped gradient", self.clipped, ".1%"),
            _figure("divergent chains", len(self.divergent), "d"),
            _figure("mean from the mode, in sds", self.shift, ".2f", normality, no_mode),
            _figure("sd over that at the mode, less 1", self.width, ".1%", "", no_mode),
            _figure("largest pull of the prior, in sds", pull, ".2f", pulled),
        ]
        if self.own_pull is not None:
            name, argument, move = self.own_pull
            label = f"largest pull of {argument}, in sds"
            lines.append(_figure(label, abs(move), ".2f", name))
        return as_report(lines)


def as_report(lines: Iterable[str]) -> str:
    """Text wrapped to 100 columns."""
    wrapped = (wrap(line, 100, subsequent_indent="    ") for line in lines)
    return "\n".join("\n".join(several) for several in wrapped)


def _figure(label: str, value: float, fmt: str, about: str = "", why_not: str = "") -> str:
    """Line of a figure; a figure of nan was not measured."""
    if np.isnan(value):
        return f"  {label:46s}not measured{why_not}"
    return f"  {label:34s}{value:>10{fmt}}  {about}"


def _line(label: str, column: str, table: pd.DataFrame, *, largest: bool, fmt: str) -> str:
    values = table[column]
    name = (values.idxmax() if largest else values.idxmin()) if values.notna().any() else ""
    value = values.max() if largest else values.min()
    return f"  {label:34s}{format(value, '>10' + fmt)}  {name}"


def condition_27_notes(schedule: Schedule) -> list[str]:
    """Sentence on the part of Condition 27 (Karagiannis, Handout 6) that a schedule violates.

    None for a constant step size, whose bias costs less than meeting the condition.
    """
    if schedule.satisfies_condition_27 is not False:
        return []
    power = schedule.decay_power
    if power > 1.0:
        broken = (
            "the sum of its steps is finite: the longer the chains run, the less they move, and "
            "they may stop short of the posterior"
        )
    elif power > 0.0:
        broken = (
            "the sum of its squared steps is infinite: weighted averages still converge, as the "
            "steps vanish, but not fast enough for the condition"
        )
    else:
        broken = (
            "the sum of its squared steps is infinite: the steps do not vanish, and neither does "
            "the bias given below"
        )
    met = "Harmonic(), and Polynomial() of a power in (0.5, 1], meet it."
    advice = "" if isinstance(schedule, Constant) else f" {met}"
    return [
        f"schedule={schedule!r} breaks Condition 27 of Karagiannis, Handout 6; {broken}.{advice}"
    ]


def prior_notes(conflict: PriorConflict | None) -> list[str]:
    """Sentences on a prior that contradicts or dominates the data, and on few rows."""
    if conflict is None:
        return []
    notes, (worst, pull) = [], conflict.furthest
    name, loose = conflict.names[worst], int(np.isinf(conflict.pull).sum())
    # improbable data are not reported unless the prior pulls too (in posterior sds)
    far = conflict.probability < 1e-3 and pull > 1.0
    if far and not conflict.from_data:
        worst = int(np.abs(conflict.distance).argmax())
        notes.append(
            "prior and data disagree: data this far from the prior's centre have a probability of "
            f"{conflict.probability:.1g}. {conflict.names[worst]} is "
            f"{abs(conflict.distance[worst]):.3g} sds from it; give the prior a larger scale, or "
            "scale='auto', which is in the units of the columns and of y."
        )
    elif loose:
        others = f" and {loose - 1} more coefficients" * (loose > 1)
        notes.append(
            f"the data alone do not determine {name}{others}: columns depend on each other, rows "
            "are too few, or classes are separated. How large these are comes from the prior too; "
            "see how they change under another scale."
        )
    # at most 1.9 in default fits with at least six rows per column and no nearly dependent columns
    elif pull > 2.0:
        notes.append(
            f"the prior moves {name} by {pull:.3g} posterior sds from its estimate without a "
            "prior, as where columns are nearly dependent or rows are few; prior='flat' shows "
            "what the data say alone."
        )
    rows = conflict.n_rows / max(conflict.effective, 1.0)
    if rows < THRESHOLDS.warn_rows:
        notes.append(
            f"{conflict.n_rows:.0f} rows for {conflict.effective:.3g} coefficients that the prior "
            f"leaves to the data: with fewer than {THRESHOLDS.warn_rows:.0f} for each, intervals "
            "depend on the priors; give the coefficients a smaller scale, or let it be learned "
            "(prior='hierarchical_normal')."
        )
    return notes


def own_prior_notes(pull: tuple[str, str, float] | None) -> list[str]:
    """Sentence on a prior that determines a parameter of the likelihood."""
    if pull is None or abs(pull[2]) <= 2.0:
        return []
    name, argument, move = pull
    return [
        f"{argument} moves {name} by {move:.3g} posterior sds from its estimate without this "
        f"prior; {argument}='half_student_t' shows another."
    ]


def describe_point(posterior: BasePosterior, theta: Array) -> str:
    """Values of the first five parameters at ``theta (P,)``, by name."""
    values = posterior.reported.values(theta[None])[0, :5]
    pairs = zip(posterior.reported.names, values, strict=False)
    return ", ".join(f"{name}={value:.3g}" for name, value in pairs)


def firmer_priors(n_rows: float, names: list[str]) -> str:
    """Clause that recommends narrower priors, if rows are few for the named parameters."""
    if not 0 < n_rows < THRESHOLDS.warn_rows * len(names):
        return ""
    few = f"; or, as {n_rows:.0f} rows say little of {len(names)} parameters, give"
    if any(name.startswith("noise_coef[") for name in names):
        return f"{few} the noise's slopes a prior of less scale, LogLinearNoise(scale=...)"
    # chains of a learned scale mix badly then, and a model with effects of groups takes none
    if any(name == "degrees_of_freedom" or name.startswith("sd[") for name in names):
        return f"{few} the coefficients a prior of less scale"
    if any(name.startswith("coef[") for name in names):
        return f"{few} the coefficients a prior of less scale, or prior='hierarchical_normal'"
    return ""


def rows_of_own_noise(names: list[str]) -> str:
    """Clause that recommends what to do about a noise that few rows determine, if it may be so."""
    if not any(name.startswith("noise_coef[") for name in names):
        return ""
    return (
        "few rows, far out or of large weights, may determine a noise of their own: leave these "
        "out, or set noise_model='constant'"
    )


def cap_problem(stopped_by: Choice | None) -> list[str]:
    """Sentence on a run that did not reach ``target_ess`` with ten times ``n_draws``."""
    if stopped_by is None or stopped_by.value != "cap":
        return []
    return [f"{stopped_by.why}; raise n_draws, or lower target_ess"]
