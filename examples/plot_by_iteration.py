"""Logistic regression by iteration: single draws as printed, posterior means as they should be
============================================================================================

S. Chen, "Dive into Bayesian Learning via Stochastic Gradient Langevin Dynamics", Figures 5 to 7:
12,500 rows drawn from a logistic regression, and the NBA rookies; a Laplace prior of scale 1,
minibatches of 30, epsilon_t = 0.03 (6 + t)^-0.55. epsilon is twice the step size here. What the
report plots as posterior means are the draws. (Its code also takes noise of another size than its
text, 10,000 for the number of rookies, and standardises them before it sets rows aside; here the
text is run, and columns are standardised by the rows that are fitted.)

To see: the printed draws settle on the true values within 200 iterations, but they are twice as
wide as the posterior, and their way there stays in the mean, the more so the more the first, long
steps weigh. Predictions from single draws fluctuate; those from the mean over draws do not,
whatever the sampler.

Usage: ``python examples/plot_by_iteration.py [--output DIR] [--quick]``.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_means_by_iteration.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import (
    EXACT,
    PRINTED,
    RIGHT,
    new_figure,
    parse,
    save,
    say,
    show_rows,
    tidy,
)
from _numbers import measured, write
from _plain_sgld import plain_sgld
from scipy.special import expit
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SamplingResult, sample
from skbayes_sgld.datasets import load_nba_rookies, make_logistic
from skbayes_sgld.likelihoods import Bernoulli
from skbayes_sgld.posterior import GLMPosterior
from skbayes_sgld.priors import Laplace
from skbayes_sgld.sampling import Polynomial

TRUTH = {"intercept": 4.2, "first slope": 2.0, "second slope": -3.4}  # those of the report's code
BATCH_SIZE, A, OFFSET, POWER = 30, 0.03, 6.0, 0.55
BURN_IN = 500


def split(X: np.ndarray, y: np.ndarray, standardise: bool = False) -> tuple[Any, ...]:
    """Posterior given four fifths of the rows, these rows, and those that are left.

    Columns are standardised, and gaps filled, by the means and sds of the rows that are fitted.
    """
    rows = train_test_split(X, y, test_size=0.2, random_state=77)
    train, test, y_train, y_test = map(np.asarray, rows)
    if standardise:
        fill = make_pipeline(SimpleImputer(), StandardScaler()).fit(train)
        train, test = fill.transform(train), fill.transform(test)
    # the report shrinks the intercept too
    train, test = (np.column_stack([np.ones(len(part)), part]) for part in (train, test))
    posterior = GLMPosterior(
        train, y_train.astype(float), Bernoulli(), Laplace(1.0), fit_intercept=False
    )
    return posterior, (train, y_train), (test, y_test)


def run_printed(posterior: GLMPosterior, n_steps: int, n_chains: int) -> tuple[Any, np.ndarray]:
    """Every position of Welling and Teh's recursion from theta = 1, and its step sizes."""
    kernel = plain_sgld(posterior, A, Polynomial(OFFSET, POWER), BATCH_SIZE)
    start = np.ones((n_chains, posterior.n_params))
    chains = kernel.run(start, n_steps)
    return chains.draws, chains.weights


def running_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted mean of all values up to each, along the first axis."""
    share = weights[:, None]
    return np.cumsum(share * values, axis=0) / np.cumsum(share, axis=0)


def step_numbers(result: SamplingResult) -> np.ndarray:
    """Number of the step at which each draw was kept."""
    burnin, thin = (result.choices[name].value for name in ("n_burnin", "thin"))
    return burnin + thin * np.arange(1, result.values.shape[1] + 1)


# ---- Figure 5: the coefficients -----------------------------------------------------------------


def distances(draws: np.ndarray, weights: np.ndarray, mean: Any, sd: Any) -> np.ndarray:
    """Error of one chain's running means in posterior sds ``(2, T)``.

    Root mean square over chains and coefficients, and its standard error over the chains.
    """
    squares = [
        np.mean(np.square((running_mean(chain, weights) - mean) / sd), axis=1) for chain in draws
    ]
    root = np.sqrt(np.mean(squares, axis=0))
    return np.stack([root, np.std(squares, axis=0, ddof=1) / np.sqrt(len(draws)) / (2.0 * root)])


def draw_start(axes: Any, draws: np.ndarray) -> None:
    """Draw the figure of the report: the first 500 draws of a chain."""
    for values, (name, value) in zip(draws.T, TRUTH.items(), strict=True):
        axes.plot(np.arange(1, 501), values[:500], color=PRINTED, linewidth=0.8)
        axes.axhline(value, color="black", linestyle="--", linewidth=1)
        beside = 2.2 if name == "intercept" else -2.2
        axes.text(490, value + beside, name, ha="right", va="center", fontsize=9)
    axes.set(xlabel="iteration", ylabel="coefficient", xlim=(0, 500))
    tidy(axes, "As printed: the first 500 draws")


def draw_rest(panels: Any, draws: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> None:
    """Draw the same chain from there on, a panel a coefficient, on the posterior's width."""
    steps = np.arange(BURN_IN, len(draws))
    for j, (axes, (name, value)) in enumerate(zip(panels, TRUTH.items(), strict=True)):
        axes.plot(steps, draws[BURN_IN:, j], color=PRINTED, linewidth=0.3, alpha=0.8)
        axes.axhspan(
            mean[j] - 2.0 * sd[j],
            mean[j] + 2.0 * sd[j],
            color=EXACT,
            alpha=0.25,
            linewidth=0,
            zorder=3,
            label="posterior mean ± 2 sd",
        )
        axes.axhline(value, color="black", linestyle="--", linewidth=1, label="true value")
        axes.set(ylabel=name, xlim=(BURN_IN, len(draws)))
        axes.tick_params(labelbottom=j == len(TRUTH) - 1)
        tidy(axes)
    panels[0].set_title(f"The same chain after {BURN_IN} iterations", fontsize=10)
    panels[-1].set_xlabel("iteration")


def draw_means(
    figure: Any, posterior: GLMPosterior, n_steps: int, n_chains: int, n_draws: int
) -> dict[str, Any]:
    """Draw the coefficients by iteration; return what is to be seen."""
    draws, weights = run_printed(posterior, n_steps, n_chains)
    exact = sample(posterior, "hmc", n_draws=2 * n_draws, random_state=1).values
    mean, sd = exact.mean((0, 1)), exact.std((0, 1))
    default = sample(posterior, n_draws=n_draws, n_chains=n_chains, random_state=0)
    figure.suptitle("Logistic regression on generated data: the coefficients by iteration")
    panels = figure.subplot_mosaic("LAR;LBR;LCR", width_ratios=(1.0, 0.9, 1.1))
    draw_start(panels["L"], draws[0])
    draw_rest([panels[name] for name in "ABC"], draws[0], mean, sd)
    steps = step_numbers(default)
    every, late = np.arange(1, n_steps + 1), slice(BURN_IN, None)
    runs = {
        "printed run, plain mean": (every, draws, np.ones(n_steps), "-"),
        "printed run, weighted by the step": (every, draws, weights, "--"),
        f"weighted, without the first {BURN_IN}": (
            every[late],
            draws[:, late],
            weights[late],
            ":",
        ),
        "default settings": (steps, default.values, np.ones(len(steps)), "-"),
    }
    axes, found = panels["R"], {}
    for label, (x, values, share, style) in runs.items():
        curve, error = distances(values, share, mean, sd)
        color = RIGHT if label == "default settings" else PRINTED
        axes.loglog(x, curve, style, color=color, label=label)
        low = np.maximum(curve - 2.0 * error, 0.1 * curve)
        axes.fill_between(x, low, curve + 2.0 * error, color=color, alpha=0.2, linewidth=0)
        found[label] = measured(curve[-1], error[-1], "±.2f")
    axes.axhline(1, color=EXACT, linewidth=1, label="one posterior sd")
    axes.set(xlabel="iteration", ylabel="posterior sds, root mean square of one chain")
    axes.set_title(f"Error of the running mean (± 2 s.e., {n_chains} chains)", fontsize=10)
    shown = [each.get_legend_handles_labels() for each in (axes, panels["A"])]
    handles, labels = (sum(parts, []) for parts in zip(*shown, strict=True))
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    tidy(axes)
    wide = draws[:, n_steps // 2 :].std(axis=1) / sd
    error = wide.mean(axis=1).std(ddof=1) / np.sqrt(n_chains)
    return {"error of the mean": found, "width": measured(wide.mean(), error, ".1f")}


# ---- Figures 6 and 7: loss and accuracy ---------------------------------------------------------


def scores(probability: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log loss and the accuracy of probabilities of y = 1 ``(..., row)``."""
    right = np.where(y == 1, probability, 1.0 - probability)
    return -np.log(np.maximum(right, 1e-300)).mean(axis=-1), (right > 0.5).mean(axis=-1)


def draw_single(axes: Any, steps: np.ndarray, values: np.ndarray, **look: Any) -> None:
    """Draw where 90 % of the draws ``(chain, step)`` close in step are."""
    edges = np.unique(np.geomspace(steps[0], steps[-1], 25).round())
    parts = np.digitize(steps, edges[1:-1])
    each = [values[:, parts == part].ravel() for part in np.unique(parts)]
    at = [np.exp(np.log(steps[parts == part]).mean()) for part in np.unique(parts)]
    low, high = np.transpose([np.quantile(x, [0.05, 0.95]) for x in each])
    axes.fill_between(at, low, high, alpha=0.3, linewidth=0, **look)


def draw_scores(
    panels: Any, name: str, data: tuple[Any, ...], n_steps: int, n_chains: int, n_draws: int
) -> dict[str, Any]:
    """Draw log loss and accuracies by iteration into three panels; return them at the end.

    Single draws and means over draws are shown of both runs, so that what averaging does and what
    the sampler does can be told apart.
    """
    posterior, train, test = data
    draws, _ = run_printed(posterior, n_steps, n_chains)
    default = sample(posterior, n_draws=n_draws, random_state=0)
    late = np.arange(BURN_IN, n_steps, 10)
    runs = {
        "printed run": (late + 1, draws[:, late], PRINTED),
        "default settings": (step_numbers(default), default.values, RIGHT),
    }
    kinds = {
        "test log loss": (0, test, "test log loss (nats)", 1.0, ".3f"),
        "training accuracy": (1, train, "training accuracy (%)", 100.0, ".1f %"),
        "test accuracy": (1, test, "test accuracy (%)", 100.0, ".1f %"),
    }
    found: dict[str, Any] = {}
    for axes, (key, (which, (X, y), label, unit, form)) in zip(panels, kinds.items(), strict=True):
        found[key] = {}
        for run, (steps, values, color) in runs.items():
            each, by_chain, mean = [], [], 0.0
            for chain in values:
                chance = expit(chain @ X.T)
                each.append(scores(chance, y)[which])
                so_far = running_mean(chance, np.ones(len(steps)))
                by_chain.append(scores(so_far[-1], y)[which])
                mean = mean + so_far / len(values)
            single, average = np.stack(each), scores(mean, y)[which]
            draw_single(axes, steps, unit * single, color=color, label=f"single draws, {run}")
            axes.plot(steps, unit * average, color=color, label=f"mean over draws so far, {run}")
            half = single[:, len(steps) // 2 :]
            error = np.std(by_chain, ddof=1) / np.sqrt(len(values))
            spread = half.mean(axis=1).std(ddof=1) / np.sqrt(len(values))
            found[key][run] = {
                "mean over draws": measured(average[-1], error, form),
                "single draws": measured(half.mean(), spread, form),
            }
        axes.set(xlabel="iteration", ylabel=label, xscale="log")
        tidy(axes, f"{name}, {len(y):,} rows")
    return found


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Draw both figures; return the numbers that they show."""
    options = parse(__doc__, arguments)
    n_steps, n_chains, n_draws = (1000, 4, 250) if options.quick else (10_000, 8, 1000)
    generated = split(*make_logistic(1000 if options.quick else 12_500, random_state=0))
    rookies = split(*load_nba_rookies(return_X_y=True), standardise=True)

    figure = new_figure(11, 4.8)
    means = draw_means(figure, generated[0], n_steps, n_chains, n_draws)
    save(figure, options.output, "means_by_iteration.png", figure.axes[0])
    ends = ", ".join(f"{name} {write(end)}" for name, end in means["error of the mean"].items())
    say(
        f"Over its last {n_steps // 2:,} steps the printed run is {write(means['width'])} times as "
        f"wide as the posterior. Its means end off by, in posterior sds: {ends}."
    )

    figure, data = new_figure(11, 6.2), {"Generated data": generated, "NBA rookies": rookies}
    panels = figure.subplots(2, 3)
    found = {
        name: draw_scores(row, name, each, n_steps, n_chains, n_draws)
        for row, (name, each) in zip(panels, data.items(), strict=True)
    }
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.suptitle("Predictions by iteration: 90 % of single draws, and means over draws")
    save(figure, options.output, "scores_by_iteration.png")
    for name, by_kind in found.items():
        say(f"{name}: single draws of the second half of each run, and means over all draws:")
        show_rows(
            {
                f"{kind}, {run}": row
                for kind, by_run in by_kind.items()
                for run, row in by_run.items()
            }
        )
    if options.quick:  # other generated data, and a shorter printed run
        return {
            "NBA rookies": {
                kind: {"default settings": by_run["default settings"]}
                for kind, by_run in found["NBA rookies"].items()
            }
        }
    return {"means": means} | found


if __name__ == "__main__":
    main()
