"""Kernels: ``init`` and ``step`` of every algorithm, for loops of your own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._checks import as_numbers, check_number
from skbayes_sgld._components import Registry, resolve
from skbayes_sgld._linalg import one_blas_thread
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._random import ChainStreams
from skbayes_sgld.optimizers.rules import OPTIMIZERS, Newton, Optimizer
from skbayes_sgld.own_models.boundary import as_posterior
from skbayes_sgld.posterior.base import BasePosterior
from skbayes_sgld.posterior.protocol import Posterior
from skbayes_sgld.sampling.base import (
    Algorithm,
    Gradient,
    Preconditioner,
    Schedule,
    check_requirements,
)
from skbayes_sgld.sampling.block import draw_block
from skbayes_sgld.sampling.clipping import CLIPS, Clip
from skbayes_sgld.sampling.dynamics import Array, Dynamics
from skbayes_sgld.sampling.gradients import GRADIENTS, Full, Minibatch
from skbayes_sgld.sampling.loop import run_chains
from skbayes_sgld.sampling.preconditioners import preconditioner_of
from skbayes_sgld.sampling.run import Chains, Run, RunState
from skbayes_sgld.sampling.samplers import SAMPLERS
from skbayes_sgld.sampling.schedules import SCHEDULES
from skbayes_sgld.sampling.tuning.mode import Mode, newton_mode

__all__ = ["Kernel", "KernelState"]


class KernelState(NamedTuple):
    """State of a kernel's chains: everything the next step needs.

    Attributes
    ----------
    position : ndarray of shape (n_params,) or (n_chains, n_params)
        Position, in the shape that :meth:`Kernel.init` was given.
    memory : dict of ndarray
        Further arrays of the algorithm and of its gradient, chains first: ``"velocity"`` of SGHMC,
        ``"accepted"`` with the proposals that HMC has accepted so far, ``"snapshot"`` of SVRG.
    n_steps : int
        Steps so far, by which schedules count.
    """

    position: Array
    memory: dict[str, Array]
    n_steps: int


@numpy_defaults
class Kernel:
    """One algorithm on one posterior, as two functions: ``init`` and ``step``.

    A kernel chooses nothing: it has no pilot, no burn-in, no diagnosis. It makes the steps of
    :func:`~skbayes_sgld.sample` once everything is chosen. Its draws are the positions, without
    the correction for skewness of fits (:class:`~skbayes_sgld.sampling.SGLD`).

    Parameters
    ----------
    posterior : Posterior
        One of the package's, or a model of your own
        (:func:`~skbayes_sgld.own_models.as_posterior`).
    algorithm : str, Sampler or Optimizer, default="sgld"
        A name in :data:`SAMPLERS` or :data:`OPTIMIZERS`, or an instance; not ``"newton"``.
    step_size : float
        Step size, in the units of the preconditioned space. Welling and Teh's epsilon is twice
        this.
    schedule : str or Schedule, default="constant"
        Multiplier of the step size at each step.
    gradient : str or Gradient, default=None
        None takes all rows, or with a ``batch_size`` the plain estimate of a batch.
    batch_size : int, default=None
        Rows of a batch.
    preconditioner : str, Preconditioner or array-like, default=None
        None is the identity.
    clip : str or Clip, default=None
        Bound on the gradient estimate.
    temperature : float, str or Schedule, default=1.0
        Temperature of the posterior, or a schedule with its value at each step.
    mode : Mode, default=None
        Mode on which control variates and the curvature preconditioner are centred. Where one of
        them needs it and it is None, :func:`~skbayes_sgld.optimizers.find_mode` finds it.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld.own_models import FunctionPosterior
    >>> from skbayes_sgld.kernels import Kernel
    >>> normal = FunctionPosterior(lambda x: -0.5 * (x**2).sum(axis=1), lambda x: -x, 2)
    >>> kernel = Kernel(normal, "sgld", step_size=0.5)
    >>> state, rng = kernel.init(np.zeros(2)), np.random.default_rng(0)
    >>> draws = []
    >>> for _ in range(2000):
    ...     state = kernel.step(state, rng)
    ...     draws.append(state.position)
    >>> np.std(draws, axis=0).round(1).tolist()
    [1.0, 1.0]
    """

    __slots__ = ("_dynamics", "_run")  # so that an assignment to step_size raises

    @numpy_defaults
    def __init__(
        self,
        posterior: Posterior | BasePosterior,
        algorithm: str | Algorithm = "sgld",
        *,
        step_size: float,
        schedule: str | Schedule = "constant",
        gradient: str | Gradient | None = None,
        batch_size: int | None = None,
        preconditioner: str | Preconditioner | ArrayLike | None = None,
        clip: str | Clip | None = None,
        temperature: float | str | Schedule = 1.0,
        mode: Mode | None = None,
    ) -> None:
        target = as_posterior(posterior)
        rule = resolve(algorithm, Registry(Algorithm, SAMPLERS, OPTIMIZERS), "algorithm")
        if isinstance(rule, Newton):
            raise ValueError(
                "algorithm='newton' has no steps of a given size; call find_mode instead."
            )
        check_number(step_size, "step_size", low=0, any_size=True)
        if batch_size is not None:
            check_number(
                batch_size, "batch_size", low=1, high=target.n_samples, closed="both", integer=True
            )
        if isinstance(temperature, (str, Schedule)):
            temperature = resolve(temperature, SCHEDULES, "temperature")
        else:
            check_number(temperature, "temperature", low=0)
        estimator = _gradient_of(rule, gradient, batch_size)
        check_requirements(rule, target, batch_size)
        scaling = preconditioner_of(preconditioner)
        if mode is None and (scaling.uses_curvature or estimator.needs_mode):
            mode = newton_mode(target, target.start())
        center, metric = (None, None) if mode is None else (mode.theta, mode.metric)
        dynamics = Dynamics(
            estimator.bind(target, center),
            scaling.bind(target.n_params, metric),
            None if clip is None else resolve(clip, CLIPS, "clip"),
            1.0 if isinstance(temperature, Schedule) else temperature,
            center=center if scaling.uses_curvature else None,
        )
        self._run = Run(
            rule,
            dynamics,
            resolve(schedule, SCHEDULES, "schedule"),
            step_size,
            target.n_samples,
            batch_size,
            estimator.replacement,
            temperature if isinstance(temperature, Schedule) else None,
        )
        self._dynamics = dynamics.for_thread()

    def init(self, position: ArrayLike) -> KernelState:
        """State at a position.

        Parameters
        ----------
        position : array-like of shape (n_params,) or (n_chains, n_params)

        Returns
        -------
        state : KernelState
        """
        run, theta = self._run, as_numbers(position, "position")
        if theta.ndim not in (1, 2) or theta.shape[-1] != run.dynamics.posterior.n_params:
            P = run.dynamics.posterior.n_params
            raise ValueError(f"position has shape {theta.shape}; it must be ({P},) or (C, {P}).")
        memory = run.initial_state(np.atleast_2d(theta))
        del memory["theta"]
        return KernelState(theta, memory, 0)

    def step(self, state: KernelState, key: Any) -> KernelState:
        """State after one step; ``state`` itself does not change.

        An overflow raises nothing: positions are then not finite.

        Parameters
        ----------
        state : KernelState
        key : int, SeedSequence or Generator
            Source of the step's random numbers, as :func:`numpy.random.default_rng` takes it. A
            generator advances; a number or a SeedSequence must be a new one at every step.

        Returns
        -------
        state : KernelState
        """
        if not isinstance(state, KernelState):
            raise TypeError(
                f"state is of type {type(state).__name__}; give a KernelState, as init and step "
                "return it."
            )
        run, theta = self._run, np.array(np.atleast_2d(state.position), dtype=float)
        now = {name: array.copy() for name, array in state.memory.items()} | {"theta": theta}
        streams = [ChainStreams.of(np.random.default_rng(key))] * len(theta)
        with one_blas_thread(), np.errstate(all="ignore"):
            block = draw_block(run, self._dynamics, now, streams, state.n_steps, 1)
            try:
                for _ in block.advance(run.sampler, now, self._dynamics):
                    pass
            except KeyError as missing:
                raise ValueError(
                    f"state.memory has no {missing}, which {run.sampler!r} needs; make a state of "
                    "this kernel by init(state.position)."
                ) from missing
        theta = now.pop("theta")
        return KernelState(theta.reshape(np.shape(state.position)), now, state.n_steps + 1)

    def run(
        self,
        start: ArrayLike | RunState,
        n_draws: int,
        *,
        n_burnin: int = 0,
        thin: int = 1,
        random_state: int = 0,
        n_jobs: int | None = None,
        progress: Callable[[int], bool] | None = None,
    ) -> Chains:
        """Run chains by this kernel, faster than a loop of single steps.

        Parameters
        ----------
        start : array-like of shape (n_chains, n_params), or the ``state`` of an earlier run
            Starting points. A run that continues from a state draws what one longer run would have
            drawn.
        n_draws, n_burnin, thin : int
            Draws of each chain, steps before the first, and steps from one to the next.
        random_state : int, default=0
            Seed. Chain c draws the same numbers whatever the number of chains.
        n_jobs : int, default=None
            Processes that share the chains.
        progress : callable, default=None
            Called with the number of steps since its last call; True ends the run.

        Returns
        -------
        chains : Chains
            ``draws`` of shape (n_chains, n_draws, n_params), their step sizes as ``weights
            (n_draws,)``, and the last ``state``.

        Raises
        ------
        ChainOverflowError
            When a chain leaves the range of floating point numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from skbayes_sgld.own_models import FunctionPosterior
        >>> from skbayes_sgld.kernels import Kernel
        >>> normal = FunctionPosterior(lambda x: -0.5 * (x**2).sum(axis=1), lambda x: -x, 1)
        >>> chains = Kernel(normal, "hmc", step_size=0.5).run(np.zeros((4, 1)), 1000)
        >>> chains.draws.shape, round(float(chains.draws.var()), 1)
        ((4, 1000, 1), 1.0)
        """
        check_number(n_draws, "n_draws", low=1, closed="left", integer=True)
        check_number(n_burnin, "n_burnin", low=0, closed="left", integer=True)
        check_number(thin, "thin", low=1, closed="left", integer=True)
        if not isinstance(start, RunState):
            start = np.atleast_2d(as_numbers(start, "start"))
        return run_chains(
            self._run,
            start,
            n_draws=int(n_draws),  # a small NumPy integer may overflow
            n_burnin=int(n_burnin),
            thin=int(thin),
            seed=random_state,
            n_jobs=n_jobs,
            progress=progress,
        )


def _gradient_of(
    rule: Algorithm, gradient: str | Gradient | None, batch_size: int | None
) -> Gradient:
    """Gradient estimator; raise if there is a batch size and it takes no batches."""
    if gradient is not None:
        estimator = resolve(gradient, GRADIENTS, "gradient")
    elif isinstance(rule, Optimizer):
        estimator = rule.gradient(True) if batch_size is not None else Full()
    else:
        estimator = Full() if batch_size is None else Minibatch()
    if estimator.minibatch != (batch_size is not None):
        needs = "needs a batch_size" if estimator.minibatch else "takes all rows"
        raise ValueError(
            f"gradient={estimator!r} {needs}, and batch_size={batch_size!r}; change one of them."
        )
    return estimator
