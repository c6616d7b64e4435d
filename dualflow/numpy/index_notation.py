"""Tensors by index notation: ``mgrid[0:3, 0:2]``, ``r_[1:4, 9]``."""

from __future__ import annotations

from typing import Any, Final

from dualflow.numpy.concatenation import concatenate
from dualflow.numpy.manipulation import at_least
from dualflow.numpy.matrices import meshgrid
from dualflow.numpy.operands import promote_together, tensor
from dualflow.numpy.ranges import arange, linspace
from dualflow.ops.joining import stack


class Grid:
    """``mgrid`` or ``ogrid``: the coordinates of a grid, by slices of start, stop and step.

    An imaginary step such as ``5j`` is the number of positions, the last of which is ``stop``.
    """

    def __init__(self, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return _coordinates(key)
        grid = meshgrid(*promote_together(*map(_coordinates, key)), sparse=self._sparse, indexing="ij")
        return grid if self._sparse else stack(grid)


def _coordinates(part: slice) -> Any:
    """The coordinates along one axis: a range, or points at equal distances if the step is imaginary."""
    start, step = (0 if part.start is None else part.start), (1 if part.step is None else part.step)
    if isinstance(step, complex):
        return linspace(start, part.stop, int(abs(step)))
    return arange(start, part.stop, step)


class Concatenation:
    """``r_`` or ``c_``: joins the indices in the brackets, with slices as ranges, along an axis."""

    def __init__(self, columns: bool) -> None:
        self._columns = columns

    def __getitem__(self, key: Any) -> Any:
        parts = [
            _coordinates(x) if isinstance(x, slice) else tensor(x)
            for x in (key if isinstance(key, tuple) else (key,))
        ]
        if self._columns:
            parts = [x[:, None] if len(x.shape) == 1 else at_least(x, 2) for x in parts]
            return concatenate(parts, -1)
        return concatenate([at_least(x, 1) for x in parts], 0)


class IndexExpression:
    """``s_`` or ``index_exp``: returns the key in the brackets."""

    def __init__(self, as_tuple: bool) -> None:
        self._as_tuple = as_tuple

    def __getitem__(self, key: Any) -> Any:
        return (key,) if self._as_tuple and not isinstance(key, tuple) else key


mgrid: Final = Grid(sparse=False)
ogrid: Final = Grid(sparse=True)
r_: Final = Concatenation(columns=False)
c_: Final = Concatenation(columns=True)
s_: Final = IndexExpression(as_tuple=False)
index_exp: Final = IndexExpression(as_tuple=True)
