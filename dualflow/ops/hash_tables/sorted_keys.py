"""Keys of lookup tables: a table's keys are a sorted vector without duplicates, of numbers or strings.

A table of tensors needs no object in a graph: a lookup is the position of a key, and a gather of the values.
So tables are captured, saved and assigned as all tensors are.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import bool_, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op, register
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.text.mapping import words

_DICT_GAIN: Final = 16
"""The number of entries of a dict that are made in the time of one binary search for a string."""
_SEARCHED: Final = Opaque("Python and NumPy search and sort the keys of tables")


def _positions_spec(x: TensorSpec, keys: TensorSpec) -> TensorSpec:
    if x.dtype is not keys.dtype:
        raise DTypeError(
            f"The table's keys are {keys.dtype.name}, not {x.dtype.name}; convert them with df.cast, or "
            "df.as_string."
        )
    return TensorSpec.of(x.shape, int64)


def _positions(x: Array, keys: Array) -> Array:
    count = len(keys)
    if not count:
        return np.zeros(x.shape, np.int64)
    flat = x.ravel()
    if x.dtype.kind == keys.dtype.kind == "O" and flat.size * _DICT_GAIN > count:
        by_key = dict(zip(keys.tolist(), range(count), strict=True))
        positions = [by_key.get(key, count) for key in flat.tolist()]
        return np.array(positions, np.int64).reshape(x.shape)
    nearest = np.minimum(keys.searchsorted(flat), count - 1)
    is_key = (keys[nearest] == flat).astype(np.bool_)
    return np.where(is_key, nearest, count).astype(np.int64).reshape(x.shape)


_SORTED: Final = np.array([-40, -3, 0, 5, 17])
KEY_POSITIONS: Final = register(
    Op(
        name="key_positions",
        doc="The position of each element in the sorted vector ``keys``; the number of keys if it is none.",
        infer=_positions_spec,
        kernel=_positions,
        kind=_SEARCHED,
        strings=True,
        samples=(
            Sample((Domain(-4, 6, "i", (2, 3)), Domain(-50, 50, "i", (5,), values=_SORTED))),
            Sample((Domain(-4, 6, "i", (2, 3)), Domain(-50, 50, "i", (0,)))),
        ),
    )
)


def _order_spec(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    if len(x.shape) != 1:
        raise InvalidArgumentError(f"takes a vector of keys, not shape {x.shape}; reshape it to [-1] first.")
    return TensorSpec.of(x.shape, int64), TensorSpec.of(x.shape, bool_)


def _order(x: Array) -> tuple[Array, Array]:
    if x.ndim != 1:
        raise ValueError("takes a vector")
    order = x.argsort(kind="stable").astype(np.int64)
    ends = np.ones(len(x), np.bool_)
    if len(x):
        ends[:-1] = x[order[1:]] != x[order[:-1]]
    return order, ends


KEY_ORDER: Final = register(
    Op(
        name="key_order",
        doc="The stable ascending order of a vector of keys, and where each run of equal keys ends.",
        infer=_order_spec,
        kernel=_order,
        kind=_SEARCHED,
        outputs=2,
        strings=True,
        samples=(
            Sample((Domain(-3, 3, "i", (7,)),)),
            Sample((words("b", "a", "b"),)),
        ),
    )
)


def key_positions(x: Any, keys: Any) -> Any:
    """The position of each element of ``x`` in the sorted vector ``keys``; the number of keys if it is none.

    Raises:
        DTypeError: ``x`` has another dtype than the keys.
    """
    return dispatch.current().apply(KEY_POSITIONS, (x, convert_to_tensor(keys)), {})


def key_order(x: Any) -> tuple[Any, Any]:
    """The stable ascending order of a vector of keys, and where each run of equal keys ends."""
    order, ends = dispatch.current().apply(KEY_ORDER, (x,), {})
    return order, ends
