"""Display of the mean response along one column, with its credible band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skbayes_sgld._checks import check_number
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.plotting.axes import COLORS, Array, Display, finish, percent
from skbayes_sgld.prediction.effects import components, dependence
from skbayes_sgld.prediction.intervals import tails
from skbayes_sgld.prediction.wrappers import unwrap


@numpy_defaults
@dataclass(eq=False, repr=False)
class PartialDependenceDisplay(Display):
    """Partial dependence: the mean response along one column, with credible bands.

    At each value of the column all rows get that value, and the expected response is averaged over
    them (Friedman 2001), under every draw. Lines are posterior means. A band holds the mean
    response of a draw with the given probability at each value; new observations vary more. The
    levels of a factor are points with intervals.

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
    >>> display = PartialDependenceDisplay.from_estimator(model, X, "bmi", y_name="progression")
    >>> display.ax_.get_xlabel(), display.interval.shape
    ('bmi', (50, 2, 1))
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
        coverage: float = 0.9,
        grid_resolution: int = 50,
        exposure: ArrayLike | None = None,
        y_name: str | None = None,
        ax: Any = None,
    ) -> PartialDependenceDisplay:
        """Display of a fitted model.

        Parameters
        ----------
        estimator : estimator
            As in :func:`skbayes_sgld.effects`.
        X : array-like of shape (n_samples, n_features)
            Rows to average over, as the outermost wrapper takes them. The time grows with rows,
            draws, classes and ``grid_resolution``; of many rows give a random part.
        column : str or int
            Column of X by name, or by position.
        kind : {"average", "at_mean"}, default="average"
            ``"average"``: the mean over the rows. ``"at_mean"``: one row, of the mean of every
            column of numbers and the most frequent level of every other.
        coverage : float, default=0.9
        grid_resolution : int, default=50
            Number of values, at most 1,000, equidistant over the range of a column of numbers.
        exposure : array-like of shape (n_samples,) or float, default=None
            Of counts. None: 1, so that rates are drawn.
        y_name : str or None, default=None
            Name of the vertical axis, with its unit. None: "probability" of a classifier, of two
            classes with the name of the second, else "y".
        ax : matplotlib Axes, default=None
            Where to draw. None: in a new figure.

        Returns
        -------
        display : PartialDependenceDisplay
            With a line for each output, or for each of more than two classes; of two classes the
            line is that of the second.
        """
        check_number(coverage, "coverage", low=0, high=1)
        check_number(
            grid_resolution, "grid_resolution", low=2, high=1000, closed="both", integer=True
        )
        name, values, draws = dependence(estimator, X, column, kind, grid_resolution, exposure)
        of, found = components(unwrap(estimator).model)
        draws = np.reshape(draws, (*draws.shape[:2], -1))
        second = of == "class" and len(found) == 2
        response = "y" if of != "class" else "probability"
        if second:
            draws, response = draws[..., [1]], f"probability of class {found[1]}"
        display = cls(
            values,
            draws.mean(axis=1),
            np.moveaxis(np.quantile(draws, tails(coverage), axis=1), 0, 1),
            None if of is None or second else [str(one) for one in found],
            coverage,
            name,
            y_name or response,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> PartialDependenceDisplay:
        """Draw it.

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
            panel.set_xticks(at, [str(value) for value in self.values])
        panel.set(xlabel=self.column, ylabel=self.y_name)
        title = f"mean response, {percent(self.coverage)} credible"
        finish(panel, title, None if self.names is None else "best")
        return self
