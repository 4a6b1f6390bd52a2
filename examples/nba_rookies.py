"""NBA rookies: from a table of first seasons to decisions about careers.

1. classify: does the career last five years? Scores over folds, beside other classifiers;
2. search: what step size and temperature do to the held-out log loss;
3. coefficients: means, intervals and diagnostics, as a table and a forest plot;
4. six rookies that the fit has not seen: probability, credible band, what became of them;
5. points, regressed on the columns that are not about shooting: do 50, 80, 90 and 95 % predictive
   intervals hold that share of rookies whom the fit has not seen?

Usage: ``python examples/nba_rookies.py [--output DIR] [--fast]``. It prints as it goes, takes about
a minute on two cores (``--fast``: a few seconds, with fewer folds, fewer draws and a smaller
search) and writes its figures to DIR. It needs Matplotlib: ``pip install "skbayes_sgld[plot]"``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill, indent
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedGroupKFold,
    cross_validate,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.datasets import load_nba_rookies

COVERAGE = 0.9
LEVELS = (0.5, 0.8, 0.9, 0.95)
SCORES = {"accuracy": "accuracy", "log loss": "neg_log_loss", "Brier score": "neg_brier_score"}
SHOOTING = ("points", "field_goal", "three_point", "free_throw")  # how the columns' names start
REBOUNDS = ("rebounds", "offensive_rebounds", "defensive_rebounds")
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8C8C8C"


@dataclass(frozen=True)
class Plan:
    """How much work to do."""

    n_folds: int = 5
    n_draws: int = 1000
    step_sizes: tuple[float, ...] = (0.1, 0.25, 0.5)
    temperatures: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    n_search_draws: int = 500
    n_jobs: int = 2


FAST = Plan(
    n_folds=3,
    n_draws=200,
    step_sizes=(0.25, 0.5),
    temperatures=(1.0, 4.0),
    n_search_draws=200,
    n_jobs=1,  # a second process takes longer to start than it saves
)


# ---- printing and drawing -----------------------------------------------------------------------


def say(text: str) -> None:
    """Print a paragraph, at once."""
    print(fill(text, 98, initial_indent="  ", subsequent_indent="  "), flush=True)


def show(table: pd.DataFrame) -> None:
    """Print a table of strings, aligned."""
    print(indent(table.rename_axis(index=None).to_string(), "  ") + "\n", flush=True)


def percent(share: float, digits: int = 0) -> str:
    """Return a share in percent."""
    return f"{100 * share:.{digits}f} %"


def plain(column: str) -> str:
    """Return the name of a column as one says it."""
    return column.replace("_pct", " %").replace("_", " ")


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure; it needs no display, whatever Matplotlib's backend."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise SystemExit(
            'The figures need Matplotlib, which is not installed: pip install "skbayes_sgld[plot]"'
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, output: Path, name: str) -> Path:
    """Write a figure and return its path."""
    path = output / name
    figure.savefig(path, dpi=150)
    return path


def tidy(axes: Any, grid: str = "x") -> None:
    """Take the lines off that say nothing."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)


# ---- the table and the models -------------------------------------------------------------------


def load() -> Bunch:
    """Load the rookies without contradictions and copies, and say what went."""
    table, rookies = load_nba_rookies(), load_nba_rookies(duplicates="drop")
    season = [table.names, *(table.data[column] for column in table.data)]
    labels = table.target.groupby(season, dropna=False).transform("nunique")
    contradictory = int((labels > 1).sum())
    copies = len(table.data) - contradictory - len(rookies.data)
    say(
        f"{len(rookies.data):,} rookies, {rookies.data.shape[1]} statistics of the first season; "
        f"{percent(rookies.target.mean())} had a career of at least five years."
    )
    say(
        f'duplicates="drop" left out {contradictory} of {len(table.data):,} rows, the same season '
        f"with contradictory labels and no way to tell which is right, and {copies} copies, which "
        "would count twice. Every split is by name, so that no rookie is on both sides."
    )
    say(
        "Beware: a career that was still going when the table was made counts by its length until "
        "then, so the last seasons' rookies (Victor Oladipo, Zach LaVine) are labelled as shorter."
    )
    return rookies


def pipeline(model: BaseEstimator) -> Pipeline:
    """Return the model behind imputation and scaling.

    A missing percentage is one without attempts, and 0 is the value that such rows hold. Data
    frames keep the names of the columns on their way to the model.
    """
    return Pipeline(
        [
            ("impute", SimpleImputer(strategy="constant", fill_value=0.0)),
            ("scale", StandardScaler()),
            ("model", model),
        ]
    ).set_output(transform="pandas")


def group_folds(n_folds: int) -> StratifiedGroupKFold:
    """Return folds that keep a name together and the share of long careers alike."""
    return StratifiedGroupKFold(n_folds, shuffle=True, random_state=0)


# ---- 1. classify --------------------------------------------------------------------------------


def classify(rookies: Bunch, plan: Plan, output: Path) -> list[Path]:
    """Score the classifier beside two others, on the same folds."""
    models = {
        "SGLDLogisticRegression": pipeline(
            SGLDLogisticRegression(n_draws=plan.n_draws, random_state=0)
        ),
        "LogisticRegression": pipeline(LogisticRegression()),
        "majority class": DummyClassifier(strategy="prior"),
    }
    scores = {name: fold_scores(model, rookies, plan) for name, model in models.items()}
    say(
        f"Mean ± standard deviation over {plan.n_folds} folds; the probability of the majority "
        "class is its share:"
    )
    show(
        pd.DataFrame(
            {
                name: [f"{m:.4f} ± {s:.4f}" for m, s in zip(table.mean(), table.std(), strict=True)]
                for name, table in scores.items()
            },
            index=list(SCORES),
        ).T
    )
    ours, theirs = (scores[name]["log loss"] for name in list(models)[:2])
    difference = ours - theirs
    say(
        "Fold by fold, the log loss of SGLDLogisticRegression less that of LogisticRegression is "
        f"{difference.mean():+.4f} ± {difference.std():.4f}. Both have the same prior: C=1 is a "
        "standard deviation of 1, so about equal scores are to be expected. What the posterior "
        "adds is intervals, from 3 on."
    )
    return []


def fold_scores(model: BaseEstimator, rookies: Bunch, plan: Plan) -> pd.DataFrame:
    """Return the scores of a model, one row a fold."""
    result = cross_validate(
        model,
        rookies.data,
        rookies.target,
        groups=rookies.names,
        cv=group_folds(plan.n_folds),
        scoring=list(SCORES.values()),
    )
    scores = pd.DataFrame({name: result[f"test_{key}"] for name, key in SCORES.items()})
    return scores.abs()  # scikit-learn turns losses negative


# ---- 2. search ----------------------------------------------------------------------------------


def search(rookies: Bunch, plan: Plan, output: Path) -> list[Path]:
    """Search step size and temperature by the log loss of held-out folds."""
    grid = GridSearchCV(
        pipeline(SGLDLogisticRegression(n_draws=plan.n_search_draws, random_state=0)),
        {
            "model__step_size": list(plan.step_sizes),
            "model__temperature": list(plan.temperatures),
        },
        scoring="neg_log_loss",
        cv=group_folds(plan.n_folds),
        n_jobs=plan.n_jobs,
        refit=False,
    )
    grid.fit(rookies.data, rookies.target, groups=rookies.names)
    cells = pd.DataFrame(grid.cv_results_)
    loss = -cells.filter(regex=r"^split\d+_test_score$")  # one row a cell, one column a fold
    say(f"Log loss, mean over {plan.n_folds} folds ({len(cells) * plan.n_folds} fits):")
    cells["loss"] = loss.mean(axis=1)
    table = cells.pivot(
        index="param_model__step_size", columns="param_model__temperature", values="loss"
    )
    table.index = [f"step_size {value:g}" for value in table.index]
    table.columns = [f"temperature {value:g}" for value in table.columns]
    show(table.map("{:.4f}".format))
    say(judge_search(loss))
    return []


def judge_search(loss: pd.DataFrame) -> str:
    """Say what a search shows, from the losses of its cells (rows) in the folds (columns)."""
    mean = loss.mean(axis=1)
    between_folds = loss.loc[mean.idxmin()].std()
    gap = loss.loc[mean.idxmax()] - loss.loc[mean.idxmin()]
    text = (
        f"From the best cell to the worst the log loss rises by {gap.mean():.4f} (standard error, "
        f"by fold: {gap.sem():.4f}); from fold to fold it varies by {between_folds:.4f}. "
    )
    if gap.mean() > 2 * gap.sem():
        text += "The rise is more than chance, but look at its size before you tune for it. "
    else:
        text += "The rise is no more than chance: there is nothing to tune here. "
    return text + (
        "The score is no judge of the credible bands, whose width grows with about the square "
        "root of the temperature. Temperature 1 is the posterior: what follows keeps it, and "
        "step_size='auto'."
    )


# ---- 3. coefficients ----------------------------------------------------------------------------


def coefficients(rookies: Bunch, plan: Plan, output: Path) -> list[Path]:
    """Print and draw the posterior of the coefficients."""
    model = pipeline(SGLDLogisticRegression(n_draws=plan.n_draws, random_state=0))
    model.fit(rookies.data, rookies.target)
    summary = model["model"].summary(coverage=COVERAGE)
    summary.index = [name.removeprefix("coef[").removesuffix("]") for name in summary.index]
    low, high = summary.columns[2:4]
    slopes = summary.drop(index="intercept").sort_values("mean", ascending=False)
    table = pd.concat([slopes, summary.loc[["intercept"]]])
    say("Log odds of a five-year career per standard deviation of a column, all rookies:")
    show(
        pd.DataFrame(
            {
                **{name: table[name].map("{:+.2f}".format) for name in ("mean", low, high)},
                "sd": table["sd"].map("{:.2f}".format),
                "ESS": table["ess_bulk"].map("{:.0f}".format),
                "R-hat": table["r_hat"].map("{:.3f}".format),
            }
        )[["mean", "sd", low, high, "ESS", "R-hat"]]
    )
    clear = slopes.index[(slopes[low] > 0) | (slopes[high] < 0)]
    say(
        f"The {percent(COVERAGE)} interval leaves out 0 for {len(clear)} of {len(slopes)} columns: "
        f"{', '.join(clear)}."
    )
    total = rebounds_together(model["model"])
    say(
        "Columns that are sums of others have wide intervals one by one, less so together: the "
        "coefficients of the three columns for rebounds have standard deviations of "
        f"{summary.loc[list(REBOUNDS), 'sd'].min():.2f} and more, their sum is {total.mean():+.2f} "
        f"± {total.std():.2f}."
    )
    return [draw_forest(slopes, low, high, output)]


def rebounds_together(model: SGLDLogisticRegression) -> np.ndarray:
    """Return draws of the effect of one standard deviation more of all three columns."""
    chosen = np.isin(model.feature_names_in_, REBOUNDS)
    return model.sample_posterior().coef[:, chosen].sum(axis=1)


def draw_forest(slopes: pd.DataFrame, low: str, high: str, output: Path) -> Path:
    """Draw the intervals of the coefficients, sorted by their means."""
    figure = new_figure(7.0, 6.2)
    axes = figure.subplots()
    rows = slopes.iloc[::-1]
    clear = (rows[low] > 0) | (rows[high] < 0)
    at = np.arange(len(rows))
    for chosen, color, label in (
        (clear, BLUE, "interval without 0"),
        (~clear, GREY, "interval with 0"),
    ):
        axes.hlines(at[chosen], rows[low][chosen], rows[high][chosen], color=color, linewidth=2)
        axes.plot(rows["mean"][chosen], at[chosen], "o", color=color, markersize=5, label=label)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(at, [plain(name) for name in rows.index])
    axes.set_xlabel("log odds of a five-year career, per standard deviation of the column")
    axes.set_title(f"What a first season says: posterior mean and {percent(COVERAGE)} interval")
    axes.legend(loc="lower right", frameon=False)
    tidy(axes)
    return save(figure, output, "coefficients.png")


# ---- 4. six rookies -----------------------------------------------------------------------------


def six_rookies(rookies: Bunch, plan: Plan, output: Path) -> list[Path]:
    """Predict the careers of rookies whom the fit has not seen, and look at six of them."""
    held_out = predict_held_out(rookies, plan)
    say(
        f"Held out: {len(held_out)} rookies, a fifth of the names. Sorted by predicted "
        "probability and cut into sixths, they give the rookie in the middle of each: a choice "
        "that sees no outcome. The last column is the share of all of his sixth that lasted."
    )
    sixths = [held_out.iloc[rows] for rows in np.array_split(np.arange(len(held_out)), 6)]
    six = pd.concat([part.iloc[[len(part) // 2]] for part in sixths]).iloc[::-1]
    six["lasted"] = [percent(part["outcome"].mean()) for part in sixths][::-1]
    show(
        pd.DataFrame(
            {
                "probability": six["probability"].map(percent),
                f"{percent(COVERAGE)} band": [
                    f"{100 * low:.0f} to {percent(high)}"
                    for low, high in six[["low", "high"]].to_numpy()
                ],
                "label": rookies.target_names[six["outcome"]],
                "his sixth": six["lasted"],
            },
        ).set_index(six["name"])
    )
    show_decisions(held_out)
    say(
        "The band is how well the probability is known, not how sure the career is: six outcomes "
        "can neither confirm nor refute it."
    )
    return [draw_six(six, output)]


def predict_held_out(rookies: Bunch, plan: Plan) -> pd.DataFrame:
    """Fit four fifths of the names; return the predictions for the others, sorted."""
    train, test = next(group_folds(5).split(rookies.data, rookies.target, rookies.names))
    model = pipeline(SGLDLogisticRegression(n_draws=plan.n_draws, random_state=0))
    model.fit(rookies.data.iloc[train], rookies.target.iloc[train])
    X = rookies.data.iloc[test]
    band = model["model"].predict_proba_interval(model[:-1].transform(X), coverage=COVERAGE)
    return pd.DataFrame(
        {
            "name": rookies.names.iloc[test],
            "probability": model.predict_proba(X)[:, 1],
            "low": band[:, 1, 0],
            "high": band[:, 1, 1],
            "outcome": rookies.target.iloc[test],
        }
    ).sort_values("probability", ignore_index=True)


def show_decisions(held_out: pd.DataFrame) -> None:
    """Print what a rule that waits until the band is clear of one half would have done."""
    calls = {
        "above 50 %: sign": held_out["low"] > 0.5,
        "holds 50 %: look again": (held_out["low"] <= 0.5) & (held_out["high"] >= 0.5),
        "below 50 %: let go": held_out["high"] < 0.5,
    }
    rows = {
        call: {
            "rookies": f"{chosen.sum()}",
            "mean probability": percent(held_out["probability"][chosen].mean()),
            "lasted 5 years": percent(held_out["outcome"][chosen].mean()),
        }
        for call, chosen in calls.items()
    }
    say("A decision for each of the held-out rookies, by where his band is:")
    show(pd.DataFrame(rows).T)


def draw_six(six: pd.DataFrame, output: Path) -> Path:
    """Draw the probabilities of the six with their bands."""
    figure = new_figure(7.0, 3.8)
    axes = figure.subplots()
    rows = six.iloc[::-1]
    at = np.arange(len(rows))
    lasted = rows["outcome"].to_numpy() == 1
    axes.hlines(at, 100 * rows["low"], 100 * rows["high"], color=BLUE, linewidth=2, zorder=1)
    for chosen, face, label in (
        (lasted, BLUE, "at least five years"),
        (~lasted, "white", "shorter"),
    ):
        axes.scatter(
            100 * rows["probability"][chosen],
            at[chosen],
            s=55,
            facecolor=face,
            edgecolor=BLUE,
            linewidth=1.5,
            label=label,
        )
    axes.axvline(50, color="black", linewidth=0.8, linestyle="--")
    axes.set_yticks(at, rows["name"])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(0, 100)
    axes.set_xlabel("probability of a career of at least five years (%)")
    axes.set_title(f"Six held-out rookies: posterior mean and {percent(COVERAGE)} credible band")
    axes.legend(title="career, as labelled", loc="lower right", frameon=False, alignment="left")
    tidy(axes)
    return save(figure, output, "six_rookies.png")


# ---- 5. points ----------------------------------------------------------------------------------


def regress_points(rookies: Bunch, plan: Plan, output: Path) -> list[Path]:
    """Count how many held-out rookies are inside the predictive intervals of their points."""
    X = rookies.data.loc[:, [not name.startswith(SHOOTING) for name in rookies.data]]
    points = rookies.data["points"].to_numpy()
    splitter = GroupKFold(plan.n_folds, shuffle=True, random_state=0)
    folds = list(splitter.split(X, groups=rookies.names))
    quantiles = {
        "points": held_out_quantiles(X, points, folds, plan),
        "root": held_out_quantiles(X, np.sqrt(points), folds, plan).clip(0) ** 2,
    }
    say(
        f"points on {', '.join(X)}; {plan.n_folds} folds by name, pooled. 'root' is "
        "the same regression of the square root of the points, usual for counts; the ends of its "
        "intervals are squared."
    )
    inside = {name: is_inside(values, points) for name, values in quantiles.items()}
    predicted = quantiles["points"][:, -1]
    thirds, residual = cut_in_thirds(predicted), points - predicted
    show_coverage(inside, quantiles)
    show_thirds(inside, residual, thirds)
    r2 = {name: r2_score(points, values[:, -1]) for name, values in quantiles.items()}
    say(judge_coverage(inside, residual, thirds))
    say(f"Held-out R2 of the medians: {r2['points']:.3f} for points, {r2['root']:.3f} for root.")
    return [draw_coverage(inside, thirds, output)]


def held_out_quantiles(
    X: pd.DataFrame, y: np.ndarray, folds: list[tuple[np.ndarray, np.ndarray]], plan: Plan
) -> np.ndarray:
    """Return the ends of the intervals, all lower ones first, then the median."""
    levels = np.array(LEVELS)
    q = np.concatenate([(1 - levels) / 2, (1 + levels) / 2, [0.5]])
    values = np.empty((len(y), len(q)))
    for train, test in folds:
        model = pipeline(SGLDLinearRegression(n_draws=plan.n_draws, random_state=0))
        model.fit(X.iloc[train], y[train])
        values[test] = model["model"].predict_quantiles(model[:-1].transform(X.iloc[test]), q)
    return values


def is_inside(quantiles: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which rows are inside the interval of each level, ``(n_rows, n_levels)``."""
    low, high = quantiles[:, : len(LEVELS)], quantiles[:, len(LEVELS) : -1]
    return (low <= y[:, None]) & (y[:, None] <= high)


def cut_in_thirds(predicted: np.ndarray) -> pd.Categorical:
    """Return the third of the predictions that each row is in, named by its limits."""
    first, second = np.quantile(predicted, [1 / 3, 2 / 3])
    labels = [f"below {first:.1f}", f"{first:.1f} to {second:.1f}", f"above {second:.1f}"]
    return pd.qcut(predicted, 3, labels=labels)


def binomial_error(levels: float | np.ndarray, n: int) -> np.ndarray:
    """Return the standard error of the share of n that intervals of these levels cover."""
    return np.sqrt(np.multiply(levels, np.subtract(1, levels)) / n)


def show_coverage(inside: dict[str, np.ndarray], quantiles: dict[str, np.ndarray]) -> None:
    """Print nominal and observed coverage, and what the intervals cost in width."""
    n, k = len(inside["points"]), len(LEVELS)
    columns = {"binomial s.e.": [percent(binomial_error(level, n), 1) for level in LEVELS]}
    for name, values in quantiles.items():
        width = (values[:, k:-1] - values[:, :k]).mean(axis=0)
        columns[f"{name}: covers"] = [percent(share, 1) for share in inside[name].mean(axis=0)]
        columns[f"{name}: width"] = [f"{value:.1f}" for value in width]
    say(f"Coverage of {n:,} held-out rookies (width: mean, in points a game):")
    show(pd.DataFrame(columns, index=[percent(level) for level in LEVELS]))


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
        columns[f"{name}: covers"] = by_third[name].mean().map(lambda share: percent(share, 1))
    say(f"The {percent(COVERAGE)} intervals, by thirds of the predicted points:")
    show(pd.DataFrame(columns))


def judge_coverage(
    inside: dict[str, np.ndarray], residual: np.ndarray, thirds: pd.Categorical
) -> str:
    """Say how far the coverage is from nominal, and whether unequal noise is why."""
    error = binomial_error(np.array(LEVELS), len(residual))
    off = {name: (x.mean(axis=0) - np.array(LEVELS)) / error for name, x in inside.items()}
    worst = {name: f"{values[np.abs(values).argmax()]:+.1f}" for name, values in off.items()}
    sd = pd.Series(residual).groupby(thirds, observed=True).std()
    text = (
        "The coverage furthest from nominal is off by "
        f"{worst['points']} standard errors for points and {worst['root']} for root. The model "
        "has one noise for all, the residuals have a standard deviation of "
        f"{sd.iloc[0]:.2f} points in the lowest third and {sd.iloc[-1]:.2f} in the highest: "
    )
    if sd.max() > 1.25 * sd.min():
        return text + (
            "the noise is unequal, so intervals for points are too wide for some and too narrow "
            "for others, and where they are right on average it is because these cancel."
        )
    return text + "the noise is about equal, as the model assumes."


def draw_coverage(inside: dict[str, np.ndarray], thirds: pd.Categorical, output: Path) -> Path:
    """Draw observed coverage against nominal, and by thirds of the predicted points."""
    figure = new_figure(9.0, 4.4)
    left, right = figure.subplots(1, 2)
    nominal, at = 100 * np.array(LEVELS), LEVELS.index(COVERAGE)
    left.plot([40, 100], [40, 100], color="black", linewidth=0.8)
    right.axhline(100 * COVERAGE, color="black", linewidth=0.8)
    for name, side, color, marker, label in (
        ("points", -1, BLUE, "o", "regression of points"),
        ("root", 1, ORANGE, "s", "of their square root, squared back"),
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
    return save(figure, output, "coverage.png")


def draw_shares(axes: Any, at: np.ndarray, groups: list[np.ndarray], style: dict) -> None:
    """Draw the share of True in each group, in percent, with its Wilson interval."""
    tests = [binomtest(int(group.sum()), len(group)) for group in groups]
    limits = np.array([test.proportion_ci(method="wilson") for test in tests])
    share = np.array([test.statistic for test in tests])
    error = np.abs(limits.T - share)
    axes.errorbar(at, 100 * share, 100 * error, **style)


# ---- all of it ----------------------------------------------------------------------------------

SECTIONS = {
    "Does the career last five years?": classify,
    "A search over step size and temperature": search,
    "What the coefficients say": coefficients,
    "Six rookies whom the fit has not seen": six_rookies,
    "Points from the other columns: do the intervals hold?": regress_points,
}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="NBA rookies, from the table to decisions.")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        default=Path(__file__).parent / "figures" / "nba_rookies",
        help="folder for the figures, made if need be (default: %(default)s)",
    )
    parser.add_argument("--fast", action="store_true", help="less of everything: a few seconds")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every section, and say where the figures are."""
    start, options = time.perf_counter(), parse(arguments)
    plan = FAST if options.fast else Plan()
    new_figure(1.0, 1.0)  # without Matplotlib stop here, not half a minute later
    options.output.mkdir(parents=True, exist_ok=True)
    print("NBA rookies\n", flush=True)
    rookies, figures = load(), []
    for number, (title, section) in enumerate(SECTIONS.items(), 1):
        print(f"\n[{time.perf_counter() - start:5.1f} s] {number}. {title}\n", flush=True)
        figures += section(rookies, plan, options.output)
    print(f"\n[{time.perf_counter() - start:5.1f} s] Done. Figures:\n")
    for path in figures:
        inside = path.is_relative_to(Path.cwd())
        print(f"  {path.relative_to(Path.cwd()) if inside else path}")


if __name__ == "__main__":
    main()
