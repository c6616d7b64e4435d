"""The distinct elements of a vector, in the order in which they appear first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.ops.arithmetic import maximum, minimum
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.comparison import equal, logical_or, not_equal
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.forms import Sized
from dualflow.ops.masking import POSITIONS, all_positions, size_as_tensor
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.scattering import tensor_scatter_nd_update
from dualflow.ops.sorting import argsort, order
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
    if x.dtype.kind not in "biufO":
        raise DTypeError(f"takes real numbers or strings, not {x.dtype.name}; give the parts one by one.")
    if len(x.shape) != 1:
        raise InvalidArgumentError(f"takes a vector, not shape {x.shape}; reshape it to [-1] first.")
    several = TensorSpec.of(Shape([None]), int32)
    return several, TensorSpec.of(x.shape, int32), several


def _places(x: Any) -> tuple[Any, ...]:
    """Where each distinct element is first, the place of each element among them, and how often it occurs."""
    if x.ndim != 1 or x.dtype.kind == "c":
        raise TypeError("takes a vector of real numbers")
    if x.dtype.kind == "O":
        return _places_of_strings(x)
    ascending = order(x, 0, False)
    ordered = x[ascending]
    starts = np.flatnonzero(np.append(len(x) > 0, ordered[1:] != ordered[:-1]))
    counts = np.diff(starts, append=len(x))
    first = ascending[starts]
    ranked = first.argsort()
    place = np.empty(len(first), np.int32)
    place[ranked] = np.arange(len(first))
    places = np.empty(len(x), np.int32)
    places[ascending] = place.repeat(counts)
    return first[ranked].astype(np.int32), places, counts[ranked].astype(np.int32)


def _places_of_strings(x: Any) -> tuple[Any, ...]:
    """The same of strings, which have a hash."""
    place: dict[bytes, int] = {}
    inverse = np.array([place.setdefault(s, len(place)) for s in x.tolist()], np.int32)
    _, first, counts = np.unique(inverse, return_index=True, return_counts=True)
    return first.astype(np.int32), inverse, counts.astype(np.int32)


def _by_sorting(read: Any, x: Any) -> tuple[Any, ...]:
    """The same of neighbours in sorted order, where equal elements keep theirs."""
    number, ascending = x.shape[0], argsort(x, stable=True)
    ordered, place, end = (
        gather(x, ascending),
        _positions(_true(ascending), number),
        size_as_tensor(number) - 1,
    )
    before, behind = gather(ordered, maximum(place - 1, 0)), gather(ordered, minimum(place + 1, end))
    starts = all_positions(read, logical_or(equal(place, 0), not_equal(ordered, before)))
    count = starts.shape[0]
    sizes = _positions(logical_or(equal(place, end), not_equal(ordered, behind)), count) + 1 - starts
    first = gather(ascending, starts)
    firsts = _positions(_put(not_equal(ascending, ascending), first, _true(first)), count)
    rank = gather(_put(ascending * 0, firsts, cast(_positions(_true(first), count), int32)), first)
    places = _put(ascending * 0, ascending, gather(rank, _positions(sizes, number)))
    return cast(firsts, int32), places, _put(rank * 0, rank, cast(sizes, int32))


def _put(x: Any, places: Any, values: Any) -> Any:
    return tensor_scatter_nd_update(x, expand_dims(places, 1), values)


def _true(integers: Any) -> Any:
    return equal(integers, integers)


def _positions(counts: Any, size: Any) -> Any:
    return dispatch.current().apply(POSITIONS, (counts,), {"size": size})


UNIQUE = register(
    Op(
        name="unique",
        doc="""Where distinct elements are first, the place of each element among them, and their counts.""",
        infer=_infer,
        kernel=_places,
        form=Sized(_by_sorting),
        outputs=3,
        strings=True,
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
