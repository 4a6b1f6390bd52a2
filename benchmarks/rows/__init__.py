"""The rows of the table, in the order in which they are printed."""

from . import nuts, points, steps, whole, growth  # noqa: F401, I001
