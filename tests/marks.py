"""Cases that take seconds beside quick ones of the same test."""

import pytest


def slow(*values, **options):
    """A case that runs with ``-m slow`` alone."""
    return pytest.param(*values, marks=pytest.mark.slow, **options)


def quick(names, *those):
    """Cases of which those named run in every run, and the others with ``-m slow``."""
    assert set(those) <= set(names)
    return [name if name in those else slow(name) for name in names]
