"""Checkpoints that were changed, by chance or on purpose: ``python -m tests.soak.files``.

Every file is handed to ``fit(resume_from=...)`` in a process whose address space may grow by one
gibibyte. It must end in a ``ValueError`` that names the file, or, where the change is harmless, in
the very draws of the run. Nothing may be executed, and nothing written.
"""

from __future__ import annotations

import io
import json
import pickle
import resource
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from skbayes_sgld import SGLDLinearRegression

from .report import Report, options

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 2))
Y = X @ [1.0, -2.0] + RNG.standard_normal(30)
SETTINGS = {"n_draws": 40, "n_burnin": 5, "thin": 2, "step_size": 0.5, "random_state": 0}
GROWTH = 2**30  # bytes of the address space
SLACK = 64 * 2**20  # bytes by which reading all of them may raise the memory that is in use
Entries = dict[str, bytes]


class Malice:
    """An object whose pickle writes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "executed")


def entries_of(whole: bytes) -> Entries:
    """Contents of an archive by their names."""
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def archive_of(entries: Entries, compression: int = zipfile.ZIP_STORED) -> bytes:
    """Archive whose sums are right, whatever is in it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


def array_of(descr: object, shape: object, payload: bytes) -> bytes:
    """Entry that says of itself what it is told to."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + payload


def choose(rng: np.random.Generator, entries: Entries, but: tuple[str, ...] = ()) -> str:
    names = [name for name in entries if name not in but]
    return names[rng.integers(len(names))]


# ---- what chance does --------------------------------------------------------------------------


def flip_bits(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    content = np.frombuffer(whole, dtype=np.uint8).copy()
    for at in rng.integers(content.size, size=rng.integers(1, 20)):
        content[at] ^= 1 << rng.integers(8)
    return content.tobytes()


def truncate(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    cut = int(rng.integers(len(whole)))
    return whole[:cut] if rng.integers(2) else whole[cut + 1 :]


def cut_out(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    first, last = sorted(rng.integers(len(whole) + 1, size=2))
    return whole[:first] + whole[last + (first == last) :]


def put_in(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    at = int(rng.integers(len(whole)))
    return whole[:at] + rng.bytes(int(rng.integers(1, 5000))) + whole[at:]


def erase(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    at, n = int(rng.integers(len(whole) - 1)), int(rng.integers(1, 600))
    return whole[:at] + bytes(min(n, len(whole) - at)) + whole[at + n :]


def other_file(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    there = [b"", b"text\n", b"PK\x05\x06" + bytes(18), pickle.dumps(Malice(folder / "executed"))]
    there += [rng.bytes(int(rng.integers(1, 10_000))), b"\x89PNG\r\n" + rng.bytes(100)]
    file = io.BytesIO()
    np.savez(file, draws=np.zeros((2, 3)))
    return [*there, file.getvalue()][rng.integers(len(there) + 1)]


# ---- what somebody does on purpose, whose sums are right ---------------------------------------


def shape(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    entries = entries_of(whole)
    name = choose(rng, entries)
    array = np.load(io.BytesIO(entries[name]))
    n = array.size
    shapes = [(10**12,), (2**62, 2), (-1, -n), (n + 1,), (max(n - 1, 0),), (1,) * 40, ("a",), n, ()]
    shapes += [(0, 10**18), (10**400,), (n, True), [n], tuple(np.array(array.shape) + 1)]
    said = shapes[rng.integers(len(shapes))]
    entries[name] = array_of(array.dtype.str, said, array.tobytes())
    return archive_of(entries)


def other_array(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    """A whole array, but of another shape than the others."""
    entries = entries_of(whole)
    name = choose(rng, entries, ("header.npy",))
    array = np.load(io.BytesIO(entries[name]))
    others = [array[None], array[:-1], array[..., :0], np.concatenate([array, array]), array[0]]
    others += [np.array(1.0), np.zeros((0, 0, 0)), np.full_like(array, np.nan, dtype=float)]
    file = io.BytesIO()
    np.save(file, others[rng.integers(len(others))])
    return archive_of(entries | {name: file.getvalue()})


def type_of_numbers(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    entries = entries_of(whole)
    name = choose(rng, entries)
    said = ["|O", "<U8", "|S8", "|V8", "<c16", ">f8", "<M8[s]", [("a", "<f8")], "x", "<f8" * 999]
    bad = pickle.dumps(Malice(folder / "executed"))
    entries[name] = array_of(said[rng.integers(len(said))], (1,), bad)
    return archive_of(entries)


def names(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    entries = entries_of(whole)
    outside = [
        "../outside.npy",
        str(folder / "outside.npy"),
        "/outside.npy",
        "state.../outside.npy",
    ]
    outside += ["..\\outside.npy", "nul\x00byte.npy", "a/" * 200 + "x.npy", "draws", "__init__.py"]
    name = choose(rng, entries)
    content = entries[name] if rng.integers(2) else entries.pop(name)
    return archive_of(entries | {outside[rng.integers(len(outside))]: content})


def without_one(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    entries = entries_of(whole)
    del entries[choose(rng, entries)]
    return archive_of(entries)


def twice(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    entries = entries_of(whole)
    file, name = io.BytesIO(whole), choose(rng, entries)
    with zipfile.ZipFile(file, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr(name, entries[name])
    return file.getvalue()


def bomb(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    """Small files that say that they are large, or that become large."""
    entries = entries_of(whole)
    kind, name = rng.integers(4), choose(rng, entries)
    if kind == 0:  # a thousand times its size
        zeros = array_of("<f8", (2**20,), bytes(2**23))
        return archive_of(entries | {name: zeros}, zipfile.ZIP_DEFLATED)
    if kind == 1:
        return archive_of(entries, (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)[rng.integers(2)])
    content, directory = bytearray(whole), whole.index(b"PK\x01\x02")
    if kind == 2:  # a length that is not there
        content[directory + 20 : directory + 28] = struct.pack("<II", 0xFFFFFFF0, 0xFFFFFFF0)
        return bytes(content)
    # every entry of the directory points to the first
    while directory >= 0:
        content[directory + 42 : directory + 46] = bytes(4)
        directory = whole.find(b"PK\x01\x02", directory + 1)
    return bytes(content)


def header(whole: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    entries = entries_of(whole)
    text = np.load(io.BytesIO(entries["header.npy"])).tobytes()
    said = json.loads(text)
    values = [None, -1, 10**30, 1.5, "x", [], {}, [[]], True, {"a": 1}, float("nan"), "9" * 5000]
    kind = rng.integers(4)
    # changes of what only people read are none
    name = [each for each in said if each not in ("libraries", "finished")][rng.integers(6)]
    if kind == 0:
        del said[name]
    elif kind == 1:
        inner = said[name]
        if isinstance(inner, dict):
            inner[list(inner)[rng.integers(len(inner))]] = values[rng.integers(len(values))]
        else:
            said[name] = values[rng.integers(len(values))]
    else:
        said[name] = values[rng.integers(len(values))]
    text = json.dumps(said).encode()
    if kind == 3:
        texts = [b"[" * 100_000, b"\xff\xfe", text[:-1], b"[]", b"null", text.replace(b",", b";")]
        text = texts[rng.integers(len(texts))]
    file = io.BytesIO()
    np.save(file, np.frombuffer(text, dtype=np.uint8))
    return archive_of(entries | {"header.npy": file.getvalue()})


CHANGES: dict[str, Callable[[bytes, np.random.Generator, Path], bytes]] = {
    "bits flipped": flip_bits,
    "truncated": truncate,
    "a piece cut out": cut_out,
    "bytes put in": put_in,
    "bytes erased": erase,
    "another file": other_file,
    "shape that is not there": shape,
    "array of another shape": other_array,
    "type of numbers, pickles": type_of_numbers,
    "names, paths": names,
    "an entry missing": without_one,
    "an entry twice": twice,
    "zip bombs": bomb,
    "header": header,
}


def in_use() -> int:
    """Bytes of the address space that the process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def judge(content: bytes, path: Path, expected: np.ndarray) -> tuple[str, str]:
    """Outcome of a changed file, "refused" or "harmless", and what is wrong, if anything."""
    path.write_bytes(content)
    model = SGLDLinearRegression(**SETTINGS, resume_from=path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)  # of so few draws
            model.fit(X, Y)
    except ValueError as error:
        named = f"resume_from={str(path)!r}" in str(error)
        # no memory where there is a limit: somebody has tried to take more
        right = named and "MemoryError" not in str(error) and vars(model).keys() == KEYS
        return "refused", "" if right else f"{type(error).__name__}: {error}"
    except BaseException as error:
        return "refused", f"{type(error).__name__}: {error}"
    same = np.array_equal(model.posterior_.values, expected)
    return "harmless", "" if same else "it was taken, and its draws are others"


KEYS = SGLDLinearRegression().get_params(deep=False).keys()


def run(report: Report, n_cases: int, seed: int) -> pd.DataFrame:
    """Change a checkpoint so often, and count what becomes of it."""
    rows = []
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with TemporaryDirectory() as name:
        folder = Path(name)
        whole_path, path = folder / "whole.npz", folder / "changed.npz"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            short = SGLDLinearRegression(**SETTINGS | {"n_draws": 30}, checkpoint=whole_path)
            short.fit(X, Y)
            expected = SGLDLinearRegression(**SETTINGS).fit(X, Y).posterior_.values
        whole = whole_path.read_bytes()
        report.check(judge(whole, path, expected)[1] == "", "the file itself is refused")
        assert np.array_equal(short.posterior_.values, expected[:, :30])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        resource.setrlimit(resource.RLIMIT_AS, (in_use() + GROWTH, limits[1]))
        try:
            for number in range(n_cases):
                if report.is_over:
                    break
                rng = np.random.default_rng([seed, number])
                kind = list(CHANGES)[number % len(CHANGES)]
                outcome, wrong = judge(CHANGES[kind](whole, rng, folder), path, expected)
                report.check(not wrong, f"{kind}, number {number}: {wrong}")
                rows.append({"change": kind, "outcome": outcome})
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
        report.check(grown < SLACK, f"memory in use grew by {grown / 2**20:.0f} MiB")
        there = sorted(each.name for each in folder.iterdir())
        report.check(there == ["changed.npz", "whole.npz"], f"there are other files: {there}")
    report.check(not Path("executed").exists(), "a pickle was executed")
    return pd.DataFrame(rows)


def main() -> None:
    """Change as many files as were asked for."""
    given = options("tests.soak.files", 10_000, float("inf"))
    report = Report("Checkpoints that were changed", given.seconds)
    found = run(report, given.cases, given.seed)
    table = pd.crosstab(found["change"], found["outcome"]).reset_index()
    report.end(table, [f"{len(found)} files"])


if __name__ == "__main__":
    main()
