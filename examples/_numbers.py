"""Numbers that the pages quote, with their errors; ``docs/pages.py`` keeps and prints them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from skbayes_sgld.diagnostics import effective_sample_size

Values = dict[str, Any]


def measured(value: float, error: float | None = 0.0, show: str = ".2f") -> dict[str, Any]:
    """Number that a page quotes: ``main`` returns a dictionary of them, for ``docs/pages.py``.

    ``error`` is its Monte Carlo standard error: 0 for an exact number, None for one that is never
    the same twice, such as seconds. ``show`` is a format. It may begin with ±, to show the error,
    and end with a unit: "±.3f", ",.0f s", ".1f %" (which multiplies by 100).
    """
    return {"value": float(value), "error": None if error is None else float(error), "show": show}


def share(mean: float, n: int, show: str = ".0f %") -> Values:
    """Share of ``n`` independent cases, with its binomial standard error."""
    return measured(mean, np.sqrt(mean * (1.0 - mean) / n), show)


def share_of_draws(hits: Any, show: str = "±.3f") -> Values:
    """Share of draws ``(chain, draw)`` that are true, with its Monte Carlo standard error."""
    above = np.asarray(hits, dtype=float)[..., None]
    size = effective_sample_size(above, "mean")[0] if above.std() else above.size
    return measured(above.mean(), above.std() / np.sqrt(size), show)


def draws_worth(draws: Any) -> Values:
    """Least effective sample size of draws ``(chain, draw, parameter)``.

    Its error is a tenth of it for nearly independent draws; with an effective sample size below ten
    it is as large as the estimate.
    """
    size = float(effective_sample_size(draws).min())
    return measured(size, max(0.1 * size, min(10.0, size)), ",.0f")


def write(number: Any, show: str | None = None) -> str:
    """Text of a number, in its own format or in ``show`` (see ``measured``)."""
    if isinstance(number, str):
        return number
    form, _, unit = (show or number["show"]).partition(" ")
    scale = 100.0 if unit.startswith("%") else 1.0
    parts = [format(scale * number["value"], form.removeprefix("±"))]
    if form.startswith("±") and number["error"]:
        parts.append(f"± {format(scale * number['error'], form.removeprefix('±').lstrip('+'))}")
    return " ".join([*parts, unit]).rstrip()


def last_digit(number: Values) -> float:
    """Unit of the last digit that a page shows."""
    form, _, unit = number["show"].partition(" ")
    scale = 100.0 if unit.startswith("%") else 1.0
    shown = format(scale * number["value"], form.removeprefix("±")).replace(",", "")
    return float(10.0 ** int(Decimal(shown).as_tuple().exponent)) / scale


def ends(values: Any, way: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Path and value of every number and text in nested values."""
    if isinstance(values, str) or "value" in values:
        yield " / ".join(way), values
    else:
        for key, inner in values.items():
            yield from ends(inner, (*way, key))


def disagreements(kept: Values, found: Values) -> list[str]:
    """Differences between a script's numbers and the kept ones, in words.

    Numbers may differ by five standard errors of the difference plus half of the last digit shown.
    Numbers whose error is None, such as times, are not compared, nor those missing in a quick run.
    """
    known, said = dict(ends(kept)), []
    for way, now in ends(found):
        then = known.get(way)
        if then is None or isinstance(now, str) or isinstance(then, str):
            if then != now:
                said.append(f"{way}: {now!r}, kept {then!r}")
            continue
        if then["error"] is None or now["error"] is None:
            continue
        allowed = 5.0 * math.hypot(then["error"], now["error"]) + 0.5 * last_digit(then)
        if not abs(now["value"] - then["value"]) <= allowed:
            said.append(
                f"{way}: {now['value']:.6g}, kept {then['value']:.6g}, within {allowed:.2g}"
            )
    return said
