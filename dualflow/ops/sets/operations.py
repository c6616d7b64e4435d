"""Intersections, unions and differences of sets, which are the rows along the last axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.indexing import GETITEM
from dualflow.ops.joining import concat, stack
from dualflow.ops.op_kinds import Decompose, Opaque, SizeReader
from dualflow.ops.positions import iota
from dualflow.ops.record import Op, register
from dualflow.ops.reduction import reduce_max
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.segments.rows import counted_rows
from dualflow.ops.sparse.row_major import indices_at, row_major_positions
from dualflow.ops.sparse.sparse_tensor import SparseTensor
from dualflow.ops.tensor_sizes import axis_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

Array = np.ndarray[Any, Any]

_JOINED: Final[dict[str, Callable[[Array, Array], Array]]] = {
    "intersection": np.intersect1d,
    "union": np.union1d,
    "difference": np.setdiff1d,
}


class _Sets(NamedTuple):
    """A batch of sets, by its elements.

    Attributes:
        sets: the number of the set of each element.
        elements: the elements.
        sizes: the sizes of the axes before the last one: ints, or scalar tensors.
        shape: the static shape, with the last axis.
    """

    sets: Any
    elements: Any
    sizes: tuple[Any, ...]
    shape: Shape


def _infer(
    a_sets: TensorSpec, b_sets: TensorSpec, a: TensorSpec, b: TensorSpec, operation: str
) -> tuple[TensorSpec, ...]:
    if a.dtype is not b.dtype or a.dtype.kind not in "biuf":
        raise DTypeError(f"sets are of real numbers of one dtype, not of {a.dtype.name} and {b.dtype.name}.")
    several = TensorSpec.of(Shape([None]), int64)
    return several, several, TensorSpec.of(Shape([None]), a.dtype)


def _operate(a_sets: Array, b_sets: Array, a: Array, b: Array, operation: str) -> tuple[Array, ...]:
    """The elements of the results, sorted: the set of each, its index in that, and its value."""
    if a.dtype != b.dtype or a.dtype.kind not in "biuf":
        raise TypeError("sets are of real numbers of one dtype")
    elements, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    count = max(len(elements), 1)
    keys = np.concatenate([a_sets, b_sets]) * count + codes
    joined = _JOINED[operation](keys[: len(a)], keys[len(a) :]).astype(np.int64)
    sets = joined // count
    first = np.searchsorted(sets, sets)
    return sets, np.arange(len(joined)) - first, elements[joined % count]


_SAMPLES: Final = tuple(
    Sample(
        (
            Domain(0, 2, "i", (6,), values=np.array([0, 0, 0, 1, 1, 1])),
            Domain(0, 2, "i", (4,), values=np.array([0, 0, 1, 1])),
            Domain(-3, 3, "i", (6,)),
            Domain(-3, 3, "i", (4,)),
        ),
        {"operation": operation},
    )
    for operation in _JOINED
)


def _infer_padded(
    a_sets: TensorSpec, b_sets: TensorSpec, a: TensorSpec, b: TensorSpec, operation: str
) -> tuple[TensorSpec, ...]:
    lengths = a.shape[0], b.shape[0]
    length = None if lengths[0] is None or lengths[1] is None else lengths[0] + lengths[1]
    padded = [TensorSpec.of(Shape([length]), s.dtype) for s in _infer(a_sets, b_sets, a, b, operation)]
    return TensorSpec.of(Shape(()), int64), *padded


def _operate_padded(a_sets: Array, b_sets: Array, a: Array, b: Array, operation: str) -> tuple[Array, ...]:
    """The number of elements of the results, and the results of :func:`_operate` padded with zeros."""
    results = _operate(a_sets, b_sets, a, b, operation)
    count, length = len(results[0]), len(a) + len(b)
    padded = [np.concatenate([x, np.zeros(length - count, x.dtype)]) for x in results]
    return np.array(count, np.int64), *padded


PADDED_SET_OPERATION: Final = register(
    Op(
        name="padded_set_operation",
        doc="""The number of elements of joined sets, then ``set_operation``'s results, padded with zeros.""",
        infer=_infer_padded,
        kernel=_operate_padded,
        kind=Opaque("NumPy looks for equal elements"),
        outputs=4,
        samples=_SAMPLES,
    )
)


def _results_of_padded(read: SizeReader, *inputs: Any, operation: str) -> tuple[Any, ...]:
    """The results of ``set_operation``: those of ``padded_set_operation``, cut to the number of elements."""
    engine = dispatch.current()
    count, *padded = engine.apply(PADDED_SET_OPERATION, inputs, {"operation": operation})
    (size,) = read(count, 0)
    return tuple([engine.apply(GETITEM, (x,), {"key": ((0, size, 1),)}) for x in padded])


SET_OPERATION: Final = register(
    Op(
        name="set_operation",
        doc="""The elements of joined sets: the set of each, its index in that, and its value.""",
        infer=_infer,
        kernel=_operate,
        kind=Decompose(_results_of_padded),
        outputs=3,
        samples=_SAMPLES,
    )
)


def _sets_of(x: Any) -> _Sets:
    shape = Shape(x.shape)
    if len(shape) < 2:
        raise InvalidArgumentError(
            f"sets are the rows of two axes or more, not of shape {shape}; reshape it."
        )
    if isinstance(x, SparseTensor):
        leading = x.sizes()[:-1]
        return _Sets(row_major_positions(x.indices[:, :-1], leading), x.values, tuple(leading), shape)
    *sizes, length = axis_sizes(x, int64)
    count = math.prod(sizes)
    numbers = broadcast_to(iota((count, 1), 0, int64), [count, length])
    return _Sets(reshape(numbers, [-1]), reshape(x, [-1]), tuple(sizes), shape)


def _with_equal_sizes(one: _Sets, other: _Sets) -> _Sets:
    """``one``, which must have the sizes of ``other`` before the last axis.

    Raises:
        InvalidArgumentError: it has others; at run time if a size is dynamic.
    """
    message = f"sets of shapes {one.shape} and {other.shape} should have the same sizes before the last axis."
    if not one.shape[:-1].is_compatible_with(other.shape[:-1]):
        raise InvalidArgumentError(message)
    sets = one.sets
    for x, y in zip(one.sizes, other.sizes, strict=True):
        if type(x) is not int or type(y) is not int:
            sets = required(sets, equal(x, y), message)
    return one._replace(sets=sets)


def _operation(a: Any, b: Any, operation: str) -> SparseTensor:
    first, second = (x if isinstance(x, SparseTensor) else convert_to_tensor(x) for x in (a, b))
    if isinstance(first, SparseTensor) and not isinstance(second, SparseTensor):
        raise DTypeError("sets of a SparseTensor and a dense tensor: give the dense one first.")
    one, other = _sets_of(first), _sets_of(second)
    one = _with_equal_sizes(one, other)
    operands = (one.sets, other.sets, one.elements, other.elements)
    sets, positions, elements = dispatch.current().apply(SET_OPERATION, operands, {"operation": operation})
    indices = concat([indices_at(sets, one.sizes), reshape(positions, [-1, 1])], 1)
    longest = reduce_max(concat([positions, [-1]], 0)) + 1
    result = SparseTensor(indices, elements, stack([*[cast(n, int64) for n in one.sizes], longest]))
    result.set_shape([*one.shape[:-1].merge_with(other.shape[:-1]), None])
    return result


@entry
def intersection(a: TensorLike, b: TensorLike, validate_indices: bool = True) -> SparseTensor:
    """The common elements of each set of ``a`` and the set of ``b`` at the same position.

    Args:
        a: real numbers, of two axes or more: the rows along the last axis are sets. A dense tensor or a
            SparseTensor, whose stored elements are taken.
        b: of the same dtype, and of the same sizes before the last axis; a SparseTensor if ``a`` is one.
        validate_indices: ignored: elements may come in any order.

    Returns:
        A SparseTensor with the elements of each result in order along the last axis, which is as long as the
        largest.

    Raises:
        InvalidArgumentError: fewer than two axes, or other sizes.
        DTypeError: other dtypes, or a dense ``b`` with a sparse ``a``.

    >>> import dualflow as df
    >>> df.sparse.to_dense(df.sets.intersection([[1, 2, 3]], [[4, 3, 2]])).numpy()
    array([[2, 3]], dtype=int32)
    """
    return _operation(a, b, "intersection")


@entry
def union(a: TensorLike, b: TensorLike, validate_indices: bool = True) -> SparseTensor:
    """The elements of each set of ``a``, of the set of ``b`` at the same position, or of both.

    Args:
        a: sets: a tensor, or a SparseTensor, of two axes or more.
        b: sets, with the same shape but for the last axis.
        validate_indices: ignored: elements may have any order.

    Returns:
        A SparseTensor of the sorted elements, with the dtype of ``a``.

    Raises:
        InvalidArgumentError: the shapes don't fit.
        DTypeError: the dtypes differ, or are not of real numbers.

    >>> import dualflow as df
    >>> df.sparse.to_dense(df.sets.union([[1, 2, 3]], [[4, 3, 2]])).numpy()
    array([[1, 2, 3, 4]], dtype=int32)
    """
    return _operation(a, b, "union")


@entry
def difference(
    a: TensorLike, b: TensorLike, aminusb: bool = True, validate_indices: bool = True
) -> SparseTensor:
    """The elements of each set of ``a`` that are not in the set of ``b`` at the same position.

    Args:
        a: sets: a tensor, or a SparseTensor, of two axes or more.
        b: sets, with the same shape but for the last axis.
        aminusb: False for the elements of ``b`` that are not in ``a``.
        validate_indices: ignored: elements may have any order.

    Returns:
        A SparseTensor of the sorted elements, with the dtype of ``a``.

    Raises:
        InvalidArgumentError: the shapes don't fit.
        DTypeError: the dtypes differ, or are not of real numbers.

    >>> import dualflow as df
    >>> df.sparse.to_dense(df.sets.difference([[1, 2, 3]], [[4, 3, 2]])).numpy()
    array([[1]], dtype=int32)
    """
    return _operation(a, b, "difference") if aminusb else _operation(b, a, "difference")


@entry
def size(a: TensorLike, validate_indices: bool = True) -> Tensor:
    """The number of distinct elements of each set of a SparseTensor.

    Args:
        a: a SparseTensor of two axes or more.
        validate_indices: ignored: elements may have any order.

    Returns:
        An int32 tensor with the shape of ``a`` without its last axis.

    Raises:
        DTypeError: ``a`` is not a SparseTensor.

    >>> import dualflow as df
    >>> df.sets.size(df.sets.union([[1, 2, 2]], [[4, 3, 2]])).numpy()
    array([4], dtype=int32)
    """
    if not isinstance(a, SparseTensor):
        raise DTypeError("sets.size takes a SparseTensor; see df.sparse.from_dense.")
    own = _sets_of(a)
    operands = (own.sets, own.sets, own.elements, own.elements)
    sets, _, _ = dispatch.current().apply(SET_OPERATION, operands, {"operation": "union"})
    return reshape(counted_rows(reshape(sets, [-1, 1]), math.prod(own.sizes), int32), own.sizes)
