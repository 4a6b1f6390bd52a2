"""Every default fit keeps the bounds, but for what chance allows, and is silent."""

import pytest

from .cases import all_cases
from .judge import judge


@pytest.mark.truth
@pytest.mark.parametrize("name", all_cases())
def test_a_default_fit_has_the_right_posterior(name):
    verdict = judge(all_cases()[name])
    print(verdict)
    if verdict.wrong:  # one of 8,000 errors may be; that of a wrong posterior is in other draws too
        again = judge(all_cases()[name], seed=1)
        print(again)
        assert not verdict.wrong & again.wrong
    assert not verdict.notes
