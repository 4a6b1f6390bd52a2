"""Values for arguments: of wrong types, shapes and ranges, and good ones in unusual clothes.

Each function draws a pair: a description, which tells how to make the value again, and the value.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
from scipy import sparse

JUNK = [
    *(None, "bogus", "", "auto", b"auto", "1.0", [], (), {}, set(), object(), dict, len),
    *(float("nan"), float("inf"), float("-inf"), 0, -0.0, 1, -1, 2, 3.0, 0.5, True, np.False_),
    *(2**31, 2**70, 5e-324, 1e-300, 1e-20, 1e20, 1e300, 1j, Decimal(1), Fraction(1, 2)),
    *(np.float32(0.5), np.float16(2), np.int64(3), np.uint8(2), np.str_("bogus"), pd.NA, pd.NaT),
    *(np.datetime64("2020-01-01"), [1.0], [1, 2], [[1.0], [1.0, 2.0]]),
    *(np.array(2.0), np.array([1.0, 2.0, 3.0]), np.array([]), np.eye(2), np.ones((2, 2, 2))),
    *(np.array(["a", "b"]), np.array([1, "a"], dtype=object)),
    *(pd.DataFrame({"a": [1.0, 2.0]}), sparse.eye_array(2).tocsr()),
]


def pick(rng, values):
    """One of the values, each as likely as the others."""
    return values[rng.integers(len(values))]


def setting(rng):
    """Any value for what should be a name, a number, a component or None."""
    number = float(10.0 ** rng.uniform(-25, 25))
    value = pick(rng, [*JUNK, *JUNK, number, -number, *rng.random(20).tolist(), *range(-3, 30)])
    return " ".join(repr(value).split()), value


# ---- arrays ---------------------------------------------------------------------------------


def put(value):
    """Change of the number in the middle."""

    def change(a):
        changed = np.array(a, dtype=float)
        changed.flat[changed.size // 2 : changed.size // 2 + 1] = value
        return changed

    return change


def column(change):
    """Change of the first column, or of all of a vector."""

    def of(a):
        changed = np.array(a, dtype=float)
        part = changed[:, :1] if changed.ndim == 2 else changed
        part[...] = change(part)
        return changed

    return of


def read_only(a):
    a = np.array(a)
    a.flags.writeable = False
    return a


def nullable(a):
    if a.dtype.kind not in "fiu":
        return pd.array(a.tolist())
    return pd.array(a, "Float64") if a.ndim == 1 else pd.DataFrame(a).astype("Float64")


def with_na(a):
    a = nullable(a)
    if isinstance(a, pd.DataFrame):
        a.iloc[0, 0] = pd.NA
    else:
        a[0] = pd.NA
    return a


CHANGES = {
    "as it is": np.array,
    **{f"{value} in one place": put(value) for value in (np.nan, np.inf, 1e300, 1e16, -1.0, 0.5)},
    # sizes and shapes
    "empty": lambda a: a[:0],
    "no columns": lambda a: a[..., :0],
    "one row": lambda a: a[:1],
    "two rows": lambda a: a[:2],
    "one row less": lambda a: a[:-1],
    "a number": lambda a: 3.0,
    "0-d": lambda a: np.array(1.0),
    "one axis more": lambda a: a[..., None],
    "3-d": lambda a: np.zeros((2, 2, 2)),
    "flat": np.ravel,
    "transposed": np.transpose,
    "ragged": lambda a: [*a.tolist()[:-1], [1.0, 2.0, 3.0, 4.0, 5.0]],
    # types
    "objects": lambda a: a.astype(object),
    "object among them": lambda a: np.append(a.astype(object).ravel()[:-1], [{}]),
    "None in it": lambda a: np.append(a.astype(object).ravel()[:-1], [None]),
    "strings": lambda a: a.astype(str),
    "words": lambda a: np.full(a.shape, "a"),
    "bytes": lambda a: a.astype("S8"),
    "datetimes": lambda a: np.zeros(a.shape, dtype="M8[s]"),
    "durations": lambda a: np.zeros(a.shape, dtype="m8[s]"),
    "complex": lambda a: np.zeros(a.shape, dtype=complex),
    "bool": lambda a: a > 0,
    **{
        name: lambda a, name=name: a.astype(name)
        for name in ("float16", "float32", "longdouble", ">f8")
    },
    **{
        name: lambda a, name=name: np.rint(np.abs(a.astype(float))).astype(name)
        for name in ("int8", "int64", "uint64")
    },
    # memory
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "backwards": lambda a: a[::-1],
    "Fortran": np.asfortranarray,
    "read-only": read_only,
    "masked": lambda a: np.ma.masked_array(a, a > 1e9),
    # containers
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(a.tolist()),
    "set": lambda a: set(a.ravel().tolist()),
    "dict": lambda a: dict(enumerate(a.tolist())),
    "generator": lambda a: (row for row in a),
    "frame": pd.DataFrame,
    "series": lambda a: pd.Series(a.ravel()),
    "frame of strings": lambda a: pd.DataFrame(a).astype(str),
    "categories": lambda a: pd.Series(a.ravel()).astype("category"),
    "nullable": nullable,
    "NA": with_na,
    "csr": lambda a: sparse.csr_array(np.atleast_2d(a)),
    "coo matrix": lambda a: sparse.coo_matrix(np.atleast_2d(a)),
    # numbers
    "negative zeros": lambda a: np.full(a.shape, -0.0),
    "ones": lambda a: np.ones(a.shape),
    "one value apart": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 0, 1, 0.0),
    "constant column": column(lambda part: 7.0),
    "zero column": column(lambda part: 0.0),
    "denormal column": column(lambda part: part * 1e-310),
    "offset column": column(lambda part: part + 1e8),
    "copied column": lambda a: np.hstack([np.atleast_2d(a), np.atleast_2d(a)[..., :1]]),
    "offset 1e8": lambda a: a.astype(float) + 1e8,
}
for _k in (-300, -150, -60, -20, -12, -6, 6, 12, 20, 40, 60, 150, 300):
    CHANGES[f"times 1e{_k}"] = lambda a, k=_k: a.astype(float) * 10.0**k
    CHANGES[f"first column times 1e{_k}"] = column(lambda part, k=_k: part * 10.0**k)


_CANNOT = (TypeError, ValueError, IndexError, AttributeError, np.exceptions.ComplexWarning)
_CANNOT += (RuntimeError,)  # dates as bytes


def array(rng, good):
    """A good array changed once or twice, or something that is none."""
    if rng.integers(4) == 0:
        return setting(rng)
    value, done = good, []
    for name in rng.choice(list(CHANGES), rng.integers(1, 3)):
        try:
            with np.errstate(all="ignore"):
                value = CHANGES[name](np.asarray(value))
        except _CANNOT:
            break  # what has been changed can no more be changed in this way
        done.append(name)
    return ", then ".join(done or ["as it is"]), value
