"""TensorFlow's choices for the values that replicas of a program have of a variable or gradient.

A process has one replica, whose variables are its own: they return their choices, which Keras's variables and
other libraries read. In the scope of a distribution strategy, variables begin with equal values.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

INITIAL_VALUE: Final[ContextVar[Callable[[Any], Any] | None]] = ContextVar(
    "dualflow_initial_value", default=None
)
"""In the scope of a strategy with several replicas: returns the first replica's array for one's own."""


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
