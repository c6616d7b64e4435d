"""Sorting, through the positions that sort."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import ALONG, BatchingRule
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample, integers
from dualflow.ops.static import known_sizes, shape_of, static_int
from dualflow.ops.taking import check_indices

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


_LONG = 1 << 10
"""From this size on sorting takes the ways that pay for long rows."""
_VERY_LONG: Final = 1 << 14
"""From this size on elements of 64 bits are sorted twice rather than slowly."""
_RUNS: Final = 64
"""The number of sorted runs up to which merging them is faster than sorting."""
_BLOCK: Final = 1 << 15
"""The number of elements that become keys at a time."""
NAN_KEY: Final = np.uint32(0xFFFFFFFF)
"""The key of a nan, which no other float has."""
_KEY: Final = 1 if sys.byteorder == "little" else 0
"""Which half of a pair of 64 bits is the upper one."""


def _argsort_infer(x: TensorSpec, axis: int, descending: bool) -> TensorSpec:
    return TensorSpec.of(_sort_infer(x, axis, descending).shape, int32)


def _sort_infer(x: TensorSpec, axis: int, descending: bool) -> TensorSpec:
    if x.dtype.kind not in "biuf":
        raise DTypeError(f"takes real numbers, not {x.dtype.name}; convert them with df.cast.")
    return x


def _argsort(x: Any, axis: int, descending: bool) -> Any:
    if x.dtype.kind == "c":
        raise TypeError("argsort takes real numbers")
    return order(x, axis, descending).astype(np.int32, copy=False)


def order(x: Any, axis: int, descending: bool) -> Any:
    """The positions along an axis of an array that sort; equal elements keep their order, nan is largest."""
    if not descending:
        return _ascending(x, axis)
    back = (slice(None),) * axis + (slice(None, None, -1),)
    positions = _ascending(x[back], axis)[back]
    return positions.dtype.type(max(0, x.shape[axis] - 1)) - positions


def _ascending(x: Any, axis: int) -> Any:
    """The positions that sort."""
    sorted_keys = sorted_pairs(x, axis)
    if sorted_keys is not None:
        return sorted_keys.positions()
    if x.dtype.itemsize == 8 and x.shape[axis] >= _VERY_LONG and not _in_runs(np.moveaxis(x, axis, -1)):
        return _ascending_wide(x, axis)
    return x.argsort(axis, kind="stable")


def _in_runs(rows: Any) -> bool:
    """Whether rows consist of a few rising or falling runs, which NumPy's stable sort merges."""
    falls = rows[..., 1:] < rows[..., :-1]
    turns = np.count_nonzero(falls[..., 1:] != falls[..., :-1])
    return bool(turns <= _RUNS * (rows.size // rows.shape[-1]))


def _ascending_wide(x: Any, axis: int) -> Any:
    """The positions that sort elements of 64 bits.

    NumPy's unstable sort is much faster, but doesn't keep the order of equal elements. So the positions are
    sorted again as integers ``group << 32 | position``, where the group is the number of smaller distinct
    elements.

    For elements ``[7, 3, 7]``, the unstable sort may return positions ``[1, 2, 0]``. Their groups are
    ``[0, 1, 1]``, and the integers ``[0|1, 1|2, 1|0]`` sort to ``[0|1, 1|0, 1|2]``: the positions are
    ``[1, 0, 2]``.
    """
    positions = x.argsort(axis)
    rows, places = np.moveaxis(x, axis, -1), np.moveaxis(positions, axis, -1)
    ordered = np.take_along_axis(rows, places, -1)
    if np.isnan(ordered[..., -1]).any():  # nans are not distinguished from their neighbours
        return x.argsort(axis, kind="stable")
    differs = ordered[..., 1:] != ordered[..., :-1]
    if differs.all():
        return positions
    both = np.zeros(rows.shape, np.uint64)
    np.cumsum(differs, -1, out=both[..., 1:])
    both <<= np.uint64(32)
    both |= places.astype(np.uint64)
    both.sort(-1)
    both &= np.uint64((1 << 32) - 1)
    return np.moveaxis(both, -1, axis)


class Pairs(NamedTuple):
    """Integers, each a key above a position, which sort together.

    Keys are integers that compare as the elements do; that of every nan is ``NAN_KEY``.
    """

    both: Any
    shift: int

    def keys(self) -> Any:
        """The keys, in the order of the pairs."""
        both = self.both
        return both.view(np.uint32)[..., _KEY::2] if self.shift == 32 else both >> both.dtype.type(self.shift)

    def positions(self) -> Any:
        """The positions, in the order of the pairs: those that sort, once these are sorted."""
        both = self.both
        if self.shift == 32:
            return both.view(np.uint32)[..., 1 - _KEY :: 2]
        return both & both.dtype.type((1 << self.shift) - 1)


def sorted_pairs(x: Any, axis: int) -> Pairs | None:
    """Keys and positions of the elements, sorted along an axis; None for short rows or wide elements.

    NumPy sorts numbers far faster than positions, so keys and positions are sorted together, as one integer.
    """
    unsorted = pairs(x, axis)
    if unsorted is not None:
        unsorted.both.sort(axis)
    return unsorted


def pairs(x: Any, axis: int) -> Pairs | None:
    """Keys and positions of the elements in their present order; None for short rows or wide elements."""
    size = x.shape[axis]
    key_range = _range(x) if size >= _LONG and x.size else None
    if key_range is None:
        return None
    least, reach = key_range
    places = np.arange(size, dtype=np.uint32).reshape((size,) + (1,) * (x.ndim - 1 - axis))
    shift = (size - 1).bit_length()
    if reach.bit_length() + shift <= 32:
        both = _keys(x, least)
        both <<= np.uint32(shift)
        both |= places
        return Pairs(both, shift)
    halves = np.empty((*x.shape, 2), np.uint32)
    halves[..., 1 - _KEY] = places
    # Temporary arrays are small and stay in a cache where a vector is taken in blocks.
    step = _BLOCK if x.ndim == 1 else len(x)
    for start in range(0, len(x), step):
        halves[start : start + step, ..., _KEY] = _keys(x[start : start + step], least)
    return Pairs(halves.view(np.uint64)[..., 0], 32)


def _range(x: Any) -> tuple[Any, int] | None:
    """The least integer, and how large keys may be; None where these take more than 32 bits."""
    if x.dtype.kind in "iu" and x.dtype.itemsize > 2:
        least = x.min()
        reach = int(x.max()) - int(least)
        return (least, reach) if reach < 1 << 32 else None
    return (None, int(NAN_KEY)) if x.dtype.kind == "f" and x.dtype.itemsize <= 4 else None


def _keys(x: Any, least: Any) -> Any:
    """Unsigned integers of 32 bits that compare as the elements do; ``least`` is None for floats."""
    if least is not None:
        return (x - least).astype(np.uint32)
    single = np.add(x, np.float32(0), dtype=np.float32)  # -0.0 becomes 0.0
    bits, nans = single.view(np.int32), np.isnan(single)
    turned = bits >> 31
    turned |= np.int32(-(1 << 31))
    bits ^= turned
    keys = bits.view(np.uint32)
    keys[nans] = NAN_KEY
    return keys


def _sort(x: Any, axis: int, descending: bool) -> Any:
    """Elements in order; those that compare equal, zeros of both signs and nans, keep their order."""
    if x.dtype.kind == "c":
        raise TypeError("sort takes real numbers")
    rows = np.moveaxis(x, axis, -1)
    # Of bytes NumPy's stable sort is much the fastest, since it counts them.
    ordered = np.sort(rows, -1, "stable" if x.dtype.itemsize == 1 else "quicksort")
    ordered = ordered[..., ::-1] if descending else ordered
    if x.dtype.kind == "f":
        for same in (lambda a: a == 0, np.isnan):
            there = same(ordered)
            if there.any():
                ordered[there] = rows[same(rows)]
    return np.ascontiguousarray(np.moveaxis(ordered, -1, axis))


ARGSORT = register(
    Op(
        name="argsort",
        doc="""The positions along ``axis`` that sort; equal elements keep their order.""",
        infer=_argsort_infer,
        kernel=_argsort,
        kind=Opaque("NumPy sorts"),
        batching_rule=ALONG,
        samples=tuple(
            Sample((Domain(-5, 5, "fi", (3, 7)),), {"axis": axis, "descending": descending})
            for axis in (0, 1)
            for descending in (False, True)
        ),
    )
)


SORT = register(
    Op(
        name="sort",
        doc="""The elements in order along ``axis``; nan counts as largest.""",
        infer=_sort_infer,
        kernel=_sort,
        kind=Opaque("NumPy sorts"),
        batching_rule=ALONG,
        vjp=(
            lambda g, out, x, axis, descending: _add_rows(_positions(x, axis, descending), g, axis, x.shape),
        ),
        samples=tuple(
            Sample((Domain(-5, 5, "fi", (3, 7)),), {"axis": axis, "descending": descending})
            for axis in (0, 1)
            for descending in (False, True)
        ),
    )
)


def _along_infer(x: TensorSpec, indices: TensorSpec, axis: int) -> TensorSpec:
    if not indices.dtype.is_integer:
        raise DTypeError(f"indices are integers, not {indices.dtype.name}; cast them with df.cast.")
    if len(indices.shape) != len(x.shape):
        raise InvalidArgumentError(
            f"indices of shape {indices.shape} and x of shape {x.shape} differ in rank; reshape one of them."
        )
    return TensorSpec.of(indices.shape, x.dtype)


def _take_along(x: Any, indices: Any, axis: int) -> Any:
    check_indices(indices, x.shape[axis], axis)
    return np.take_along_axis(x, indices, axis)


def _along_sizes(indices: Any, shape: Shape) -> Shape:
    """``shape``, whose open sizes are those of the indices: along the axis itself it has to be known."""
    return Shape(
        own if own is not None else index_size for own, index_size in zip(shape, indices.shape, strict=True)
    )


def _add_along(indices: Any, updates: Any, axis: int, shape: Shape) -> Any:
    sizes: Any = _along_sizes(indices, shape)
    out = np.zeros(sizes, updates.dtype)
    grid = list(np.ogrid[tuple(slice(d) for d in indices.shape)])
    grid[axis] = indices
    np.add.at(out, tuple(grid), updates)
    return out


def _take_along_vjp(g: Any, out: Any, x: Any, indices: Any, axis: int) -> Any:
    known_sizes(x.shape, "the gradient of take_along_axis", [axis])
    return _add_rows(indices, g, axis, x.shape)


_ROWS = (Domain(-5, 5, "fib", (2, 4)), integers(0, 4, shape=(2, 3)))

TAKE_ALONG = register(
    Op(
        name="take_along_axis",
        doc="""For each row along ``axis``, the elements at that row's positions.""",
        infer=_along_infer,
        kernel=_take_along,
        kind=Opaque("each row has positions of its own"),
        batching_rule=ALONG,
        vjp=(_take_along_vjp, None),
        samples=(Sample(_ROWS, {"axis": 1}),),
    )
)

ADD_ALONG = register(
    Op(
        name="add_along_axis",
        doc="""Zeros of ``shape`` to which each row's ``updates`` are added at that row's positions.""",
        infer=lambda indices, updates, axis, shape: TensorSpec.of(
            _along_sizes(indices, shape), updates.dtype
        ),
        kernel=_add_along,
        kind=Opaque("several updates may meet in one place, which NumPy's add.at sums"),
        batching_rule=BatchingRule(axes=("axis",), sizes=("shape",)),
        vjp=(None, lambda g, out, indices, updates, axis, shape: take_along_axis(g, indices, axis)),
        samples=(
            Sample(
                (integers(0, 4, shape=(2, 3)), Domain(-5, 5, "fi", (2, 3))),
                {"axis": 1, "shape": Shape((2, 4))},
            ),
        ),
    )
)


def _positions(x: Any, axis: int, descending: bool) -> Any:
    return dispatch.current().apply(ARGSORT, (x,), {"axis": axis, "descending": descending})


def _add_rows(indices: Any, updates: Any, axis: int, shape: Shape) -> Any:
    return dispatch.current().apply(ADD_ALONG, (indices, updates), {"axis": axis, "shape": shape})


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    """For each row of ``x`` along ``axis``, the elements at that row's positions, such as ``argsort`` gives.

    Raises:
        OutOfRangeError: a position is outside the axis.

    >>> take_along_axis([[3, 1, 2]], [[1, 2, 0]], axis=1).numpy()
    array([[1, 2, 3]], dtype=int32)
    """
    return dispatch.current().apply(
        TAKE_ALONG, (x, indices), {"axis": normalize_axis(axis, len(shape_of(x)))}
    )


def argsort(
    values: TensorLike,
    axis: AxisLike = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """The positions along an axis that sort ``values``; nan counts as largest.

    Equal elements keep their order, also in descending order. Rows of narrow keys are sorted together with
    their positions as single integers of 32 or 64 bits.

    Args:
        values: real numbers of one axis or more.
        axis: the axis to sort along; the last by default.
        direction: "ASCENDING" or "DESCENDING".
        stable: ignored: the sort is always stable.

    Returns:
        A tensor with the shape of ``values`` and dtype int32.

    Raises:
        InvalidArgumentError: ``direction`` is neither of these, or ``axis`` is out of range.
        DTypeError: ``values`` holds complex numbers or strings.

    >>> import dualflow as df
    >>> df.argsort([3, 1, 2]).numpy()
    array([1, 2, 0], dtype=int32)
    """
    return dispatch.current().apply(ARGSORT, (values,), _way(values, axis, direction))


def _way(values: Any, axis: Any, direction: str) -> dict[str, Any]:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise InvalidArgumentError(f"direction is 'ASCENDING' or 'DESCENDING', not {direction!r}.")
    where = normalize_axis(static_int(axis, "axis"), len(shape_of(values)))
    return {"axis": where, "descending": direction == "DESCENDING"}


def sort(
    values: TensorLike, axis: AxisLike = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """``values`` sorted along an axis; nan counts as largest.

    Args:
        values: real numbers of one axis or more.
        axis: the axis to sort along; the last by default.
        direction: "ASCENDING" or "DESCENDING".

    Returns:
        A tensor with the shape and dtype of ``values``.

    Raises:
        InvalidArgumentError: ``direction`` is neither of these, or ``axis`` is out of range.
        DTypeError: ``values`` holds complex numbers or strings.

    >>> import dualflow as df
    >>> df.sort([3, 1, 2], direction="DESCENDING").numpy()
    array([3, 2, 1], dtype=int32)
    """
    return dispatch.current().apply(SORT, (values,), _way(values, axis, direction))
