"""Stochastic volatility: the band of the posterior, and those of Bayes by Backprop
================================================================================

B. Keng, "Bayesian Learning via Stochastic Gradient Langevin Dynamics and Bayes by Backprop",
Figures 7 to 10: returns with a Student t distribution whose log scale is a random walk; the
posterior of the walk's sd sigma and of the degrees of freedom nu, and the band of the volatility.
The returns are drawn from the model, so that the truth is known; with the extra ``finance`` the
S&P 500 in the years of the financial crisis is drawn as well.

The post gives each day's log volatility h an independent normal distribution, its sd tied to sigma;
here :class:`~skbayes_sgld.variational.BayesByBackprop` learns every sd, in the coordinates
(log sigma, log nu, h). But h is a walk, whose neighbours move together.

To see: the posterior's band holds 90 % of the days. That of Bayes by Backprop in h holds fewer,
and sigma depends on when one stops; in the package's coordinates, which are nearly independent,
the same approximation is a good one.

Usage: ``python examples/plot_volatility.py [--output DIR] [--quick]``.
"""

# sphinx_gallery_thumbnail_path = "figures/volatility_bands.png"

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
from scipy.stats import gaussian_kde
from sklearn.utils import Bunch

from skbayes_sgld import sample
from skbayes_sgld.datasets import load_sp500_returns, make_stochastic_volatility
from skbayes_sgld.posterior import CustomPosterior, StochasticVolatility
from skbayes_sgld.sampling import HMC, SGLD
from skbayes_sgld.variational import BayesByBackprop

COVERAGE = 0.9
TAILS = (0.5 - COVERAGE / 2, 0.5 + COVERAGE / 2)
EARLY, LATE = "Bayes by Backprop in h, stopped early", "Bayes by Backprop in h, to the end"
OURS = "Bayes by Backprop in the package's coordinates"
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


def approximate_in_h(posterior: StochasticVolatility, max_iter: int) -> np.ndarray:
    """Draws from Bayes by Backprop with every log volatility an independent normal."""
    start = posterior.constrain(posterior.start()[None])[0]
    walk = CustomPosterior(
        posterior.model,
        transforms={"sigma": "positive", "nu": "positive"},
        start=[*start[:2], *np.log(start[2:])],
    )
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


def inside(draws: np.ndarray, volatility: np.ndarray) -> str:
    """Share of days whose true volatility the band holds."""
    low, high = band(draws)
    return f"{100 * np.mean((low < volatility) & (volatility < high)):.0f} % of days inside"


def judge(name: str, draws: np.ndarray, volatility: np.ndarray) -> dict[str, Any]:
    """Print the coverage of the true volatilities, the band's width and what sigma is."""
    low, high = band(draws)
    ends = np.quantile(draws[:, 0], TAILS)
    print(
        f"  {name:<48}{inside(draws, volatility)}; median high / low "
        f"{np.median(high / low):.2f}; sigma {ends[0]:.3f} to {ends[1]:.3f}",
        flush=True,
    )
    # an end of a band is off by a twentieth of an sd, and a day in a hundred lies so near to it
    covered = np.mean((low < volatility) & (volatility < high))
    return {
        "covered": measured(covered, 0.01, ".0f %"),
        "sigma": measured(np.median(draws[:, 0]), 0.05 * draws[:, 0].std()),
    }


def draw_parameters(panels: Any, found: dict[str, np.ndarray], truth: Any) -> None:
    """Draw the densities of sigma and nu, a panel each."""
    styles = {"SGLD": (RIGHT, "-"), "HMC, another seed": ("black", ":")}
    styles |= {EARLY: (PRINTED, "--"), LATE: (PRINTED, "-"), OURS: (GREEN, "-")}
    reach = {"sigma": (0.04, 0.05, 0.1, 0.2, 0.4), "nu": (3, 5, 10, 20, 50)}
    for j, (axes, (name, ticks)) in enumerate(zip(panels, reach.items(), strict=True)):
        grid = np.geomspace(ticks[0], ticks[-1], 600)
        for label, draws in found.items():
            density = gaussian_kde(np.log(draws[:, j]))(np.log(grid))  # of the logarithm
            color, style = styles[label]
            axes.semilogx(grid, density / density.max(), style, color=color, label=label)
        axes.axvline(truth[name], color=EXACT, linewidth=1, label="true value")
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set(xlabel=name, yticks=[], ylabel="density of its log, over the largest")
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


def draw_crisis(figure: Any, data: Any, bands: dict[str, np.ndarray]) -> None:
    """Draw the S&P 500 of the financial crisis, returns above and both bands below."""
    top, bottom = figure.subplots(2, 1, sharex=True)
    top.plot(data.dates, 100.0 * data.returns, color=GREY, linewidth=0.7)
    top.set(ylabel="log return (% a day)", title="Daily returns")
    styles = {"SGLD": (RIGHT, 0.7), EARLY: (PRINTED, 0.7)}
    size = 100.0 * np.abs(data.returns)
    bottom.plot(data.dates, size, ".", color=GREY, markersize=3, alpha=0.5, label="|return|")
    for name, draws in bands.items():
        low, high = 100.0 * band(draws)
        color, alpha = styles[name]
        bottom.fill_between(
            data.dates, low, high, color=color, alpha=alpha, linewidth=0, label=f"90 % band, {name}"
        )
    bottom.set(ylabel="scale (% a day)", yscale="log", ylim=(0.1, 1.3 * size.max()))
    bottom.set_title("Scale of the returns: the volatility")
    bottom.set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    bottom.minorticks_off()
    for axes in (top, bottom):
        tidy(axes)
    figure.legend(*bottom.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle("S&P 500, 2008 and 2009")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    options = parse(__doc__, arguments)
    with unconverged(options.quick):
        found = draw_all(options)
    if not options.quick:
        return found
    data = make_stochastic_volatility(500, random_state=0)  # as in the full run
    with unconverged():
        draws = run(StochasticVolatility(data.returns), 150)
    return {"SGLD": judge("SGLD, all days", draws, data.volatility)}


def draw_all(options: Namespace) -> dict[str, Any]:
    """Sample the posteriors, draw the figures and print what they show."""
    T, n_draws, max_iter = (60, 100, 200) if options.quick else (500, 500, 2000)
    data = make_stochastic_volatility(T, random_state=0)
    posterior = StochasticVolatility(data.returns)
    found = {
        "SGLD": run(posterior, n_draws),
        "HMC, another seed": run(posterior, n_draws, hmc=True),
        EARLY: approximate_in_h(posterior, 2 * max_iter),
        LATE: approximate_in_h(posterior, 6 * max_iter),
        OURS: approximate(posterior, max_iter),
    }
    judged = {name: judge(name, draws, data.volatility) for name, draws in found.items()}
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
    save(figure, options.output, "volatility_bands.png")

    try:
        crisis = load_sp500_returns(start="2008", end="2009")
    except ImportError as error:
        say(f"The S&P 500 is left out. {error}")
        return judged
    if options.quick:
        crisis = Bunch(returns=crisis.returns[:T], dates=crisis.dates[:T])
    posterior = StochasticVolatility(crisis.returns)
    bands = {"SGLD": run(posterior, n_draws), EARLY: approximate_in_h(posterior, 2 * max_iter)}
    figure = new_figure(9, 5.6)
    draw_crisis(figure, crisis, bands)
    save(figure, options.output, "volatility_sp500.png")
    return judged


if __name__ == "__main__":
    main()
