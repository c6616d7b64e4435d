"""TensorFlow's choices for the values that replicas of a program have of a variable or gradient.

A process has one replica, whose variables are its own: they return their choices, which Keras's variables and
other libraries read. In the scope of a distribution strategy, variables begin with equal values.
"""

from __future__ import annotations

import enum
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.records import dataclass

if TYPE_CHECKING:
    from dualflow.core.convert import Array
    from dualflow.core.shape import Shape

INITIAL_VALUE: Final[ContextVar[Callable[[Any], Any] | None]] = ContextVar(
    "dualflow_initial_value", default=None
)
"""In the scope of a strategy with several replicas: returns the first replica's array for one's own."""


@dataclass(frozen=True, slots=True)
class WholeValue:
    """The value of which a variable of this replica is a part; files have the whole one.

    Attributes:
        shape: its shape.
        gather: returns the whole array for the variable's; all replicas call it together.
        own: returns the part of a whole array that is the variable's.
    """

    shape: Shape
    gather: Callable[[Array], Array]
    own: Callable[[Array], Array]


_wholes: Final[dict[int, WholeValue]] = {}
"""The whole values by the ``id`` of the variable, which removes its entry when it ends."""


def divide(variable: Any, whole: WholeValue) -> None:
    """Declare that ``variable`` is a part of a whole value."""
    _wholes[id(variable)] = whole
    weakref.finalize(variable, _wholes.pop, id(variable), None)


def whole_value(variable: object) -> WholeValue | None:
    """The value of which ``variable`` is a part; None for other variables."""
    return _wholes.get(id(variable)) if _wholes else None


def whole_arrays(variables: Iterable[object], arrays: Iterable[Array]) -> list[Array]:
    """The arrays of variables, whole ones for parts; all replicas call it together."""
    wholes = [(whole_value(v), array) for v, array in zip(variables, arrays, strict=True)]
    return [array if whole is None else whole.gather(array) for whole, array in wholes]


_gathered: Final[ContextVar[dict[int, Array]]] = ContextVar("dualflow_gathered", default={})  # noqa: B039
"""The whole arrays of parts that a file is written from, by ``id``; it is never written to."""


@contextmanager
def gathered_wholes(variables: Iterable[Any]) -> Iterator[None]:
    """A block in which :func:`gathered_whole` returns the whole arrays of those variables that are parts.

    All replicas enter it together; inside it one of them may write a file alone.
    """
    parts = [(v, whole) for v in variables if (whole := whole_value(v)) is not None]
    token = _gathered.set({id(v): whole.gather(v.numpy()) for v, whole in parts})
    try:
        yield
    finally:
        _gathered.reset(token)


def gathered_whole(variable: object) -> Array | None:
    """The whole array of a part, in a block of :func:`gathered_wholes`; else None."""
    return _gathered.get().get(id(variable))


class VariableAggregation(enum.Enum):
    """How the assignments of replicas to a variable are combined, by libraries that combine them."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class VariableSynchronization(enum.Enum):
    """When the replicas' values of a variable are combined, by libraries that combine them."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class AggregationMethod:
    """How several gradients of one value are added: here always by sums, in the order of the records."""

    ADD_N: Final = 0
    DEFAULT: Final = ADD_N
    EXPERIMENTAL_TREE: Final = 1
    EXPERIMENTAL_ACCUMULATE_N: Final = 2
