"""Binary search in sorted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import DType, as_dtype, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.ordering.binary_search import compare_sizes, lower_search
from dualflow.ops.record import Op, Promotion, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.stable_order import Pairs, order, pairs

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor


_MIN_SORTED_SEARCH = 1 << 15
"""The length of rows, and number of values, from which values are searched for in ascending order."""


def _infer(rows: TensorSpec, values: TensorSpec, side: str, dtype: DType) -> TensorSpec:
    if rows.dtype.kind not in "iuf":
        raise DTypeError(f"takes real numbers, not {rows.dtype.name}; convert them with df.cast.")
    before, leading = rows.shape[:-1], values.shape[:-1]
    fit = len(rows.shape) == len(values.shape) > 0 and all(
        a == b or a is None or b is None for a, b in zip(before, leading, strict=True)
    )
    if not fit:
        raise InvalidArgumentError(
            f"sorted rows of shape {rows.shape} and values of shape {values.shape} should have the same "
            "sizes before their last axis, which both have."
        )
    return TensorSpec.of(values.shape, dtype)


def _search(rows: Any, values: Any, side: Any, dtype: DType) -> Any:
    if (
        rows.dtype.kind not in "iuf"
        or not rows.ndim == values.ndim > 0
        or rows.shape[:-1] != values.shape[:-1]
    ):
        raise TypeError("takes rows of real numbers")
    out = np.empty(values.shape, dtype.dtype)
    wide = rows.shape[-1] >= _MIN_SORTED_SEARCH <= values.shape[-1]
    as_many = values.shape[-1] >= rows.shape[-1] and rows.dtype.itemsize <= 4
    for at in np.ndindex(rows.shape[:-1]):
        if wide and as_many and _search_by_merging(rows[at], values[at], side, out[at]):
            continue
        if wide:  # neighbours are found near each other, and so in a cache
            ascending = order(values[at], 0, False)
            out[at][ascending] = rows[at].searchsorted(values[at][ascending], side)
        else:
            out[at] = rows[at].searchsorted(values[at], side)
    return out


def _search_by_merging(row: Any, values: Any, side: str, out: Any) -> bool:
    """Write the position of each value in the sorted ``row`` to ``out``; False if the merge is not possible.

    The values and the row are packed into integers of key and position, which a stable sort merges. Dtypes
    that do not fit into such integers can't be packed.
    """
    count, left = len(values), side == "left"
    both = pairs(np.concatenate([values, row] if left else [row, values]), 0)
    if both is None:
        return False
    value_pairs = Pairs(both.both[:count] if left else both.both[len(row) :], both.shift)
    value_pairs.both.sort()
    which = value_pairs.positions().astype(np.intp)
    both.both.sort(kind="stable")
    positions = both.positions()
    indices = np.flatnonzero(positions < count if left else positions >= len(row))
    indices -= np.arange(count)
    out[which if left else which - len(row)] = indices
    return True


_SORTED = np.array([-40, -3, -3, 0, 5, 17, 40])

SEARCHSORTED = register(
    Op(
        name="searchsorted",
        doc="""The index at which each value fits into a sorted row: left or right of equal elements.""",
        infer=_infer,
        kernel=_search,
        kind=Opaque("NumPy searches", lowering=lower_search, compare_sizes=compare_sizes),
        promotion=Promotion.TOGETHER,
        samples=(
            Sample(
                (Domain(-50, 50, "fi", (7,), values=_SORTED), Domain(-50, 50, "fi", (5,))),
                {"side": "left", "dtype": int32},
            ),
            Sample(
                (
                    Domain(-50, 50, "fi", (2, 7), values=[_SORTED, _SORTED + 2]),
                    Domain(-5, 5, "fi", (2, 3)),
                ),
                {"side": "right", "dtype": int64},
            ),
        ),
    )
)


def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: str = "left",
    out_type: DTypeLike = int32,
    name: str | None = None,
) -> Tensor:
    """The positions at which ``values`` can be inserted into sorted rows that stay sorted.

    Args:
        sorted_sequence: real numbers, sorted along the last axis; a nan belongs after all numbers.
        values: of the same sizes before the last axis.
        side: "left" of the elements that equal the value, or "right" of them.
        out_type: the dtype of the result: int32 or int64.

    Returns:
        A tensor with the shape of ``values``: the number of elements before each insertion point.

    Raises:
        InvalidArgumentError: another side, or sizes that differ.
        DTypeError: bools or complex numbers, or another ``out_type``.

    >>> import dualflow as df
    >>> df.searchsorted([1, 3, 5], [0, 3, 9]).numpy(), df.searchsorted([1, 3, 5], [3], side="right").numpy()
    (array([0, 1, 3], dtype=int32), array([2], dtype=int32))
    """
    if side not in ("left", "right"):
        raise InvalidArgumentError(f"side is 'left' or 'right', not {side!r}.")
    dtype = as_dtype(out_type)
    if dtype not in (int32, int64):
        raise DTypeError(f"searchsorted gives positions in int32 or int64, not {dtype.name}.")
    return dispatch.current().apply(SEARCHSORTED, (sorted_sequence, values), {"side": side, "dtype": dtype})
