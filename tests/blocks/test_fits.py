"""Fits of rows in blocks: the posterior of the array in memory."""

import numpy as np
import pytest

from skbayes_sgld import (
    BayesByBackpropRegressor,
    RowBlocks,
    SGDMAPClassifier,
    SGDMAPRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDPoissonRegressor,
)
from skbayes_sgld._linalg import column_moments
from skbayes_sgld.blocks import passes
from skbayes_sgld.blocks import sample as drawing
from skbayes_sgld.blocks.passes import Encoding, find_posterior, first_pass
from skbayes_sgld.blocks.rows import Blocks
from skbayes_sgld.likelihoods import Bernoulli, Categorical, NormalNoise, Ordinal, Poisson
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.posterior.propriety import ImproperPosteriorError
from skbayes_sgld.priors import Flat, Laplace, Normal
from skbayes_sgld.rows.targets import Numbers
from skbayes_sgld.sampling.tuning.mode import newton_mode
from tests.blocks.windows import blocks_of
from tests.marks import slow

RNG = np.random.default_rng(0)
N, D = 5000, 3
X = RNG.standard_normal((N, D)) * [1.0, 100.0, 1e-3] + [0.0, 50.0, 1.0]  # raw units
ETA = (X - X.mean(axis=0)) / X.std(axis=0) @ [1.0, -0.5, 0.3] - 0.5
TARGETS = {
    "logistic": (RNG.random(N) < 1 / (1 + np.exp(-ETA))).astype(int),
    "rare": (RNG.random(N) < 1 / (1 + np.exp(5.0 - ETA))).astype(int),
    "labels": np.array(["low", "mid", "top"])[np.digitize(ETA + RNG.logistic(size=N), [-1, 1])],
    "poisson": RNG.poisson(np.exp(0.5 * ETA)),
    "linear": ETA + RNG.standard_normal(N),
}
WEIGHT = RNG.gamma(2.0, 0.5, N) * (RNG.random(N) < 0.9)
MODELS = {
    "logistic": SGLDLogisticRegression,
    "rare": SGLDLogisticRegression,
    "labels": SGLDLogisticRegression,
    "poisson": SGLDPoissonRegressor,
    "linear": SGLDLinearRegression,
}


def source_of(name, weight=None, dtype=np.float64, rows=N, **options):
    columns = X[:rows].astype(dtype), TARGETS[name][:rows], weight
    return blocks_of(*columns, size=700, **options)


def fit(name, *data, **settings):
    return MODELS[name](n_draws=300, n_chains=2, random_state=0, **settings).fit(*data)


# ---- the mode and the posterior of the sample --------------------------------------------------


def sampled(name, likelihood, prior, pool_size):
    """Posteriors of all rows and of a sample, the blocks, and how they are encoded."""
    y = np.unique(TARGETS[name], return_inverse=True)[1] if name == "labels" else TARGETS[name]
    y = y.astype(float)
    moments = X.mean(axis=0), X.std(axis=0)
    full = GLMPosterior(X, y, likelihood, prior, intercept_at_mean=True, moments=moments)
    source = blocks_of(X, y, size=900, pool_size=pool_size)
    first, _, sample, _ = first_pass(source, Numbers(likelihood=likelihood), 0)
    encoding = Encoding(Numbers(likelihood=likelihood))
    drawn, values = encoding.sampled(sample, first)
    options = {"sample_weight": values.weight, "intercept_at_mean": True, "moments": moments}
    return full, GLMPosterior(drawn, values.y, likelihood, prior, **options), source, encoding


@pytest.mark.parametrize(
    ("name", "likelihood", "prior"),
    [
        ("logistic", Bernoulli(), Normal()),
        ("rare", Bernoulli(), Flat()),
        ("labels", Categorical(3), Normal(scale=0.7)),
        ("labels", Ordinal(3), Normal(scale=0.7)),
        ("poisson", Poisson(), Laplace(scale=2.0)),
    ],
)
def test_mode_and_density_are_those_of_all_rows(name, likelihood, prior):
    full, model, source, encoding = sampled(name, likelihood, prior, 800)
    found = find_posterior(model, source, encoding)
    # the first gathers the sample, which then spares one: its higher orders lead near the mode
    assert source.n_passes == 3
    mode, precision = found.centered_normal()
    sds = np.sqrt(np.diagonal(np.linalg.inv(precision)))
    exact = newton_mode(full, full.start(), tolerance=1e-20)
    # a kink is smoothed over a share of the sds, which two searches know to about a per cent
    assert np.abs((mode - exact.theta) / sds).max() < (1e-3 if prior.nonsmooth else 1e-6)
    if prior.nonsmooth:
        return
    # about the mode only what is of third order is estimated
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    assert np.allclose(root.T @ full.curvature(exact.theta) @ root, np.eye(len(mode)), atol=1e-3)
    theta = mode + RNG.standard_normal((6, len(mode))) @ root.T
    gaps = [p.log_density(theta) - p.log_density(mode[None]) for p in (found, full)]
    most = 0.6 if name == "rare" else 0.05  # 50 rows of a class tell little of the third order
    assert np.abs(gaps[0] - gaps[1]).max() < most
    assert np.abs((found.grad(theta) - full.grad(theta)) @ root).max() < most


@pytest.mark.parametrize(
    ("name", "likelihood"),
    [
        ("logistic", Bernoulli()),
        ("labels", Categorical(3)),
        ("labels", Ordinal(3)),
        ("poisson", Poisson()),
    ],
)
def test_a_pass_is_spared_that_would_hardly_move_the_mode(name, likelihood):
    full, model, source, encoding = sampled(name, likelihood, Normal(), 2000)
    exact = newton_mode(full, full.start(), tolerance=1e-20)
    sds = exact.metric.marginal_sd
    found = find_posterior(model, source, encoding, error=0.01)
    assert source.n_passes == 2
    mode, precision = found.centered_normal()
    assert 1e-7 < np.abs((mode - exact.theta) / sds).max() < 0.04
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    assert np.allclose(root.T @ full.curvature(exact.theta) @ root, np.eye(len(mode)), atol=0.01)
    theta = mode + RNG.standard_normal((6, len(mode))) @ root.T
    assert np.abs((found.grad(theta) - full.grad(theta)) @ root).max() < 0.05
    # the standard error says how far it is
    mode, _ = find_posterior(model, source, encoding, error=1e-6).centered_normal()
    assert source.n_passes == 4  # two more
    assert np.abs((mode - exact.theta) / sds).max() < 1e-6


def test_a_sample_without_the_rows_that_matter_spares_no_pass(monkeypatch):
    monkeypatch.setattr(passes, "_GROUP_ROWS", 0)
    monkeypatch.setattr(drawing, "_EVEN", 1.0)
    twin = X[:, 0] + 5.0 * (np.arange(N) % 1000 == 7)  # five rows tell these columns apart
    rows = np.column_stack([X[:, 0], twin])
    y = (RNG.random(N) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
    source, n_passes = blocks_of(rows, y, size=900, pool_size=400), []
    first, _, sample, _ = first_pass(source, Numbers(likelihood=Bernoulli()), 0)
    encoding = Encoding(Numbers(likelihood=Bernoulli()))
    drawn, values = encoding.sampled(sample, first)
    assert np.all(drawn[:, 0] == drawn[:, 1])
    prior = Normal(scale=[1.0, 1.0])
    model = GLMPosterior(drawn, values.y, Bernoulli(), prior, sample_weight=values.weight)
    for error in (0.0, 0.01):
        mode, precision = find_posterior(model, source, encoding, error).centered_normal()
        n_passes.append(source.n_passes)
    assert n_passes[1] - n_passes[0] == n_passes[0] - 1
    full = GLMPosterior(rows, y, Bernoulli(), prior)
    moved = mode - newton_mode(full, full.start(), tolerance=1e-20).theta
    assert moved @ precision @ moved < 1e-6


def test_the_sample_of_many_rows_of_few_columns_is_larger():
    source = blocks_of(X, ETA, size=900)
    assert source.n_sampled == 50_000
    for n_rows, n_features, n_sampled in (
        (10_000_000, 20, 100_000),
        (100_000_000, 20, 150_000),
        (100_000_000, 500, 50_000),
    ):
        source.n_rows, source.n_features = n_rows, n_features
        assert source.n_sampled == n_sampled
    source.pool_size = 700
    assert source.n_sampled == 700


def test_columns_have_the_moments_of_all_rows_where_sums_stand_for_them():
    rows = Blocks(source_of("linear", WEIGHT), ())
    _, read = rows.encode(Numbers(likelihood=NormalNoise()), SGLDLinearRegression())
    assert read.summed
    for found, exact in zip(read.rows.moments, column_moments(X, WEIGHT), strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-10)


# ---- estimators ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dtype", "weighted", "settings"),
    [
        ("logistic", np.float32, True, {"class_weight": "balanced"}),
        ("labels", np.float64, False, {"class_weight": {"low": 2.0, "mid": 0.5, "top": 1.0}}),
        ("poisson", np.float64, True, {}),
    ],
)
def test_rows_that_fit_the_pool_are_fitted_as_the_array(name, dtype, weighted, settings):
    rows, weight = 1500, np.round(2.0 * WEIGHT) if weighted else None
    source = source_of(name, weight, dtype, rows=rows, pool_size=rows)
    found = fit(name, source, **settings)
    data = X[:rows].astype(dtype), TARGETS[name][:rows], None if weight is None else weight[:rows]
    expected = fit(name, *data, **settings)
    assert source.n_passes == 1
    assert np.array_equal(found.posterior_.values, expected.posterior_.values)


@pytest.mark.parametrize(
    ("name", "weighted", "settings"),
    [
        ("logistic", True, {"class_weight": "balanced", "prior": "flat"}),
        ("rare", False, {}),
        ("labels", True, {}),
        ("poisson", True, {"prior": "laplace"}),
    ],
)
def test_posterior_is_that_of_all_rows(name, weighted, settings):
    weight = WEIGHT if weighted else None
    source = source_of(name, weight, pool_size=2000)
    found, expected = (
        fit(name, *data, **settings).posterior_ for data in ((source,), (X, TARGETS[name], weight))
    )
    assert source.n_passes <= 4
    assert found.names == expected.names
    sd = expected.flat.std(axis=0)
    sd[sd == 0] = 1.0
    error = (found.flat.mean(axis=0) - expected.flat.mean(axis=0)) / sd
    assert np.abs(error).max() < 0.2  # draws of both: some share their noise, those of HMC do not
    assert np.abs(found.flat.std(axis=0) / sd - 1).max() < 0.2


@pytest.mark.parametrize(
    "settings", [{}, {"prior": "normal", "noise_variance": 1.3}, {"prior": "hierarchical_normal"}]
)
def test_linear_model_takes_one_pass_and_no_sample(settings):
    source = source_of("linear", WEIGHT, np.float32, pool_size=10)
    found = fit("linear", source, **settings)
    expected = fit("linear", X.astype(np.float32), TARGETS["linear"], WEIGHT, **settings)
    assert source.n_passes == 1
    values = found.posterior_.flat, expected.posterior_.flat
    if "prior_scale" in found.posterior_.names:  # of draws that are accepted or not
        sd = values[1].std(axis=0)
        assert np.abs((values[0].mean(axis=0) - values[1].mean(axis=0)) / sd).max() < 0.2
        assert np.abs(values[0].std(axis=0) / sd - 1).max() < 0.2
    else:
        assert np.allclose(*values, rtol=1e-5)


def test_columns_that_the_sample_has_few_rows_of(monkeypatch):
    monkeypatch.setattr(passes, "_GROUP_ROWS", 0)
    monkeypatch.setattr(drawing, "_EVEN", 1.0)  # rows of rare columns are likelier otherwise
    at = np.arange(N)[:, None] % 250 == np.arange(6)
    rare = np.column_stack([X[:, 0], at]).astype(float)
    y = (RNG.random(N) < 1 / (1 + np.exp(1.0 - X[:, 0]))).astype(int)
    y[at.any(axis=1)] = np.arange(at.sum()) // 6 % 2  # both labels in each column
    source = blocks_of(rare, y, size=900, pool_size=250)
    first, _, sample, _ = first_pass(source, Numbers(likelihood=Bernoulli()), 0)
    encoding = Encoding(Numbers(likelihood=Bernoulli()))
    drawn, values = encoding.sampled(sample, first)
    model = GLMPosterior(drawn, values.y, Bernoulli(), Flat(), intercept_at_mean=False)
    assert model.X[:, 1:].sum(axis=0).min() < 2
    mode, precision = find_posterior(model, source, encoding).centered_normal()
    full = GLMPosterior(rare, y.astype(float), Bernoulli(), Flat())
    exact = newton_mode(full, full.start(), tolerance=1e-20).theta
    moved = mode - exact
    assert moved @ precision @ moved < 1e-12


def test_a_label_of_one_block_alone_and_one_without_weight():
    y = np.where(np.arange(N) < 40, "rare", TARGETS["labels"])
    weight = np.where(y == "mid", 0.0, 1.0)
    source = blocks_of(X, y, weight, size=800, pool_size=1500)
    found, expected = fit("labels", source), fit("labels", X, y, weight)
    assert found.classes_.tolist() == ["low", "mid", "rare", "top"]
    probability = found.predict_proba(X[:200])
    assert np.all(probability[:, 1] == 0)
    assert np.abs(probability - expected.predict_proba(X[:200])).max() < 0.05


@pytest.mark.parametrize(
    ("kind", "name"), [(SGDMAPClassifier, "logistic"), (SGDMAPRegressor, "linear")]
)
def test_climbs_next_to_the_sample_end_at_the_mode_of_all_rows(kind, name):
    exact = kind(optimizer="newton", random_state=0).fit(X, TARGETS[name])
    sd = exact.posterior_.flat.std(axis=0)[: D + 1]
    for optimizer, most in (("newton", 1e-3), ("sgd", 0.3)):
        source = source_of(name, pool_size=2000)
        found = kind(optimizer=optimizer, random_state=0).fit(source)
        assert source.n_passes == (1 if name == "linear" else 3)
        moved = np.append(found.coef_ - exact.coef_, found.intercept_ - exact.intercept_) / sd
        assert np.abs(moved).max() < most and found.distance_ < most
        widths = found.posterior_.flat.std(axis=0)[: D + 1] / sd
        assert np.abs(widths - 1).max() < 0.01


# ---- errors -------------------------------------------------------------------------------------


def test_an_error_in_a_later_pass_leaves_the_estimator_as_it_was():
    model = fit("logistic", source_of("logistic", pool_size=800))
    before = dict(vars(model))
    n_read = 0

    def read():
        nonlocal n_read
        n_read += 1
        for start in range(0, N, 1000):
            rows = slice(start, start + 1000 - (n_read == 3 and start == 2000))
            yield X[rows], TARGETS["logistic"][rows]

    with pytest.raises(ValueError, match="block 2 has 999 rows, and had 1000.*same rows"):
        model.fit(RowBlocks(read, pool_size=800))
    assert vars(model) == before


@pytest.mark.parametrize(
    ("model", "y", "error", "message"),
    [
        (SGLDLogisticRegression(), ETA, ValueError, "y of block 0 has the value .* is no label"),
        (SGLDLogisticRegression(), np.ones(N), ValueError, "y has one class"),
        (SGLDLinearRegression(), TARGETS["labels"], ValueError, "y of block 0 has dtype <U3"),
        (SGLDLinearRegression(), np.ones(N), ValueError, "y is constant"),
        (SGLDPoissonRegressor(), np.arange(N) - 2000.5, ValueError, "block 0: y has the value"),
        (SGLDLogisticRegression(prior="horseshoe"), TARGETS["logistic"], ValueError, "blocks"),
        (SGLDLinearRegression(noise_model="log_linear"), ETA, ValueError, "noise_model"),
        (BayesByBackpropRegressor(), ETA, TypeError, "does not take RowBlocks"),
    ],
)
def test_what_cannot_be_fitted_is_refused(model, y, error, message):
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        model.fit(blocks_of(X, y, size=2000, pool_size=500))
    assert vars(model) == before


def test_dependent_columns_are_named():
    twice = np.column_stack([X, X[:, 0] * 2.0])
    with pytest.raises(ValueError, match="dependent|not determined"):
        fit(
            "logistic",
            blocks_of(twice, TARGETS["logistic"], size=2000, pool_size=500),
            prior="flat",
        )


# 50 draws of two chains are too few, and fit says so
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("size", "as_blocks"), [(0.01, True), slow(30.0, True), (0.01, False)])
def test_weights_separate_no_classes_and_join_none(size, as_blocks):
    weight = np.full(N, size)

    def fit_flat(y):
        model = SGLDLogisticRegression(prior="flat", n_draws=50, n_chains=2, random_state=0)
        if not as_blocks:
            return model.fit(X, y, weight)
        return model.fit(blocks_of(X, y, weight, size=2000, pool_size=500))

    assert np.isfinite(fit_flat(TARGETS["logistic"]).coef_).all()
    with pytest.raises(ImproperPosteriorError, match="a plane separates the classes"):
        fit_flat((ETA > 0).astype(int))


def test_partial_fit_and_rows_without_weight_are_refused():
    with pytest.raises(TypeError, match="partial_fit takes the rows of one block"):
        SGLDPoissonRegressor().partial_fit(source_of("poisson"), None)
    weightless = source_of("poisson", np.zeros(N))
    with pytest.raises(ValueError, match="the weights of all rows are zero"):
        SGLDPoissonRegressor().fit(weightless)
