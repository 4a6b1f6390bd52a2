"""Steps that are far too long: every sampler stops soon, and its error names a step that holds."""

import re
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.inference import run as running
from skbayes_sgld.sampling import SAMPLERS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2)) * [1.0, 5.0]
Y = X @ [1.0, -2.0] + RNG.standard_normal(40)
GRADIENTS = {"full": {"gradient": "full"}, "minibatch": {"gradient": "minibatch", "batch_size": 10}}
CASES = [
    (name, kind)
    for name, sampler in SAMPLERS.items()
    for kind in GRADIENTS
    if kind == "full" or not sampler.full_gradient
]
BOUNDED = ("psgld",)  # its steps are of the same length whatever the gradient's
MATCH = (
    r"step_size=(\S+): chain (\d) overflowed at step (\d+) in ([^\s,]+?)[.,] "
    r".*With step_size=(\S+) a run of (\d+) steps did not overflow"
)


def model(name, kind):
    """Estimator with the step size that suits its sampler in the metric of the curvature."""
    return SGLDLinearRegression(
        sampler=name,
        step_size=SAMPLERS[name]().pace(np.ones(4))[0],
        preconditioner="curvature",
        init="mode",
        n_draws=300,
        n_burnin=0,
        thin=1,
        n_chains=2,
        random_state=0,
        **GRADIENTS[kind],
    )


def count_steps(monkeypatch, sampler):
    """List that holds how many steps the chains of a fit have made, without its pilots."""
    step, begin, counts, seen = sampler.step, running.run_chains, [0], []

    def started(*args, **kwargs):
        counts[0], seen[:] = 0, []
        return begin(*args, **kwargs)

    def counted(self, state, *args):
        seen[:] = seen or [state]
        counts[0] += state is seen[0]  # what finds the step afterwards goes over a copy
        return step(self, state, *args)

    monkeypatch.setattr(sampler, "step", counted)
    monkeypatch.setattr(running, "run_chains", started)
    return counts


@pytest.mark.parametrize("factor", [10.0, 100.0, 1e6])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_step_far_too_long_is_stopped_and_a_step_that_holds_is_named(
    name, kind, factor, monkeypatch
):
    right = model(name, kind)
    far = clone(right).set_params(step_size=factor * right.step_size)
    errors = []
    explain = running.explain_overflow
    monkeypatch.setattr(
        running,
        "explain_overflow",
        lambda e, *args: (errors.append((e, made[0])), explain(e, *args))[1],
    )
    made = count_steps(monkeypatch, SAMPLERS[name])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            far.fit(X, Y)
    except ValueError as error:
        message = str(error)
    else:  # what is finite is a run of a bad step, which is told elsewhere
        assert np.isfinite(far.posterior_.values).all()
        assert factor < 1e6 or name in BOUNDED
        return
    ((error, n_steps),) = errors
    # none where a block of steps was made at once, which is looked at as a whole
    assert n_steps == 0 or 0 <= n_steps - error.step <= 100
    step_size, chain, step, parameter, shorter, length = re.search(MATCH, message).groups()
    assert float(step_size) == pytest.approx(far.step_size, rel=5e-3)
    assert (int(chain), int(step)) == (error.chain, error.step)
    assert parameter.replace("log_", "") in ("coef[x0]", "coef[x1]", "intercept", "noise_variance")
    monkeypatch.undo()
    held = clone(far).set_params(step_size=float(shorter), n_draws=int(length))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        held.fit(X, Y)
    assert float(shorter) < far.step_size and np.isfinite(held.posterior_.values).all()
    assert held.result_.acceptance != 0.0


def test_a_chain_that_can_accept_nothing_is_the_same_whatever_runs_beside_it():
    right = model("hmc", "full")
    messages = []
    for n_chains, n_jobs in ((1, None), (2, None), (3, 2)):
        far = clone(right).set_params(step_size=1e6, n_chains=n_chains, n_jobs=n_jobs)
        told = pytest.raises(ValueError, match="50 proposals in a row could never be accepted")
        with joblib.parallel_config(backend="threading"), told as raised:
            far.fit(X, Y)
        messages.append(str(raised.value))
    assert len(set(messages)) == 1
