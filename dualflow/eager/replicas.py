"""TensorFlow's choices for the values that replicas of a program have of a variable or gradient.

A program is the only replica here, so all choices have the same results; variables return theirs, which
libraries read and pass on.
"""

from __future__ import annotations

import enum
from typing import Final


class VariableAggregation(enum.Enum):
    """How the assignments of replicas to a variable are combined: with one replica, its own is assigned."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class VariableSynchronization(enum.Enum):
    """When the replicas' values of a variable are combined: with one replica, there is one value."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class AggregationMethod:
    """How gradients that meet at one value are added: here always by sums, in the order of the records."""

    ADD_N: Final = 0
    DEFAULT: Final = ADD_N
    EXPERIMENTAL_TREE: Final = 1
    EXPERIMENTAL_ACCUMULATE_N: Final = 2
