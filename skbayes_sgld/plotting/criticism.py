"""Displays of the criticism of models: a check of one, and a comparison of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import binom

from skbayes_sgld._checks import check_number
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.criticism.checks import by_mean, share_between, share_inside
from skbayes_sgld.criticism.comparison import compare_models
from skbayes_sgld.criticism.report import ModelCheck, check_model
from skbayes_sgld.plotting.axes import (
    BLUE,
    GREY,
    ORANGE,
    Array,
    Display,
    finish,
    percent,
    share_interval,
    tick_names,
)

_LEFT_OUT = "leave-one-out log density"


@numpy_defaults
@dataclass(eq=False, repr=False)
class ModelCheckDisplay(Display):
    """Leave-one-out transforms with their band, and coverage by predicted mean.

    The upper panel is a histogram of the probability integral transform of each observation, under
    the posterior without it. It is flat if the model fits: a hump in the middle means intervals
    that are too wide, high ends mean intervals that are too narrow, and a slope means bias. The
    band holds each bar with the probability ``coverage`` if the model is true. The lower panel
    shows the share of observations in 50 % and 90 % intervals, in groups of rows by predicted mean,
    with credible intervals of these shares.

    Parameters
    ----------
    below, most : ndarray of shape (n_rows,)
        Ends of the transform of each observation; equal if y is continuous.
    mean : ndarray of shape (n_rows,)
        Predicted mean of each observation.
    n_bins : int, default=10
        Bars of the histogram.
    n_groups : int, default=5
        Groups of rows in the lower panel.
    coverage : float, default=0.9
        Probability of the band and of the intervals.
    name : str or None, default=None
        Name of the model, in the title.
    held_out : bool, default=False
        Whether the rows are new, for the title.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : BarContainer
        Bars of the histogram.
    band_ : PolyCollection
    lines_ : list of Line2D
        Coverage of the 50 % and the 90 % intervals by group.
    """

    below: Array
    most: Array
    mean: Array
    n_bins: int = 10
    n_groups: int = 5
    coverage: float = 0.9
    name: str | None = None
    held_out: bool = False

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_bins: int = 10,
        n_groups: int = 5,
        coverage: float = 0.9,
        name: str | None = None,
        ax: Any = None,
        **params: Any,
    ) -> ModelCheckDisplay:
        """Display of a fitted regressor and the rows of its fit.

        Parameters
        ----------
        estimator : estimator
            Fitted regressor, or wrappers around one.
        X : array-like of shape (n_samples, n_features)
            Rows of the fit, each of which is left out.
        y : array-like of shape (n_samples,)
        n_bins : int, default=10
        n_groups : int, default=5
        coverage : float, default=0.9
            Probability of the band and of the intervals.
        name : str or None, default=None
            Name in the title. None: the class of the model.
        ax : array of two matplotlib Axes, default=None
            Axes to draw on. None: new ones.
        **params : dict
            Further arguments of :func:`skbayes_sgld.check_model`, such as ``exposure``.

        Returns
        -------
        display : ModelCheckDisplay
        """
        check = check_model(estimator, X, y, remedies=False, **params)
        return cls.from_check(
            check, n_bins=n_bins, n_groups=n_groups, coverage=coverage, name=name, ax=ax
        )

    @classmethod
    def from_check(
        cls,
        check: ModelCheck,
        *,
        n_bins: int = 10,
        n_groups: int = 5,
        coverage: float = 0.9,
        name: str | None = None,
        ax: Any = None,
    ) -> ModelCheckDisplay:
        """Display of a finished check.

        Parameters
        ----------
        check : ModelCheck
            Result of :func:`skbayes_sgld.check_model`, for numbers or counts.
        n_bins : int, default=10
        n_groups : int, default=5
        coverage : float, default=0.9
        name : str or None, default=None
            Name in the title. None: the class of the model.
        ax : array of two matplotlib Axes, default=None
            Axes to draw on. None: new ones.

        Returns
        -------
        display : ModelCheckDisplay
        """
        check_number(n_bins, "n_bins", low=2, closed="left", integer=True)
        check_number(n_groups, "n_groups", low=1, closed="left", integer=True)
        check_number(coverage, "coverage", low=0, high=1)
        if not (hasattr(check, "below") and hasattr(check, "most")):
            raise TypeError(f"check={check!r} is not a ModelCheck; give what check_model returns.")
        if check.below is None or check.most is None:
            raise TypeError(
                f"check is of {check.name}, a classifier, which has no transform of its labels; "
                "ReliabilityDisplay shows the calibration of its probabilities."
            )
        called = check.name if name is None else name
        display = cls(
            check.below, check.most, check.mean, n_bins, n_groups, coverage, called, check.held_out
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> ModelCheckDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : array of two matplotlib Axes, default=None

        Returns
        -------
        display : ModelCheckDisplay
        """
        upper, lower = self._panels(ax, (6.4, 7.2), 2)
        n, ends = len(self.mean), np.linspace(0.0, 1.0, self.n_bins + 1)
        bars = [share_between(self.below, self.most, *bar).mean() for bar in pairwise(ends)]
        density = np.array(bars) * self.n_bins
        self.bars_ = upper.bar(
            ends[:-1], density, width=1.0 / self.n_bins, align="edge", color=BLUE, alpha=0.6
        )
        low, high = np.array(binom.interval(self.coverage, n, 1.0 / self.n_bins)) * self.n_bins / n
        label = f"{percent(self.coverage)} of bars, if the model fits"
        self.band_ = upper.fill_between(
            [0.0, 1.0], low, high, color=GREY, alpha=0.3, linewidth=0, label=label
        )
        upper.axhline(1.0, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
        upper.set(xlabel="probability integral transform", ylabel="density", xlim=(0, 1))
        upper.set_ylim(0.0, 1.25 * max(float(density.max()), high))
        title = f"{n} new rows" if self.held_out else f"{n} rows, left out one at a time"
        finish(upper, title if self.name is None else f"{self.name}: {title}", "upper right", "y")
        self._plot_coverage(lower)
        return self

    def _plot_coverage(self, panel: Any) -> None:
        groups = by_mean(self.mean, min(self.n_groups, len(self.mean)))
        center = [float(self.mean[rows].mean()) for rows in groups]
        size = [len(rows) for rows in groups]
        self.lines_ = []
        for inside, color in ((0.5, ORANGE), (0.9, BLUE)):
            share = share_inside(self.below, self.most, inside)
            each = np.array([share[rows].mean() for rows in groups])
            panel.axhline(inside, color=color, linewidth=1.0, linestyle=(0, (4, 3)))
            ends = share_interval(each, size, self.coverage)
            panel.vlines(center, *ends, color=color, linewidth=1.5, alpha=0.7)
            name = f"{percent(inside)} intervals"
            self.lines_ += panel.plot(center, each, "o", color=color, markersize=5, label=name)
        panel.set(
            xlabel="predicted mean", ylabel="share of the observations inside", ylim=(0, 1.04)
        )
        finish(panel, f"bars: {percent(self.coverage)} credible", "lower right", "y")


@numpy_defaults
@dataclass(eq=False, repr=False)
class ModelComparisonDisplay(Display):
    """Differences of leave-one-out log density from the best model, with standard errors.

    Parameters
    ----------
    table : pandas.DataFrame
        Result of :func:`skbayes_sgld.compare_models`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : Line2D
        Differences.
    bars_ : LineCollection
        Two standard errors of each difference.
    """

    table: pd.DataFrame

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], X: Any, y: ArrayLike, *, ax: Any = None, **params: Any
    ) -> ModelComparisonDisplay:
        """Display of fitted models and the rows of their fits.

        Parameters
        ----------
        estimators : dict of str to estimator
            Fitted estimators by name.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        ax : matplotlib Axes, default=None
            Axes to draw on. None: new ones.
        **params : dict
            Further arguments of :func:`skbayes_sgld.compare_models`.

        Returns
        -------
        display : ModelComparisonDisplay
        """
        return cls(compare_models(estimators, X, y, **params)).plot(ax=ax)

    def plot(self, ax: Any = None) -> ModelComparisonDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : ModelComparisonDisplay
        """
        panel = self._panel(ax, (6.4, 1.4 + 0.5 * len(self.table)))
        at = np.arange(len(self.table))
        difference, error = (self.table[c].to_numpy() for c in ("difference", "se_difference"))
        self.bars_ = panel.hlines(
            at, difference - 2 * error, difference + 2 * error, color=BLUE, linewidth=1.5, alpha=0.7
        )
        (self.line_,) = panel.plot(difference, at, "o", color=BLUE, markersize=5)
        panel.axvline(0.0, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
        panel.set_yticks(at, tick_names(fill(str(name), 28) for name in self.table.index))
        panel.invert_yaxis()
        of = "log density of new rows" if self.table.attrs.get("held_out") else _LEFT_OUT
        panel.set_xlabel(f"{of}, less that of the best model")
        finish(panel, "bars: two standard errors of the difference", grid="x")
        return self
