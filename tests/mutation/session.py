"""One session of pytest that forks a process for each mutant, with everything imported."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.mutation.switches import MODULE, VARIABLE


class Session:
    """Plugin whose tests run where they are asked for, each time in a process of its own.

    Parameters
    ----------
    connection : multiprocessing.connection.Connection
        Brings arguments of :meth:`entered`, a file, or of :meth:`first_failure`, and takes each
        with its answer.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._failed = ""
        self._of_fixtures: dict[tuple[str, str | None], set[int]] = defaultdict(set)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Do the tasks, in place of running all tests once."""
        self._items = {item.nodeid: item for item in session.items}
        while True:  # until it is stopped
            task = self._connection.recv()
            answer = self.entered(*task) if len(task) == 1 else self.first_failure(*task)
            self._connection.send((task, answer))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that fails."""
        if report.failed:
            self._failed = self._failed or report.nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Note what a fixture that several tests share has entered."""
        entered = importlib.import_module(MODULE).entered
        before = set(entered)
        entered.clear()
        try:
            return (yield)  # type: ignore[return-value]
        finally:
            if fixturedef.scope != "function":
                self._of_fixtures[fixturedef.argname, fixturedef.baseid] |= entered
            entered.update(before)

    def entered(self, file: str) -> list[tuple[str, float, list[int]]]:
        """Tests of a file that pass, their CPU seconds and the mutants whose lines they enter."""
        tests = [test for test in self._items if test.partition("::")[0] == file]

        def each() -> Iterator[str]:
            entered = importlib.import_module(MODULE).entered
            for test, following in zip(tests, [*tests[1:], None], strict=True):
                entered.clear()
                start = time.process_time()
                passed = self._run(test, following)
                seconds = time.process_time() - start
                numbers, item = set(entered), self._items[test]
                for (name, base), more in self._of_fixtures.items():
                    if name in item.fixturenames and test.startswith(base or ""):  # type: ignore[attr-defined]
                        numbers |= more
                if passed:
                    yield json.dumps([test, seconds, sorted(numbers)])
                self._failed = ""

        return [tuple(json.loads(line)) for line in _in_fork(each, 3600.0)[0]]

    def first_failure(self, number: int, tests: Sequence[str], cpu: float) -> str:
        """First of the tests that fails under a mutant; "time" where they take too long."""

        def each() -> Iterator[str]:
            os.environ[VARIABLE] = str(number)
            importlib.import_module(MODULE).mutant = number
            for test, following in zip(tests, [*tests[1:], None], strict=True):
                if not self._run(test, following):
                    yield test
                    return

        lines, ended = _in_fork(each, cpu)
        return lines[0] if lines else "" if ended else "time"

    def _run(self, test: str, following: str | None) -> bool:
        item = self._items[test]
        after = None if following is None else self._items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        return not self._failed


def _in_fork(lines: Callable[[], Iterator[str]], cpu: float) -> tuple[list[str], bool]:
    """Lines that a forked process yields, and whether it came to its end within its CPU seconds."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 5))
            os.close(read)
            with os.fdopen(write, "w") as out:
                try:
                    for line in lines():
                        out.write(line + "\n")
                    out.write("end\n")
                except BaseException as error:
                    out.write(f"{type(error).__name__}\n")
        finally:
            os._exit(0)
    os.close(write)
    found, until = b"", time.monotonic() + 20.0 * cpu + 60.0  # one that waits takes no CPU time
    while time.monotonic() < until:
        if select.select([read], [], [], 10.0)[0]:
            more = os.read(read, 2**16)
            if not more:
                break
            found += more
    os.close(read)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    text = found.decode().split("\n")[:-1]
    return [line for line in text if line != "end"], text[-1:] == ["end"]
