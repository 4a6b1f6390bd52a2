"""Mixed models under settings, labels and columns that nobody expects: right, or an error."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skbayes_sgld import (
    ModelMisfitWarning,
    SGLDGammaRegressor,
    SGLDLinearRegression,
    SGLDLogisticRegression,
    check_model,
)
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.mixed.coordinates import standardise_mixed
from skbayes_sgld.mixed.labels import Labels
from skbayes_sgld.priors import GroupPrior, Normal
from skbayes_sgld.priors.group import LearnedCovariance
from tests.marks import SHORT, short_chains, slow
from tests.mixed.test_density import make_posterior

GROUPS = {"g": ["intercept", "x"]}
LEVELS = {"g": "intercept"}  # a fit of which takes a fifth of the time
N = 120


def made(seed=0, n=N, n_labels=8):
    """A frame, and y of a normal model with intercepts that vary."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_labels, size=n)
    frame = pd.DataFrame({"g": [f"s{k}" for k in labels], "x": rng.normal(size=n)})
    predictor = 0.3 + 0.5 * frame["x"] + rng.normal(0.0, 0.7, n_labels)[labels]
    return frame, (predictor + rng.normal(size=n)).to_numpy()


FRAME, Y = made()


def linear(**params):
    return SGLDLinearRegression(**{"group_effects": GROUPS, "random_state": 0, **params})


def list_of_lists(X):
    return X.to_numpy().tolist()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"temperature": 0.5}, "temperature=0.5 does not go with group_effects"),
        ({"temperature": 2.0}, "temperature=2.0 does not go with group_effects"),
        ({"batch_size": 32}, "batch_size=32 asks for minibatches.*group_effects"),
        ({"gradient": "minibatch"}, r"gradient=Minibatch\(\) asks for minibatches.*group_effects"),
        ({"sampler": "sgld", "batch_size": 32}, "batch_size=32.*group_effects"),
        ({"group_prior": GroupPrior(scale=[1.0, 2.0, 3.0])}, "group_prior has scale=.*2 effects"),
    ],
)
def test_settings_that_do_not_go_with_groups_are_refused(params, message):
    for model, y in [(linear(**params), Y), (_logistic(**params), Y > 0)]:
        with pytest.raises(ValueError, match=message):
            model.fit(FRAME, y)


def _logistic(**params):
    return SGLDLogisticRegression(**{"group_effects": GROUPS, "random_state": 0, **params})


@np.errstate(all="ignore")  # as in runs
def test_scales_beyond_floating_point_numbers_have_no_density():
    inner, _, _ = make_posterior("slopes", Bernoulli())
    posterior, _ = standardise_mixed(inner, 1.0)
    at = np.zeros((4, posterior.n_params))
    # sizes of hyperparameters at which hyperbolic functions overflow, and their products do
    for k, size in enumerate([1.0, 200.0, 500.0, 1e5]):
        at[k, inner.n_linear :] = size
    for each in (posterior, inner):
        for function in (each.value_and_grad, each.bind_value_and_grad()):
            value, grad = function(at)
            assert np.isfinite(value[0])
            assert not np.isnan(value).any()
            assert np.isfinite(grad).all()
        assert np.isfinite(each.bind_grad()(at)).all()


def test_correlations_of_nearly_1_are_reported_and_read_back():
    covariance = LearnedCovariance(np.ones(3), 3.0, 0.01, np.full(3, 0.1))
    h = np.array([[1.0, 1.0, 1.0, 30.0, 0.5, -30.0], [1.0, 2.0, 1.5, 0.3, -0.4, 0.2]])
    again = covariance.from_reported(covariance.to_reported(h))
    assert np.isfinite(again).all()
    np.testing.assert_allclose(again[1], h[1], rtol=1e-10)
    np.testing.assert_allclose(
        covariance.to_reported(again), covariance.to_reported(h), rtol=1e-7, atol=1e-7
    )


@short_chains
def test_a_checkpoint_knows_the_labels(tmp_path):
    path, longer = tmp_path / "run", SHORT | {"n_draws": 30}
    first = linear(**SHORT, group_effects=LEVELS, checkpoint=path).fit(FRAME, Y).posterior_.values
    resumed = linear(**longer, group_effects=LEVELS, resume_from=path)
    more = clone(resumed).fit(FRAME, Y).posterior_.values
    np.testing.assert_array_equal(more[:, :20], first)
    others = FRAME.assign(g=FRAME["g"].to_numpy()[::-1])
    with pytest.raises(ValueError, match="effects of g"):
        clone(resumed).fit(others, Y)
    with pytest.raises(ValueError, match="effects of g"):
        resumed.set_params(group_effects=GROUPS).fit(FRAME, Y)


@short_chains
def test_sparse_rows_give_the_model_of_dense_ones():
    codes = np.column_stack([pd.factorize(FRAME["g"])[0], FRAME["x"]])
    model = linear(group_effects={0: ["intercept", 1]}, **SHORT)
    dense = clone(model).fit(codes, Y).result_
    sparse = clone(model).fit(sp.csr_array(codes), Y)
    theta = dense.theta.reshape(-1, dense.theta.shape[-1])
    values = [each.plan.posterior.log_density(theta) for each in (dense, sparse.result_)]
    np.testing.assert_allclose(*values, rtol=1e-6)
    model.set_params(group_effects={0: "intercept"})
    expected = clone(model).fit(sp.csr_array(codes), Y)
    for kind in (sp.csc_matrix, sp.coo_array):
        other = clone(model).fit(kind(codes), Y)
        np.testing.assert_array_equal(other.posterior_.values, expected.posterior_.values)
    for rows in (sp.csr_array(codes), sp.csc_matrix(codes), sp.coo_array(codes)):
        np.testing.assert_allclose(sparse.predict(rows), sparse.predict(codes), atol=1e-9)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["1", 1], "'1' and 1 in column 'g', of one text"),
        ([True, 2], "labels such as True and 2 in column 'g', and True is equal to 1"),
        ([["a"], ["b"]], r"\['a'\] in column 'g', of type list"),
        ([{}, "b"], "{} in column 'g', of type dict"),
    ],
)
def test_labels_without_a_name_of_their_own_are_refused(labels, message):
    frame = FRAME.assign(g=pd.Series(labels * (N // 2), dtype=object))
    with pytest.raises((ValueError, TypeError), match=message):
        linear().fit(frame, Y)


def codes_of(known, later):
    """Codes of the labels ``later`` where a fit had the labels ``known``."""
    frame = pd.DataFrame({"g": known})
    labels = Labels.learned(frame, {0: "g"})
    return labels.encoded(pd.DataFrame({"g": later}))["g"].tolist()


DATES = pd.to_datetime(["2020-01-01", "2021-01-01"])


@pytest.mark.parametrize(
    ("known", "later"),
    [
        ([1, 2], pd.array([1, 2], dtype="Int64")),
        ([1, 2], [1.0, 2.0]),
        ([1.0, 2.5], np.array([1.0, 2.5], np.float32)),
        ([1, 2], pd.Categorical([1, 2], categories=[3, 2, 1])),
        ([False, True], pd.array([False, True], dtype="boolean")),
        (["a", "b"], pd.array(["a", "b"], dtype="string")),
        (DATES, DATES.to_numpy().astype("M8[s]")),
        ([0.0, 1.0], [-0.0, 1.0]),
        ([1, "a"], pd.Series([1, "a"], dtype=object)),
        ([2**62, 2**62 + 1], pd.array([2**62, 2**62 + 1], dtype="Int64")),
    ],
)
def test_labels_of_other_types_are_those_of_the_fit(known, later):
    assert codes_of(known, later) == [0.0, 1.0]
    assert codes_of(later, known) == [0.0, 1.0]


@pytest.mark.parametrize(
    ("known", "later", "message"),
    [
        ([1, 2], pd.Series([1, "2"], dtype=object), "'2' in column 'g', of type str.*fit had 1"),
        ([0, 1], [False, True], "False in column 'g', of type bool, and the fit had 0"),
        ([False, True], [0, 1], "0 in column 'g', of type number, and the fit had False"),
        (["a", "b"], [b"a", b"b"], "of type bytes, and the fit had 'a', of type str"),
        (
            [0.1, 0.2],
            np.array([0.1, 0.2], np.float32),
            "0.1000.* had 0.1, which is the same in float32",
        ),
        (DATES, DATES.tz_localize("UTC"), "of type Timestamp with a time zone, and the fit had"),
    ],
)
def test_labels_of_another_type_are_refused(known, later, message):
    """They would be new labels otherwise, without a word."""
    with pytest.raises(ValueError, match=message):
        codes_of(known, later)


@pytest.mark.parametrize("label", ["Oslo ", " Oslo", "oslo", "OSLO\n"])
def test_a_label_of_the_fit_but_for_case_or_spaces_is_told(label):
    with pytest.warns(
        UserWarning, match=r"X has the label .*(slo|SLO).* in column 'g'.*had 'Oslo'"
    ):
        assert codes_of(["Bern", "Oslo"], ["Bern", label])[1] < -1.0


def test_new_labels_of_a_type_of_the_fit_are_new():
    assert codes_of([1, "a"], ["z"])[0] < -1.0
    assert codes_of([1, 2], [3.5])[0] < -1.0
    assert codes_of([0.1, 0.2], [0.1 + 1e-12])[0] < -1.0
    # a date is one whatever its unit
    later = np.array(["2025-01-01"], "M8[D]")
    each = [codes_of(DATES, later.astype(f"M8[{unit}]"))[0] for unit in ("s", "us", "ns")]
    assert each[0] < -1.0
    assert len(set(each)) == 1


def test_pairs_of_labels_without_a_name_of_their_own_are_refused():
    rows = [("p:q", "r"), ("p", "q:r"), ("p", "r")] * (N // 3)
    frame = FRAME.assign(g=[a for a, _ in rows], h=[b for _, b in rows])
    with pytest.raises(ValueError, match="'p:q:r'.*'g:h'"):
        linear(group_effects={"g:h": "intercept"}).fit(frame, Y)


def test_a_slope_of_a_column_called_intercept_is_refused():
    frame = FRAME.rename(columns={"x": "intercept"})
    with pytest.raises(ValueError, match="rename the column"):
        linear(group_effects={"g": [1]}).fit(frame, Y)


@short_chains
def test_priors_by_position_are_of_the_columns_of_x():
    frame = FRAME.assign(z=np.linspace(-1.0, 1.0, N))
    small = Normal(scale=1e-3)
    named = linear(group_effects=LEVELS, prior={"x": small}).fit(frame, Y)
    assert abs(named.coef_[0]) < 0.01
    assert abs(named.coef_[1]) > 0.01
    named.set_params(**SHORT).fit(frame, Y)
    for key in (1, -2):
        fitted = clone(named).set_params(prior={key: small}).fit(frame, Y)
        np.testing.assert_array_equal(fitted.posterior_.values, named.posterior_.values)
    for key in ("g", 0, -3, 7):
        known = r"the columns of numbers are \['x', 'z'\]"
        with pytest.raises(ValueError, match=f"column {key!r}.*no coefficient.*{known}"):
            linear(group_effects=LEVELS, prior={key: small}).fit(frame, Y)


def test_names_that_are_no_text_ask_for_positions():
    for columns in ([0, 1], pd.MultiIndex.from_tuples([("a", "g"), ("a", "x")])):
        with pytest.raises(ValueError, match="have no names that are text; give positions"):
            linear(group_effects=LEVELS).fit(FRAME.set_axis(columns, axis=1), Y)
    with pytest.raises(ValueError, match=r"set_output\(transform='pandas'\)"):
        make_pipeline(FunctionTransformer(np.asarray), linear(group_effects=LEVELS)).fit(FRAME, Y)


@pytest.mark.parametrize("kind", [np.asarray, lambda X: X.to_numpy().astype(str), list_of_lists])
def test_text_of_an_array_that_no_term_names_is_told_by_its_column(kind):
    rows = kind(FRAME.assign(town="Ulm"))
    with pytest.raises(ValueError, match="X has the value 'Ulm' in column 2, which is not a real"):
        linear(group_effects={0: "intercept"}).fit(rows, Y)
    with pytest.raises(ValueError, match="X has the value 's.*' in column 0, which is not a real"):
        linear(group_effects=None).fit(rows, Y)


@short_chains
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({}, "group_effects={} has no term"),
        ({("g", "x", "z"): "intercept"}, "pairs of labels of two columns"),
        ({("g",): "x"}, None),
        ({"g:g": "intercept"}, "'g:g'; give a column, or 'a:b'"),
        ({"g:x": "intercept", "x:g": "intercept"}, "a column twice"),
        ({"g": "Intercept"}, "column 'Intercept'; .*; 'intercept' is the level of each label"),
        ({"g": ["1", "x"]}, "column '1'; .*; 'intercept' is the level of each label"),
    ],
)
def test_terms_that_name_columns_in_odd_ways(groups, message):
    frame = FRAME.assign(z=0.5 * FRAME["x"] ** 2)
    model = linear(group_effects=groups, **SHORT)
    if message is None:
        assert model.fit(frame, Y).coef_.shape == (2,)
        return
    with pytest.raises(ValueError, match=message):
        model.fit(frame, Y)


@short_chains
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_later_rows_have_the_columns_of_the_fit():
    fitted = linear(group_effects=LEVELS, **SHORT).fit(FRAME, Y)
    with pytest.raises(ValueError, match="groups=0 .* Name: g, .* give 'population'"):
        fitted.predict(FRAME[:2], groups=FRAME["g"][:2])
    for rows in (FRAME[["x", "g"]], FRAME[["x"]], FRAME.rename(columns={"g": "h"})):
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.predict(rows)
    with pytest.raises(ValueError, match="2 features"):
        fitted.predict(FRAME.to_numpy()[:, :1])
    plain = linear(group_effects=None, **SHORT).fit(FRAME[["x"]], Y)
    with pytest.raises(ValueError, match=r"(?s)unseen at fit time:\n- g"):  # not to be encoded
        plain.predict(FRAME)
    with pytest.raises(ValueError, match="minimum of 1"):
        fitted.predict(FRAME[:0])
    with pytest.warns(UserWarning, match="valid feature names") as caught:
        fitted.predict(FRAME.to_numpy(object))
    assert len(caught) == 1


def test_labels_alone_without_an_intercept():
    fitted = linear(group_effects=LEVELS, fit_intercept=False)
    fitted.fit(FRAME[["g"]], Y)
    means = pd.Series(Y).groupby(FRAME["g"]).mean()
    predictions = pd.Series(fitted.predict(FRAME[["g"]])).groupby(FRAME["g"]).first()
    assert np.corrcoef(means, predictions)[0, 1] > 0.95


@short_chains
def test_slopes_of_columns_in_raw_units_or_constant_are_told_of():
    years = FRAME.assign(x=np.random.default_rng(0).integers(1990, 2020, N))
    with pytest.warns(UserWarning, match="'x', which has mean 200.*subtract the mean"):
        linear(**SHORT).fit(years, Y)
    with pytest.warns(UserWarning, match="'x', which is constant"):
        linear(**SHORT).fit(FRAME.assign(x=1.0), Y)


def test_draws_from_the_prior_of_groups_are_refused():
    with pytest.raises(ValueError, match="sample_prior.*group_effects"):
        linear().sample_prior(FRAME, y=Y)


@short_chains
def test_files_of_skops_hold_labels():
    io = pytest.importorskip("skops.io")
    for labels in (FRAME["g"], FRAME["g"].str[1:].astype(int)):
        fitted = linear(group_effects=LEVELS, **SHORT).fit(FRAME.assign(g=labels), Y)
        file = io.dumps(fitted)
        types = io.get_untrusted_types(data=file)
        assert all(name.startswith(("skbayes_sgld", "pandas")) for name in types), types
        again = io.loads(file, trusted=types)
        rows = FRAME.assign(g=labels)
        np.testing.assert_array_equal(again.predict(rows), fitted.predict(rows))


@short_chains
@pytest.mark.parametrize("unit", ["D", None])
def test_dates_are_labels(unit):
    codes = pd.factorize(FRAME["g"])[0]
    dates = pd.to_datetime("2020-01-01", utc=unit is None) + pd.to_timedelta(codes, unit="D")
    frame = FRAME.assign(g=dates)
    terms = {"g": "intercept"}
    fitted = linear(group_effects=terms, **SHORT).fit(frame, Y)
    expected = linear(group_effects=terms, **SHORT).fit(FRAME, Y)
    np.testing.assert_array_equal(fitted.predict(frame), expected.predict(FRAME))
    assert any("2020-01-02 00:00:00" in name for name in fitted.posterior_.names)


@short_chains
def test_the_coordinates_that_an_error_names_are_accepted():
    with pytest.raises(ValueError, match="set parameterization='auto' or 'integrated'"):
        linear(parameterization="centered").fit(FRAME, Y)
    with pytest.raises(ValueError, match="set parameterization='auto' or 'standardised'"):
        _logistic(parameterization="centered").fit(FRAME, Y > 0)
    for name in ("integrated", "standardised"):
        fitted = linear(parameterization=name, group_effects=LEVELS, **SHORT).fit(FRAME, Y)
        assert fitted.parameterization_ == name
    with pytest.raises(ValueError, match="parameterization='integrated' needs group_effects"):
        SGLDLinearRegression(parameterization="integrated").fit(FRAME[["x"]], Y)


@short_chains
@pytest.mark.parametrize(("dtype", "first"), [(np.float64, 2**53), (np.float32, 2**24)])
def test_whole_numbers_that_floats_do_not_tell_apart_are_refused(dtype, first):
    # labels of a column with gaps, or of a list beside fractions: pairs of them were one label
    ids = first + pd.factorize(FRAME["g"])[0]
    model = linear(group_effects={"id": "intercept"}, **SHORT)
    rounded = FRAME[["x"]].assign(id=ids.astype(dtype))
    with pytest.raises(ValueError, match=f"column 'id' as {dtype.__name__}, which .* or text"):
        model.fit(rounded, Y)
    assert len(model.fit(FRAME[["x"]].assign(id=ids), Y).group_effects_) == FRAME["g"].nunique()
    with pytest.raises(ValueError, match="give labels as integers or text"):
        model.predict(rounded)


def test_rows_of_other_shapes_and_infinite_labels_are_refused():
    codes = np.column_stack([pd.factorize(FRAME["g"])[0], FRAME["x"]]).astype(float)
    model = linear(group_effects={0: "intercept"}, n_draws=300)
    with pytest.raises(ValueError, match="label inf or -inf in column 'x0'"):
        model.fit(np.where(codes == 3.0, np.inf, codes), Y)
    fitted = model.fit(codes, Y)
    with pytest.raises(ValueError, match="Reshape your data"):
        fitted.predict(codes[0])
    assert fitted.predict(codes.tolist()[:2]).shape == (2,)


def test_a_misfit_of_a_model_with_groups_names_no_setting_that_it_refuses():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(list("abcdef"), 400), "x": rng.uniform(0.0, 4.0, 400)})
    y = X["x"] + 0.3 * X["x"] ** 2 * rng.standard_normal(400)
    with pytest.warns(ModelMisfitWarning) as caught:
        SGLDLinearRegression(group_effects={"g": "intercept"}, random_state=0).fit(X, y)
    assert "noise_model" not in str(caught[0].message)
    with pytest.warns(ModelMisfitWarning, match="set noise_model='log_linear'"):
        SGLDLinearRegression(random_state=0).fit(X[["x"]], y)


@short_chains
@pytest.mark.parametrize("unit", [2.0**27, slow(2.0**-40), slow(2.0**149), slow(2.0**-149)])
def test_units_of_y_change_no_effect_of_groups_beside_noise_with_heavy_tails(unit):
    rng = np.random.default_rng(0)
    labels, x = rng.integers(30, size=600), rng.standard_normal(600)
    X = np.column_stack([labels, x])
    y = x + rng.standard_normal(30)[labels] + 0.7 * rng.standard_t(4, 600)
    model = SGLDLinearRegression(
        noise_distribution="student_t", group_effects={0: "intercept"}, random_state=0, **SHORT
    )
    plain, large = clone(model).fit(X, y), clone(model).fit(X, y * unit)
    assert plain.parameterization_ == large.parameterization_ == "by_label"
    # draws of effects have generators of their own, seeded by the other parameters
    np.testing.assert_allclose(large.coef_ / unit, plain.coef_, rtol=1e-4)
    # five standard errors of the mean of 40 draws, each of which varies by 0.25
    np.testing.assert_allclose(large.predict(X) / unit, plain.predict(X), rtol=0.0, atol=0.28)


def with_rows_of_their_own(n=240, share=0.8):
    """Normal rows, a share of whom have a label of their own, and the mask of these."""
    rng, k = np.random.default_rng(3), int(n * share)
    labels = np.r_[np.arange(k), k + np.arange(n - k) % ((n - k) // 4)]
    x, effects = rng.normal(size=n), 0.7 * rng.normal(size=labels.max() + 1)
    y = 0.5 * x + effects[labels] + 0.5 * rng.normal(size=n)
    return pd.DataFrame({"x": x, "g": labels.astype(str)}), y, np.arange(n) < k


def test_rows_with_a_label_of_their_own_are_not_left_out_by_weights():
    # all draws of the effect are near the row: intervals without it would hold all such rows
    X, y, own = with_rows_of_their_own()
    model = SGLDLinearRegression(group_effects={"g": "intercept"}, random_state=0).fit(X, y)
    check = check_model(model, X, y, remedies=False)
    assert check.verdict != "misfit"
    np.testing.assert_array_equal(check.rows, np.flatnonzero(~own))
    weight = np.where(own | (np.arange(240) % 2 > 0), 1.0, 0.0)
    columns = model._fitted.mixed
    encoded = columns.encoded(X).to_numpy()
    np.testing.assert_array_equal(columns.decide_alone(encoded), own)
    one_row_each = columns.decide_alone(encoded, weight)[weight > 0]
    labels = X["g"][weight > 0]
    np.testing.assert_array_equal(one_row_each, labels.groupby(labels).transform("size") == 1)


# a label a row: its effect and the noise are one, and chains may be slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_check_without_a_row_that_can_be_left_out_asks_for_new_rows():
    X, y, own = with_rows_of_their_own()
    X, y = X[own], y[own]
    with pytest.warns(UserWarning, match="effects are not told apart from the noise"):
        model = SGLDLinearRegression(group_effects={"g": "intercept"}, n_draws=200, random_state=0)
        model.fit(X, y)  # and no warning of a misfit
    with pytest.raises(ValueError, match="have a label in group_effects .* held_out=True"):
        check_model(model, X, y)
    new = X.assign(g=[f"new{k}" for k in range(len(X))])
    assert len(check_model(model, new, y, held_out=True, remedies=False).rows) == len(X)


def test_groups_as_a_remedy_gain_nothing_from_rows_of_their_own():
    # left out by weights they would seem to gain, with intervals that hold too many of them
    X, _, own = with_rows_of_their_own(200, 0.6)
    rng, codes = np.random.default_rng(0), X["g"].astype(int)
    y = rng.gamma(8.0, np.exp(0.5 * X["x"] + rng.normal(size=codes.max() + 1)[codes]) / 8.0)
    model = SGLDGammaRegressor(random_state=0).fit(X[["x"]], y)
    found = check_model(model, X[["x"]], y, groups=X["g"]).remedies
    best = found.iloc[0]
    assert "effects of groups" in best.name
    assert best["misfits"] == 0
