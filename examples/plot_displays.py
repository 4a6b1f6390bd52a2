"""Every display: of draws and of predictions
==========================================

The progression of diabetes after a year, by ten columns that are there when it begins, and the
rookies of the NBA whose careers last five years. To see: chains that agree, what the columns say,
and intervals and probabilities that hold what they promise on rows that the fits have not seen.

Usage: ``python examples/plot_displays.py [--output DIR] [--quick]``; about 5 s.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_displays_predictions.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from _figure import new_figure, parse, save, say, unconverged
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLinearRegression, SGLDLogisticRegression
from skbayes_sgld.datasets import load_nba_rookies
from skbayes_sgld.plotting import (
    AutocorrelationDisplay,
    CoverageDisplay,
    DensityDisplay,
    ForestDisplay,
    PartialDependenceDisplay,
    PredictiveIntervalDisplay,
    ProbabilityContourDisplay,
    RankDisplay,
    ReliabilityDisplay,
    TraceDisplay,
)

TARGET = "progression after a year"
FEW = 80  # rows of the contours' fit: with more little is left uncertain


def draw_draws(figure: Any, model: Any) -> None:
    """Draw the displays of draws."""
    panels = figure.subplot_mosaic("TAF;RDF", width_ratios=(1.25, 1.0, 1.0))
    TraceDisplay.from_estimator(model, parameters="coef[bmi]", ax=panels["T"])
    RankDisplay.from_estimator(model, parameters="coef[bmi]", ax=panels["R"])
    AutocorrelationDisplay.from_estimator(
        model, parameters=["coef[bmi]", "intercept", "noise_variance"], ax=panels["A"]
    )
    DensityDisplay.from_estimator(model, parameters="noise_variance", ax=panels["D"])
    ForestDisplay.from_estimator(model, ax=panels["F"])
    titles = {
        "T": "Trace: draws in their order",
        "R": "Ranks: each chain has its share (band: 95 %)",
        "A": "Autocorrelation (band: chance)",
        "D": "Density of the noise variance",
        "F": "Forest: the ten coefficients",
    }
    for name, title in titles.items():
        panels[name].set_title(title, fontsize=10)
    panels["D"].set(ylabel="density", xlabel="noise variance (progression²)")
    panels["F"].set_title("", loc="left")
    panels["F"].set_xlabel("progression per unit of a column:\nmean, 50 % and 90 % intervals")
    figure.suptitle("Displays of draws: the default linear regression on 331 diabetes patients")


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, draw both figures and say what to see."""
    options = parse(__doc__, arguments)
    n_draws = 200 if options.quick else 1000
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    rookies = load_nba_rookies()
    career = train_test_split(rookies.data.fillna(0.0), rookies.target, random_state=0)
    two = ["games_played", "points"]
    with unconverged(options.quick):
        linear = SGLDLinearRegression(n_draws=n_draws, random_state=0).fit(X, y)
        curve = SGLDLinearRegression(n_draws=n_draws, random_state=0).fit(X[["bmi"]], y)
        labels = make_pipeline(
            StandardScaler(), SGLDLogisticRegression(n_draws=n_draws, random_state=0)
        ).fit(career[0], career[2])
        plane = make_pipeline(
            StandardScaler(), SGLDLogisticRegression(n_draws=n_draws, random_state=0)
        ).fit(career[0][two][:FEW], career[2][:FEW])

    figure = new_figure(11.0, 5.6)
    draw_draws(figure, linear)
    save(figure, options.output, "displays_draws.png")

    figure = new_figure(12.0, 7.8)
    figure.suptitle("Displays of predictions: diabetes patients (top), NBA rookies (below)")
    panels = figure.subplots(2, 3)
    PredictiveIntervalDisplay.from_estimator(
        curve, X_new[["bmi"]], y_new, y_name=TARGET, ax=panels[0, 0]
    )
    PredictiveIntervalDisplay.from_estimator(linear, X_new, y_new, y_name=TARGET, ax=panels[0, 1])
    CoverageDisplay.from_estimator(linear, X_new, y_new, ax=panels[0, 2])
    ReliabilityDisplay.from_estimator(labels, career[1], career[3], ax=panels[1, 0])
    PartialDependenceDisplay.from_estimator(
        labels,
        career[1],
        "games_played",
        y_name="probability of five years",
        grid_resolution=10 if options.quick else 50,
        ax=panels[1, 1],
    )
    panels[1, 1].set_xlabel("games played in the first season")
    rows, names = career[0][two][:FEW], career[2][:FEW]
    ProbabilityContourDisplay.from_estimator(plane, rows, names, ax=panels[1, 2])
    save(figure, options.output, "displays_predictions.png", panels[0, 0])
    say(
        "To see: chains that agree; a body mass index that counts; 90 % intervals that hold about "
        "that share of new rows; of each bin's rookies about the share that was predicted; and a "
        "probability of five years that rises with the games played, all other columns as they are."
    )


if __name__ == "__main__":
    main()
