"""scikit-learn's callbacks: every fit tells its steps, nested under searches and pipelines."""

import importlib.util
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skbayes_sgld
from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.estimators import callbacks
from tests.annexes import later

# 50 draws are too few for the summaries to be relied on, and the estimators say so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = np.random.default_rng(0).standard_normal((40, 2))
Y = X[:, 0] + np.random.default_rng(1).standard_normal(40)
MODEL = SGLDLinearRegression(n_draws=50, random_state=0)
FITS = {
    "sampled": lambda: clone(MODEL),
    "climbed": later("SGDMAPRegressor", max_iter=120, tol=1e9, random_state=0),
    "newton": later("SGDMAPRegressor", optimizer="newton", random_state=0),
}


callback = pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")


class Recorder:
    """A callback that notes every event with the path of its task.

    It asks to stop at the end of ``stop``, a task's name and number.
    """

    max_propagation_depth = None

    def __init__(self, *stop):
        self.events, self.stop = [], stop

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, metadata=None):
        self.note("begin", context, X, metadata)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if fitted_estimator is not None and hasattr(fitted_estimator, "predict"):
            fitted_estimator.predict(X[:2])
        self.note("end", context)
        return (context.task_name, context.task_id) == self.stop

    def note(self, what, context, *data):
        path = []
        while context is not None:
            path.append((context.estimator_name, context.task_name))
            context = context.parent
        self.events.append((what, tuple(reversed(path)), *data))

    def of(self, what, name):
        chosen = (event for event in self.events if event[0] == what)
        return [event for event in chosen if event[1][-1] == name]


@pytest.mark.parametrize("name", FITS)
def test_callbacks_see_the_fit_and_its_steps(name):
    estimator, recorder = FITS[name](), Recorder()
    model = clone(estimator).set_callbacks(recorder)
    weight = np.full(40, 2.0)
    model.fit(X, Y, sample_weight=weight)
    kind = type(model).__name__
    assert recorder.events[0] == "setup" and recorder.events[-1] == "teardown"
    [begun] = recorder.of("begin", (kind, "fit"))
    assert begun[2] is X
    assert begun[3]["sample_weight"] is weight
    assert len(recorder.of("end", (kind, "fit"))) == 1
    step = (kind, "climbing" if kind.startswith("SGDMAP") else "sampling")
    n_tasks = len(recorder.of("begin", step))
    assert len(recorder.of("end", step)) == n_tasks
    assert n_tasks == 50 or name != "sampled"  # which may arrive before max_iter
    np.testing.assert_array_equal(
        model.posterior_.values, clone(estimator).fit(X, Y, sample_weight=weight).posterior_.values
    )
    assert not [key for key in vars(model) if "callback_fit_ctx" in key]


def test_callbacks_of_a_search_reach_the_fits_within():
    recorder = Recorder()
    pipe = make_pipeline(StandardScaler(), MODEL)
    search = GridSearchCV(pipe, {"sgldlinearregression__temperature": [1.0, 2.0]}, cv=2)
    search.set_callbacks(recorder).fit(X, Y)
    sampled = recorder.of("end", ("SGLDLinearRegression", "sampling"))
    assert len(sampled) == 50 * (2 * 2 + 1)
    kinds = [kind for kind, _ in sampled[0][1]]
    assert kinds[0] == "GridSearchCV" and "Pipeline" in kinds
    assert recorder.events.count("teardown") == recorder.events.count("setup") == 1


def test_callbacks_are_torn_down_where_a_fit_fails():
    recorder = Recorder()
    model = clone(MODEL).set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X * np.nan, Y)
    assert recorder.events[-1] == "teardown"
    assert not [key for key in vars(model) if "callback_fit_ctx" in key]


def test_scikit_learns_progress_bar_runs_to_its_end(capsys):
    pytest.importorskip("rich", reason="scikit-learn's bar needs rich")
    clone(MODEL).set_callbacks(callback.ProgressBar()).fit(X, Y)
    shown = capsys.readouterr().out
    assert "SGLDLinearRegression - fit" in shown
    assert "100%" in shown


def test_without_scikit_learns_callbacks_a_fit_is_as_it_was(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)  # as below 1.9
    spec = importlib.util.spec_from_file_location("without", callbacks.__file__)
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    estimator = without.CallbackSupportMixin()
    estimator.verbose = 0
    assert not hasattr(estimator, "set_callbacks")
    assert without.with_callbacks(len) is len
    task = without.fit_task(estimator, X, Y, None, {})
    with task, without.show_progress(estimator, 10, "sampling") as report:
        assert report is None


@pytest.mark.parametrize("settings", [{}, {"max_time": 100.0}], ids=["in one go", "in parts"])
def test_a_callback_that_asks_to_stop_ends_the_run_with_the_draws_so_far(settings):
    model = SGLDLinearRegression(sampler="sgld", n_draws=1000, random_state=0, **settings)
    stopper = Recorder("sampling", 20)
    stopped = clone(model).set_callbacks(stopper).fit(X, Y)
    values = stopped.posterior_.values
    assert 0 < values.shape[1] < 1000
    whole = model.fit(X, Y).posterior_.values
    np.testing.assert_array_equal(values, whole[:, : values.shape[1]])
    assert stopped.summary().attrs["stopped_by"] == "callback"
    assert f"stop after {values.shape[1]} draws" in str(stopped.result_.plan)
    step = ("SGLDLinearRegression", "sampling")
    assert 21 <= len(stopper.of("end", step)) == len(stopper.of("begin", step)) < 50
    np.testing.assert_allclose(stopped.coef_, values[..., :2].mean(axis=(0, 1)), rtol=1e-6)


def test_a_callback_that_stops_the_burn_in_leaves_no_draws_and_no_fit():
    model = SGLDLinearRegression(sampler="sgld", n_draws=5, n_burnin=100_000, random_state=0)
    with pytest.raises(ValueError, match="a callback asked to stop before the first draw, after"):
        model.set_callbacks(Recorder("sampling", 0)).fit(X, Y)
    assert not hasattr(model, "coef_")


def test_a_callback_that_asks_to_stop_ends_the_climb_where_it_is():
    model = skbayes_sgld.SGDMAPRegressor(max_iter=500, tol=0.0, random_state=0)
    stopped = clone(model).set_callbacks(Recorder("climbing", 4)).fit(X, Y)
    assert stopped.n_iter_ == 50
    np.testing.assert_allclose(stopped.coef_, stopped.coef_path_[-1])
    np.testing.assert_allclose(stopped.coef_path_, model.fit(X, Y).coef_path_[:51])
