"""Every public function, method and table follows the conventions of docs/guide/conventions.md."""

import inspect
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier

import skbayes_sgld
from skbayes_sgld import (
    check_model,
    compare_models,
    datasets,
    diagnose,
    diagnostics,
    effects,
    likelihoods,
    metrics,
    optimizers,
    own_models,
    plotting,
    posterior,
    priors,
    sampling,
    summary,
    variational,
)
from skbayes_sgld.metrics import loo

ESTIMATORS = [
    value
    for name in skbayes_sgld.__all__
    if inspect.isclass(value := getattr(skbayes_sgld, name)) and hasattr(value, "fit")
]
DISPLAYS = [getattr(plotting, name) for name in plotting.__all__]
# of no fitted estimator: a run, a file, a user's model
NOT_OF_A_FIT = {"skbayes_sgld.sample", "skbayes_sgld.gather_warnings"}


def functions():
    """Public functions, by name."""
    for module in (skbayes_sgld, metrics, diagnostics, datasets):
        for name in module.__all__:
            if inspect.isfunction(value := getattr(module, name)):
                yield f"{module.__name__}.{name}", value


def methods():
    """Public methods of estimators and displays, and their constructors' other ways in."""
    results = skbayes_sgld.SamplingResult, skbayes_sgld.PosteriorDraws, variational.BayesByBackprop
    for cls in (*ESTIMATORS, *DISPLAYS, *results):
        for name in dir(cls):
            value = getattr(cls, name)
            if not name.startswith(("_", "set_")) and callable(value):
                yield f"{cls.__name__}.{name}", value


def constructors():
    for cls in (*ESTIMATORS, *DISPLAYS):
        yield cls.__name__, cls


CALLS = dict([*functions(), *methods()])
ALL = CALLS | dict(constructors())


def of_a_fit(name):
    """Whether a call takes a fitted estimator, or is a method of one."""
    last = name.rpartition(".")[2]
    return name in CALLS and name not in NOT_OF_A_FIT and not last.startswith("make_")


def test_a_name_of_a_parameter_means_one_thing():
    # names that other libraries have for what has one name here
    others = {"model", "models", "band", "level", "levels", "quantiles", "prob", "alpha", "ci"}
    others |= {"hdi_prob", "confidence_level", "num_samples", "seed", "rng"}
    defaults = {
        "coverage": {0.9, inspect.Parameter.empty},
        "band_coverage": {0.9},
        "n_rows": {500, 2000},  # 500 for averages over all rows
        "q": {inspect.Parameter.empty, (0.05, 0.5, 0.95)},
    }
    for name, call in ALL.items():
        for taken in inspect.signature(call).parameters.values():
            assert taken.name not in others, name
            if name.startswith("CoverageDisplay") and taken.name == "coverage":
                continue  # those that are drawn
            assert taken.default in defaults.get(taken.name, {taken.default}), name


def test_seeds_are_0_in_calls_of_a_fit_and_none_elsewhere():
    for name, call in ALL.items():
        taken = inspect.signature(call).parameters.get("random_state")
        if taken is not None:
            assert taken.default == (0 if of_a_fit(name) else None), name


def test_numbers_of_draws_are_one_or_all():
    for name in filter(of_a_fit, CALLS):
        taken = inspect.signature(CALLS[name]).parameters.get("n_samples")
        if taken is not None:
            one = name.endswith(("sample_y", "sample_prior", ".sample"))
            assert taken.default == (1 if one else None), name


def test_functions_of_a_fit_take_the_estimator_the_rows_and_arguments_by_row():
    for name, call in functions():
        taken = list(inspect.signature(call).parameters.values())
        if "X" in [each.name for each in taken]:
            first = "estimators" if name.endswith("compare_models") else "estimator"
            assert [each.name for each in taken[:2]] == [first, "X"], name
            assert taken[-1].kind is inspect.Parameter.VAR_KEYWORD, name
    for name, call in methods():
        if "from_estimator" in name:
            taken = list(inspect.signature(call).parameters.values())
            assert taken[0].name == ("estimators" if name.endswith("s") else "estimator"), name
            # contours are drawn on a grid
            if taken[1].name == "X" and not name.startswith("ProbabilityContour"):
                assert taken[-1].kind is inspect.Parameter.VAR_KEYWORD, name
                assert taken[-1].name in ("by_row", "params"), name


def test_no_two_public_classes_have_one_name_and_no_distribution_has_two():
    known = {}
    modules = priors, likelihoods, variational, posterior, sampling, optimizers, own_models, metrics
    for module in (*modules, plotting, skbayes_sgld):
        for name in module.__all__:
            if inspect.isclass(value := getattr(module, name)):
                assert known.setdefault(name, value) is value, name
                assert "Gaussian" not in name or name == "TiedGaussianMixture", name


# ---- shapes and tables --------------------------------------------------------------------------

RNG = np.random.default_rng(0)
N, D = 60, 2
X = pd.DataFrame(RNG.standard_normal((N, D)), columns=["age", "size"])
ETA = X["age"].to_numpy()
FEW = {"n_draws": 250, "n_chains": 2, "random_state": 0}
SHORT = {"hidden_layer_sizes": (2,), "random_state": 0, "n_draws": 20}
FAST = {
    "SGLDMLPRegressor": SHORT | {"n_chains": 2, "n_burnin": 20, "thin": 1},
    "SGLDMLPClassifier": SHORT | {"n_chains": 2, "n_burnin": 20, "thin": 1},
    "BayesByBackpropRegressor": SHORT | {"max_iter": 20},
    "BayesByBackpropClassifier": SHORT | {"max_iter": 20},
    "SGDMAPRegressor": {"random_state": 0},
    "SGDMAPClassifier": {"random_state": 0},
}
TARGETS = {
    "SGLDPoissonRegressor": RNG.poisson(np.exp(ETA)),
    "SGLDNegativeBinomialRegressor": RNG.poisson(np.exp(ETA)),
    "SGLDGammaRegressor": np.exp(ETA) * RNG.gamma(4.0, 0.25, N),
    "SGLDBetaBinomialRegressor": RNG.binomial(9, 0.4, N),
}


@pytest.fixture(scope="module", params=ESTIMATORS, ids=lambda cls: cls.__name__)
def fitted(request):
    """A fitted estimator, its target, its arguments by row and the axis of classes or outputs."""
    cls = request.param
    name, several = cls.__name__, ()
    y = TARGETS.get(name, ETA + RNG.standard_normal(N))
    if is_classifier(cls()):
        y, several = np.digitize(ETA + RNG.logistic(size=N), [-1.0, 1.0]), (3,)
    elif name in ("SGLDLinearRegression", "SGDMAPRegressor"):
        y, several = np.column_stack([y, -y]), (2,)
    by_row = {"n_trials": np.full(N, 9)} if name == "SGLDBetaBinomialRegressor" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of short runs
        return cls(**FAST.get(name, FEW)).fit(X, y, **by_row), y, by_row, several


def test_rows_come_first_then_classes_or_outputs_then_ends_quantiles_or_draws(fitted):
    model, y, by_row, several = fitted
    labels = hasattr(model, "classes_")
    outputs, n_draws = () if labels else several, len(model.posterior_.flat)
    levels, coverages = [0.1, 0.2, 0.5, 0.9], [0.5, 0.8, 0.9]
    expected = {
        "predict": ({}, outputs),
        "predict_interval": ({}, (*outputs, 2)),
        "predict_proba": ({}, several),
        "predict_log_proba": ({}, several),
        "decision_function": ({}, several),
        "predict_proba_interval": ({}, (*several, 2)),
        "predict_quantiles": ({"q": levels}, (*outputs, 4)),
        "predict_proba_quantiles": ({"q": levels}, (*several, 4)),
        "posterior_mean_draws": ({"n_samples": 7}, (*several, 7)),
        "sample_y": ({"n_samples": 7}, (*outputs, 7)),
        "predict_cdf": ({"y": y}, outputs),
        "log_predictive_density": ({"y": y}, outputs),
        "log_likelihood": ({"y": y}, (*outputs, n_draws)),
    }
    others = {"fit", "partial_fit", "score", "to_arviz", "diagnose", "sample_prior"}
    for name in dir(model):
        method = getattr(model, name) if not name.startswith("_") else None
        if not inspect.ismethod(method) or "X" not in inspect.signature(method).parameters:
            continue
        if name in others:
            continue
        given, tail = expected[name]  # a new method of rows has its shape in the table above
        assert method(X, **given, **by_row).shape == (N, *tail), name
        if "interval" in name:
            assert method(X, coverages, **by_row).shape == (N, *tail, 3)
    assert model.posterior_.values.ndim == 3
    for draws in model.sample_posterior(11).values():
        for each in draws if isinstance(draws, list) else [draws]:
            assert len(each) == 11


def test_tables_of_a_fit_have_the_same_names_of_columns(fitted):
    model, y, by_row, several = fitted
    tables = [summary(model), effects(model, X, **by_row)]
    if not hasattr(model, "classes_"):
        tables.append(skbayes_sgld.predict_interval(model, X, as_frame=True, **by_row))
        assert tables[-1].index.equals(X.index)
    for table in tables:
        names = table.columns.get_level_values(-1)
        assert {"lower", "upper"} <= set(names)
    assert tables[0].attrs["coverage"] == tables[1].attrs["coverage"] == 0.9


def test_reports_show_themselves_with_the_words_of_their_tables(capsys):
    y = np.exp(ETA) * (1.0 + 0.1 * RNG.standard_normal(N))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model is wrong
        model = skbayes_sgld.SGLDLinearRegression(random_state=0).fit(X, y)
        draws, check, left_out = model.diagnose(), check_model(model, X, y), loo(model, X, y)
        both = diagnose(model, X, y, remedies=False)
        table = compare_models({"a": model}, X, y)
    for report in (draws, check, left_out, both):
        assert repr(report) == str(report) and "\n" in repr(report)
    assert capsys.readouterr().out == ""
    words = "fits", "look at it", "unknown", "misfit"
    assert check.verdict in words and set(check.table["verdict"]) <= {*words, "-"}
    assert repr(check).startswith(f"Does the model fit? {check.verdict}: ")
    assert repr(draws).startswith(f"Did the sampler work? {draws.verdict}: ")
    for each in (check.remedies, table):
        assert {"difference", "se_difference"} <= set(each)
    assert "se" in check.table and check.n_data_points == left_out.n_data_points == N


# ---- defaults -----------------------------------------------------------------------------------

# a word of the documentation that says why the defaults of a parameter differ
WHY = {
    "dispersion_prior": "prefers Poisson counts",
    "hidden_layer_sizes": "sampled networks",
    "max_iter": "``SGDMAP*``",
    "n_draws": "linear model",
    "preconditioner": "sampled estimators",
    "prior": "sampled estimators",
    "schedule": "sampled estimators",
    "step_size": 'no ``"auto"``',
}


def paragraph(cls, parameter):
    """Documentation of a parameter."""
    found = re.search(rf"\n    {parameter} : .*?(?=\n    \w|\Z)", cls.__doc__, re.DOTALL)
    return " ".join(found.group().split()) if found else ""


def test_a_parameter_has_one_default_or_its_documentation_says_why():
    defaults, said = {}, {}
    for cls in ESTIMATORS:
        for name, value in cls().get_params(deep=False).items():
            defaults.setdefault(name, set()).add(repr(value))
            said[name] = said.get(name, "") + paragraph(cls, name)
    assert {name for name, values in defaults.items() if len(values) > 1} == set(WHY)
    for name, words in WHY.items():
        assert words in said[name], name
