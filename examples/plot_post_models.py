"""The two models of the blog post: points from two components, and the plates of a volatility
===========================================================================================

Redraws Figures 2 and 6 of B. Keng, "Bayesian Learning via Stochastic Gradient Langevin Dynamics
and Bayes by Backprop". Figure 2 is a histogram of 100 points from the mixture with tied means at
0 and 1, for which the post raises the components' variance from 2 to 2.56 so that "a slightly
wider bimodal distribution" comes out. Figure 6 is the volatility model in plate notation; beside
it stands the approximation that the post samples in its place (its equations 36 to 39).

To see: neither variance gives two modes. Two equal normal components have them only where their
means are more than two sds apart, that is at variances below 0.25; dips in a histogram of 100
points are chance, and are as frequent in points from a single normal distribution.

Usage: ``python examples/plot_post_models.py [--output DIR] [--quick]``; a second.
"""

# sphinx_gallery_thumbnail_path = "figures/thumbnail_mixture_data.png"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from _figure import EXACT, GREEN, GREY, RIGHT, new_figure, parse, save, say, tidy
from _numbers import share
from scipy.stats import norm

from skbayes_sgld.datasets import make_tied_means_mixture

PRINTED_VARIANCE, MODEL_VARIANCE = 2.56, 2.0
N_ROWS, BINS = 100, np.linspace(-5.0, 6.0, 12)
DIP = 4  # points that a bin between two fuller ones must lack, on both sides


def density(x: np.ndarray, variance: float) -> np.ndarray:
    """Density of the mixture with means 0 and 1."""
    sd = np.sqrt(variance)
    return 0.5 * (norm.pdf(x, 0.0, sd) + norm.pdf(x, 1.0, sd))


def looks_bimodal(points: np.ndarray) -> np.ndarray:
    """Whether each row's histogram has a bin well below a fuller one on either side."""
    counts = np.array([np.histogram(row, BINS)[0] for row in points])
    before = np.maximum.accumulate(counts, axis=1)
    after = np.maximum.accumulate(counts[:, ::-1], axis=1)[:, ::-1]
    return (np.minimum(before, after) - counts >= DIP).any(axis=1)


def share_bimodal(n_sets: int) -> dict[str, float]:
    """Share of data sets whose histogram looks bimodal, of the mixture and of one component."""
    rng = np.random.default_rng(1)
    means = rng.integers(0, 2, (n_sets, N_ROWS))
    noise = rng.standard_normal((n_sets, N_ROWS))
    one = norm.rvs(0.5, np.sqrt(PRINTED_VARIANCE + 0.25), (n_sets, N_ROWS), random_state=rng)
    return {
        "the mixture": looks_bimodal(means + np.sqrt(PRINTED_VARIANCE) * noise).mean(),
        "one normal distribution of its mean and variance": looks_bimodal(one).mean(),
    }


def draw_histogram(axes: Any, points: np.ndarray) -> None:
    """Draw the points and the densities with both variances."""
    x = np.linspace(-6.0, 7.0, 400)
    axes.hist(points, BINS, density=True, color=GREY, alpha=0.4, label=f"{N_ROWS} points")
    for variance, color in ((PRINTED_VARIANCE, EXACT), (MODEL_VARIANCE, RIGHT)):
        label = f"mixture of variance {variance:g}"
        axes.plot(x, density(x, variance), color=color, label=label)
        for mean in (0.0, 1.0):
            half = 0.5 * norm.pdf(x, mean, np.sqrt(variance))
            axes.plot(x, half, color=color, linewidth=0.8, linestyle=":")
    axes.plot(points, np.full(len(points), -0.006), "|", color="black", markersize=6, alpha=0.5)
    axes.set(xlabel="x", ylabel="density")
    axes.legend(frameon=False)
    tidy(axes)


def node(axes: Any, at: tuple[float, float], label: str, kind: str = "latent") -> None:
    """Draw a node: a circle, shaded where observed; a square for what is learned."""
    from matplotlib.patches import Circle, Rectangle

    style = {"facecolor": {"observed": "0.8"}.get(kind, "white"), "edgecolor": "black", "zorder": 3}
    if kind == "learned":
        style["edgecolor"] = GREEN
        axes.add_patch(Rectangle((at[0] - 0.32, at[1] - 0.32), 0.64, 0.64, linewidth=1.5, **style))
    else:
        axes.add_patch(Circle(at, 0.38, linewidth=1.2, **style))
    axes.text(*at, label, ha="center", va="center", fontsize=12, zorder=4)


def arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow from one node's edge to another's."""
    axes.annotate(
        "",
        end,
        start,
        arrowprops={"arrowstyle": "-|>", "shrinkA": 17, "shrinkB": 17, "color": "black"},
    )


def plate(axes: Any, corner: tuple[float, float], width: float, height: float, text: str) -> None:
    """Draw a plate: what is in it is repeated."""
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch(
            corner, width, height, boxstyle="round,pad=0.05", facecolor="none", edgecolor=GREY
        )
    )
    axes.text(corner[0] + width, corner[1] + 0.05, text, ha="right", va="bottom", fontsize=10)


def draw_model(axes: Any, approximation: bool) -> None:
    """Draw the model as plates, or the distribution that approximates its volatilities."""
    sigma, nu, before, s, x = (1.0, 4.2), (5.0, 2.2), (1.0, 2.2), (3.0, 2.2), (3.0, 0.5)
    node(axes, sigma, r"$\sigma$")
    node(axes, nu, r"$\nu$")
    node(axes, s, r"$s_t$")
    if approximation:
        node(axes, before, r"$\mu_t$", "learned")
    else:
        node(axes, before, r"$s_{t-1}$")
        node(axes, x, r"$\log r_t$", "observed")
        arrow(axes, s, x)
        arrow(axes, nu, x)
    arrow(axes, before, s)
    arrow(axes, sigma, s)
    if approximation:
        plate(axes, (0.3, 1.1), 3.5, 1.9, r"$t = 1, \dots, T$")
        title = "The post's approximation (equation 37)"
        formula = r"$q(s_t) = N(\mu_t, \sigma^2)$, and $\sigma$, $\nu$, $\mu_t$ move by SGLD"
    else:
        plate(axes, (2.2, -0.4), 1.6, 3.3, r"$t = 1, \dots, T$")
        title = "The model (Figure 6, equation 35)"
        formula = (
            r"$s_t \sim N(s_{t-1}, \sigma^2)$, $\;\log r_t \sim t_\nu(0, e^{s_t})$, "
            r"$\;\sigma$, $\nu$ exponential"
        )
    axes.text(3.0, -1.0, formula, ha="center", fontsize=10)
    axes.set(xlim=(0.0, 6.0), ylim=(-1.3, 5.0), title=title)
    axes.set_aspect("equal")
    axes.axis("off")


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Draw both figures and say what to see."""
    options = parse(__doc__, arguments)
    points = make_tied_means_mixture(N_ROWS, variance=PRINTED_VARIANCE, random_state=0)[0][:, 0]
    shares = share_bimodal(200 if options.quick else 5000)
    figure = new_figure(7.5, 4.6)
    draw_histogram(figure.subplots(), points)
    figure.suptitle(
        "Points from two components with means 0 and 1: one mode, at either variance\n"
        "(dotted: the components)"
    )
    save(figure, options.output, "mixture_data.png", figure.axes[0])
    both = "; ".join(f"{share:.0%} of those from {name}" for name, share in shares.items())
    say(
        f"A bin of the histogram lies {DIP} points or more below fuller ones on both sides in: "
        f"{both}."
    )

    figure = new_figure(10.0, 4.8)
    left, right = figure.subplots(1, 2)
    draw_model(left, approximation=False)
    draw_model(right, approximation=True)
    figure.suptitle(
        "Stochastic volatility as plates: circles are random, shaded ones observed,\n"
        "the square is a variational parameter"
    )
    save(figure, options.output, "volatility_plates.png")
    say(
        "In the approximation sigma is both the walk's sd and q's: the entropy of q, log sigma a "
        "day, cancels the walk's own normaliser, -log sigma a day. What is sampled as sigma is "
        "another parameter than the model's (skbayes_sgld.variational.VariationalPosterior samples "
        "it, with tied='log_sigma')."
    )
    n_sets = 200 if options.quick else 5000
    names = ("mixture", "one normal")
    return {n: share(p, n_sets) for n, p in zip(names, shares.values(), strict=True)}


if __name__ == "__main__":
    main()
