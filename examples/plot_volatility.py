"""Stochastic volatility: the band of the posterior, and those of Bayes by Backprop
================================================================================

B. Keng, "Bayesian Learning via Stochastic Gradient Langevin Dynamics and Bayes by Backprop",
Figures 7 to 10: returns with a Student t distribution whose log scale is a random walk; the
posterior of the walk's sd sigma and of the degrees of freedom nu, and the band of the volatility.
The returns are drawn from the model, so that the truth is known; with the extra ``finance`` the
S&P 500 from May 2008 to December 2018 is drawn as well, the post's span but for its last year.

The post gives each day's log volatility h an independent normal distribution, its sd tied to sigma;
here :class:`~skbayes_sgld.variational.BayesByBackprop` learns every sd, in the coordinates
(log sigma, log nu, h). But h is a walk, whose neighbours move together.

To see: the posterior's band holds 90 % of the days. That of Bayes by Backprop in h holds fewer,
and sigma depends on when one stops; in the package's coordinates, which are nearly independent,
the same approximation is a good one. What the post samples, SGLD over the means of its normal
distributions with their sd tied to sigma (its equations 36 to 39), has no place where sigma stays
near the truth: what it shows depends on when it was stopped, too. On the S&P 500 sigma passes the
post's 0.025 within 3,000 steps of its start at the prior's mean, and goes on.

Usage: ``python examples/plot_volatility.py [--output DIR] [--quick]``; about a minute.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_volatility_bands.png"

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import (
    EXACT,
    GREEN,
    GREY,
    PRINTED,
    RIGHT,
    new_figure,
    parse,
    save,
    say,
    tidy,
    unconverged,
)
from _numbers import measured
from _plain_sgld import plain_sgld
from scipy.stats import gaussian_kde
from sklearn.utils import Bunch

from skbayes_sgld import sample
from skbayes_sgld.datasets import load_sp500_returns, make_stochastic_volatility
from skbayes_sgld.own_models import CustomPosterior, StochasticVolatility
from skbayes_sgld.sampling import HMC, PSGLD, SGLD, Constant
from skbayes_sgld.variational import BayesByBackprop, VariationalPosterior

COVERAGE = 0.9
TAILS = (0.5 - COVERAGE / 2, 0.5 + COVERAGE / 2)
EARLY, LATE = "Bayes by Backprop in h, stopped early", "Bayes by Backprop in h, to the end"
OURS = "Bayes by Backprop in the package's coordinates"
POSTS_SIGMA = 0.025  # the mode in its Figure 9
CRISIS = np.datetime64("2008-05-01"), np.datetime64("2009-10-01")
SHOWN_TICKS = (0.1, 0.3, 1), (1, 3, 10, 30)  # of sigma and nu
METRIC_SIGMA = 0.1  # where the metric is taken: at sigma's prior mean it is another


def run(posterior: StochasticVolatility, n_draws: int, hmc: bool = False) -> np.ndarray:
    """Draws of sigma, nu and the volatilities ``(S, T + 2)``."""
    theta = posterior.start()
    theta[0] = np.log(METRIC_SIGMA)
    settings = {"sampler": SGLD("leimkuhler_matthews"), "n_burnin": 500, "thin": 10}
    if hmc:
        settings = {"sampler": HMC(), "n_burnin": 200, "thin": 4}
    draws = sample(
        posterior,
        preconditioner=1.0 / posterior.curvature_diagonal(theta),
        step_size=0.3,
        n_draws=n_draws,
        random_state=int(hmc),
        **settings,
    )
    return draws.draws.flat


def walk_of(posterior: StochasticVolatility, sigma: float | None = None) -> CustomPosterior:
    """Posterior in (log sigma, log nu, h), as in the post."""
    start = posterior.constrain(posterior.start()[None])[0]
    return CustomPosterior(
        posterior.model,
        transforms={"sigma": "positive", "nu": "positive"},
        start=[start[0] if sigma is None else sigma, start[1], *np.log(start[2:])],
    )


def approximate_in_h(posterior: StochasticVolatility, max_iter: int) -> np.ndarray:
    """Draws from Bayes by Backprop with every log volatility an independent normal."""
    walk = walk_of(posterior)
    fitted = BayesByBackprop(step_size=0.2, max_iter=max_iter, random_state=0)
    fitted.fit(walk, start=walk.start(), scale=0.05)
    draws = walk.constrain(fitted.sample(4000, random_state=0))
    draws[:, 2:] = np.exp(draws[:, 2:])
    return draws


def approximate(posterior: StochasticVolatility, max_iter: int) -> np.ndarray:
    """Draws from Bayes by Backprop in the coordinates that the package samples in."""
    fitted = BayesByBackprop(step_size=0.1, max_iter=max_iter, random_state=0)
    fitted.fit(posterior, start=posterior.start())
    return posterior.constrain(fitted.sample(4000, random_state=0))


def band(draws: np.ndarray) -> np.ndarray:
    """Ends of the central intervals of the volatilities ``(2, T)``."""
    return np.quantile(draws[:, 2:], TAILS, axis=0)


def share_inside(draws: np.ndarray, volatility: np.ndarray) -> float:
    """Share of days whose true volatility the band holds."""
    low, high = band(draws)
    return float(np.mean((low < volatility) & (volatility < high)))


def inside(draws: np.ndarray, volatility: np.ndarray) -> str:
    """Share of the days inside, in words."""
    return f"{100 * share_inside(draws, volatility):.0f} % of days inside"


def judge(name: str, draws: np.ndarray, volatility: np.ndarray) -> None:
    """Print the coverage of the true volatilities, the band's width and what sigma is."""
    low, high = band(draws)
    ends = np.quantile(draws[:, 0], TAILS)
    print(
        f"  {name:<48}{inside(draws, volatility)}; median high / low "
        f"{np.median(high / low):.2f}; sigma {ends[0]:.3f} to {ends[1]:.3f}",
        flush=True,
    )


def draw_parameters(panels: Any, found: dict[str, np.ndarray], truth: Any) -> None:
    """Draw the densities of sigma and nu, a panel each."""
    styles = {"SGLD": (RIGHT, "-"), "HMC, another seed": ("black", ":")}
    styles |= {EARLY: (PRINTED, "--"), LATE: (PRINTED, "-"), OURS: (GREEN, "-")}
    reach = {"sigma": (0.05, 0.1, 0.2, 0.4), "nu": (3, 5, 10, 20, 50, 100, 200)}
    for j, (axes, (name, ticks)) in enumerate(zip(panels, reach.items(), strict=True)):
        grid = np.geomspace(ticks[0], ticks[-1], 600)
        for label, draws in found.items():
            level = gaussian_kde(np.log(draws[:, j])).logpdf(np.log(grid))  # of the logarithm
            color, style = styles[label]
            axes.semilogx(grid, np.exp(level - level.max()), style, color=color, label=label)
        axes.axvline(truth[name], color=EXACT, linewidth=1, label="true value")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set(xlabel=f"{name} (log scale)", yticks=[], ylabel="density, over the largest")
        tidy(axes)


def draw_bands(panels: Any, returns: np.ndarray, bands: dict[str, Any], truth: Any = None) -> None:
    """Draw a panel a method: returns, band, and the true volatility where it is known."""
    days = np.arange(len(returns))
    size = 100.0 * np.abs(returns)
    top = 1.3 * size.max()
    for axes, (name, draws) in zip(panels, bands.items(), strict=True):
        low, high = 100.0 * band(draws)
        color = PRINTED if name in (EARLY, LATE) else RIGHT
        axes.plot(days, size, ".", color=GREY, markersize=3, alpha=0.5, label="|return|")
        axes.fill_between(
            days, low, high, color=color, alpha=0.6, linewidth=0, label="90 % band of the scale"
        )
        if truth is not None:
            axes.plot(days, 100.0 * truth, color=EXACT, linewidth=1, label="true scale")
            name = f"{name}:\n{inside(draws, truth)}"
        axes.set_title(name, fontsize=10)
        axes.set(xlabel="trading day", ylabel="% a day", yscale="log", ylim=(0.1, top))
        axes.set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
        axes.minorticks_off()
        tidy(axes)


def draw_density(axes: Any, draws: np.ndarray, **look: Any) -> None:
    """Draw the density of positive draws."""
    grid = np.linspace(*np.quantile(draws, [0.001, 0.995]), 300)
    density = np.exp(gaussian_kde(np.log(draws)).logpdf(np.log(grid))) / grid
    axes.plot(grid, density, **look)


def draw_index(
    figure: Any, data: Any, found: dict[str, np.ndarray], over_means: np.ndarray, n_steps: int
) -> None:
    """Draw the S&P 500: bands of the scale in all years and in 2008, the parameters beside."""
    panels = figure.subplot_mosaic("WWS;ZZN;ZZP", width_ratios=(1.0, 1.0, 0.8))
    dates, size = np.asarray(data.dates, dtype="datetime64[D]"), 100.0 * np.abs(data.returns)
    styles = {"SGLD": (RIGHT, "-"), "HMC": ("black", "--"), EARLY: (PRINTED, "-")}
    crisis = (CRISIS[0] <= dates) & (dates < CRISIS[1])
    for key, days in (("W", dates < np.datetime64("2100")), ("Z", crisis)):
        axes = panels[key]
        axes.plot(dates[days], size[days], ".", color=GREY, markersize=2, label="|return|")
        for name, (color, style) in styles.items():
            low, high = 100.0 * band(found[name])[:, days]
            if name == "SGLD":
                look = {"color": color, "alpha": 0.5, "linewidth": 0}
                axes.fill_between(dates[days], low, high, label=f"90 % band, {name}", **look)
            elif key == "Z":
                for end, label in ((low, f"90 % band, {name}"), (high, None)):
                    axes.plot(dates[days], end, style, color=color, linewidth=1.0, label=label)
        axes.set(ylabel="% a day", yscale="log", ylim=(0.1, 1.3 * size.max()))
        axes.set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
        axes.minorticks_off()
    panels["W"].set_title("Scale of the returns: the volatility", fontsize=10)
    panels["Z"].set_title("The same in the crisis of 2008", fontsize=10)
    for label in panels["Z"].get_xticklabels():
        label.set(rotation=20, ha="right")
    axes = panels["P"]
    steps = n_steps / over_means.shape[1] * np.arange(1, over_means.shape[1] + 1)
    for chain in over_means:
        axes.plot(steps, chain[:, 0], color=PRINTED, linewidth=0.8)
    axes.axhspan(*np.quantile(found["HMC"][:, 0], TAILS), color=RIGHT, alpha=0.4)
    axes.axhline(POSTS_SIGMA, color=GREY, linewidth=1.5)
    axes.text(n_steps, POSTS_SIGMA, "the post's mode", va="top", ha="right", fontsize=8)
    axes.set(xlabel="step", ylabel="sigma", ylim=(0.0, None), xlim=(0, n_steps))
    axes.set_title("SGLD over the means, as the post's", fontsize=10)
    for key, j, name, printed in (("S", 0, "sigma", (0.09, 0.10)), ("N", 1, "nu", (9.0, 10.0))):
        axes = panels[key]
        for method in ("SGLD", "HMC"):
            color, style = styles[method]
            draw_density(axes, found[method][:, j], color=color, linestyle=style, label=method)
        axes.axvspan(*printed, color=GREY, alpha=0.35, label="the post's mode, by HMC", zorder=0)
        axes.set(xlabel=name, yticks=[], ylabel="density")
        axes.set_title(f"Posterior of {name}", fontsize=10)
    panels["N"].legend(fontsize=8, frameon=False)
    for axes in panels.values():
        tidy(axes)
    handles, labels = panels["Z"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle(f"S&P 500, {data.dates[0]} to {data.dates[-1]}, {len(data.dates):,} days")


# ---- Figures 9 and 10: SGLD over the variational parameters -------------------------------------


def run_over_means(
    posterior: StochasticVolatility, n_steps: int, n_kept: int, sigma: float | None = None
) -> np.ndarray:
    """Draws ``(4, n_kept, T + 2)`` of sigma, nu and the scales at the means, as the post's.

    RMSprop is the preconditioner, the learning rate that of the post's burn-in, 0.001. Chains begin
    at ``sigma``, or at the prior's mean of sigma, as the post's.
    """
    walk = walk_of(posterior, sigma)
    bound = VariationalPosterior(
        walk, "isotropic", over=["log_volatility"], tied="log_sigma", n_pairs=64
    )
    kernel = plain_sgld(bound, 0.001, Constant(), batch_size=2, algorithm=PSGLD())
    start = np.tile(bound.start(), (4, 1))
    return np.exp(kernel.run(start, n_kept, thin=n_steps // n_kept).draws)


def draw_over_means(
    figure: Any, draws: np.ndarray, n_steps: int, exact: np.ndarray, truth: Any
) -> None:
    """Draw sigma and nu by step, and the bands of the means early and late."""
    panels = figure.subplot_mosaic("SN;BB")
    steps = n_steps / draws.shape[1] * np.arange(1, draws.shape[1] + 1)
    for key, j, name in (("S", 0, "sigma"), ("N", 1, "nu")):
        axes = panels[key]
        for c, chain in enumerate(draws):
            label = "SGLD over the means, 4 chains" if c == 0 else None
            axes.plot(steps, chain[:, j], color=PRINTED, linewidth=0.6, label=label)
        axes.axhspan(
            *np.quantile(exact[:, j], TAILS),
            color=RIGHT,
            alpha=0.4,
            label="90 % of the posterior, HMC",
        )
        axes.axhline(truth[name], color=EXACT, linewidth=1, label="true value")
        axes.set(xlabel="step", yscale="log", xlim=(0, n_steps))
        axes.set_title(f"{name} by step", fontsize=10)
    for axes, ticks in zip((panels["S"], panels["N"]), SHOWN_TICKS, strict=True):
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    axes, days = panels["B"], np.arange(exact.shape[1] - 2)
    size = draws.shape[1]
    parts = {
        f"means of q, steps {n_steps // 10:,} to {n_steps // 5:,}": slice(size // 10, size // 5),
        f"means of q, the last {n_steps // 5:,} steps": slice(-(size // 5), None),
    }
    bands = {"posterior, HMC": (exact, RIGHT)} | {
        name: (draws[:, part].reshape(-1, draws.shape[2]), color)
        for (name, part), color in zip(parts.items(), (PRINTED, GREY), strict=True)
    }
    for name, (values, color) in reversed(bands.items()):
        low, high = 100.0 * band(values)
        label = f"{name}: {inside(values, truth['volatility'])}"
        axes.fill_between(days, low, high, color=color, alpha=0.5, linewidth=0, label=label)
    axes.plot(days, 100.0 * truth["volatility"], color=EXACT, linewidth=1, label="true scale")
    axes.set(xlabel="trading day", ylabel="% a day", yscale="log", ylim=(2e-4, 300.0))
    axes.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    axes.minorticks_off()
    axes.set_xlim(days[0], days[-1])
    axes.set_title("90 % bands of the scale", fontsize=10)
    axes.legend(fontsize=8, ncols=2, loc="lower center")
    for axes in panels.values():
        tidy(axes)
    figure.legend(*panels["S"].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle("SGLD over variational parameters, the sd of q tied to sigma, as the post's")


def describe(draws: np.ndarray, volatility: np.ndarray | None = None) -> dict[str, Any]:
    """Medians of sigma and nu and the days inside, with their errors over the four chains."""
    chains = np.array_split(draws, 4)

    def with_error(measure: Any, show: str) -> dict[str, Any]:
        each = [measure(chain) for chain in chains]
        return measured(measure(draws), np.std(each, ddof=1) / 2.0, show)

    found = {
        "sigma": with_error(lambda x: np.median(x[:, 0]), ".3f"),
        "nu": with_error(lambda x: np.median(x[:, 1]), ".1f"),
    }
    if volatility is not None:
        found["days inside"] = with_error(lambda x: share_inside(x, volatility), ".0f %")
    return found


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Draw all figures; return the numbers that they show."""
    options = parse(__doc__, arguments)
    with unconverged(options.quick):
        return draw_all(options)


def draw_all(options: Namespace) -> dict[str, Any]:
    """Sample the posteriors, draw the figures and print what they show."""
    T, n_draws, max_iter, n_steps = (
        (500, 50, 50, 1500) if options.quick else (500, 500, 2000, 30_000)
    )
    data = make_stochastic_volatility(T, random_state=0)
    posterior = StochasticVolatility(data.returns)
    found = {
        "SGLD": run(posterior, n_draws),
        "HMC, another seed": run(posterior, n_draws, hmc=True),
        EARLY: approximate_in_h(posterior, 2 * max_iter),
        LATE: approximate_in_h(posterior, 6 * max_iter),
        OURS: approximate(posterior, max_iter),
    }
    for name, draws in found.items():
        judge(name, draws, data.volatility)
    figure = new_figure(9, 4)
    panels = figure.subplots(1, 2)
    draw_parameters(panels, found, data)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9
    )
    figure.suptitle(f"Stochastic volatility, {T} simulated days: parameters")
    save(figure, options.output, "volatility_parameters.png")
    figure = new_figure(9, 6.4)
    shown = {name: draws for name, draws in found.items() if not name.startswith("HMC")}
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    draw_bands(panels.flat, data.returns, shown, data.volatility)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    figure.suptitle(f"Volatility of {T} simulated days, by method")
    save(figure, options.output, "volatility_bands.png", panels[0, 0])

    over_means = run_over_means(posterior, n_steps, 1500, METRIC_SIGMA)
    figure = new_figure(9, 6.4)
    draw_over_means(figure, over_means, n_steps, found["HMC, another seed"], data)
    save(figure, options.output, "volatility_variational.png")
    medians = np.median(over_means[:, -300:, :2], axis=(0, 1))
    say(
        f"SGLD over the means: in the last {n_steps // 5:,} of {n_steps:,} steps sigma has the "
        f"median {medians[0]:.2f}, nu {medians[1]:.1f}."
    )
    values = {
        name: describe(draws, data.volatility)
        for name, draws in found.items()
        if not (options.quick and name in (EARLY, LATE, OURS))
    }
    if not options.quick:
        early = over_means[:, 150:300].reshape(-1, T + 2)
        late = over_means[:, -300:].reshape(-1, T + 2)
        values["over the means, early"] = describe(early, data.volatility)
        values["over the means, late"] = describe(late, data.volatility)
    return values | draw_finance(options, n_draws, max_iter)


def draw_finance(options: Namespace, n_draws: int, max_iter: int) -> dict[str, Any]:
    """Draw the S&P 500, where its prices are installed."""
    try:
        index = load_sp500_returns(start="2008-05-01")
    except ImportError as error:
        say(f"The S&P 500 is left out. {error}")
        return {}
    if options.quick:
        index = Bunch(returns=index.returns[:100], dates=index.dates[:100])
    posterior = StochasticVolatility(index.returns)
    found = {
        "SGLD": run(posterior, n_draws),
        "HMC": run(posterior, n_draws, hmc=True),
        EARLY: approximate_in_h(posterior, 2 * max_iter),
    }
    n_steps = 60 if options.quick else 3000
    over_means = run_over_means(posterior, n_steps, 60)
    figure = new_figure(11, 7.6)
    draw_index(figure, index, found, over_means, n_steps)
    save(figure, options.output, "volatility_sp500.png")
    for name, draws in found.items():
        sigma, nu = np.median(draws[:, :2], axis=0)
        say(f"S&P 500, {name}: the median of sigma is {sigma:.3f}, of nu {nu:.1f}.")
    if options.quick:
        return {}
    values = {name: describe(draws) for name, draws in found.items()}
    at = {
        f"{step:,}": over_means[:, step * 60 // n_steps - 1, 0] for step in (500, 1000, 2000, 3000)
    }
    values["sigma over the means"] = {
        step: measured(each.mean(), each.std(ddof=1) / 2.0, ".3f") for step, each in at.items()
    }
    return {"S&P 500": values}


if __name__ == "__main__":
    main()
