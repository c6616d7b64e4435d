"""Batching rules: how the attributes of an op change when its inputs get a batch axis, the first.

The kinds of elementwise ops, reductions, contractions, gathers and scatters imply their rule. Views,
assemblies and library calls have one in their record; without it, batch elements are computed one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from dualflow.core.records import NamedTuple

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class BatchingRule(NamedTuple):
    """How the attributes of an op change when all of its inputs get a batch axis, the first.

    Attributes:
        axes: attributes that hold an axis, or several; each grows by one.
        sizes: attributes that hold a shape; the batch size is put before it.
        first: per attribute, the item that is put before its sequence.
        broadcasts: inputs of fewer axes than another, or than the shape in ``sizes``, get axes of size 1
            after the batch axis.
        merged: the first axis of each input is a batch axis already; the new axis is merged with it.
        positions: the input whose last axis holds indices into another; the batch element's index is put
            before them.
        per_element: each batch element is computed by itself.
    """

    axes: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    first: Mapping[str, Any] = _NONE
    broadcasts: bool = False
    merged: bool = False
    positions: int | None = None
    per_element: bool = False

    def attributes(self, attrs: Mapping[str, Any], count: int) -> dict[str, Any]:
        """``attrs`` for a batch of ``count`` elements."""
        batched = dict(attrs)
        for name in self.axes:
            batched[name] = _moved(batched[name])
        for name in self.sizes:
            batched[name] = type(batched[name])((count, *batched[name]))
        for name, item in self.first.items():
            batched[name] = (item, *batched[name])
        return batched


def _moved(axis: Any) -> Any:
    """``axis``, one or several, after a new first axis: one more if it is not negative."""
    if isinstance(axis, int):
        return axis + 1 if axis >= 0 else axis
    return tuple([a + 1 if a >= 0 else a for a in axis])


ALONG: Final = BatchingRule(axes=("axis",))
"""The rule of ops with an attribute ``axis``, which is shifted by one."""
LEADING: Final = BatchingRule(broadcasts=True)
"""The rule of elementwise ops and ops on the last axes, whose leading axes broadcast."""
PER_ELEMENT: Final = BatchingRule(per_element=True)
"""The rule of ops that can't be batched by their attributes: they run once for each batch element."""
OF_SHAPE: Final = BatchingRule(sizes=("shape",))
"""The rule of ops whose result has the shape of the attribute ``shape``, which gets the batch size."""
