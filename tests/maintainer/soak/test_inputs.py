"""Some more of the generated inputs than those that tests/inputs/test_refusals.py judges."""

import pytest

from tests.inputs.cases import judge_cases


@pytest.mark.parametrize("block", range(8, 16))
def test_inputs_are_answered_by_a_right_result_or_by_name(block):
    found = judge_cases(range(50 * block, 50 * (block + 1)))
    assert {row[2]: row[3] for row in found if row[1] == "failure"} == {}
