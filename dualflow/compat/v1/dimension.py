"""``Dimension``: a size of a shape in TensorFlow 1; dualflow's shapes have integers and None."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry

if TYPE_CHECKING:
    from collections.abc import Sequence


class Dimension:
    """A size that may be unknown: arithmetic with it returns an unknown size, and comparison returns None.

    dualflow's shapes have integers and None instead, and accept dimensions that are known.

    Args:
        value: an integer, None for an unknown size, or a dimension.

    Raises:
        DTypeError: ``value`` is not an integer.
        InvalidArgumentError: ``value`` is negative.

    >>> from dualflow.compat import v1
    >>> v1.Dimension(3) * 2, v1.Dimension(None) + 1, v1.Dimension(3) == 3
    (Dimension(6), Dimension(None), True)
    """

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]  # compares with integers, and with unknown sizes as None

    @entry
    def __init__(self, value: Dimension | int | None) -> None:
        self.value: int | None = _value(value)

    def is_compatible_with(self, other: Dimension | int | None) -> bool:
        """Whether both may be the same size."""
        theirs = _value(other)
        return self.value is None or theirs is None or self.value == theirs

    @entry
    def assert_is_compatible_with(self, other: Dimension | int | None) -> None:
        """Raise unless ``other`` may be the same size.

        Raises:
            InvalidArgumentError: both are known, and differ.
        """
        if not self.is_compatible_with(other):
            raise InvalidArgumentError(f"Dimensions {self} and {other} are not compatible; make them equal.")

    @entry
    def merge_with(self, other: Dimension | int | None) -> Dimension:
        """The known one of two compatible sizes."""
        self.assert_is_compatible_with(other)
        return Dimension(other if self.value is None else self)

    def _apply_if_known(self, other: Any, compute: Callable[[int, int], Any]) -> Any:
        """``compute`` of two known sizes; None if one is unknown."""
        theirs = _value(other)
        return None if self.value is None or theirs is None else compute(self.value, theirs)

    def __add__(self, other: Any) -> Dimension:
        return Dimension(self._apply_if_known(other, operator.add))

    def __sub__(self, other: Any) -> Dimension:
        return Dimension(self._apply_if_known(other, operator.sub))

    def __mul__(self, other: Any) -> Dimension:
        return Dimension(self._apply_if_known(other, operator.mul))

    def __floordiv__(self, other: Any) -> Dimension:
        return Dimension(self._apply_if_known(other, operator.floordiv))

    def __mod__(self, other: Any) -> Dimension:
        return Dimension(self._apply_if_known(other, operator.mod))

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Dimension:
        return Dimension(other) - self

    def __rfloordiv__(self, other: Any) -> Dimension:
        return Dimension(other) // self

    def __rmod__(self, other: Any) -> Dimension:
        return Dimension(other) % self

    def __eq__(self, other: object) -> Any:
        return self._apply_if_known(other, operator.eq) if _is_size(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return self._apply_if_known(other, operator.ne) if _is_size(other) else NotImplemented

    def __lt__(self, other: Any) -> bool | None:
        return self._apply_if_known(other, operator.lt)  # type: ignore[no-any-return]  # a bool or None

    def __le__(self, other: Any) -> bool | None:
        return self._apply_if_known(other, operator.le)  # type: ignore[no-any-return]  # as __lt__

    def __gt__(self, other: Any) -> bool | None:
        return self._apply_if_known(other, operator.gt)  # type: ignore[no-any-return]  # as __lt__

    def __ge__(self, other: Any) -> bool | None:
        return self._apply_if_known(other, operator.ge)  # type: ignore[no-any-return]  # as __lt__

    def __bool__(self) -> bool:
        return bool(self.value)

    @entry
    def __index__(self) -> int:
        if self.value is None:
            raise DTypeError("An unknown dimension is no integer; use df.shape(x), which is dynamic.")
        return self.value

    __int__ = __index__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.__index__(), np.int32 if dtype is None else dtype)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)


def dimension_value(dimension: Dimension | int | None) -> int | None:
    """The integer of a size, None for an unknown one.

    >>> from dualflow.compat import v1
    >>> v1.dimension_value(v1.Dimension(3)), v1.dimension_value(3)
    (3, 3)
    """
    return _value(dimension)


def dimension_at_index(shape: Sequence[int | None], index: int) -> Dimension:
    """The size ``shape[index]`` as a :class:`Dimension`.

    >>> from dualflow.compat import v1
    >>> v1.dimension_at_index(v1.TensorShape([2, None]), 1)
    Dimension(None)
    """
    return Dimension(shape[index])


def _is_size(value: object) -> bool:
    return value is None or isinstance(value, Dimension) or hasattr(value, "__index__")


def _value(size: Any) -> int | None:
    if isinstance(size, Dimension) or size is None:
        return size.value if isinstance(size, Dimension) else None
    try:
        value = operator.index(size)
    except TypeError:
        raise DTypeError(f"A dimension is an integer or None, not {size!r}.") from None
    if value < 0:
        raise InvalidArgumentError(f"Dimension {value} must be >= 0; None is an unknown one.")
    return value
