"""Seconds by stage: they add up to the fit, belong to the innermost stage, and are shown."""

import pickle
import re
import time

import numpy as np
import pytest

import skbayes_sgld
from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld._timings import as_line, beat, stage, timed, timings_of_fit
from skbayes_sgld.own_models import FunctionPosterior

STAGES = ("reading", "mode", "pilots", "draws", "diagnosis", "rest")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    return X, (X[:, 0] + rng.normal(size=100) > 0).astype(int)


def test_an_inner_stage_interrupts_the_outer_one():
    begin = time.perf_counter()
    with timed("fit") as timings, stage("outer"):
        time.sleep(0.02)
        with stage("inner"):
            time.sleep(0.05)
        time.sleep(0.02)
    total = time.perf_counter() - begin
    assert 0.04 <= timings["outer"] <= total - 0.05
    assert 0.05 <= timings["inner"] <= total - 0.04
    assert sum(timings.values()) <= total


def test_a_stage_outside_a_fit_is_not_timed():
    with stage("draws"):
        pass
    assert timings_of_fit() == {}


def test_a_failed_stage_ends():
    with timed("fit") as timings, pytest.raises(ValueError, match="no"), stage("draws"):
        raise ValueError("no")
    before = timings["draws"]
    with stage("draws"):  # the fit is over
        time.sleep(0.01)
    assert timings["draws"] == before


def test_stages_add_up_to_the_fit(rows):
    begin = time.perf_counter()
    model = SGLDLogisticRegression(random_state=0).fit(*rows)
    total = time.perf_counter() - begin
    timings = model.result_.timings
    assert set(timings) == {*STAGES, "screen"}
    assert all(seconds > 0 for seconds in timings.values())
    assert 0.5 * total < sum(timings.values()) <= total
    assert pickle.loads(pickle.dumps(model)).result_.timings == timings


def test_a_fit_within_a_fit_has_timings_of_its_own(rows):
    with timed("outer") as outer:
        inner = SGLDLogisticRegression(random_state=0).fit(*rows).result_.timings
    assert "draws" in inner
    assert set(outer) == {"rest"}


def test_sample_has_timings():
    normal = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=1)
    timings = skbayes_sgld.sample(normal, random_state=0).timings
    assert {"pilots", "draws", "diagnosis"} <= set(timings)


def test_verbose_names_each_stage_as_it_begins_and_ends_with_their_seconds(rows, capsys):
    model = SGLDLogisticRegression(random_state=0, verbose=1).fit(*rows)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("SGLD")]
    named = [line.rpartition(" ")[2] for line in lines[:-1]]
    assert named == ["reading", "pilots", "mode", "pilots", "draws", "diagnosis", "screen"]
    assert lines[-1] == f"SGLDLogisticRegression, {as_line(model.result_.timings)}"


def test_a_quiet_fit_prints_nothing(rows, capsys):
    SGLDLogisticRegression(random_state=0).fit(*rows)
    assert capsys.readouterr().err == ""


# ---- fits that take long ------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch):
    """Fits say what they do from the start."""
    monkeypatch.setattr("skbayes_sgld._timings._PATIENCE", 0.0)


@pytest.mark.parametrize("options", [{}, {"sampler": "sgld"}, {"sampler": "hmc"}])
def test_a_long_fit_says_what_it_does(rows, options, impatient, capsys):
    SGLDLogisticRegression(random_state=0, **options).fit(*rows)
    lines = capsys.readouterr().err.splitlines()
    assert all(re.match(r"SGLDLogisticRegression, \d+ s: \w+", line) for line in lines)
    assert any("s: pilots" in line or "s: mode" in line for line in lines)
    assert re.search(r"draws, step [\d,]+ of [\d,]+", "\n".join(lines))
    assert "verbose=1" in lines[0]


def test_a_short_or_verbose_fit_has_no_such_lines(rows, monkeypatch, capsys):
    SGLDLogisticRegression(random_state=0).fit(*rows)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("skbayes_sgld._timings._PATIENCE", 0.0)
    SGLDLogisticRegression(random_state=0, verbose=1).fit(*rows)
    assert "verbose=1" not in capsys.readouterr().err


def test_a_long_fit_says_so_once_in_a_while(monkeypatch, capsys):
    now = iter([0.0, *(np.arange(1.0, 40.0)), *[40.0] * 9])
    monkeypatch.setattr("skbayes_sgld._timings.time.perf_counter", lambda: next(now))
    with timed("fit"), stage("draws"):
        for _ in range(36):
            beat(", step 1 of 9")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" s:")[0] for line in lines] == ["fit, 10", "fit, 20", "fit, 30"]
