"""The measurement of coverage on real data sets: its sets, its arithmetic, and two small sets."""

from importlib import util
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

for library in ("statsmodels", "mapie"):
    pytest.importorskip(library, reason="the data and the intervals beside ours")

from benchmarks import real_data  # noqa: E402
from benchmarks._real_scores import LEVELS, coverage, of_intervals, of_probabilities, wrong  # noqa: E402
from benchmarks._real_sets import SETS  # noqa: E402
from skbayes_sgld import SGLDLogisticRegression  # noqa: E402


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_what_its_kind_says(name):
    kind, X, y, size = SETS[name].data()
    assert X.shape == (len(y), X.shape[1]) and np.isfinite(X).all() and np.ptp(X, axis=0).all()
    assert SETS[name].source and SETS[name].licence
    assert (y.dtype.kind == "f") is (kind == "numbers")
    if kind in ("counts", "totals"):
        assert y.min() >= 0
    if size is not None:
        assert size.min() > 0 and (kind == "counts" or np.all(y <= size))
    if "classes" in kind:
        assert 2 <= len(np.unique(y)) <= 10


def test_there_are_sets_of_every_kind():
    kinds = [each.kind for each in SETS.values()]
    assert len(kinds) >= 25
    assert set(kinds) == {"numbers", "counts", "totals", "classes", "ordered classes"}


@pytest.mark.parametrize(
    "power, groups",
    [(0.0, set()), (1.0, {"low", "high"}), (None, {"all", "low", "middle", "high"})],
)
def test_intervals_that_do_not_hold_are_found(power, groups):
    """Noise of one size, noise that grows with the mean, and noise twice as large as is said."""
    rng = np.random.default_rng(0)
    mean = rng.uniform(0.3, 3.0, 3000)
    sd = np.full(3000, 2.0) if power is None else mean**power
    y = mean + sd * rng.standard_normal(3000)
    spread = 1.0 if power is None else np.sqrt(np.mean(sd**2))
    half = spread * stats.norm.ppf(0.5 + np.array(LEVELS) / 2.0)
    ends = mean[:, None, None] + np.stack([-half, half])
    assert set(wrong(coverage(of_intervals(y, mean, ends, None)))) - {"50 %"} == groups


def test_sets_of_labels_hold_what_their_probabilities_say():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0, 1.0, 1.0], 6000)
    y = (rng.random(6000)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    right = of_probabilities(y + 4, p, np.array([4, 5, 6]))
    assert right.expected.min(axis=0) == pytest.approx([0.9, 0.5], abs=0.01)
    assert wrong(coverage(right)) == []
    sharper = p**3 / (p**3).sum(axis=1, keepdims=True)
    assert "all" in wrong(coverage(of_probabilities(y + 4, sharper, np.array([4, 5, 6]))))


@pytest.fixture
def four_folds(monkeypatch):
    monkeypatch.setattr(real_data, "_N_FOLDS", 4)


def test_the_program_measures_a_small_set_of_numbers(four_folds):
    found = real_data.measure("stackloss")
    assert (found["n"], found["d"]) == (21, 3)
    _, X, y, _ = SETS["stackloss"].data()
    inside, score = [], []
    for train, test in KFold(4, shuffle=True, random_state=0).split(X):
        A, B = (np.column_stack([np.ones(len(rows)), X[rows]]) for rows in (train, test))
        inverse = np.linalg.inv(A.T @ A)
        beta = inverse @ A.T @ y[train]
        df = len(train) - A.shape[1]
        variance = np.sum((y[train] - A @ beta) ** 2) / df
        half = stats.t.ppf(0.95, df) * np.sqrt(variance * (1.0 + np.sum(B @ inverse * B, axis=1)))
        error = np.abs(y[test] - B @ beta)
        inside += list(error <= half)
        score += list(2.0 * half + 20.0 * np.maximum(error - half, 0.0))
    peer, ours = found["methods"]["statsmodels OLS"], found["methods"]["default"]
    assert peer["coverage"]["0.9"]["all"][0] == pytest.approx(np.mean(inside), abs=1e-5)
    assert peer["score"] == pytest.approx(np.mean(score))
    assert peer["ratio"][0] == pytest.approx(peer["score"] / ours["score"])
    assert ours["score"] == pytest.approx(peer["score"], rel=0.15)


def test_the_program_measures_a_small_set_of_classes(four_folds):
    found = real_data.measure("spector")
    _, X, y, _ = SETS["spector"].data()
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    peer = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    models = {"LogisticRegression": peer, "default": SGLDLogisticRegression(random_state=0)}
    for name, model in models.items():
        p = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
        assert found["methods"][name]["score"] == pytest.approx(log_loss(y, p))


def test_a_library_that_raises_is_noted():
    data = SETS["spector"].data()
    said = real_data.judge(lambda train, test: 1 / 0, real_data.cut(data, 4))
    assert said == "ZeroDivisionError: division by zero"
    assert real_data.summary(said) == {"raised": said}


# ---- what the page says of them ------------------------------------------------------------------


@pytest.fixture
def page():
    path = Path(__file__).parents[2] / "docs" / "measured" / "real_data.py"
    spec = util.spec_from_file_location("page_of_real_data", path)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kept(n, shares, said=(), misfits=(), after=None):
    """Result of a set: shares of 50 % intervals, of 90 % intervals, and of these by thirds."""

    def cells(values):
        sizes = [n, n, *(len(part) for part in np.array_split(np.arange(n), 3))]
        levels = [0.5, 0.9, 0.9, 0.9, 0.9]
        errors = [np.sqrt(p * (1 - p) / size) for p, size in zip(levels, sizes, strict=True)]
        each = [list(cell) for cell in zip(values, levels, errors, strict=True)]
        names = ["all", "low", "middle", "high"]
        return {"0.5": {"all": each[0]}, "0.9": dict(zip(names, each[1:], strict=True))}

    methods = {"default": {"coverage": cells(shares)}}
    if after is not None:
        methods["suggestion"] = {"coverage": cells(after)}
    return {"n": n, "said": list(said), "misfits": list(misfits), "methods": methods}


RIGHT, FAN = [0.5, 0.9, 0.9, 0.9, 0.9], [0.5, 0.9, 1.0, 0.9, 0.8]
FOUND = {
    "engel": kept(300, FAN, ["ModelMisfitWarning: x"], ["noise"], RIGHT),
    "nile": kept(300, FAN, ["ConvergenceWarning: x"], ["noise"]),
    "diabetes": kept(300, FAN),
    "stackloss": kept(300, RIGHT, (), ["tails"], FAN),
    "wine": kept(300, RIGHT),
}


def test_the_page_counts_what_is_said_of_sets_that_do_not_hold(page):
    rows = page.sayings(FOUND)

    def counts(key):
        return [cell["value"] for cell in rows[key].values() if isinstance(cell, dict)]

    assert counts("all, do not hold") == [3, 1, 2, 1]
    assert counts("all, hold") == [2, 0, 1, 1]
    assert counts("numbers, hold") == [1, 0, 1, 0]
    named = page.named(FOUND)
    assert list(named) == ["engel", "nile", "diabetes", "stackloss"]
    assert named["engel"]["suggestion does not hold"] == "-"
    assert named["nile"]["suggestion does not hold"] == "none"
    assert named["stackloss"]["suggestion does not hold"] == "low, high"
    verdicts = page.verdicts(FOUND)
    held = {name: row["hold in both"]["value"] for name, row in verdicts.items()}
    assert (held["all, default"], held["all, suggestion"]) == (2, 2)


def test_the_page_tells_what_chance_explains(page):
    each = stats.binom.pmf(np.arange(101), 100, 0.9)
    as_rare = each[each <= each[100]].sum()  # as all of a hundred
    assert page.chance(FOUND["nile"]) == pytest.approx(5 * as_rare)
    # shares of 21 rows: 7 a third, of which 4 or fewer do not hold, nor 12 of all
    few = kept(21, RIGHT)
    thirds = 1 - stats.binom.sf(4, 7, 0.9) ** 3
    halves = 2 * stats.binom.cdf(4, 21, 0.5)
    found = page.by_chance({"one": few, "another": few})
    least, most = 2 * max(thirds, halves), 2 * (thirds + halves + stats.binom.cdf(15, 21, 0.9))
    assert least <= found["value"] <= most
    assert page.by_chance({"large": kept(10**5, RIGHT)})["value"] == 0.0
