"""A caller's ``np.errstate`` changes nothing in any public call."""

import inspect
from contextlib import nullcontext
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

import skbayes_sgld
from skbayes_sgld import metrics
from skbayes_sgld.diagnostics import effective_sample_size, potential_scale_reduction
from skbayes_sgld.posterior import FunctionPosterior
from skbayes_sgld.sampling import find_mode
from skbayes_sgld.variational import BayesByBackprop
from tests.inputs.surface import ESTIMATORS, is_positive, of_support

# few draws, and short climbs: the estimators say so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3)) * [1.0, 1e-3, 1e4]
Y = X @ [30.0, 0.0, 0.0] + RNG.standard_normal(60)
FAR = np.concatenate([X[:5], 1e4 * X[:5]])  # densities and probabilities there underflow
SHORT = {
    "SGDMAP": {},
    "SGLDMLP": {"hidden_layer_sizes": (3,), "n_draws": 20, "n_burnin": 50, "thin": 1},
    "BayesByBackprop": {"hidden_layer_sizes": (3,), "max_iter": 50},
    "SGLD": {"n_draws": 50},
}
OTHER = {"set_params", "get_params", "fit", "get_metadata_routing", "set_callbacks"}
if find_spec("arviz") is None:  # the extra
    OTHER |= {"to_arviz"}
OTHER |= {"sample_prior", "partial_fit"}  # which have tests of their own


def make(kind):
    short = next(params for start, params in SHORT.items() if kind.__name__.startswith(start))
    model = kind(random_state=0, **short)
    return model, Y > 0 if is_classifier(model) else of_support(kind, Y)


def arguments(method, rows, y):
    """Arguments of a prediction by their names."""
    known = {"X": rows, "y": y[: len(rows)], "return_std": True}
    return {name: known[name] for name in inspect.signature(method).parameters if name in known}


def flat(value):
    if isinstance(value, dict):
        return [part for key in sorted(value) for part in flat(value[key])]
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in flat(item)]
    if hasattr(value, "groups"):  # ArviZ's, before its release 1.0 and since
        before = callable(value.groups)
        nodes = value.groups() if before else value.subtree
        sets = [value[node] if before else node.dataset for node in nodes]
        return [part for each in sets for name in each for part in flat(each[name].to_numpy())]
    return [np.asarray(value)] if np.asarray(value).dtype.kind in "fiub" else []


def assert_same(kind):
    """Fits, and every public method of the fit, with errors raised as without."""
    model, y = make(kind)
    expected = clone(model).fit(X, y)
    with np.errstate(all="raise"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.posterior_.values, expected.posterior_.values)
    names = [name for name in dir(kind) if not name.startswith(("_", "set_")) and name not in OTHER]
    for name in names:
        method = getattr(model, name)
        if callable(method):
            given = arguments(method, X[:10] if is_positive(kind) else FAR, y)
            wanted = flat(getattr(expected, name)(**given))
            with np.errstate(all="raise"):
                got = flat(method(**given))
            for a, b in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_the_callers_errstate_changes_no_fit_and_no_prediction(kind, capsys):
    assert_same(kind)


def test_the_callers_errstate_changes_no_batch_and_no_draw_from_the_prior():
    proper = {"intercept_prior": "normal", "prior": "normal"}
    model = skbayes_sgld.SGLDLogisticRegression(n_draws=300, random_state=0, **proper)
    expected = clone(model).partial_fit(X, Y > 0, [False, True])
    drawn = expected.sample_prior(FAR)
    with np.errstate(all="raise"):
        model.partial_fit(X, Y > 0, [False, True])
        np.testing.assert_array_equal(model.sample_prior(FAR), drawn)
    np.testing.assert_array_equal(model.posterior_.values, expected.posterior_.values)


def test_the_callers_errstate_changes_no_function(capsys):
    # a density that underflows, and weights that do
    normal = FunctionPosterior(lambda x: -0.5 * (x**2).sum(1), lambda x: -x, n_params=2)
    proba = np.array([[1e-300, 1.0], [1.0, 0.0], [0.4, 0.6]])
    mean = np.array([0.0, 1e3, -1e3])
    constant = np.ones((2, 100, 1))

    def results():
        drawn = skbayes_sgld.sample(normal, n_draws=50, random_state=0)
        q = BayesByBackprop(random_state=0, max_iter=50).fit(normal)
        return [
            drawn.values,
            drawn.summary().to_numpy(),
            drawn.diagnose().table.to_numpy(),
            find_mode(normal, np.full(2, 1e-200)).theta,
            q.mean_,
            metrics.brier_score([0, 1, 1], proba),
            metrics.calibration_error([0, 1, 1], proba),
            metrics.crps(mean, RNG_DRAWS * 1e-200),
            effective_sample_size(constant),
            potential_scale_reduction(constant),
        ]

    outside = results()
    with np.errstate(all="raise"):
        inside = results()
    for a, b in zip(inside, outside, strict=True):
        np.testing.assert_array_equal(a, b)


RNG_DRAWS = check_random_state(0).standard_normal((3, 40))


def test_scorers_wrappers_and_the_callers_own_errstate():
    model = skbayes_sgld.SGLDLinearRegression(n_draws=50, random_state=0).fit(X, Y)
    scorers = [metrics.get_scorer(name) for name in metrics.get_scorer_names()]
    numeric = [scorer for scorer in scorers if "brier" not in scorer.name]
    found = []
    for errors in (nullcontext(), np.errstate(all="raise")):
        with errors:
            before = np.geterr()
            values = [scorer(model, FAR, Y[:10]) for scorer in numeric]
            values.append(skbayes_sgld.predict_interval(model, FAR).sum())
            assert np.geterr() == before  # the caller's is as it was
        found.append(values)
    np.testing.assert_array_equal(*found)
