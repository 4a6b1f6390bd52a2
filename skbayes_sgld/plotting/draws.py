"""Displays of draws: densities, intervals, traces, ranks and autocorrelations; and their base.

Each is made by ``from_estimator``, from a fitted estimator or a pipeline or search around one, or
by ``from_draws``, from ``PosteriorDraws`` such as ``model.posterior_`` or ``result.draws``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import fill
from typing import Any, ClassVar

import numpy as np
from scipy.stats import binom, gaussian_kde, rankdata

from skbayes_sgld._checks import check_number
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.diagnostics import quantiles, tails
from skbayes_sgld.plotting.axes import (
    BLUE,
    COLORS,
    GREY,
    Array,
    Display,
    finish,
    percent,
    tick_names,
)
from skbayes_sgld.prediction.wrappers import unwrap_for

_INNER = 0.5  # probability of the thick part of an interval in a forest
_BINS = 20  # bins of ranks


@numpy_defaults
@dataclass(eq=False, repr=False)
class DrawsDisplay(Display):
    """Base of the displays of draws.

    Parameters
    ----------
    values : ndarray of shape (n_chains, n_draws, n_shown)
    names : list of str
        Names of the parameters that are shown.
    weights : ndarray of shape (n_draws,) or None, default=None
        Weights of the draws.
    n_params : int or None, default=None
        Number of all parameters; the title gives it if some are left out.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of Axes, one for each parameter
    figure_ : matplotlib Figure
    """

    _most: ClassVar[int] = 6  # parameters shown if none are named
    _stem: ClassVar[str | None] = None  # preferred stem of their names, if any parameter has it

    values: Array
    names: list[str]
    weights: Array | None = None
    n_params: int | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, parameters: Any = None, ax: Any = None, **options: Any
    ) -> Any:
        """Display of a fitted estimator's draws.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator, or a pipeline or a search around one.
        parameters : str, list of str or None, default=None
            Names of parameters, or the part of them before the bracket: ``"coef"`` stands for all
            coefficients. None: the first parameters; the coefficients in a forest.
        ax : matplotlib Axes or array-like of Axes, default=None
            Axes to draw on. None: new ones.
        **options : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : object
        """
        draws = unwrap_for(cls.__name__, "posterior_", estimator).model.posterior_
        return cls.from_draws(draws, parameters=parameters, ax=ax, **options)

    @classmethod
    def from_draws(
        cls, draws: Any, *, parameters: Any = None, ax: Any = None, **options: Any
    ) -> Any:
        """Display of draws.

        Parameters
        ----------
        draws : PosteriorDraws
            ``posterior_`` of an estimator, or ``draws`` of a result of ``sample``.
        parameters : str, list of str or None, default=None
            As in :meth:`from_estimator`.
        ax : matplotlib Axes or array-like of Axes, default=None
            Axes to draw on. None: new ones.
        **options : dict
            Arguments of :meth:`plot`.

        Returns
        -------
        display : object
        """
        if not hasattr(draws, "names"):
            raise TypeError(
                f"draws is of type {type(draws).__name__}; give PosteriorDraws, such as "
                f"model.posterior_ or result.draws, or {cls.__name__}(values, names).plot()."
            )
        shown = _choose(draws.names, parameters, cls._most, cls._stem)
        names = [draws.names[k] for k in shown]
        n_params = len(draws.names) if parameters is None else None
        display = cls(draws.values[..., shown], names, draws.weights, n_params)
        return display.plot(ax=ax, **options)

    def plot(self, ax: Any = None) -> Any:
        """Draw the figure."""
        raise NotImplementedError

    def _by_parameter(self, ax: Any) -> Array:
        """Panels, one for each parameter."""
        n = len(self.names)
        panels = self._panels(ax, (6.4, max(2.4, 1.6 * n + 0.5)), n)
        self._tell_omitted(panels[0])
        return panels

    def _tell_omitted(self, panel: Any) -> None:
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
    selection: list[int] = []
    is_array = hasattr(parameters, "tolist") and np.ndim(parameters) > 0
    several = isinstance(parameters, (list, tuple)) or is_array
    if (several or isinstance(parameters, str)) and not len(parameters):
        raise ValueError(f"parameters={parameters!r} names none; there are {', '.join(names)}.")
    for parameter in list(parameters) if several else [parameters]:
        positions = _named(names, parameter) if isinstance(parameter, str) else []
        if not positions:
            raise ValueError(
                f"parameters={parameters!r}: {parameter!r} is not a parameter; there are "
                f"{', '.join(names)}."
            )
        selection += [k for k in positions if k not in selection]
    return selection


def _named(names: list[str], parameter: str | None) -> list[int]:
    return [k for k, name in enumerate(names) if parameter in (name, name.partition("[")[0])]


@numpy_defaults
class DensityDisplay(DrawsDisplay):
    """Densities of the parameters, with the credible interval shaded and the mean marked.

    The densities are kernel estimates from the draws of all chains.

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
        Ends of the shaded intervals.
    """

    def plot(self, ax: Any = None, coverage: float = 0.9) -> DensityDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : array-like of Axes, default=None
            One for each parameter.
        coverage : float, default=0.9
            Probability of the shaded interval.

        Returns
        -------
        display : DensityDisplay
        """
        check_number(coverage, "coverage", low=0, high=1)
        flat, weights = self._flat()
        self.intervals_ = quantiles(flat, tails(coverage), weights)
        means = np.average(flat, axis=1, weights=weights)
        panels, lines = self._by_parameter(ax), []
        for k, panel in enumerate(panels):
            density = gaussian_kde(flat[k], weights=weights)
            first, last = np.quantile(flat[k], [0.001, 0.999])
            margin = 0.1 * (last - first)
            x = np.linspace(first - margin, last + margin, 200)
            low, high = self.intervals_[k]
            inside = np.concatenate([[low], x[(x > low) & (x < high)], [high]])
            area, label = density(inside), percent(coverage)
            panel.fill_between(inside, area, color=BLUE, alpha=0.25, linewidth=0, label=label)
            lines += panel.plot(x, density(x), color=BLUE, linewidth=1.5)
            panel.vlines(means[k], 0.0, density(means[k]), color=BLUE, linewidth=1.0, label="mean")
            panel.set(xlabel=self.names[k], ylim=(0, None), yticks=[])
            finish(panel, grid="x")
            panel.spines["left"].set_visible(False)
        panels[0].legend(loc="upper right", frameon=False, fontsize="small")
        self.lines_ = np.array(lines, dtype=object)
        return self


@numpy_defaults
class ForestDisplay(DrawsDisplay):
    """Forest plot: mean and credible intervals of each parameter, one below the other.

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
        Ends of the thin lines, as in ``summary()``.
    lines_ : list of LineCollection
        Thin and thick lines.
    """

    _most = 40
    _stem = "coef"

    def plot(self, ax: Any = None, coverage: float = 0.9) -> ForestDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        coverage : float, default=0.9
            Probability of the interval of the thin lines; that of the thick lines is 50 %.

        Returns
        -------
        display : ForestDisplay
        """
        check_number(coverage, "coverage", low=_INNER, high=1)
        panel = self._panel(ax, (6.4, 0.27 * len(self.names) + 1.1))
        self._tell_omitted(panel)
        flat, weights = self._flat()
        rows = np.arange(len(self.names))
        self.intervals_ = quantiles(flat, tails(coverage), weights)
        inner = quantiles(flat, tails(_INNER), weights)
        means = np.average(flat, axis=1, weights=weights)
        panel.axvline(0.0, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        self.lines_ = [
            panel.hlines(rows, *self.intervals_.T, color=BLUE, linewidth=1.3),
            panel.hlines(rows, *inner.T, color=BLUE, linewidth=3.6),
        ]
        (self.points_,) = panel.plot(
            means, rows, "o", color="white", markeredgecolor=BLUE, markersize=4.5
        )
        panel.set_yticks(rows, tick_names(self.names))
        panel.set(ylim=(len(rows) - 0.5, -0.5))
        panel.set_xlabel(f"mean, {percent(_INNER)} and {percent(coverage)} credible interval")
        finish(panel, grid="x")
        return self


# ---- chains --------------------------------------------------------------------------------------


class _ChainsDisplay(DrawsDisplay):
    """Base of the displays with a panel for each parameter and a line for each chain."""

    def _draw_chains(self, ax: Any, values: Array, draw: Callable[..., Any]) -> Array:
        """Panels with the lines that ``draw`` makes from a panel, a chain's values and a color."""
        panels = self._by_parameter(ax)
        self.lines_ = np.array(
            [
                [draw(panel, chain, COLORS[c % len(COLORS)]) for c, chain in enumerate(chains)]
                for panel, chains in zip(panels, np.moveaxis(values, 2, 0), strict=True)
            ],
            dtype=object,
        )
        if 1 < len(values) <= len(COLORS):  # each chain has its own colour
            names = [str(c) for c in range(len(values))]
            beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
            legend = panels[0].legend(self.lines_[0], names, title="chain", **beside)
            for handle in legend.get_lines():
                handle.set(linewidth=2.0, alpha=1.0)
        return panels


@numpy_defaults
class TraceDisplay(_ChainsDisplay):
    """Traces: the draws of each chain in order.

    If chains have converged they look alike. A trend, or one chain that differs, means that they
    have not.

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
        """Draw the figure.

        Parameters
        ----------
        ax : array-like of Axes, default=None
            One for each parameter.

        Returns
        -------
        display : TraceDisplay
        """

        def draw(panel: Any, chain: Array, color: str) -> Any:
            (line,) = panel.plot(chain, color=color, linewidth=0.5, alpha=0.7)
            return line

        panels = self._draw_chains(ax, self.values, draw)
        for name, panel in zip(self.names, panels, strict=True):
            panel.set(ylabel=_wrapped(name), xlim=(0, max(self.values.shape[1] - 1, 1)))
            finish(panel)
        panels[-1].set_xlabel("draw")
        return self


def _wrapped(name: str) -> str:
    """Name in lines that are no longer than a panel is high, broken at spaces."""
    return fill(name, 16, break_long_words=False, break_on_hyphens=False)


@numpy_defaults
class RankDisplay(_ChainsDisplay):
    """Rank plot: distribution of each chain's draws over the ranks of all draws.

    If chains agree, every line stays near 1. The band holds 95 % of the bins of independent draws;
    autocorrelated draws scatter more.

    Parameters
    ----------
    values : ndarray of shape (n_chains, n_draws, n_shown)
    names : list of str
    weights : ndarray of shape (n_draws,) or None, default=None
        Not used: ranks are of unweighted draws.
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
        """Draw the figure.

        Parameters
        ----------
        ax : array-like of Axes, default=None
            One for each parameter.

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
            panel.set(ylabel=f"{_wrapped(name)}\nshare / expected", xlim=edges[[0, -1]])
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
        """Draw the figure.

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
        x, lines = range(correlation.shape[1]), []
        for k, name in enumerate(self.names):
            style = {"color": COLORS[k % len(COLORS)], "marker": "os^Dv<>"[k % 7], "markersize": 3}
            lines += panel.plot(x, correlation[k], linewidth=1.0, label=name, **style)
        panel.set(xlabel="lag, in draws", ylabel="autocorrelation", xlim=(0, max(x)))
        panel.legend(loc="upper right", frameon=False, fontsize="small")
        finish(panel, grid="y")
        self.lines_ = np.array(lines, dtype=object)
        return self
