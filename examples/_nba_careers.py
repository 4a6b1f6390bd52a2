"""Careers of rookies: what the coefficients say, and six predictions (see ``nba_rookies.py``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from _figure import BLUE, GREY, new_figure, save, say, show, tidy
from _nba import COVERAGE, Work, group_folds, percent, pipeline, plain
from sklearn.utils import Bunch

from skbayes_sgld import SGLDLogisticRegression

REBOUNDS = ("rebounds", "offensive_rebounds", "defensive_rebounds")


# ---- coefficients -------------------------------------------------------------------------------


def coefficients(rookies: Bunch, work: Work, output: Path) -> None:
    """Print and draw the posterior of the coefficients."""
    model = pipeline(SGLDLogisticRegression(n_draws=work.n_draws, random_state=0))
    model.fit(rookies.data, rookies.target)
    summary = model["model"].summary(coverage=COVERAGE)
    summary.index = [name.removeprefix("coef[").removesuffix("]") for name in summary.index]
    low, high = "lower", "upper"
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
    draw_forest(slopes, low, high, output)


def rebounds_together(model: SGLDLogisticRegression) -> np.ndarray:
    """Draws of the effect of one standard deviation more of all three columns."""
    chosen = np.isin(model.feature_names_in_, REBOUNDS)
    return model.sample_posterior().coef[:, chosen].sum(axis=1)


def draw_forest(slopes: pd.DataFrame, low: str, high: str, output: Path) -> None:
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
    tidy(axes, grid="x")
    save(figure, output, "coefficients.png")


# ---- six rookies --------------------------------------------------------------------------------


def six_rookies(rookies: Bunch, work: Work, output: Path) -> None:
    """Predict the careers of rookies whom the fit has not seen, and look at six of them."""
    held_out = predict_held_out(rookies, work)
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
    draw_six(six, output)


def predict_held_out(rookies: Bunch, work: Work) -> pd.DataFrame:
    """Fit four fifths of the names; return the predictions for the others, sorted."""
    train, test = next(group_folds(5).split(rookies.data, rookies.target, rookies.names))
    model = pipeline(SGLDLogisticRegression(n_draws=work.n_draws, random_state=0))
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


def draw_six(six: pd.DataFrame, output: Path) -> None:
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
    tidy(axes, grid="x")
    save(figure, output, "six_rookies.png")
