"""Two modes, hot first: a temperature that falls to 1 while SGLD runs
===================================================================

Karagiannis, Handout 6, Section 4: "a large tau at the beginning of the run [...] allows visiting
different modes, and later on [...] tau = 1". Here on Welling & Teh's mixture with tied means, 1,000
points: 64 chains of SGLD with the gradient from all rows start in one of two modes, which a barrier
of six nats parts. To see: at temperature 1 all but a few chains stay where they started; at
temperature 10 they wander over the barrier, and by the time that it has cooled to 1 each is caught
in one of the modes. The chains are then shared out by the masses that the modes have where the
barrier freezes, about those at 1; within a mode the draws are the posterior's.

Usage: ``python examples/plot_cooling.py [--output DIR] [--quick]``; about 10 s.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_cooling.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, PRINTED, RIGHT, new_figure, parse, save, say, tidy
from _numbers import measured, share, write

from skbayes_sgld.datasets import make_tied_means_mixture
from skbayes_sgld.kernels import Kernel
from skbayes_sgld.own_models import TiedGaussianMixture
from skbayes_sgld.sampling import Constant, Cooling, Schedule

STEP = 0.001  # a quarter of the limit of stability at the modes
START = (1.15, -1.15)  # the mode where theta2 < 0
COOLING = Cooling(high=10.0, hold=500, decay=1500)
THIN = 5


def run(posterior: TiedGaussianMixture, temperature: Schedule, n_chains: int, n_steps: int) -> Any:
    """Every fifth draw ``(n_chains, n_steps / 5, 2)`` of chains that start in one mode."""
    kernel = Kernel(posterior, "sgld", step_size=STEP, temperature=temperature)
    start = np.tile(START, (n_chains, 1))
    return kernel.run(start, n_steps // THIN, thin=THIN).draws


def kept(draws: np.ndarray) -> np.ndarray:
    """Draws that were made at temperature 1, after the cooling."""
    return draws[:, int(COOLING.settles_at) // THIN :]


def share_above(draws: np.ndarray) -> tuple[float, float]:
    """Share of the draws kept where theta2 > 0, and its standard error over the chains."""
    above = (kept(draws)[..., 1] > 0).mean(axis=1)
    return float(above.mean()), float(above.std(ddof=1) / np.sqrt(len(above)))


def draw_traces(axes: Any, draws: np.ndarray, color: str, title: str) -> None:
    """Draw theta2 of eight chains by step."""
    steps = THIN * np.arange(1, draws.shape[1] + 1)
    for chain in draws[:8]:
        axes.plot(steps, chain[:, 1], color=color, linewidth=0.4, alpha=0.7)
    axes.axvspan(COOLING.settles_at, steps[-1], color="0.9", label="draws kept", zorder=0)
    axes.set(ylabel=r"$\theta_2$ of eight chains", ylim=(-2.8, 2.8), xlim=(0, steps[-1]))
    tidy(axes, title)


def draw_plane(axes: Any, grid: Any, draws: np.ndarray, color: str) -> None:
    """Draw the draws that are kept, on contours of the exact density."""
    shown = kept(draws)[:, ::5].reshape(-1, 2)
    axes.plot(*shown.T, ".", color=color, markersize=2, alpha=0.3, rasterized=True)
    levels = grid.density.max() * np.array([0.02, 0.1, 0.4, 0.8])
    contours = (grid.theta1, grid.theta2, grid.density.T)
    axes.contour(*contours, levels=levels, colors=EXACT, linewidths=0.9)
    axes.plot([], [], color=EXACT, label="contours of the exact density")
    axes.plot(*START, "k*", markersize=10, label="start of all chains")
    axes.set(xlim=(-1, 2), ylim=(-2.5, 2.5), xlabel=r"$\theta_1$", ylabel=r"$\theta_2$")
    above, error = share_above(draws)
    found, exact = f"{100 * above:.0f} ± {100 * error:.0f} %", f"{100 * grid.mass[0]:.0f} %"
    tidy(axes, rf"$\theta_2 > 0$: {found}, exact {exact}")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run both, draw the figure and say what to see."""
    options = parse(__doc__, arguments)
    n_chains, n_steps = 8 if options.quick else 64, 3000
    posterior = TiedGaussianMixture(make_tied_means_mixture(1000, random_state=1)[0])
    grid = posterior.grid_density((-2.0, 3.5), (-4.0, 4.0))
    paths = {
        "Temperature 1 throughout": run(posterior, Constant(), n_chains, n_steps),
        "Temperature 10, then cooled to 1": run(posterior, COOLING, n_chains, n_steps),
    }

    figure = new_figure(10.0, 7.2)
    panels = figure.subplot_mosaic(
        "AP;BQ;TQ", width_ratios=(1.7, 1.0), height_ratios=(1.0, 0.7, 0.45)
    )
    panels["B"].sharex(panels["A"])
    panels["T"].sharex(panels["A"])
    each = zip(("AP", "BQ"), paths.items(), (PRINTED, RIGHT), strict=True)
    for (trace, plane), (title, draws), color in each:
        draw_traces(panels[trace], draws, color, title)
        draw_plane(panels[plane], grid, draws, color)
    heat, steps = panels["T"], np.arange(n_steps)
    heat.plot(steps, np.ones(n_steps), color=PRINTED, linewidth=1.5)
    heat.plot(steps, COOLING(steps), color=RIGHT, linewidth=1.5)
    heat.axvspan(COOLING.settles_at, n_steps, color="0.9", zorder=0)
    heat.set(xlabel="step", ylabel="temperature", yscale="log", yticks=[1, 3, 10])
    heat.set_yticklabels(["1", "3", "10"])
    heat.minorticks_off()
    tidy(heat, "Temperature of the two runs")
    for name in "AB":
        panels[name].tick_params(labelbottom=False)
    handles = panels["A"].get_legend_handles_labels()
    handles = [
        part + more
        for part, more in zip(handles, panels["P"].get_legend_handles_labels(), strict=True)
    ]
    figure.legend(*handles, loc="outside lower center", ncols=3)
    figure.suptitle("Two modes, all chains started in the lower one")
    save(figure, options.output, "cooling.png", panels["B"])

    cold, cooled = (share_above(draws) for draws in paths.values())
    found = {
        "exact": measured(grid.mass[0], show=".0f %"),
        "cooled": measured(*cooled, "±.0f %"),
        "cold": share(cold[0], n_chains),
    }
    say(
        f"The exact mass where theta2 > 0 is {write(found['exact'])}. Of {n_chains} chains that "
        f"started below, {write(found['cold'])} are above at temperature 1, and "
        f"{write(found['cooled'])} after cooling."
    )
    return found


if __name__ == "__main__":
    main()
