"""Soak runs: faults, broken files and long runs, each of which prints a table and may fail.

``make soak`` runs all of them, and `docs/reliability.md` has the counts; a smaller draw of each is
in the tests beside them.
"""
