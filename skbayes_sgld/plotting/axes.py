"""What the displays share: colours, axes, and credible intervals of shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Array = NDArray[Any]

# of Okabe and Ito, told apart by colour-blind readers
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, ORANGE, GREY = COLORS[0], COLORS[1], "0.45"


def make_axes(ax: Any, n_panels: int = 1, size: tuple[float, float] = (6.4, 4.8)) -> Array:
    """Axes to draw on, ``n_panels`` of them: those given, or a column of them in a new figure.

    Parameters
    ----------
    ax : Axes, array-like of Axes or None
    n_panels : int
    size : tuple of float
        Width and height of a new figure, in inches.
    """
    if ax is not None:
        given = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(given) != n_panels:
            raise ValueError(f"ax has {len(given)} axes; it must have {n_panels}.")
        return given
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            'The displays need Matplotlib, which is not installed: pip install "skbayes_sgld[plot]"'
        ) from None
    figure = pyplot.figure(figsize=size, layout="constrained")
    return np.atleast_1d(figure.subplots(n_panels, 1)).ravel()


def tidy(ax: Any, grid: str = "both") -> None:
    """Take the lines off that say nothing."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


def light_greys() -> Any:
    """White to a grey on which black lines stay legible."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["Greys"](np.linspace(0.0, 0.55, 256)))


def percent(share: float) -> str:
    """A share as a whole percentage, or with the digits that it has."""
    return f"{100 * share:.4g} %"


def share_interval(share: Any, n: Any, coverage: float) -> tuple[Array, Array]:
    """Equal-tailed credible interval of a probability, of which ``share`` of ``n`` were seen.

    Under Jeffreys' prior, Beta(1/2, 1/2); up to 0 where none and 1 where all were seen.
    """
    some, none = np.multiply(share, n), np.multiply(1.0 - np.asarray(share), n)
    tail = 0.5 * (1.0 - coverage)
    low = betaincinv(some + 0.5, none + 0.5, tail)
    high = betaincinv(some + 0.5, none + 0.5, 1.0 - tail)
    return np.where(some > 0, low, 0.0), np.where(none > 0, high, 1.0)
