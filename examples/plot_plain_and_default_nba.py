"""NBA rookies: plain SGLD and the default settings, beside a long run of Hamiltonian Monte Carlo
==============================================================================================

Logistic regression on 19 standardised statistics, some of them sums of others (condition number
5.6e4), with a Laplace prior of scale 1. Plain SGLD is that of S. Chen, "Dive into Bayesian Learning
via Stochastic Gradient Langevin Dynamics", Section 3.2: batches of 30 and
epsilon_t = 0.03 (6 + t)^-0.55, twice the step size here.

To see: after 100,000 steps the plain chains have not met, and their marginals are not the
posterior's; the default's are, after a few thousand steps.

Usage: ``python examples/plot_plain_and_default_nba.py [--output DIR] [--quick]``.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_nba_marginals.png"

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, PRINTED, RIGHT, new_figure, parse, save, say, tidy, unconverged
from _nba import plain
from _numbers import measured
from _plain_sgld import PLAIN
from scipy.stats import gaussian_kde
from sklearn.preprocessing import StandardScaler

from skbayes_sgld import SGLDLogisticRegression
from skbayes_sgld.datasets import load_nba_rookies
from skbayes_sgld.diagnostics import effective_sample_size
from skbayes_sgld.priors import Laplace
from skbayes_sgld.sampling import Polynomial

SHOWN = ("games_played", "points", "field_goals_made", "rebounds")


def fit(X: Any, y: Any, **settings: Any) -> tuple[SGLDLogisticRegression, np.ndarray, float]:
    """Fitted model, its effective sample sizes, and the seconds that it took."""
    started = time.process_time()
    model = SGLDLogisticRegression(prior=Laplace(1.0), **settings).fit(X, y)
    seconds = time.process_time() - started
    return model, effective_sample_size(model.posterior_.values), seconds


def draw_marginals(panels: Any, model: Any, exact: Any, color: str, title: str) -> None:
    """Draw histograms of some coefficients, and the densities of the reference run."""
    for axes, feature in zip(panels, SHOWN, strict=True):
        name = f"coef[{feature}]"
        draws, reference = model.posterior_[name].ravel(), exact.posterior_[name].ravel()
        reach = np.quantile(np.concatenate([draws, reference]), [0.001, 0.999])
        grid = np.linspace(*reach, 200)
        bins, weights = np.linspace(*reach, 45), model.posterior_.flat_weights
        axes.hist(draws, bins, density=True, weights=weights, color=color, alpha=0.55)
        axes.plot(grid, gaussian_kde(reference)(grid), color=EXACT, label="long HMC run")
        axes.set(title=f"{title}: {plain(feature)}", yticks=[])
        axes.title.set_fontsize(10)
        axes.set_xlabel("log odds per sd", fontsize=9)
        axes.spines[["top", "right", "left"]].set_visible(False)


def sd_errors(model: SGLDLogisticRegression) -> np.ndarray:
    """Relative Monte Carlo standard error of each coefficient's sd."""
    draws = model.posterior_.values
    squares = (draws - draws.mean(axis=(0, 1))) ** 2
    size = effective_sample_size(squares, "mean")
    return 0.5 * squares.std(axis=(0, 1)) / squares.mean(axis=(0, 1)) / np.sqrt(size)


def draw_judgement(panels: Any, fits: dict[str, Any], exact: Any) -> None:
    """Draw the sds over the reference's, and the effective sample sizes per second."""
    names = [in_words(name) for name in exact.posterior_.names]
    sd, at = exact.summary()["sd"], np.arange(len(names))
    for side, (label, (model, ess, seconds, color)) in zip(
        (-0.15, 0.15), fits.items(), strict=True
    ):
        ratio = model.summary()["sd"] / sd
        error = 2.0 * ratio * np.hypot(sd_errors(model), sd_errors(exact))
        look = {"color": color, "markersize": 5, "linewidth": 1.0}
        panels[0].errorbar(ratio, at + side, xerr=error, fmt="o", label=label, **look)
        panels[1].semilogx(ess / seconds, at + side, "o", color=color, markersize=5)
    panels[0].axvline(1.0, color=EXACT, label="long HMC run")
    panels[0].set_xlabel("sd over that of the long HMC run (± 2 standard errors)")
    panels[1].set_xlabel("effective draws a second of the whole fit")
    panels[0].set_yticks(at, names)
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    for axes in panels:
        tidy(axes)
    panels[0].set_title("How wide the posterior is found to be", fontsize=10)
    panels[1].set_title("How fast it is found", fontsize=10)
    panels[0].figure.legend(loc="outside lower center", ncols=3)
    panels[0].figure.suptitle("NBA rookies: plain SGLD and the default settings, by coefficient")


def in_words(name: str) -> str:
    """Name of a parameter as one says it."""
    return plain(name.removeprefix("coef[").removesuffix("]"))


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = parse(__doc__, arguments)
    n_steps, n_reference = (2_000, 250) if options.quick else (100_000, 4000)
    n_kept = 1000  # draws of each chain
    table, y = load_nba_rookies(return_X_y=True)
    X = StandardScaler().set_output(transform="pandas").fit_transform(table.fillna(table.mean()))
    exact, *_ = fit(X, y, sampler="hmc", n_draws=n_reference, random_state=1)
    with unconverged():
        printed = fit(
            X,
            y,
            batch_size=30,
            step_size=0.03 / 2,
            schedule=Polynomial(offset=6, power=0.55),
            n_draws=n_kept,
            random_state=0,
            **PLAIN | {"thin": n_steps // n_kept},
        )
    default = fit(X, y, n_draws=n_kept, random_state=0)
    reference, numbers = exact.summary(), {}
    for label, (model, ess, seconds) in {"Plain SGLD": printed, "The default": default}.items():
        found = model.summary()
        worst = ((found["mean"] - reference["mean"]).abs() / reference["sd"]).max()
        ratio = found["sd"] / reference["sd"]
        numbers[label] = {
            "worth": measured(ess.min(), max(0.1 * ess.min(), min(10.0, ess.min())), ",.0f"),
            "worst mean": measured(worst, None),
            "least sd": measured(ratio.min(), None),
            "largest sd": measured(ratio.max(), None),
        }
        steps = model.n_burnin_ + model.thin_ * n_kept
        say(
            f"{label}, 4 chains of {steps:,} steps of {model.sampler_}, {seconds:.1f} s: worst "
            f"effective sample size {ess.min():.0f}, {ess.min() / seconds:.2g} a second; worst "
            f"mean {worst:.2f} sds off; sds {ratio.min():.2f} to {ratio.max():.2f} times those of "
            "a long HMC run."
        )
    figure = new_figure(10, 5)
    panels = figure.subplots(2, len(SHOWN))
    draw_marginals(panels[0], printed[0], exact, PRINTED, "plain")
    draw_marginals(panels[1], default[0], exact, RIGHT, "default")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center")
    figure.suptitle(
        "NBA rookies: marginal posteriors by plain SGLD (top) and the default settings (bottom)"
    )
    save(figure, options.output, "nba_marginals.png", panels[1, 0])
    figure = new_figure(10, 6.4)
    fits = {"plain SGLD": (*printed, PRINTED), "default settings": (*default, RIGHT)}
    draw_judgement(figure.subplots(1, 2, sharey=True), fits, exact)
    save(figure, options.output, "nba_widths_and_efficiency.png")
    kept = numbers["The default"]
    return {"The default": {"worth": kept["worth"]}} if options.quick else numbers


if __name__ == "__main__":
    main()
