"""Rows of arrays in blocks."""

from skbayes_sgld import RowBlocks


def blocks_of(*columns, size, **options):
    """Windows of X, y and, where they are no None, of weights and exposures."""
    n = len(columns[0])
    parts = [slice(a, min(a + size, n)) for a in range(0, n, size)]
    return RowBlocks(
        lambda: (tuple(None if c is None else c[part] for c in columns) for part in parts),
        **options,
    )
