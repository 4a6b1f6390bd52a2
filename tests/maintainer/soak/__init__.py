"""Soak runs: faults, broken files and long runs, each of which prints a table and may fail.

``make soak`` runs all of them, two at a time. Each is a module that can be run by itself, ``python
-m tests.maintainer.soak.files``. `docs/reliability.md` has the counts; a smaller draw of each is in
the tests beside them, or, of long steps, in those of the package.
"""
