"""Tests of the repository, which a maintainer runs: ``make test-maintainer``.

They compare pages with kept figures, run examples, benchmarks and soak runs, and check workflows,
the release and the built site. The target runs the doctests of the pages too. The tests beside this
folder need none of them.
"""
