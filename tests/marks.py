"""Cases that take seconds beside quick ones of the same test, and settings of short fits."""

import pytest

# Settings of fits whose draws a test compares with each other, or does not look at: plan and
# shapes are those of any fit. ``short_chains`` is the mark of their tests.
SHORT = {"n_draws": 20, "n_burnin": 5, "thin": 1, "n_chains": 2}
short_chains = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def slow(*values, **options):
    """A case that runs with ``-m slow`` alone."""
    return pytest.param(*values, marks=pytest.mark.slow, **options)


def quick(names, *those):
    """Cases of which those named run in every run, and the others with ``-m slow``."""
    assert set(those) <= set(names)
    return [name if name in those else slow(name) for name in names]
