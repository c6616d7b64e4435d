"""Sorting and argsort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.batching_rules import ALONG, BatchingRule
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample, integers
from dualflow.ops.stable_order import order
from dualflow.ops.static import require_static_sizes, shape_of, static_int
from dualflow.ops.taking import check_indices

if TYPE_CHECKING:
    from dualflow.core.argument_types import AxisLike, TensorLike
    from dualflow.ops.tensor import Tensor


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


def _sort(x: Any, axis: int, descending: bool) -> Any:
    """The sorted elements; equal ones, such as zeros of both signs and nans, keep their order."""
    if x.dtype.kind == "c":
        raise TypeError("sort takes real numbers")
    rows = np.moveaxis(x, axis, -1)
    # NumPy's stable sort is fastest for one-byte elements: it is a counting sort
    ordered = np.sort(rows, -1, "stable" if x.dtype.itemsize == 1 else "quicksort")
    ordered = ordered[..., ::-1] if descending else ordered
    if x.dtype.kind == "f":
        for same in (lambda a: a == 0, np.isnan):
            matches = same(ordered)
            if matches.any():
                ordered[matches] = rows[same(rows)]
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
    """``shape`` with its unknown sizes taken from the indices; the size along the axis must be known."""
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
    require_static_sizes(x.shape, "the gradient of take_along_axis", [axis])
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
    return dispatch.current().apply(ARGSORT, (values,), _sort_attrs(values, axis, direction))


def _sort_attrs(values: Any, axis: Any, direction: str) -> dict[str, Any]:
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
    return dispatch.current().apply(SORT, (values,), _sort_attrs(values, axis, direction))
