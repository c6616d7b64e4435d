"""The shape, size and rank of a tensor as tensors, and checks of shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape, as_shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import BatchingRule
from dualflow.ops.broadcasting import broadcast_like, reduce_sum
from dualflow.ops.conversion import identity
from dualflow.ops.op_kinds import View
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import python_shape, shape_of
from dualflow.ops.tensor_sizes import SHAPE, size_array

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def shape(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """The sizes of ``input`` as a tensor.

    Args:
        input: a tensor of any shape and dtype.
        out_type: an integer dtype; None for int32.

    Returns:
        A tensor of one axis, with an element for each axis of ``input``.

    Raises:
        DTypeError: tensors can't have the dtype ``out_type``.
        InvalidArgumentError: a size is larger than any number of ``out_type``.

    >>> import dualflow as df
    >>> df.shape([[1, 2, 3]]).numpy()
    array([1, 3], dtype=int32)
    """
    dtype, sizes = as_dtype(out_type or int32), shape_of(input)
    if sizes.is_static:
        return dispatch.current().constant(size_array(sizes, dtype))
    return dispatch.current().apply(SHAPE, (input,), {"dtype": dtype})


def size(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """The number of elements of ``input`` as a tensor.

    Args:
        input: a tensor of any shape and dtype.
        out_type: an integer dtype; None for int32.

    Returns:
        A scalar.

    Raises:
        DTypeError: tensors can't have the dtype ``out_type``.
        InvalidArgumentError: the number is larger than any number of ``out_type``.

    >>> import dualflow as df
    >>> df.size([[1, 2, 3]]).numpy()
    np.int32(3)
    """
    dtype, sizes = as_dtype(out_type or int32), shape_of(input)
    if sizes.is_static:
        return dispatch.current().constant(size_array(sizes.num_elements(), dtype))
    return reduce_sum(broadcast_like(dispatch.current().constant(np.array(1, dtype.dtype)), input))


def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """The number of axes of ``input`` as a tensor.

    Args:
        input: a tensor of any shape and dtype.

    Returns:
        A scalar of dtype int32.

    Raises:
        DTypeError: ``input`` can't become a tensor.

    >>> import dualflow as df
    >>> df.rank([[1, 2, 3]]).numpy()
    np.int32(2)
    """
    return dispatch.current().constant(np.array(len(shape_of(input)), np.int32))


def _ensured(x: Any, sizes: Shape) -> Any:
    Shape(x.shape).merge_with(sizes)
    return x


ENSURED: Final = register(
    Op(
        name="ensured",
        doc="""``x``, whose shape agrees with ``sizes``; an error if it doesn't.""",
        infer=lambda x, sizes: TensorSpec.of(x.shape.merge_with(sizes), x.dtype),
        kernel=_ensured,
        kind=View(lambda x, sizes: x),
        batching_rule=BatchingRule(sizes=("sizes",)),
        vjp=(lambda g, out, x, sizes: g,),
        strings=True,
        samples=(Sample((Domain(-50, 50, "fib", (2, 3)),), {"sizes": Shape((None, 3))}),),
    )
)


def ensure_shape(x: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """``x``, after a check that its shape is ``shape``.

    In a traced function, the result has the static sizes of both; sizes that are unknown in ``x`` are checked
    at run time.

    Args:
        x: a tensor of any dtype.
        shape: the expected sizes; None for any size.

    Returns:
        A tensor with the elements and the dtype of ``x``.

    Raises:
        InvalidArgumentError: ``x`` has another shape.

    >>> import dualflow as df
    >>> df.ensure_shape(df.zeros([2, 3]), [None, 3]).shape
    (2, 3)
    """
    expected = as_shape(shape)
    merged = _merged(shape_of(x), expected)
    if merged == shape_of(x):
        return identity(x)
    _merged(python_shape(x), expected)
    return with_shape(x, expected)


def _merged(shape: Shape, expected: Shape) -> Shape:
    if not shape.is_compatible_with(expected):
        raise InvalidArgumentError(f"a tensor of shape {shape} should have shape {expected}.")
    return shape.merge_with(expected)


def with_shape(x: Any, shape: ShapeLike) -> Any:
    """``x`` with the sizes of ``shape``, which are checked at run time where they are unknown in ``x``."""
    merged = _merged(shape_of(x), as_shape(shape))
    return (
        identity(x) if merged == shape_of(x) else dispatch.current().apply(ENSURED, (x,), {"sizes": merged})
    )
