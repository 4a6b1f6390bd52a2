"""Displays of how the chains ran: traces, ranks, autocorrelations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import binom, rankdata

from skbayes_sgld._checks import check_number
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.plotting.axes import COLORS, GREY, Array, finish
from skbayes_sgld.plotting.draws import DrawsDisplay

_BINS = 20  # of ranks


class _ChainsDisplay(DrawsDisplay):
    """Base of the displays with one panel a parameter and one line a chain."""

    _most = 6

    def _draw_chains(self, ax: Any, values: Array, draw: Callable[..., Any]) -> Array:
        """Panels with the lines that ``draw`` makes of a panel, a chain's values and a color."""
        panels = self._by_parameter(ax)
        self.lines_ = np.array(
            [
                [draw(panel, chain, COLORS[c % len(COLORS)]) for c, chain in enumerate(chains)]
                for panel, chains in zip(panels, np.moveaxis(values, 2, 0), strict=True)
            ],
            dtype=object,
        )
        _legend_of_chains(panels[0], self.lines_[0])
        return panels


@numpy_defaults
class TraceDisplay(_ChainsDisplay):
    """Traces: every chain's draws in their order.

    Chains that agree look alike. A trend, or a chain apart from the others, means that the chains
    have not converged.

    Parameters
    ----------
    values : ndarray of shape (n_chains, n_draws, n_shown)
    names : list of str
    weights : ndarray of shape (n_draws,) or None, default=None
    n_params : int or None, default=None

    Attributes
    ----------
    ax_ : ndarray of Axes, of shape (n_shown,)
    figure_ : matplotlib Figure
    lines_ : ndarray of Line2D, of shape (n_shown, n_chains)
    """

    def plot(self, ax: Any = None) -> TraceDisplay:
        """Draw it.

        Parameters
        ----------
        ax : array-like of Axes, default=None
            One a parameter.

        Returns
        -------
        display : TraceDisplay
        """

        def draw(panel: Any, chain: Array, color: str) -> Any:
            (line,) = panel.plot(chain, color=color, linewidth=0.5, alpha=0.7)
            return line

        panels = self._draw_chains(ax, self.values, draw)
        for name, panel in zip(self.names, panels, strict=True):
            panel.set(ylabel=name, xlim=(0, max(self.values.shape[1] - 1, 1)))
            finish(panel)
        panels[-1].set_xlabel("draw")
        return self


def _legend_of_chains(panel: Any, lines: Sequence[Any]) -> None:
    """Legend beside the panel, if every chain has a colour of its own."""
    if 1 < len(lines) <= len(COLORS):
        legend = panel.legend(
            lines,
            [str(c) for c in range(len(lines))],
            title="chain",
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            frameon=False,
        )
        for handle in legend.get_lines():
            handle.set(linewidth=2.0, alpha=1.0)


@numpy_defaults
class RankDisplay(_ChainsDisplay):
    """Ranks: how each chain's draws are spread over the ranks of all draws.

    If chains agree, every line stays near 1. The band holds 95 % of the bins of independent draws;
    autocorrelated draws scatter more.

    Parameters
    ----------
    values : ndarray of shape (n_chains, n_draws, n_shown)
    names : list of str
    weights : ndarray of shape (n_draws,) or None, default=None
        Not used: the ranks are of the draws as they came.
    n_params : int or None, default=None

    Attributes
    ----------
    ax_ : ndarray of Axes, of shape (n_shown,)
    figure_ : matplotlib Figure
    lines_ : ndarray of StepPatch, of shape (n_shown, n_chains)

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter & Buerkner (2021), Rank-normalization, folding, and
    localization, Section 4.4.
    """

    def plot(self, ax: Any = None) -> RankDisplay:
        """Draw it.

        Parameters
        ----------
        ax : array-like of Axes, default=None
            One a parameter.

        Returns
        -------
        display : RankDisplay
        """
        n_chains, n_draws, _ = self.values.shape
        total = n_chains * n_draws
        edges = np.linspace(0.5, total + 0.5, _BINS + 1)
        expected = n_draws / _BINS
        band = binom.ppf([0.025, 0.975], n_draws, 1.0 / _BINS) / expected
        flat = self.values.reshape(total, -1)
        ranks = rankdata(flat, method="average", axis=0).reshape(self.values.shape)

        def draw(panel: Any, chain: Array, color: str) -> Any:
            height = np.histogram(chain, edges)[0] / expected
            return panel.stairs(height, edges, baseline=None, color=color, linewidth=1.3)

        panels = self._draw_chains(ax, ranks, draw)
        for name, panel in zip(self.names, panels, strict=True):
            panel.axhspan(*band, color="0.9", zorder=0)
            panel.axhline(1.0, color=GREY, linewidth=0.8)
            panel.set(ylabel=f"{name}\nshare / expected", xlim=edges[[0, -1]])
            finish(panel, grid="x")
        panels[-1].set_xlabel("rank among the draws of all chains")
        return self


@numpy_defaults
class AutocorrelationDisplay(DrawsDisplay):
    """Autocorrelations of the draws, averaged over the chains.

    The band holds 95 % of the autocorrelations of independent draws.

    Parameters
    ----------
    values : ndarray of shape (n_chains, n_draws, n_shown)
    names : list of str
    weights : ndarray of shape (n_draws,) or None, default=None
        Not used.
    n_params : int or None, default=None

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : ndarray of Line2D, of shape (n_shown,)
    """

    _most = 7

    def plot(self, ax: Any = None, max_lag: int = 30) -> AutocorrelationDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        max_lag : int, default=30
            Longest lag, in draws.

        Returns
        -------
        display : AutocorrelationDisplay
        """
        from arviz_stats.base import array_stats

        check_number(max_lag, "max_lag", low=1, closed="left", integer=True)
        panel = self._panel(ax, (6.4, 3.6))
        self._tell_omitted(panel)
        n_chains, n_draws, _ = self.values.shape
        covariance = array_stats.autocov(self.values, axis=1).mean(axis=0)
        correlation = (covariance / covariance[0])[: max_lag + 1].T
        chance = 1.96 / np.sqrt(n_chains * n_draws)
        panel.axhspan(-chance, chance, color="0.9", zorder=0)
        lines = []
        for k, values in enumerate(correlation):
            color, marker = COLORS[k % len(COLORS)], "os^Dv<>"[k % 7]
            lines += panel.plot(
                values, color=color, marker=marker, markersize=3, linewidth=1.0, label=self.names[k]
            )
        panel.set(
            xlabel="lag, in draws", ylabel="autocorrelation", xlim=(0, correlation.shape[1] - 1)
        )
        panel.legend(loc="upper right", frameon=False, fontsize="small")
        finish(panel, grid="y")
        self.lines_ = np.array(lines, dtype=object)
        return self
