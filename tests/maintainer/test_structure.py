"""The counts that tests/structure.py prints are those of its docstring."""

import re
from pathlib import Path

import pytest

from tests.structure import (
    FIGURE,
    Call,
    Trace,
    count_lines,
    count_repetitions,
    overridden,
    size_of_source,
    stops,
    trace_fit,
)

SOURCE = '''"""A module."""

from typing import Protocol

_TWO, _NAME = (2.0 / 3.0, -1), "no number"
_HALF: float = 1 / 2  # a comment


class Shape(Protocol):
    """A protocol."""

    def area(self) -> float:
        """Area."""
        ...


class Square:
    text = """two
lines"""

    def area(self):
        def inner():
            return 1.0

        return inner()
'''


def test_lines_functions_classes_and_numbers_of_a_source_are_counted():
    assert size_of_source(SOURCE) == {
        **{"files": 1, "lines": 13, "functions": 3},
        **{"classes": 2, "protocols": 1, "numbers": 1},
    }


@pytest.mark.parametrize(("text", "n"), [("A, B = 1, 2.5", 2), ("A = 2**20", 1), ("A = True", 0)])
def test_numbers_of_module_constants_are_counted(text, n):
    assert size_of_source(text)["numbers"] == n


LINES = [f"    total_{i} = {'sum(' * i}values{')' * i} + weight * {i}" for i in range(7)]


def test_repetitions_are_pairs_of_places_that_share_six_lines_of_one_shape():
    one = "\n".join(["def f(values, weight):", *LINES])
    other = one.replace("values", "rows").replace("weight", "scale").replace("def f", "def g")
    assert count_repetitions([one]) == 0
    assert count_repetitions([one, other]) == 1  # eight lines that go on are one run
    assert count_repetitions([one + "\n\n\n" + other]) == 1
    assert count_repetitions([one, other.replace("+ scale", "- scale")]) == 0
    assert count_repetitions([one, "\n".join(other.split("\n")[:5])]) == 0


def test_the_trace_reaches_from_fit_to_the_first_step():
    trace = trace_fit()
    assert trace.stack[0].name.endswith(".fit")
    assert trace.stack[-1].name == "SGLD.step"
    assert trace.n_before_step < len(trace.calls)


def test_a_switch_of_file_is_a_call_in_another_file_than_the_one_before():
    calls = [
        Call("a.py", "A.fit", 1),
        Call("b.py", "B.fit.<locals>.<lambda>", 2),
        Call("b.py", "B.fit", 2),
        Call("a.py", "A.step", 3),
        Call("c.py", "C.end", 2),  # after the first step
    ]
    counts = Trace(calls, [calls[0], calls[3]], 4).counts()
    assert counts == {
        **{"functions": 3, "files": 2},
        **{"switches of file": 2, "depth": 3},
    }


BRANCHES = """LIMIT = 1


def fit(rows, rare=False):
    if rare:
        return [
            row
            for row in rows
        ]

    def inner():
        return len(rows)

    return inner()


def other():
    return LIMIT
"""


def test_lines_passed_over_are_those_of_functions_that_were_entered():
    ran = {4, 5, 11, 12, 14}  # as Python reports the lines of fit([])
    assert count_lines(BRANCHES, ran, {"fit"}) == {
        **{"their lines": 12, "lines that ran": 3},
        **{"lines passed over": 4},
    }


def test_definitions_of_a_method_are_counted_over_the_classes_of_a_base():
    base = type("Base", (), {"__module__": "skbayes_sgld.x", "fit": lambda self: 0})
    type("One", (base,), {"__module__": "skbayes_sgld.x", "fit": lambda self: 1})
    two = type("Two", (base,), {"__module__": "skbayes_sgld.x", "other": lambda self: 2})
    user = {"__module__": "elsewhere", "fit": lambda self: 3}
    type("User", (two,), user)
    assert overridden(base) == {"fit": 2}


def test_the_figure_has_the_files_of_the_way_in_their_order():
    """It is redrawn by ``python -m tests.structure --draw``."""
    drawn = re.findall(r"(\w+\.py) \(\d+\)</text>", FIGURE.read_text())
    assert drawn == [Path(file).name for file in stops(trace_fit()) if "/" in file]
