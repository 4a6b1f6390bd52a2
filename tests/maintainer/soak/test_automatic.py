"""A few of the soak's automatic fits, two of each family."""

import pytest

from tests.maintainer.soak.automatic import FAMILIES, draw, judge

CASES = [draw(seed) for seed in range(140)]
FEW = [case for f in FAMILIES for case in [c for c in CASES[:60] if c.family == f and c.d <= 3][:2]]

HARD = [CASES[134]]  # Newton's steps crept along a valley of collinear columns


@pytest.mark.parametrize("case", [*FEW, *HARD], ids=str)
def test_an_automatic_fit_ends_in_no_error_and_leaks_no_warning_of_numpys(case):
    outcome, said = judge(case)
    assert outcome in ("right", "warned", "improper"), said
