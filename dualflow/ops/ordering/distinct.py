"""The distinct elements of a vector, in the order in which they appear first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Decompose, Opaque, SizeReader
from dualflow.ops.ordering.distinct_positions import distinct_positions
from dualflow.ops.record import REGISTRY, Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike


class Unique(NamedTuple):
    """The distinct elements ``y``, and for each element of the input its index ``idx`` among them."""

    y: Any
    idx: Any


class UniqueWithCounts(NamedTuple):
    """The distinct elements ``y``, the index ``idx`` of each element of the input, and their counts."""

    y: Any
    idx: Any
    count: Any


def _infer(x: TensorSpec, results: int) -> tuple[TensorSpec, ...]:
    if x.dtype.kind not in "biufO":
        raise DTypeError(f"takes real numbers or strings, not {x.dtype.name}; give the parts one by one.")
    if len(x.shape) != 1:
        raise InvalidArgumentError(f"takes a vector, not shape {x.shape}; reshape it to [-1] first.")
    several = TensorSpec.of(Shape([None]), int32)
    return (several, TensorSpec.of(x.shape, int32), several)[:results]


def _infer_padded(x: TensorSpec, results: int) -> tuple[TensorSpec, ...]:
    filled = [TensorSpec.of(x.shape, int32) for _ in _infer(x, results)]
    return TensorSpec.of(Shape(()), int32), *filled


def _padded_unique(x: Any, results: int) -> tuple[Any, ...]:
    parts = distinct_positions(x, max(1, results))
    return np.array(len(parts[0]), np.int32), *[_padded(part, len(x)) for part in parts[:results]]


def _padded(part: Any, length: int) -> Any:
    if len(part) == length:
        return part
    out = np.zeros(length, part.dtype)
    out[: len(part)] = part
    return out


def _needed_results(needed: tuple[bool, ...], before: int) -> dict[str, Any] | None:
    """The attributes of an op that computes only its first results; None if a later one is needed.

    The first ``before`` results are always computed.
    """
    count = sum(needed)
    return {"results": count - before} if all(needed[:count]) and count > 0 else None


PADDED_UNIQUE = register(
    Op(
        name="filled_unique",
        doc="""The number of distinct elements, and ``results`` results of ``unique``, padded with zeros.""",
        infer=_infer_padded,
        kernel=_padded_unique,
        kind=Opaque("NumPy looks for equal elements"),
        outputs=None,
        strings=True,
        prune_outputs=lambda needed, results: _needed_results(needed, 1),
        samples=(
            *[Sample((Domain(-3, 3, "ib", (7,)),), {"results": results}) for results in range(4)],
            Sample((Domain(values=[0.5, -1, 0.5, 0, -0.0]),), {"results": 3}),
        ),
    )
)


def _unique_of_padded(read: SizeReader, x: Any, results: int) -> tuple[Any, ...]:
    """The results of ``unique``: those of ``filled_unique``, cut to the number of distinct elements."""
    count, *parts = dispatch.current().apply(PADDED_UNIQUE, (x,), {"results": results})
    (size,) = read(count, 0)
    key = ((0, size, 1),)
    return tuple(
        part if i == 1 else dispatch.current().apply(REGISTRY["getitem"], (part,), {"key": key})
        for i, part in enumerate(parts)
    )


UNIQUE = register(
    Op(
        name="unique",
        doc="""The first positions of the distinct elements, the inverse indices, and the counts.""",
        infer=_infer,
        kernel=distinct_positions,
        kind=Decompose(_unique_of_padded),
        outputs=None,
        strings=True,
        prune_outputs=lambda needed, results: _needed_results(needed, 0),
        samples=(
            *[Sample((Domain(-3, 3, "iub", (7,)),), {"results": results}) for results in (1, 2, 3)],
            Sample((Domain(-3, 3, "fi", (0,)),), {"results": 3}),
        ),
    )
)


def _distinct(x: Any, out_idx: Any, results: int) -> tuple[Any, ...]:
    dtype = as_dtype(out_idx)
    if dtype not in (int32, int64):
        raise DTypeError(f"unique gives positions in int32 or int64, not {dtype.name}.")
    vector = convert_to_tensor(x)
    first, *others = dispatch.current().apply(UNIQUE, (vector,), {"results": results})
    return gather(vector, first), *[cast(part, dtype) for part in others]


def unique(x: TensorLike, out_idx: DTypeLike = int32, name: str | None = None) -> Unique:
    """The distinct elements of a vector in the order in which they appear first.

    Each nan is an element of its own, and the two zeros are one. The gradient of a distinct element goes to
    its first appearance.

    Args:
        x: a vector.
        out_idx: the dtype of the places: int32 or int64.

    Returns:
        ``y``, whose size is dynamic in a trace, and ``idx`` with the shape of ``x``: ``y[idx]`` is ``x``.

    Raises:
        InvalidArgumentError: ``x`` has not one axis.
        DTypeError: another ``out_idx``.

    >>> import dualflow as df
    >>> y, idx = df.unique([3, 1, 3, 2, 1])
    >>> y.numpy(), idx.numpy()
    (array([3, 1, 2], dtype=int32), array([0, 1, 0, 2, 1], dtype=int32))
    """
    return Unique(*_distinct(x, out_idx, 2))


def unique_with_counts(
    x: TensorLike, out_idx: DTypeLike = int32, name: str | None = None
) -> UniqueWithCounts:
    """The distinct elements, as :func:`unique`, and the number of times each occurs.

    Args:
        x: a vector of any dtype.
        out_idx: the integer dtype of the indices and counts.

    Returns:
        A named tuple: ``y``, the distinct elements in the order of their first occurrence; ``idx``, the index
        of each element of ``x`` among them; ``count``, of the shape of ``y``.

    Raises:
        InvalidArgumentError: ``x`` is not a vector.

    >>> import dualflow as df
    >>> df.unique_with_counts([3, 1, 3, 2, 1]).count.numpy()
    array([2, 2, 1], dtype=int32)
    """
    return UniqueWithCounts(*_distinct(x, out_idx, 3))
