"""The arithmetic that evaluates symbolic sizes, and the same arithmetic of ints."""

from __future__ import annotations

from typing import Any, Final, Protocol


class SizeMaths(Protocol):
    """Arithmetic that evaluates symbolic sizes: on ints, on symbolic sizes, or on values of emitted code."""

    def quotient(self, x: Any, y: Any) -> Any:
        """``x // y``; 0 where ``y`` is 0."""

    def remainder(self, x: Any, y: Any) -> Any:
        """``x % y``; 0 where ``y`` is 0."""

    def largest(self, x: Any, y: Any) -> Any:
        """The larger of two sizes."""

    def smallest(self, x: Any, y: Any) -> Any:
        """The smaller of two sizes."""

    def normalized_index(self, x: Any, size: Any) -> Any:
        """``x``, a position in an axis, counted from the front; a negative one counts from the end."""

    def inferred_size(self, x: Any, remaining: Any) -> Any:
        """``x``, or ``remaining`` where ``x`` is -1."""

    def broadcast_size(self, x: Any, y: Any) -> Any:
        """``x``, or ``y`` where ``x`` is 1: the broadcast size of two axes."""

    def broadcast_stride(self, stride: Any, size: Any) -> Any:
        """``stride``, or 0 where ``size`` is 1: the one element is repeated."""


class _Numbers:
    """:class:`SizeMaths` on ints."""

    def quotient(self, x: int, y: int) -> int:
        return x // y if y else 0

    def remainder(self, x: int, y: int) -> int:
        return x % y if y else 0

    largest = staticmethod(max)
    smallest = staticmethod(min)

    def normalized_index(self, x: int, size: int) -> int:
        return x + size if x < 0 else x

    def inferred_size(self, x: int, remaining: int) -> int:
        return remaining if x == -1 else x

    def broadcast_size(self, x: int, y: int) -> int:
        return y if x == 1 else x

    def broadcast_stride(self, stride: int, size: int) -> int:
        return 0 if size == 1 else stride


NUMBERS: Final[SizeMaths] = _Numbers()
