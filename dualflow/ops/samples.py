"""Samples of inputs: every op record has them, and the op matrix draws its test inputs from them."""

from __future__ import annotations

from typing import Any

from dualflow.core.records import NamedTuple, dataclass, field


class Domain(NamedTuple):
    """Values from which a test input is drawn.

    Attributes:
        low, high: the interval; integers include ``low`` and exclude ``high``.
        kinds: NumPy dtype kinds that the input may have ("f", "i", "u", "b", "c", and "O" for strings).
        shape: the input's shape, or None where any shape that broadcasts will do.
        kinks: points without a derivative, which gradient checks keep away from.
        values: the very values to use instead of draws.
        symmetric: whether inputs are matrices that equal their own conjugate transpose, and change as such.
        dtype: the name of the one dtype that the input may have; None for all of the kinds.
    """

    low: float = -2.0
    high: float = 2.0
    kinds: str = "f"
    shape: tuple[int, ...] | None = None
    kinks: tuple[float, ...] = ()
    values: Any = None
    symmetric: bool = False
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One way to call an op: a domain for each input, and the attributes."""

    inputs: tuple[Domain, ...]
    attrs: dict[str, Any] = field(default_factory=dict)


def reals(
    low: float, high: float, *, shape: tuple[int, ...] | None = None, kinks: tuple[float, ...] = ()
) -> Domain:
    """Floating-point values in ``[low, high]``."""
    return Domain(low, high, "f", shape, kinks)


def numbers(
    low: float, high: float, *, shape: tuple[int, ...] | None = None, kinks: tuple[float, ...] = ()
) -> Domain:
    """Floating-point or integer values in ``[low, high]``."""
    return Domain(low, high, "fi", shape, kinks)


def real_numbers(*shape: int) -> Domain:
    """Floating-point values, integers or bools of this shape, from -50 to 50."""
    return Domain(-50, 50, "fib", shape)


def integers(low: int, high: int, *, shape: tuple[int, ...] | None = None) -> Domain:
    """Integers in ``[low, high)``."""
    return Domain(low, high, "i", shape)


def booleans(*, shape: tuple[int, ...] | None = None) -> Domain:
    """A domain of bools, True and False, for sample arguments."""
    return Domain(0, 2, "b", shape)
