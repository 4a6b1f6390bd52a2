"""Values for arguments: of wrong types, shapes and ranges, and good ones in unusual clothes.

Each strategy draws pairs of a description, which tells how to make the value again, and the value.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse

JUNK = {
    "None": None,
    "'bogus'": "bogus",
    "''": "",
    "'auto'": "auto",
    "b'auto'": b"auto",
    "[]": [],
    "()": (),
    "{}": {},
    "set()": set(),
    "object()": object(),
    "type": dict,
    "function": len,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "0": 0,
    "-0.0": -0.0,
    "1": 1,
    "-1": -1,
    "2": 2,
    "3.0": 3.0,
    "0.5": 0.5,
    "2**31": 2**31,
    "2**70": 2**70,
    "5e-324": 5e-324,
    "1e-300": 1e-300,
    "1e-20": 1e-20,
    "1e20": 1e20,
    "1e300": 1e300,
    "True": True,
    "np.False_": np.False_,
    "np.float32(0.5)": np.float32(0.5),
    "np.float16(2)": np.float16(2),
    "np.int64(3)": np.int64(3),
    "np.uint8(2)": np.uint8(2),
    "np.str_": np.str_("bogus"),
    "Decimal(1)": Decimal(1),
    "Fraction(1, 2)": Fraction(1, 2),
    "1j": 1j,
    "'1.0'": "1.0",
    "NA": pd.NA,
    "NaT": pd.NaT,
    "datetime": np.datetime64("2020-01-01"),
    "array(2)": np.array(2.0),
    "[1.0]": [1.0],
    "[1, 2]": [1, 2],
    "array of 3": np.array([1.0, 2.0, 3.0]),
    "array of 0": np.array([]),
    "eye(2)": np.eye(2),
    "ones(2, 2, 2)": np.ones((2, 2, 2)),
    "strings": np.array(["a", "b"]),
    "objects": np.array([1, "a"], dtype=object),
    "ragged": [[1.0], [1.0, 2.0]],
    "frame": pd.DataFrame({"a": [1.0, 2.0]}),
    "sparse": sparse.eye_array(2).tocsr(),
}


def settings():
    """Any value for what should be a name, a number, a component or None."""
    numbers = st.one_of(st.floats(allow_nan=False), st.floats(0.0, 1.0), st.integers(-3, 30))
    text = st.text("abc_'", max_size=4)
    return st.one_of(
        st.sampled_from(sorted(JUNK)).map(lambda name: (name, JUNK[name])),
        numbers.map(lambda value: (repr(value), value)),
        text.map(lambda value: (repr(value), value)),
    )


# ---- arrays ---------------------------------------------------------------------------------


def _put(value):
    def change(a):
        changed = np.array(a, dtype=float)
        changed.flat[changed.size // 2 : changed.size // 2 + 1] = value
        return changed

    return change


def _times(exponent, column=None):
    def change(a):
        changed = np.array(a, dtype=float)
        changed[..., slice(None) if column is None else slice(column, column + 1)] *= 10.0**exponent
        return changed

    return change


def _column(change):
    """Change of the first column, or of all of a vector."""

    def of(a):
        changed = np.array(a, dtype=float)
        part = changed[:, :1] if changed.ndim == 2 else changed
        part[...] = change(part)
        return changed

    return of


def _strided(a):
    wide = np.repeat(np.asarray(a), 2, axis=-1)
    return wide[..., ::2] if wide.ndim else wide


def _read_only(a):
    a = np.array(a)
    a.flags.writeable = False
    return a


def _nullable(a):
    a = np.asarray(a)
    if a.dtype.kind not in "fiu":
        return pd.array(a.tolist())
    return pd.array(a, "Float64") if a.ndim == 1 else pd.DataFrame(a).astype("Float64")


def _with_na(a):
    a = _nullable(a)
    if isinstance(a, pd.DataFrame):
        a.iloc[0, 0] = pd.NA
    else:
        a[0] = pd.NA
    return a


def _ragged(a):
    rows = np.asarray(a).tolist()
    return [*rows[:-1], [1.0, 2.0, 3.0, 4.0, 5.0]]


CHANGES = {
    "as it is": np.array,
    "nan": _put(np.nan),
    "inf": _put(np.inf),
    "-inf": _put(-np.inf),
    "1e300 in one place": _put(1e300),
    "1e16 in one place": _put(1e16),
    "-1 in one place": _put(-1.0),
    "0.5 in one place": _put(0.5),
    "empty": lambda a: np.asarray(a)[:0],
    "no columns": lambda a: np.asarray(a)[..., :0],
    "one row": lambda a: np.asarray(a)[:1],
    "two rows": lambda a: np.asarray(a)[:2],
    "one row less": lambda a: np.asarray(a)[:-1],
    "objects": lambda a: np.asarray(a).astype(object),
    "object among them": lambda a: np.append(np.asarray(a).astype(object).ravel()[:-1], [{}]),
    "strings": lambda a: np.asarray(a).astype(str),
    "words": lambda a: np.full(np.shape(a), "a"),
    "bytes": lambda a: np.asarray(a).astype("S8"),
    "None in it": lambda a: np.append(np.asarray(a).astype(object).ravel()[:-1], [None]),
    "datetimes": lambda a: np.zeros(np.shape(a), dtype="M8[s]"),
    "durations": lambda a: np.zeros(np.shape(a), dtype="m8[s]"),
    "complex": lambda a: np.zeros(np.shape(a), dtype=complex),
    "a number": lambda a: 3.0,
    "0-d": lambda a: np.array(1.0),
    "one axis more": lambda a: np.asarray(a)[..., None],
    "3-d": lambda a: np.zeros((2, 2, 2)),
    "flat": np.ravel,
    "transposed": np.transpose,
    "strided": _strided,
    "backwards": lambda a: np.asarray(a)[::-1],
    "Fortran": lambda a: np.asfortranarray(np.asarray(a)),
    "swapped bytes": lambda a: np.asarray(a).astype(">f8", copy=True),
    "read-only": _read_only,
    "float16": lambda a: np.asarray(a).astype(np.float16),
    "float32": lambda a: np.asarray(a).astype(np.float32),
    "long double": lambda a: np.asarray(a).astype(np.longdouble),
    "int8": lambda a: np.rint(np.asarray(a, float)).astype(np.int8),
    "int64": lambda a: np.rint(np.asarray(a, float)).astype(np.int64),
    "uint64": lambda a: np.rint(np.abs(np.asarray(a, float))).astype(np.uint64),
    "bool": lambda a: np.asarray(a) > 0,
    "list": lambda a: np.asarray(a).tolist(),
    "tuple": lambda a: tuple(np.asarray(a).tolist()),
    "set": lambda a: set(np.ravel(a).tolist()),
    "dict": lambda a: dict(enumerate(np.asarray(a).tolist())),
    "ragged": _ragged,
    "generator": lambda a: (row for row in np.asarray(a)),
    "frame": lambda a: pd.DataFrame(np.asarray(a)),
    "series": lambda a: pd.Series(np.ravel(a)),
    "frame of strings": lambda a: pd.DataFrame(np.asarray(a)).astype(str),
    "categories": lambda a: pd.Series(np.ravel(a)).astype("category"),
    "nullable": _nullable,
    "NA": _with_na,
    "masked": lambda a: np.ma.masked_array(np.asarray(a), np.asarray(a) > 1e9),
    "csr": lambda a: sparse.csr_array(np.atleast_2d(np.asarray(a))),
    "coo matrix": lambda a: sparse.coo_matrix(np.atleast_2d(np.asarray(a))),
    "negative zeros": lambda a: np.full(np.shape(a), -0.0),
    "ones": lambda a: np.ones(np.shape(a)),
    "constant column": _column(lambda part: 7.0),
    "zero column": _column(lambda part: 0.0),
    "denormal column": _column(lambda part: part * 1e-310),
    "offset 1e8": lambda a: np.asarray(a, float) + 1e8,
    "offset column": _column(lambda part: part + 1e8),
    "copied column": lambda a: np.hstack([np.atleast_2d(a), np.atleast_2d(a)[..., :1]]),
    "one value apart": lambda a: np.where(np.arange(np.size(a)).reshape(np.shape(a)) == 0, 1, 0.0),
}
for _k in (-300, -150, -60, -20, -12, -6, 6, 12, 20, 40, 60, 150, 300):
    CHANGES[f"times 1e{_k}"] = _times(_k)
    CHANGES[f"first column times 1e{_k}"] = _times(_k, 0)


def arrays(good):
    """A good array changed once or twice, or something that is none."""
    return st.one_of(_changed(good), _changed(good), _changed(good), settings())


@st.composite
def _changed(draw, good):
    names = draw(st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=2))
    value, done = good, []
    for name in names:
        try:
            with np.errstate(all="ignore"):
                value = CHANGES[name](value)
        except (TypeError, ValueError, IndexError, AttributeError, np.exceptions.ComplexWarning):
            break  # what has been changed can no more be changed in this way
        done.append(name)
    return ", then ".join(done or ["as it is"]), value
