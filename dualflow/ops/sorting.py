"""Sorting, through the positions that sort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.forms import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.rows import ALONG, RowRule
from dualflow.ops.samples import Domain, Sample, integers
from dualflow.ops.static import shape_of, static_int
from dualflow.ops.taking import check_indices

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def _argsort_infer(x: TensorSpec, axis: int, descending: bool) -> TensorSpec:
    if x.dtype.kind not in "biuf":
        raise DTypeError(f"takes real numbers, not {x.dtype.name}; convert them with df.cast.")
    return TensorSpec.of(x.shape, int32)


def _argsort(x: Any, axis: int, descending: bool) -> Any:
    if x.dtype.kind == "c":
        raise TypeError("argsort takes real numbers")
    if not descending:
        return x.argsort(axis, kind="stable").astype(np.int32)
    back = (slice(None),) * axis + (slice(None, None, -1),)
    found = x[back].argsort(axis, kind="stable")[back]
    return (x.shape[axis] - 1 - found).astype(np.int32)


ARGSORT = register(
    Op(
        name="argsort",
        doc="""The positions along ``axis`` that sort; equal elements keep their order.""",
        infer=_argsort_infer,
        kernel=_argsort,
        form=Opaque("NumPy sorts"),
        rows=ALONG,
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
    return Shape(own if own is not None else given for own, given in zip(shape, indices.shape, strict=True))


def _add_along(indices: Any, updates: Any, axis: int, shape: Shape) -> Any:
    sizes: Any = _along_sizes(indices, shape)
    out = np.zeros(sizes, updates.dtype)
    grid = list(np.ogrid[tuple(slice(d) for d in indices.shape)])
    grid[axis] = indices
    np.add.at(out, tuple(grid), updates)
    return out


_ROWS = (Domain(-5, 5, "fib", (2, 4)), integers(0, 4, shape=(2, 3)))

TAKE_ALONG = register(
    Op(
        name="take_along_axis",
        doc="""For each row along ``axis``, the elements at that row's positions.""",
        infer=_along_infer,
        kernel=_take_along,
        form=Opaque("each row has positions of its own"),
        rows=ALONG,
        vjp=(lambda g, out, x, indices, axis: _add_rows(indices, g, axis, x.shape), None),
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
        form=Opaque("several updates may meet in one place, which NumPy's add.at sums"),
        rows=RowRule(axes=("axis",), sizes=("shape",)),
        vjp=(None, lambda g, out, indices, updates, axis, shape: take_along_axis(g, indices, axis)),
        samples=(
            Sample(
                (integers(0, 4, shape=(2, 3)), Domain(-5, 5, "fi", (2, 3))),
                {"axis": 1, "shape": Shape((2, 4))},
            ),
        ),
    )
)


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
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The positions along ``axis``, by default the last, that sort ``values``; nan counts as largest.

    Raises:
        InvalidArgumentError: ``direction`` is neither "ASCENDING" nor "DESCENDING".

    >>> import dualflow as df
    >>> df.argsort([3, 1, 2]).numpy()
    array([1, 2, 0], dtype=int32)
    """
    if direction not in ("ASCENDING", "DESCENDING"):
        raise InvalidArgumentError(f"direction is 'ASCENDING' or 'DESCENDING', not {direction!r}.")
    where = normalize_axis(static_int(axis, "axis"), len(shape_of(values)))
    attrs = {"axis": where, "descending": direction == "DESCENDING"}
    return dispatch.current().apply(ARGSORT, (values,), attrs)


def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """``values`` in order along ``axis`` (the last by default); see :func:`argsort`.

    >>> import dualflow as df
    >>> df.sort([3, 1, 2], direction="DESCENDING").numpy()
    array([3, 2, 1], dtype=int32)
    """
    values = convert_to_tensor(values)
    return take_along_axis(values, argsort(values, axis, direction), static_int(axis, "axis"))


class TopK(NamedTuple):
    """The largest elements of each row, and where they were."""

    values: Any
    indices: Any


def top_k(
    input: Any, k: Any = 1, sorted: bool = True, index_type: Any = int32, name: str | None = None
) -> TopK:
    """The ``k`` largest elements of each row of the last axis, largest first, and their positions.

    Args:
        input: real numbers, of one axis or more.
        k: how many.
        sorted: ignored: they are always in order.
        index_type: the dtype of the positions.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: ``k`` is more than there are.

    >>> import dualflow as df
    >>> values, indices = df.math.top_k([3, 9, 5], 2)
    >>> values.numpy(), indices.numpy()
    (array([9, 5], dtype=int32), array([1, 2], dtype=int32))
    """
    x = convert_to_tensor(input)
    count, size = static_int(k, "k"), x.shape[-1]
    if not 0 <= count <= size:
        raise InvalidArgumentError(f"top_k({count}) of rows of {size} elements; k is 0..{size}.")
    indices = argsort(x, -1, "DESCENDING")[..., :count]
    return TopK(take_along_axis(x, indices, -1), cast(indices, index_type))
