"""Every default fit keeps the bounds, and is silent."""

import pytest

from .cases import all_cases
from .judge import judge


@pytest.mark.truth
@pytest.mark.parametrize("name", all_cases())
def test_a_default_fit_has_the_right_posterior(name):
    verdict = judge(all_cases()[name])
    print(verdict)
    assert not verdict.broken
    assert not verdict.notes
