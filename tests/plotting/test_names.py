"""Names that Matplotlib would read as formulas, or a terminal would obey."""

import numpy as np
import pandas as pd
import pytest

from skbayes_sgld import (
    SGLDLinearRegression,
    SGLDLogisticRegression,
    check_model,
    compare_models,
    plotting,
)

pyplot = pytest.importorskip("matplotlib.pyplot")
RNG = np.random.default_rng(0)
NAMES = [r"$\frac{a}$", "b\x1b[31m"]
X = pd.DataFrame(RNG.standard_normal((60, 2)), columns=NAMES)
Y = pd.Series(X.to_numpy() @ [1.0, -1.0] + RNG.standard_normal(60), name=r"$\frac{y}$")
LABELS = np.where(Y > 0, r"$\frac{p}$", "q\x1b[31m")
SHORT = {"n_draws": 250, "random_state": 0}


@pytest.fixture(scope="module")
def regressor():
    return SGLDLinearRegression(**SHORT).fit(X, Y)


@pytest.fixture(scope="module")
def classifier():
    return SGLDLogisticRegression(**SHORT).fit(X, LABELS)


@pytest.mark.slow
def test_displays_show_names_as_they_are_written(regressor, classifier):
    for name, model, y, more in [
        ("ForestDisplay", regressor, None, {}),
        ("TraceDisplay", classifier, None, {}),
        ("DensityDisplay", regressor, None, {}),
        ("PartialDependenceDisplay", regressor, None, {"column": NAMES[0]}),
        ("PredictiveIntervalDisplay", regressor, Y, {}),
        ("CoverageDisplay", regressor, Y, {"name": NAMES[0]}),
        ("ReliabilityDisplay", classifier, LABELS, {"name": NAMES[0]}),
        ("ProbabilityContourDisplay", classifier, LABELS, {}),
        ("ModelCheckDisplay", regressor, Y, {"name": NAMES[0]}),
    ]:
        draw = getattr(plotting, name).from_estimator
        rows = () if name in ("ForestDisplay", "TraceDisplay", "DensityDisplay") else (X,)
        display = draw(model, *rows, *(() if y is None else (y,)), **more)
        display.figure_.canvas.draw()  # Matplotlib reads formulas here
        pyplot.close("all")


def test_no_report_has_what_a_terminal_obeys(regressor, classifier, capsys):
    labels = np.resize([*np.unique(LABELS), "c"], 60)
    several = SGLDLogisticRegression(**SHORT).fit(X, labels)
    compared = compare_models({"m\x1b[31m": regressor, "n": regressor}, X, Y)
    texts = [compared, check_model(regressor, X, Y), check_model(several, X, labels)]
    for model in (regressor, classifier, several):
        texts += [model.posterior_, model.result_, model.summary(), model.result_.plan]
        model.diagnose()
    for text in texts:
        assert "\x1b" not in repr(text) and "\x1b" not in str(text)
    assert "\x1b" not in capsys.readouterr().out
    assert r"coef[b\x1b[31m]" in regressor.summary().index


@pytest.mark.parametrize("ax", [3, "panel", [None]])
def test_what_is_no_axes_is_refused_by_name(regressor, ax):
    with pytest.raises(TypeError, match="ax=.* is not a Matplotlib Axes"):
        plotting.ForestDisplay.from_estimator(regressor, ax=ax)


@pytest.mark.parametrize("check", [3, None, "check"])
def test_what_is_no_check_is_refused_by_name(check):
    with pytest.raises(TypeError, match="check=.* is not a ModelCheck"):
        plotting.ModelCheckDisplay.from_check(check)


def test_a_path_that_is_too_long_is_refused_by_name():
    with pytest.raises(ValueError, match="checkpoint=.* of 5,000 characters, is too long"):
        SGLDLinearRegression(checkpoint="x" * 5000).fit(X, Y)
