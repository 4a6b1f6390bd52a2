"""How fast the package is, beside other libraries: ``python -m benchmarks [name ...]``.

A benchmark is a module of this package whose name does not start with an underscore; its docstring
says what is compared. It runs in a process of its own, ``python -m benchmarks.NAME`` too.
"""
