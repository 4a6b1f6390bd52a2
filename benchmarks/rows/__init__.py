"""The rows of the table, in the order in which they are printed."""

# imported for what they register, in the order of the table
from . import nuts, points, steps, whole, growth  # noqa: F401, I001
