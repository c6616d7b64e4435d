"""A slot for what holds failed calls of ops until sizes are known: traced functions fill it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Hold = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any], Exception], Any]
"""From a function of ops, the arguments and keywords of a call of it, and the error that the call raised, to
the results that stand for those of the call; None where the error stays."""


class LateHold:
    """A :data:`Hold` that a higher package gives."""

    __slots__ = ("_rule",)

    def __init__(self) -> None:
        self._rule: Hold | None = None

    def give(self, rule: Hold) -> Hold:
        """Take ``rule``; a decorator."""
        self._rule = rule
        return rule

    def __call__(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception
    ) -> Any:
        return None if self._rule is None else self._rule(function, args, kwargs, error)


HOLD: Final = LateHold()
