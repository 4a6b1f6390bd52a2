"""Rows of the data, gathered for the chains that step on them."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]


class Rows(NamedTuple):
    """Rows of the data taken for some chains; a leading axis, of steps, may stand before.

    ``design`` is ``(C, B, d + 1)``, the columns (centred where the model is) and a one for the
    intercept where there is one; ``y`` and ``weight`` are ``(C, B)``.
    """

    design: Array
    y: Array
    weight: Array | None

    def flatten(self) -> Rows:
        """Return the rows with steps and chains on one axis."""
        n = self.y.shape[0] * self.y.shape[1]
        weight = None if self.weight is None else self.weight.reshape(n, -1)
        return Rows(self.design.reshape(n, *self.design.shape[2:]), self.y.reshape(n, -1), weight)

    def step(self, t: int) -> Rows:
        """Return the rows of one step."""
        weight = None if self.weight is None else self.weight[t]
        return Rows(self.design[t], self.y[t], weight)
