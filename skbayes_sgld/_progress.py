"""Progress bars for long runs, from tqdm (an extra)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Takes the steps that were made since it was called last; True asks to end the run
Progress = Callable[[int], bool]


def unending(progress: Progress | None) -> Progress | None:
    """The same reports, after which the run goes on whatever the answer."""
    return None if progress is None else lambda n_done: bool(progress(n_done)) and False


@contextmanager
def progress_bar(verbose: bool | int, total: int, description: str) -> Iterator[Progress | None]:
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

        def report(n_done: int) -> bool:
            bar.update(n_done)  # which says whether the bar was drawn
            return False

        yield report
