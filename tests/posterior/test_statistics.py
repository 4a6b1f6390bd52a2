"""Sufficient statistics of normal models: exact, from one pass, and summed over batches."""

import numpy as np
import pytest
from scipy import sparse

from skbayes_sgld.posterior import statistics as module
from skbayes_sgld.posterior.statistics import GaussianStatistics, shared_columns

N = 16_000


def table(n=N, d=6):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + rng.standard_normal(n), rng


def far(X):
    return X + 1e8


def sorted_column(X):
    return np.column_stack([np.sort(X[:, 0]), X[:, 1:]])


def rare_spikes(X):
    X[-20:, 0] = 1e6
    return X


def near_copies(X):
    X[:, 1] = X[:, 0] + 1e-5 * X[:, 1]
    return X


def typical_rows_far_from_the_mean(X):
    X += 1e4
    X[:: N // 1000] = 3.0  # fewer than a tenth: sums are taken about the mean, too
    return X


def single_precision(X):
    return (X + 1e3).astype(np.float32)


@pytest.mark.parametrize(
    "change, weighted",
    [
        (far, False),
        (far, True),
        (sorted_column, False),
        (rare_spikes, True),
        (near_copies, False),
        (typical_rows_far_from_the_mean, True),
        (single_precision, False),
    ],
)
def test_sums_are_those_of_the_centred_rows(change, weighted):
    X, y, rng = table()
    X = change(X)
    weight = rng.random(N) if weighted else None
    found = GaussianStatistics.from_rows(X, y, weight, refine=True)
    w = (np.ones(N) if weight is None else weight).astype(np.longdouble)
    exact_X, exact_y = X.astype(np.longdouble), y.astype(np.longdouble)
    mean_X, mean_y = w @ exact_X / w.sum(), w @ exact_y / w.sum()
    for mean, exact, values in ((found.x_mean, mean_X, X), (found.mean[-1], mean_y, y)):
        largest = np.abs(values).max(axis=0)
        assert np.all(np.abs(mean - exact) < 1e-14 * largest + 1e-11 * values.std(axis=0))
    exact_X -= mean_X
    exact_y -= mean_y
    gram = (exact_X * w[:, None]).T @ exact_X
    residual = exact_y - exact_X @ found.reference
    rss = w @ np.square(residual)
    spread = np.sqrt(np.diagonal(gram)).astype(float)
    unit = spread * spread[:, None]
    np.testing.assert_allclose(found.gram / unit, (gram / unit).astype(float), atol=1e-13)
    assert found.rss == pytest.approx(float(rss), rel=1e-12)
    cross = ((w * residual) @ exact_X / spread / np.sqrt(rss / w.sum())).astype(float)
    scale = spread * float(np.sqrt(rss / w.sum()))
    np.testing.assert_allclose(found.cross / scale, cross, atol=1e-9)


def test_a_constant_column_has_no_spread_at_all():
    X, y, _ = table()
    X[:, 3] = 0.1  # whose mean over many rows is rounded
    found = GaussianStatistics.from_rows(X, y, None, refine=True)
    assert not found.gram[3].any()
    assert abs(found.reference[3]) < 1e-9


@pytest.fixture
def passes(monkeypatch):
    """Number of axes of what each pass over the rows sums: products have two."""
    axes, whole = [], module._DenseRows._sum

    def counted(*arguments):
        found = whole(*arguments)
        axes.append(found.ndim)
        return found

    monkeypatch.setattr(module._DenseRows, "_sum", counted)
    return axes


def test_the_rows_are_read_once_and_twice_where_the_fit_is_close(passes):
    X, y, _ = table(40_000, 30)  # enough for threads
    for offset in (0.0, 1e8):
        GaussianStatistics.from_rows(X + offset, y, None, refine=True)
    assert passes == [2, 2]
    GaussianStatistics.from_rows(X, X[:, 0] + 1e-6 * y, None, refine=True)
    assert passes == [2, 2, 2, 1]


def test_targets_of_the_same_rows_share_the_products_of_the_columns(passes, monkeypatch):
    monkeypatch.setattr(module, "_SHARED_NUMBERS", 0)
    X, y, rng = table()
    weight = rng.random(N)
    tables = [(X, y), (X, 3.0 - 2.0 * y + X[:, 0]), (X, 1e3 + rng.standard_normal(N)), (X + 1.0, y)]
    alone = [GaussianStatistics.from_rows(*each, weight, refine=True) for each in tables]
    passes.clear()
    with shared_columns():
        shared = [GaussianStatistics.from_rows(*each, weight, refine=True) for each in tables]
    assert passes.count(2) == 2  # of X, and of X + 1
    for one, found in zip(alone, shared, strict=True):
        assert found.rss == pytest.approx(one.rss, rel=1e-12)
        np.testing.assert_allclose(found.gram, one.gram, rtol=1e-11, atol=1e-9)
        np.testing.assert_allclose(found.reference, one.reference, atol=1e-13 * 1e3)
        assert found.mean[-1] == pytest.approx(one.mean[-1], rel=1e-12)


# ---- sums of several batches ------------------------------------------------------------------

STEPS = np.random.default_rng(0).integers(0, 8, (400, 3)).astype(float)  # exact at any offset below
WEIGHT = np.random.default_rng(1).integers(1, 4, 400).astype(float)


def exact(rows, weight):
    """Total weight, mean and products about it."""
    mean = weight @ rows / weight.sum()
    return weight.sum(), mean, (rows - mean).T @ ((rows - mean) * weight[:, None])


def assert_sums(found, total, mean, products):
    assert found.total == pytest.approx(total, rel=1e-14)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.products, products, rtol=1e-9, atol=1e-9 * products.max())


def test_products_about_a_mean_that_is_rounded_are_exact():
    offset = 2.0**44  # numbers there are 1/256 apart, and so is what the mean is rounded to
    found = GaussianStatistics.from_rows(offset + STEPS[:, :2], offset + STEPS[:, 2], WEIGHT)
    total, mean, products = exact(STEPS, WEIGHT)
    assert_sums(found, total, offset + mean, products)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_sums_of_parts_are_those_of_the_whole(kind):
    table = STEPS + [16.0, 0.0, 0.0]  # products of the first column are taken about its mean, too
    parts = [
        GaussianStatistics.from_rows(kind(table[rows, :2]), table[rows, 2], WEIGHT[rows])
        for rows in (slice(0, 90), slice(90, 400))
    ]
    assert_sums(parts[0].plus(parts[1]), *exact(table, WEIGHT))
    assert_sums(parts[0].plus(parts[1]).tempered(0.25), *exact(table, 0.25 * WEIGHT))


@pytest.mark.parametrize(
    ("rows", "kind"), [("_DenseRows", np.asarray), ("_SparseRows", sparse.csr_array)]
)
def test_products_of_residuals_are_about_any_center(rows, kind):
    X, y, rng = table(300, 4)
    weight = rng.uniform(0.5, 2.0, 300)
    center, coef = rng.standard_normal(5), rng.standard_normal(4)
    residual = y - center[-1] - (X - center[:-1]) @ coef
    found = getattr(module, rows)(kind(X), y, weight).residual_products(center, coef)
    expected = np.column_stack([X - center[:-1], residual]).T @ (weight * residual)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_six_rows_stand_for_all_of_them():
    X, rows = GaussianStatistics.from_rows(STEPS[:, :2], STEPS[:, 2], WEIGHT).as_rows()
    y, weight = rows.y, rows.weight
    assert X.shape == (6, 2)
    assert_sums(GaussianStatistics.from_rows(X, y, weight), *exact(STEPS, WEIGHT))
