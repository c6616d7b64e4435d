"""How an op computes for each row of its inputs: which attributes change when a new axis comes first.

Elements, folds, contractions, picks and scatters say it by their kind. Views, assemblies and library calls
have a record of it; one without a record computes row by row.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from dualflow.core.records import NamedTuple

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class RowRule(NamedTuple):
    """What the attributes of an op become when all inputs get one more axis, the first, of rows.

    Attributes:
        axes: attributes that hold an axis, or several; each moves by one.
        sizes: attributes that hold a shape, which begins with the number of rows then.
        first: what the sequence in an attribute begins with then.
        broadcasts: inputs of fewer axes than another, or than the shape in ``sizes``, get axes of size 1
            after the batch.
        merged: the first axis of each input is one of rows already; the new axis is merged with it.
        positions: the input whose last axis names a place in others, which begins with the number of the row
            then.
        apart: each row is computed by itself.
    """

    axes: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    first: Mapping[str, Any] = _NONE
    broadcasts: bool = False
    merged: bool = False
    positions: int | None = None
    apart: bool = False

    def attributes(self, attrs: Mapping[str, Any], count: int) -> dict[str, Any]:
        """``attrs`` for ``count`` rows."""
        batched = dict(attrs)
        for name in self.axes:
            batched[name] = _moved(batched[name])
        for name in self.sizes:
            batched[name] = type(batched[name])((count, *batched[name]))
        for name, item in self.first.items():
            batched[name] = (item, *batched[name])
        return batched


def _moved(axis: Any) -> Any:
    """An axis, or each of several, counted with one more before it; from the end it is the same."""
    if isinstance(axis, int):
        return axis + 1 if axis >= 0 else axis
    return tuple([a + 1 if a >= 0 else a for a in axis])


ALONG: Final = RowRule(axes=("axis",))
"""The op works along the axes that ``axis`` names."""
LEADING: Final = RowRule(broadcasts=True)
"""The op works on the last axes, or on elements: those before them are rows already."""
APART: Final = RowRule(apart=True)
"""What the op computes depends on places in its result, or on all of it."""
OF_SHAPE: Final = RowRule(sizes=("shape",))
"""The op makes what has the shape ``shape``."""
