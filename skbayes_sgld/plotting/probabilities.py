"""Displays of probabilities: their calibration, and their contours over two columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._checks import as_array, check_lengths, check_number
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.metrics.probabilities import Bins, bin_probabilities
from skbayes_sgld.plotting.axes import (
    BLUE,
    COLORS,
    SQUARE,
    Array,
    Display,
    draw_diagonal,
    finish,
    percent,
    share_interval,
)
from skbayes_sgld.prediction.wrappers import predict_proba_interval, unwrap_for

_CONTOURS = (0.1, 0.25, 0.5, 0.75, 0.9)
_MARKERS = "osD^v<>"


@numpy_defaults
@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    """Calibration of probabilities: the observed share in bins of the predicted probability.

    Each share has a credible interval, which tells miscalibration from chance.

    Parameters
    ----------
    bins : Bins
        Mean probability, share observed and rows of each bin.
    coverage : float, default=0.9
        Probability of the intervals.
    event : str, default="the event"
        What the probability is of.
    name : str or None, default=None
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : Line2D
        The bins' mean probabilities, and the shares observed.
    bars_ : LineCollection
        The credible intervals.
    """

    bins: Bins
    coverage: float = 0.9
    event: str = "the event"
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        pos_label: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> ReliabilityDisplay:
        """Display of a fitted classifier's probabilities.

        Parameters
        ----------
        estimator : estimator
            Fitted classifier with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
            Rows that the fit has not seen.
        y : array-like of shape (n_samples,)
        pos_label : label or None, default=None
            Class whose probability is judged. None: the second of two.
        name : str or None, default=None
            Name in the legend. None: the class of the model.
        **options : dict
            Arguments of :meth:`from_predictions`: ``n_bins``, ``strategy``, ``coverage``, ``ax``
            and ``color``.

        Returns
        -------
        display : ReliabilityDisplay
        """
        model = unwrap_for(cls.__name__, "predict_proba", estimator).model
        k = _position(estimator, pos_label)
        y, proba = as_array(y, "y", dtype=None), estimator.predict_proba(X)[:, k]
        check_lengths(X=proba, y=y)
        return cls.from_predictions(
            y == estimator.classes_[k],
            proba,
            event=f"class {estimator.classes_[k]}",
            name=type(model).__name__ if name is None else name,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        coverage: float = 0.9,
        event: str = "the event",
        name: str | None = None,
        ax: Any = None,
        color: Any = BLUE,
    ) -> ReliabilityDisplay:
        """Display of probabilities of an event.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Whether the event happened.
        y_prob : array-like of shape (n_samples,)
            Its probability.
        n_bins : int, default=10
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equally many rows.
        coverage : float, default=0.9
            Probability of the intervals.
        event : str, default="the event"
            Its name, on the axes.
        name : str or None, default=None
            Name in the legend.
        ax : matplotlib Axes, default=None
            Where to draw. None: in a new figure.
        color : Matplotlib color, default="#0072B2"

        Returns
        -------
        display : ReliabilityDisplay
        """
        check_number(coverage, "coverage", low=0, high=1)
        happened, p = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
        check_lengths(y_true=happened, y_prob=p)
        if np.setdiff1d(happened, [0.0, 1.0]).size or np.any((p < 0) | (p > 1)):
            raise ValueError("y_true must say whether the event happened, y_prob be in [0, 1].")
        bins = bin_probabilities(happened, p, n_bins, strategy)
        return cls(bins, coverage, event, name).plot(ax=ax, color=color)

    def plot(self, ax: Any = None, color: Any = BLUE) -> ReliabilityDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        color : Matplotlib color, default="#0072B2"

        Returns
        -------
        display : ReliabilityDisplay
        """
        panel = self._panel(ax, SQUARE)
        draw_diagonal(panel, 0.02)
        predicted, observed, weight = self.bins
        ends = share_interval(observed, weight, self.coverage)
        self.bars_ = panel.vlines(predicted, *ends, color=color, linewidth=1.5, alpha=0.7)
        (self.line_,) = panel.plot(
            predicted, observed, "o", color=color, markersize=5, label=self.name
        )
        panel.set(xlabel=f"predicted probability of {self.event}", ylabel="share observed")
        title = f"{weight.sum():.0f} rows; bars: {percent(self.coverage)} credible"
        finish(panel, title, None if self.name is None else "upper left")
        return self


@numpy_defaults
@dataclass(eq=False, repr=False)
class ProbabilityContourDisplay(Display):
    """Contours of a class's probability over two columns, shaded by its uncertainty.

    Parameters
    ----------
    x0, x1 : ndarray of shape (n_points, n_points)
        Values of the columns, as of ``numpy.meshgrid``.
    probability : ndarray of shape (n_points, n_points)
    width : ndarray of shape (n_points, n_points)
        Width of the probability's credible interval.
    coverage : float, default=0.9
        Probability of that interval.
    names : tuple of str, default=("x0", "x1")
        Names of the columns.
    event : str, default="the event"
        Name of the class.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    contours_ : QuadContourSet
        Of the probability.
    shades_ : QuadMesh
        Of the width.
    points_ : list of Line2D
        Rows of each class, where they were given.
    """

    x0: Array
    x1: Array
    probability: Array
    width: Array
    coverage: float = 0.9
    names: tuple[str, str] = ("x0", "x1")
    event: str = "the event"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        pos_label: Any = None,
        coverage: float = 0.9,
        grid_resolution: int = 60,
        ax: Any = None,
    ) -> ProbabilityContourDisplay:
        """Display of a classifier that was fitted to two columns.

        Parameters
        ----------
        estimator : estimator
            Fitted classifier, or wrappers around one.
        X : array-like of shape (n_samples, 2)
            Rows, whose range is shown with a margin.
        y : array-like of shape (n_samples,), default=None
            Their labels, to show the rows too.
        pos_label : label or None, default=None
            Class whose probability is shown. None: the second of two.
        coverage : float, default=0.9
            Probability of the interval whose width is shown.
        grid_resolution : int, default=60
            Points along each axis.
        ax : matplotlib Axes, default=None
            Where to draw. None: in a new figure.

        Returns
        -------
        display : ProbabilityContourDisplay
        """
        unwrap_for(cls.__name__, "predict_proba_interval", estimator)
        values = as_array(X, "X", (2,))
        if values.shape[1] != 2:
            raise ValueError(f"X has {values.shape[1]} columns; contours are drawn over two.")
        check_number(grid_resolution, "grid_resolution", low=2, closed="left", integer=True)
        low, high = values.min(axis=0), values.max(axis=0)
        margin = 0.1 * (high - low)
        ticks = np.linspace(low - margin, high + margin, grid_resolution).T
        x0, x1 = np.meshgrid(*ticks)
        grid = np.column_stack([x0.ravel(), x1.ravel()])
        names = ("x0", "x1")
        if hasattr(X, "columns"):
            names = (str(X.columns[0]), str(X.columns[1]))
            grid = type(X)(grid, columns=X.columns)
        k = _position(estimator, pos_label)
        if y is not None:
            y = as_array(y, "y", dtype=None)
            check_lengths(X=values, y=y)
        ends = predict_proba_interval(estimator, grid, coverage)[:, k]
        display = cls(
            x0,
            x1,
            estimator.predict_proba(grid)[:, k].reshape(x0.shape),
            np.diff(ends, axis=1).reshape(x0.shape),
            coverage,
            names,
            f"class {estimator.classes_[k]}",
        )
        return display.plot(ax=ax, X=values, y=y)

    def plot(self, ax: Any = None, X: Any = None, y: Any = None) -> ProbabilityContourDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        X : array-like of shape (n_samples, 2), default=None
        y : array-like of shape (n_samples,), default=None
            Rows to show, by their labels.

        Returns
        -------
        display : ProbabilityContourDisplay
        """
        panel = self._panel(ax, (6.2, 4.8))
        from matplotlib import colormaps
        from matplotlib.colors import ListedColormap

        self.shades_ = panel.pcolormesh(
            self.x0,
            self.x1,
            self.width,
            cmap=ListedColormap(colormaps["Greys"](np.linspace(0.0, 0.55, 256))),  # legible lines
            vmin=0.0,
            vmax=1.0,
            shading="gouraud",
        )
        self.contours_ = panel.contour(
            self.x0, self.x1, self.probability, levels=_CONTOURS, colors="black", linewidths=1.0
        )
        panel.clabel(self.contours_, fontsize="small", fmt="%g")
        self.points_ = []
        for c, label in enumerate(np.unique(y) if y is not None else ()):
            rows = np.asarray(X)[np.asarray(y) == label]
            color, marker = COLORS[c % len(COLORS)], _MARKERS[c % len(_MARKERS)]
            self.points_ += panel.plot(
                *rows.T, marker, color=color, markersize=5.5, markeredgecolor="white", label=label
            )
        if self.points_:
            panel.legend(loc="best", framealpha=0.9)
        bar = self.figure_.colorbar(self.shades_, ax=panel)
        bar.set_label(f"width of the {percent(self.coverage)} credible interval")
        panel.set(xlabel=self.names[0], ylabel=self.names[1])
        panel.set_title(f"Contours: probability of {self.event}", fontsize="medium", loc="left")
        return self


def _position(estimator: Any, pos_label: Any) -> int:
    """Position, among the classes of a fitted classifier, of the class that is shown."""
    if not hasattr(estimator, "classes_"):
        raise TypeError(f"estimator={estimator!r} has no classes_; give a fitted classifier.")
    classes = estimator.classes_
    if pos_label is None:
        if len(classes) != 2:
            raise ValueError(f"there are {len(classes)} classes; give pos_label one of them.")
        return 1
    if pos_label not in classes:
        raise ValueError(f"pos_label={pos_label!r} is not a class; there are {classes.tolist()}.")
    return int(np.flatnonzero(classes == pos_label)[0])
