"""Summaries and diagnostics of draws, against arviz-stats and against figures worked by hand."""

import re

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats
from scipy.signal import lfilter

from skbayes_sgld import PosteriorDraws, diagnostics
from skbayes_sgld.diagnostics import (
    are_random_walks,
    convergence_problems,
    effective_sample_size,
    nearly_normal_and_converged,
    plainly_converged,
    potential_scale_reduction,
    quantiles,
    say_uncertain,
    summarize,
    uncertain_sds,
)
from tests.marks import slow


def walks(n_chains, n_draws, n_params=60, seed=0):
    """Draws of many kinds: slow, fast, alternating, heavy-tailed, two values, constant."""
    rng = np.random.default_rng(seed)
    draws = rng.standard_normal((n_chains, n_draws, n_params))
    for j, share in enumerate(np.linspace(-0.9, 0.99, 20)):
        for t in range(1, n_draws):
            draws[:, t, j] += share * draws[:, t - 1, j]
    draws[..., 20] = rng.standard_cauchy((n_chains, n_draws))
    draws[..., 21] = rng.integers(0, 2, (n_chains, n_draws)) * 2.0 - 1.0
    draws[..., 22] = 3.0
    draws[..., 23] += 5.0 * np.arange(n_chains)[:, None]
    draws[..., 24] = np.round(draws[..., 24])
    draws[..., 25] = np.arange(n_draws)
    draws[0, 0, 26] = np.nan
    return draws


@pytest.mark.parametrize("n_chains, n_draws", [(4, 250), (3, 101), (2, 4)])
def test_many_parameters_get_the_figures_of_arviz_stats(monkeypatch, n_chains, n_draws):
    monkeypatch.setattr("skbayes_sgld.diagnostics._BLOCK", 7 * 80)
    draws = walks(n_chains, n_draws)
    axes = {"chain_axis": 0, "draw_axis": 1}
    with np.errstate(all="ignore"):
        r_hat = array_stats.rhat(draws, method="rank", **axes)
        tail = array_stats.ess(draws, method="tail", prob=(0.05, 0.95), **axes)
        bulk, mean = (array_stats.ess(draws, method=kind, **axes) for kind in ("bulk", "mean"))
    np.testing.assert_allclose(potential_scale_reduction(draws), r_hat, rtol=1e-9)
    for kind, expected in {"bulk": bulk, "mean": mean, "tail": tail}.items():
        np.testing.assert_allclose(effective_sample_size(draws, kind), expected, rtol=1e-9)


def test_too_few_draws_are_not_judged():
    draws = np.random.default_rng(0).standard_normal((4, 3, 60))
    assert np.isnan(effective_sample_size(draws)).all()
    assert np.isnan(potential_scale_reduction(draws)).all()
    assert np.isnan(summarize(draws, range(60))["mcse_sd"]).all()


def test_one_chain_is_compared_with_itself_half_by_half():
    # by hand: R-hat of the normal scores of the two halves, n draws each
    rng = np.random.default_rng(1)
    chain = rng.standard_normal((1, 200, 1)) + np.linspace(0.0, 2.0, 200)[:, None]
    x = chain[0, :, 0]
    z = stats.norm.ppf((stats.rankdata(x) - 0.375) / 200.25).reshape(2, 100)
    within, between = z.var(axis=1, ddof=1).mean(), z.mean(axis=1).var(ddof=1)
    expected = np.sqrt(between / within + 99 / 100)
    assert expected > 1.05
    assert potential_scale_reduction(chain)[0] == pytest.approx(expected, rel=1e-9)
    assert "R-hat of x" in convergence_problems(chain, ["x"])["r_hat"]


def test_weights_count_draws():
    # integer weights are the table of the draws repeated so often
    rng = np.random.default_rng(0)
    draws, counts = rng.standard_normal((2, 30, 2)), rng.integers(1, 4, 30)
    weighted = PosteriorDraws(draws, ["a", "b"], counts.astype(float)).summary()
    values = np.repeat(draws, counts, axis=1)
    repeated, columns = summarize(values, ["a", "b"]), ["mean", "sd"]
    np.testing.assert_allclose(weighted[columns], repeated[columns], rtol=1e-12)
    ends = np.quantile(values[..., 0], [0.05, 0.95], method="inverted_cdf")
    np.testing.assert_allclose(weighted.loc["a", ["lower", "upper"]].astype(float), ends)


def test_quantiles_of_weighted_rows_ignore_draws_of_no_weight():
    values = np.array([[1.0, 100.0, 2.0, 3.0]])
    weights = np.array([1.0, 0.0, 1.0, 1.0])
    assert quantiles(values, np.array([0.99]), weights)[0, 0] == 3.0


@pytest.mark.parametrize("unit", [1e-20, 1e150])
def test_the_unit_of_the_draws_changes_no_diagnostic(unit):
    n_params = 3
    draws = np.exp(0.5 * autoregression(np.random.default_rng(0), 0.9, 4, 400, n_params))
    for kind in ("bulk", "tail", "mean"):
        ess = effective_sample_size(draws, kind)
        assert ess.max() < 800  # not that of independent draws, which constant ones were given
        np.testing.assert_allclose(effective_sample_size(unit * draws, kind), ess, rtol=1e-9)
    r_hat = potential_scale_reduction(draws)
    # the two draws nearest to the median are as far from it up to rounding: either may be nearer
    np.testing.assert_allclose(potential_scale_reduction(unit * draws), r_hat, rtol=1e-4)
    names = [f"x{j}" for j in range(n_params)]
    table, scaled = summarize(draws, names), summarize(unit * draws, names)
    for column in ("mean", "sd", "lower", "upper", "mcse_mean", "mcse_sd"):
        np.testing.assert_allclose(scaled[column], unit * table[column], rtol=1e-9)
    found = [convergence_problems(values, names) for values in (draws, unit * draws)]
    assert found[0] and found[0].keys() == found[1].keys()
    assert uncertain_sds(unit * draws, names) == pytest.approx(uncertain_sds(draws, names))
    assert (plainly_converged(unit * draws) == plainly_converged(draws)).all()


# ---- errors of the sds ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "distribution, told",
    [
        slow(stats.norm(), False, id="normal"),
        pytest.param(stats.expon(), False, id="exponential"),
        pytest.param(stats.t(7), False, id="t of 7"),
        slow(stats.invgamma(8), False, id="inverse gamma"),
        pytest.param(stats.t(2.2), True, id="t of 2.2"),
        slow(stats.cauchy(), True, id="Cauchy"),
    ],
)
def test_the_error_of_an_sd_is_what_sds_of_many_runs_differ_by(distribution, told):
    # autocorrelated draws of known sd: 50 parameters are 50 runs
    z = autoregression(np.random.default_rng(0), 0.6, 4, 1000, 50) * 0.8
    grid = np.linspace(-6.0, 6.0, 2000)
    draws = np.interp(z, grid, distribution.ppf(stats.norm.cdf(grid)))
    names = [str(j) for j in range(50)]
    found = uncertain_sds(draws, names)
    share, table = len(found) / 50, summarize(draws, names)
    if told:  # most of an sd without a variance of its own is in draws that were not made
        assert share > 0.6 and np.isinf(table["mcse_sd"]).mean() > 0.6
        assert "Monte Carlo error of unknown size" in say_uncertain(found)
        return
    error = (table["mean"] - distribution.mean()) / table["mcse_mean"]
    assert 0.7 < np.sqrt(np.square(error).mean()) < 1.3
    error = (table["sd"] - distribution.std()) / table["mcse_sd"]
    # 50 squares of standard normals have a mean of 1 +- 0.2; the error is not told too small, and
    # a tail's share makes it up to a third too large
    assert 0.5 < np.sqrt(np.square(error).mean()) < 1.25
    assert share <= 0.05


def test_an_sd_that_rests_on_few_visits_to_a_tail_is_told_with_its_error():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4, 1000, 3))
    assert uncertain_sds(draws, ["a", "b", "c"]) == {}
    draws[2, 300:330, 1] += 25.0
    found = uncertain_sds(draws, ["a", "b", "c"])
    assert list(found) == ["b"]
    assert "standard deviation of b has a Monte Carlo error" in say_uncertain(found)


def test_of_no_parameters_none_has_an_uncertain_sd():
    """A posterior may report all its parameters in other units than it is sampled in."""
    assert uncertain_sds(np.empty((4, 1000, 0)), []) == {}


def test_equal_draws_far_out_are_no_tail_to_fit():
    for n in range(5, 200):  # in one case, all of the tail
        draws = np.random.default_rng(n).standard_normal((4, 250, 1))
        draws.reshape(-1)[np.random.default_rng(n).choice(1000, n, replace=False)] = 6.0
        uncertain_sds(draws, ["a"])


def test_two_values_and_constants_have_an_error_of_the_sd_by_hand():
    # of labels of probability p the sd's error is |1 - 2 p| / (2 sqrt(S)) by the delta method
    rng = np.random.default_rng(0)
    draws = (rng.random((4, 1000, 3)) < 0.2).astype(float)
    draws[..., 2] = 3.0
    table = summarize(draws, ["a", "b", "c"])
    np.testing.assert_allclose(table["mcse_sd"][:2], 0.6 / 2 / np.sqrt(4000), rtol=0.15)
    assert table.loc["c", "mcse_sd"] == 0.0


# ---- the screen ----------------------------------------------------------------------------------


def autoregression(rng, share, n_chains, n_draws, n_params):
    draws = rng.standard_normal((n_chains, n_draws + 200, n_params))
    for t in range(1, n_draws + 200):
        draws[:, t] += share * draws[:, t - 1]
    return draws[:, 200:]


def faulty(kind, size, shape, seed):
    """Draws with a fault: ``size`` from 0, none, to 1, a plain one."""
    rng = np.random.default_rng(seed)
    n_chains, n_draws, n_params = shape
    z = rng.standard_normal(shape)
    if kind == "shifted":
        z[0] += 0.6 * size
    elif kind == "wider":
        z[0] *= 1.0 + 0.6 * size
    elif kind == "of two times":
        z += size * np.repeat(rng.standard_normal((n_chains, n_draws // 50, n_params)), 50, axis=1)
    elif kind == "drifting":
        z += 0.6 * size * np.linspace(-1.0, 1.0, n_draws)[:, None]
    elif kind == "slow":
        z = autoregression(rng, 0.95 * size, *shape)
    elif kind == "stuck":
        z[-1, : int(0.3 * size * n_draws)] = z[-1, 0]
    elif kind == "visiting":  # a rare region, which is entered for 50 draws at a time
        visits = rng.random((n_chains, n_draws // 50, n_params)) < 0.1 * size
        z += 4.0 * np.repeat(visits, 50, axis=1)
    elif kind == "Cauchy, wider":
        z = rng.standard_cauchy(shape)
        z[0] *= 1.0 + size
    elif kind == "with a tail":
        z[0] *= np.where(rng.random(shape[1:]) < 0.3 * size, 8.0, 1.0)
    return z


FAULTS = "shifted", "wider", "of two times", "drifting", "slow", "stuck", "visiting"
FAULTS += "Cauchy, wider", "with a tail"


@pytest.mark.parametrize("shape", [(4, 1000, 2), (1, 1000, 4)])
@pytest.mark.parametrize("kind", FAULTS)
def test_whatever_is_warned_of_is_not_clean_to_the_screen(monkeypatch, kind, shape):
    told = 0
    for number, size in enumerate(np.linspace(0.0, 1.0, 5)):
        draws = faulty(kind, size, shape, seed=number)
        clean = plainly_converged(draws)
        with monkeypatch.context() as unscreened:
            unscreened.setattr(
                "skbayes_sgld.diagnostics.plainly_converged",
                lambda d, _: np.zeros(d.shape[2], bool),
            )
            for j in range(shape[2]):
                warned = convergence_problems(draws[..., [j]], ["x"])
                assert not (warned and clean[j]), (size, warned)
                told += bool(warned)
            whole = convergence_problems(draws, range(shape[2]))
        assert convergence_problems(draws, range(shape[2])) == whole
    assert told or shape[0] == 1  # a lone chain does not differ from others


@pytest.mark.parametrize("kind", FAULTS)
def test_whatever_is_warned_of_is_not_clean_to_the_screen_of_nearly_normal_draws(monkeypatch, kind):
    monkeypatch.setattr(diagnostics, "plainly_converged", lambda d, _: np.zeros(d.shape[2], bool))
    for number, size in enumerate(np.linspace(0.0, 1.0, 5)):
        draws = faulty(kind, size, (4, 1000, 4), seed=number)
        clean = nearly_normal_and_converged(draws, 400, 1)
        for j in range(4):
            warned = convergence_problems(draws[..., [j]], ["x"])
            assert not (warned and clean[j]), (size, warned)


def test_of_many_parameters_those_near_a_limit_are_judged_by_ranks(monkeypatch):
    rng, n_params = np.random.default_rng(0), 150
    good = autoregression(rng, 0.6, 4, 1000, n_params)  # worth 1,000 of 4,000 draws
    assert not plainly_converged(good).all() and convergence_problems(good, range(n_params)) == {}
    assert nearly_normal_and_converged(good, 400, n_params).mean() > 0.95
    assert not nearly_normal_and_converged(np.exp(good), 400, n_params).any()  # not normal
    slow = autoregression(rng, 0.8, 4, 1000, n_params)
    clean, ess = nearly_normal_and_converged(slow, 400, n_params), effective_sample_size(slow)
    assert clean.any() and ess.min() < 400 and ess[clean].min() > 420
    found = convergence_problems(slow, range(n_params))
    monkeypatch.setattr(diagnostics, "_MANY", 1000)
    assert convergence_problems(slow, range(n_params)) == found != {}


def test_good_draws_are_clean_to_the_screen_and_odd_ones_are_not():
    rng = np.random.default_rng(0)
    draws = np.concatenate(
        [
            autoregression(rng, 0.2, 4, 1000, 30),
            rng.standard_cauchy((4, 1000, 5)),
            rng.lognormal(0.0, 2.0, (4, 1000, 5)) * 1e-200,
        ],
        axis=2,
    )
    assert plainly_converged(draws).all()
    odd = draws[..., :6].copy()
    odd[..., 0] = 3.0
    odd[2, 7, 1] = np.nan
    odd[2, 7, 2] = np.inf
    odd[..., 3] = np.arange(4)[:, None]
    odd[..., 4] = 1e300 * rng.integers(0, 2, (4, 1000))
    assert plainly_converged(odd).tolist() == [False, False, True, False, False, True]
    assert not plainly_converged(draws[:, :100]).any()  # too few to be screened


def test_draws_too_few_for_the_needed_effective_sample_size_are_told_as_too_few(monkeypatch):
    draws = np.random.default_rng(0).standard_normal((4, 25, 1))
    found = convergence_problems(draws, ["a"])
    assert found.keys() == {"n_draws"}
    assert found["n_draws"].endswith(": 25 draws a chain are too few for an effective size of 400")
    slow = autoregression(np.random.default_rng(0), 0.97, 4, 900, 1)
    assert convergence_problems(slow, "a")["ess"].endswith("below 400")
    figures = np.array([[[1.0], [1.0]], [[399.7], [9e3]]])
    monkeypatch.setattr("skbayes_sgld.diagnostics._rhat_and_ess", lambda draws: figures)
    assert convergence_problems(slow, "a")["ess"].endswith("is 399, below 400")  # 400 is not


@pytest.mark.parametrize("n_chains", [1, 4])
@pytest.mark.parametrize("apart", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("drift", [0.0, 0.5])
def test_random_walks_and_drifts_are_told_wherever_chains_begin(n_chains, apart, drift):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        steps = drift + rng.standard_normal((n_chains, 300, 6))
        walks = 1.0 + 1e-4 * (apart * rng.standard_normal((n_chains, 1, 6)) + steps.cumsum(axis=1))
        assert are_random_walks(walks)
        told = convergence_problems(walks, "abcdef")
        assert told.keys() == {"walk"}
        assert re.search(r"single chain is [0-4]\.\d, below 5$", told["walk"])


@pytest.mark.parametrize("n_chains", [1, 4])
def test_few_draws_slow_chains_and_smooth_paths_are_no_random_walks(n_chains):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        few = rng.standard_normal((n_chains, 8, 3))
        slow = autoregression(rng, 0.95, n_chains, 800, 3)  # worth 20 draws
        # the velocity lasts 20 draws; worth 24
        smooth = lfilter([1.0], [1.0, -0.95], autoregression(rng, 0.95, n_chains, 2000, 3), axis=1)
        for draws in (few, slow, smooth):
            assert not are_random_walks(draws)
            assert "walk" not in convergence_problems(draws, "abc")


def test_chains_in_modes_of_their_own_are_no_random_walks():
    rng = np.random.default_rng(0)
    starts = rng.standard_normal((4, 1, 2))
    modes = 30.0 * starts + rng.standard_normal((4, 500, 2))
    assert not are_random_walks(modes) and are_random_walks(np.tile(starts, (1, 500, 1)))
    assert "have not converged" in convergence_problems(modes, ["a", "b"])["r_hat"]
    modes[0] = 1.0
    assert not are_random_walks(modes)  # one chain stands still, and three do not


@pytest.mark.parametrize("still, told", [(slice(None), "4 of 4"), ([1], "1 of 4")])
def test_chains_that_stand_still_are_told(still, told):
    draws = np.random.default_rng(0).standard_normal((4, 500, 2))
    assert convergence_problems(draws, ["a", "b"]) == {}
    draws[still, :, 1] = 0.5
    message = f"all draws of b are the same in {told} chains: they stand still"
    assert convergence_problems(draws, ["a", "b"]) == {"still": message}
