"""Picking elements by a mask: how many is known only when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape, normalize_axis
from dualflow.core.spec import TensorSpec
from dualflow.ops.arrangement import transpose
from dualflow.ops.forms import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.static import shape_of, static_int

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

_DATA_DEPENDENT = Opaque("how many elements the mask picks is known only when it runs")
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
        form=_DATA_DEPENDENT,
        vjp=(lambda g, out, x, mask: dispatch.current().apply(UNMASK, (g, mask), {}), None),
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
        form=_DATA_DEPENDENT,
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
        form=_DATA_DEPENDENT,
        samples=(Sample((_MASK,)), Sample((Domain(-2, 2, "fi", (5,)),))),
    )
)


def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """The elements (or rows) of ``tensor`` where ``mask`` holds, in order: ``tensor[mask]``.

    Args:
        tensor: of one axis or more.
        mask: bools, whose shape matches the axes of ``tensor`` from ``axis`` on.
        axis: the first axis that is masked; 0 by default.
        name: ignored; as in TensorFlow.

    Returns:
        The masked axes become one, as long as there are true elements.

    Raises:
        InvalidArgumentError: the shapes do not match.
        DTypeError: ``mask`` is not of bools.

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
