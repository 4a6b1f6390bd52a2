"""The public kernel: a loop of steps draws what a run draws."""

import numpy as np
import pytest

from skbayes_sgld._random import ChainStreams
from skbayes_sgld.kernels import Kernel
from skbayes_sgld.optimizers import OPTIMIZERS, find_mode
from skbayes_sgld.own_models import FunctionPosterior
from skbayes_sgld.priors import Laplace
from skbayes_sgld.sampling import SAMPLERS, Constant, Cooling, NormClip, Polynomial
from skbayes_sgld.sampling.metric import Diagonal
from skbayes_sgld.sampling.tuning.mode import Mode
from tests.references.targets import logistic_posterior

ALGORITHMS = [name for name in (*SAMPLERS, *OPTIMIZERS) if name != "newton"]


@pytest.mark.parametrize(
    "settings",
    [
        *({"algorithm": name, "step_size": 0.1} for name in ALGORITHMS),
        {"algorithm": "sgld", "step_size": 0.5, "schedule": Polynomial()},
        {"algorithm": "hmc", "step_size": 0.5, "temperature": Cooling(4.0, hold=2, decay=5)},
        {"algorithm": "sgld", "step_size": 0.5, "clip": NormClip(1.0), "temperature": 2.0},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_a_loop_is_a_run_of_the_same_random_numbers(settings):
    posterior = logistic_posterior()
    if settings["algorithm"] == "svrg":
        settings = settings | {"gradient": "full"}
    kernel = Kernel(posterior, preconditioner="curvature", **settings)
    whole = kernel.run(np.zeros((1, 3)), 12, random_state=5).draws[0]
    state, stream = kernel.init(np.zeros(3)), ChainStreams(5, 0)._noise
    for expected in whole:
        state = kernel.step(state, stream)
        np.testing.assert_array_equal(state.position, expected)


@pytest.mark.parametrize("gradient", ["minibatch", "svrg", "saga"])
def test_a_step_leaves_its_state_as_it_is(gradient):
    kernel = Kernel(logistic_posterior(), "sgld", step_size=0.01, gradient=gradient, batch_size=5)
    state = kernel.step(kernel.init(np.zeros((3, 3))), 0)
    before = {name: array.copy() for name, array in state.memory.items()}
    first, second = kernel.step(state, 1), kernel.step(state, 1)
    np.testing.assert_array_equal(first.position, second.position)
    assert state.n_steps == 1
    assert first.n_steps == 2
    assert (first.position != state.position).all()
    for name, array in before.items():
        np.testing.assert_array_equal(state.memory[name], array)


def test_a_loop_of_an_optimizer_ends_at_the_mode():
    posterior = logistic_posterior()
    kernel = Kernel(posterior, "svrg", step_size=0.05, batch_size=5)
    state = kernel.init(np.zeros(3))
    for key in range(1000):
        state = kernel.step(state, key)
    np.testing.assert_allclose(state.position, find_mode(posterior).theta, atol=1e-6)


def test_a_mode_that_is_given_is_the_one_that_is_used():
    mode = Mode(np.ones(3), Diagonal(np.full(3, 4.0)))
    given = Kernel(logistic_posterior(), step_size=0.1, preconditioner="curvature", mode=mode)
    plain = Kernel(logistic_posterior(), step_size=0.4)
    start = np.zeros((2, 3))
    np.testing.assert_allclose(given.run(start, 5).draws, plain.run(start, 5).draws, rtol=1e-12)


def test_a_run_goes_on_with_the_state_of_another():
    kernel = Kernel(logistic_posterior(prior=Laplace(1.0)), step_size=0.01)
    whole = kernel.run(np.zeros((2, 3)), 20, random_state=1)
    first = kernel.run(np.zeros((2, 3)), 8, random_state=1)
    rest = kernel.run(first.state, 12)
    np.testing.assert_array_equal(np.hstack([first.draws, rest.draws]), whole.draws)


FLAT = FunctionPosterior(lambda x: np.zeros(len(x)), np.zeros_like, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": "nuts"}, r"algorithm='nuts' is not known; choose one of.*'hmc'.*'sgd'"),
        ({"algorithm": "newton"}, r"algorithm='newton'.*find_mode"),
        ({"step_size": 0.0}, r"step_size=0.0 is out of range"),
        ({"temperature": -1.0}, r"temperature=-1.0 is out of range"),
        ({"gradient": "minibatch"}, r"gradient=Minibatch\(\) needs a batch_size"),
        ({"gradient": "full", "batch_size": 2}, r"gradient=Full\(\) takes all rows"),
        ({"batch_size": 41}, r"batch_size=41 is out of range; .* \[1, 40\]"),
        ({"algorithm": "hmc", "batch_size": 2}, r"sampler=HMC\(\) needs the gradient from all"),
        ({"schedule": Constant}, r"schedule=.*is not accepted"),
        ({"clip": "sign"}, r"clip='sign' is not known"),
        ({"preconditioner": [1.0, -1.0, 1.0]}, r"preconditioner has a value of -1.0"),
    ],
)
def test_a_wrong_setting_is_named(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Kernel(logistic_posterior(), **({"step_size": 0.1} | settings))


def test_a_position_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"position has shape \(3,\); it must be \(2,\) or \(C, 2"):
        Kernel(FLAT, step_size=0.1).init(np.zeros(3))


def test_a_state_that_is_not_this_kernels_is_refused():
    kernel, other = kernel_of("hmc"), kernel_of("sgld")
    with pytest.raises(TypeError, match="state is of type ndarray; give a KernelState"):
        kernel.step(np.zeros(2), 0)
    with pytest.raises(ValueError, match=r"no 'value', which HMC\(\) needs.*init\(state.position"):
        kernel.step(other.init(np.zeros(2)), 0)


def test_a_step_size_that_would_change_nothing_cannot_be_assigned():
    with pytest.raises(AttributeError, match="step_size"):
        kernel_of("hmc").step_size = 0.1


def test_kernels_of_other_steps_and_temperatures_share_a_state():
    kernels = [kernel_of("hmc", step_size=step) for step in (0.3, 0.9)]
    hot = kernel_of("hmc", temperature=9.0)
    state, rng = kernels[0].init(np.zeros((500, 2))), np.random.default_rng(0)
    for _ in range(5):
        state = hot.step(state, rng)
    draws = []
    for t in range(60):
        state = kernels[t % 2].step(state, rng)
        draws.append(state.position)
    np.testing.assert_allclose(np.std(draws[20:], axis=(0, 1)), 1.0, rtol=0.03)


def test_a_temperature_takes_the_name_of_a_schedule():
    kernel = kernel_of("sgld", temperature="cooling")
    assert np.isfinite(kernel.step(kernel.init(np.zeros(2)), 0).position).all()
    with pytest.raises(ValueError, match=r"temperature\.high=-1\.0"):
        kernel_of("sgld", temperature=Cooling(high=-1.0))


def kernel_of(algorithm, step_size=0.5, **settings):
    """Kernel on a standard normal distribution."""
    normal = FunctionPosterior(lambda x: -0.5 * (x**2).sum(axis=1), lambda x: -x, 2)
    return Kernel(normal, algorithm, step_size=step_size, **settings)
