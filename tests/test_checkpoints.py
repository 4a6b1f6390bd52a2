"""Runs that stop and go on: bit-identical draws, files that load, and what ends a run by itself."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

import skbayes_sgld
from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    SGLDMLPRegressor,
)
from skbayes_sgld import checkpoints as files
from skbayes_sgld.diagnostics import effective_sample_size, least_ess
from skbayes_sgld.inference import in_parts as running
from skbayes_sgld.neural_network import ensemble
from skbayes_sgld.own_models import FunctionPosterior
from skbayes_sgld.priors import Normal
from skbayes_sgld.sampling import Cooling
from tests.sharing import share_after

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.standard_normal(60)
PLAIN = {"preconditioner": None, "gradient": "minibatch", "batch_size": 6, "step_size": 0.01}
PLAIN |= {"n_burnin": 100, "thin": 5}
SETTINGS = {"n_draws": 60, "random_state": 0}
NETWORK = SETTINGS | {"n_burnin": 40, "thin": 3, "n_chains": 2}
FLAT_NETWORK = NETWORK | {"hidden_layer_sizes": (), "noise_variance": 1.0, "n_draws": 100}
CASES = {
    "linear": (SGLDLinearRegression, {}),
    "logistic": (SGLDLogisticRegression, {"temperature": Cooling(hold=3, decay=40)}),
    "snapshots": (SGLDLogisticRegression, {**PLAIN, "gradient": "svrg", "schedule": "polynomial"}),
    "a table of rows": (SGLDLogisticRegression, {**PLAIN, "gradient": "saga"}),
    "metric on the way": (SGLDLogisticRegression, {**PLAIN, "sampler": "psgld"}),
    "velocity": (
        SGLDLogisticRegression,
        {"sampler": "sgnht", "step_size": 0.1, "n_burnin": 100, "thin": 5},
    ),
    "trajectories": (SGLDLogisticRegression, {"sampler": "hmc", "prior": Normal(scale=3.0)}),
    "ladder": (SGLDLogisticRegression, {"sampler": "parallel_tempering", "step_size": 0.3}),
    "network": (
        SGLDMLPRegressor,
        {"hidden_layer_sizes": (4,), "n_burnin": 40, "thin": 3, "n_chains": 2, "batch_size": 7},
    ),
}
# the runs are short or stopped early, and fit says so
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and limits of files")


def target(model):
    numeric = isinstance(model, (SGLDLinearRegression, SGLDMLPRegressor))
    return Y if numeric else (Y > 0).astype(int)


@pytest.mark.parametrize("case", CASES)
def test_a_run_that_was_stopped_goes_on_to_the_same_draws(
    case, often, stops, tmp_path, monkeypatch
):
    cls, settings = CASES[case]
    whole = cls(**SETTINGS, **settings).fit(X, target(cls()))
    path = tmp_path / "run"
    fresh = cls(**SETTINGS, **settings, checkpoint=path)
    stops(KeyboardInterrupt)
    stopped = clone(fresh)
    with pytest.raises(KeyboardInterrupt, match=r"resume_from='.*run' goes on from \d+ dr"):
        stopped.fit(X, target(stopped))
    assert vars(stopped).keys() == stopped.get_params(deep=False).keys()
    monkeypatch.undo()
    saved = files.read(path)
    assert not saved.finished and 0 < saved.chains.n_steps < 0.9 * whole.result_.plan.n_steps
    share_after(0.0, monkeypatch)
    resumed = clone(fresh).set_params(checkpoint=None, resume_from=str(path), n_jobs=2)
    with joblib.parallel_config(backend="threading"):
        resumed.fit(X, target(resumed))
    np.testing.assert_array_equal(resumed.posterior_.values, whole.posterior_.values)
    assert repr(resumed.posterior_) == repr(whole.posterior_)
    np.testing.assert_array_equal(resumed.result_.positions, whole.result_.positions)
    assert resumed.result_.acceptance == whole.result_.acceptance
    assert resumed.clipped_fraction_ == whole.clipped_fraction_


def test_an_interrupt_writes_what_was_drawn_since_the_last_checkpoint(tmp_path, monkeypatch):
    asked = []

    def due(self):
        asked.append(self.n_draws)
        if len(asked) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(files.Writer, "due", property(due))
    monkeypatch.setattr(running, "_SECONDS", 1e-4)
    with pytest.raises(KeyboardInterrupt, match="resume_from"):
        SGLDLinearRegression(**SETTINGS, n_burnin=0, checkpoint=tmp_path / "run").fit(X, Y)
    assert asked == [0, 0, 0] and files.read(tmp_path / "run").chains.draws.shape[1] > 0


def test_an_interrupt_of_the_tuning_names_what_there_is(finished, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    fresh = SGLDLinearRegression(**SETTINGS, checkpoint=tmp_path / "new.npz")
    # a finished run of other data stands where this one would be written
    other = SGLDLinearRegression(**SETTINGS, checkpoint=shutil.copy(finished, tmp_path))
    resumed = SGLDLinearRegression(**SETTINGS | {"n_draws": 90}, resume_from=finished)
    nothing = r"nothing was written to checkpoint='.*(new|run).npz' yet, so begin anew"
    cases = [(fresh, Y, nothing), (other, Y + 1.0, nothing), (resumed, Y, "goes on from 60 draws")]
    monkeypatch.setattr("skbayes_sgld.inference.run.make_plan", interrupt)
    for model, y, message in cases:
        with pytest.raises(KeyboardInterrupt, match=message):
            model.fit(X, y)
    with pytest.raises(KeyboardInterrupt, match=nothing):
        sample(tmp_path / "new.npz")
    with pytest.raises(KeyboardInterrupt, match="^$"):
        clone(fresh).set_params(checkpoint=None).fit(X, Y)


def test_a_finished_run_goes_on_to_more_draws_and_a_warm_start_is_remembered(often, tmp_path):
    path = tmp_path / "run.npz"
    model = SGLDLinearRegression(**SETTINGS, warm_start=True).fit(X, Y)
    longer = clone(model).fit(X, Y).set_params(n_draws=90).fit(X, Y)
    model.set_params(checkpoint=path).fit(X, Y)
    assert files.read(path).finished
    resumed = SGLDLinearRegression(**SETTINGS | {"n_draws": 90}, resume_from=path).fit(X, Y)
    np.testing.assert_array_equal(resumed.posterior_.values, longer.posterior_.values)


def sample(path=None, scale=1.0, **settings):
    """Draws of a normal distribution as a user's own posterior."""
    normal = FunctionPosterior(
        lambda x: -0.5 * np.square(x / scale).sum(axis=1), lambda x: -x / scale**2, n_params=2
    )
    settings = {"n_draws": 80, "random_state": 0, "check_gradient": False} | settings
    return skbayes_sgld.sample(normal, checkpoint=path, **settings)


def test_a_run_without_files_puts_nothing_together_to_recognise_it_by(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(SGLDLinearRegression, "_inputs", lambda *given: calls.append(given) or {})
    SGLDLinearRegression(**SETTINGS).fit(X, Y)
    assert not calls
    SGLDLinearRegression(**SETTINGS, checkpoint=tmp_path / "run").fit(X, Y)
    assert len(calls) == 1


def test_any_posterior_goes_on_and_another_one_is_refused(often, tmp_path):
    path = tmp_path / "run.npz"
    sample(path, n_draws=30)
    resumed = sample(resume_from=path)
    np.testing.assert_array_equal(resumed.values, sample().values)
    with pytest.raises(ValueError, match="posterior is another one, or the machine"):
        sample(resume_from=path, scale=1.0 + 1e-9)


def test_the_first_positions_that_recognise_a_run_are_those_after_a_step(tmp_path):
    # the first draw of corrected positions is the start itself, whatever the gradient
    model = SGLDLogisticRegression(sampler="sgld", checkpoint=tmp_path / "run", **SETTINGS)
    model.fit(X, target(model))
    first = files.read(tmp_path / "run").first
    start, position = first[:, :4], first[:, 4:8]
    assert np.all(position != start)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"prior": "normal"}, r"another prior: 'auto' there, 'normal' here"),
        ({"prior": Normal(covariance=2.0 * np.eye(3))}, "another prior"),
        ({"step_size": 0.1}, "another step_size: 'auto' there, 0.1 here"),
        ({"random_state": 1}, "another random_state: 0 there, 1 here"),
        ({"n_draws": 10}, "has 60 draws a chain already, and n_draws=10"),
        (
            {"X": X[::-1], "y": Y[::-1]},
            r"another X: both are arrays \(60, 3\) of float64, of",
        ),
        ({"y": Y + 1e-12}, r"another y: both are arrays \(60,\)"),
        ({"sample_weight": np.full(60, 2.0)}, "another sample_weight: None there"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused_by_name(change, match, finished):
    data = {"X": X, "y": Y, "sample_weight": None}
    data |= {name: change[name] for name in data.keys() & change}
    settings = SETTINGS | {name: value for name, value in change.items() if name not in data}
    model = SGLDLinearRegression(**settings, resume_from=finished)
    with pytest.raises(ValueError, match=match):
        model.fit(**data)
    assert vars(model).keys() == model.get_params(deep=False).keys()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Checkpoint of a run that has come to its end."""
    path = tmp_path_factory.mktemp("finished") / "run.npz"
    SGLDLinearRegression(**SETTINGS, checkpoint=path).fit(X, Y)
    return path


def rewritten(path, there, **changes):
    """Copy of a checkpoint whose header is another one."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(arrays["header"].tobytes()) | changes
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    files.write_arrays(there, arrays)
    return there


@pytest.mark.parametrize("name", ["header", "draws", "weights", "state.theta", "first", "clipped"])
@pytest.mark.parametrize("value", [None, np.zeros(3), np.zeros((0, 2)), np.array(["a"])])
def test_forged_arrays_of_a_checkpoint_are_one_named_error(finished, tmp_path, name, value):
    with np.load(finished) as file:
        arrays = dict(file)
    arrays.pop(name)
    files.write_arrays(tmp_path / "forged", arrays | ({} if value is None else {name: value}))
    model = SGLDLinearRegression(**SETTINGS, resume_from=tmp_path / "forged")
    with pytest.raises(
        ValueError, match=r"^resume_from='.*forged' (has not the|cannot be gone on)"
    ):
        model.fit(X, Y)


@pytest.mark.parametrize("value", [None, "x", [1], {"a": 1}, -5, 1.5, 10**30])
@pytest.mark.parametrize("name", ["step", "streams", "seed", "inputs", "lengths", "version"])
def test_forged_headers_of_a_checkpoint_are_one_named_error(finished, tmp_path, name, value):
    there = rewritten(finished, tmp_path / "forged", **{name: value})
    with pytest.raises(ValueError, match=r"^resume_from='.*forged' (has |is |was |cannot )"):
        SGLDLinearRegression(**SETTINGS, resume_from=there).fit(X, Y)


def test_a_file_that_is_no_checkpoint_is_refused(finished, tmp_path):
    whole, model = finished.read_bytes(), SGLDLinearRegression(**SETTINGS)
    for content in (b"", whole[:-40]):  # tests/maintainer/soak tries many
        (tmp_path / "part").write_bytes(content)
        with pytest.raises(ValueError, match=r"part' is not a checkpoint, or not a whole one"):
            clone(model).set_params(resume_from=tmp_path / "part").fit(X, Y)
    for change, match in (
        ({"version": "0.0.1"}, "0.0.1 .*install the version"),
        ({"format": 0}, r".*\(format 0\), and this is .*\(format \d\)"),
    ):
        other = rewritten(finished, tmp_path / "other", **change)
        with pytest.raises(ValueError, match=f"written by skbayes-sgld {match}"):
            clone(model).set_params(resume_from=other).fit(X, Y)
    with pytest.raises(FileNotFoundError, match="resume_from='.*nothing': there is no such file"):
        clone(model).set_params(resume_from=tmp_path / "nothing").fit(X, Y)


def test_only_a_finished_run_is_replaced(finished, tmp_path):
    model = SGLDLinearRegression(**SETTINGS)
    there = rewritten(finished, tmp_path / "run", finished=False)
    with pytest.raises(FileExistsError, match=r"give resume_from='.*run' to go on with it, remove"):
        clone(model).set_params(checkpoint=there).fit(X, Y)
    again = clone(model).set_params(checkpoint=there, resume_from=there).fit(X, Y)
    assert files.read(there).finished
    again.set_params(resume_from=None).fit(X, Y)  # replaces it
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError):
        clone(model).set_params(checkpoint=tmp_path / "notes.txt").fit(X, Y)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_run_replaces_what_a_killed_run_left_and_follows_no_link(finished, tmp_path):
    (tmp_path / "mine").write_text("mine")
    for left in ("file", "link"):
        part = tmp_path / f".{left}.part"
        part.write_bytes(b"half") if left == "file" else part.symlink_to(tmp_path / "mine")
        SGLDLinearRegression(**SETTINGS, checkpoint=tmp_path / left).fit(X, Y)
        assert files.read(tmp_path / left).finished and not part.exists()
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "value", "error", "match"),
    [
        ("checkpoint", "a\0b", ValueError, r"'a\\x00b' has a null character"),
        ("resume_from", ".", IsADirectoryError, "'.' is a folder; give the path of a file"),
        ("checkpoint", True, TypeError, "True is not a path; give a string"),
        ("max_time", 0, ValueError, "0"),
        ("target_ess", "1", TypeError, "'1'"),
    ],
)
def test_paths_and_limits_that_cannot_be_are_refused_by_name(name, value, error, match):
    with pytest.raises(error, match=f"{name}={match}"):
        SGLDLinearRegression(**{name: value}).fit(X, Y)


@pytest.mark.parametrize("entry", ["version", "inputs"])
def test_text_of_a_file_in_an_error_cannot_steer_a_terminal(entry, finished, tmp_path):
    escape = "\x1b[2J\x07\x9b\u202e"
    inputs = files.read(finished).inputs
    change = {
        "version": {"version": escape},
        "inputs": {"inputs": inputs | {escape: ["other", escape]}},
    }[entry]
    there = rewritten(finished, tmp_path / "run", **change)
    model = SGLDLinearRegression(**SETTINGS, resume_from=there)
    with pytest.raises(ValueError, match="resume_from=") as caught:
        model.fit(X, Y)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("folder", ["nothing/there", pytest.param("/proc/self", marks=on_linux)])
def test_a_folder_that_cannot_be_written_to_is_told_before_anything_is_drawn(folder, tmp_path):
    model = SGLDLinearRegression(**SETTINGS, checkpoint=tmp_path / folder / "run.npz")
    with pytest.raises(OSError, match=r"checkpoint='.*run.npz' cannot be written \(.*give a path"):
        model.fit(X, Y)
    assert vars(model).keys() == model.get_params(deep=False).keys()


@pytest.mark.slow
@on_linux
def test_a_disk_that_is_full_leaves_the_draws_in_memory_and_the_last_checkpoint(often, tmp_path):
    path = tmp_path / "run.npz"
    settings = SETTINGS | {"n_draws": 400, "prior": "conjugate_normal"}  # of one walker a chain
    expected = SGLDLinearRegression(**settings).fit(X, Y).posterior_.values
    model = SGLDLinearRegression(**settings, checkpoint=path)
    import resource  # which Windows has not

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))  # of one file
    try:
        with pytest.warns(UserWarning, match=r"could not be written \(File too large\): the run g"):
            model.fit(X, Y)
        too_small = clone(model).set_params(checkpoint=tmp_path / "other.npz", n_chains=500)
        with pytest.raises(OSError, match=r"cannot be written \(File too large\)"):
            too_small.fit(X, Y)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    np.testing.assert_array_equal(model.posterior_.values, expected)
    saved = files.read(path).chains.draws
    assert 0 < saved.shape[1] < 400
    assert [each.name for each in tmp_path.iterdir()] == ["run.npz"]
    resumed = clone(model).set_params(checkpoint=None, resume_from=path).fit(X, Y)
    np.testing.assert_array_equal(resumed.posterior_.values, expected)


@pytest.mark.slow
@on_linux
def test_a_run_that_is_killed_leaves_a_file_that_loads():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.kills", "8"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("8 kills")


def test_a_network_without_a_seed_goes_on_with_that_of_the_file(tmp_path):
    path = tmp_path / "run"
    model = SGLDMLPRegressor(hidden_layer_sizes=(3,), **NETWORK).set_params(random_state=None)
    first = clone(model).set_params(n_draws=20, checkpoint=path).fit(X, Y).posterior_.values
    assert files.read(path).finished
    for _ in range(2):
        longer = clone(model).set_params(checkpoint=path, resume_from=path).fit(X, Y)
        np.testing.assert_array_equal(longer.posterior_.values[:, :20], first)
    assert longer.posterior_.values.shape[1] == 60


def test_other_networks_and_other_data_are_refused_by_name(tmp_path, monkeypatch):
    path = tmp_path / "run"
    model = SGLDMLPRegressor(hidden_layer_sizes=(3,), **NETWORK, checkpoint=path).fit(X, Y)
    resumed = clone(model).set_params(checkpoint=None, resume_from=path)
    with pytest.raises(ValueError, match=r"another X: both are arrays \(60, 3\)"):
        clone(resumed).fit(X + 1.0, Y)  # standardised they are the same
    with pytest.raises(ValueError, match="another sample_weight: None there"):
        clone(resumed).fit(X, Y, sample_weight=np.full(60, 2.0))
    with pytest.raises(ValueError, match=r"another hidden_layer_sizes: \(3,\) there, \(2,\) here"):
        clone(resumed).set_params(hidden_layer_sizes=(2,)).fit(X, Y)
    # other metrics, as by other libraries, show in the first steps
    monkeypatch.setattr(ensemble, "_BOUND", 1e-3)
    with pytest.raises(ValueError, match="the same settings lead to other numbers here"):
        clone(resumed).fit(X, Y)


# ---- what ends a run by itself -----------------------------------------------------------------


def test_draws_are_made_until_their_effective_number_is_reached():
    data = load_diabetes(return_X_y=True)
    model = SGLDLinearRegression(random_state=0, target_ess=1500).fit(*data)
    table = model.summary()
    n_draws = model.posterior_.values.shape[1]
    assert n_draws < 1000 and 1500 <= table.ess_bulk.min() < 3000
    assert table.attrs["stopped_by"] == "target_ess"
    assert "stopped_by=target_ess" in repr(model.posterior_)
    assert "target_ess=1500 is reached" in " ".join(table.attrs["plan"].split())
    more = clone(model).set_params(target_ess=12000).fit(*data)
    assert more.posterior_.values.shape[1] > 1000 and more.summary().ess_bulk.min() >= 12000
    np.testing.assert_array_equal(more.posterior_.values[:, :n_draws], model.posterior_.values)
    # one look earlier there were too few
    before = max(n for n in running.stopping_points(1000, 1500) if n < n_draws)
    assert least_ess(model.posterior_.values[:, :before])[0] < 1500


def predictions_ess(model, n_draws):
    """Effective sample size that 95 % of the predictions exceed, of the first draws."""
    values = model.posterior_.values[:, :n_draws]
    # no hidden layer, and the noise is fixed: the bias is last
    outputs = values[..., :-1] @ X[:40].T + values[..., -1:]
    return np.quantile(effective_sample_size(outputs), 0.05)


def test_draws_are_made_until_the_predictions_have_their_effective_number():
    model = SGLDMLPRegressor(**FLAT_NETWORK | {"thin": 3}, target_ess=60).fit(X[:40], Y[:40])
    n_draws = model.posterior_.values.shape[1]
    assert model.posterior_.names[-1].startswith("bias") and n_draws < 500
    assert model.summary().attrs["stopped_by"] == "target_ess"
    assert predictions_ess(model, n_draws) >= 60
    before = max(n for n in running.stopping_points(100, 60) if n < n_draws)
    assert predictions_ess(model, before) < 60
    assert model.diagnose().ess == pytest.approx(predictions_ess(model, n_draws))


def test_the_number_of_draws_does_not_depend_on_stops_on_the_way(often, tmp_path):
    path = tmp_path / "run.npz"
    whole = SGLDLinearRegression(**SETTINGS, target_ess=500).fit(X, Y)
    SGLDLinearRegression(**SETTINGS | {"n_draws": 30}, checkpoint=path).fit(X, Y)
    resumed = SGLDLinearRegression(**SETTINGS, target_ess=500, resume_from=path).fit(X, Y)
    np.testing.assert_array_equal(resumed.posterior_.values, whole.posterior_.values)


@pytest.mark.parametrize(
    "model",
    [
        SGLDLinearRegression(**SETTINGS | {"n_draws": 20}),
        SGLDMLPRegressor(**FLAT_NETWORK | {"n_draws": 5}),
    ],
    ids=["linear", "network"],
)
def test_a_target_that_is_not_reached_is_told(model):
    model = clone(model).set_params(target_ess=1e5)
    with pytest.warns(ConvergenceWarning, match=r"target_ess=100000 is not reached by 10 n_draws"):
        model.fit(X, Y)
    assert model.posterior_.values.shape[1] == 10 * model.n_draws
    assert model.summary().attrs["stopped_by"] == "cap"
    rows = [X[:5]] if isinstance(model, SGLDMLPRegressor) else []
    assert any("not reached" in problem for problem in model.diagnose(*rows).problems)


def test_the_time_is_kept_and_the_run_goes_on_another_time(tmp_path):
    path = tmp_path / "run.npz"
    model = SGLDLinearRegression(**SETTINGS | {"n_draws": 10**6}, thin=100, n_burnin=4)
    # one walker a chain, in parts or not
    model.set_params(max_time=0.4, checkpoint=path, prior="conjugate_normal")
    begin = time.process_time()  # which a busy machine does not lengthen
    model.fit(X, Y)
    n_draws = model.posterior_.values.shape[1]
    assert 0 < n_draws < 10**6 and time.process_time() - begin < 20.0
    assert model.summary().attrs["stopped_by"] == "max_time"
    assert f"0.4 s were up after {n_draws} draws" in model.result_.choices["stopped_by"].why
    assert model.result_.plan.n_draws == n_draws and not files.read(path).finished
    rest = clone(model).set_params(n_draws=n_draws + 5, resume_from=path, max_time=None).fit(X, Y)
    whole = clone(rest).set_params(resume_from=None, checkpoint=None).fit(X, Y)
    np.testing.assert_array_equal(rest.posterior_.values, whole.posterior_.values)
    np.testing.assert_array_equal(rest.posterior_.values[:, :n_draws], model.posterior_.values)


def test_time_that_is_up_before_the_first_draw_is_an_error_that_can_be_resumed_from(tmp_path):
    path = tmp_path / "run.npz"
    model = SGLDLinearRegression(**SETTINGS, n_burnin=10**6, max_time=0.05, checkpoint=path)
    with pytest.raises(ValueError, match=r"max_time=0.05 was up before the first draw.*resume_fr"):
        model.fit(X, Y)
    assert files.read(path).chains.n_steps > 0


def test_time_that_is_up_in_the_training_is_an_error():
    model = SGLDMLPRegressor(**NETWORK | {"n_burnin": 10**6}, max_time=0.05)
    begin = time.process_time()  # which a busy machine does not lengthen
    with pytest.raises(ValueError, match=r"max_time=0.05 was up before the first draw"):
        model.fit(X, Y)
    assert time.process_time() - begin < 20.0
    assert vars(model).keys() == model.get_params(deep=False).keys()
