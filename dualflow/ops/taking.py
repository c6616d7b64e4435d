"""Picking elements along an axis by integers: ``gather`` and its gradient."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import Dim, Shape, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.forms import Scatter, Take
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample, integers
from dualflow.ops.static import shape_of, static_int

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor


def check_indices(indices: Any, size: int, axis: int) -> None:
    """Raise OutOfRangeError unless every index is in ``[0, size)``."""
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        odd = indices[(indices < 0) | (indices >= size)].flat[0]
        raise OutOfRangeError(
            f"index {odd} is out of range for axis {axis} of size {size}: use 0..{size - 1}."
        )


def _integer(spec: TensorSpec) -> None:
    if not spec.dtype.is_integer:
        raise DTypeError(f"indices are integers, not {spec.dtype.name}; cast them with df.cast.")


def _gather_infer(params: TensorSpec, indices: TensorSpec, axis: int) -> TensorSpec:
    _integer(indices)
    shape = params.shape
    return TensorSpec.of(Shape([*shape[:axis], *indices.shape, *shape[axis + 1 :]]), params.dtype)


def _gather(params: Any, indices: Any, axis: int) -> Any:
    if indices.dtype.kind not in "iu":
        raise TypeError("indices are integers")
    check_indices(indices, params.shape[axis], axis)
    return params.take(indices, axis)


_INDICES = (integers(0, 3, shape=(4,)), integers(0, 3, shape=(2, 2)), integers(0, 3, shape=()))

GATHER = register(
    Op(
        name="gather",
        doc="""The slices of ``params`` along ``axis`` at the positions ``indices``.""",
        infer=_gather_infer,
        kernel=_gather,
        form=Take(),
        vjp=(lambda g, out, params, indices, axis: _scatter_like(indices, g, params, axis), None),
        samples=tuple(Sample((Domain(-50, 50, "fib", (3, 5)), i), {"axis": 0}) for i in _INDICES)
        + tuple(Sample((Domain(-50, 50, "fi", (2, 3, 4)), i), {"axis": 1}) for i in _INDICES),
    )
)


def _scatter_infer(indices: TensorSpec, updates: TensorSpec, axis: int, size: Dim) -> TensorSpec:
    _integer(indices)
    shape, rank = updates.shape, len(indices.shape)
    return TensorSpec.of(Shape([*shape[:axis], size, *shape[axis + rank :]]), updates.dtype)


def _scatter(indices: Any, updates: Any, axis: int, size: int) -> Any:
    shape, rank = updates.shape, indices.ndim
    return _add_rows(
        np.zeros((*shape[:axis], size, *shape[axis + rank :]), updates.dtype), indices, updates, axis
    )


def _add_rows(out: Any, indices: Any, updates: Any, axis: int) -> Any:
    check_indices(indices, out.shape[axis], axis)
    shape, rank = updates.shape, indices.ndim
    flat = updates.reshape(*shape[:axis], math.prod(shape[axis : axis + rank]), *shape[axis + rank :])
    np.add.at(out, (slice(None),) * axis + (indices.reshape(-1),), flat)
    return out


SCATTER_ADD = register(
    Op(
        name="scatter_add",
        doc="""Zeros of ``size`` along ``axis`` with ``updates`` added at the positions ``indices``.""",
        infer=_scatter_infer,
        kernel=_scatter,
        form=Scatter(onto=False, add=True),
        vjp=(None, lambda g, out, indices, updates, axis, size: _take(g, indices, axis)),
        samples=(
            Sample((integers(0, 3, shape=(4,)), Domain(-50, 50, "fi", (4, 2))), {"axis": 0, "size": 3}),
            Sample(
                (integers(0, 3, shape=(2, 2)), Domain(-50, 50, "fi", (5, 2, 2, 3))), {"axis": 1, "size": 3}
            ),
        ),
    )
)


def _onto_infer(tensor: TensorSpec, indices: TensorSpec, updates: TensorSpec, axis: int) -> TensorSpec:
    """A graph's own op: whoever makes it has updates that fit."""
    return _scatter_infer(indices, updates, axis, tensor.shape[axis])


SCATTER_ONTO = register(
    Op(
        name="scatter_onto",
        doc="""``tensor`` with ``updates`` added along ``axis`` at the positions ``indices``.""",
        infer=_onto_infer,
        kernel=lambda tensor, indices, updates, axis: _add_rows(tensor.copy(), indices, updates, axis),
        form=Scatter(onto=True, add=True),
        vjp=(
            lambda g, out, tensor, indices, updates, axis: g,
            None,
            lambda g, out, tensor, indices, updates, axis: _take(g, indices, axis),
        ),
        samples=(
            Sample(
                (Domain(-50, 50, "fi", (3, 2)), integers(0, 3, shape=(4,)), Domain(-50, 50, "fi", (4, 2))),
                {"axis": 0},
            ),
            Sample(
                (
                    Domain(-50, 50, "fi", (2, 3)),
                    integers(0, 3, shape=(2, 2)),
                    Domain(-50, 50, "fi", (2, 2, 2)),
                ),
                {"axis": 1},
            ),
        ),
    )
)


def _take(params: Any, indices: Any, axis: int) -> Any:
    return dispatch.current().apply(GATHER, (params, indices), {"axis": axis})


def _scatter_like(indices: Any, g: Any, params: Any, axis: int) -> Any:
    return dispatch.current().apply(SCATTER_ADD, (indices, g), {"axis": axis, "size": params.shape[axis]})


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """The slices of ``params`` along ``axis`` at the positions ``indices``.

    Args:
        params: a tensor of one axis or more.
        indices: integers of any shape, each in ``[0, size of the axis)``.
        validate_indices: ignored: indices are always checked.
        axis: where to pick; the first axis by default.
        batch_dims: must be 0; pair leading axes with :func:`dualflow.gather_nd`.
        name: ignored; as in TensorFlow.

    Returns:
        Of shape ``params.shape[:axis] + indices.shape + params.shape[axis + 1:]``.

    Raises:
        OutOfRangeError: an index is outside the axis.
        DTypeError: ``indices`` are not integers.

    >>> import dualflow as df
    >>> df.gather([10, 20, 30], [2, 0]).numpy()
    array([30, 10], dtype=int32)
    """
    if batch_dims:
        raise InvalidArgumentError("gather takes no batch_dims; pair the leading axes with df.gather_nd.")
    where = normalize_axis(0 if axis is None else static_int(axis, "axis"), len(shape_of(params)))
    return _take(params, indices, where)


def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Tensor:
    """The rows of ``params`` that ``ids`` number: :func:`gather` along the first axis.

    Raises:
        OutOfRangeError: an id is outside the table.
        InvalidArgumentError: ``max_norm`` is given; clip the rows with :func:`dualflow.clip_by_norm`.
    """
    if max_norm is not None:
        raise InvalidArgumentError("embedding_lookup takes no max_norm; clip the rows with df.clip_by_norm.")
    return gather(params, ids)
