"""Displays of predictions: intervals, probabilities, and the mean response along a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._checks import as_array, check_lengths, check_number, check_size, naming
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.diagnostics import tails
from skbayes_sgld.metrics import interval_coverage
from skbayes_sgld.metrics.intervals import bounds_of, check_order
from skbayes_sgld.metrics.probabilities import Bins, bin_probabilities
from skbayes_sgld.metrics.scorers import label_rows
from skbayes_sgld.plotting.axes import (
    BLUE,
    COLORS,
    GREY,
    ORANGE,
    Array,
    Display,
    finish,
    percent,
    share_interval,
    show_as_written,
    tick_names,
)
from skbayes_sgld.prediction.effects import dependence
from skbayes_sgld.prediction.functions import (
    predict_interval,
    predict_proba_interval,
    predict_quantiles,
)
from skbayes_sgld.prediction.intervals import check_levels
from skbayes_sgld.prediction.wrappers import Unwrapped, components, unwrap, unwrap_for
from skbayes_sgld.rows.arguments import check_by_row_given

_MOST_LETTERS = 60  # of the names of levels side by side
_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@numpy_defaults
@dataclass(eq=False, repr=False)
class PredictiveIntervalDisplay(Display):
    """Predictive intervals by row, along the only column of X or sorted by their centre.

    Parameters
    ----------
    interval : ndarray of shape (n_samples, 2)
        Lower and upper ends.
    center : ndarray of shape (n_samples,)
        Centre of each row's prediction, such as the median.
    y_true : ndarray of shape (n_samples,) or None, default=None
        Observations.
    x : ndarray of shape (n_samples,) or None, default=None
        Horizontal position of each row; None to sort the rows by ``center``.
    coverage : float, default=0.9
        Probability of the intervals.
    x_name, y_name : str, default="x" and "y"

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    band_ : PolyCollection
    line_ : Line2D
        The centres.
    inside_, outside_ : Line2D or None
        Observations inside their intervals, and outside.
    """

    interval: Array
    center: Array
    y_true: Array | None = None
    x: Array | None = None
    coverage: float = 0.9
    x_name: str = "x"
    y_name: str = "y"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        coverage: float = 0.9,
        kind: str = "predictive",
        y_name: str | None = None,
        ax: Any = None,
        **by_row: Any,
    ) -> PredictiveIntervalDisplay:
        """Display of a fitted regressor's intervals, with the median of each row's prediction.

        Parameters
        ----------
        estimator : estimator
            Fitted regressor, or wrappers around one.
        X : array-like of shape (n_samples, n_features)
            Rows to predict. With one column the intervals are drawn along it; with more the rows
            are sorted.
        y : array-like of shape (n_samples,), default=None
            Observations.
        coverage : float, default=0.9
        kind : {"predictive", "mean"}, default="predictive"
            Intervals of a new observation, or of the regression function.
        y_name : str or None, default=None
            Name of the vertical axis, with its unit. None: the name of a series ``y``, or "y".
        ax : matplotlib Axes, default=None
            Axes to draw on. None: new ones.
        **by_row : dict
            Arguments by row of the model, such as ``exposure``.

        Returns
        -------
        display : PredictiveIntervalDisplay
        """
        model = unwrap_for(cls.__name__, "predict_interval", estimator, params=by_row).model
        if y is not None:
            check_by_row_given(model, by_row, f"{cls.__name__}.from_estimator")
        interval = predict_interval(estimator, X, coverage, kind, **by_row)
        center = predict_quantiles(estimator, X, [0.5], kind, **by_row)[:, 0]
        x, x_name = None, "x"
        if np.shape(X)[1] == 1:
            x = np.asarray(X)[:, 0]
            x_name = str(getattr(X, "columns", ["x"])[0])
        name = y_name or getattr(y, "name", None) or "y"
        if y is not None:
            y = as_array(y, "y")
            check_lengths(X=interval, y=y)
        return cls.from_predictions(
            y, interval, center=center, x=x, coverage=coverage, x_name=x_name, y_name=name, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        interval: ArrayLike,
        *,
        center: ArrayLike | None = None,
        x: ArrayLike | None = None,
        coverage: float = 0.9,
        x_name: str = "x",
        y_name: str = "y",
        ax: Any = None,
    ) -> PredictiveIntervalDisplay:
        """Display of intervals.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            Observations.
        interval : array-like of shape (n_samples, 2)
        center : array-like of shape (n_samples,), default=None
            Centres; None: the middle of each interval.
        x : array-like of shape (n_samples,), default=None
            Horizontal position of each row; None to sort rows by their centres.
        coverage : float, default=0.9
            Probability of the intervals.
        x_name, y_name : str, default="x" and "y"
            Names of the axes, with units.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: new ones.

        Returns
        -------
        display : PredictiveIntervalDisplay
        """
        check_number(coverage, "coverage", low=0, high=1)
        ends = bounds_of(interval, "interval", (2,))
        if ends.shape[1] != 2:
            raise ValueError(f"interval has shape {ends.shape}; it must be (n_samples, 2).")
        check_order(ends)
        middle = ends.mean(axis=1) if center is None else bounds_of(center, "center", (1,))
        observed = None if y_true is None else as_array(y_true, "y_true")
        at = None if x is None else as_array(x, "x")
        points = {"center": middle, "y_true": observed, "x": at}
        check_lengths(interval=ends, **{k: v for k, v in points.items() if v is not None})
        display = cls(ends, middle, observed, at, coverage, x_name, y_name)
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> PredictiveIntervalDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : PredictiveIntervalDisplay
        """
        panel = self._panel(ax)
        order = np.argsort(self.center if self.x is None else self.x, kind="stable")
        at = np.arange(len(order)) if self.x is None else self.x[order]
        low, high = self.interval[order].T
        name = f"{percent(self.coverage)} interval"
        step = {"step": "mid"} if self.x is None else {}
        self.band_ = panel.fill_between(
            at, low, high, color=BLUE, alpha=0.22, linewidth=0, label=name, **step
        )
        (self.line_,) = panel.plot(at, self.center[order], color=BLUE, linewidth=1.4)
        self.inside_ = self.outside_ = title = None
        if self.y_true is not None:
            y = self.y_true[order]
            inside = (low <= y) & (y <= high)
            size = float(np.clip(60.0 / np.sqrt(len(y)), 2.0, 5.0))
            (self.inside_,) = panel.plot(
                at[inside], y[inside], "o", color=GREY, markersize=size, label="inside"
            )
            (self.outside_,) = panel.plot(
                at[~inside], y[~inside], "D", color=ORANGE, markersize=size, label="outside"
            )
            share = percent(round(float(inside.mean()), 3))
            title = f"{inside.sum()} of {len(y)} observations ({share}) inside"
        rows = "rows, sorted by prediction"
        panel.set(xlabel=rows if self.x is None else self.x_name, ylabel=self.y_name)
        finish(panel, title, "best")
        return self


@numpy_defaults
@dataclass(eq=False, repr=False)
class CoverageDisplay(Display):
    """Coverage: observed share of observations in intervals of each nominal coverage.

    The band is a credible interval of each share. If intervals are calibrated, the diagonal lies in
    the band.

    Parameters
    ----------
    coverage : ndarray of shape (n_coverages,)
        Nominal coverages.
    observed : ndarray of shape (n_coverages,)
        Shares of the observations that were inside.
    n_data_points : int
    band_coverage : float, default=0.9
        Probability of the band at each coverage.
    name : str or None, default=None
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : Line2D
    band_ : PolyCollection
    """

    coverage: Array
    observed: Array
    n_data_points: int
    band_coverage: float = 0.9
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        coverage: ArrayLike = _LEVELS,
        band_coverage: float = 0.9,
        name: str | None = None,
        ax: Any = None,
        color: Any = BLUE,
        **by_row: Any,
    ) -> CoverageDisplay:
        """Display of a fitted regressor's intervals.

        Parameters
        ----------
        estimator : estimator
            Fitted regressor, or wrappers around one.
        X : array-like of shape (n_samples, n_features)
            Rows that the fit has not seen; those of the fit are covered more often.
        y : array-like of shape (n_samples,)
        coverage : array-like of shape (n_coverages,), default=(0.1, 0.2 ... 0.9, 0.95)
        band_coverage : float, default=0.9
            Probability of the band.
        name : str or None, default=None
            Name in the legend. None: the class of the model.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: new ones.
        color : Matplotlib color, default="#0072B2"
        **by_row : dict
            Arguments by row of the model, such as ``exposure``.

        Returns
        -------
        display : CoverageDisplay
        """
        unwrapped = unwrap_for(cls.__name__, "predict_interval", estimator, X, by_row)
        check_by_row_given(unwrapped.model, by_row, f"{cls.__name__}.from_estimator")
        check_number(band_coverage, "band_coverage", low=0, high=1)
        y = as_array(y, "y")
        check_size(float(np.abs(y).max(initial=0.0)), "y", low=0.0)
        levels = check_levels(coverage, "coverage")
        name = type(unwrapped.model).__name__ if name is None else name
        with np.errstate(all="ignore"):
            z = np.asarray(unwrapped.to_model(np.sort(y)), dtype=float)
        steps = np.diff(z[np.isfinite(z)])
        if not (np.all(steps >= 0) or np.all(steps <= 0)):
            interval = predict_interval(estimator, X, levels, **by_row)
            check_lengths(X=interval, y=y)
            return cls.from_predictions(
                y, interval, levels, band_coverage=band_coverage, name=name, ax=ax, color=color
            )
        observed = _share_inside(unwrapped, y, levels, by_row)
        return cls(levels, observed, len(y), band_coverage, name).plot(ax=ax, color=color)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        interval: ArrayLike,
        coverage: ArrayLike = _LEVELS,
        *,
        band_coverage: float = 0.9,
        name: str | None = None,
        ax: Any = None,
        color: Any = BLUE,
    ) -> CoverageDisplay:
        """Display of intervals of several coverages.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        interval : array-like of shape (n_samples, 2, n_coverages)
            Ends of the intervals, as from ``predict_interval`` with several coverages.
        coverage : array-like of shape (n_coverages,), default=(0.1, 0.2 ... 0.9, 0.95)
        band_coverage : float, default=0.9
            Probability of the band.
        name : str or None, default=None
            Name in the legend.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: new ones.
        color : Matplotlib color, default="#0072B2"

        Returns
        -------
        display : CoverageDisplay
        """
        check_number(band_coverage, "band_coverage", low=0, high=1)
        levels = check_levels(coverage, "coverage")
        observed = np.atleast_1d(interval_coverage(y_true, interval))
        if len(observed) != len(levels):
            raise ValueError(
                f"interval has {len(observed)} coverages on its last axis; coverage has "
                f"{len(levels)}."
            )
        display = cls(levels, observed, len(np.asarray(y_true)), band_coverage, name)
        return display.plot(ax=ax, color=color)

    def plot(self, ax: Any = None, color: Any = BLUE) -> CoverageDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        color : Matplotlib color, default="#0072B2"

        Returns
        -------
        display : CoverageDisplay
        """
        panel = self._panel(ax, (5.0, 5.0))
        _draw_diagonal(panel, 0.0)
        low, high = share_interval(self.observed, self.n_data_points, self.band_coverage)
        self.band_ = panel.fill_between(
            self.coverage, low, high, color=color, alpha=0.2, linewidth=0
        )
        (self.line_,) = panel.plot(
            self.coverage, self.observed, "o-", color=color, markersize=4, label=self.name
        )
        panel.set(xlabel="nominal coverage", ylabel="share of the observations inside")
        title = f"{self.n_data_points} observations; band: {percent(self.band_coverage)} credible"
        finish(panel, title, None if self.name is None else "upper left")
        return self


@numpy_defaults
@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    """Calibration of probabilities: the observed share in bins of the predicted probability.

    The credible interval of each share separates miscalibration from chance.

    Parameters
    ----------
    bins : Bins
        Mean probability, observed share and weight of each bin.
    coverage : float, default=0.9
        Probability of the intervals.
    event : str, default="the event"
        Name of the event.
    name : str or None, default=None
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : Line2D
        Mean probability and observed share of each bin.
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
        n_bins: int = 10,
        strategy: str = "uniform",
        coverage: float = 0.9,
        name: str | None = None,
        ax: Any = None,
        color: Any = BLUE,
        **by_row: Any,
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
        n_bins, strategy, coverage, ax, color : object
            As in :meth:`from_predictions`.
        name : str or None, default=None
            Name in the legend. None: the class of the model.
        **by_row : dict
            Arguments by row that the model takes. A total of ``n_trials`` counts as so many rows.

        Returns
        -------
        display : ReliabilityDisplay
        """
        model = unwrap_for(cls.__name__, "predict_proba", estimator, params=by_row).model
        check_by_row_given(model, by_row, f"{cls.__name__}.from_estimator")
        k = _position(estimator, pos_label)
        y = as_array(y, "y", dtype=None)
        y, proba, number = label_rows(estimator, X, y, None, by_row)
        check_lengths(X=proba, y=y)
        happened, p = y == estimator.classes_[k], proba[:, k]
        if number is not None:
            happened, p = (np.repeat(each, number.astype(int)) for each in (happened, p))
        return cls.from_predictions(
            happened,
            p,
            n_bins=n_bins,
            strategy=strategy,
            coverage=coverage,
            event=f"class {estimator.classes_[k]}",
            name=type(model).__name__ if name is None else name,
            ax=ax,
            color=color,
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
            Bins of equal width, or with equal numbers of rows.
        coverage : float, default=0.9
            Probability of the intervals.
        event : str, default="the event"
            Name of the event, on the axes.
        name : str or None, default=None
            Name in the legend.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: new ones.
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
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        color : Matplotlib color, default="#0072B2"

        Returns
        -------
        display : ReliabilityDisplay
        """
        panel = self._panel(ax, (5.0, 5.0))
        _draw_diagonal(panel, 0.02)
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
        Values of the columns, as from ``numpy.meshgrid``.
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
        Contours of the probability.
    shades_ : QuadMesh
        Shades of the width.
    points_ : list of Line2D
        Rows of each class, if given.
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
        """Display of a classifier fitted to two columns.

        Parameters
        ----------
        estimator : estimator
            Fitted classifier, or wrappers around one.
        X : array-like of shape (n_samples, 2)
            Rows whose range is shown, with a margin.
        y : array-like of shape (n_samples,), default=None
            Labels of the rows; if given, the rows are shown too.
        pos_label : label or None, default=None
            Class whose probability is shown. None: the second of two.
        coverage : float, default=0.9
            Probability of the interval whose width is shown.
        grid_resolution : int, default=60
            Points along each axis.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: new ones.

        Returns
        -------
        display : ProbabilityContourDisplay
        """
        unwrap_for(cls.__name__, "predict_proba_interval", estimator)
        values = as_array(X, "X", (2,))
        if values.shape[1] != 2:
            raise ValueError(f"X has {values.shape[1]} columns; contours are drawn over two.")
        check_number(grid_resolution, "grid_resolution", low=2, closed="left", integer=True)
        margin = 0.1 * np.ptp(values, axis=0)
        ends = values.min(axis=0) - margin, values.max(axis=0) + margin
        x0, x1 = np.meshgrid(*np.linspace(*ends, grid_resolution).T)
        grid = np.column_stack([x0.ravel(), x1.ravel()])
        names = ("x0", "x1")
        if hasattr(X, "columns"):
            names = (str(X.columns[0]), str(X.columns[1]))
            grid = type(X)(grid, columns=X.columns)
        k = _position(estimator, pos_label)
        if y is not None:
            y = as_array(y, "y", dtype=None)
            check_lengths(X=values, y=y)
        p = estimator.predict_proba(grid)[:, k].reshape(x0.shape)
        low, high = predict_proba_interval(estimator, grid, coverage)[:, k].T
        width = (high - low).reshape(x0.shape)
        event = f"class {estimator.classes_[k]}"
        return cls(x0, x1, p, width, coverage, names, event).plot(ax=ax, X=values, y=y)

    def plot(self, ax: Any = None, X: Any = None, y: Any = None) -> ProbabilityContourDisplay:
        """Draw the figure.

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

        # light enough that lines stay legible
        greys = ListedColormap(colormaps["Greys"](np.linspace(0.0, 0.55, 256)))
        shade = {"cmap": greys, "vmin": 0.0, "vmax": 1.0, "shading": "gouraud"}
        self.shades_ = panel.pcolormesh(self.x0, self.x1, self.width, **shade)
        line = {"levels": (0.1, 0.25, 0.5, 0.75, 0.9), "colors": "black", "linewidths": 1.0}
        self.contours_ = panel.contour(self.x0, self.x1, self.probability, **line)
        panel.clabel(self.contours_, fontsize="small", fmt="%g")
        self.points_ = []
        with naming("y"):
            labels = () if y is None else np.unique(y)
        for c, label in enumerate(labels):
            rows = np.asarray(X)[np.asarray(y) == label]
            color, marker = COLORS[c % len(COLORS)], "osD^v<>"[c % 7]
            style = {"color": color, "markersize": 5.5, "markeredgecolor": "white"}
            self.points_ += panel.plot(*rows.T, marker, **style, label=str(label))
        if self.points_:
            panel.legend(loc="best", framealpha=0.9)
        bar = self.figure_.colorbar(self.shades_, ax=panel)
        bar.set_label(f"width of the {percent(self.coverage)} credible interval")
        panel.set(xlabel=self.names[0], ylabel=self.names[1])
        panel.set_title(f"Contours: probability of {self.event}", fontsize="medium", loc="left")
        show_as_written(panel)
        return self


@numpy_defaults
@dataclass(eq=False, repr=False)
class PartialDependenceDisplay(Display):
    """Partial dependence: the mean response along one column, with credible bands.

    For each value of the column, all rows are given that value, and their expected response is
    averaged (Friedman 2001), under every draw. Lines are posterior means. At each value a band
    contains the mean response with the given probability; new observations vary more. The levels
    of a factor are points with intervals.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Values of the column; levels of a factor as objects.
    mean : ndarray of shape (n_values, n_lines)
    interval : ndarray of shape (n_values, 2, n_lines)
    names : list of str or None, default=None
        Names of the lines: classes, or outputs.
    coverage : float, default=0.9
        Probability of the bands.
    column, y_name : str, default="x" and "y"
        Names of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of Line2D, or of ErrorbarContainer
    bands_ : list of PolyCollection
        Empty for a factor.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.plotting import PartialDependenceDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SGLDLinearRegression(random_state=0).fit(X, y)
    >>> display = PartialDependenceDisplay.from_estimator(model, X, "bmi", grid_resolution=20)
    >>> display.ax_.get_xlabel(), display.interval.shape
    ('bmi', (20, 2, 1))
    """

    values: Array
    mean: Array
    interval: Array
    names: list[str] | None = None
    coverage: float = 0.9
    column: str = "x"
    y_name: str = "y"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        column: Any,
        *,
        kind: str = "average",
        factors: Any = None,
        coverage: float = 0.9,
        grid_resolution: int = 50,
        n_rows: int | None = 500,
        random_state: Any = 0,
        groups: str | None = None,
        y_name: str | None = None,
        ax: Any = None,
        **by_row: Any,
    ) -> PartialDependenceDisplay:
        """Display of a fitted model.

        Parameters
        ----------
        estimator : estimator
            As in :func:`skbayes_sgld.effects`.
        X : array-like of shape (n_samples, n_features)
            Rows to average over, as the outermost wrapper takes them.
        column : str or int
            Column of X by name, or by position.
        kind : {"average", "at_mean"}, default="average"
            ``"average"``: the mean over the rows. ``"at_mean"``: one row, with the mean of every
            numeric column and the most frequent level of every other column.
        factors : str, int or list of these, default=None
            Numeric columns to treat as factors, besides those that :func:`skbayes_sgld.effects`
            finds.
        coverage : float, default=0.9
        grid_resolution : int, default=50
            Number of values, at most 1,000, evenly spaced over the range of a numeric column.
        n_rows : int or None, default=500
            Number of rows to predict under all draws, as in :func:`skbayes_sgld.effects`. The means
            and bands are those of all rows. With more rows, means are first expanded to second
            order in the parameters; rows are predicted where that is not accurate.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the choice of rows.
        groups : {"population"} or None, default=None
            ``"population"`` leaves effects of groups out, as in :func:`skbayes_sgld.effects`.
        y_name : str or None, default=None
            Name of the vertical axis, with its unit. None: "probability" for a classifier, with the
            name of the second of two classes, and "y" otherwise.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: new ones.
        **by_row : dict
            Arguments by row, as in :func:`skbayes_sgld.effects`.

        Returns
        -------
        display : PartialDependenceDisplay
            With one line for each output or class; with two classes, only for the second.
        """
        check_number(coverage, "coverage", low=0, high=1)
        check_number(
            grid_resolution, "grid_resolution", low=2, high=1000, closed="both", integer=True
        )
        name, values, draws = dependence(
            *(estimator, X, column, kind, grid_resolution, factors),
            *(n_rows, random_state, groups, by_row),
        )
        of, labels = components(unwrap(estimator).model)
        draws = np.reshape(draws, (*draws.shape[:2], -1))
        second = of == "class" and len(labels) == 2
        response = "y" if of != "class" else "probability"
        if second:
            draws, response = draws[..., [1]], f"probability of class {labels[1]}"
        display = cls(
            values,
            draws.mean(axis=1),
            np.moveaxis(np.quantile(draws, tails(coverage), axis=1), 0, 1),
            None if of is None or second else [str(one) for one in labels],
            coverage,
            name,
            y_name or response,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> PartialDependenceDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : PartialDependenceDisplay
        """
        panel = self._panel(ax)
        factor = self.values.dtype == object
        at = np.arange(len(self.values)) if factor else self.values
        self.lines_, self.bands_ = [], []
        names: list[Any] = self.names or [None]
        for k, (mean, name) in enumerate(zip(self.mean.T, names, strict=True)):
            low, high = self.interval[..., k].T
            color = COLORS[k % len(COLORS)]
            if factor:
                ends = [mean - low, high - mean]
                style = {"fmt": "o", "capsize": 3.0, "color": color, "label": name}
                self.lines_.append(panel.errorbar(at, mean, ends, **style))
                continue
            band = panel.fill_between(at, low, high, color=color, alpha=0.22, linewidth=0)
            self.bands_.append(band)
            self.lines_ += panel.plot(at, mean, color=color, linewidth=1.4, label=name)
        if factor:
            ticks = tick_names(self.values)
            crowded = sum(map(len, ticks)) > _MOST_LETTERS
            panel.set_xticks(at, ticks, rotation=90.0 if crowded else 0.0)
        panel.set(xlabel=self.column, ylabel=self.y_name)
        title = f"mean response, {percent(self.coverage)} credible"
        finish(panel, title, None if self.names is None else "best")
        return self


def _position(estimator: Any, pos_label: Any) -> int:
    """Position of the class to show among those of a fitted classifier."""
    if not hasattr(estimator, "classes_"):
        raise TypeError(f"estimator={estimator!r} has no classes_; give a fitted classifier.")
    classes = estimator.classes_
    if pos_label is None:
        if len(classes) != 2:
            raise ValueError(
                f"pos_label is None, and there are {len(classes)} classes; give one of them: "
                f"{classes.tolist()}."
            )
        return 1
    if pos_label not in classes:
        raise ValueError(f"pos_label={pos_label!r} is not a class; there are {classes.tolist()}.")
    return int(np.flatnonzero(classes == pos_label)[0])


def _share_inside(unwrapped: Unwrapped, y: Array, coverage: Array, by_row: dict[str, Any]) -> Array:
    """Share of the observations in intervals of each coverage ``(n_coverages,)``.

    It is computed from the distribution function at y, since each quantile would take a search. The
    ends of intervals of whole numbers are inside.
    """
    with np.errstate(all="ignore"):
        z = np.asarray(unwrapped.to_model(y), dtype=float)[:, None]
    known = np.isfinite(z)  # the others are out of the transformation's range
    z = np.where(known, z, 0.0)
    if unwrapped.model._fitted.target.likelihood.whole:
        z = np.hstack([z, np.ceil(z) - 1.0])
    cdf = unwrapped.model.predict_cdf(unwrapped.X, z, **by_row)
    low, high = tails(coverage)
    above = cdf[:, [0]] >= low
    below = cdf[:, [1]] < high if z.shape[1] > 1 else cdf <= high
    share: Array = np.mean(known & above & below, axis=0)
    return share


def _draw_diagonal(panel: Any, margin: float) -> None:
    """Draw the diagonal, on equal axes from 0 to 1 with a margin."""
    panel.axline((0.0, 0.0), slope=1.0, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
    ends = (-margin, 1.0 + margin)
    panel.set(xlim=ends, ylim=ends, aspect="equal")
