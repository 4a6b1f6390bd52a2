"""A decayed run continued at a fixed step: what histogram, autocorrelation and boxes hide
=======================================================================================

Redraws Figure 4 of Chen's report, and the trace plots of its code: 2,000 draws at epsilon = 0.01
that go on where a run with decaying steps ended, on 1,000 points of the mixture with tied means.
The report finds them good: bell-shaped, and uncorrelated after five lags. To see: they are so, and
far from the posterior, which has two narrow modes. Its exact quantiles, and those of the default
settings, are drawn mode by mode: a box over both would span where no draws are. The step is past
the limit of stability, 4 over the largest curvature; a chain that overshoots every time forgets
fast. Below, and on the right of the traces, are the draws of the default settings.

Usage: ``python examples/plot_fixed_step.py [--output DIR] [--quick]``; about 10 s.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_fixed_step.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, PRINTED, RIGHT, new_figure, parse, save, say, tidy, unconverged
from _numbers import measured, share_of_draws
from _plain_sgld import plain_sgld
from arviz_stats.base import array_stats

import skbayes_sgld
from skbayes_sgld.datasets import make_tied_means_mixture
from skbayes_sgld.own_models import TiedGaussianMixture
from skbayes_sgld.sampling import Constant, Polynomial

EPSILON = 0.01  # fixed, in Welling & Teh's unit
N_DRAWS, N_LAGS = 2000, 50
NAMES = (r"$\theta_1$", r"$\theta_2$")


def continued(posterior: TiedGaussianMixture, n_steps: int) -> np.ndarray:
    """Draws of a fixed step, from where decaying steps led."""
    decaying = plain_sgld(posterior, 0.03, Polynomial(offset=6, power=0.55), batch_size=30)
    fixed = plain_sgld(posterior, EPSILON, Constant(), batch_size=30)
    first = decaying.run([0.5, 0.0], 1, n_burnin=n_steps)
    return fixed.run(first.state, N_DRAWS).draws


class Marginal:
    """A parameter's exact marginal density, on the grid's axis."""

    def __init__(self, axis: np.ndarray, density: np.ndarray) -> None:
        self.axis, self.density = axis, density / np.trapezoid(density, axis)
        self.levels = np.cumsum(self.density) / self.density.sum()
        mean = np.trapezoid(axis * self.density, axis)
        self.sd = float(np.sqrt(np.trapezoid((axis - mean) ** 2 * self.density, axis)))

    def quantiles(self, levels: Sequence[float]) -> np.ndarray:
        """Exact quantiles."""
        return np.interp(levels, self.levels, self.axis)


def largest_curvature(posterior: TiedGaussianMixture, mode: np.ndarray) -> float:
    """Largest eigenvalue of the negative Hessian, by finite differences."""
    moves = 1e-4 * np.eye(2)
    hessian = (posterior.grad(mode + moves) - posterior.grad(mode - moves)) / 2e-4
    return float(np.linalg.eigvalsh(-hessian)[-1])


def marginals(grid: Any, mode: slice | np.ndarray = slice(None)) -> list[Marginal]:
    """Exact marginals of both parameters, of the whole density or where theta2 is in a mode."""
    density = grid.density[:, mode]
    return [
        Marginal(grid.theta1, density.sum(axis=1)),
        Marginal(grid.theta2[mode], density.sum(axis=0)),
    ]


def draw_box(axes: Any, quantiles: np.ndarray, at: float, color: str) -> None:
    """Draw the box of five quantiles, 5, 25, 50, 75 and 95 %."""
    names = ("whislo", "q1", "med", "q3", "whishi")
    axes.bxp(
        [dict(zip(names, quantiles, strict=True)) | {"fliers": []}],
        positions=[at],
        widths=0.5,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": color, "alpha": 0.6},
        medianprops={"color": "black"},
    )


def draw_boxes(axes: Any, flat: np.ndarray, grid: Any, color: str, by_mode: bool) -> None:
    """Draw quantiles of the draws, all or mode by mode, beside the exact ones of each mode."""
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    for of_draws, of_grid in ((flat[:, 1] < 0, grid.theta2 < 0), (flat[:, 1] > 0, grid.theta2 > 0)):
        for j, marginal in enumerate(marginals(grid, of_grid)):
            draw_box(axes, marginal.quantiles(levels), 2.0 * j + 0.6, EXACT)
            if by_mode:
                draw_box(axes, np.quantile(flat[of_draws, j], levels), 2.0 * j, color)
    if not by_mode:
        for j in range(len(NAMES)):
            draw_box(axes, np.quantile(flat[:, j], levels), 2.0 * j, color)
    axes.set_xticks((0.3, 2.3), NAMES)
    axes.set(ylabel="5, 25, 50, 75, 95 % quantiles", ylim=(-4.9, 4.0), xlim=(-0.6, 3.2))
    kind = "of each mode" if by_mode else "of all draws"
    axes.set_title(f"boxes {kind}", fontsize=10)


def draw_row(
    row: Any, draws: np.ndarray, exact: list[Marginal], grid: Any, color: str, by_mode: bool
) -> None:
    """Draw two histograms, the autocorrelations and the boxes, of draws ``(C, T, 2)``."""
    flat = draws.reshape(-1, 2)
    for axes, x, marginal, name in zip(row, flat.T, exact, NAMES, strict=False):
        axes.hist(x, np.linspace(-5, 6, 133), density=True, color=color, alpha=0.55)
        axes.plot(marginal.axis, marginal.density, color=EXACT, linewidth=1.2)
        axes.set(xlim=(-5, 6), xlabel=name, ylabel="density", ylim=(0.0, 2.1))
        axes.set_title(f"sd {x.std():.2f}, exact {marginal.sd:.2f}", fontsize=10)
    lags = np.arange(N_LAGS + 1)
    for j, style in enumerate(("-", ":")):
        each = array_stats.autocorr(draws[..., j])  # of each chain
        row[2].plot(lags, each.mean(0)[: N_LAGS + 1], style, color=color, label=NAMES[j])
    row[2].set(ylim=(-0.6, 1.05), xlabel="lag (draws)", ylabel="autocorrelation")
    row[2].legend(fontsize=9, frameon=False)
    row[2].set_title("within a chain", fontsize=10)
    draw_boxes(row[3], flat, grid, color, by_mode)
    for axes in row:
        tidy(axes)


def draw_traces(figure: Any, paths: dict[str, np.ndarray], exact: list[Marginal]) -> None:
    """Draw the report's trace plots, and those of the default settings' first chain."""
    panels = figure.subplots(2, 2, sharex="col", sharey="row")
    for column, (label, path), color in zip(panels.T, paths.items(), (PRINTED, RIGHT), strict=True):
        for axes, values, marginal, name in zip(column, path.T, exact, NAMES, strict=True):
            axes.plot(values, color=color, linewidth=0.5, label="draws of one chain")
            for edge in np.interp([0.005, 0.995], marginal.levels, marginal.axis):
                axes.axhline(edge, color=EXACT, linewidth=1.0)
            axes.plot([], [], color=EXACT, label="99 % of the exact marginal lie between")
            axes.set_ylabel(name)
            tidy(axes)
        column[0].set_title(label, fontsize=10)
        column[1].set_xlabel("draw")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    figure.suptitle("Traces: the fixed step overshoots, the default settings change modes")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Run both, draw the figure and say what to see."""
    options = parse(__doc__, arguments)
    n_steps = 1_000 if options.quick else 29_000
    posterior = TiedGaussianMixture(make_tied_means_mixture(1000, random_state=1)[0])
    grid = posterior.grid_density((-2.0, 3.5), (-4.0, 4.0))
    exact = marginals(grid)
    printed = continued(posterior, n_steps)
    n_draws = 60 if options.quick else N_DRAWS // 4
    with unconverged(options.quick):
        draws = skbayes_sgld.sample(posterior, n_draws=n_draws, random_state=0)

    figure = new_figure(11.5, 6.0)
    rows = figure.subplots(2, 4)
    draw_row(rows[0], printed, exact, grid, PRINTED, by_mode=False)
    draw_row(rows[1], draws.values, exact, grid, RIGHT, by_mode=True)
    shown = {
        f"as printed, $\\epsilon$ = {EPSILON}: one chain": PRINTED,
        "default settings: four chains": RIGHT,
        "exact": EXACT,
    }
    for label, color in shown.items():
        rows[0, 0].plot([], [], color=color, linewidth=5, alpha=0.6, label=label)
    figure.legend(*rows[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle("Mixture with tied means: a fixed step, and the default settings")
    save(figure, options.output, "fixed_step.png", rows[0, 0])
    figure = new_figure(9.0, 5.0)
    traces = {f"$\\epsilon$ = {EPSILON} fixed, as printed": printed[0, 100:]}
    draw_traces(figure, traces | {"default settings": draws.values[0]}, exact)
    save(figure, options.output, "fixed_step_traces.png")
    peak = np.unravel_index(grid.density.argmax(), grid.density.shape)
    curvature = largest_curvature(posterior, np.array([grid.theta1[peak[0]], grid.theta2[peak[1]]]))
    correlation = array_stats.autocorr(printed[0, :, 0])[1]
    upper = [grid.mass[0], (printed[..., 1] > 0).mean(), (draws["theta2"] > 0).mean()]
    say(
        f"The largest curvature at the mode is {curvature:.0f}, so no epsilon above "
        f"{4.0 / curvature:.4f} is stable there: at {EPSILON} neighbouring draws of theta1 have "
        f"the correlation {correlation:+.2f}. Where theta2 > 0 there is {upper[0]:.2f} of the "
        f"exact mass, {upper[1]:.2f} of the printed run's draws and {upper[2]:.2f} of the default "
        "settings'."
    )
    found = {
        "limit": measured(4.0 / curvature, show=".4f"),
        "exact": measured(upper[0]),
        "default": share_of_draws(draws["theta2"] > 0),
    }
    if not options.quick:
        found["correlation"] = measured(correlation, 2.0 / np.sqrt(N_DRAWS))
    return found


if __name__ == "__main__":
    main()
