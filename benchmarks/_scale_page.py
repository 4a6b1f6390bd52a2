"""Tables of ``docs/scale.md`` from what ``blocks``, ``dask_fit`` and ``many_rows`` saved."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.page import markdown

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
LIMITED = {"windows": "windows", "map": "whole map"}


def memory(found: list[dict[str, Any]]) -> str:
    """Fits of a file under a limit."""
    head = (
        *("model", "read as", "passes", "GB read", "CPU s", "bare pass, s"),
        *("anonymous MB before, at most", "MB with pages of the file", "address space, MB"),
    )
    rows = [
        [
            row["model"],
            LIMITED[row["how"]],
            str(row["passes"]),
            f"{row['gigabytes_read']:.1f}",
            f"{row['cpu_seconds']:.0f}",
            f"{row['bare_pass_seconds']:.0f}",
            f"{row['before']['anonymous']:.0f}, {row['peak']['anonymous']:.0f}",
            f"{row['peak']['memory']:.0f}",
            f"{row['peak']['address_space']:,.0f}",
        ]
        for row in found
    ]
    return markdown(head, rows)


def partial(found: list[dict[str, Any]]) -> str:
    """``partial_fit`` beside a fit of blocks."""
    each = ("means (sds)", "sds", "CPU s")
    head = ("second class", "blocks of", *(f"`partial_fit`: {name}" for name in each))
    head += tuple(f"`fit(RowBlocks)`: {name}" for name in each)
    rows = []
    for row in found:
        cells = [_percent(row["share"], 0), f"{row['block']:,}"]
        for name in ("partial_fit", "fit"):
            one = row[name]
            cells += [f"{one['mean']:.3f}", _percent(one["sd"], 1), f"{one['cpu_seconds']:.1f}"]
        rows.append(cells)
    return markdown(head, rows)


def tails(found: list[dict[str, Any]]) -> str:
    """Errors next to a pool by the tails of the columns."""
    head = ("columns", "all rows as likely", "rows far out likelier")
    return markdown(
        head, [[row["columns"], f"{row['even']:.5f}", f"{row['by_size']:.5f}"] for row in found]
    )


def checksums(found: list[dict[str, Any]]) -> str:
    """Passes with and without checksums of their blocks."""
    head = ("rows", "pass", "CPU s without checksums", "with them", "more")
    rows = [
        [
            f"{row['rows']:,} x {row['columns']} in {row['dtype']}",
            row["pass"],
            f"{row['without']:.3f}",
            f"{row['with']:.3f}",
            _percent(row["with"] / row["without"] - 1.0, 0),
        ]
        for row in found
    ]
    return markdown(head, rows)


def dask(found: list[dict[str, Any]]) -> str:
    """Fits in memory, and by one worker and by two."""
    head = (
        *("model", "rows", "in memory", "1 worker", "2 workers"),
        *("passes", "to the client", "between 2 workers"),
    )
    rows = []
    for model, n_rows in dict.fromkeys((row["model"], row["rows"]) for row in found):
        own = [row for row in found if (row["model"], row["rows"]) == (model, n_rows)]
        by = {row["workers"]: row for row in own}
        moved = sum(part["bytes"] for part in by[2]["passes"])
        rows.append(
            [
                model,
                f"{n_rows:,}",
                *(f"{by[k]['seconds']:.1f} s" for k in (0, 1, 2)),
                str(len(by[2]["passes"])),
                _size(moved),
                _size(by[2]["sent"]),
            ]
        )
    return markdown(head, rows)


def many_rows(found: list[dict[str, Any]]) -> str:
    """Fits of up to 10^8 rows on one core, and those of peers."""
    head = ("fit", "rows", "passes", "CPU s", "CPU s a pass", "us a row", "most memory, MB")
    rows = [
        [
            row["method"],
            f"{row['rows']:,}",
            str(row["passes"]),
            f"{row['cpu_seconds']:.1f}",
            f"{row['cpu_seconds'] / row['passes']:.2f}",
            f"{1e6 * row['cpu_seconds'] / row['rows']:.2f}",
            f"{row['peak_megabytes']:,.0f}",
        ]
        for row in found
    ]
    return markdown(head, rows)


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f} %"


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:.3g} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:.2g} kB"


TABLES: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "memory": memory,
    "partial": partial,
    "tails": tails,
    "checksums": checksums,
    "dask": dask,
    "many rows": many_rows,
}


def render(text: str, name: str, found: list[dict[str, Any]]) -> str:
    """Page with a table between its two comments."""
    block = re.compile(f"(<!-- begin: {name} -->\n).*?(<!-- end: {name} -->)", re.S)
    return block.sub(lambda match: f"{match[1]}\n{TABLES[name](found)}\n{match[2]}", text)


def write(name: str, found: list[dict[str, Any]]) -> None:
    """Write a table into the page."""
    PAGE.write_text(render(PAGE.read_text(), name, found))
