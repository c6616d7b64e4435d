"""Elements selected by a mask: their number is known at run time only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import float64, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import MAX_ELEMENTS, Shape, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import floordiv, mod
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.checks import required
from dualflow.ops.comparison import equal, less, less_equal, not_equal
from dualflow.ops.conversion import cast
from dualflow.ops.op_kinds import Decompose, RepeatIndices, SizeReader
from dualflow.ops.record import REGISTRY, Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import shape_of, static_int
from dualflow.ops.taking import SCATTER_ADD, gather
from dualflow.ops.tensor_sizes import size_as_tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor

_MASK = Domain(0, 2, "b", (2, 3), values=np.array([[True, False, True], [False, False, True]]))


def _agree(mask: Shape, shape: Shape) -> bool:
    leading = shape[: len(mask)]
    return len(leading) == len(mask) and all(
        a == b or a is None or b is None for a, b in zip(mask, leading, strict=True)
    )


def _mask_infer(x: TensorSpec, mask: TensorSpec) -> TensorSpec:
    if mask.dtype.kind != "b":
        raise DTypeError(f"a mask is of bools, not {mask.dtype.name}; write a comparison such as x > 0.")
    if not len(mask.shape) or not _agree(mask.shape, x.shape):
        raise InvalidArgumentError(
            f"a mask of shape {mask.shape} does not fit the first axes of shape {x.shape}; their sizes "
            "must be equal."
        )
    return TensorSpec.of(Shape([None, *x.shape[len(mask.shape) :]]), x.dtype)


_FEWER: Final = "an element is repeated 0 times or more"
TOO_OFTEN: Final = "elements are repeated more often than memory can hold; repeat them fewer times"
_NO_FIT: Final = (
    "a mask that fits shape {1} does not fit shape {0}; its sizes must be those of the first axes"
)


def _repeated(counts: Any, size: int | None) -> Any:
    if counts.dtype.kind == "i" and counts.size and counts.min() < 0:
        raise InvalidArgumentError(_FEWER)
    if counts.dtype.kind != "b" and counts.sum(dtype=np.float64) > MAX_ELEMENTS:  # np.repeat overflows
        raise InvalidArgumentError(TOO_OFTEN)
    return np.repeat(np.arange(counts.size), counts.reshape(-1).astype(np.intp))


def _positions_infer(counts: TensorSpec, size: int | None) -> TensorSpec:
    if counts.dtype.kind not in "biu":
        raise DTypeError(f"counts are integers or bools, not {counts.dtype.name}.")
    return TensorSpec.of(Shape([size]), int64)


POSITIONS = register(
    Op(
        name="positions",
        doc="""The index of each element of ``counts``, repeated as often as it; ``size`` indices.""",
        infer=_positions_infer,
        kernel=_repeated,
        kind=RepeatIndices(),
        samples=(
            Sample((_MASK,), {"size": 3}),
            Sample((Domain(0, 4, "iu", (4,), values=np.array([0, 2, 3, 1])),), {"size": 6}),
            Sample((Domain(0, 4, "ib", (0,)),), {"size": 0}),
        ),
    )
)


def _number_of(counts: Any) -> Any:
    return reduce_sum(cast(counts, int64))


def all_positions(read: SizeReader, counts: Any) -> Any:
    """Each index of ``counts``, repeated as often as its element."""
    if counts.dtype.kind == "i":
        counts = required(counts, equal(_number_of(less(counts, 0)), 0), _FEWER)
    if counts.dtype.kind != "b":  # the sum of integers may be more than an integer holds
        total = reduce_sum(cast(counts, float64))
        counts = required(counts, less_equal(total, float(MAX_ELEMENTS)), TOO_OFTEN)
    (size,) = read(_number_of(counts), 0)
    return dispatch.current().apply(POSITIONS, (counts,), {"size": size})


REPEATED = register(
    Op(
        name="repeated_positions",
        doc="""The index of each element of ``counts``, repeated as often as the element.""",
        infer=lambda counts: _positions_infer(counts, None),
        kernel=lambda counts: _repeated(counts, None),
        kind=Decompose(all_positions),
        samples=(Sample((_MASK,)), Sample((Domain(0, 4, "i", (4,), values=np.array([0, 2, 3, 1])),))),
    )
)


def _flat(x: Any, rank: int) -> Any:
    """``x`` with its first ``rank`` axes merged into one."""
    if rank == 1:
        return x
    return reshape(x, Shape((math.prod(x.shape[:rank]), *x.shape[rank:])))


def _masked_rows(read: SizeReader, x: Any, mask: Any) -> Any:
    rank = len(mask.shape)
    fit = read.require_shape(x, (*mask.shape, *x.shape[rank:]), _NO_FIT)
    return gather(_flat(fit, rank), all_positions(read, mask))


def _scatter_rows(read: SizeReader, values: Any, mask: Any) -> Any:
    at = dispatch.current().apply(POSITIONS, (mask,), {"size": values.shape[0]})
    attrs = {"axis": 0, "size": math.prod(mask.shape)}
    rows = dispatch.current().apply(SCATTER_ADD, (at, values), attrs)
    return reshape(rows, Shape((*mask.shape, *values.shape[1:])))


def _places(read: SizeReader, mask: Any) -> Any:
    """The indices of the true elements, one column for each axis."""
    at = all_positions(read, not_equal(mask, np.zeros((), mask.dtype.dtype)))
    columns = []
    for size in reversed(mask.shape[1:]):
        columns.append(mod(at, size_as_tensor(size)))
        at = floordiv(at, size_as_tensor(size))
    return dispatch.current().apply(REGISTRY["stack"], (at, *reversed(columns)), {"axis": 1})


def _masked(x: Any, mask: Any) -> Any:
    if mask.dtype.kind != "b" or not mask.ndim:
        raise TypeError("a mask is of bools")
    return x[mask]


def _unmask_infer(values: TensorSpec, mask: TensorSpec) -> TensorSpec:
    return TensorSpec.of(Shape([*mask.shape, *values.shape[1:]]), values.dtype)


def _unmask(values: Any, mask: Any) -> Any:
    out = np.zeros((*mask.shape, *values.shape[1:]), values.dtype)
    out[mask] = values
    return out


MASK = register(
    Op(
        name="boolean_mask",
        doc="""The elements (or rows) of ``x`` where ``mask`` holds, in order.""",
        infer=_mask_infer,
        kernel=_masked,
        kind=Decompose(_masked_rows),
        vjp=(lambda g, out, x, mask: dispatch.current().apply(UNMASK, (g, mask), {}), None),
        strings=True,
        samples=(
            Sample((Domain(-50, 50, "fib", (2, 3)), _MASK)),
            Sample((Domain(-50, 50, "fi", (2, 3, 4)), _MASK)),
        ),
    )
)

UNMASK: Op = register(
    Op(
        name="boolean_place",
        doc="""Zeros with ``values`` where ``mask`` holds, in order.""",
        infer=_unmask_infer,
        kernel=_unmask,
        kind=Decompose(_scatter_rows),
        vjp=(lambda g, out, values, mask: dispatch.current().apply(MASK, (g, mask), {}), None),
        samples=(Sample((Domain(-50, 50, "fi", (3, 2)), _MASK)),),
    )
)


WHERE_TRUE = register(
    Op(
        name="where_true",
        doc="""The positions of the elements of ``mask`` that hold, one row each.""",
        infer=lambda mask: TensorSpec.of(Shape([None, len(mask.shape)]), int64),
        kernel=lambda mask: np.argwhere(mask),
        kind=Decompose(_places),
        samples=(Sample((_MASK,)), Sample((Domain(-2, 2, "fi", (5,)),))),
    )
)


def boolean_mask(
    tensor: TensorLike, mask: TensorLike, axis: AxisLike | None = None, name: str | None = None
) -> Tensor:
    """The elements, or slices, of ``tensor`` where ``mask`` is true, in order: ``tensor[mask]``.

    Args:
        tensor: a tensor of one axis or more, of any dtype.
        mask: bools of one axis or more, whose shape is that of consecutive axes of ``tensor``.
        axis: the first of these axes; None for 0.

    Returns:
        A tensor of the dtype of ``tensor``. One axis, whose size is the number of true elements, replaces the
        masked ones.

    Raises:
        InvalidArgumentError: the shapes do not match.
        DTypeError: ``mask`` doesn't hold bools.

    >>> import dualflow as df
    >>> df.boolean_mask([1, 2, 3], [True, False, True]).numpy()
    array([1, 3], dtype=int32)
    """
    rank, masked = len(shape_of(tensor)), len(shape_of(mask))
    first = 0 if axis is None else normalize_axis(static_int(axis, "axis"), rank)
    if not first:
        return dispatch.current().apply(MASK, (tensor, mask), {})
    to_front = (*range(first, first + masked), *range(first), *range(first + masked, rank))
    picked = dispatch.current().apply(MASK, (transpose(tensor, to_front), mask), {})
    after = range(first + 1, 1 + rank - masked)
    return transpose(picked, (*range(1, first + 1), 0, *after))
