"""The default settings against references that share no code with the package.

``pytest -m truth tests/references -s`` fits every case and prints its figures;
``docs/measured/truth.py`` and ``truth_bias.py`` make the tables of ``docs/truth.md``.
"""
