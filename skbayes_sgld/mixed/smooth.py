r"""Curves of a column by penalised splines: ``{"age": 10}``, ``{"age": Smooth(n_basis=20)}``.

A curve is a sum of B-splines with equally spaced knots. The sum of squared second differences of
their coefficients is penalised (Eilers & Marx 1996). No straight line has a second difference: the
line is the column's own coefficient, and what is left, the bend, is :math:`Z u` with
:math:`u \sim N(0, s^2 I)`, where the columns of Z belong to the eigenvectors of the penalty with
positive eigenvalues, each divided by its root. So the penalty is :math:`1 / s^2`, and s is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import BSpline

from skbayes_sgld._checks import check_number, column_position, naming
from skbayes_sgld._components import Component
from skbayes_sgld._numpy_errors import numpy_defaults
from skbayes_sgld._typing import Array
from skbayes_sgld._warnings import warn
from skbayes_sgld.mixed.term import Term, column_of
from skbayes_sgld.priors.group import GroupPrior

_FEW_BASES = 50  # B-splines that cost little, however few values their column has
_FEWEST_PIECES, _CROWDED = 4, 0.9  # share of distinct values in one piece between knots


@numpy_defaults
@dataclass(eq=False, repr=False)
class Smooth(Component):
    """A smooth curve of one column, whose bend has a learned scale.

    The curve is a straight line, with the coefficient of the column, and a bend about it, made of
    B-splines with equally spaced knots over the range of the rows of the fit, whose second
    differences are small (P-splines). Where the rows show no bend its scale goes to 0, and the line
    remains. Outside the range of the fit each draw of the curve goes on as a straight line.

    Parameters
    ----------
    n_basis : int, default=10
        Number of B-splines. It limits how fast the curve may turn; the learned scale does the
        rest, so that a large number does not overfit. The time of a fit grows with its cube; more
        than 50 need as many distinct values of the column.
    degree : int, default=3
        Degree of the polynomials between knots.
    scale : "auto" or float, default="auto"
        Scale of the half-Student-t prior of the bend's standard deviation, which is the root mean
        square of the bend over the rows of the fit, as the prior expects it. ``"auto"`` is the
        standard deviation of y in models with noise, and 1 in others, on the scale of the link.
    degrees_of_freedom : float, default=3.0
        Of this prior.

    References
    ----------
    Eilers & Marx (1996), Flexible smoothing with B-splines and penalties. Statistical Science 11.

    Wood (2017), Generalized additive models, section 5.8.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayes_sgld import SGLDLinearRegression, Smooth
    >>> x = np.linspace(0.0, 6.0, 200)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=200)
    >>> model = SGLDLinearRegression(smooth_effects={0: Smooth(n_basis=12)}, random_state=0)
    >>> model.fit(x, y).predict([[0.5 * np.pi], [1.5 * np.pi]]).round(1)
    array([ 1., -1.])
    """

    n_basis: int = 10
    degree: int = 3
    scale: Any = "auto"
    degrees_of_freedom: float = 3.0

    def check(self) -> None:
        """Raise if a parameter is out of range."""
        check_number(self.degree, "degree", low=1, high=10, closed="both", integer=True)
        least = max(4, self.degree + 1)
        check_number(self.n_basis, "n_basis", low=least, high=1000, closed="both", integer=True)
        if not (isinstance(self.scale, str) and self.scale == "auto"):
            check_number(self.scale, "scale", low=0)
        check_number(self.degrees_of_freedom, "degrees_of_freedom", low=0)


@dataclass(frozen=True, eq=False)
class Bend(Term):
    """The bend of a curve, whose effects are in every row.

    Attributes
    ----------
    smooth : Smooth
    column : int
        Position of its column in X.
    low, high : float
        Range of the column in the rows of the fit.
    spline : BSpline
        Columns of the bend, of the column scaled to [0, 1], before they lose their lines.
    lines : ndarray of shape (2, q)
        Intercepts and slopes of the lines that they lose.
    """

    smooth: Smooth
    column: int
    low: float
    high: float
    spline: BSpline
    lines: Array

    by_label = False

    @classmethod
    def learned(cls, smooth: Smooth, column: int, name: str, X: Any, weight: Array | None) -> Bend:
        """Bend over the checked rows X of a fit."""
        x = column_of(X, column)
        weight = np.ones(len(x)) if weight is None else weight
        x, weight = x[weight > 0], weight[weight > 0]
        distinct = np.unique(x)
        if len(distinct) < 3:
            raise ValueError(
                f"smooth_effects has the column {name!r}, which has {len(distinct)} distinct "
                "values in the rows of the fit; a curve needs 3 or more. Leave it out of "
                "smooth_effects."
            )
        if smooth.n_basis > max(_FEW_BASES, len(distinct)):
            raise ValueError(
                f"smooth_effects has {smooth.n_basis} B-splines for the column {name!r}, which has "
                f"{len(distinct)} distinct values in the rows of the fit: more than one a value "
                "add nothing but time, which grows with their cube. Set n_basis to at most "
                f"{max(_FEW_BASES, len(distinct))}."
            )
        low, high = float(distinct[0]), float(distinct[-1])
        _warn_if_crowded(distinct, smooth.n_basis - smooth.degree, name)
        D = np.diff(np.eye(smooth.n_basis), 2, axis=0)
        penalty, vectors = np.linalg.eigh(D.T @ D)
        # the first two eigenvalues are 0: those of constants and lines
        coefficients = vectors[:, 2:] / np.sqrt(penalty[2:])
        step = 1.0 / (smooth.n_basis - smooth.degree)
        knots = step * np.arange(-smooth.degree, smooth.n_basis + 1)
        spline = BSpline(knots, coefficients, smooth.degree)
        t = (x - low) / (high - low)
        columns, root = spline(t), np.sqrt(weight)[:, None]
        line = np.column_stack([np.ones(len(t)), t])
        lines = np.linalg.lstsq(root * line, root * columns)[0]
        rest = columns - line @ lines
        # so that the bend has a mean square of s^2 over the rows
        unit = np.sqrt(np.average(np.square(rest).sum(axis=1), weights=weight))
        spline = BSpline(knots, coefficients / unit, smooth.degree)
        labels = [str(k) for k in range(coefficients.shape[1])]
        called = f"smooth({name})"
        return cls(called, ("bend",), labels, smooth, column, low, high, spline, lines / unit)

    @property
    def reads(self) -> set[int]:
        """Column of X along which it bends."""
        return {self.column}

    def matrix(self, X: Any) -> Array:
        """Columns of the bend ``(n, q)``; they go on straight outside the range of the fit."""
        t = (column_of(X, self.column) - self.low) / (self.high - self.low)
        inside = t.clip(0.0, 1.0)
        columns: Array = self.spline(inside) - self.lines[0] - t[:, None] * self.lines[1]
        outside = np.flatnonzero(t != inside)
        if outside.size:
            beyond = (t - inside)[outside, None]
            columns[outside] += beyond * self.spline.derivative()(inside[outside])
        return columns

    def unit(self, X: Any, weight: Array | None) -> Array:
        """1: the bend is in units of the predictor."""
        return np.ones(1)

    def prior(self, group_prior: GroupPrior) -> GroupPrior:
        """Prior of the bend's standard deviation."""
        smooth = self.smooth
        return GroupPrior(smooth.scale, smooth.degrees_of_freedom)

    def add(self, eta: Array, X: Any, effects: Array, drawn: Callable[[float], Array]) -> None:
        """Add the bend to predictors."""
        eta += self.matrix(X) @ effects[0]

    def sums(self, X: Any, weight: Array, effects: Array, drawn: Callable[[float], Array]) -> Array:
        """Sums of bends."""
        sums: Array = weight.T @ self.matrix(X) @ effects[0]
        return sums

    @property
    def effect_names(self) -> list[str]:
        """``effect[smooth(age), 0]``."""
        return [f"effect[{self.name}, {label}]" for label in self.labels]

    def scale_names(self, pairs: Sequence[tuple[int, int]]) -> list[str]:
        """``sd[smooth(age)]``."""
        return [f"sd[{self.name}]"]


def _warn_if_crowded(distinct: Array, n_pieces: int, name: str) -> None:
    """Warn if nearly all values of a column lie between two knots, where its curve cannot turn."""
    counts, ends = np.histogram(distinct, n_pieces)
    at = int(np.argmax(counts))
    if n_pieces >= _FEWEST_PIECES and counts[at] > _CROWDED * len(distinct):
        warn(
            f"smooth_effects has the column {name!r}, and {counts[at]} of its {len(distinct)} "
            f"distinct values lie between {ends[at]:.4g} and {ends[at + 1]:.4g}, one of {n_pieces} "
            "equal pieces of its range, within which a curve cannot turn; take the logarithm of "
            "the column, or clip values that are far from the others.",
            UserWarning,
        )


def learn_bends(
    smooth_effects: Mapping[Any, Any],
    X: Any,
    weight: Array | None,
    names: Sequence[str] | None,
    labels: Mapping[int, Any],
) -> list[Bend]:
    """Bends of the columns that ``smooth_effects`` names, over the checked rows of a fit.

    ``labels`` has the positions of columns of labels.

    Raises
    ------
    TypeError, ValueError
        If a column is not there, has labels, or takes too few values; the error names it.
    """
    if not isinstance(smooth_effects, Mapping):
        raise TypeError(
            f"smooth_effects={smooth_effects!r} is no dict; give one of columns of numbers to "
            "numbers of B-splines, such as {'age': 10}."
        )
    if not smooth_effects:
        raise ValueError(
            "smooth_effects={} has no curve; set it to None, or give one, such as {'age': 10}."
        )
    bends: dict[int, Bend] = {}
    for key, value in smooth_effects.items():
        smooth = _smooth(key, value)
        j = column_position(key, X.shape[1], names, "smooth_effects")
        name = f"x{j}" if names is None else str(names[j])
        if j in labels:
            raise ValueError(
                f"smooth_effects has the column {name!r}, which group_effects names as one of "
                "labels; curves are of columns of numbers."
            )
        if j in bends:
            raise ValueError(f"smooth_effects names the column {name!r} twice.")
        bends[j] = Bend.learned(smooth, j, name, X, weight)
    return list(bends.values())


def _smooth(key: Any, value: Any) -> Smooth:
    """The curve that a value of ``smooth_effects`` stands for, checked."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        value = Smooth(n_basis=int(value))
    if not isinstance(value, Smooth):
        raise TypeError(
            f"smooth_effects[{key!r}]={value!r} is not accepted; give a number of B-splines, such "
            "as 10, or a Smooth(n_basis=10, degree=3)."
        )
    with naming(f"smooth_effects[{key!r}]"):
        value.check()
    return value
