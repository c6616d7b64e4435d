"""Variables of programs with several replicas: equal initial values, and variables that hold a part.

A process has one replica, whose variables are its own. In the scope of a distribution strategy they begin
with equal values. A variable may contain only this replica's part of a value; files contain the whole one.
TensorFlow's choices of how replicas combine values are returned as they are: other libraries read them.
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
"""A function from an initial array to that of the first replica; None outside of strategies' scopes."""


@dataclass(frozen=True, slots=True)
class WholeValue:
    """A variable that is divided among replicas as one whole value, which checkpoints and files contain.

    Attributes:
        shape: the shape of the whole value.
        gather: returns the whole array for this replica's part; all replicas call it together.
        own: returns this replica's part of a whole array.
    """

    shape: Shape
    gather: Callable[[Array], Array]
    own: Callable[[Array], Array]


_wholes: Final[dict[int, WholeValue]] = {}
"""The whole values of divided variables by ``id``; a variable that is collected removes its entry."""


def declare_part(variable: Any, whole: WholeValue) -> None:
    """Declare that ``variable`` contains this replica's part of a whole value."""
    _wholes[id(variable)] = whole
    weakref.finalize(variable, _wholes.pop, id(variable), None)


def whole_value(variable: object) -> WholeValue | None:
    """The whole value of a variable that is divided among replicas; None for other variables."""
    return _wholes.get(id(variable)) if _wholes else None


def whole_arrays(variables: Iterable[object], arrays: Iterable[Array]) -> list[Array]:
    """The array of each variable, whole if it is divided among replicas, which call this together."""
    wholes = [(whole_value(v), array) for v, array in zip(variables, arrays, strict=True)]
    return [array if whole is None else whole.gather(array) for whole, array in wholes]


_gathered: Final[ContextVar[dict[int, Array]]] = ContextVar("dualflow_gathered", default={})  # noqa: B039
"""The whole arrays of divided variables by ``id``, for the file that is being written; it isn't modified."""


@contextmanager
def gathered_wholes(variables: Iterable[Any]) -> Iterator[None]:
    """A context in which :func:`gathered_whole` returns the whole arrays of divided variables.

    All replicas enter it together; inside it one of them may write a file alone.
    """
    parts = [(v, whole) for v in variables if (whole := whole_value(v)) is not None]
    token = _gathered.set({id(v): whole.gather(v.numpy()) for v, whole in parts})
    try:
        yield
    finally:
        _gathered.reset(token)


def gathered_whole(variable: object) -> Array | None:
    """The whole array of a divided variable in a context of :func:`gathered_wholes`; else None."""
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
