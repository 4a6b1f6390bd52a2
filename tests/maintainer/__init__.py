"""Tests of the repository, which a maintainer runs: ``make test-maintainer``.

They compare pages with kept figures, run examples, benchmarks and soak runs, and check workflows,
the release and the built site. The tests beside this folder need none of them.
"""
