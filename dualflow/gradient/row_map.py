"""A slot for what runs a function over many cotangents at once: the room of traced functions fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dualflow.core.errors import InternalError

RowMap = Callable[[Callable[[Any], list[Any]], Any], "list[Any] | None"]
"""From a function of one row, which returns tensors and Nones, and rows stacked along the first axis, to what
it returns for each, stacked; None where they can't be computed at once."""


class LateRowMap:
    """A :data:`RowMap` that a higher room gives, once."""

    __slots__ = ("_rule",)

    def __init__(self) -> None:
        self._rule: RowMap | None = None

    def give(self, rule: RowMap) -> RowMap:
        """Take ``rule``; a decorator.

        Raises:
            InternalError: there is one already.
        """
        if self._rule is not None:
            raise InternalError("there are two ways to run functions over rows")
        self._rule = rule
        return rule

    def __call__(self, function: Callable[[Any], list[Any]], rows: Any) -> list[Any] | None:
        return None if self._rule is None else self._rule(function, rows)


MAP_ROWS: Final = LateRowMap()
