"""Logistic regression by iteration: single draws as printed, posterior means as they should be
============================================================================================

S. Chen, "Dive into Bayesian Learning via Stochastic Gradient Langevin Dynamics", Figures 5 to 7:
12,500 rows drawn from a logistic regression, and the NBA rookies; a Laplace prior of scale 1,
minibatches of 30, epsilon_t = 0.03 (6 + t)^-0.55. epsilon is twice the step size here. What the
report plots as posterior means are the draws. (Its code also takes noise of another size than its
text, and 10,000 for the number of rookies; here the text is run.)

To see: the printed draws settle on the true values within 200 iterations, but they are twice as
wide as the posterior, and their way there stays in the mean, the more so the more the first, long
steps weigh. Predictions from single draws fluctuate; those from the mean over draws do not.

Usage: ``python examples/plot_by_iteration.py [--output DIR] [--quick]``.
"""

# sphinx_gallery_thumbnail_path = "figures/means_by_iteration.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import (
    BLUE,
    EXACT,
    GREEN,
    GREY,
    ORANGE,
    PRINTED,
    RIGHT,
    new_figure,
    parse,
    save,
    say,
    tidy,
)
from _plain_sgld import plain_run
from scipy.special import expit
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from skbayes_sgld import SamplingResult, sample
from skbayes_sgld.datasets import load_nba_rookies, make_logistic
from skbayes_sgld.posterior import Bernoulli, GLMPosterior, Laplace
from skbayes_sgld.sampling import Polynomial
from skbayes_sgld.sampling.chains import run_chains

TRUTH = {"intercept": 4.2, "first slope": 2.0, "second slope": -3.4}  # those of the report's code
COLORS = (BLUE, ORANGE, GREEN)
BATCH_SIZE, A, OFFSET, POWER = 30, 0.03, 6.0, 0.55
BURN_IN = 500


def split(X: np.ndarray, y: np.ndarray) -> tuple[GLMPosterior, np.ndarray, np.ndarray]:
    """Posterior given four fifths of the rows, and the rows that are left."""
    design = np.column_stack([np.ones(len(X)), X])  # the report shrinks the intercept too
    train, test, y_train, y_test = train_test_split(design, y, test_size=0.2, random_state=77)
    posterior = GLMPosterior(
        train, y_train.astype(float), Bernoulli(), Laplace(1.0), fit_intercept=False
    )
    return posterior, test, y_test


def run_printed(posterior: GLMPosterior, n_steps: int, n_chains: int) -> tuple[Any, np.ndarray]:
    """Every position of Welling and Teh's recursion from theta = 1, and its step sizes."""
    run = plain_run(posterior, A, Polynomial(OFFSET, POWER), BATCH_SIZE)
    start = np.ones((n_chains, posterior.n_params))
    chains = run_chains(run, start, n_draws=n_steps)
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
    """How far running means are from the posterior's, in its sds, over all chains."""
    errors = [(running_mean(chain, weights) - mean) / sd for chain in draws]
    return np.sqrt(np.mean(np.square(errors), axis=(0, 2)))


def draw_means(
    figure: Any, posterior: GLMPosterior, n_steps: int, n_chains: int, n_draws: int
) -> str:
    """Draw the coefficients by iteration, and say what is to be seen."""
    draws, weights = run_printed(posterior, n_steps, n_chains)
    exact = sample(posterior, "hmc", n_draws=2 * n_draws, random_state=1).values
    exact_mean, exact_sd = exact.mean((0, 1)), exact.std((0, 1))
    default = sample(posterior, n_draws=n_draws, n_chains=n_chains, random_state=0)
    figure.suptitle("Logistic regression on generated data, the coefficients by iteration")
    left, right = figure.subplots(1, 2)
    shown = draws[0, :500]
    for j, (name, value) in enumerate(TRUTH.items()):
        left.plot(np.arange(1, len(shown) + 1), shown[:, j], color=COLORS[j], linewidth=0.8)
        left.axhline(value, color="black", linestyle="--", linewidth=1)
        left.annotate(name, (510, value), va="center", color=COLORS[j], annotation_clip=False)
        low, high = exact_mean[j] + np.array([-2, 2]) * exact_sd[j]
        left.axhspan(low, high, color=EXACT, alpha=0.35, linewidth=0)
    left.set(title="As printed: the first 500 draws", xlabel="iteration", ylabel="coefficient")
    left.set_xlim(0, 500)
    left.plot([], [], color="black", linestyle="--", linewidth=1, label="true value")
    left.fill_between([], [], color=EXACT, alpha=0.35, label="posterior mean ± 2 sd")
    left.legend(loc="upper right", frameon=False)
    steps = step_numbers(default)
    every, late = np.arange(1, n_steps + 1), slice(BURN_IN, None)
    runs = {
        "printed run, plain mean": (every, draws, np.ones(n_steps), GREY),
        "printed run, weighted by step": (every, draws, weights, PRINTED),
        f"without the first {BURN_IN}": (every[late], draws[:, late], weights[late], GREEN),
        "default settings": (steps, default.values, np.ones(len(steps)), RIGHT),
    }
    ends = []
    for label, (x, values, share, color) in runs.items():
        curve = distances(values, share, exact_mean, exact_sd)
        right.loglog(x, curve, color=color, label=label)
        ends.append(curve[-1])
    right.axhline(1, color=EXACT, linewidth=1, linestyle=":")
    right.annotate("one posterior sd", (1, 1), (0, 3), textcoords="offset points", color=EXACT)
    right.set(
        title="As it should be: error of the running mean",
        xlabel="iteration",
        ylabel="posterior sds (root mean square)",
    )
    handles = right.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4, frameon=False)
    tidy(left)
    tidy(right)
    wide = np.mean(draws[:, n_steps // 2 :].std(axis=(0, 1)) / exact_sd)
    return (
        f"Over its last {n_steps // 2:,} steps the printed run is {wide:.1f} times as wide as the "
        f"posterior. Its plain mean ends {ends[0]:.2f} posterior sds from the posterior's, the "
        f"one weighted by the step {ends[1]:.2f}, or {ends[2]:.2f} without the first {BURN_IN}; "
        f"the default's {ends[3]:.2f} (of one chain; root mean square over {n_chains})."
    )


# ---- Figures 6 and 7: loss and accuracy ---------------------------------------------------------


def scores(probability: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log loss and the accuracy of each row of probabilities of y = 1."""
    right = np.where(y == 1, probability, 1.0 - probability)
    return -np.log(np.maximum(right, 1e-300)).mean(axis=1), (right > 0.5).mean(axis=1)


def draw_scores(panels: Any, name: str, data: tuple[Any, ...], n_steps: int, n_draws: int) -> str:
    """Draw log loss and accuracy by iteration into two panels, and say what is to be seen."""
    posterior, X_test, y_test = data
    every = 10
    draws, _ = run_printed(posterior, n_steps, 1)
    default = sample(posterior, n_draws=n_draws, random_state=0)
    mean = running_mean(expit(default.values[0] @ X_test.T), np.ones(n_draws))
    printed = scores(expit(draws[0, every - 1 :: every] @ X_test.T), y_test)
    right = scores(mean, y_test)
    x = every * np.arange(1, len(printed[0]) + 1)
    steps = step_numbers(default)
    labels = ("test log loss (nats)", "test accuracy (%)")
    late = len(x) // 2
    for axes, label, unit, single, average in zip(
        panels, labels, (1, 100), printed, right, strict=True
    ):
        axes.semilogx(x, unit * single, color=PRINTED, linewidth=0.7, label="each draw, as printed")
        axes.semilogx(steps, unit * average, color=RIGHT, label="mean over draws, default settings")
        axes.axhline(unit * average[-1], color=RIGHT, linewidth=0.8, linestyle=":")
        low, high = np.quantile(single[x >= 100], [0.002, 0.998])
        margin = 0.15 * (high - low)
        axes.set(ylim=(unit * (low - margin), unit * (high + margin)), xlim=(20, n_steps))
        axes.set(title=name, xlabel="iteration", ylabel=label)
        tidy(axes)
    (loss, accuracy), (right_loss, right_accuracy) = printed, right
    return (
        f"{name}: over the second half of the printed run a draw's test log loss is "
        f"{loss[late:].mean():.3f} (sd {loss[late:].std():.3f}) and its accuracy "
        f"{accuracy[late:].mean():.3f} (sd {accuracy[late:].std():.3f}); the mean over posterior "
        f"draws has {right_loss[-1]:.3f} and {right_accuracy[-1]:.3f}."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(__doc__, arguments)
    n_steps, n_chains, n_draws = (1000, 4, 250) if options.quick else (10_000, 8, 1000)
    generated = split(*make_logistic(1000 if options.quick else 12_500, random_state=0))
    table, y = load_nba_rookies(return_X_y=True)
    rookies = split(scale(table.fillna(table.mean()).to_numpy()), y.to_numpy())

    figure = new_figure(10, 4.2)
    say(draw_means(figure, generated[0], n_steps, n_chains, n_draws))
    save(figure, options.output, "means_by_iteration.png")

    figure = new_figure(9, 6.2)
    panels = figure.subplots(2, 2)
    say(draw_scores(panels[0], "Generated data", generated, n_steps, n_draws))
    say(draw_scores(panels[1], "NBA rookies", rookies, n_steps, n_draws))
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.suptitle("Predictions for rows held out: single draws, and the mean over draws")
    save(figure, options.output, "scores_by_iteration.png")


if __name__ == "__main__":
    main()
