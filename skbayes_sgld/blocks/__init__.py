"""Rows in blocks: data that are read in passes, and never held in memory as a whole."""

import numpy as np

from skbayes_sgld.blocks.row_blocks import RowBlocks
from skbayes_sgld.blocks.rows import read_blocks
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.rows.reading import READERS

__all__ = ["RowBlocks"]

READERS.update(dict.fromkeys((RowSource, np.memmap, "dask"), read_blocks))
