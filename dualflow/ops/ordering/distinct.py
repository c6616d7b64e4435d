"""The distinct elements of a vector, in the order in which they appear first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.forms import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    pass


class Unique(NamedTuple):
    """The distinct elements ``y``, and for each element of the input its place ``idx`` among them."""

    y: Any
    idx: Any


class UniqueWithCounts(NamedTuple):
    """The distinct elements ``y``, the place ``idx`` of each element of the input, and their counts."""

    y: Any
    idx: Any
    count: Any


def _infer(x: TensorSpec) -> tuple[TensorSpec, ...]:
    if len(x.shape) != 1:
        raise InvalidArgumentError(f"takes a vector, not shape {x.shape}; reshape it to [-1] first.")
    several = TensorSpec.of(Shape([None]), int32)
    return several, TensorSpec.of(x.shape, int32), several


def _places(x: Any) -> tuple[Any, ...]:
    """Where each distinct element is first, the place of each element among them, and how often it occurs."""
    if x.ndim != 1:
        raise ValueError("takes a vector")
    _, first, inverse, counts = np.unique(x, True, True, True, equal_nan=False)
    order = first.argsort()
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return tuple(a.astype(np.int32) for a in (first[order], place[inverse], counts[order]))


UNIQUE = register(
    Op(
        name="unique",
        doc="""Where distinct elements are first, the place of each element among them, and their counts.""",
        infer=_infer,
        kernel=_places,
        form=Opaque("how many distinct elements there are is known only when it runs"),
        outputs=3,
        samples=(Sample((Domain(-3, 3, "iub", (7,)),)), Sample((Domain(-3, 3, "fi", (0,)),))),
    )
)


def _distinct(x: Any, out_idx: Any) -> tuple[Any, Any, Any]:
    dtype = as_dtype(out_idx)
    if dtype not in (int32, int64):
        raise DTypeError(f"unique gives positions in int32 or int64, not {dtype.name}.")
    vector = convert_to_tensor(x)
    first, places, counts = dispatch.current().apply(UNIQUE, (vector,), {})
    return gather(vector, first), cast(places, dtype), cast(counts, dtype)


def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> Unique:
    """The distinct elements of a vector in the order in which they appear first.

    Each nan is an element of its own, and the two zeros are one. The gradient of a distinct element goes to
    its first appearance.

    Args:
        x: a vector.
        out_idx: the dtype of the places: int32 or int64.
        name: ignored; as in TensorFlow.

    Returns:
        ``y``, whose size a trace leaves open, and ``idx`` of the shape of ``x``, so that ``y[idx]`` is ``x``.

    Raises:
        InvalidArgumentError: ``x`` has not one axis.
        DTypeError: another ``out_idx``.

    >>> import dualflow as df
    >>> y, idx = df.unique([3, 1, 3, 2, 1])
    >>> y.numpy(), idx.numpy()
    (array([3, 1, 2], dtype=int32), array([0, 1, 0, 2, 1], dtype=int32))
    """
    y, idx, _ = _distinct(x, out_idx)
    return Unique(y, idx)


def unique_with_counts(x: Any, out_idx: Any = int32, name: str | None = None) -> UniqueWithCounts:
    """:func:`unique`, and how often each distinct element occurs.

    >>> import dualflow as df
    >>> df.unique_with_counts([3, 1, 3, 2, 1]).count.numpy()
    array([2, 2, 1], dtype=int32)
    """
    return UniqueWithCounts(*_distinct(x, out_idx))
