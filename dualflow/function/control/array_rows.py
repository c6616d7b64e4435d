"""The rows of a TensorArray whose size only the run knows, written one by one."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import zero_array
from dualflow.core.dtypes import DType
from dualflow.core.errors import OutOfRangeError
from dualflow.core.shape import Shape
from dualflow.core.size_functions import largest, smallest
from dualflow.core.spec import TensorSpec
from dualflow.function.control.raising import require
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.broadcasting import BROADCAST_TO
from dualflow.ops.comparison import equal, greater_equal, less, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import zeros_like
from dualflow.ops.indexing import GETITEM, PLACE
from dualflow.ops.op_kinds import Decompose
from dualflow.ops.positions import IOTA
from dualflow.ops.record import Op
from dualflow.ops.repetition import PAD
from dualflow.ops.scattering import UPDATE_ND
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape
from dualflow.ops.taking import gather

Array = np.ndarray[Any, Any]


def written(rows: Any, index: Any, value: Any, *, grows: bool) -> Any:
    """``rows`` with ``value`` in one place; longer if the place is beyond the end and they grow."""
    return dispatch.current().apply(_WRITE, (rows, index, value, count(rows)), {"grows": grows})


def opened(rows: Any) -> Any:
    """``rows`` with an open size, as a loop carries them whose iterations may append to them."""
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
        raise _beyond(at, len(rows))
    found = zero_array((max(len(rows), at + 1), *rows.shape[1:]), rows.dtype)
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


def _beyond(at: Any, count: Any) -> OutOfRangeError:
    return OutOfRangeError(
        f"Tried to write to index {int(at)} but array is not resizeable and size is: {int(count)}"
    )


def _with_row(read: Any, rows: Any, index: Any, value: Any, before: Any, *, grows: bool) -> Any:
    engine = dispatch.current()
    inside = greater_equal(index, zeros_like(index))
    if not grows:
        inside = logical_and(inside, less(cast(index, before.dtype), before))
    require(inside, _beyond, (index, before))
    if grows:
        (at,) = read(index)
        more = largest(at + 1 - rows.shape[0], 0)
        ends = ((0, more), *[(0, 0)] * (len(rows.shape) - 1))
        rows = engine.apply(PAD, (rows,), {"paddings": ends, "value": 0})
    place = reshape(index, (1, 1))
    return engine.apply(UPDATE_ND, (rows, place, expand_dims(value, 0)), {})


def _blank_rows(read: Any, size: Any, element: Shape, dtype: DType) -> Any:
    engine = dispatch.current()
    zero = engine.constant(zero_array((), dtype.dtype))
    return engine.apply(BROADCAST_TO, (zero,), {"shape": Shape((*read(size, 0), *element))})


def _resize_rows(read: Any, rows: Any, size: Any, index: Any) -> Any:
    engine, (count,) = dispatch.current(), read(size, 0)
    shared = smallest(count, rows.shape[0])
    rest = tuple([(0, d, 1) for d in rows.shape[1:]])
    kept = engine.apply(GETITEM, (rows,), {"key": ((0, shared, 1), *rest)})
    sizes = Shape((count, *rows.shape[1:]))
    padded = engine.apply(PLACE, (kept,), {"key": ((0, shared, 1), *rest), "shape": sizes})
    shape = (count, *[1] * (len(rows.shape) - 1))
    place = engine.apply(IOTA, (), {"shape": shape, "axis": 0, "dtype": index.dtype})
    return where(equal(place, index), zero_array((), rows.dtype.dtype), padded)


_RESIZE: Final = Op(
    name="array_resize",
    doc="So many of the rows, or zeros beyond them, and zeros in one place.",
    infer=lambda rows, size, index: _open_spec(rows),
    kernel=_run_resize,
    kind=Decompose(_resize_rows),
    vjp=(lambda g, out, rows, size, index: _resized(g, count(rows), index), None, None),
)

_WRITE: Final = Op(
    name="array_write",
    doc="Rows with a value in one place; ``before`` is how many there were.",
    infer=lambda rows, index, value, before, grows: _open_spec(rows),
    kernel=_run_write,
    kind=Decompose(_with_row),
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
    kind=Decompose(lambda read, rows: rows),
    vjp=(lambda g, out, rows: reshape(g, rows.shape),),
)

_BLANK: Final = Op(
    name="array_blank",
    doc="Rows of zeros, as many as ``size`` says.",
    infer=lambda size, element, dtype: TensorSpec.of(Shape((None, *element)), dtype),
    kernel=lambda size, element, dtype: np.zeros((int(size), *element), dtype.dtype),
    kind=Decompose(_blank_rows),
)
