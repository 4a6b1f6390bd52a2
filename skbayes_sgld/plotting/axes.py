"""Base of the displays: axes, titles, legends, and credible intervals of shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaincinv

from skbayes_sgld._typing import Array

# of Okabe and Ito: colour-blind readers can tell them apart
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, ORANGE, GREY = COLORS[0], COLORS[1], "0.45"


class Display:
    """A figure that was drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    ax_: Any
    figure_: Any

    def _panels(self, ax: Any, size: tuple[float, float], n_panels: int = 1) -> Array:
        """Axes to draw on: those given, or a column of them in a new figure of a size in inches."""
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise ImportError(
                    "The displays need Matplotlib, which is not installed: "
                    'pip install "skbayes-sgld[plot]"'
                ) from None
            ax = pyplot.figure(figsize=size, layout="constrained").subplots(n_panels, 1)
        panels = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(panels) != n_panels:
            raise ValueError(f"ax has {len(panels)} axes; it must have {n_panels}.")
        self.ax_, self.figure_ = panels, panels[0].figure
        return panels

    def _panel(self, ax: Any, size: tuple[float, float] = (6.4, 4.8)) -> Any:
        """The one panel to draw on."""
        (self.ax_,) = self._panels(ax, size)
        return self.ax_


def finish(
    panel: Any, title: str | None = None, legend: str | None = None, grid: str = "both"
) -> None:
    """Add a title, a legend at a place and a grid; take the upper and the right edge away."""
    if title is not None:
        panel.set_title(title, fontsize="medium", loc="left")
    if legend is not None:
        panel.legend(loc=legend, frameon=False)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis=grid, color="0.9", linewidth=0.8)
    panel.set_axisbelow(True)


def percent(share: float) -> str:
    """A share in per cent, with at most four digits."""
    return f"{100 * share:.4g} %"


def share_interval(share: Any, n: Any, coverage: float) -> tuple[Array, Array]:
    """Equal-tailed credible interval of a probability, after a ``share`` of ``n`` was observed.

    Under Jeffreys' prior, Beta(1/2, 1/2). It begins at 0 if none was observed and ends at 1 if all
    were.
    """
    some, none = np.multiply(share, n), np.multiply(1.0 - np.asarray(share), n)
    tail = 0.5 * (1.0 - coverage)
    low = betaincinv(some + 0.5, none + 0.5, tail)
    high = betaincinv(some + 0.5, none + 0.5, 1.0 - tail)
    return np.where(some > 0, low, 0.0), np.where(none > 0, high, 1.0)
