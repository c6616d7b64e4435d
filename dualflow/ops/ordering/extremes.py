"""The positions of the largest or smallest elements of each row, and these elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import LEADING
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.sorting import take_along_axis
from dualflow.ops.stable_order import order
from dualflow.ops.static import static_int
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, IntLike, TensorLike
    from dualflow.ops.tensor import Tensor

_BLOCKS = 8
"""The number of blocks into which a row is divided, for each element of the result."""
_MIN_BLOCK = 4
"""The least number of elements of a block; rows with shorter blocks are sorted as a whole."""


def _infer(x: TensorSpec, count: int, descending: bool) -> TensorSpec:
    if x.dtype.kind not in "biuf":
        raise DTypeError(f"takes real numbers, not {x.dtype.name}; convert them with df.cast.")
    return TensorSpec.of(Shape([*x.shape[:-1], count]), int32)


def _places(x: Any, count: int, descending: bool) -> Any:
    if x.dtype.kind == "c":
        raise TypeError("takes real numbers")
    size = x.shape[-1]
    if count > size:
        raise InvalidArgumentError(f"{count} of the {size} elements of a row; k is 0..{size}.")
    if size < count * _BLOCKS * _MIN_BLOCK or not count or not x.size:
        positions = order(x, x.ndim - 1, descending)[..., :count]
    else:
        positions = _of_candidates(x.reshape(-1, size), count, descending)
    return positions.astype(np.int32).reshape(*x.shape[:-1], count)


def _of_candidates(rows: Any, count: int, descending: bool) -> Any:
    """The positions of the ``count`` best elements of each row; sorts only those above a bound from blocks.

    A comparison with nan does not hold, so that a nan, and every element if the limit is nan, is kept.
    """
    blocks = count * _BLOCKS
    length = rows.shape[1] // blocks
    best = rows[:, : blocks * length].reshape(-1, blocks, length)
    best = np.sort(best.max(2) if descending else best.min(2), 1)
    limit = best[:, -count, None] if descending else best[:, count - 1, None]
    candidates = np.flatnonzero(~(rows < limit if descending else rows > limit))
    row, column = np.divmod(candidates, rows.shape[1])
    ranked = order(rows.reshape(-1)[candidates], 0, descending)
    ranked = ranked[row[ranked].argsort(kind="stable")]
    first = np.searchsorted(row, np.arange(len(rows)))
    return column[ranked][first[:, None] + np.arange(count)]


TOP_PLACES = register(
    Op(
        name="top_places",
        doc="""The positions of the ``count`` largest or smallest elements of each row, best first.""",
        infer=_infer,
        kernel=_places,
        kind=Opaque("NumPy looks for the best elements and sorts these"),
        batching_rule=LEADING,
        samples=(
            Sample((Domain(-5, 5, "fi", (3, 7)),), {"count": 3, "descending": True}),
            Sample((Domain(-5, 5, "fi", (2, 70)),), {"count": 2, "descending": False}),
            Sample((Domain(-5, 5, "fi", (2, 5)),), {"count": 0, "descending": True}),
        ),
    )
)


def extremes(x: Any, count: int, *, descending: bool) -> tuple[Any, Tensor]:
    """The ``count`` best elements of each row of the last axis, best first, and their positions.

    Elements that are equally good stay in their order.
    """
    indices = dispatch.current().apply(TOP_PLACES, (x,), {"count": count, "descending": descending})
    return (gather(x, indices) if len(x.shape) == 1 else take_along_axis(x, indices, -1)), indices


class TopK(NamedTuple):
    """The largest elements of each row, and where they were."""

    values: Any
    indices: Any


def top_k(
    input: TensorLike,
    k: IntLike = 1,
    sorted: bool = True,
    index_type: DTypeLike = int32,
    name: str | None = None,
) -> TopK:
    """The ``k`` largest elements along the last axis, largest first, and their positions.

    Of equal elements the one at the lower position comes first; nan counts as largest.

    Args:
        input: real numbers of one axis or more.
        k: the number of elements, an integer.
        sorted: ignored: they are always in order.
        index_type: the integer dtype of the positions.

    Returns:
        A named tuple: ``values``, with the dtype of ``input``, and ``indices``; both of shape ``(..., k)``.

    Raises:
        InvalidArgumentError: ``k`` is larger than the axis, or ``input`` is a scalar.
        DTypeError: ``input`` holds complex numbers or strings.

    >>> import dualflow as df
    >>> values, indices = df.math.top_k([3, 9, 5], 2)
    >>> values.numpy(), indices.numpy()
    (array([9, 5], dtype=int32), array([1, 2], dtype=int32))
    """
    x = convert_to_tensor(input)
    if not x.shape:
        raise InvalidArgumentError("top_k takes rows, but the shape is (); give it an axis with df.reshape.")
    count, size = static_int(k, "k"), x.shape[-1]
    if count < 0 or (size is not None and count > size):
        raise InvalidArgumentError(f"top_k({count}) of rows of {size} elements; k is 0..{size}.")
    values, indices = extremes(x, count, descending=True)
    return TopK(values, cast(indices, index_type))
