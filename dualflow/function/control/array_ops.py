"""Ops on the elements of a TensorArray of dynamic size: one tensor, with an element in each row."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import zero_array
from dualflow.core.dtypes import DType, int32
from dualflow.core.errors import InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.control.graph_exceptions import require
from dualflow.ops.arithmetic import maximum
from dualflow.ops.arrangement import expand_dims, reshape
from dualflow.ops.attribute_values import in_text
from dualflow.ops.broadcasting import BROADCAST_TO
from dualflow.ops.comparison import equal, greater_equal, less, logical_and
from dualflow.ops.conversion import cast
from dualflow.ops.creation import zeros_like
from dualflow.ops.indexing import GETITEM, PLACE
from dualflow.ops.joining import concat, stack
from dualflow.ops.op_kinds import Decompose, SizeReader
from dualflow.ops.positions import IOTA
from dualflow.ops.record import Op
from dualflow.ops.repetition import PAD, pad
from dualflow.ops.scattering import UPDATE_ND
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import sizes_of
from dualflow.sizes.size_functions import largest, smallest

Array = np.ndarray[Any, Any]


def write_row(rows: Any, index: Any, value: Any, *, grows: bool) -> Any:
    """``rows`` with ``value`` at ``index``.

    If it ``grows``, zeros are appended up to an index past the end.
    """
    return dispatch.current().apply(_WRITE, (rows, index, value, row_count(rows)), {"grows": grows})


def fitted_rows(rows: Any, size: Any, *, grows: bool) -> Any:
    """``rows``, followed by zeros up to ``size`` rows; more rows are an error unless the array ``grows``."""
    count = cast(row_count(rows), size.dtype)
    if not grows:
        require(greater_equal(size, count), _too_many_rows, (count, size))
    ends = stack([zeros_like(size), maximum(size - count, 0)])
    others = np.zeros((len(rows.shape) - 1, 2), np.int32)
    return pad(rows, concat([ends[None], cast(others, size.dtype)], 0))


def with_dynamic_size(rows: Any) -> Any:
    """``rows`` with a dynamic first size, since iterations of the loop that carries them may append rows."""
    return rows if rows.shape[0] is None else dispatch.current().apply(_WITH_DYNAMIC_SIZE, (rows,), {})


def zero_rows(size: Any, element: Shape, dtype: DType, sizes: Any = None) -> Any:
    """``size`` rows of zeros of the shape ``element``, whose ``sizes`` are a vector if some are dynamic."""
    inputs = (size,) if sizes is None else (size, sizes)
    return dispatch.current().apply(_BLANK, inputs, {"element": element, "dtype": dtype})


def joined_rows(rows: Any) -> Any:
    """The rows, joined along their first axis."""
    if len(rows.shape) < 2:
        raise InvalidArgumentError(
            "The elements of this TensorArray are scalars, which can't be concatenated; use stack()."
        )
    if Shape(rows.shape[2:]).is_static:
        return reshape(rows, [-1, *rows.shape[2:]])
    return reshape(rows, concat([[-1], sizes_of(rows, int32)[2:]], 0))


def row_count(rows: Any) -> Any:
    """The number of rows, a scalar."""
    return shape(rows)[0]


def _with_dynamic_rows(rows: TensorSpec) -> TensorSpec:
    """The spec of rows whose number is known only at run time."""
    return TensorSpec.of(Shape((None, *rows.shape[1:])), rows.dtype)


def _run_write(rows: Array, index: Array, value: Array, size: Array, grows: bool) -> Array:
    at = int(index)
    if at < 0 or (at >= len(rows) and not grows):
        raise _out_of_range(at, len(rows))
    if value.shape != rows.shape[1:]:
        raise InvalidArgumentError(
            f"An element of shape {value.shape} is written to a TensorArray of elements of shape "
            f"{rows.shape[1:]}; the elements of a TensorArray have one shape."
        )
    result = zero_array((max(len(rows), at + 1), *rows.shape[1:]), rows.dtype)
    result[: len(rows)] = rows
    result[at] = value
    return result


def _run_resize(rows: Array, size: Array, index: Array) -> Array:
    result = np.zeros((int(size), *rows.shape[1:]), rows.dtype)
    shared = min(len(rows), len(result))
    result[:shared] = rows[:shared]
    if int(index) < len(result):
        result[int(index)] = 0
    return result


def _resized(rows: Any, size: Any, index: Any) -> Any:
    return dispatch.current().apply(_RESIZE, (rows, size, index), {})


def _out_of_range(at: Any, count: Any) -> OutOfRangeError:
    return OutOfRangeError(
        f"Tried to write to index {int(at)} but array is not resizeable and size is: {int(count)}"
    )


def _too_many_rows(count: Any, size: Any) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Cannot unstack {int(count)} tensors into a TensorArray of static size {int(size)}"
    )


def _with_row(read: SizeReader, rows: Any, index: Any, value: Any, size: Any, *, grows: bool) -> Any:
    engine = dispatch.current()
    inside = greater_equal(index, zeros_like(index))
    if not grows:
        inside = logical_and(inside, less(cast(index, size.dtype), size))
    require(inside, _out_of_range, (index, size))
    if grows:
        (at,) = read(index)
        more = largest(at + 1 - rows.shape[0], 0)
        ends = ((0, more), *[(0, 0)] * (len(rows.shape) - 1))
        rows = engine.apply(PAD, (rows,), {"paddings": ends, "value": 0})
    position = reshape(index, (1, 1))
    return engine.apply(UPDATE_ND, (rows, position, expand_dims(value, 0)), {})


def _blank_rows(read: SizeReader, size: Any, *sizes: Any, element: Shape, dtype: DType) -> Any:
    engine = dispatch.current()
    zero = engine.constant(zero_array((), dtype.dtype))
    shape = Shape((*read(size, 0), *(element if not sizes else read(sizes[0], 0))))
    return engine.apply(BROADCAST_TO, (zero,), {"shape": shape})


def _zeros(size: Array, *sizes: Array, element: Shape, dtype: DType) -> Array:
    return np.zeros((int(size), *(element if not sizes else sizes[0].tolist())), dtype.dtype)


def _resize_rows(read: SizeReader, rows: Any, size: Any, index: Any) -> Any:
    engine, (count,) = dispatch.current(), read(size, 0)
    shared = smallest(count, rows.shape[0])
    key = ((0, shared, 1), *[(0, d, 1) for d in rows.shape[1:]])
    truncated = engine.apply(GETITEM, (rows,), {"key": key})
    padded = engine.apply(PLACE, (truncated,), {"key": key, "shape": Shape((count, *rows.shape[1:]))})
    shape = (count, *[1] * (len(rows.shape) - 1))
    positions = engine.apply(IOTA, (), {"shape": shape, "axis": 0, "dtype": index.dtype})
    return where(equal(positions, index), zero_array((), rows.dtype.dtype), padded)


_RESIZE: Final = in_text(
    Op(
        name="array_resize",
        doc="The rows truncated or padded with zeros to ``size``, with zeros at ``index``.",
        infer=lambda rows, size, index: _with_dynamic_rows(rows),
        kernel=_run_resize,
        kind=Decompose(_resize_rows),
        vjp=(lambda g, out, rows, size, index: _resized(g, row_count(rows), index), None, None),
    )
)

_WRITE: Final = in_text(
    Op(
        name="array_write",
        doc="The rows with ``value`` at ``index``; ``size`` is the number of ``rows``.",
        infer=lambda rows, index, value, size, grows: _with_dynamic_rows(rows),
        kernel=_run_write,
        kind=Decompose(_with_row),
        vjp=(
            lambda g, out, rows, index, value, size, grows: _resized(g, size, index),
            None,
            lambda g, out, rows, index, value, size, grows: gather(g, index),
            None,
        ),
    )
)

_WITH_DYNAMIC_SIZE: Final = in_text(
    Op(
        name="array_with_dynamic_size",
        doc="The rows, with a dynamic size.",
        infer=_with_dynamic_rows,
        kernel=lambda rows: rows,
        kind=Decompose(lambda read, rows: rows),
        vjp=(lambda g, out, rows: reshape(g, rows.shape),),
        strings=True,
    )
)

_BLANK: Final = in_text(
    Op(
        name="array_blank",
        doc="``size`` rows of zeros; ``sizes`` are those of a row if some are dynamic.",
        infer=lambda size, *sizes, element, dtype: TensorSpec.of(Shape((None, *element)), dtype),
        kernel=_zeros,
        kind=Decompose(_blank_rows),
    )
)
