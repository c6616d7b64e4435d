"""Parameters of compiled functions: arrays and numbers, each with its dtype."""

from __future__ import annotations

from collections.abc import Sequence

from dualflow.backends.numba.source_lines import type_name
from dualflow.core.dtypes import DType
from dualflow.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """A flat array of a dtype, or one number of it."""

    name: str
    dtype: DType
    array: bool = False


def names(parameters: Sequence[Parameter]) -> str:
    """The parameter list of a function's head."""
    return ", ".join(p.name for p in parameters)


def dtype_name(dtype: DType) -> str:
    """The name of a dtype in source.

    >>> from dualflow.core.dtypes import as_dtype
    >>> dtype_name(as_dtype("float32")), dtype_name(as_dtype("complex64"))
    ('f32', 'np.complex64')
    """
    if dtype.char not in "?bBhHiIlLqQfd":
        return f"np.dtype({dtype.name!r})" if dtype.narrow else f"np.{dtype.name}"
    return type_name(dtype)
