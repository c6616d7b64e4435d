"""Functions on composites: the rule that runs where an op meets a value that is no single tensor.

An op that takes a composite as a tensor raises a :class:`CompositeError`. A function of ops that has a rule
for composites then returns what the rule computes, as Python calls the reflected method of an operator whose
first operand returned NotImplemented. A call with tensors alone costs nothing more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, TypeVar

from dualflow.core.errors import DTypeError

F = TypeVar("F", bound=Callable[..., Any])


class CompositeError(DTypeError):
    """A composite, such as a ragged tensor, was passed where an op takes a tensor.

    Attributes:
        composite: the value.
    """

    def __init__(self, message: str, composite: Any = None) -> None:
        super().__init__(message)
        self.composite = composite


RULES: Final[dict[Callable[..., Any], dict[type, Callable[..., Any]]]] = {}
"""The rules of each function, by the class of composites; a rule takes the function's arguments."""


def rule_for(composite: type, *functions: Callable[..., Any]) -> Callable[[F], F]:
    """A decorator: the function is the rule of these functions of ops for a class of composites."""

    def register(rule: F) -> F:
        for function in functions:
            RULES.setdefault(inspect.unwrap(function), {})[composite] = rule
        return rule

    return register
