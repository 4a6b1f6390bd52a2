"""Base of the displays: axes, titles, legends, and credible intervals of shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaincinv

from skbayes_sgld._checks import escaped
from skbayes_sgld._typing import Array

# palette of Okabe and Ito, which colour-blind readers can tell apart
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

    def _panels(
        self, ax: Any, size: tuple[float, float], n_panels: int = 1, across: bool = False
    ) -> Array:
        """Axes to draw on: those given, or new ones in a figure of ``size`` inches.

        New ones are one below the other, or with ``across`` side by side.
        """
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise ImportError(
                    "The displays need Matplotlib, which is not installed: "
                    'pip install "skbayes-sgld[plot]"'
                ) from None
            grid = (1, n_panels) if across else (n_panels, 1)
            ax = pyplot.figure(figsize=size, layout="constrained").subplots(*grid)
        panels = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        for panel in panels:
            if not (hasattr(panel, "figure") and hasattr(panel, "set_title")):
                raise TypeError(
                    f"ax={panel!r} is not a Matplotlib Axes; give one, as pyplot.subplots() "
                    "returns it, or None for a new figure."
                )
        if len(panels) != n_panels:
            raise ValueError(f"ax has {len(panels)} axes; it must have {n_panels}.")
        self.ax_, self.figure_ = panels, panels[0].figure
        return panels

    def _panel(self, ax: Any, size: tuple[float, float] = (6.4, 4.8)) -> Any:
        """Axes of a figure with one panel."""
        (self.ax_,) = self._panels(ax, size)
        return self.ax_


def finish(
    panel: Any, title: str | None = None, legend: str | None = None, grid: str = "both"
) -> None:
    """Add title, legend and grid; remove the upper and the right edge."""
    if title is not None:
        panel.set_title(title, fontsize="medium", loc="left")
    if legend is not None:
        panel.legend(loc=legend, frameon=False)
    show_as_written(panel)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis=grid, color="0.9", linewidth=0.8)
    panel.set_axisbelow(True)


def show_as_written(panel: Any) -> None:
    """Escape dollars in titles and legends, between which Matplotlib would read a formula."""
    texts = [*panel.texts, panel.title, panel.xaxis.label, panel.yaxis.label]
    texts += [panel._left_title, panel._right_title]
    legend = panel.get_legend()
    texts += [] if legend is None else [*legend.get_texts(), legend.get_title()]
    for text in texts:
        text.set(text=_lines(text.get_text()), parse_math=False)


def tick_names(names: Any) -> list[str]:
    """Tick names with escaped dollars."""
    return [_lines(str(name)).replace("$", r"\$") for name in names]


def _lines(text: str) -> str:
    """Text without control characters, for which fonts have no glyph."""
    return "\n".join(escaped(line) for line in text.split("\n"))


def percent(share: float) -> str:
    """Share in per cent, with at most four digits."""
    return f"{100 * share:.4g} %"


def share_interval(share: Any, n: Any, coverage: float) -> tuple[Array, Array]:
    """Equal-tailed credible interval of a probability, given an observed ``share`` of ``n``.

    The prior is Jeffreys', Beta(1/2, 1/2). The interval begins at 0 if the share is 0, and ends
    at 1 if it is 1.
    """
    some, none = np.multiply(share, n), np.multiply(1.0 - np.asarray(share), n)
    tail = 0.5 * (1.0 - coverage)
    low = betaincinv(some + 0.5, none + 0.5, tail)
    high = betaincinv(some + 0.5, none + 0.5, 1.0 - tail)
    return np.where(some > 0, low, 0.0), np.where(none > 0, high, 1.0)
