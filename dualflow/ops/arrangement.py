"""Ops that change the shape but not the elements: reshape, transpose, expand_dims, squeeze."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Dim, Shape, check_size, normalize_axes, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import ALONG, OF_SHAPE, BatchingRule
from dualflow.ops.complex_numbers import conj
from dualflow.ops.op_kinds import OperandAttributes, SizeReader, View
from dualflow.ops.operand_attributes import apply_sized
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Sample, real_numbers
from dualflow.ops.static import (
    ints,
    ints_or_symbolic,
    partial_shape,
    python_shape,
    shape_argument,
    shape_of,
    static_elements,
    static_value,
)
from dualflow.ops.tensor_sizes import axis_sizes
from dualflow.sizes.size_functions import inferred_size, largest

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


# reshape


def _reshape_infer(x: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    if not x.shape.is_static or None in shape:
        return TensorSpec.of(Shape(None if d == -1 else d for d in shape), x.dtype)
    return TensorSpec.of(_resolved(x.shape, shape), x.dtype)


def _reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape if x.size else _resolved(Shape(x.shape), shape))


def _resolved(old: Shape, new: Sequence[int]) -> Shape:
    """``new`` with its -1 replaced by the size that follows from the number of elements."""
    count, new_count = math.prod(d for d in old if d is not None), math.prod(d for d in new if d != -1)
    free = len([d for d in new if d == -1])
    _check_sizes(new)
    if free and count == 0 and new_count == 0:  # as if no size were 0
        count, new_count = (math.prod(d for d in sizes if d not in (0, -1, None)) for sizes in (old, new))
    fits = count == new_count if not free or new_count == 0 else count % new_count == 0
    if not fits:
        raise InvalidArgumentError(
            f"{count} elements of shape {old} do not fill shape {tuple(new)}"
            + (f", which has {new_count}." if not free else f": {count} is no multiple of {new_count}.")
        )
    return Shape(count // new_count if d == -1 else d for d in new)


def _check_sizes(shape: Sequence[Dim]) -> None:
    if any(type(d) is int and d < -1 for d in shape):  # symbolic ones are sizes
        raise InvalidArgumentError(f"{tuple(shape)} is no shape: sizes are 0 or more, and one may be -1.")
    check_size([d for d in shape if d != -1])


def reshaped_by(read: SizeReader, x: Any, shape: Sequence[int]) -> Any:
    """``x`` reshaped to ``shape``, one size of which may be -1; checked at run time."""
    count = math.prod(x.shape)
    others = [[*shape[:i], *shape[i + 1 :]] for i in range(len(shape))]
    free = [_remaining_size(x.shape, sizes) for sizes in others]
    target = read.sizes([inferred_size(d, size) for d, size in zip(shape, free, strict=True)])
    checked = read.require_size(x, math.prod(target), count)
    return dispatch.current().apply(RESHAPE, (checked,), {"shape": Shape(target)})


def _remaining_size(old: Sequence[int], others: Sequence[int]) -> int:
    """The size that one axis of a new shape needs, if those of the other axes are ``others``.

    If one of these is 0, the tensor has no elements, and sizes of 0 are left out of both products.
    """
    if any(type(d) is int and d == 0 for d in others):
        old, others = ([largest(d, 1) for d in sizes] for sizes in (old, others))
    return math.prod(old) // math.prod(others)


RESHAPE = register(
    Op(
        name="reshape",
        doc="""The elements of ``x``, in row-major order, under another shape.""",
        infer=_reshape_infer,
        kernel=_reshape,
        kind=View(lambda x, shape: x.reshape(shape, copy=False)),
        batching_rule=OF_SHAPE,
        vjp=(lambda g, out, x, shape: _reshape_like(g, x),),
        operand_attributes=OperandAttributes(sizes=("shape",), resolve=reshaped_by, least=None),
        samples=(
            Sample((real_numbers(2, 3),), {"shape": (3, 2)}),
            Sample((real_numbers(4, 6),), {"shape": (2, 2, 3, 2)}),
            Sample((real_numbers(1, 1),), {"shape": ()}),
        ),
    )
)


def _reshape_like(g: Any, x: Any) -> Any:
    shape = x.shape
    if shape.count(None) > 1 or (None in shape and 0 in shape):  # with a size of 0, -1 may be any size
        return apply_sized(RESHAPE, (g,), {"shape": axis_sizes(x)})
    return dispatch.current().apply(
        RESHAPE, (g,), {"shape": shape if shape.is_static else _with_one_free(shape)}
    )


def _with_one_free(shape: Sequence[Dim]) -> Shape:
    """``shape`` with -1 for its unknown size, of which there may be one."""
    _check_sizes(shape)
    if len([d for d in shape if d is None or d == -1]) > 1:
        raise InvalidArgumentError(
            f"Only one size of {tuple(shape)} may be unknown; give the others as Python ints."
        )
    return Shape(-1 if d is None else d for d in shape)


def reshape(tensor: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """The elements of ``tensor``, in row-major order, with another shape.

    Args:
        tensor: a tensor of any shape and dtype.
        shape: the new sizes, of the same product; one may be -1, which is computed from the others. Sizes may
            be tensors that are known at run time only.

    Returns:
        A tensor of shape ``shape`` with the dtype of ``tensor``.

    Raises:
        InvalidArgumentError: the numbers of elements differ, or a size is below -1.
        DTypeError: ``shape`` doesn't hold integers.

    >>> import dualflow as df
    >>> df.reshape([[1, 2, 3], [4, 5, 6]], [3, -1]).numpy()
    array([[1, 2],
           [3, 4],
           [5, 6]], dtype=int32)
    """
    target, old = _target(shape), shape_of(tensor)
    if None in target:
        return apply_sized(RESHAPE, (tensor,), {"shape": ints_or_symbolic(shape, "shape")})
    if -1 in target and old.is_static:
        target = _resolved(old, target)  # type: ignore[arg-type]  # no None left
    return dispatch.current().apply(RESHAPE, (tensor,), {"shape": target})


def _target(shape: Any) -> Shape:
    """The target shape of reshape: None for sizes unknown while tracing, -1 for a single one of them."""
    if isinstance(shape, AbstractTensor) and static_value(shape) is None:
        elements = static_elements(shape) if len(shape.shape) else None
        return Shape(partial_shape(shape) if elements is None else [None if n == -1 else n for n in elements])
    target = Shape(shape_argument(shape))
    _check_sizes(target)
    has_symbolic_size = None in target and any(isinstance(d, AbstractTensor) for d in shape)
    return target if has_symbolic_size else _with_one_free(target)


# expand_dims, squeeze


def _expanded(sizes: Sequence[Any], axis: tuple[int, ...]) -> list[Any]:
    """``sizes`` with ones inserted, so that they are at the positions ``axis`` of the result."""
    expanded = list(sizes)
    for a in axis:
        expanded.insert(a, 1)
    return expanded


EXPAND_DIMS = register(
    Op(
        name="expand_dims",
        doc="""``x`` with axes of size 1 inserted.""",
        infer=lambda x, axis: TensorSpec.of(Shape(_expanded(x.shape, axis)), x.dtype),
        kernel=lambda x, axis: x.reshape(_expanded(x.shape, axis)),
        kind=View(lambda x, axis: x.reshape(_expanded(x.shape, axis), copy=False)),
        batching_rule=ALONG,
        vjp=(lambda g, out, x, axis: _squeeze_axes(g, axis),),
        samples=(
            Sample((real_numbers(2, 3),), {"axis": (1,)}),
            Sample((real_numbers(2, 3),), {"axis": (0, 3)}),
        ),
    )
)


def expand_dims(input: TensorLike, axis: AxisLike, name: str | None = None) -> Tensor:
    """``input`` with an axis of size 1 inserted.

    Args:
        input: a tensor of any shape and dtype.
        axis: the position of the new axis in the result, an integer; or a list for several axes. Negative
            positions count from the end.

    Returns:
        A tensor with the elements and the dtype of ``input``.

    Raises:
        InvalidArgumentError: an axis is out of range or occurs twice.

    >>> import dualflow as df
    >>> df.expand_dims([1, 2], -1).shape
    (2, 1)
    """
    requested = ints(axis, "axis")
    axes = normalize_axes(requested, len(shape_of(input)) + len(requested))
    return dispatch.current().apply(EXPAND_DIMS, (input,), {"axis": axes})


def _squeezed(sizes: Sequence[Any], axis: tuple[int, ...]) -> list[Any]:
    odd = [a for a in axis if sizes[a] not in (1, None)]
    if odd:
        raise InvalidArgumentError(
            f"axis {odd[0]} of shape {tuple(sizes)} is not of size 1 and can't be squeezed; index it first."
        )
    return [d for a, d in enumerate(sizes) if a not in axis]


SQUEEZE = register(
    Op(
        name="squeeze",
        doc="""``x`` without axes that are of size 1.""",
        infer=lambda x, axis: TensorSpec.of(Shape(_squeezed(x.shape, axis)), x.dtype),
        kernel=lambda x, axis: x.reshape(_squeezed(x.shape, axis)),
        kind=View(lambda x, axis: x.reshape(_squeezed(x.shape, axis), copy=False)),
        required_shapes=lambda x, axis: [[1 if a in axis else d for a, d in enumerate(x)]],
        batching_rule=ALONG,
        vjp=(lambda g, out, x, axis: expand_dims(g, axis),),
        samples=(
            Sample((real_numbers(2, 1, 3),), {"axis": (1,)}),
            Sample((real_numbers(1, 2, 1),), {"axis": (0, 2)}),
        ),
    )
)


def _squeeze_axes(x: Any, axis: tuple[int, ...]) -> Any:
    return dispatch.current().apply(SQUEEZE, (x,), {"axis": axis})


def squeeze(input: TensorLike, axis: AxisLike | None = None, name: str | None = None) -> Tensor:
    """``input`` without axes of size 1.

    Args:
        input: a tensor of any shape and dtype.
        axis: the axes to remove: an integer or a list; None for all that have size 1. In a function, None
            leaves an axis whose size is known only at run time.

    Returns:
        A tensor with the elements and the dtype of ``input``.

    Raises:
        InvalidArgumentError: an axis in ``axis`` has another size than 1, or is out of range.

    >>> import dualflow as df
    >>> df.squeeze([[[1], [2]]]).shape
    (2,)
    """
    named = () if axis is None else ints(axis, "axis")
    if named:
        return _squeeze_axes(input, normalize_axes(named, len(shape_of(input))))
    return _squeeze_axes(input, tuple([a for a, d in enumerate(python_shape(input)) if d == 1]))


# transpose


def _transpose_infer(x: TensorSpec, perm: tuple[int, ...]) -> TensorSpec:
    if sorted(perm) != list(range(len(x.shape))):
        raise InvalidArgumentError(f"perm {perm} must name each axis of the rank-{len(x.shape)} tensor once.")
    return TensorSpec.of(Shape(x.shape[a] for a in perm), x.dtype)


def inverse_permutation(perm: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes a transpose by ``perm``."""
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


TRANSPOSE: Op = register(
    Op(
        name="transpose",
        doc="""``x`` with its axes in another order.""",
        infer=_transpose_infer,
        kernel=lambda x, perm: x.transpose(perm),
        kind=View(lambda x, perm: x.transpose(perm)),
        batching_rule=BatchingRule(axes=("perm",), first={"perm": 0}),
        vjp=(
            lambda g, out, x, perm: dispatch.current().apply(
                TRANSPOSE, (g,), {"perm": inverse_permutation(perm)}
            ),
        ),
        samples=(
            Sample((real_numbers(2, 3),), {"perm": (1, 0)}),
            Sample((real_numbers(2, 3, 4),), {"perm": (2, 0, 1)}),
        ),
    )
)


def transpose(
    a: TensorLike, perm: TensorLike | None = None, conjugate: bool = False, name: str | None = None
) -> Tensor:
    """``a`` with its axes in another order.

    Args:
        a: a tensor of any shape and dtype.
        perm: for each axis of the result, the axis of ``a`` that it is; None reverses the order.
        conjugate: whether to conjugate complex elements.

    Returns:
        A tensor of shape ``[a.shape[axis] for axis in perm]`` with the dtype of ``a``.

    Raises:
        InvalidArgumentError: ``perm`` doesn't contain each axis once.

    >>> import dualflow as df
    >>> df.transpose([[1, 2, 3], [4, 5, 6]]).numpy().tolist()
    [[1, 4], [2, 5], [3, 6]]
    """
    rank = len(shape_of(a))
    order = range(rank)[::-1] if perm is None else [normalize_axis(p, rank) for p in ints(perm, "perm")]
    x = conj(a) if conjugate else a
    return dispatch.current().apply(TRANSPOSE, (x,), {"perm": tuple(order)})


def matrix_transpose(a: TensorLike, name: str | None = None, conjugate: bool = False) -> Tensor:
    """``a`` with its last two axes swapped.

    Args:
        a: a tensor of two axes or more, of any dtype.
        conjugate: whether to conjugate complex elements.

    Returns:
        A tensor of shape ``(..., m, n)`` for ``a`` of shape ``(..., n, m)``, with its dtype.

    Raises:
        InvalidArgumentError: ``a`` has fewer than two axes.

    >>> import dualflow as df
    >>> df.linalg.matrix_transpose([[[1, 2, 3], [4, 5, 6]]]).numpy().tolist()
    [[[1, 4], [2, 5], [3, 6]]]
    """
    rank = len(shape_of(a))
    if rank < 2:
        raise InvalidArgumentError(
            f"matrix_transpose swaps the last two axes, but the shape is {shape_of(a)}; give it two or more."
        )
    return transpose(a, swapped_matrix_axes(rank), conjugate)


def swapped_matrix_axes(rank: int) -> tuple[int, ...]:
    """The permutation of axes that transposes matrices, the last two axes of a tensor of ``rank`` axes."""
    return (*range(rank - 2), rank - 1, rank - 2)
