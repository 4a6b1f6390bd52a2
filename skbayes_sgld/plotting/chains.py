"""Displays of how the chains ran: traces, ranks, autocorrelations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import binom, rankdata

from skbayes_sgld._components import check_number
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.plotting.axes import COLORS, GREY, tidy
from skbayes_sgld.plotting.draws import Array, DrawsDisplay

_BINS = 20  # of ranks


@numpy_defaults
class TraceDisplay(DrawsDisplay):
    """Traces: every chain's draws in their order.

    Chains that agree look alike; of draws with a trend, or a chain apart, none is to be relied on.

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

    _most = 6

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
        panels, lines = self._panels(ax), []
        for k, panel in enumerate(panels):
            of_panel = []
            for c, chain in enumerate(self.values[..., k]):
                color = COLORS[c % len(COLORS)]
                of_panel += panel.plot(chain, color=color, linewidth=0.5, alpha=0.7, label=c)
            lines.append(of_panel)
            panel.set(ylabel=self.names[k], xlim=(0, max(self.values.shape[1] - 1, 1)))
            tidy(panel)
        panels[-1].set_xlabel("draw")
        _legend_of_chains(panels[0], lines[0])
        self.lines_ = np.array(lines, dtype=object)
        return self


def _legend_of_chains(panel: Any, lines: Sequence[Any]) -> None:
    """Legend beside the panel, where the chains have colours of their own."""
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
class RankDisplay(DrawsDisplay):
    """Ranks: how each chain's draws are spread over the ranks of all draws.

    Of chains that agree every line stays at 1 but for chance; the band holds 95 % of the bins of
    independent draws. Autocorrelated draws scatter more.

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

    _most = 6

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
        panels, lines = self._panels(ax), []
        for k, panel in enumerate(panels):
            ranks = rankdata(self.values[..., k], method="average").reshape(n_chains, n_draws)
            panel.axhspan(*band, color="0.9", zorder=0)
            panel.axhline(1.0, color=GREY, linewidth=0.8)
            of_panel = []
            for c, chain in enumerate(ranks):
                height = np.histogram(chain, edges)[0] / expected
                color = COLORS[c % len(COLORS)]
                of_panel.append(
                    panel.stairs(height, edges, baseline=None, color=color, linewidth=1.3)
                )
            lines.append(of_panel)
            panel.set(ylabel=f"{self.names[k]}:\nshare over the expected", xlim=edges[[0, -1]])
            tidy(panel, "x")
        panels[-1].set_xlabel("rank among the draws of all chains")
        _legend_of_chains(panels[0], lines[0])
        self.lines_ = np.array(lines, dtype=object)
        return self


@numpy_defaults
class AutocorrelationDisplay(DrawsDisplay):
    """Autocorrelations of the draws, averaged over the chains.

    Independent draws have none but for chance; the band holds 95 % of theirs.

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
        check_number(max_lag, "max_lag", low=1, closed="left", integer=True)
        panel = self._one_panel(ax, 3.6)
        n_chains, n_draws, _ = self.values.shape
        correlation = _autocorrelation(self.values)[: max_lag + 1]
        chance = 1.96 / np.sqrt(n_chains * n_draws)
        panel.axhspan(-chance, chance, color="0.9", zorder=0)
        lines = []
        for k, values in enumerate(correlation.T):
            color, marker = COLORS[k % len(COLORS)], "os^Dv<>"[k % 7]
            lines += panel.plot(
                values, color=color, marker=marker, markersize=3, linewidth=1.0, label=self.names[k]
            )
        panel.set(xlabel="lag, in draws", ylabel="autocorrelation", xlim=(0, len(correlation) - 1))
        panel.legend(loc="upper right", frameon=False, fontsize="small")
        tidy(panel, "y")
        self.lines_ = np.array(lines, dtype=object)
        return self


def _autocorrelation(values: Array) -> Array:
    """Autocorrelation at every lag ``(n_draws, n_shown)``, averaged over the chains."""
    n = values.shape[1]
    apart = values - values.mean(axis=1, keepdims=True)
    length = next_fast_len(2 * n)
    power = np.square(np.abs(rfft(apart, length, axis=1))).mean(axis=0)
    covariance = irfft(power, length, axis=0)[:n]
    return covariance / covariance[0]
