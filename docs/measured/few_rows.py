"""Coverage and scores by rows a column, for ``docs/guide/few_rows.md``: what the benchmark kept."""

from __future__ import annotations

from _figure import parse
from _numbers import measured

from benchmarks.priors import MEASURES, PRIORS, RATIOS, load, pooled

_SHOWN = {"90 %": "±.0f %", "50 %": "±.0f %", "slope": "±.2f", "score against normal": "±.2f"}

_OTHERS = {
    "negative_binomial": "counts with a dispersion",
    "gamma": "positive numbers",
    "three_classes": "three classes",
    "ordinal": "ordered classes",
}


def main(arguments=None):
    parse(__doc__, arguments)
    found, tables = load(), {}
    for family, measures in MEASURES.items():
        for m, name in enumerate(measures):
            show = "±+.3f" if m == 2 and family != "linear" else _SHOWN[name]
            rows = tables.setdefault(f"{family}, {name}", {})
            for ratio in RATIOS:
                row = rows.setdefault(f"{ratio:g}", {"rows a column": f"{ratio:g}"})
                for prior in PRIORS[family]:
                    cell = pooled(found, family, prior, ratio)
                    is_known = cell is not None and not (m == 2 and prior == "normal")
                    if is_known:
                        row[f"`{prior}`"] = measured(cell[0][m], cell[1][m], show)
    tables = {name: _known(rows) for name, rows in tables.items()}
    tables["other families"] = rows = {}
    for ratio in RATIOS:
        row = {"rows a column": f"{ratio:g}"}
        for family, name in _OTHERS.items():
            cell = pooled(found, family, "hierarchical_normal", ratio)
            if cell is not None:
                row[name] = measured(cell[0][2], cell[1][2], "±+.2f")
        rows[f"{ratio:g}"] = row
    tables["other families"] = _known(rows)
    return tables


def _known(rows):
    """Rows in which something is measured."""
    return {name: row for name, row in rows.items() if len(row) > 1}


if __name__ == "__main__":
    print(main())
