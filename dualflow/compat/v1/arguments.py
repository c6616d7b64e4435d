"""The arguments of TensorFlow 1's functions where version 2 has other names for them, or another order."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from dualflow.core.errors import DTypeError

OLDER: Final = {
    "dilation_rate": "dilations",
    "dim": "axis",
    "dimension": "axis",
    "filter": "filters",
    "fn1": "true_fn",
    "fn2": "false_fn",
    "input_tensor": "input",
    "keep_dims": "keepdims",
    "kernel": "filters",
    "preferred_dtype": "dtype_hint",
    "rate": "dilations",
    "rates": "dilations",
    "reduction_indices": "axis",
    "squeeze_dims": "axis",
    "Targmax": "output_dtype",
    "targets": "labels",
    "tensor": "input",
    "value": "input",
}
"""Names of arguments in TensorFlow 1, where a function doesn't have them, and those that it has instead."""

DROPPED: Final = frozenset(
    {"optimize", "partition_strategy", "strict", "use_cudnn_on_gpu", "validate_indices", "verify_shape"}
)
"""Arguments of TensorFlow 1 that decide nothing here."""


class ArgumentTranslation:
    """How TensorFlow 1's arguments become those of ``function``.

    Args:
        function: of dualflow.
        order: TensorFlow 1's arguments, with spaces between, where they stand in another order.

    Attributes:
        alike: how many arguments given by their places need no translation.
        names: the keywords that do.
    """

    def __init__(self, function: Callable[..., Any], order: str = "") -> None:
        own = inspect.signature(function).parameters
        self._function = function
        self._order = tuple(order.split())
        self._older = {old: new for old, new in OLDER.items() if new in own and old not in own}
        pairs = list(zip(self._order, own, strict=False))
        differ = [i for i, (old, new) in enumerate(pairs) if self._older.get(old, old) != new]
        self.alike = (differ[0] if differ else len(pairs)) if self._order else len(own) + 1
        dropped = DROPPED & {*self._order} - own.keys()
        self.names = frozenset({*self._older, *dropped})

    def translated(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments by the names that the function has; None for an old one is nothing given.

        Raises:
            DTypeError: an argument is given twice, or there are too many.
        """
        own = self._function.__name__
        if len(args) > self.alike:
            if len(args) > len(self._order):
                raise DTypeError(f"{own}() takes {len(self._order)} arguments by place, not {len(args)}.")
            placed = dict(zip(self._order, args, strict=False))
            twice = sorted(placed.keys() & kwargs.keys())
            if twice:
                raise DTypeError(f"{own}() got {twice[0]!r} twice: by its place and by its name.")
            args, kwargs = (), {**placed, **kwargs}
        found = {name: value for name, value in kwargs.items() if name not in self.names}
        for old, value in kwargs.items():
            new = self._older.get(old)
            if new is not None and value is not None:
                if new in found:
                    raise DTypeError(f"{own}() got {new!r} and {old!r}, an older name for it.")
                found[new] = value
        return args, found
