"""Ops that join tensors or split one: concat, stack, unstack, split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Dim, Shape, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import ALONG
from dualflow.ops.indexing import GETITEM, Key
from dualflow.ops.op_kinds import CopyPieces
from dualflow.ops.operand_attributes import apply_sized
from dualflow.ops.record import Op, Promotion, register
from dualflow.ops.samples import Sample, real_numbers
from dualflow.ops.shapes import with_shape
from dualflow.ops.static import ints, python_shape, require_static_sizes, shape_of, static_int
from dualflow.ops.tensor_sizes import sizes_of
from dualflow.sizes.size_functions import common_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor

# concat


def _concat_infer(*inputs: TensorSpec, axis: int) -> TensorSpec:
    shapes = [x.shape for x in inputs]
    first = shapes[0]
    if any(len(s) != len(first) for s in shapes) or not len(first):
        raise InvalidArgumentError(
            f"shapes {', '.join(map(str, shapes))} must have one rank of 1 or more; "
            "join along a new axis with df.stack."
        )
    sizes_of_result = [
        _equal_size([s[a] for s in shapes], shapes, a) if a != axis else None for a in range(len(first))
    ]
    sizes = [s[axis] for s in shapes]
    sizes_of_result[axis] = None if None in sizes else sum(d for d in sizes if d is not None)
    return TensorSpec.of(Shape(sizes_of_result), inputs[0].dtype)


def _shapes_beside(*shapes: Sequence[int], axis: int) -> list[Sequence[int]]:
    common = _equal_shapes(*shapes)[0]
    return [[d if a == axis else common[a] for a, d in enumerate(shape)] for shape in shapes]


def _equal_shapes(*shapes: Sequence[int], axis: int = 0) -> list[Sequence[int]]:
    return [[common_size(*sizes) for sizes in zip(*shapes, strict=True)]] * len(shapes)


def _equal_size(sizes: Sequence[Dim], shapes: Sequence[Shape], axis: int) -> Dim:
    static_sizes = {d for d in sizes if d is not None}
    if len(static_sizes) > 1:
        raise InvalidArgumentError(
            f"shapes {', '.join(map(str, shapes))} differ on axis {axis}, which is not joined; only the "
            "axis along which they are joined may."
        )
    return static_sizes.pop() if static_sizes else None


def _concat_pieces(out: Any, *inputs: Any, axis: int) -> list[tuple[Any, Any]]:
    pieces, start = [], 0
    for x in inputs:
        stop = start + x.shape[axis]
        pieces.append((out[(slice(None),) * axis + (slice(start, stop),)], x))
        start = stop
    return pieces


def _along(axis: int, shape: Shape, entry: Any) -> Key:
    """The indexing key with ``entry`` for ``axis`` and full slices for the other axes."""
    return tuple(entry if a == axis else (0, d, 1) if d != 0 else (0, 0, 1) for a, d in enumerate(shape))


def part(x: Any, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    """``x[start:stop:step]`` along ``axis``."""
    key = _along(axis, x.shape, (start, stop, step) if start != stop else (0, 0, 1))
    return dispatch.current().apply(GETITEM, (x,), {"key": key})


def _concat_vjp(i: int, g: Any, out: Any, *inputs: Any, axis: int) -> Any:
    sizes = [x.shape[axis] for x in inputs]
    if None in sizes[: i + 1]:
        start = sum((sizes_of(x)[axis] for x in inputs[:i]), 0)
        key = _along(axis, g.shape, (start, start + sizes_of(inputs[i])[axis], 1))
        return apply_sized(GETITEM, (g,), {"key": key})
    start = sum(sizes[:i])
    return part(g, axis, start, start + sizes[i])


CONCAT = register(
    Op(
        name="concat",
        doc="""The inputs one after the other along ``axis``.""",
        infer=_concat_infer,
        kernel=lambda *inputs, axis: np.concatenate(inputs, axis),
        kind=CopyPieces(_concat_pieces),
        required_shapes=_shapes_beside,
        batching_rule=ALONG,
        vjp=_concat_vjp,
        promotion=Promotion.TOGETHER,
        samples=(
            Sample((real_numbers(2, 3), real_numbers(4, 3)), {"axis": 0}),
            Sample((real_numbers(2, 3), real_numbers(2, 1), real_numbers(2, 2)), {"axis": 1}),
            Sample((real_numbers(2, 0), real_numbers(2, 3)), {"axis": 1}),
            Sample((real_numbers(3),), {"axis": 0}),
        ),
    )
)


def concat(values: TensorLike, axis: AxisLike, name: str | None = None) -> Tensor:
    """The tensors ``values`` joined along an existing axis.

    Args:
        values: a list of tensors of one rank, at least 1, whose sizes differ on ``axis`` only; or a tensor,
            whose slices along its first axis are joined. Their dtypes promote to a common one.
        axis: the axis along which to join, an integer; a negative one counts from the last axis.

    Returns:
        A tensor whose size on ``axis`` is the sum of the inputs' sizes there, with the common dtype of the
        inputs.

    Raises:
        InvalidArgumentError: the list is empty, the tensors are scalars, ranks or sizes on another axis
            differ, or ``axis`` is out of range.
        DTypeError: ``values`` is not a list of tensors, or they have no common dtype.

    >>> import dualflow as df
    >>> df.concat([[[1, 2]], [[3, 4], [5, 6]]], axis=0).numpy().tolist()
    [[1, 2], [3, 4], [5, 6]]
    """
    inputs = _listed(values, "concat")
    rank = len(shape_of(inputs[0]))
    if not rank:
        raise InvalidArgumentError("concat takes tensors of one axis or more; join scalars with df.stack.")
    return dispatch.current().apply(CONCAT, inputs, {"axis": normalize_axis(static_int(axis, "axis"), rank)})


def _listed(values: Any, op: str) -> tuple[Any, ...]:
    if isinstance(values, AbstractTensor | AbstractVariable):
        values = unstack(values)
    if not isinstance(values, Iterable):
        raise DTypeError(f"{op} takes a list of tensors, not {values!r}.")
    tensors = tuple(values)
    if not tensors:
        raise InvalidArgumentError(f"{op} takes one tensor or more, but the list is empty.")
    return tensors


# stack


def _stack_infer(*inputs: TensorSpec, axis: int) -> TensorSpec:
    shapes = [x.shape for x in inputs]
    if any(len(s) != len(shapes[0]) for s in shapes):
        raise InvalidArgumentError(
            f"shapes {', '.join(map(str, shapes))} differ; tensors to stack have one shape, others are "
            "joined with df.concat."
        )
    same = [_equal_size([s[a] for s in shapes], shapes, a) for a in range(len(shapes[0]))]
    return TensorSpec.of(Shape([*same[:axis], len(inputs), *same[axis:]]), inputs[0].dtype)


def _stack_pieces(out: Any, *inputs: Any, axis: int) -> list[tuple[Any, Any]]:
    before = (slice(None),) * axis
    return [(out[(*before, i, ...)], x) for i, x in enumerate(inputs)]


def _stack(*inputs: Any, axis: int) -> Any:
    first = inputs[0].shape
    if any(x.shape != first for x in inputs):
        raise ValueError("tensors to stack have one shape")
    return np.concatenate([x.reshape(*first[:axis], 1, *first[axis:]) for x in inputs], axis)


STACK = register(
    Op(
        name="stack",
        doc="""The inputs side by side along a new ``axis``.""",
        infer=_stack_infer,
        kernel=_stack,
        kind=CopyPieces(_stack_pieces),
        required_shapes=_equal_shapes,
        batching_rule=ALONG,
        vjp=lambda i, g, out, *inputs, axis: _unstack_at(g, axis, i),
        promotion=Promotion.TOGETHER,
        samples=(
            Sample((real_numbers(3), real_numbers(3)), {"axis": 0}),
            Sample((real_numbers(2, 3), real_numbers(2, 3), real_numbers(2, 3)), {"axis": 2}),
            Sample((real_numbers(), real_numbers()), {"axis": 0}),
        ),
    )
)


def _unstack_at(x: Any, axis: int, index: int) -> Any:
    return dispatch.current().apply(GETITEM, (x,), {"key": _along(axis, x.shape, index)})


def stack(values: TensorLike, axis: int = 0, name: str | None = None) -> Tensor:
    """Tensors of one shape joined along a new axis.

    Args:
        values: a list of tensors of one shape; their dtypes promote to a common one.
        axis: the position of the new axis, from ``-(rank + 1)`` to ``rank``; the first by default.

    Returns:
        A tensor of one axis more, of size ``len(values)``, with the common dtype of the inputs.

    Raises:
        InvalidArgumentError: the list is empty, the shapes differ, or ``axis`` is out of range.
        DTypeError: ``values`` is not a list of tensors, or they have no common dtype.

    >>> import dualflow as df
    >>> df.stack([[1, 2], [3, 4]], axis=1).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    inputs = _listed(values, "stack")
    where = normalize_axis(static_int(axis, "axis"), len(shape_of(inputs[0])) + 1)
    return dispatch.current().apply(STACK, inputs, {"axis": where})


# unstack, split


def unstack(
    value: TensorLike, num: int | None = None, axis: int = 0, name: str | None = None
) -> list[Tensor]:
    """The slices of ``value`` along ``axis``, as a list of tensors.

    Args:
        value: a tensor of one axis or more, of any dtype.
        num: the number of slices; None for the size of the axis. A traced function needs it where the size is
            known at run time only.
        axis: the axis to remove; the first by default.

    Returns:
        A list of tensors of the dtype of ``value``, each with its shape without ``axis``.

    Raises:
        InvalidArgumentError: ``num`` is not the size of the axis, or is missing where the size is unknown.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.unstack([[1, 2], [3, 4]], axis=1)]
    [[1, 3], [2, 4]]
    """
    x: Any = as_tensor(value)
    where = normalize_axis(static_int(axis, "axis"), len(x.shape))
    shape = python_shape(x) if num is not None else x.get_shape()
    if num is not None and shape[where] is not None and shape[where] != num:
        raise InvalidArgumentError(
            f"axis {axis} of shape {shape} does not unstack into {num} tensors; leave num out."
        )
    if x.shape[where] is None and num is not None:
        x = with_shape(x, [num if i == where else n for i, n in enumerate(x.shape)])
        shape = x.shape
    (size,) = require_static_sizes(shape, "unstack", [where], advice="give num, or known shapes")
    return [_unstack_at(x, where, i) for i in range(int(size))]


def as_tensor(value: Any) -> Tensor:
    """``value`` as a tensor of the current engine; a tensor is returned as it is."""
    if not isinstance(value, AbstractTensor):
        value = STACK.prepare((value,), dispatch.current())[0]
    tensor: Tensor = value
    return tensor


def split(
    value: TensorLike,
    num_or_size_splits: TensorLike,
    axis: AxisLike = 0,
    num: int | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """``value`` split along ``axis`` into equal parts, or into parts of listed sizes.

    Args:
        value: a tensor of one axis or more, of any dtype.
        num_or_size_splits: the number of equal parts, or a list of sizes, one of which may be -1: the
            remainder.
        axis: the axis to split; the first by default.
        num: ignored: the number of parts follows from ``num_or_size_splits``.

    Returns:
        A list of tensors of the dtype of ``value``.

    Raises:
        InvalidArgumentError: the sizes don't add up to the size of the axis, the number of parts doesn't
            divide it, or it is unknown in a trace.

    >>> import dualflow as df
    >>> [x.numpy().tolist() for x in df.split([1, 2, 3, 4, 5, 6], [1, -1, 2])]
    [[1], [2, 3, 4], [5, 6]]
    """
    value = as_tensor(value)
    where = normalize_axis(static_int(axis, "axis"), len(value.shape))
    (size,) = require_static_sizes(value.shape, "split", [where])
    parts = _parts(num_or_size_splits, size)
    if sum(parts) != size or min(parts, default=0) < 0:
        raise InvalidArgumentError(
            f"parts of sizes {num_or_size_splits} do not make up the size {size} of axis {axis}; let them "
            "add up to it."
        )
    starts = np.cumsum([0, *parts]).tolist()
    return [part(value, where, a, b) for a, b in pairwise(starts)]


def _parts(splits: Any, size: int) -> list[int]:
    if not isinstance(splits, list | tuple) and not len(shape_of(splits)):
        count = static_int(splits, "num_or_size_splits")
        if count < 1 or size % count:
            raise InvalidArgumentError(
                f"an axis of size {size} can't be cut into {count} equal parts; give a list of sizes."
            )
        return [size // count] * count
    parts = list(ints(splits, "num_or_size_splits"))
    if parts.count(-1) == 1:
        parts[parts.index(-1)] = size - sum(parts) - 1
    return parts
