"""The rows of a TensorArray whose size only the run knows: written one by one, by NumPy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType
from dualflow.core.errors import OutOfRangeError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import reshape
from dualflow.ops.forms import Opaque
from dualflow.ops.record import Op
from dualflow.ops.shapes import shape
from dualflow.ops.taking import gather

Array = np.ndarray[Any, Any]
_FORM: Final = Opaque("only the run knows the size of the TensorArray")


def written(rows: Any, index: Any, value: Any, *, grows: bool) -> Any:
    """``rows`` with ``value`` in one place; longer if the place is beyond the end and they grow."""
    return dispatch.current().apply(_WRITE, (rows, index, value, count(rows)), {"grows": grows})


def opened(rows: Any) -> Any:
    """``rows`` with an open size, as a loop carries them whose turns may append to them."""
    return rows if rows.shape[0] is None else dispatch.current().apply(_OPEN, (rows,), {})


def blank(size: Any, element: Shape, dtype: DType) -> Any:
    """Rows of zeros, as many as ``size`` says."""
    return dispatch.current().apply(_BLANK, (size,), {"element": element, "dtype": dtype})


def count(rows: Any) -> Any:
    """How many rows there are, a scalar."""
    return shape(rows)[0]


def _open_spec(rows: TensorSpec) -> TensorSpec:
    return TensorSpec.of(Shape((None, *rows.shape[1:])), rows.dtype)


def _run_write(rows: Array, index: Array, value: Array, before: Array, grows: bool) -> Array:
    at = int(index)
    if at < 0 or (at >= len(rows) and not grows):
        raise OutOfRangeError(
            f"Tried to write to index {at} but array is not resizeable and size is: {len(rows)}"
        )
    found = np.zeros((max(len(rows), at + 1), *rows.shape[1:]), rows.dtype)
    found[: len(rows)] = rows
    found[at] = value
    return found


def _run_resize(rows: Array, size: Array, index: Array) -> Array:
    found = np.zeros((int(size), *rows.shape[1:]), rows.dtype)
    shared = min(len(rows), len(found))
    found[:shared] = rows[:shared]
    if int(index) < len(found):
        found[int(index)] = 0
    return found


def _resized(rows: Any, size: Any, index: Any) -> Any:
    return dispatch.current().apply(_RESIZE, (rows, size, index), {})


_RESIZE: Final = Op(
    name="array_resize",
    doc="So many of the rows, or zeros beyond them, and zeros in one place.",
    infer=lambda rows, size, index: _open_spec(rows),
    kernel=_run_resize,
    form=_FORM,
    vjp=(lambda g, out, rows, size, index: _resized(g, count(rows), index), None, None),
)

_WRITE: Final = Op(
    name="array_write",
    doc="Rows with a value in one place; ``before`` is how many there were.",
    infer=lambda rows, index, value, before, grows: _open_spec(rows),
    kernel=_run_write,
    form=_FORM,
    vjp=(
        lambda g, out, rows, index, value, before, grows: _resized(g, before, index),
        None,
        lambda g, out, rows, index, value, before, grows: gather(g, index),
        None,
    ),
)

_OPEN: Final = Op(
    name="array_open",
    doc="Rows, of a size that is left open.",
    infer=_open_spec,
    kernel=lambda rows: rows,
    form=_FORM,
    vjp=(lambda g, out, rows: reshape(g, rows.shape),),
)

_BLANK: Final = Op(
    name="array_blank",
    doc="Rows of zeros, as many as ``size`` says.",
    infer=lambda size, element, dtype: TensorSpec.of(Shape((None, *element)), dtype),
    kernel=lambda size, element, dtype: np.zeros((int(size), *element), dtype.dtype),
    form=_FORM,
)
