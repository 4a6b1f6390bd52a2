"""Progress bars end full; without tqdm there are lines of text."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression, _progress
from skbayes_sgld.sampling.tuning.pilots import StandardNormal

# 50 draws are too few for the summaries to be relied on, and the estimators say so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = np.random.default_rng(0).standard_normal((40, 2))
Y = X[:, 0] + np.random.default_rng(1).standard_normal(40)
MODEL = SGLDLinearRegression(n_draws=50, random_state=0)


class Bars:
    """In place of tqdm: what every bar was told."""

    def __init__(self, monkeypatch):
        self.totals, self.done = [], []
        monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=self))

    def __call__(self, total, **kwargs):
        self.totals.append(total)
        self.done.append(0)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def update(self, n):
        self.done[-1] += n


RUNS = {
    "fit": lambda: clone(MODEL).set_params(verbose=1).fit(X, Y),
    "fit in jobs": lambda: clone(MODEL).set_params(verbose=1, n_jobs=2).fit(X, Y),
    "sample": lambda: skbayes_sgld.sample(StandardNormal(2), n_draws=50, random_state=0, verbose=1),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_bar_ends_full(monkeypatch, run):
    bars = Bars(monkeypatch)
    run()
    assert bars.totals == bars.done != []


def test_without_tqdm_progress_is_a_line_of_text_at_every_tenth(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    clone(MODEL).set_params(verbose=1).fit(X, Y)
    stage = re.compile(r"\w+, [\d.]+ s: ")  # a line of each stage, and their seconds at the end
    lines = [x for x in capsys.readouterr().err.splitlines() if not stage.match(x)]
    found = [re.fullmatch(r"(.+): (\d+) of (\d+) steps \((\d+) %\), \d+\.\d s", x) for x in lines]
    assert all(found) and 1 <= len(lines) <= 10
    percents = [int(line[4]) for line in found]
    assert percents == sorted(set(percents)) and percents[-1] == 100
    assert found[-1][2] == found[-1][3]  # all steps are counted
    for line in found:
        assert int(line[4]) == 100 * int(line[2]) // int(line[3])


@pytest.mark.parametrize("terminal", [False, True])
def test_a_long_task_names_the_stage_that_it_is_in(monkeypatch, capsys, terminal):
    clock = iter([0.0, 1.0, 2.5, 4.0, 12.0])
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with _progress.stages("effects", "column", 4) as begin:
        for name in ("age", "body mass", "sex", "bp"):
            begin(name)
    lines = [
        "effects: column 2 of 4: body mass, 2 s",
        "effects: column 3 of 4: sex, 4 s      ",
        "effects: column 4 of 4: bp, 12 s",
    ]
    found = capsys.readouterr().err
    if terminal:
        assert found == "".join(f"\r{line}" for line in lines) + "\n"
    else:  # a line every two seconds
        assert found.splitlines() == [lines[0], lines[2]]


def test_a_short_task_says_nothing(capsys):
    with _progress.stages("effects", "column", 1) as begin:
        begin("age")
    assert capsys.readouterr() == ("", "")
