"""The type of arrays in annotations."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
