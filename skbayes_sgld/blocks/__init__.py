"""Rows in blocks: data that are read in passes, and never held in memory as a whole."""

from skbayes_sgld.blocks.row_blocks import RowBlocks
from skbayes_sgld.blocks.source import RowSource
from skbayes_sgld.rows.reading import BLOCKS, READERS

__all__ = ["RowBlocks"]

READERS[RowSource] = BLOCKS
