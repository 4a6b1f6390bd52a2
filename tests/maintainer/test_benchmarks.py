"""The benchmarks' own arithmetic: bounds, verdicts, the machine, and an independent reference."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from benchmarks import __main__ as program
from benchmarks import _laplace, _machine, _unequal, grid, page, quick, rare, rows  # noqa: F401
from benchmarks._tools import ROWS, agreement, compare
from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.priors import Normal


def test_a_ratio_is_that_of_the_medians_and_its_spread_that_of_the_rounds():
    figure = compare("work", "peer", [1.0, 2.0, 9.0], [4.0, 2.0, 3.0], unit="s", at_most=0.5)
    assert figure.value == pytest.approx(2.0 / 3.0)
    assert figure.spread == pytest.approx((0.25, 3.0))
    assert not figure.met


def test_what_differs_by_noise_is_not_called_slower():
    rng = np.random.default_rng(0)
    said = [quick.verdict(np.exp(0.1 * rng.standard_normal(10))) for _ in range(1000)]
    assert sum(map(bool, said)) <= 25  # a probability of 1 % or less each


@pytest.mark.parametrize("ratio, said", [(1.3, "slower"), (0.7, "faster"), (1.01, "")])
def test_what_differs_by_more_than_noise_is_called_so(ratio, said):
    rng = np.random.default_rng(0)
    assert quick.verdict(ratio * np.exp(0.01 * rng.standard_normal(8))) == said


def test_eight_rounds_are_enough_for_a_verdict_of_one_per_cent():
    assert quick.interval(np.arange(8.0)) == (0.0, 7.0)  # outside with probability 2 / 2^8


def test_what_is_hidden_are_the_features_that_numpy_would_use(monkeypatch):
    monkeypatch.setattr(_machine, "features", lambda: {"found": ["X86_V3", "X86_V4", "AVX512_ICL"]})
    assert _machine.hidden()["NPY_DISABLE_CPU_FEATURES"] == "X86_V4 AVX512_ICL"
    assert program.available() == ["no-avx512", "all-features"]
    monkeypatch.setattr(_machine, "features", lambda: {"found": ["X86_V3"]})
    assert program.available() == ["no-avx512"]


def test_every_row_says_what_it_is_and_what_it_is_beside():
    assert len(ROWS) > 15
    assert all(": " in row.description for row in ROWS.values())


def test_agreement_names_the_worst_parameter():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((100_000, 3))
    moved = draws * [1.0, 1.2, 1.0] + [0.0, 0.0, 0.5]
    said = agreement(moved, draws, (1e5, 1e5))
    assert "within 0.498 sd" in said  # 0.5 over the third's own sd
    assert "sd ratio 1.200" in said


def test_the_reference_of_many_rows_is_the_quadrature():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = (rng.random(60) < 1 / (1 + np.exp(-X @ [1.5, -1.0]))).astype(int)
    found = _laplace.reference(X, y, prior_sd=2.0, n_pairs=40_000)
    axis = np.linspace(-6.0, 8.0, 201)
    grid = np.stack(np.meshgrid(axis, axis - 1.0, indexing="ij"), axis=-1).reshape(-1, 2)
    eta = X @ grid.T
    log_p = y @ eta - np.logaddexp(0, eta).sum(axis=0) - np.square(grid).sum(axis=1) / 8
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    sd = np.sqrt(p @ np.square(grid - p @ grid))
    assert np.linalg.norm(found["sd"] - sd) / np.linalg.norm(sd) < 4 * found["error"]
    # and the Laplace approximation alone is not: the correction is what is tested
    assert np.linalg.norm(found["laplace_sd"] - sd) / np.linalg.norm(sd) > 5 * found["error"]


def summary_of(mean, sd, error):
    names = ["a", "b"]
    columns = {"mean": mean, "sd": sd, "mcse_mean": error, "mcse_sd": error}
    return pd.DataFrame(columns, index=names)


def test_the_distance_of_two_fits_is_beyond_their_errors_and_names_the_worst():
    reference = summary_of([0.0, 2.0], [1.0, 4.0], 0.0)
    assert rare.distance(reference, reference)[:2] == (0.0, 0.0)
    mean, sd, worst = rare.distance(summary_of([0.5, 2.0], [1.0, 6.0], 0.0), reference)
    assert (mean, sd, worst) == (0.5, 0.5, "b")
    # draws whose own errors are huge, or not known, do not pass for that
    for error in (100.0, np.nan):
        mean, sd, _ = rare.distance(summary_of([0.5, 2.0], [1.0, 6.0], error), reference)
        assert mean > rare.MEAN and sd > rare.SD


@pytest.mark.filterwarnings("ignore")  # of few draws
@pytest.mark.parametrize("far", [3.0, 1e3])
def test_the_noise_alone_has_the_density_of_all_rows_without_the_mean(far):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
    X[7, 1] = far
    settings = {"noise_model": "log_linear", "prior": Normal(scale=1.0)}
    model = SGLDLinearRegression(**settings, n_draws=40, random_state=0).fit(X, y)
    noise = _unequal.Noise(model, X, y)
    noise.precision[-1] = 1e-2  # a proper prior of the intercept
    cov = noise.design @ np.diag(1.0 / noise.precision) @ noise.design.T
    steps = np.vstack([np.zeros(3), 0.3 * np.eye(3), [[0.0, -12.0 / far, 0.0]]])

    def exact(alpha):
        prior = noise.fitted.log_prior(np.r_[np.zeros(3), alpha][None])[0]
        total = cov + np.diag(np.exp(noise.in_noise @ alpha))
        return prior - 0.5 * (np.linalg.slogdet(total)[1] + y @ np.linalg.solve(total, y))

    off = [noise.at(alpha)[0] - exact(alpha) for alpha in steps]
    np.testing.assert_allclose(off, off[0], atol=1e-3)
    for alpha in steps:
        moves = 1e-5 * np.eye(3)
        slope = [(noise.at(alpha + h)[0] - noise.at(alpha - h)[0]) / 2e-5 for h in moves]
        np.testing.assert_allclose(noise.at(alpha)[1], slope, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("table", rare.TABLES)
def test_a_rare_table_has_a_model_without_what_is_rare(table):
    data = rare.TABLES[table](np.random.default_rng(0), 2_000)
    assert np.abs(data.eta).max() < 10.0 and data.X.shape == (len(data.rows), len(data.columns))
    assert not data.columns.all() or not data.rows.all()
    ordinary = data.X[data.rows][:, data.columns]
    used = (ordinary != 0).sum(axis=0)
    assert used.min() > 10 and np.abs(ordinary).max() < 10.0


RESULTS = page.load()


@pytest.mark.parametrize("path", page.PAGES, ids=lambda path: path.name)
def test_a_page_says_what_the_results_say(path):
    assert RESULTS
    text = path.read_text()
    assert page.render(text, RESULTS) == text, "run: python -m benchmarks.page"


def test_a_page_follows_a_result_that_changes():
    text = page.PAGES[0].read_text()
    changed = json.loads(json.dumps(RESULTS))
    first = next(iter(next(iter(changed.values()))["rows"].values()))["found"][0]
    first["value"] = 123.0
    assert "123" in page.render(text, changed)
    assert page.render(text, changed) != text


@pytest.mark.parametrize("path", page.PAGES, ids=lambda path: path.name)
def test_the_figures_of_a_page_are_there(path):
    names = re.findall(r"!\[[^]]+\]\((\S+)\)", path.read_text())
    assert names
    assert all((path.parent / name).is_file() for name in names)


@pytest.mark.parametrize("name", ["logistic", "log-linear noise"])  # with a peer, and without
def test_a_cell_of_the_grid_is_measured_kept_and_drawn(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="the figure needs the extra 'plot'")
    monkeypatch.setattr(grid, "ROWS", (60,))
    monkeypatch.setattr(grid, "COLUMNS", (5,))
    monkeypatch.setattr(grid, "RESULTS", tmp_path / "grid.json")
    monkeypatch.setattr(grid, "FIGURE", tmp_path / "grid.png")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows
        grid.measure(name)
    (cell,) = json.loads(grid.RESULTS.read_text())["models"][name]
    assert (cell["n"], cell["d"]) == (60, 5)
    assert cell["ours"] > 0.0
    assert (cell["theirs"] is None) == (grid.MODELS[name][2] is None)
    grid.draw()
    assert grid.FIGURE.stat().st_size > 10_000


def test_a_fit_that_takes_too_long_ends_and_larger_ones_are_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr(grid, "RESULTS", tmp_path / "grid.json")
    monkeypatch.setattr(grid, "_SECONDS", 0.05)
    assert grid.seconds(lambda: [None for _ in iter(int, 1)]) is None
    assert grid.seconds(lambda: None) < 0.05
    monkeypatch.setattr(grid, "seconds", lambda fit: None)
    found = grid.measure("logistic")
    assert [(cell["n"], cell["d"]) for cell in found] == [(1000, 5)]
