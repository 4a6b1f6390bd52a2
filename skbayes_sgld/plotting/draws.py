"""Displays of the draws: traces, ranks, densities, intervals, autocorrelations.

Each is made by ``from_estimator``, from a fitted estimator, or a pipeline or search around one; or
by ``from_draws``, from ``PosteriorDraws`` such as ``model.posterior_`` or ``result.draws``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import binom, gaussian_kde, rankdata

from skbayes_sgld._components import check_number
from skbayes_sgld.diagnostics import quantiles
from skbayes_sgld.plotting.axes import BLUE, COLORS, GREY, make_axes, percent, tidy
from skbayes_sgld.prediction.wrappers import unwrap

Array = NDArray[Any]

_GRID = 200  # points of a density
_BINS = 20  # of ranks
_INNER = 0.5  # probability of the thick part of an interval


class DrawsDisplay:
    """Base of the displays of draws.

    Parameters
    ----------
    values : ndarray of shape (n_chains, n_draws, n_shown)
    names : list of str
        Names of the parameters that are shown.
    weights : ndarray of shape (n_draws,) or None, default=None
        Weights of the draws.
    n_params : int or None, default=None
        How many parameters there are in all, which is said where it is more.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of Axes, one a parameter
    figure_ : matplotlib Figure
    """

    _most: ClassVar[int]  # parameters that are shown where none are named
    _stem: ClassVar[str | None] = None  # of the names of those, where there are such
    _panel: ClassVar[float] = 1.6  # height of a panel, in inches

    ax_: Any
    figure_: Any

    def __init__(
        self,
        values: Array,
        names: Sequence[str],
        weights: Array | None = None,
        n_params: int | None = None,
    ) -> None:
        self.values, self.names = values, list(names)
        self.weights, self.n_params = weights, n_params

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, parameters: Any = None, ax: Any = None, **options: Any
    ) -> Any:
        """Display of a fitted estimator's draws.

        Parameters
        ----------
        estimator : estimator
            Fitted; or a pipeline or a search around one.
        parameters : str, list of str or None, default=None
            Names of parameters, or what they have before the bracket: ``"coef"`` stands for
            ``coef[age]`` and all others. None: the first ones; coefficients in a forest.
        ax : matplotlib Axes or array-like of Axes, default=None
            Where to draw; a new figure where None.
        **options : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : object
        """
        draws = unwrap(estimator).model.posterior_
        return cls.from_draws(draws, parameters=parameters, ax=ax, **options)

    @classmethod
    def from_draws(
        cls, draws: Any, *, parameters: Any = None, ax: Any = None, **options: Any
    ) -> Any:
        """Display of draws.

        Parameters
        ----------
        draws : PosteriorDraws
            Such as ``posterior_`` of an estimator, or ``draws`` of what ``sample`` returned.
        parameters : str, list of str or None, default=None
            As in :meth:`from_estimator`.
        ax : matplotlib Axes or array-like of Axes, default=None
            Where to draw; a new figure where None.
        **options : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : object
        """
        shown = _choose(draws.names, parameters, cls._most, cls._stem)
        names = [draws.names[k] for k in shown]
        n_params = len(draws.names) if parameters is None else None
        display = cls(draws.values[..., shown], names, draws.weights, n_params)
        return display.plot(ax=ax, **options)

    def plot(self, ax: Any = None) -> Any:
        """Draw it."""
        raise NotImplementedError

    def _panels(self, ax: Any) -> Array:
        """Axes of the panels, one a parameter, with what is left out said over the first."""
        n = len(self.names)
        self.ax_ = panels = make_axes(ax, n, (6.4, max(2.4, self._panel * n + 0.5)))
        self._finish(panels[0])
        return panels

    def _one_panel(self, ax: Any, height: float) -> Any:
        (panel,) = make_axes(ax, 1, (6.4, height))
        self.ax_ = panel
        self._finish(panel)
        return panel

    def _finish(self, panel: Any) -> None:
        self.figure_ = panel.figure
        if self.n_params is not None and self.n_params > len(self.names):
            title = f"{len(self.names)} of {self.n_params} parameters"
            panel.set_title(title, loc="left", fontsize="small", color=GREY)

    def _flat(self) -> tuple[Array, Array | None]:
        """Draws of all chains ``(n_shown, S)``, and their weights."""
        weights = None if self.weights is None else np.tile(self.weights, len(self.values))
        return self.values.reshape(-1, len(self.names)).T, weights


def _choose(names: list[str], parameters: Any, most: int, stem: str | None) -> list[int]:
    """Positions of the parameters to show."""
    if parameters is None:
        return (_named(names, stem) or list(range(len(names))))[:most]
    chosen: list[int] = []
    for wanted in [parameters] if isinstance(parameters, str) else parameters:
        found = _named(names, wanted)
        if not found:
            raise ValueError(f"{wanted!r} is not a parameter; there are {', '.join(names)}.")
        chosen += [k for k in found if k not in chosen]
    return chosen


def _named(names: list[str], wanted: str | None) -> list[int]:
    return [k for k, name in enumerate(names) if wanted in (name, name.partition("[")[0])]


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
            panel.set(ylabel=self.names[k], xlim=(edges[0], edges[-1]), ylim=(0, None))
            tidy(panel, "x")
        panels[-1].set_xlabel(
            "rank among all draws (vertical: share of a chain's draws, over the expected)"
        )
        _legend_of_chains(panels[0], lines[0])
        self.lines_ = np.array(lines, dtype=object)
        return self


class DensityDisplay(DrawsDisplay):
    """Densities of the parameters, with the credible interval shaded and the mean marked.

    Kernel estimates over the draws of all chains.

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
    lines_ : ndarray of Line2D, of shape (n_shown,)
    intervals_ : ndarray of shape (n_shown, 2)
        Ends of what is shaded.
    """

    _most = 6

    def plot(self, ax: Any = None, coverage: float = 0.9) -> DensityDisplay:
        """Draw it.

        Parameters
        ----------
        ax : array-like of Axes, default=None
            One a parameter.
        coverage : float, default=0.9
            Probability of the interval that is shaded.

        Returns
        -------
        display : DensityDisplay
        """
        check_number(coverage, "coverage", low=0, high=1)
        flat, weights = self._flat()
        self.intervals_ = quantiles(flat, _tails(coverage), weights)
        means = np.average(flat, axis=1, weights=weights)
        panels, lines = self._panels(ax), []
        for k, panel in enumerate(panels):
            density = gaussian_kde(flat[k], weights=weights)
            x = np.linspace(*_range(flat[k]), _GRID)
            low, high = self.intervals_[k]
            inside = np.concatenate([[low], x[(x > low) & (x < high)], [high]])
            panel.fill_between(
                inside,
                density(inside),
                color=BLUE,
                alpha=0.25,
                linewidth=0,
                label=percent(coverage),
            )
            lines += panel.plot(x, density(x), color=BLUE, linewidth=1.5)
            panel.vlines(means[k], 0.0, density(means[k]), color=BLUE, linewidth=1.0, label="mean")
            panel.set(xlabel=self.names[k], ylim=(0, None), yticks=[])
            tidy(panel, "x")
            panel.spines["left"].set_visible(False)
        panels[0].legend(loc="upper right", frameon=False, fontsize="small")
        self.lines_ = np.array(lines, dtype=object)
        return self


class ForestDisplay(DrawsDisplay):
    """Forest: mean and credible intervals of each parameter, one below the other.

    Parameters
    ----------
    values : ndarray of shape (n_chains, n_draws, n_shown)
    names : list of str
    weights : ndarray of shape (n_draws,) or None, default=None
    n_params : int or None, default=None

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : Line2D
        The means.
    intervals_ : ndarray of shape (n_shown, 2)
        Ends of the thin lines: those of ``summary()``.
    lines_ : list of LineCollection
        The thin lines and the thick ones.
    """

    _most = 40
    _stem = "coef"

    def plot(self, ax: Any = None, coverage: float = 0.9) -> ForestDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        coverage : float, default=0.9
            Probability of the thin lines' interval; the thick ones have half.

        Returns
        -------
        display : ForestDisplay
        """
        check_number(coverage, "coverage", low=_INNER, high=1)
        panel = self._one_panel(ax, 0.27 * len(self.names) + 1.1)
        flat, weights = self._flat()
        rows = np.arange(len(self.names))
        self.intervals_ = quantiles(flat, _tails(coverage), weights)
        inner = quantiles(flat, _tails(_INNER), weights)
        means = np.average(flat, axis=1, weights=weights)
        panel.axvline(0.0, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        self.lines_ = [
            panel.hlines(rows, *self.intervals_.T, color=BLUE, linewidth=1.3),
            panel.hlines(rows, *inner.T, color=BLUE, linewidth=3.6),
        ]
        (self.points_,) = panel.plot(
            means, rows, "o", color="white", markeredgecolor=BLUE, markersize=4.5
        )
        panel.set_yticks(rows, self.names)
        panel.set(ylim=(len(rows) - 0.5, -0.5))
        panel.set_xlabel(f"mean, {percent(_INNER)} and {percent(coverage)} credible interval")
        tidy(panel, "x")
        return self


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


def _tails(coverage: float) -> Array:
    return np.array([(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0])


def _range(values: Array) -> tuple[float, float]:
    """Range of a density's axis: all but the last thousandth of either tail, and a margin."""
    low, high = np.quantile(values, [0.001, 0.999])
    margin = 0.1 * (high - low)
    return float(low - margin), float(high + margin)
