"""Burn-in and thinning, and what is said of them."""

import numpy as np
import pytest

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.inference.planning.lengths import choose_thin, most_walkers, usual_lengths
from skbayes_sgld.inference.planning.task import Task
from skbayes_sgld.inference.settings import Settings
from skbayes_sgld.inference.strategies.accept_reject import AdaptedRun, adapted_lengths
from skbayes_sgld.likelihoods import NormalNoise
from skbayes_sgld.sampling import SGLD, Cooling
from skbayes_sgld.sampling.tuning.adaptation import Adaptation
from tests.references.targets import make_run, posterior_of

POSTERIOR = posterior_of(NormalNoise())
RUN = make_run(POSTERIOR)


def task(**given):
    return Task.of(POSTERIOR, Settings.of(SGLDLogisticRegression(**given)), seed=0)


def lengths(time, findings, given):
    """Burn-in and thinning of 1,000 draws whose autocorrelation time is ``time`` steps."""
    from skbayes_sgld.wide_rows.strategy import lengths_along

    ends = np.zeros((8 * (findings == "pilot"), 3))
    pilot = Adaptation(None, 1.0, 0.8, time, ends, n_settling=22)
    tuned = AdaptedRun(RUN, pilot, time, 100, "", "")
    found = {
        "none": lambda: usual_lengths(task(**given), RUN, time),
        "costly": lambda: usual_lengths(task(**given), RUN, time, 1),
        "pilot": lambda: adapted_lengths(task(**given), tuned),
        "settled": lambda: lengths_along(task(**given), tuned, 1000, collapsed=False),
    }[findings]()
    return found.n_burnin.value, found.thin.value


@pytest.mark.parametrize(
    ("time", "findings", "given", "expected"),
    [
        (4.0, "none", {}, (40, 4)),
        (6.0, "none", {}, (60, 6)),
        (20.0, "none", {}, (200, 10)),
        (1e4, "none", {}, (10_000, 100)),
        (5.0, "none", {"n_burnin": 7}, (7, 5)),
        # at most as many steps as the draws take
        (90.0, "none", {"thin": 1}, (900, 1)),
        (120.0, "none", {"thin": 1}, (1000, 1)),
        # expensive steps are closer together than draws worth their number, and begin sooner
        (2.0, "costly", {}, (10, 1)),
        (1.0, "costly", {}, (10, 1)),
        (2.0, "costly", {"n_burnin": 7}, (7, 1)),
        # the pilot's trajectories count where chains begin at its ends
        (1.0, "pilot", {}, (2, 1)),
        (2.4, "pilot", {}, (5, 3)),
        (5.0, "pilot", {}, (28, 5)),
        (5.0, "pilot", {"init": "mode"}, (50, 5)),
        # settled walkers burn in for half as long, and for few of their draws
        (12.0, "settled", {}, (60, 6)),
        (90.0, "settled", {"thin": 2}, (120, 2)),
        (90.0, "settled", {"thin": 1}, (60, 1)),
        # after the temperature has settled
        (5.0, "none", {"temperature": Cooling(hold=30, decay=70)}, (150, 5)),
    ],
    ids=str,
)
def test_burn_in_and_spacing_follow_the_time_to_an_independent_draw(
    time, findings, given, expected
):
    assert lengths(time, findings, given) == expected


@pytest.mark.parametrize(
    ("n_burnin", "n_steps", "most", "walkers"),
    [
        (40, 4000, 100, 64),
        (25, 1000, 100, 8),
        (35, 400, 100, 4),
        (40, 4000, 20, 16),
        (40, 100, 100, 1),
    ],
)
def test_chains_have_more_walkers_where_an_evaluation_takes_many_positions(
    n_burnin, n_steps, most, walkers
):
    assert most_walkers(n_burnin, n_steps, most, many_at_once=True) == walkers
    assert most_walkers(n_burnin, n_steps, most) == min(walkers, 16)


@pytest.mark.parametrize(
    ("most_spaced", "thin", "why"),
    [(6, 6, "closer draws cost less"), (5, 5, "more steps a draw would take too long")],
)
def test_only_draws_that_are_made_closer_are_said_to_take_too_long(most_spaced, thin, why):
    found = choose_thin(task().settings, 12.0, most_spaced)
    assert found.value == thin and why in found.why


# 100 draws are too few for the summaries to be relied on, and the estimator says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_small_step_size_does_not_lengthen_the_fit(monkeypatch):
    steps, step = [], SGLD.step
    monkeypatch.setattr(SGLD, "step", lambda self, *args: steps.append(1) or step(self, *args))
    counts = []
    X = np.random.default_rng(0).standard_normal((60, 3))
    y = X @ [1.0, -2.0, 0.5] + np.random.default_rng(1).standard_normal(60) > 0
    short = {"n_draws": 100, "n_chains": 2, "n_burnin": 0, "thin": 1, "random_state": 0}
    for step_size in (0.5, 0.005):
        SGLDLogisticRegression(step_size=step_size, **short).fit(X, y)
        counts.append(len(steps) - sum(counts))
    assert 100 <= counts[1] <= 5 * counts[0]
