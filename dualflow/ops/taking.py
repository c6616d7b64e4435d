"""Gather along an axis, and its gradient."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import Dim, Shape, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.conversion import cast
from dualflow.ops.creation import zeros_like
from dualflow.ops.op_kinds import Gather, Scatter
from dualflow.ops.record import REGISTRY, Op, register
from dualflow.ops.row_joins import join_rows
from dualflow.ops.samples import Domain, Sample, integers
from dualflow.ops.static import require_static_sizes, shape_of, static_int
from dualflow.ops.tensor_sizes import size_as_tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


def check_indices(indices: Any, size: int, axis: int) -> None:
    """Raise OutOfRangeError unless every index is in ``[0, size)``."""
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        odd = indices[(indices < 0) | (indices >= size)].flat[0]
        raise OutOfRangeError(
            f"index {odd} is out of range for axis {axis} of size {size}: use 0..{size - 1}."
        )


def _integer(spec: TensorSpec) -> None:
    if not spec.dtype.is_integer:
        raise DTypeError(f"indices are integers, not {spec.dtype.name}; cast them with df.cast.")


def _gather_infer(params: TensorSpec, indices: TensorSpec, axis: int, batch_dims: int = 0) -> TensorSpec:
    _integer(indices)
    shape, paired = params.shape, indices.shape[:batch_dims]
    if any(a != b for a, b in zip(shape, paired, strict=False) if a is not None and b is not None):
        raise InvalidArgumentError(
            f"the first {batch_dims} sizes of params, {shape}, and indices, {indices.shape}, should be equal."
        )
    return TensorSpec.of(
        Shape([*shape[:axis], *indices.shape[batch_dims:], *shape[axis + 1 :]]), params.dtype
    )


def _gather(params: Any, indices: Any, axis: int, batch_dims: int = 0) -> Any:
    if indices.dtype.kind not in "iu":
        raise TypeError("indices are integers")
    if not batch_dims:
        check_indices(indices, params.shape[axis], axis)
        return params.take(indices, axis)
    batch, rank = indices.shape[:batch_dims], indices.ndim - batch_dims
    if params.shape[:batch_dims] != batch:
        raise ValueError("sizes of the batch differ")
    check_indices(indices, params.shape[axis], axis)
    positions = [index.reshape(*index.shape, *(1,) * rank) for index in np.indices(batch, sparse=True)]
    slices = np.moveaxis(params, axis, batch_dims)[(*positions, indices)]
    between = range(axis - batch_dims)
    return np.moveaxis(slices, [batch_dims + rank + i for i in between], [batch_dims + i for i in between])


def _gather_vjp(g: Any, out: Any, params: Any, indices: Any, axis: int, batch_dims: int = 0) -> Any:
    """The cotangent of ``params``: ``g`` scattered to the gathered positions, with batch axes merged."""
    if not batch_dims:
        return _scatter_like(indices, g, params, axis)
    axes, what = range(len(g.shape)), "the gradient of gather with batch_dims"
    batch = require_static_sizes(indices.shape[:batch_dims], what)
    (size,), members = require_static_sizes(params.shape, what, [axis]), math.prod(batch)
    rank = len(indices.shape) - batch_dims
    attrs = {"shape": (members,), "axis": 0, "dtype": int64}
    element = reshape(dispatch.current().apply(REGISTRY["iota"], (), attrs), [*batch, *(1,) * rank])
    positions = cast(indices, int64) + element * size_as_tensor(size)
    rows = transpose(
        g, [*axes[:batch_dims], *axes[axis : axis + rank], *axes[batch_dims:axis], *axes[axis + rank :]]
    )
    added = dispatch.current().apply(SCATTER_ADD, (positions, rows), {"axis": 0, "size": members * size})
    per_batch = reshape(added, [*batch, size, *added.shape[1:]])
    axes = range(len(params.shape))
    return transpose(
        per_batch, [*axes[:batch_dims], *axes[batch_dims + 1 : axis + 1], batch_dims, *axes[axis + 1 :]]
    )


_INDICES = (integers(0, 3, shape=(4,)), integers(0, 3, shape=(2, 2)), integers(0, 3, shape=()))

GATHER = register(
    Op(
        name="gather",
        doc="""The slices of ``params`` along ``axis`` at the positions ``indices``.""",
        infer=_gather_infer,
        kernel=_gather,
        kind=Gather(),
        vjp=(_gather_vjp, None),
        samples=tuple(Sample((Domain(-50, 50, "fib", (3, 5)), i), {"axis": 0}) for i in _INDICES)
        + tuple(Sample((Domain(-50, 50, "fi", (2, 3, 4)), i), {"axis": 1}) for i in _INDICES)
        + tuple(
            Sample((Domain(-50, 50, "fi", params), integers(0, 3, shape=at)), {"axis": axis, "batch_dims": n})
            for params, at, axis, n in (
                ((2, 3), (2,), 1, 1),
                ((2, 3, 2), (2, 4), 1, 1),
                ((2, 5, 3, 2), (2, 2, 3), 2, 1),
                ((2, 2, 4, 3), (2, 2, 5), 3, 2),
            )
        ),
    )
)


def _scatter_infer(indices: TensorSpec, updates: TensorSpec, axis: int, size: Dim) -> TensorSpec:
    _integer(indices)
    shape, rank = updates.shape, len(indices.shape)
    return TensorSpec.of(Shape([*shape[:axis], size, *shape[axis + rank :]]), updates.dtype)


def _scatter(indices: Any, updates: Any, axis: int, size: int) -> Any:
    shape, rank = updates.shape, indices.ndim
    return _add_rows(
        np.zeros((*shape[:axis], size, *shape[axis + rank :]), updates.dtype), indices, updates, axis
    )


def _add_rows(out: Any, indices: Any, updates: Any, axis: int) -> Any:
    check_indices(indices, out.shape[axis], axis)
    iterations, length = math.prod(out.shape[:axis]), math.prod(out.shape[axis + 1 :])
    join_rows(np.add, out.reshape(iterations, out.shape[axis], length), indices.reshape(-1), updates)
    return out


SCATTER_ADD = register(
    Op(
        name="scatter_add",
        doc="""Zeros of ``size`` along ``axis`` with ``updates`` added at the positions ``indices``.""",
        infer=_scatter_infer,
        kernel=_scatter,
        kind=Scatter(onto=False, join="add"),
        vjp=(None, lambda g, out, indices, updates, axis, size: _take(g, indices, axis)),
        samples=(
            Sample((integers(0, 3, shape=(4,)), Domain(-50, 50, "fi", (4, 2))), {"axis": 0, "size": 3}),
            Sample(
                (integers(0, 3, shape=(2, 2)), Domain(-50, 50, "fi", (5, 2, 2, 3))), {"axis": 1, "size": 3}
            ),
        ),
    )
)


def _onto_infer(tensor: TensorSpec, indices: TensorSpec, updates: TensorSpec, axis: int) -> TensorSpec:
    """The spec of ``tensor``; only graphs create this op, with updates that fit."""
    return _scatter_infer(indices, updates, axis, tensor.shape[axis])


SCATTER_ONTO = register(
    Op(
        name="scatter_onto",
        doc="""``tensor`` with ``updates`` added along ``axis`` at the positions ``indices``.""",
        infer=_onto_infer,
        kernel=lambda tensor, indices, updates, axis: _add_rows(tensor.copy(), indices, updates, axis),
        kind=Scatter(onto=True, join="add"),
        vjp=(
            lambda g, out, tensor, indices, updates, axis: g,
            None,
            lambda g, out, tensor, indices, updates, axis: _take(g, indices, axis),
        ),
        samples=(
            Sample(
                (Domain(-50, 50, "fi", (3, 2)), integers(0, 3, shape=(4,)), Domain(-50, 50, "fi", (4, 2))),
                {"axis": 0},
            ),
            Sample(
                (
                    Domain(-50, 50, "fi", (2, 3)),
                    integers(0, 3, shape=(2, 2)),
                    Domain(-50, 50, "fi", (2, 2, 2)),
                ),
                {"axis": 1},
            ),
        ),
    )
)


def _take(params: Any, indices: Any, axis: int) -> Any:
    return dispatch.current().apply(GATHER, (params, indices), {"axis": axis})


def _scatter_like(indices: Any, g: Any, params: Any, axis: int) -> Any:
    size = params.shape[axis]
    if size is None:  # a loop's body learns its sizes from its inputs, when they are known
        return dispatch.current().apply(SCATTER_ONTO, (zeros_like(params), indices, g), {"axis": axis})
    return dispatch.current().apply(SCATTER_ADD, (indices, g), {"axis": axis, "size": size})


def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: bool | None = None,
    axis: AxisLike | None = None,
    batch_dims: AxisLike = 0,
    name: str | None = None,
) -> Tensor:
    """The slices of ``params`` along ``axis`` at the positions ``indices``.

    Args:
        params: a tensor of one axis or more, of any dtype.
        indices: integers of any shape, each in ``[0, size of the axis)``: negative ones are errors.
        validate_indices: ignored: indices are always checked.
        axis: the axis of the slices; None for the first axis after the batch.
        batch_dims: the number of leading axes that ``params`` and ``indices`` share; a negative number counts
            from the end of the shape of ``indices``.

    Returns:
        A tensor of shape ``params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]`` with
        the dtype of ``params``.

    Raises:
        OutOfRangeError: an index is outside the axis.
        InvalidArgumentError: the sizes of the shared axes differ, or ``axis`` is not after them.
        DTypeError: ``indices`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.gather([10, 20, 30], [2, 0]).numpy()
    array([30, 10], dtype=int32)
    >>> df.gather([[1, 2, 3], [4, 5, 6]], [2, 0], batch_dims=1).numpy()
    array([3, 4], dtype=int32)
    """
    if type(batch_dims) is int and not batch_dims:
        where = 0 if axis is None else static_int(axis, "axis")
        return _take(params, indices, normalize_axis(where, len(shape_of(params))))
    rank, last = len(shape_of(params)), len(shape_of(indices))
    batch = static_int(batch_dims, "batch_dims")
    batch += last if batch < 0 else 0
    where = normalize_axis(batch if axis is None else static_int(axis, "axis"), rank)
    if not 0 <= batch <= min(last, where):
        raise InvalidArgumentError(
            f"gather with batch_dims={batch_dims} picks along axis {where} of params of shape "
            f"{shape_of(params)} at indices of shape {shape_of(indices)}: the batch must be of first axes of "
            "both, before the axis."
        )
    attrs = {"axis": where, "batch_dims": batch} if batch else {"axis": where}
    return dispatch.current().apply(GATHER, (params, indices), attrs)
