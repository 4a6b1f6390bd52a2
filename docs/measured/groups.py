"""Figures of the pages on groups and curves: effects of makers, a new maker, a curve; seconds."""

from __future__ import annotations

import numpy as np
import pandas as pd
from _figure import BLUE, GREY, ORANGE, new_figure, parse, save, tidy
from _numbers import measured

from skbayes_sgld import SGLDLinearRegression
from skbayes_sgld.datasets import load_cars


def makers():
    """Cars by maker, log weight and year, and the log of gallons for a hundred miles."""
    cars = load_cars()
    X = cars.data[["weight", "year"]].assign(maker=[name.split()[0] for name in cars.names])
    X["weight"], X["year"] = np.log(X["weight"] / 3000), X["year"] - 1976
    return X, np.log(100 / cars.target)


def draw_shrinkage(axes, model, X, y):
    """Means of each maker's residuals without pooling, and its effects."""
    table = model.group_effects_.droplevel(["term", "effect"])
    rest = y - model.predict(X, groups="population")
    alone = rest.groupby(X["maker"]).agg(["mean", "size"]).loc[table.index]
    order = np.argsort(alone["size"].to_numpy(), kind="stable")
    at = np.arange(len(order))
    table, alone = table.iloc[order], alone.iloc[order]
    axes.hlines(at, 100 * table["lower"], 100 * table["upper"], color=BLUE, alpha=0.4)
    axes.scatter(100 * alone["mean"], at, s=10, color=ORANGE, label="its own mean")
    axes.scatter(100 * table["mean"], at, s=10, color=BLUE, label="its effect, 90 %")
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    some = [0, len(at) // 3, 2 * len(at) // 3, len(at) - 1]
    labels = [f"{table.index[k]}, {alone['size'].iloc[k]} cars" for k in some]
    axes.set_yticks(some, labels, fontsize=8)
    axes.set_xlabel("fuel above the average, %")
    axes.legend(fontsize=8, loc="upper left")
    tidy(axes, "few rows: near the others", grid="x")


def draw_new(axes, model):
    """Distribution of the mean of a known maker, and of one that the fit has not seen."""
    rows = pd.DataFrame({"weight": [0.0] * 2, "year": [0] * 2, "maker": ["ford", "new"]})
    draws = np.exp(model.posterior_mean_draws(rows))
    for values, color, name in zip(draws, (BLUE, ORANGE), ("Ford", "a new maker"), strict=True):
        axes.hist(values, bins=60, density=True, histtype="step", color=color, label=name)
    axes.set_xlabel("gallons for a hundred miles")
    axes.set_yticks([])
    axes.legend(fontsize=8)
    tidy(axes, "a new maker is drawn from the population", grid="x")


def draw_curve(axes, quick):
    """A curve whose bend is learned, and its band beyond the rows."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 80)
    y = np.sin(x) + 0.3 * rng.standard_normal(80)
    n_draws = 250 if quick else 1000
    model = SGLDLinearRegression(smooth_effects={0: 12}, n_draws=n_draws, random_state=0)
    model.fit(x[:, None], y)
    grid = np.linspace(-1.5, 11.5, 200)
    low, high = model.predict_interval(grid[:, None], kind="mean").T
    axes.scatter(x, y, s=8, color=GREY)
    axes.fill_between(grid, low, high, color=BLUE, alpha=0.25)
    axes.plot(grid, model.predict(grid[:, None]), color=BLUE, label="fit, 90 %")
    axes.plot(grid, np.sin(grid), color=ORANGE, linestyle="--", label="truth")
    axes.set_xlabel("x")
    axes.legend(fontsize=8)
    tidy(axes, "a line goes on where rows end")


def main(arguments=None):
    options = parse(__doc__, arguments)
    X, y = makers()
    n_draws = 250 if options.quick else 1000
    model = SGLDLinearRegression(
        group_effects={"maker": "intercept"}, n_draws=n_draws, random_state=0
    ).fit(X, y)
    figure = new_figure(11.0, 3.8)
    shrinkage, new, curve = figure.subplots(1, 3)
    draw_shrinkage(shrinkage, model, X, y)
    draw_new(new, model)
    draw_curve(curve, options.quick)
    save(figure, options.output, "groups.png")
    scales = model.sample_posterior()["sd"]
    values = np.ravel(scales["maker"] if isinstance(scales, dict) else scales)
    error = values.std() / np.sqrt(len(values) / 2)
    return {"sd of makers, %": measured(100 * values.mean(), 100 * error, ".0f")}


if __name__ == "__main__":
    main()
