"""gather_nd, scatter_nd and tensor updates: indices that span several axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import zero_array
from dualflow.core.dispatch import TENSORS, AbstractTensor
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import squeeze
from dualflow.ops.batching_rules import BatchingRule
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.creation import convert_to_tensor, zeros, zeros_like
from dualflow.ops.joining import concat
from dualflow.ops.op_kinds import Opaque, Scatter
from dualflow.ops.record import Op, register
from dualflow.ops.row_joins import join_rows
from dualflow.ops.samples import Domain, Sample, integers, numbers
from dualflow.ops.static import dtype_of, shape_of, static_int, static_shape, static_value
from dualflow.ops.taking import check_indices, gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def _depth(indices: TensorSpec, shape: Shape) -> int:
    """The number of axes that a position indexes."""
    if not indices.dtype.is_integer:
        raise DTypeError(f"indices are integers, not {indices.dtype.name}; cast them with df.cast.")
    depth = indices.shape[-1] if len(indices.shape) else None
    if depth is None or depth > len(shape):
        raise InvalidArgumentError(
            f"indices of shape {indices.shape} do not name positions in shape {shape}: "
            "their last axis holds one index for each axis, counted from the first."
        )
    return int(depth)


def _position(indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    for axis in range(indices.shape[-1]):
        check_indices(indices[..., axis], shape[axis], axis)
    return tuple(np.moveaxis(indices, -1, 0))


def _join(ufunc: np.ufunc, out: Any, indices: Any, updates: Any) -> None:
    """Combine ``updates`` with the elements of ``out`` at ``indices`` by ``ufunc``, in place."""
    depth = indices.shape[-1]
    _check_fit(out, indices, updates)
    positions = np.zeros(indices.shape[:-1], np.intp)
    for size, along in zip(out.shape, _position(indices, out.shape), strict=False):
        positions = positions * size + along
    shape = (math.prod(out.shape[:depth]), math.prod(out.shape[depth:]))
    join_rows(ufunc, out.reshape(1, *shape), positions.reshape(-1), updates)


def _put(out: Any, indices: Any, updates: Any) -> None:
    """Assign ``updates`` to the elements of ``out`` at the positions."""
    _check_fit(out, indices, updates)
    if indices.shape[-1]:
        out[_position(indices, out.shape)] = updates
    else:
        out[None][np.zeros(indices.shape[:-1], np.intp),] = updates


def _check_fit(out: Any, indices: Any, updates: Any) -> None:
    if updates.shape != indices.shape[:-1] + out.shape[indices.shape[-1] :]:
        raise ValueError("updates do not have the shape of what they go to")


def _gather_kernel(params: Any, indices: Any) -> Any:
    if indices.dtype.kind not in "iu":
        raise TypeError("indices are integers")
    if not indices.shape[-1]:
        return np.broadcast_to(params, indices.shape[:-1] + params.shape)
    return params[_position(indices, params.shape)]


def _check_updates(indices: TensorSpec, updates: TensorSpec, shape: Shape) -> None:
    expected = Shape([*indices.shape[:-1], *shape[_depth(indices, shape) :]])
    if len(expected) != len(updates.shape) or any(
        a != b for a, b in zip(expected, updates.shape, strict=True) if a is not None and b is not None
    ):
        raise InvalidArgumentError(f"updates of shape {updates.shape} should have shape {expected}.")


def _gather_infer(params: TensorSpec, indices: TensorSpec) -> TensorSpec:
    depth = _depth(indices, params.shape)
    return TensorSpec.of(Shape([*indices.shape[:-1], *params.shape[depth:]]), params.dtype)


def _scatter_infer(indices: TensorSpec, updates: TensorSpec, shape: Shape) -> TensorSpec:
    _check_updates(indices, updates, Shape(shape))
    return TensorSpec.of(Shape(shape), updates.dtype)


def _scatter(indices: Any, updates: Any, shape: tuple[int, ...]) -> Any:
    out = zero_array(shape, updates.dtype)
    _join(np.add, out, indices, updates)
    return out


def update_infer(tensor: TensorSpec, indices: TensorSpec, updates: TensorSpec) -> TensorSpec:
    """The spec of ``tensor``, which ``updates`` at the positions must fit."""
    _check_updates(indices, updates, tensor.shape)
    if updates.dtype is not tensor.dtype:
        raise DTypeError(f"updates of dtype {updates.dtype.name} should be {tensor.dtype.name}; use df.cast.")
    return tensor


def updated(tensor: Any, indices: Any, updates: Any, ufunc: np.ufunc | None = None) -> Any:
    """A copy of ``tensor`` with ``updates`` assigned at ``indices``, or combined by ``ufunc``."""
    if updates.dtype != tensor.dtype:
        raise TypeError("updates have the dtype of the tensor")
    out = tensor.copy()
    if ufunc is None:
        _put(out, indices, updates)
    else:
        _join(ufunc, out, indices, updates)
    return out


def _updated_shapes(tensor: Any, indices: Any, updates: Any) -> list[Any]:
    """The shapes that an update of ``tensor`` requires of its inputs."""
    depth = indices[-1]
    fits = type(depth) is int and depth <= len(tensor)
    required = (*indices[:-1], *tensor[depth:]) if fits else updates
    return [tensor, indices, required if len(required) == len(updates) else updates]


def _tensor(*shape: int) -> Domain:
    return numbers(-50, 50, shape=shape)


_AT = integers(0, 3, shape=(4, 1))
_AT_TWO = integers(0, 3, shape=(2, 2))
_NOWHERE = integers(0, 3, shape=(4, 0))

GATHER_ND = register(
    Op(
        name="gather_nd",
        doc="""The elements (or slices) of ``params`` at the positions that the rows of ``indices`` name.""",
        infer=_gather_infer,
        kernel=_gather_kernel,
        kind=Opaque("positions span several axes"),
        batching_rule=BatchingRule(positions=1),
        vjp=(lambda g, out, params, indices: _scatter_like(params, indices, g), None),
        strings=True,
        samples=(
            Sample((_tensor(3, 5), _AT)),
            Sample((_tensor(3, 4), _AT_TWO)),
            Sample((_tensor(3, 4, 2), _AT_TWO)),
            Sample((_tensor(3, 2), _NOWHERE)),
        ),
    )
)

SCATTER_ND = register(
    Op(
        name="scatter_nd",
        doc="""Zeros of ``shape`` to which ``updates`` are added at the positions that ``indices`` name.""",
        infer=_scatter_infer,
        kernel=_scatter,
        kind=Scatter(onto=False, join="add"),
        batching_rule=BatchingRule(sizes=("shape",), positions=0),
        vjp=(None, lambda g, out, indices, updates, shape: _gather_nd(g, indices)),
        strings=True,
        samples=(
            Sample((_AT, _tensor(4, 2)), {"shape": Shape((3, 2))}),
            Sample((_AT_TWO, _tensor(2)), {"shape": Shape((3, 4))}),
            Sample((_NOWHERE, _tensor(4, 2)), {"shape": Shape((2,))}),
        ),
    )
)

_DISTINCT = Domain(0, 3, "i", (2, 1), values=np.array([[2], [0]]))

UPDATE_ND = register(
    Op(
        name="tensor_scatter_nd_update",
        doc="""``tensor`` with ``updates`` at the positions that ``indices`` name; of several, one stays.""",
        infer=update_infer,
        kernel=updated,
        kind=Scatter(onto=True, join="put"),
        batching_rule=BatchingRule(positions=1),
        required_shapes=_updated_shapes,
        vjp=(
            lambda g, out, tensor, indices, updates: _update(g, indices, zeros_like(updates)),
            None,
            lambda g, out, tensor, indices, updates: _gather_nd(g, indices),
        ),
        strings=True,
        samples=(Sample((_tensor(3, 2), _DISTINCT, _tensor(2, 2))),),
    )
)

ADD_ND = register(
    Op(
        name="tensor_scatter_nd_add",
        doc="""``tensor`` with ``updates`` added at the positions that ``indices`` name.""",
        infer=update_infer,
        kernel=lambda tensor, indices, updates: updated(tensor, indices, updates, np.add),
        kind=Scatter(onto=True, join="add"),
        batching_rule=BatchingRule(positions=1),
        required_shapes=_updated_shapes,
        vjp=(
            lambda g, out, tensor, indices, updates: g,
            None,
            lambda g, out, tensor, indices, updates: _gather_nd(g, indices),
        ),
        samples=(
            Sample((_tensor(3, 2), _AT, _tensor(4, 2))),
            Sample((_tensor(3, 2), _NOWHERE, _tensor(4, 3, 2))),
        ),
    )
)


def _scatter_add(indices: Any, updates: Any, shape: Shape) -> Any:
    return dispatch.current().apply(SCATTER_ND, (indices, updates), {"shape": shape})


def _scatter_like(params: Any, indices: Any, updates: Any) -> Any:
    """Zeros of the shape of ``params`` to which ``updates`` are added."""
    if params.shape.is_static:
        return _scatter_add(indices, updates, params.shape)
    return dispatch.current().apply(ADD_ND, (zeros_like(params), indices, updates), {})


def adapted(updates: Any, tensor: Any) -> Any:
    """Python's and NumPy's values in the dtype of ``tensor``, if that takes them."""
    return (
        updates if isinstance(updates, TENSORS) else convert_to_tensor(updates, dtype_hint=dtype_of(tensor))
    )


def _update(tensor: Any, indices: Any, updates: Any) -> Any:
    return dispatch.current().apply(UPDATE_ND, (tensor, indices, updates), {})


def gather_nd(
    params: TensorLike, indices: TensorLike, batch_dims: int = 0, name: str | None = None
) -> Tensor:
    """The elements, or slices, of ``params`` at the positions in the rows of ``indices``.

    Args:
        params: a tensor of one axis or more, of any dtype.
        indices: integers of shape ``(..., depth)``: each row is a position on ``depth`` axes of ``params``.
        batch_dims: the number of leading axes that ``params`` and ``indices`` share; positions refer to the
            axes after them.

    Returns:
        A tensor of shape ``indices.shape[:-1] + params.shape[batch_dims + depth:]`` and the dtype of
        ``params``.

    Raises:
        OutOfRangeError: a position is outside the tensor.
        InvalidArgumentError: rows are longer than ``params`` has axes, or the sizes of the shared axes
            differ.
        DTypeError: ``indices`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.gather_nd([[1, 2], [3, 4]], [[0, 0], [1, 1]]).numpy()
    array([1, 4], dtype=int32)
    """
    count = static_int(batch_dims, "batch_dims")
    return _gather_nd(params, _with_batch(params, convert_to_tensor(indices), count) if count else indices)


def _with_batch(params: Any, indices: Any, count: int) -> Any:
    """Positions that also name the ``count`` axes of the batch."""
    batch, params_batch = indices.shape[:count], shape_of(params)[:count]
    if not 0 <= count < len(indices.shape) or tuple(batch) != tuple(params_batch) or None in batch:
        raise InvalidArgumentError(
            f"gather_nd with batch_dims={count} needs params and indices whose first sizes are known and "
            f"equal, before the last axis of the indices, not shapes {shape_of(params)} and {indices.shape}."
        )
    rows = np.indices(batch, indices.dtype.dtype)
    rows = np.moveaxis(rows, 0, -1).reshape(*batch, *(1,) * (len(indices.shape) - 1 - count), count)
    return concat([broadcast_to(rows, [*indices.shape[:-1], count]), indices], -1)


def _gather_nd(params: Any, indices: Any) -> Any:
    """:func:`gather_nd`; rows of one integer each are a plain gather, which graphs have code for."""
    shape = shape_of(indices)
    if shape and shape[-1] == 1 and len(shape_of(params)):
        return gather(params, squeeze(convert_to_tensor(indices), -1))
    return dispatch.current().apply(GATHER_ND, (params, indices), {})


def scatter_nd(indices: TensorLike, updates: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """Zeros of ``shape`` to which ``updates`` are added at the positions in the rows of ``indices``.

    Updates at one position add up, in the order of the rows.

    Args:
        indices: integers of shape ``(..., depth)``: each row is a position on the first ``depth`` axes of the
            result.
        updates: the numbers to add, of shape ``indices.shape[:-1] + shape[depth:]``.
        shape: the shape of the result; it may be a tensor that is known at run time only.

    Returns:
        A tensor of shape ``shape`` with the dtype of ``updates``.

    Raises:
        OutOfRangeError: a position is outside ``shape``.
        InvalidArgumentError: rows are longer than ``shape``, or ``updates`` has another shape than the
            positions need.
        DTypeError: ``indices`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.scatter_nd([[1], [3], [1]], [1, 2, 10], [4]).numpy()
    array([ 0, 11,  0,  2], dtype=int32)
    """
    if not _is_known(shape):
        updates = convert_to_tensor(updates)
        return tensor_scatter_nd_add(zeros(shape, updates.dtype), indices, updates)
    return _scatter_add(indices, updates, Shape(static_shape(shape)))


def _is_known(shape: Any) -> bool:
    entries = shape if isinstance(shape, list | tuple) else [shape]
    return all(not isinstance(x, AbstractTensor) or static_value(x) is not None for x in entries)


def tensor_scatter_nd_update(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """A copy of ``tensor`` with ``updates`` at the positions in the rows of ``indices``.

    Of several updates at one position one stays.

    Args:
        tensor: a tensor of one axis or more, of any dtype.
        indices: integers of shape ``(..., depth)``: each row is a position on the first ``depth`` axes.
        updates: the new values, of shape ``indices.shape[:-1] + tensor.shape[depth:]`` and the dtype of
            ``tensor``.

    Returns:
        A tensor with the shape and dtype of ``tensor``.

    Raises:
        OutOfRangeError: a position is outside the tensor.
        InvalidArgumentError: rows are longer than ``tensor`` has axes, or ``updates`` has another shape than
            the positions need.
        DTypeError: ``indices`` doesn't hold integers, or ``updates`` has another dtype than ``tensor``.

    >>> import dualflow as df
    >>> df.tensor_scatter_nd_update([1, 2, 3], [[1]], [20]).numpy()
    array([ 1, 20,  3], dtype=int32)
    """
    return _update(tensor, indices, adapted(updates, tensor))


def tensor_scatter_nd_add(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """A copy of ``tensor`` with ``updates`` added at the positions in the rows of ``indices``.

    Args:
        tensor: numbers of one axis or more.
        indices: integers of shape ``(..., depth)``: each row is a position on the first ``depth`` axes.
        updates: the numbers to add, of shape ``indices.shape[:-1] + tensor.shape[depth:]`` and the dtype of
            ``tensor``.

    Returns:
        A tensor with the shape and dtype of ``tensor``.

    Raises:
        OutOfRangeError: a position is outside the tensor.
        InvalidArgumentError: rows are longer than ``tensor`` has axes, or ``updates`` has another shape than
            the positions need.
        DTypeError: ``indices`` doesn't hold integers, or ``updates`` has another dtype than ``tensor``.

    >>> import dualflow as df
    >>> df.tensor_scatter_nd_add([1, 2, 3], [[1], [1]], [10, 20]).numpy()
    array([ 1, 32,  3], dtype=int32)
    """
    return dispatch.current().apply(ADD_ND, (tensor, indices, adapted(updates, tensor)), {})
