"""Draws of two parameters against each other."""

from typing import Any

from skbayes_sgld.plotting.axes import BLUE, finish
from skbayes_sgld.plotting.draws import DrawsDisplay


class PairDisplay(DrawsDisplay):
    """Scatter of the draws of two parameters.

    >>> from sklearn.datasets import load_diabetes
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SGLDLinearRegression(n_draws=200, random_state=0).fit(X, y)
    >>> display = PairDisplay.from_estimator(model, parameters=["coef[s1]", "coef[s2]"])
    >>> display.points_.get_xdata().shape
    (800,)
    """

    _most = 2  # parameters shown if none are named

    def plot(self, ax: Any = None):
        panel = self._panel(ax, (5.0, 5.0))
        x, y = self._flat()[0]
        (self.points_,) = panel.plot(x, y, ".", color=BLUE, alpha=0.2)
        panel.set(xlabel=self.names[0], ylabel=self.names[1])
        finish(panel)
        return self
