"""A geometric schedule."""

from dataclasses import dataclass

import numpy as np

from skbayes_sgld.sampling import Schedule


@dataclass(eq=False, repr=False)
class Geometric(Schedule):
    """Multiplier ``max(ratio^t, floor)``.

    >>> Geometric(ratio=0.5, floor=0.1)([0, 1, 2, 10]).tolist()
    [1.0, 0.5, 0.25, 0.1]
    >>> from skbayes_sgld import SGLDLinearRegression
    >>> from skbayes_sgld.datasets import make_correlated_pair
    >>> X, y = make_correlated_pair(100, random_state=0)
    >>> model = SGLDLinearRegression(schedule=Geometric(ratio=0.99), thin=10, random_state=0)
    >>> weights = model.fit(X, y).posterior_.weights
    >>> bool(weights[0] > weights[-1] > 0)
    True
    >>> SGLDLinearRegression(schedule=Geometric(ratio=2.0)).fit(X, y)
    Traceback (most recent call last):
    ...
    ValueError: schedule.ratio=2.0 is out of range; it must be between 0 and 1.
    """

    ratio: float = 0.999
    floor: float = 0.1

    def check(self, argument="schedule"):
        if not 0.0 < self.ratio < 1.0:
            raise ValueError(
                f"{argument}.ratio={self.ratio!r} is out of range; it must be between 0 and 1."
            )

    def __call__(self, t):
        return np.maximum(self.ratio ** np.asarray(t, dtype=float), self.floor)
