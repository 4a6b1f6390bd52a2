"""Displays of effects of groups: the effects sorted, and how far pooling moves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skbayes_sgld._checks import check_number
from skbayes_sgld._doors import Door
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld.diagnostics import quantiles, tails
from skbayes_sgld.plotting.axes import (
    BLUE,
    GREY,
    ORANGE,
    Array,
    Display,
    finish,
    percent,
    tick_names,
)
from skbayes_sgld.prediction.wrappers import unwrap_for
from skbayes_sgld.rows.arguments import check_by_row_given

_EFFECTS = Door("skbayes_sgld.mixed.shrinkage", "effects_of_term")
_OWN_MEANS = Door("skbayes_sgld.mixed.shrinkage", "own_means")
_INNER = 0.5  # probability of the thick part of an interval
_DASHED = (0, (4, 3))


@numpy_defaults
@dataclass(eq=False, repr=False)
class GroupEffectsDisplay(Display):
    """Effects of groups, sorted, with their credible intervals; 0 is the population.

    Effects are deviations from the population, in the units of the linear predictor.

    Parameters
    ----------
    values : ndarray of shape (n_draws, n_shown, n_effects)
        Draws of the effects, in the order in which the labels are shown.
    labels : list
    effects : list of str
        Names of the effects, each with a panel.
    term : str
        Name of the term, such as ``"Subject"``.
    weights : ndarray of shape (n_draws,) or None, default=None
        Weights of the draws.
    n_labels : int or None, default=None
        Number of all labels; the title gives it if some are left out.

    Attributes
    ----------
    ax_ : ndarray of Axes, of shape (n_effects,)
    figure_ : matplotlib Figure
    points_ : list of Line2D
        The means, for each effect.
    intervals_ : ndarray of shape (n_effects, n_shown, 2)
        Ends of the thin lines.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.plotting import GroupEffectsDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"school": rng.choice(list("abcdef"), 120), "x": rng.normal(size=120)})
    >>> y = X["x"] + X["school"].map(ord) + rng.normal(size=120)
    >>> model = SGLDLinearRegression(group_effects={"school": "intercept"}, random_state=0)
    >>> GroupEffectsDisplay.from_estimator(model.fit(X, y)).labels
    ['a', 'b', 'c', 'd', 'e', 'f']
    """

    values: Array
    labels: list[Any]
    effects: list[str]
    term: str
    weights: Array | None = None
    n_labels: int | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        term: str | None = None,
        effect: str | None = None,
        n_labels: int | None = 30,
        coverage: float = 0.9,
        ax: Any = None,
    ) -> GroupEffectsDisplay:
        """Display of a fitted model with ``group_effects``.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator, or a pipeline or a search around one.
        term : str or None, default=None
            Name of the term: of its column, or of both, ``"a:b"``. None: the first.
        effect : str or None, default=None
            ``"intercept"``, or the name of a column with slopes. None: all of the term, in panels
            side by side, sorted by the first.
        n_labels : int or None, default=30
            Number of labels to show, half of them the lowest and half the highest. None: all.
        coverage : float, default=0.9
            Probability of the intervals of the thin lines, 0.5 or more.
        ax : array-like of Axes, default=None
            One for each effect. None: new ones.

        Returns
        -------
        display : GroupEffectsDisplay
        """
        model = unwrap_for(cls.__name__, "group_prior_", estimator).model
        _check_n_labels(n_labels)
        some = _EFFECTS.open()(model, term, effect, n_labels)
        parts = some.values, some.labels, some.effects, some.term
        weights = model.posterior_.flat_weights
        return cls(*parts, weights, some.n_labels).plot(ax=ax, coverage=coverage)

    def plot(self, ax: Any = None, coverage: float = 0.9) -> GroupEffectsDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : array-like of Axes, default=None
            One for each effect.
        coverage : float, default=0.9
            Probability of the intervals of the thin lines; that of the thick lines is 50 %.

        Returns
        -------
        display : GroupEffectsDisplay
        """
        check_number(coverage, "coverage", low=_INNER, high=1)
        n, q = len(self.labels), len(self.effects)
        panels = self._panels(ax, (3.2 + 3.2 * q, _height(n)), q, across=True)
        self.points_, intervals = [], []
        for k, (panel, effect) in enumerate(zip(panels, self.effects, strict=True)):
            each = self.values[..., k].T
            thin, thick = (quantiles(each, tails(p), self.weights) for p in (coverage, _INNER))
            at = _draw_rows(panel, self.labels, n < (self.n_labels or 0), k == 0)
            panel.hlines(at, *thin.T, color=BLUE, linewidth=1.3)
            panel.hlines(at, *thick.T, color=BLUE, linewidth=3.6)
            means = np.average(each, axis=1, weights=self.weights)
            self.points_ += panel.plot(
                means, at, "o", color="white", markeredgecolor=BLUE, markersize=4.5
            )
            intervals.append(thin)
            panel.set_xlabel(_called(effect))
            finish(panel, grid="x")
        self.intervals_ = np.array(intervals)
        panels[0].set_ylabel(self.term)
        shown = f"mean, {percent(_INNER)} and {percent(coverage)} interval"
        title = f"deviations from the population: {shown}" + _omitted(n, self.n_labels)
        finish(panels[0], title, grid="x")
        return self


@numpy_defaults
@dataclass(eq=False, repr=False)
class ShrinkageDisplay(Display):
    """Shrinkage: each group's own mean, and where pooling with the other groups moves it.

    All are deviations from what the model expects without the term, on the scale of the response:
    a group's own mean is that of its observations, and its effect the mean over the same rows of
    what the term adds to the expected response. In a linear regression with intercepts alone that
    is the effect itself.

    Parameters
    ----------
    own : ndarray of shape (n_shown,)
        Mean deviation of each group's observations, without pooling.
    mean : ndarray of shape (n_shown,)
        Posterior mean of each group's deviation.
    interval : ndarray of shape (n_shown, 2)
    sizes : ndarray of int of shape (n_shown,)
        Numbers of rows.
    labels : list
    term : str
    coverage : float, default=0.9
        Probability of the intervals.
    n_labels : int or None, default=None
        Number of all labels; the title gives it if some are left out.
    y_name : str, default="y"

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    own_ : PathCollection
        Own means; the area of a circle is in proportion to the number of rows.
    points_ : Line2D
        Means with pooling.
    arrows_ : list of Annotation
        From the former to the latter.
    """

    own: Array
    mean: Array
    interval: Array
    sizes: Array
    labels: list[Any]
    term: str
    coverage: float = 0.9
    n_labels: int | None = None
    y_name: str = "y"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        term: str | None = None,
        n_labels: int | None = 30,
        coverage: float = 0.9,
        y_name: str | None = None,
        ax: Any = None,
        **by_row: Any,
    ) -> ShrinkageDisplay:
        """Display of a fitted model with ``group_effects``.

        Parameters
        ----------
        estimator : estimator
            Fitted regressor or classifier of two classes, or a pipeline or a search around one.
        X : array-like of shape (n_samples, n_features)
            Rows of the fit.
        y : array-like of shape (n_samples,)
        term : str or None, default=None
            Name of the term. None: the first.
        n_labels : int or None, default=30
            Number of labels to show, half of them those with the lowest effects (of the first in
            the term) and half those with the highest. None: all.
        coverage : float, default=0.9
        y_name : str or None, default=None
            Name of the response, with its unit. None: the name of a series ``y``, or "y".
        ax : matplotlib Axes, default=None
            Axes to draw on. None: new ones.
        **by_row : dict
            Arguments by row of the model, such as ``exposure``.

        Returns
        -------
        display : ShrinkageDisplay
            Of the labels that have rows in X, sorted by their means with pooling.
        """
        check_number(coverage, "coverage", low=0, high=1)
        _check_n_labels(n_labels)
        unwrapped = unwrap_for(cls.__name__, "group_prior_", estimator, X)
        model = unwrapped.model
        if len(getattr(model, "classes_", ())) > 2:
            raise TypeError(
                f"{cls.__name__} needs a response with a mean, and {type(model).__name__} has "
                f"{len(model.classes_)} classes; GroupEffectsDisplay shows their effects."
            )
        check_by_row_given(model, by_row, f"{cls.__name__}.from_estimator")
        some = _EFFECTS.open()(model, term, None, n_labels)
        inner = unwrapped.to_model(y) if unwrapped.transformers else y
        own, n_rows, pooled = _OWN_MEANS.open()(model, unwrapped.X, inner, some, by_row)
        weights = model.posterior_.flat_weights
        means = np.average(pooled, axis=0, weights=weights)
        seen = np.flatnonzero(n_rows > 0)
        seen = seen[np.argsort(means[seen])]
        display = cls(
            own[seen],
            means[seen],
            quantiles(pooled[:, seen].T, tails(coverage), weights),
            n_rows[seen],
            [some.labels[at] for at in seen],
            some.term,
            coverage,
            some.n_labels,
            y_name or str(getattr(y, "name", None) or "y"),
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> ShrinkageDisplay:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : ShrinkageDisplay
        """
        n = len(self.labels)
        panel = self._panel(ax, (6.4, _height(n) + 0.5))
        at = _draw_rows(panel, self.labels, n < (self.n_labels or 0), True)
        name = f"with pooling, {percent(self.coverage)} interval"
        panel.hlines(at, *self.interval.T, color=BLUE, linewidth=1.3)
        style = {"arrowstyle": "->", "color": GREY, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 3}
        self.arrows_ = [
            panel.annotate("", (mean, row), (own, row), arrowprops=style)
            for mean, own, row in zip(self.mean, self.own, at, strict=True)
        ]
        area = 12.0 + 70.0 * self.sizes / self.sizes.max()
        self.own_ = panel.scatter(
            self.own, at, area, facecolor="none", edgecolor=ORANGE, label="own mean", zorder=3
        )
        (self.points_,) = panel.plot(
            self.mean, at, "o", color=BLUE, markersize=4.5, label=name, zorder=4
        )
        panel.set(ylabel=self.term, xlabel=f"{self.y_name}: deviation from the population")
        few, many = self.sizes.min(), self.sizes.max()
        each = f"{few:,}" if few == many else f"{few:,} to {many:,}"
        title = f"{each} row{'s' * bool(many > 1)} a label" + _omitted(n, self.n_labels)
        finish(panel, title, "lower right", grid="x")  # where low effects are not
        return self


def _check_n_labels(n_labels: Any) -> None:
    if n_labels is not None:
        check_number(n_labels, "n_labels", low=2, closed="left", integer=True)


def _height(n: int) -> float:
    """Height in inches of a figure with a row for each of n labels."""
    return 0.2 * n + 1.2


def _called(effect: str) -> str:
    return effect if effect == "intercept" else f"slope of {effect}"


def _omitted(n: int, n_labels: int | None) -> str:
    """Second line of a title, if some of the labels are left out."""
    if n_labels is None or n >= n_labels:
        return ""
    return f"\n{n} of {n_labels:,} labels: the lowest and the highest"


def _draw_rows(panel: Any, labels: list[Any], has_gap: bool, named: bool) -> Array:
    """Heights of the labels' rows, on which their names stand, with a line for the population."""
    n = len(labels)
    at = np.arange(n, dtype=float)
    if has_gap:
        at[n // 2 :] += 1.0
        panel.axhline(n // 2, color=GREY, linewidth=0.8, linestyle=":")
    panel.axvline(0.0, color=GREY, linewidth=0.8, linestyle=_DASHED, zorder=1)
    panel.set_yticks(at, tick_names(labels) if named else [""] * n)
    panel.set_ylim(-0.7, at[-1] + 0.7)
    return at
