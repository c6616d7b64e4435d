"""Functions on composites: the rule that runs where an op meets a value that is no single tensor.

An op that takes a composite as a tensor raises a :class:`CompositeError`. A function of ops that has a rule
for composites then returns what the rule computes, as Python calls the reflected method of an operator whose
first operand returned NotImplemented. A call with tensors alone costs nothing more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
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


RULES: Final[dict[Callable[..., Any], Callable[..., Any]]] = {}
"""The rule for composites of each function that has one; a rule takes the arguments of the function."""


def rule_for(*functions: Callable[..., Any]) -> Callable[[F], F]:
    """A decorator: the function is the rule for composites of these functions of ops."""

    def register(rule: F) -> F:
        RULES.update({inspect.unwrap(function): rule for function in functions})
        return rule

    return register


def by_rule(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception
) -> Any:
    """The result of the rule of ``function`` for a call that raised ``error``; raises it if there is none."""
    rule = RULES.get(function) if isinstance(error, CompositeError) else None
    if rule is None:
        raise error
    return rule(*args, **kwargs)
