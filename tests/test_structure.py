"""The map of one ``fit`` that tests/structure.py prints."""

from tests.structure import Call, Trace, changes, trace_fit


def test_the_trace_reaches_from_fit_to_the_first_step():
    trace = trace_fit()
    assert trace.stack[0].name.endswith(".fit")
    assert trace.stack[-1].name == "SGLD.step"
    assert trace.n_before_step < len(trace.calls)


def test_hops_count_classes_of_the_estimator_and_turns_those_of_the_stack():
    one, other = "an estimator", ["a posterior"]
    calls = [
        Call("a.py", "A.fit", one, 1),
        Call("b.py", "B.fit.<locals>.<lambda>", one, 2),
        Call("c.py", "C.grad", other, 2),  # another object: no hop
        Call("b.py", "B.run", one, 2),
        Call("a.py", "A.step", one, 2),
    ]
    counts = Trace(calls, [calls[0], calls[2]], len(calls)).counts()
    assert (counts["files"], counts["functions"], counts["classes"]) == (3, 5, 3)
    assert (counts["hops"], counts["turns"], counts["all turns"]) == (2, 1, 2)
    assert changes([1, 1, 2, 1]) == 2
