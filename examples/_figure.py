"""Tools of the examples: the command line, colours, and figures that need no display."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill, indent
from typing import Any

import pandas as pd
from _numbers import write
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import ModelMisfitWarning

BLUE, ORANGE, GREEN, GREY, RED = "#0072B2", "#D55E00", "#009E73", "#8C8C8C", "#C00000"
PURPLE = "#7B4FA3"
PRINTED, RIGHT, EXACT = ORANGE, BLUE, RED  # a figure as printed, as it should be, and the truth
FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"


def parse(
    description: str | None, arguments: Sequence[str] | None = None, output: Path = FIGURES
) -> argparse.Namespace:
    """Options of the command line, ``output`` and ``quick``; makes the folder ``output``."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        default=output,
        help="folder for the figures, made if need be (default: %(default)s)",
    )
    parser.add_argument("--quick", action="store_true", help="shorter runs: a second or two")
    options = parser.parse_args(arguments)
    new_figure(1.0, 1.0)  # without Matplotlib stop here
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def new_figure(width: float, height: float) -> Any:
    """Empty figure, its sizes in inches; it needs no display, whatever Matplotlib's backend."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise SystemExit(
            'The figures need Matplotlib, which is not installed: pip install "skbayes-sgld[plot]"'
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, output: Path, name: str, panel: Any = None) -> Path:
    """Write a figure as ``name`` (with its .png), say where it is, and return its path.

    ``panel``, one of its axes, becomes ``thumbnail_name``, the example's picture in the gallery.
    """
    path = output / name
    figure.savefig(path, dpi=150)
    written = [reduce_colors(path)]
    if panel is not None:
        written.append(save_panel(panel, output / f"thumbnail_{name}"))
    for each in written:
        print(f"  {each}", flush=True)
    return path


def save_panel(panel: Any, path: Path) -> Path:
    """Write one of the axes of a figure, without its neighbours and with what they say for it.

    These are the numbers and names of axes that it shares, and the legend of the whole figure.
    """
    figure = panel.get_figure(root=True)
    panel.tick_params(labelbottom=True, labelleft=True)
    for kind, shared in (
        ("xlabel", panel.get_shared_x_axes()),
        ("ylabel", panel.get_shared_y_axes()),
    ):
        said = [getattr(each, f"get_{kind}")() for each in (panel, *shared.get_siblings(panel))]
        panel.set(**{kind: next(filter(None, said), "")})
    if figure.legends and panel.get_legend() is None and panel.get_legend_handles_labels()[0]:
        panel.legend(fontsize=7)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # that of the whole figure stays
    inches = panel.get_tightbbox().transformed(figure.dpi_scale_trans.inverted())
    others = [each for each in figure.get_children() if each not in (panel, figure.patch)]
    seen = [each for each in others if each.get_visible()]
    for each in seen:
        each.set_visible(False)
    figure.savefig(path, dpi=150, bbox_inches=inches.padded(0.06))
    for each in seen:
        each.set_visible(True)
    return reduce_colors(path)


def reduce_colors(path: Path) -> Path:
    """Keep 256 colours of a picture: it looks the same and takes a third of the bytes."""
    from PIL import Image  # Matplotlib needs it too

    with Image.open(path) as drawn:
        drawn.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def say(text: str) -> None:
    """Print a paragraph, at once."""
    print(fill(text, 98, initial_indent="  ", subsequent_indent="  ") + "\n", flush=True)


def show(table: pd.DataFrame) -> None:
    """Print a table of strings, aligned."""
    print(indent(table.rename_axis(index=None).to_string(), "  ") + "\n", flush=True)


def show_rows(rows: dict[str, dict[str, Any]]) -> None:
    """Print rows of measured numbers as the pages show them."""
    cells = [{name: write(cell) for name, cell in row.items()} for row in rows.values()]
    show(pd.DataFrame(cells, list(rows)))


def with_error(value: float, error: float, digits: int = 3) -> str:
    """Figure and its Monte Carlo standard error."""
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def tidy(axes: Any, title: str = "", grid: str = "both") -> None:
    """Give axes a small title, if any, and leave out frames on top and right."""
    if title:
        axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)


@contextmanager
def unconverged(expected: bool = True) -> Iterator[None]:
    """Ignore the warning of a run that is expected not to converge."""
    with warnings.catch_warnings():
        if expected:
            warnings.simplefilter("ignore", ConvergenceWarning)  # the subject of the figure
        yield


@contextmanager
def misfit() -> Iterator[list[str]]:
    """Collect the warnings of a model that is expected not to fit, instead of showing them."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelMisfitWarning)
        yield messages
    for one in caught:
        if issubclass(one.category, ModelMisfitWarning):
            messages.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
