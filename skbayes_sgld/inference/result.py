"""The result of a run of chains: the draws, their plan, and their diagnosis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skbayes_sgld._checks import check_number
from skbayes_sgld._doors import Door
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._random import as_random_state
from skbayes_sgld._timings import Timings
from skbayes_sgld._typing import Array
from skbayes_sgld.diagnostics import are_random_walks, summarize
from skbayes_sgld.inference.choices import Choice, as_line, as_table
from skbayes_sgld.inference.diagnosis import (
    Diagnosis,
    Judgement,
    condition_27_notes,
    own_prior_notes,
    prior_notes,
)
from skbayes_sgld.inference.energy import Energy, energy_of
from skbayes_sgld.inference.plan import Plan
from skbayes_sgld.posterior.conflict import own_pull, prior_conflict
from skbayes_sgld.sampling.samplers.mala import transition_acceptance
from skbayes_sgld.sampling.tuning.mode import Mode
from skbayes_sgld.sampling.tuning.step_bias import step_bias

_TO_XARRAY = Door("skbayes_sgld.arviz.draws", "to_xarray")
_TO_ARVIZ = Door("skbayes_sgld.arviz.draws", "to_arviz")


@numpy_defaults
@dataclass(repr=False, eq=False)
class PosteriorDraws:
    """Draws from a posterior ``(chain, draw, parameter)``: a mapping from names to draws.

    ``in``, iteration, ``len``, ``keys`` and ``dict`` use the names of the parameters; ``values`` is
    the array of all draws.

    Attributes
    ----------
    values : ndarray of shape (n_chains, n_draws, n_params)
    names : list of str
    weights : ndarray of shape (n_draws,) or None
        Weights of the draws; in a fit their mean is 1. None if all are equal.
    choices : dict of str to Choice
        Value of every setting, and the reason for it.
    coords : dict of str to list of str
        Labels of the parameters' dimensions: ``"feature"`` and ``"class"``.
    variables : dict of str to dict of str to tuple of str
        Where parameters that share a name are several variables of :meth:`to_xarray`: these in
        their order, each with its dimensions.

    Examples
    --------
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.datasets import make_correlated_pair
    >>> X, y = make_correlated_pair(random_state=0)
    >>> model = SGLDLinearRegression(random_state=0).fit(X, y)
    >>> model.posterior_
    PosteriorDraws(4 chains x 1000 draws of coef[x0], intercept, noise_variance;
    prior=normal, sampler=Direct(), step_size=1, schedule=Constant(), temperature=1,
    gradient=Full(), batch_size=None, preconditioner=Curvature(), parameterization=noncentered,
    clip=None, init=mode, n_burnin=10, thin=1)
    >>> model.posterior_["intercept"].shape
    (4, 1000)
    >>> model.posterior_["coef"].shape  # of all columns
    (4, 1000, 1)
    >>> list(model.posterior_)
    ['coef[x0]', 'intercept', 'noise_variance']
    """

    values: Array
    names: list[str]
    weights: Array | None = None
    choices: dict[str, Choice] = field(default_factory=dict)
    coords: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    variables: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        """Draws of one parameter ``(n_chains, n_draws)``, or of all that share a name.

        ``["coef[age]"]`` is one coefficient; ``["coef"]`` has all of them, in order, on a third
        axis.
        """
        if name in self.names:
            return self.values[..., self.names.index(name)]
        indexed = [k for k, own in enumerate(self.names) if own.startswith(f"{name}[")]
        if not indexed:
            raise KeyError(f"{name!r} is not a parameter; there are {', '.join(self._listed())}.")
        return self.values[..., indexed]

    def __contains__(self, name: object) -> bool:
        """Whether a parameter has this name, or several share it."""
        return name in self.names or any(own.startswith(f"{name}[") for own in self.names)

    def __iter__(self) -> Iterator[str]:
        """Iterator over the parameters' names."""
        return iter(self.names)

    def keys(self) -> list[str]:
        """The parameters' names."""
        return self.names

    def __len__(self) -> int:
        """Number of parameters."""
        return len(self.names)

    def _listed(self) -> list[str]:
        """Names of the parameters; with many, without those in the middle."""
        return self.names if len(self.names) <= 6 else [*self.names[:3], "...", *self.names[-2:]]

    def __repr__(self) -> str:
        """Number of draws, names of the parameters, and every setting."""
        n_chains, n_draws, _ = self.values.shape
        what = f"{n_chains} chains x {n_draws} draws of {', '.join(self._listed())}"
        how = f"; {as_line(self.choices)}" if self.choices else ""
        return f"{type(self).__name__}({what}{how})"

    @property
    def flat(self) -> Array:
        """Draws of all chains ``(n_chains * n_draws, n_params)``, one row for each draw."""
        return self.values.reshape(-1, self.values.shape[2])

    @property
    def flat_weights(self) -> Array | None:
        """Weights of :attr:`flat`, or None."""
        return None if self.weights is None else np.tile(self.weights, self.values.shape[0])

    def to_frame(self) -> pd.DataFrame:
        """Table of the draws, indexed by chain and draw."""
        n_chains, n_draws, _ = self.values.shape
        index = pd.MultiIndex.from_product([range(n_chains), range(n_draws)])
        return pd.DataFrame(self.flat, columns=self.names, index=index.set_names(["chain", "draw"]))

    def to_xarray(self) -> Any:
        """Data set of the draws, with dimensions ``chain``, ``draw``, ``feature`` and ``class``.

        It needs the extra ``arviz``.

        Returns
        -------
        draws : xarray.Dataset
            A variable for all parameters that share a name: ``coef`` of ``coef[age]``,
            ``coef[bmi]``, .... Its ``attrs`` have the settings, as text.
        """
        return _TO_XARRAY.open()(self)

    def summary(self, coverage: float = 0.9) -> pd.DataFrame:
        """Summary table of the posterior, one row for each parameter.

        Parameters
        ----------
        coverage : float, default=0.9
            Probability of the equal-tailed credible interval, in (0, 1).

        Returns
        -------
        table : pandas.DataFrame
            Mean, sd, bulk and tail effective sample size, R-hat, the Monte Carlo standard errors of
            mean and sd (the latter is infinite if tails are too heavy to estimate it), and the
            ends of the interval. ``attrs`` has the value of every setting by its name, and under
            ``"plan"`` a table of the values and their reasons.
        """
        check_number(coverage, "coverage", low=0, high=1)
        table = summarize(self.values, self.names, self.weights, coverage)
        if self.choices:
            table.attrs.update({name: choice.value for name, choice in self.choices.items()})
            table.attrs["plan"] = as_table(self.choices)
        return table

    def choose(self, n_samples: int | None = None, random_state: Any = 0) -> Array:
        """Indices in :attr:`flat` of ``n_samples`` draws, chosen by weight; None: all."""
        weights, total = self.flat_weights, len(self.flat)
        if weights is None and n_samples is None:
            return np.arange(total)
        size = total if n_samples is None else n_samples
        shares = None if weights is None else weights / weights.sum()
        rng = as_random_state(random_state)
        return rng.choice(total, size, replace=shares is not None or size > total, p=shares)


@numpy_defaults
@dataclass(repr=False, eq=False, kw_only=True)
class SamplingResult(PosteriorDraws):
    """Draws from a posterior with their plan and diagnosis; :func:`sample` returns it.

    Attributes
    ----------
    values, names, weights, choices, coords, variables : object
        As in :class:`PosteriorDraws`.
    plan : Plan
        Plan of the run; ``print(result.plan)`` is a table. The data are not pickled with it.
    theta : ndarray of shape (n_chains, n_draws, n_params)
        Draws in the coordinates that were sampled.
    mean : ndarray of shape (n_params,)
        Weighted mean of each parameter.
    positions : ndarray of shape (n_chains, n_params)
        Last positions of the chains, as reported parameters.
    clipped : float
        Share of the steps on which the gradient was clipped.
    acceptance : float or None
        Acceptance rate; None if the sampler accepts every step.
    noise_ratio : float
        Ratio of the variance of minibatch noise to that of the injected noise.
    kick : float
        Distance, in posterior sds, by which a single row of a batch moves a chain, at most.
    bias : tuple of float
        Largest bias of the step size (means in sds, sds relative), with twice its standard error.
    undefined : tuple of float and str
        Share of the proposals without a finite log density, and one of them; if the sampler accepts
        every step, share of the draws.
    diverged : float or None
        Share of the proposals within the support whose energy grew by more than 1,000; None if the
        sampler accepts every step.
    problems : tuple of str
        Reasons not to rely on the draws, each with its figure and its remedy.
    notes : tuple of str
        Reasons not to rely on one figure of the summary.
    predictions : Judgement or None
        Diagnosis of a network's predictions at some training rows; None for other models.
    timings : dict of str to float
        Seconds of the fit by stage: ``"reading"`` (checks, scales and sums of the rows),
        ``"mode"``, ``"pilots"`` (all else that "auto" measures), ``"draws"``, ``"diagnosis"``, the
        ``"screen"`` of the model, and the ``"rest"``.
    has_warned : bool
        Whether predictions from these draws have warned of random walks, which they do once.
    """

    plan: Plan
    theta: Array
    mean: Array
    positions: Array
    clipped: float
    acceptance: float | None
    noise_ratio: float = np.nan
    kick: float = 0.0
    bias: tuple[float, float] = (np.nan, np.nan)
    undefined: tuple[float, str] = (0.0, "")
    diverged: float | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    predictions: Judgement | None = None
    timings: Timings = field(default_factory=dict)
    has_warned: bool = field(default=False, init=False)

    @property
    def draws(self) -> PosteriorDraws:
        """Draws without plan and diagnosis."""
        of_draws = {each.name: getattr(self, each.name) for each in fields(PosteriorDraws)}
        return PosteriorDraws(**of_draws)

    @property
    def mode(self) -> Mode | None:
        """Mode of the posterior and the curvature there; None if no mode was needed."""
        return self.plan.mode

    @property
    def temperature(self) -> float:
        """Temperature of the draws."""
        return self.plan.settings.tau

    @cached_property
    def energy(self) -> Energy:
        """Energy diagnostics of Hamiltonian trajectories, measured when first asked for."""
        return energy_of(self.plan, self.theta, self.diverged)

    @cached_property
    def are_random_walks(self) -> bool:
        """Whether the chains are no better than random walks from their starts.

        It is False if the draws have no problems, and for an ensemble, whose starts are modes.
        """
        ensemble = self.predictions is not None
        return bool(self.problems) and not ensemble and are_random_walks(self.values)

    def to_arviz(self) -> Any:
        """Draws as an ArviZ object; needs the extra ``arviz``.

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            The former with ArviZ before 1.0. It has the groups ``posterior``, as in
            :meth:`PosteriorDraws.to_xarray`, and ``sample_stats``: ``lp``, the log posterior
            density up to a constant in the sampled coordinates, if ``plan`` has data;
            ``step_size``; ``acceptance_rate`` of the whole run, 1 if the sampler accepts every
            step; and ``weight``, if a decaying schedule gives the draws weights, which ArviZ
            ignores.
        """
        return _TO_ARVIZ.open()(self)

    def diagnose(self) -> Judgement:
        """Diagnosis of the draws.

        Returns
        -------
        diagnosis : Diagnosis, or of a network a ``NetworkDiagnosis``
            Prints as a report.
        """
        if self.predictions is not None:
            return self.predictions
        table = self.summary()
        table["error_mean"] = table["mcse_mean"] / table["sd"]
        table["error_sd"] = table["mcse_sd"] / table["sd"]
        conflict = pull = None
        if self.plan.has_data:
            pull = own_pull(self.plan.posterior, self.mean)
            conflict = prior_conflict(self.plan.posterior, self.mean, table["sd"].to_numpy())
        problems, divergent = [*self.problems], self.divergent(10.0)  # in Laplace sds from the mode
        if divergent:
            remedy = "lower step_size" if self.choices["step_size"].given else "raise n_burnin"
            problems.append(f"chains {divergent} stayed far from the mode; {remedy}")
        schedule, exact = self.choices["schedule"].value, self.choices["sampler"].value.exact
        return Diagnosis(
            table,
            self.noise_ratio,
            *self.bias,
            self._halved_bias(),
            self._mean_acceptance(),
            *self.from_laplace(),
            self.clipped,
            divergent,
            conflict,
            pull,
            problems,
            [
                *self.notes,
                *prior_notes(conflict),
                *own_prior_notes(pull),
                *condition_27_notes(schedule) * (not exact),
            ],
            self.energy.bfmi,
            self.energy.diverged,
            exact,
        )

    def _halved_bias(self) -> float:
        """Bias at half the step size; nan without the mode or the data."""
        plan = self.plan
        if not plan.has_data or plan.mode is None:
            return float("nan")
        etas = 0.5 * self._step_sizes
        return step_bias(plan.run, plan.mode, etas, plan.settings.uses_curvature, 0)[0]

    @property
    def _step_sizes(self) -> Array:
        """Step size at each draw ``(n_draws,)``, the same in every chain."""
        n_burnin, thin = (self.choices[name].value for name in ("n_burnin", "thin"))
        steps = n_burnin + thin * np.arange(1, self.values.shape[1] + 1) - 1
        return np.asarray(self.choices["step_size"].value * self.choices["schedule"].value(steps))

    def _mean_acceptance(self) -> float:
        """Mean Metropolis acceptance of the chains' transitions; nan without the data.

        If the sampler accepts every step, that of Euler transitions from some draws.
        """
        if self.acceptance is not None:
            return self.acceptance
        if not self.plan.has_data:
            return float("nan")
        P = self.theta.shape[2]
        flat = self.theta.reshape(-1, P)
        affordable = 5e7 // (max(self.plan.posterior.n_samples, 1) * P)  # multiplications
        size = int(np.clip(affordable, 16, min(256, len(flat))))
        theta = flat[np.linspace(0, len(flat) - 1, size).astype(int)]
        dynamics = self.plan.run.dynamics.for_thread()  # a copy, since it counts clipped gradients
        etas = self._step_sizes
        eta = float(np.average(etas, weights=etas))
        return transition_acceptance(theta, eta, dynamics)

    def from_laplace(self) -> tuple[float, float]:
        """Largest shift of a mean from the mode, and largest relative excess of an sd.

        Both are in sds of the Laplace approximation at the run's temperature; nan without a mode.
        """
        z = self._standardised()
        shift, width = z.mean(axis=(0, 1)), z.std(axis=(0, 1)) - 1.0
        return float(shift[np.abs(shift).argmax()]), float(width[np.abs(width).argmax()])

    def divergent(self, limit: float) -> list[int]:
        """Chains whose mean is more than ``limit`` sds from the mode in any parameter.

        Empty if several modes have mass, since a mean may lie between them.
        """
        if self.mode is None or self.plan.modes:
            return []
        far = np.abs(self._standardised().mean(axis=1)).max(axis=1)
        return np.flatnonzero(~(far <= limit)).tolist()

    def _standardised(self) -> Array:
        if self.mode is None:
            return np.full((1, 1, 1), np.nan)
        sds = self.mode.metric.marginal_sd * np.sqrt(self.temperature)
        return (self.theta - self.mode.theta) / sds

    def __getstate__(self) -> dict[str, Any]:
        """State without the data."""
        return vars(self.without_data())

    def without_data(self) -> SamplingResult:
        """Result without the data, which parts of the diagnosis need."""
        result = replace(self, plan=self.plan.without_data())
        result.energy = self.energy  # it cannot be measured later
        return result
