"""How the network estimators fit: by Langevin dynamics from several modes, or by a normal law."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld._components import check_number
from skbayes_sgld.diagnostics import effective_sample_size, potential_scale_reduction
from skbayes_sgld.estimators.base import Array
from skbayes_sgld.estimators.network import NetworkEstimator
from skbayes_sgld.inference.diagnosis import MAX_CLIPPED
from skbayes_sgld.posterior.mlp import MLPPosterior
from skbayes_sgld.sampling import (
    SGLD,
    Adam,
    ChainOverflowError,
    Constant,
    Dynamics,
    Full,
    Identity,
    Matrix,
    Minibatch,
    Run,
    ValueClip,
    run_chains,
)
from skbayes_sgld.sampling.preconditioners.equilibration import equilibrate, row_norms
from skbayes_sgld.sampling.randomness import ChainStreams, start_normals
from skbayes_sgld.variational import BayesByBackprop

_STEP_SIZE = 0.25  # of a step to the centre of the steepest direction
_ALL_ROWS = 2000  # up to here every step takes all
_SHARE = 20  # beyond it, one row in so many
_INFLATION = 0.2  # of the variance in the steepest direction, by minibatches
_CLIMB_STEP = 0.03  # of Adam, in units of the parameters' size
_CLIMB_ROWS = 200
_FROZEN = 1e-6  # the unit of what is not to move
_CLIMB = 1000  # steps to where the normal law begins
_ROUNDS = 10  # of the burn-in, each with a metric of its own
_BOUND = 10.0  # sds of the metric: no gradient is longer where the chain is at home
_WIDTH = 0.1  # sds of the normal law to begin with, in units of the parameters' size
_JUDGED = 50  # rows
_TAIL = 0.05  # of the rows may be worse
_MAX_RHAT, _MIN_ESS = 1.2, 20  # of predictions: chains stay near the modes they began at


def climb(posterior: MLPPosterior, n_chains: int, n_steps: int, seed: int) -> Array:
    """Return where Adam comes to from random networks ``(C, P)``: nearly a mode a chain.

    The noise stays that of y: it would follow the residuals to nothing, from where a chain does
    not come back for long.
    """
    n, P = posterior.n_samples, posterior.n_params
    unit = posterior.unit
    unit[posterior.network.n_params :] = _FROZEN
    metric = Matrix(np.square(unit)).bind(P, None)
    run = Run(
        Adam(),
        Dynamics(Minibatch(replacement=False).bind(posterior, None), metric),
        Constant(),
        _CLIMB_STEP,
        n,
        min(_CLIMB_ROWS, n),
        replacement=False,
    )
    start = posterior.random_start(start_normals(seed, range(n_chains), P))
    return run_chains(run, start, n_draws=1, thin=n_steps, seed=seed).draws[:, 0]


class SGLDNetwork(NetworkEstimator):
    """A network whose posterior is sampled by Langevin dynamics, from a mode a chain."""

    step_size: Any
    temperature: Any
    batch_size: Any
    n_draws: Any
    n_burnin: Any
    thin: Any
    n_chains: Any

    def _draw(self, posterior: MLPPosterior, seed: int) -> Array:
        for name in ("n_draws", "n_burnin", "thin", "n_chains"):
            check_number(getattr(self, name), name, low=1, closed="left", integer=True)
        check_number(self.temperature, "temperature", low=0)
        run, norms = self._make_run(posterior), None
        try:
            theta = climb(posterior, self.n_chains, self.n_burnin, seed)
            for number in range(1, _ROUNDS + 1):
                run.dynamics, norms = _adapt(run.dynamics, theta, norms, seed + number)
                length = -(-self.n_burnin // _ROUNDS)
                theta = run_chains(run, theta, n_draws=1, thin=length, seed=seed + number).draws[
                    :, 0
                ]
            seed += _ROUNDS + 1
            run.dynamics, _ = _adapt(run.dynamics, theta, norms, seed)
            chains = run_chains(run, theta, n_draws=self.n_draws, thin=self.thin, seed=seed)
        except ChainOverflowError as error:
            raise ValueError(
                f"step_size={run.step_size:g}: chain {error.chain} overflowed in "
                f"{posterior.param_names[error.parameter]}; set step_size='auto', or lower it."
            ) from None
        self.clipped_fraction_ = float(chains.clipped.mean())
        return chains.draws

    def _make_run(self, posterior: MLPPosterior) -> Run:
        n, tau = posterior.n_samples, float(self.temperature)
        batch_size = self._resolve_auto("batch_size", low=1, closed="left", integer=True)
        if batch_size is None:
            batch_size = n if n <= _ALL_ROWS else max(_ALL_ROWS, n // _SHARE)
        elif batch_size > n:
            raise ValueError(
                f"batch_size={batch_size} is larger than the {n} rows, and the batches are drawn "
                f"without replacement; give at most {n}."
            )
        step_size = self._resolve_auto("step_size", low=0)
        if step_size is None:
            # minibatches add eta n / (2 B tau) to the variance where the data decide it
            step_size = _STEP_SIZE
            if batch_size < n:
                step_size = min(step_size, 2.0 * _INFLATION * tau * batch_size / n)
        self.step_size_, self.batch_size_ = float(step_size), int(batch_size)
        gradient = Full() if batch_size == n else Minibatch(replacement=False)
        identity = Identity().bind(posterior.n_params, None)
        return Run(
            SGLD("leimkuhler_matthews"),
            Dynamics(gradient.bind(posterior, None), identity, temperature=tau),
            Constant(),
            self.step_size_,
            n,
            None if batch_size == n else self.batch_size_,
            replacement=False,
        )

    def _warn(self, posterior: MLPPosterior, theta: Array) -> None:
        rows = np.linspace(0, posterior.n_samples - 1, min(_JUDGED, posterior.n_samples))
        outputs = posterior.predict(
            theta.reshape(-1, theta.shape[2]), posterior.X[rows.astype(int)]
        )
        outputs = outputs[:, : posterior.likelihood.n_predictors].reshape(*theta.shape[:2], -1)
        problems = function_problems(outputs)
        if self.clipped_fraction_ > MAX_CLIPPED:
            problems.append(
                f"the gradient was bounded on {self.clipped_fraction_:.1%} of the steps; set "
                "step_size='auto', or lower it"
            )
        if problems:
            warnings.warn(
                f"The draws are not to be relied on: {'; '.join(problems)}.",
                ConvergenceWarning,
                stacklevel=4,
            )


def _adapt(
    dynamics: Dynamics, theta: Array, norms: Array | None, seed: int
) -> tuple[Dynamics, Array]:
    """Return the dynamics with the metric of where the chains are, and its norms.

    Half of the norms are those of before: one place says little of the posterior.
    """
    posterior = dynamics.gradient.posterior
    assert isinstance(posterior, MLPPosterior)
    gradient = _probe_gradient(posterior, len(theta), seed)
    here = row_norms(gradient, theta, posterior.marginal_sd, seed)
    norms = here if norms is None else 0.5 * (norms + here)
    metric = equilibrate(gradient, theta, posterior.marginal_sd, norms)
    bound = _BOUND * np.sqrt(max(dynamics.temperature, 1.0)) / metric.roots
    return replace(dynamics, preconditioner=metric, clip=ValueClip(bound)), norms


def _probe_gradient(posterior: MLPPosterior, n_chains: int, seed: int) -> Callable[[Array], Array]:
    """Return the gradient, from the same part of the rows at every call where there are many."""
    n = posterior.n_samples
    if n <= _ALL_ROWS:
        return posterior.grad
    rows = [ChainStreams(seed, c).rows(1, n, _ALL_ROWS, False)[0] for c in range(n_chains)]
    idx = np.stack(rows)

    def gradient(theta: Array) -> Array:
        likelihood = posterior.grad_log_likelihood(theta, idx) * (n / _ALL_ROWS)
        return likelihood + posterior.grad_log_prior(theta)

    return gradient


def function_problems(outputs: Array) -> list[str]:
    """Return what is wrong with draws of the network's outputs ``(C, S, rows)``."""
    if outputs.shape[1] < 4:
        return [f"{outputs.shape[1]} draws a chain are too few to judge"]
    problems = []
    r_hat = float(np.nanquantile(potential_scale_reduction(outputs), 1.0 - _TAIL))
    ess = float(np.nanquantile(effective_sample_size(outputs), _TAIL))
    if r_hat > _MAX_RHAT:
        problems.append(
            f"R-hat of the predictions is {r_hat:.2f}, above {_MAX_RHAT}: the chains do not agree; "
            "raise thin, n_burnin or n_chains"
        )
    elif ess < _MIN_ESS:
        problems.append(
            f"the effective sample size of the predictions is {ess:.0f}, below {_MIN_ESS}; "
            "raise thin or n_draws"
        )
    return problems


class BackpropNetwork(NetworkEstimator):
    """A network whose posterior is approximated by a normal law with independent weights."""

    step_size: Any
    max_iter: Any
    n_particles: Any
    batch_size: Any
    n_draws: Any

    def _draw(self, posterior: MLPPosterior, seed: int) -> Array:
        check_number(self.n_draws, "n_draws", low=1, closed="left", integer=True)
        batch_size = self._resolve_auto("batch_size", low=1, closed="left", integer=True)
        if batch_size is None and posterior.n_samples > _ALL_ROWS:
            batch_size = _CLIMB_ROWS
        q = BayesByBackprop(
            step_size=self.step_size,
            max_iter=self.max_iter,
            n_particles=self.n_particles,
            batch_size=batch_size,
            random_state=seed,
        )
        q.fit(posterior, climb(posterior, 1, _CLIMB, seed)[0], _WIDTH * posterior.unit)
        self.elbo_, self.elbo_steps_, self.n_iter_ = q.elbo_, q.elbo_steps_, q.max_iter
        return q.sample(self.n_draws, seed)[None]
