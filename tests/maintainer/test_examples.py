"""Every example runs without a warning, and draws the figures that it names."""

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PLOTS = sorted(path.name for path in EXAMPLES.glob("plot_*.py"))
TASKS = sorted(path.name for path in EXAMPLES.glob("how_to_*.py"))
LIBRARIES = {  # that an example is about, or whose data it takes
    "how_to_conformalize.py": "mapie",
    "how_to_model_repeated_measures.py": "statsmodels",
}


def small_search(model, grid, **settings):
    """The search of an example, over the ends of every list."""
    ends = {name: values[:: len(values) - 1] for name, values in grid.items()}
    return GridSearchCV(model, ends, **settings | {"cv": 3})


def check_figures(folder, printed):
    figures = list(folder.iterdir())
    assert figures
    for figure in figures:
        assert figure.stat().st_size > (800 if "thumbnail" in figure.name else 3_000)
        assert figure.name in printed


def test_the_main_job_goes_from_the_table_to_decisions(tmp_path, draw_fast, monkeypatch, capsys):
    """And measures what is kept, as the other scripts do in test_pages.py."""
    monkeypatch.syspath_prepend(EXAMPLES)
    from _numbers import disagreements

    arguments = ["--output", str(tmp_path), "--quick"]
    values = runpy.run_path(str(EXAMPLES / "nba_rookies.py"))["main"](arguments)
    printed = capsys.readouterr().out
    check_figures(tmp_path, printed)
    kept = json.loads((ROOT / "docs" / "results" / "nba_rookies.json").read_text())
    assert disagreements(kept["values"], values) == [], "run: make figures FIGURES=nba_rookies"
    assert sorted(path.name for path in tmp_path.iterdir()) == kept["figures"]
    for part in ("log loss", "temperature", "R-hat", "90 % band", "95 %"):
        assert part in printed
    text = " ".join(printed.split())
    warning = re.search(r"hold (\d+) % of the rows, and (\d+), (\d+) and (\d+) % of those", text)
    overall, low, _, high = map(int, warning.groups())
    assert abs(overall - 90) < 4 and low > 97 and high < 83, "right on average, wrong in the thirds"
    assert "noise is not the same in all rows; set noise_model='log_linear'" in text
    suggestion = re.search(r"Suggestion: (.+?)\. Its leave-one-out log density is higher", text)[1]
    assert "noise_model='log_linear'" in suggestion or "root" in suggestion
    thirds = values["covered"]["suggested"]
    for third in thirds.values():
        assert abs(third["value"] - 0.9) < 4.0 * third["error"], "the suggestion is to hold"
    assert values["covered"]["points"]["high"]["value"] < 0.83
    small, large = (
        re.search(rf"the {end} ([+-][\d.]+)", text) for end in ("smallest step", "largest")
    )
    assert float(small[1]) > 0.01 and float(large[1]) > 0.01, "plain SGLD's step size must matter"


@pytest.mark.parametrize("name", TASKS)
def test_every_example_of_a_task_runs_by_itself_without_a_warning(name, monkeypatch, capsys):
    """Each may be downloaded alone, so it imports nothing from its folder."""
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the figures need the extra 'plot'")
    if name in LIBRARIES:
        pytest.importorskip(LIBRARIES[name], reason=f"{name} is about {LIBRARIES[name]}")
    # a search is over two candidates, in three folds: of two, 30 rows are left for 30 columns
    monkeypatch.setattr("sklearn.model_selection.GridSearchCV", small_search)
    pyplot.close("all")
    shown = []
    monkeypatch.setattr(
        pyplot, "show", lambda: shown.extend(map(pyplot.figure, pyplot.get_fignums()))
    )
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out
    assert shown
    for figure in shown:
        for axes in figure.axes:
            assert axes.has_data()
            assert axes.get_xlabel() or axes.get_title(loc="left") or axes.get_title()
    pyplot.close("all")


def test_examples_of_tasks_come_before_those_on_the_literature():
    page = (ROOT / "docs" / "examples.md").read_text()
    assert len(TASKS) >= 6
    positions = [page.index(f"../examples/{name}") for name in (*TASKS, *PLOTS)]
    assert max(positions[: len(TASKS)]) < min(positions[len(TASKS) :])


def test_the_gallery_has_every_example():
    text = (ROOT / "docs" / "gallery.md").read_text()
    assert [name for name in PLOTS if f"`examples/{name}`" not in text] == []


def thumbnail(name):
    """Picture of an example in the gallery."""
    text = (EXAMPLES / name).read_text()
    return re.search(r'^# sphinx_gallery_thumbnail_path = "figures/(\w+\.png)"$', text, re.M)[1]


def test_the_picture_of_an_example_in_the_gallery_is_one_panel(tmp_path, monkeypatch, capsys):
    """Of eight panels on a thumbnail none can be read."""
    image = pytest.importorskip("PIL.Image", reason="needs Pillow, as Matplotlib does")
    assert all(thumbnail(name).startswith("thumbnail_") for name in PLOTS)
    monkeypatch.syspath_prepend(EXAMPLES)
    from _figure import new_figure, save

    figure = new_figure(8.0, 4.0)
    panels = figure.subplots(2, 4)
    panels[1, 2].plot([0, 1])
    figure.legend(panels[1, 2].lines, ["line"], loc="outside lower center")
    figure.suptitle("eight panels")
    save(figure, tmp_path, "eight.png", panels[1, 2])
    with (
        image.open(tmp_path / "eight.png") as whole,
        image.open(tmp_path / "thumbnail_eight.png") as panel,
    ):
        assert panel.width < whole.width / 3 and panel.height < 0.6 * whole.height
    assert "thumbnail_eight.png" in capsys.readouterr().out
    assert all(axes.get_visible() for axes in panels.flat), "the figure is as it was"


def test_the_picture_of_one_panel_has_what_its_neighbours_say_for_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    from _figure import new_figure, save

    figure = new_figure(8.0, 4.0)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes in panels.flat:
        axes.plot([0, 1], label="line")
        axes.label_outer()
    panels[1, 0].set(xlabel="steps", ylabel="error")
    figure.legend(*panels[0, 1].get_legend_handles_labels(), loc="outside lower center")
    save(figure, tmp_path, "four.png", panels[0, 1])
    shown = panels[0, 1]
    assert (shown.get_xlabel(), shown.get_ylabel()) == ("steps", "error")
    assert [text.get_text() for text in shown.get_legend().get_texts()] == ["line"]
    assert all(each.label1.get_visible() for each in shown.xaxis.get_major_ticks())
    assert all(each.label1.get_visible() for each in shown.yaxis.get_major_ticks())


def test_the_pages_show_every_figure_and_no_figure_is_missing_or_large():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guide").glob("*.md")]
    text = "\n".join(page.read_text() for page in pages)
    shown = set(re.findall(r"figures/(\w+\.png)\)", text))
    # the template of an estimator's page shows its figure
    reference = (ROOT / "docs" / "api" / "index.rst").read_text()
    tables = re.findall(r"estimator\.rst\n\n((?:   \w+\n)+)", reference)
    shown |= {f"estimator_{name}.png" for table in tables for name in table.split()}
    shown |= {f"thumbnail_{name}" for name in shown} & set(map(thumbnail, PLOTS))
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs" / "figures").glob("*.png")}
    assert shown == sizes.keys()
    assert max(sizes.values()) < 150_000


@pytest.mark.slow
def test_the_lectures_paths_end_where_they_must(tmp_path, draw_fast, monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES)
    name = "plot_lecture_sgd_paths.py"
    runpy.run_path(str(EXAMPLES / name))["main"](["--output", str(tmp_path)])
    printed = capsys.readouterr().out
    check_figures(tmp_path, printed)
    found = re.findall(r"([\d.]+) \+- ([\d.]+) \(([\d.]+)\)", printed)
    assert len(found) == 9
    for size, error, expected in np.array(found, dtype=float):
        assert abs(size - expected) < 4.0 * error
    assert "To see: with a constant step size no path converges" in printed
