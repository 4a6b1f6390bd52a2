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

_TASKS = 50  # of a fit, whatever the number of its steps


def has_callbacks(estimator: Any) -> bool:
    """Whether the estimator has callbacks of scikit-learn."""
    return bool(vars(estimator).get("_skl_callbacks"))


@contextmanager
def fit_task(estimator: Any, X: Any, y: Any, **row_data: Any) -> Iterator[None]:
    """Context of a fit: the first task that callbacks see, if there are callbacks."""
    if not has_callbacks(estimator):
        yield
        return
    given = {name: value for name, value in row_data.items() if value is not None}
    data = {"estimator": estimator, "X": X, "y": y, "metadata": given or None}
    context = estimator._init_callback_context(max_subtasks=_TASKS)
    context.call_on_fit_task_begin(**data)
    yield
    context.call_on_fit_task_end(**data, reconstruction_attributes={})


@contextmanager
def show_progress(estimator: Any, n_steps: int, what: str) -> Iterator[Progress | None]:
    """Context with a function that reports finished steps; None where nobody would see them.

    It advances the bar of ``verbose``, and begins and ends the tasks of callbacks: a fiftieth of
    the steps each. From the task on at whose end a callback asks to stop it answers True.
    """
    context = getattr(estimator, "_callback_fit_ctx", None)
    with progress_bar(estimator.verbose, n_steps, what) as advance:
        if not has_callbacks(estimator):
            yield advance
            return
        tasks = _Tasks(estimator, context, n_steps, what)

        def report(n_done: int) -> bool:
            tasks.report(n_done)
            if advance is not None:
                advance(n_done)
            return tasks.stopped

        yield report
        tasks.close()


class _Tasks:
    """The steps of a fit as tasks of callbacks."""

    def __init__(self, estimator: Any, context: Any, n_steps: int, what: str) -> None:
        self._estimator, self._context, self._what = estimator, context, what
        self._n_steps, self._n_done, self._n_ended = n_steps, 0, 0
        self.stopped = False
        self._begin()

    def _begin(self) -> None:
        task = self._context.subcontext(task_name=self._what)
        self._task = task.call_on_fit_task_begin(estimator=self._estimator)

    def report(self, n_done: int) -> None:
        """End the tasks whose steps are done, and begin the one that is under way."""
        self._n_done += n_done
        while self._n_ended < min(_TASKS, _TASKS * self._n_done // self._n_steps):
            self._end()
            self._n_ended += 1
            if self._n_ended < _TASKS:
                self._begin()

    def _end(self) -> None:
        self.stopped |= self._task.call_on_fit_task_end(estimator=self._estimator)

    def close(self) -> None:
        """End the task under way, of a fit that needed fewer steps."""
        if self._n_ended < _TASKS:
            self._end()
