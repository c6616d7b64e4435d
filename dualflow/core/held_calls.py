"""A slot for holding failed calls of ops until sizes are known, which traced functions provide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dualflow.core.slot import Slot

Hold = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any], Exception], Any]
"""From a function of ops, the arguments and keywords of a call of it, and the error that the call raised, to
the results that stand for those of the call; None where the error stays."""

HOLD: Final[Slot[Hold]] = Slot("holding failed calls", lambda function, args, kwargs, error: None)
