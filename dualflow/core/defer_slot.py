"""The slot for deferring failed calls of ops until sizes are known, which traced functions fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dualflow.core.slot import Slot

DeferCall = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any], Exception], Any]
"""Defers a failed call: takes a function of ops, the call's arguments and keywords, and its error; returns
symbolic results, or None if the error stands."""

DEFER: Final[Slot[DeferCall]] = Slot("holding failed calls", lambda function, args, kwargs, error: None)
