"""Points of rookies: how many their predictive intervals hold (see ``nba_rookies.py``)."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pandas as pd
from _figure import BLUE, GREEN, ORANGE, PURPLE, misfit, new_figure, save, say, show, tidy
from _nba import COVERAGE, Work, percent, pipeline
from _numbers import share
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold
from sklearn.utils import Bunch

from skbayes_sgld import SGLDLinearRegression, check_model, predict_quantiles

LEVELS = (0.5, 0.8, 0.9, 0.95)
SHOOTING = ("points", "field_goal", "three_point", "free_throw")  # how the columns' names start


def regress_points(rookies: Bunch, work: Work, output: Path) -> dict[str, Any]:
    """Count how many held-out rookies are inside the predictive intervals of their points."""
    X = rookies.data.loc[:, [not name.startswith(SHOOTING) for name in rookies.data]]
    points = rookies.data["points"].to_numpy()
    splitter = GroupKFold(work.n_folds, shuffle=True, random_state=0)
    folds = list(splitter.split(X, groups=rookies.names))
    linear = SGLDLinearRegression(n_draws=work.n_draws, random_state=0)
    unequal = clone(linear).set_params(noise_model="log_linear")
    say(f"points on {', '.join(X)}, all {len(X):,} rookies. The fit warns:")
    default = pipeline(linear)
    with misfit() as warned:
        default.fit(X, points)
    for message in warned:
        say(message)
    check = check_model(default, X, points)
    print(indent(str(check), "  ") + "\n", flush=True)
    models = {
        "points": default,
        "unequal": pipeline(unequal),
        "root": TransformedTargetRegressor(pipeline(linear), func=np.sqrt, inverse_func=square),
        "suggested": check.suggestion,
    }
    with misfit():  # in every fold, as above
        quantiles = {
            name: held_out_quantiles(model, X, points, folds) for name, model in models.items()
        }
    say(
        f"Does what check_model says hold for rookies whom the fit has not seen? {work.n_folds} "
        "folds by name, pooled. 'unequal' has a noise whose log is linear in these columns; 'root' "
        "is the regression of the square root of the points, with one noise; 'suggested' is "
        "check.suggestion."
    )
    inside = {name: is_inside(values, points) for name, values in quantiles.items()}
    predicted = quantiles["points"][:, -1]
    thirds, residual = cut_in_thirds(predicted), points - predicted
    show_coverage(inside, quantiles)
    show_thirds(inside, residual, thirds)
    r2 = {name: r2_score(points, values[:, -1]) for name, values in quantiles.items()}
    say(judge_coverage(inside, residual, thirds))
    scores = ", ".join(f"{value:.3f} for {name}" for name, value in r2.items())
    say(f"Held-out R2 of the medians: {scores}.")
    draw_coverage(inside, thirds, output)
    at = LEVELS.index(COVERAGE)
    return {
        name: {
            third: share(values[thirds == label, at].mean(), int(np.sum(thirds == label)))
            for third, label in zip(("low", "middle", "high"), thirds.categories, strict=True)
        }
        for name, values in inside.items()
    }


def square(root: np.ndarray) -> np.ndarray:
    """Square of a root, and 0 for a number below 0."""
    return np.square(np.maximum(root, 0.0))


def held_out_quantiles(
    model: BaseEstimator,
    X: pd.DataFrame,
    y: np.ndarray,
    folds: list[tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    """Ends of the intervals, all lower ones first, then the median."""
    levels = np.array(LEVELS)
    q = np.concatenate([(1 - levels) / 2, (1 + levels) / 2, [0.5]])
    values = np.empty((len(y), len(q)))
    for train, test in folds:
        fitted = clone(model).fit(X.iloc[train], y[train])
        values[test] = predict_quantiles(fitted, X.iloc[test], q)
    return values


def is_inside(quantiles: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether each row is inside the interval of each level, ``(n_rows, n_levels)``."""
    low, high = quantiles[:, : len(LEVELS)], quantiles[:, len(LEVELS) : -1]
    return (low <= y[:, None]) & (y[:, None] <= high)


def cut_in_thirds(predicted: np.ndarray) -> pd.Categorical:
    """Third of the predictions that each row is in, named by its limits."""
    first, second = np.quantile(predicted, [1 / 3, 2 / 3])
    labels = [f"below {first:.1f}", f"{first:.1f} to {second:.1f}", f"above {second:.1f}"]
    return pd.qcut(predicted, 3, labels=labels)


def binomial_error(levels: float | np.ndarray, n: int) -> np.ndarray:
    """Standard error of the share of n that intervals of these levels cover."""
    return np.sqrt(np.multiply(levels, np.subtract(1, levels)) / n)


def show_coverage(inside: dict[str, np.ndarray], quantiles: dict[str, np.ndarray]) -> None:
    """Print nominal and observed coverage, and what the intervals cost in width."""
    n, k = len(inside["points"]), len(LEVELS)
    rows = {"binomial s.e.": [percent(binomial_error(level, n), 1) for level in LEVELS]}
    for name, values in quantiles.items():
        width = (values[:, k:-1] - values[:, :k]).mean(axis=0)
        rows[f"{name}: covers"] = [percent(share, 1) for share in inside[name].mean(axis=0)]
        rows[f"{name}: width"] = [f"{value:.1f}" for value in width]
    say(f"Coverage of {n:,} held-out rookies (width: mean, in points a game):")
    show(pd.DataFrame(rows, index=[percent(level) for level in LEVELS]).T)


def show_thirds(
    inside: dict[str, np.ndarray], residual: np.ndarray, thirds: pd.Categorical
) -> None:
    """Print the spread of the residuals and the coverage at each level of points."""
    at = LEVELS.index(COVERAGE)
    covered = {name: values[:, at] for name, values in inside.items()}
    by_third = pd.DataFrame({"residual": residual, **covered}).groupby(thirds, observed=True)
    columns = {
        "rookies": by_third.size().map(str),
        "sd of residuals": by_third["residual"].std().map("{:.2f}".format),
        "binomial s.e.": by_third.size().map(lambda n: percent(binomial_error(COVERAGE, n), 1)),
    }
    for name in covered:
        columns[name] = by_third[name].mean().map(lambda share: percent(share, 1))
    say(f"The {percent(COVERAGE)} intervals, by thirds of the predicted points:")
    show(pd.DataFrame(columns))


def judge_coverage(
    inside: dict[str, np.ndarray], residual: np.ndarray, thirds: pd.Categorical
) -> str:
    """Say how far the coverage is from nominal, and whether unequal noise is why."""
    error = binomial_error(np.array(LEVELS), len(residual))
    off = {name: (x.mean(axis=0) - np.array(LEVELS)) / error for name, x in inside.items()}
    worst = [f"{values[np.abs(values).argmax()]:+.1f} for {name}" for name, values in off.items()]
    sd = pd.Series(residual).groupby(thirds, observed=True).std()
    text = (
        f"Over all rookies, the coverage furthest from nominal is off by {', '.join(worst)} (in "
        "standard errors). The residuals have a standard deviation of "
        f"{sd.iloc[0]:.2f} points in the lowest third and {sd.iloc[-1]:.2f} in the highest: "
    )
    if sd.max() > 1.25 * sd.min():
        return text + (
            "the noise is unequal. Under one noise for all the intervals are too wide for some and "
            "too narrow for others, and where they are right on average it is because these "
            "cancel: look at the thirds."
        )
    return text + "the noise is about equal, as the model assumes."


def draw_coverage(inside: dict[str, np.ndarray], thirds: pd.Categorical, output: Path) -> None:
    """Draw observed coverage against nominal, and by thirds of the predicted points."""
    figure = new_figure(9.0, 4.4)
    left, right = figure.subplots(1, 2)
    nominal, at = 100 * np.array(LEVELS), LEVELS.index(COVERAGE)
    left.plot([40, 100], [40, 100], color="black", linewidth=0.8)
    right.axhline(100 * COVERAGE, color="black", linewidth=0.8)
    for name, side, color, marker, label in (
        ("points", -1.5, BLUE, "o", "regression of points"),
        ("unequal", -0.5, GREEN, "D", "with unequal noise"),
        ("root", 0.5, ORANGE, "s", "of their square root, squared back"),
        ("suggested", 1.5, PURPLE, "^", "suggested by check_model"),
    ):
        style = {"color": color, "fmt": marker, "markersize": 5, "label": label}
        values = inside[name]
        draw_shares(left, nominal + 0.4 * side, list(values.T), style)
        groups = [values[thirds == third, at] for third in thirds.categories]
        draw_shares(right, np.arange(3) + 0.07 * side, groups, style)
    left.set(xlabel="nominal coverage (%)", ylabel="held-out rookies inside (%)")
    left.set(xlim=(45, 100), ylim=(45, 100), xticks=nominal, title="All held-out rookies")
    left.legend(loc="upper left", frameon=False)
    right.set_xticks(range(3), list(thirds.categories))
    right.set(xlabel="predicted points a game, thirds of the rookies", xlim=(-0.5, 2.5))
    right.set(ylabel="held-out rookies inside (%)", ylim=(None, 100))
    right.set_title(f"The {percent(COVERAGE)} interval, by predicted points")
    tidy(left)
    tidy(right, grid="y")
    figure.suptitle("Coverage of predictive intervals of points a game, with 95 % Wilson intervals")
    save(figure, output, "coverage.png")


def draw_shares(axes: Any, at: np.ndarray, groups: list[np.ndarray], style: dict) -> None:
    """Draw the share of True in each group, in percent, with its Wilson interval."""
    tests = [binomtest(int(group.sum()), len(group)) for group in groups]
    limits = np.array([test.proportion_ci(method="wilson") for test in tests])
    share = np.array([test.statistic for test in tests])
    error = np.abs(limits.T - share)
    axes.errorbar(at, 100 * share, 100 * error, **style)
