"""The comparison with other libraries: its snippets, and what it makes of their predictions."""

import pytest

for library in ("statsmodels", "mapie"):
    pytest.importorskip(library, reason="the data and two of the libraries")

from benchmarks import comparison, group_peers  # noqa: E402
from skbayes_sgld import metrics  # noqa: E402

PAGE = comparison.ROOT / "docs" / "guide" / "comparison.md"
SNIPPETS = sorted(comparison.SNIPPETS.glob("*.py"))


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.stem)
def test_a_snippet_that_is_measured_is_shown(path):
    measured = {
        comparison.code(task, method)
        for task in comparison.TASKS
        for method in comparison.methods(task)
    }
    assert path.read_text() in measured
    assert PAGE.read_text().count(f"{{literalinclude}} snippets/{path.name}\n") == 1


@pytest.mark.parametrize("task", comparison.TASKS)
def test_a_snippet_is_imports_then_the_fit_then_the_predictions(task):
    for method in comparison.methods(task):
        imports, fit, predictions = comparison.code(task, method).split("\n\n")
        assert all(line.startswith(("import ", "from ")) for line in imports.splitlines())
        assert "fit(" in fit and "X_new" not in fit
        assert "X_new" in predictions


def test_a_poisson_snippet_differs_from_that_of_other_counts_in_its_model_alone():
    for method in comparison.methods("poisson"):
        text = comparison.code("poisson", method)
        assert "oisson" in text and "egativ" not in text
        assert comparison.n_lines("poisson", method) == comparison.n_lines("counts", method)


@pytest.mark.parametrize("method", ["skbayes_sgld", "statsmodels", "mapie", "scikit_learn"])
def test_intervals_are_judged_as_the_packages_own_scores_judge_them(method):
    X, y = comparison.TASKS["numbers"].load()
    X, X_new, y, y_new = X[:300], X[300:], y[:300], y[300:].to_numpy()
    space, seconds = comparison.run("numbers", method, X, y, X_new)
    held, score = comparison.judge("numbers", space, y_new)
    ends = comparison.np.column_stack([space["low"], space["high"]])
    assert held.mean() == metrics.interval_coverage(y_new, ends)
    assert score.mean() == pytest.approx(metrics.interval_score(y_new, ends, coverage=0.9))
    assert [part.wall > 0.0 for part in seconds] == [True, True]


@pytest.mark.parametrize("path", sorted(group_peers.SNIPPETS.glob("*.py")), ids=lambda p: p.stem)
def test_a_snippet_of_groups_is_measured_and_shown(path):
    tasks = group_peers.TASKS
    assert path in {
        group_peers.snippet(name, m) for name, task in tasks.items() for m in task.methods
    }
    assert PAGE.read_text().count(f"{{literalinclude}} snippets/groups/{path.name}\n") == 1
