"""Progress bars for long runs, from tqdm (an extra)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    verbose: bool | int, total: int, description: str
) -> Iterator[Callable[[int], None] | None]:
    """Context with a function to report finished steps to; None where ``verbose`` is 0."""
    if not verbose:
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError(
            f"verbose={verbose!r} shows a progress bar and needs tqdm; "
            "install it with: pip install 'skbayes_sgld[progress]'"
        ) from error
    with tqdm(total=total, desc=description, unit="step") as bar:
        yield bar.update
