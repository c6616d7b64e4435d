"""Translates arguments of TensorFlow 1's functions that have other names or another order in version 2."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from dualflow.core.errors import DTypeError

RENAMED_ARGUMENTS: Final = {
    "dilation_rate": "dilations",
    "dim": "axis",
    "dimension": "axis",
    "filter": "filters",
    "fn1": "true_fn",
    "fn2": "false_fn",
    "input_tensor": "input",
    "keep_dims": "keepdims",
    "kernel": "filters",
    "ksizes": "sizes",
    "preferred_dtype": "dtype_hint",
    "rate": "dilations",
    "rates": "dilations",
    "reduction_axes": "axis",
    "reduction_indices": "axis",
    "squeeze_dims": "axis",
    "string_tensor": "input",
    "Targmax": "output_dtype",
    "targets": "labels",
    "tensor": "input",
    "value": "input",
}
"""TensorFlow 1's names of arguments, and version 2's names for functions that only have these."""

DROPPED: Final = frozenset(
    {"optimize", "partition_strategy", "strict", "use_cudnn_on_gpu", "validate_indices", "verify_shape"}
)
"""Arguments of TensorFlow 1 that are ignored."""


class ArgumentTranslation:
    """The translation of TensorFlow 1's arguments to those of ``function``.

    Args:
        function: of dualflow.
        order: TensorFlow 1's arguments, separated by spaces, if their order differs.

    Attributes:
        untranslated_count: the number of leading positional arguments that need no translation.
        translated_names: the keywords that need it.
    """

    def __init__(self, function: Callable[..., Any], order: str = "") -> None:
        parameters = inspect.signature(function).parameters
        self._function = function
        self._order = tuple(order.split())
        self._renamed = {
            old: new for old, new in RENAMED_ARGUMENTS.items() if new in parameters and old not in parameters
        }
        # without an order, no positional argument needs translation
        pairs = list(zip(self._order, parameters, strict=False))
        differ = [i for i, (old, new) in enumerate(pairs) if self._renamed.get(old, old) != new]
        self.untranslated_count = (
            (differ[0] if differ else len(pairs)) if self._order else len(parameters) + 1
        )
        dropped = DROPPED & {*self._order} - parameters.keys()
        self.translated_names = frozenset({*self._renamed, *dropped})

    def translate(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Rename TensorFlow 1's arguments to the function's names, and drop ignored ones.

        Renamed arguments that are None are left out.

        Raises:
            DTypeError: an argument is passed twice, or there are too many.
        """
        function_name = self._function.__name__
        if len(args) > self.untranslated_count:
            if len(args) > len(self._order):
                raise DTypeError(
                    f"{function_name}() takes {len(self._order)} positional arguments, not {len(args)}."
                )
            positional = dict(zip(self._order, args, strict=False))
            duplicates = sorted(positional.keys() & kwargs.keys())
            if duplicates:
                raise DTypeError(
                    f"{function_name}() got {duplicates[0]!r} twice: by position and by keyword."
                )
            args, kwargs = (), {**positional, **kwargs}
        keywords = {name: value for name, value in kwargs.items() if name not in self.translated_names}
        for old, value in kwargs.items():
            new = self._renamed.get(old)
            if new is not None and value is not None:
                if new in keywords:
                    raise DTypeError(f"{function_name}() got {new!r} and {old!r}, an older name for it.")
                keywords[new] = value
        return args, keywords
