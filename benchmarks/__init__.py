"""Speed of the package, compared with other libraries.

``python -m benchmarks [row ...]`` measures the rows of the table (``benchmarks/rows``), each in a
process of its own; ``python -m benchmarks.page`` makes the pages of the documentation from what was
kept of them, and ``python -m benchmarks.quick`` compares a checkout with another commit. The other
modules are programs that measure one thing, ``python -m benchmarks.NAME``; their docstrings say
what.
"""
