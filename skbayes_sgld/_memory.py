"""Available memory, and a MemoryError before arrays are made that do not fit."""

from __future__ import annotations

import os
from pathlib import Path

_ASKED = 2**28  # bytes; smaller arrays are not checked
_GROUP = Path("/sys/fs/cgroup")


def check_memory(n_bytes: int, what: str, remedy: str) -> None:
    """Raise MemoryError if arrays to be made do not fit into memory.

    Parameters
    ----------
    n_bytes : int
        Size of the arrays.
    what : str
        Subject of the error message: the call, its arguments and their sizes.
    remedy : str
        Advice to the user.
    """
    if n_bytes < _ASKED:
        return
    free = available_memory()
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"{what} takes {n_bytes / 1e9:.3g} GB of memory, and {free / 1e9:.3g} GB are "
            f"available; {remedy}."
        )


def available_memory() -> int | None:
    """Bytes that can be taken without swapping; None if the system does not say.

    On Linux it is the machine's free memory, or less if a control group of the process, such as its
    container, has less left. Elsewhere it is the whole memory of the machine.
    """
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = {name: int(rest.split()[0]) for name, _, rest in (s.partition(":") for s in lines)}
        return min([sizes["MemAvailable"] * 1024, *_left_in_groups()])
    except (OSError, ValueError, KeyError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _left_in_groups() -> list[int]:
    """Bytes left in each control group (version 2) of the process that has a limit."""
    sizes = []
    try:
        own = Path("/proc/self/cgroup").read_text().rpartition("0::")[2].strip().lstrip("/")
    except OSError:
        return []
    for group in (_GROUP / own, *(_GROUP / own).parents):
        if not group.is_relative_to(_GROUP):
            break
        try:
            limit = (group / "memory.max").read_text().strip()
            if limit == "max":
                continue
            stat = dict(s.split() for s in (group / "memory.stat").read_text().splitlines())
            used = int((group / "memory.current").read_text())
            sizes.append(max(int(limit) - used + int(stat["inactive_file"]), 0))
        except (OSError, ValueError, KeyError):
            continue
    return sizes
