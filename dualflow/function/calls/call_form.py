"""The form of a call: which of its values are graph inputs, and which are Python values compiled in."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from dualflow.core.exact_equality import float_bits
from dualflow.core.records import NamedTuple


class Refusal(Enum):
    """The type of :data:`REFUSED`, which a fast path returns instead of a result."""

    REFUSED = "the fast path does not serve this call"


REFUSED: Final = Refusal.REFUSED
"""The fast path does not serve these values, and nothing has run; the caller takes the slow path."""


def refuse(*values: Any) -> Refusal:
    """A fast path that serves no call: returns REFUSED."""
    return REFUSED


class FixedValue(NamedTuple):
    """A Python value of a call that was compiled in.

    Attributes:
        argument_index: its index among the values of the call.
        kind: its type.
        literal_key: its key among values of this type; see :func:`literal_key`.
        value: the object, which calls must pass.
    """

    argument_index: int
    kind: type
    literal_key: Any
    value: Any


class CallForm(NamedTuple):
    """Which of a call's values are graph inputs, and which are Python values compiled in.

    Attributes:
        argument_indices: the index of each input among the values, in the graph's order.
        fixed: the other values.
    """

    argument_indices: tuple[int, ...]
    fixed: tuple[FixedValue, ...]

    @property
    def arity(self) -> int:
        """The number of values."""
        return len(self.argument_indices) + len(self.fixed)

    @property
    def is_in_order(self) -> bool:
        """Whether the values are the inputs, in the graph's order."""
        return not self.fixed and self.argument_indices == tuple(range(len(self.argument_indices)))

    def values(self, inputs: Sequence[Any]) -> list[Any]:
        """The values of a call with these inputs."""
        values: list[Any] = [None] * self.arity
        for index, tensor in zip(self.argument_indices, inputs, strict=True):
            values[index] = tensor
        for fixed in self.fixed:
            values[fixed.argument_index] = fixed.value
        return values


def form_of(argument_indices: Sequence[int], values: Sequence[Any]) -> CallForm | None:
    """The form of calls like the one with ``values``; None if the values are the inputs, in order."""
    fixed = [
        FixedValue(i, type(x), literal_key(x), x) for i, x in enumerate(values) if i not in argument_indices
    ]
    form = CallForm(tuple(argument_indices), tuple(fixed))
    return None if form.is_in_order else form


def literal_key(value: Any) -> Any:
    """A key that is equal for values of one type if they compile to the same code.

    >>> literal_key(0.0) == literal_key(-0.0), literal_key(3)
    (False, 3)
    """
    return float_bits(value) if type(value) is float else value
