"""Validation of the parts of saved iterator states, which may be damaged."""

from __future__ import annotations

from typing import Any

from dualflow.core.errors import InvalidArgumentError


def parts(state: Any, count: int) -> list[Any]:
    """``state`` as a list of ``count`` parts."""
    if not isinstance(state, list | tuple) or len(state) != count:
        raise wrong_state(state, f"a list of {count}")
    return list(state)


def number(state: Any, largest: int | None = None) -> int:
    """``state`` as an int from 0 to ``largest``."""
    if type(state) is not int or state < 0 or (largest is not None and state > largest):
        raise wrong_state(state, "a number from 0" + ("" if largest is None else f" to {largest}"))
    return state


def numbers(state: Any) -> list[int]:
    """``state`` as a list of non-negative ints."""
    if not isinstance(state, list | tuple):
        raise wrong_state(state, "a list of numbers")
    return [number(n) for n in state]


def flag(state: Any) -> bool:
    """``state`` as a bool."""
    if type(state) is not bool:
        raise wrong_state(state, "true or false")
    return state


def wrong_state(state: Any, expected: str) -> InvalidArgumentError:
    """The error for a part of a state that is not as expected."""
    text = repr(state)
    shown = text if len(text) <= 80 else f"{text[:80]}..."
    return InvalidArgumentError(
        f"The state is damaged, or of another dataset: it has {shown} where {expected} is expected. Use what "
        "get_state() of an iterator over an equal dataset returned."
    )
