"""Progress reporting during fit: progress bars, and scikit-learn's callbacks from 1.9 on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from skbayes_sgld._progress import Progress, progress_bar

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """An estimator without callbacks."""

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "fit_task", "has_callbacks", "show_progress", "with_callbacks"]

_TASKS = 50  # tasks of a fit, whatever the number of its steps


def has_callbacks(estimator: Any) -> bool:
    """Whether the estimator has callbacks of scikit-learn."""
    return bool(vars(estimator).get("_skl_callbacks"))


@contextmanager
def fit_task(
    estimator: Any, X: Any, y: Any, sample_weight: Any, by_row: dict[str, Any]
) -> Iterator[None]:
    """Context of a fit: the first task that callbacks see, if there are callbacks."""
    if not has_callbacks(estimator):
        yield
        return
    metadata = {"sample_weight": sample_weight, **by_row}
    metadata = {name: value for name, value in metadata.items() if value is not None}
    data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata or None}
    context = estimator._init_callback_context(max_subtasks=_TASKS)
    context.call_on_fit_task_begin(**data)
    yield
    context.call_on_fit_task_end(**data, reconstruction_attributes={})


@contextmanager
def show_progress(estimator: Any, n_steps: int, what: str) -> Iterator[Progress | None]:
    """Context with a function that reports finished steps; None if nobody would see them.

    The function advances the bar of ``verbose``, and begins and ends the tasks of callbacks: a
    fiftieth of the steps each. It returns True once a callback has asked to stop.
    """
    with progress_bar(estimator.verbose, n_steps, what) as advance:
        if not has_callbacks(estimator):
            yield advance
            return

        def begin() -> Any:
            task = estimator._callback_fit_ctx.subcontext(task_name=what)
            return task.call_on_fit_task_begin(estimator=estimator)

        task, n_made, n_ended, stops = begin(), 0, 0, False

        def report(n_done: int) -> bool:
            nonlocal task, n_made, n_ended, stops
            n_made += n_done
            while n_ended < min(_TASKS, _TASKS * n_made // n_steps):
                stops |= task.call_on_fit_task_end(estimator=estimator)
                n_ended += 1
                if n_ended < _TASKS:
                    task = begin()
            if advance is not None:
                advance(n_done)
            return stops

        yield report
        if n_ended < _TASKS:  # the fit needed fewer steps
            task.call_on_fit_task_end(estimator=estimator)
