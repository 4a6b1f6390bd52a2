"""The pages quote what the scripts measure, and the scripts still measure it."""

import json
import re
import sys
from pathlib import Path

import pytest

import skbayes_sgld
from benchmarks import _scale_page, grid
from benchmarks.blocks import FIGURE
from benchmarks.blocks import RESULTS as BLOCKS
from benchmarks.many_rows import RESULTS as MANY_ROWS
from skbayes_sgld.sampling.tuning.thresholds import THRESHOLDS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import pages  # noqa: E402
from _numbers import disagreements, ends, measured  # noqa: E402

RESULTS = pages.load()
MAIN_JOB = "nba_rookies"  # test_examples.py runs it, and reads what it prints
OF_SPEED = {"benchmark_bounds.png", "benchmark_floor.png", "benchmark_growth.png"}
OF_SPEED |= {FIGURE.name, grid.FIGURE.name}


# ---- pages against what was measured -------------------------------------------------------------


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_a_page_says_what_was_measured(page):
    assert pages.fill(page.read_text(), RESULTS) == page.read_text(), "run: make pages"


@pytest.mark.parametrize("file, template", pages.DOCSTRINGS)
def test_a_docstring_says_what_was_measured(file, template):
    text = " ".join((ROOT / file).read_text().split())
    assert pages.sentence(template, RESULTS) in text, "write the sentence anew"


@pytest.mark.parametrize("name", _scale_page.TABLES)
def test_the_page_on_scale_says_what_was_measured(name):
    fits = {"dask": BLOCKS.parent / "dask" / "fits.json", "many rows": MANY_ROWS}
    path = fits.get(name, BLOCKS / f"{name}.json")
    found = json.loads(path.read_text())["fits" if name in fits else "found"]
    text = _scale_page.PAGE.read_text()
    assert _scale_page.render(text, name, found) == text, "run: python -m benchmarks.blocks"


@pytest.mark.parametrize("name", ["SGLDLinearRegression", "SGLDLogisticRegression"])
def test_the_docstring_of_step_size_says_the_error_that_a_pilot_accepts(name):
    text = " ".join(getattr(skbayes_sgld, name).__doc__.split())
    assert f"off by more than {100 * THRESHOLDS.max_bias:g} % of a standard deviation" in text


def test_a_number_that_is_edited_by_hand_is_found():
    page = ROOT / "docs" / "lecture_claims.md"
    mark = re.search(r"<!-- number: .+? -->([^<]*\d)<!-- end -->", page.read_text())
    edited = page.read_text()[: mark.end(1)] + "1" + page.read_text()[mark.end(1) :]
    assert pages.fill(edited, RESULTS) == page.read_text() != edited


def test_the_gallery_has_no_measured_number_that_is_typed():
    """Shares, ratios and decimals are marked, but for levels of intervals and published ones."""
    text = pages._MARK.sub("", (ROOT / "docs" / "gallery.md").read_text())
    text = re.sub(
        r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|Figures? [\d.,]+(?: (?:and|to) [\d.]+)?", "", text
    )
    given = {"90 %", "95 %", "2.56", "0.1", "0.01", "0.025"}  # of the sources
    assert set(re.findall(r"\d+\.\d+(?: %)?|\d+ %", text)) <= given


def test_every_script_has_kept_its_results():
    assert set(pages.SCRIPTS) == set(RESULTS), "run: make figures"


def test_every_figure_is_drawn_by_a_script():
    drawn = [name for result in RESULTS.values() for name in result["figures"]]
    assert len(drawn) == len(set(drawn))
    assert OF_SPEED | set(drawn) == {path.name for path in pages.FIGURES.glob("*.png")}


# ---- what was measured against the program -------------------------------------------------------


def check(name, folder, *options):
    found = pages.call(pages.SCRIPTS[name], "--output", str(folder), *options)
    kept = RESULTS[name]
    assert disagreements(kept["values"], found) == [], f"run: make figures FIGURES={name}"
    drawn = {path.name: path.stat().st_size for path in folder.iterdir()}
    missing = set(kept["figures"]) - set(drawn)
    assert drawn.keys() <= set(kept["figures"])
    assert all(size > (800 if "thumbnail" in name else 3_000) for name, size in drawn.items())
    return [way for way, _ in ends(found)], [way for way, _ in ends(kept["values"])], missing


def is_compared(end):
    return not isinstance(end, str) and end["error"] is not None


@pytest.mark.parametrize("name", [name for name in pages.SCRIPTS if name != MAIN_JOB])
def test_a_quick_run_of_a_script_measures_what_is_kept(name, tmp_path, draw_fast):
    now, _, missing = check(name, tmp_path, "--quick")
    assert missing == set(pages.incomplete(name)) or name == "estimators"  # which draws some
    compared = [end for _, end in ends(RESULTS[name]["values"]) if is_compared(end)]
    assert now or not compared, "a quick run is to measure some of the numbers"


@pytest.mark.slow
@pytest.mark.parametrize("name", pages.SCRIPTS)
def test_a_full_run_of_a_script_measures_what_is_kept(name, tmp_path, draw_fast):
    if pages.incomplete(name):
        pytest.skip(f"{name} needs the package {pages.NEEDS[name][0]}")
    now, then, missing = check(name, tmp_path)
    assert now == then and not missing


# ---- the tool ------------------------------------------------------------------------------------

KEPT = {"a": {"values": {"b": {"c": measured(0.1234, 0.001, "±.3f")}, "d": "text"}}}


@pytest.mark.parametrize("way", ["z", "a / z", "a / b / c / z"])
def test_a_number_that_no_script_returns_is_an_error(way):
    with pytest.raises(KeyError, match="z"):
        pages.fill(f"so <!-- number: {way} -->1<!-- end -->", KEPT)


@pytest.mark.parametrize("before", ["\n", "\n- ", "> "])
def test_a_mark_that_markdown_would_take_for_html_is_an_error(before):
    with pytest.raises(ValueError, match="begins with"):
        pages.fill(f"{before}<!-- number: a / b / c -->1<!-- end -->", KEPT)


@pytest.mark.parametrize(
    "now, differs",
    [
        (measured(0.1234 + 0.006, 0.001), False),  # five errors of a difference, 0.0071
        (measured(0.1234 + 0.009, 0.001), True),
        (measured(0.1234 - 0.009, 0.001), True),
        (measured(float("nan"), 0.001), True),
        (measured(9.0, None), False),  # a time
        ("0.123", True),
    ],
)
def test_numbers_may_differ_by_their_monte_carlo_error(now, differs):
    assert bool(disagreements(KEPT["a"]["values"]["b"], {"c": now})) is differs


def test_a_number_without_an_error_is_the_same_to_its_last_digit():
    exact = {"x": measured(0.25, 0.0, ".1f %")}
    assert not disagreements(exact, {"x": measured(0.2504)})
    assert disagreements(exact, {"x": measured(0.2506)})
    assert disagreements(exact, {"y": measured(0.25)}), "a number that is not kept"
