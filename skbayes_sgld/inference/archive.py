"""Arrays in an ``npz`` archive: written whole or not at all, and read without trust.

What an archive says of itself is compared with what is there before anything is allocated, so that
reading one takes no more memory than twice its size on the disk; nothing in it is executed, and no
name in it is used as a path.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from math import prod
from pathlib import Path
from tempfile import mkstemp
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # of Windows
    fcntl = None  # type: ignore[assignment]

Array = NDArray[Any]

_KINDS = "biuf"  # of numbers that are read
_HEADER = 2**14  # bytes of an entry that hold its type and shape, at the most
_SUFFIX = ".npy"
_PART = ".part"
_LOCAL = 30  # bytes of an archive before the name of its first entry
_BEGIN = 2**9  # bytes that hold this name, the entry's type and shape, and more


def remove_leftovers(path: Path, first: str, content: bytes) -> None:
    """Remove parts of the file that killed processes have left beside it.

    A part is removed if all of it says so: its name is one that :func:`write_arrays` makes for
    ``path``, it begins as an archive whose first entry is ``first``, and this entry has
    ``content`` near its beginning. No process may be writing it, which its lock tells: nothing is
    removed where there are no locks.
    """
    name = re.compile(re.escape(f".{path.name}.") + "[a-z0-9_]{8}" + re.escape(_PART))
    with suppress(OSError):
        for part in list(path.parent.iterdir()):
            if name.fullmatch(part.name) and part.is_file():
                with suppress(OSError), _locked(part) as file:
                    begin = file.read(_BEGIN)
                    entry = begin[_LOCAL:].startswith(f"{first}{_SUFFIX}".encode())
                    if begin.startswith(b"PK\3\4") and entry and content in begin:
                        part.unlink()


@contextmanager
def _locked(part: Any) -> Iterator[IO[bytes]]:
    """Hold the lock of a file; an OSError where another process does, or there are no locks."""
    with open(part, "rb+") as file:
        if fcntl is None:
            raise OSError("this system has no locks of files")
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield file


def write_arrays(path: Path, arrays: dict[str, Array]) -> None:
    """Write arrays to a file beside ``path``, and move it there once it is on the disk."""
    handle, part = mkstemp(prefix=f".{path.name}.", suffix=_PART, dir=path.parent)
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(_locked(part))
        try:
            with os.fdopen(handle, "wb") as file:
                with zipfile.ZipFile(file, "w") as archive:  # savez pickles before NumPy 2.2
                    for name, array in arrays.items():
                        with archive.open(f"{name}{_SUFFIX}", "w", force_zip64=True) as entry:
                            npy.write_array(entry, np.asarray(array), allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise
    with suppress(OSError):  # a folder cannot be opened everywhere
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_arrays(path: Path) -> dict[str, Array]:
    """Arrays of an archive that :func:`write_arrays` wrote, by their names.

    Raises
    ------
    ValueError, OSError, zipfile.BadZipFile
        Where it is anything else: a sum that is not right, an entry that is compressed, larger than
        the file, of another length than its shape says, or no array of numbers. What else broken
        archives make their readers raise is for the caller to catch.
    """
    if not path.is_file():
        raise ValueError("it is no regular file")
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if len({entry.filename for entry in entries}) < len(entries):
            raise ValueError("two of its entries have the same name")
        if sum(entry.file_size for entry in entries) > size:
            raise ValueError("its entries are larger than the file")
        return {
            entry.filename.removesuffix(_SUFFIX): _read_entry(archive, entry) for entry in entries
        }


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    stored = entry.compress_type == zipfile.ZIP_STORED and entry.compress_size == entry.file_size
    if not stored or not entry.filename.endswith(_SUFFIX):
        raise ValueError(f"its entry {entry.filename!r} is compressed, or no array")
    with archive.open(entry) as file:
        major, _ = npy.read_magic(file)
        if major != 1:
            raise ValueError(f"its entry {entry.filename!r} is of another format of NumPy's")
        shape, by_columns, dtype = npy.read_array_header_1_0(file, max_header_size=_HEADER)
        there = entry.file_size - file.tell()
        if dtype.kind not in _KINDS or not dtype.isnative or min(shape, default=0) < 0:
            raise ValueError(f"its entry {entry.filename!r} is {dtype} of shape {shape}")
        if prod(shape) * dtype.itemsize != there:
            raise ValueError(
                f"its entry {entry.filename!r} has {there} bytes, and its shape {shape} of {dtype} "
                f"takes {prod(shape) * dtype.itemsize}"
            )
        # one byte more: the sum is compared where the reader comes to the end
        values = np.frombuffer(bytearray(file.read(there + 1)), dtype)
    return values.reshape(shape, order="F" if by_columns else "C")
