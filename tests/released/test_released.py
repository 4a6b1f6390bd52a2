"""Files of every released version are loaded, and say the same as then, or refused by name."""

import json
import pickle
import re
import shutil
import warnings
from importlib.metadata import version

import numpy as np
import pytest

import skbayes_sgld
from skbayes_sgld._moved import MOVED
from skbayes_sgld.inference.checkpoint import read
from tests.released.make import FOLDER, TARGET, X, predictions, resumable
from tests.test_packaging import ROOT

INSTALLED = version("skbayes-sgld")
PICKLES = sorted(FOLDER.glob("*/*.pkl"))
RUNS = sorted(FOLDER.glob("*/run.npz"))


@pytest.mark.parametrize("old", MOVED)
def test_a_pickle_finds_a_class_that_has_moved(old):
    module, _, name = f"skbayes_sgld.{old}".rpartition(".")
    found = pickle.loads(f"c{module}\n{name}\n.".encode())  # what a pickle of the class alone is
    assert f"{found.__module__}.{found.__name__}" == f"skbayes_sgld.{MOVED[old]}"


def expected(path):
    return json.loads((path.parent / "expected.json").read_text())[path.stem]


@pytest.mark.parametrize("path", PICKLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_released_pickle_predicts_as_it_did_or_is_refused_by_version(path):
    theirs = path.parent.name
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model = pickle.loads(path.read_bytes())
        except ValueError as error:
            assert theirs in str(error) and INSTALLED in str(error)
            return
    messages = [str(one.message) for one in told if "was pickled by skbayes-sgld" in str(one)]
    if theirs == INSTALLED:
        assert messages == []
    else:
        (message,) = set(messages)
        assert f"pickled by skbayes-sgld {theirs} and is read by {INSTALLED}" in message
    np.testing.assert_allclose(predictions(model), expected(path), rtol=1e-5)
    again = pickle.loads(pickle.dumps(model))
    assert predictions(again) == predictions(model)
    if hasattr(model, "result_"):
        mean = dict(zip(model.result_.names, again.result_.mean, strict=True))
        assert mean == pytest.approx(dict(model.summary()["mean"]))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_a_released_checkpoint_is_read_and_gone_on_with_or_refused_by_version(path, tmp_path):
    theirs = path.parent.name
    copy = shutil.copy(path, tmp_path)
    if theirs != INSTALLED:
        with pytest.raises(ValueError, match=f"written by skbayes-sgld {re.escape(theirs)}"):
            resumable(resume_from=copy, n_draws=40).fit(X, TARGET)
        return
    found = read(path)
    assert found.finished
    np.testing.assert_allclose(found.chains.draws.mean(axis=(0, 1)), expected(path), rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws are not to be relied on
        try:
            longer = resumable(resume_from=copy, n_draws=40).fit(X, TARGET)
        except ValueError as error:  # other libraries round differently
            assert "round differently" in str(error) and found.libraries["numpy"] in str(error)
            return
    values = longer.result_.theta[:, :20]
    np.testing.assert_array_equal(values, found.chains.draws)


def test_every_released_version_has_its_files():
    headings = re.findall(
        r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )
    assert headings
    for released in headings:
        names = {path.name for path in (FOLDER / released).iterdir()}
        assert {"linear.pkl", "logistic.pkl", "run.npz", "expected.json"} <= names
    # one version is told everywhere
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited and cited[1] == headings[0]
    base = re.match(r"[\d.]+\d", skbayes_sgld.__version__)
    assert base and tuple(map(int, base[0].split("."))) >= tuple(map(int, headings[0].split(".")))
