"""A decayed run continued at a fixed step: what histogram, autocorrelation and boxes hide
=======================================================================================

Redraws Figure 4 of Chen's report, and the trace plots of its code: 2,000 draws at epsilon = 0.01
that go on where a run with decaying steps ended, on 1,000 points of the mixture with tied means.
The report finds them good: bell-shaped, and uncorrelated after five lags. To see: they are so, and
far from the posterior, which has two narrow modes; a box is of one mode, since one over both would
span where no draws are. The step is past the limit of stability, 4 over the largest curvature; a
chain that overshoots every time forgets fast. Below, and on the right of the traces, are the draws
of the default settings.

Usage: ``python examples/plot_fixed_step.py [--output DIR] [--quick]``; about 10 s.
"""

# sphinx_gallery_thumbnail_path = "figures/fixed_step.png"

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
from skbayes_sgld.posterior import TiedGaussianMixture
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

    def box(self, label: str) -> dict[str, Any]:
        """Box of the exact quantiles."""
        low, q1, median, q3, high = np.interp([0.05, 0.25, 0.5, 0.75, 0.95], self.levels, self.axis)
        return {"label": label, "whislo": low, "q1": q1, "med": median, "q3": q3, "whishi": high}


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


def draw_boxes(axes: Any, flat: np.ndarray, grid: Any, color: str) -> None:
    """Draw quantiles of the draws beside the exact ones, each mode by itself.

    A box over two modes would say that most draws are between them, where there are none.
    """
    look = {"showfliers": False, "widths": 0.6, "patch_artist": True, "manage_ticks": False}
    line = {"medianprops": {"color": "black"}}
    ticks = []
    sides = {"lower": (flat[:, 1] < 0, grid.theta2 < 0), "upper": (flat[:, 1] > 0, grid.theta2 > 0)}
    for side, (chosen, of_grid) in sides.items():
        for j, marginal in enumerate(marginals(grid, of_grid)):
            at = 2.5 * len(ticks)
            if chosen.mean() > 0.005:
                found = {"positions": [at], "whis": (5, 95), "boxprops": {"facecolor": color}}
                axes.boxplot(flat[chosen, j], **found, **look, **line)
            else:
                axes.text(at, -3.6, "no draws", rotation=90, color=color, fontsize=8, ha="center")
            exact = {"facecolor": "white", "edgecolor": EXACT}
            axes.bxp([marginal.box("")], positions=[at + 0.8], boxprops=exact, **look, **line)
            ticks.append((at + 0.4, f"{NAMES[j]}\n{side}"))
    axes.set_xticks(*zip(*ticks, strict=True), fontsize=9)
    share, exact = 100 * sides["upper"][0].mean(), 100 * grid.mass[0]
    axes.set_title(f"by mode: {share:.0f} % of the draws upper, exact {exact:.0f} %", fontsize=9)
    axes.set(ylabel="5, 25, 50, 75, 95 % quantiles", ylim=(-4.9, 4.0))


def draw_row(
    row: Any, draws: np.ndarray, exact: list[Marginal], grid: Any, color: str, label: str
) -> None:
    """Draw two histograms, the autocorrelations and the boxes, of draws ``(C, T, 2)``."""
    flat = draws.reshape(-1, 2)
    for axes, x, marginal, name in zip(row, flat.T, exact, NAMES, strict=False):
        axes.hist(x, np.linspace(-5, 6, 133), density=True, color=color, alpha=0.55)
        axes.plot(marginal.axis, marginal.density, color=EXACT, linewidth=1.2)
        axes.set(xlim=(-5, 6), xlabel=name, ylabel="density")
        axes.set_title(f"{label}: sd {x.std():.2f}, exact {marginal.sd:.2f}", fontsize=9)
    lags = np.arange(N_LAGS + 1)
    for j, style in enumerate(("-", "--")):
        each = array_stats.autocorr(draws[..., j])  # of each chain
        shade = color if j == 0 else "black"
        row[2].plot(lags, each.mean(0)[: N_LAGS + 1], style, color=shade, label=NAMES[j])
    row[2].set(ylim=(-0.6, 1.05), xlabel="lag (draws)", ylabel="autocorrelation")
    row[2].legend(fontsize=8, frameon=False)
    row[2].set_title("autocorrelation within a chain", fontsize=9)
    draw_boxes(row[3], flat, grid, color)
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

    figure = new_figure(12.0, 5.6)
    rows = figure.subplots(2, 4, width_ratios=(1.0, 1.0, 1.0, 1.35))
    draw_row(rows[0], printed, exact, grid, PRINTED, f"$\\epsilon$ = {EPSILON} fixed")
    draw_row(rows[1], draws.values, exact, grid, RIGHT, "default settings")
    figure.suptitle(
        "Mixture with tied means, 1,000 points: one chain of a fixed step, as printed "
        "(top), four of the default settings (bottom). Red: exact"
    )
    save(figure, options.output, "fixed_step.png")
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
