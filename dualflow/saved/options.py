"""Options of ``save`` and ``load``, with TensorFlow's names."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry

_LOCAL: Final = (None, "/job:localhost", "/device:CPU:0", "CPU:0")


class SaveOptions:
    """Options of :func:`save`.

    Args:
        save_debug_info: accepted: a saved graph always has the lines of the code, by which errors name them.
        experimental_custom_gradients: must be True: gradients are always saved.
        experimental_io_device: the local machine, the only one that writes.
        **others: TensorFlow's other options, which must have their defaults.

    Raises:
        InvalidArgumentError: an option requires what is not implemented.

    >>> import dualflow as df
    >>> options = df.saved_model.SaveOptions(save_debug_info=True)
    """

    @entry
    def __init__(
        self,
        save_debug_info: bool = False,
        experimental_custom_gradients: bool = True,
        experimental_io_device: str | None = None,
        **others: Any,
    ) -> None:
        self.save_debug_info = save_debug_info
        self.experimental_custom_gradients = experimental_custom_gradients
        self.experimental_io_device = experimental_io_device
        if not experimental_custom_gradients:
            raise InvalidArgumentError(
                "experimental_custom_gradients=False has no meaning here: gradients are always saved."
            )
        _check_device(experimental_io_device)
        _check_defaults("SaveOptions", others, _SAVE_DEFAULTS)


class LoadOptions:
    """Options of :func:`load`.

    Args:
        experimental_io_device: the local machine, the only one that reads.
        **others: TensorFlow's other options, which must have their defaults.

    Raises:
        InvalidArgumentError: an option requires what is not implemented.

    >>> import dualflow as df
    >>> options = df.saved_model.LoadOptions()
    """

    @entry
    def __init__(self, experimental_io_device: str | None = None, **others: Any) -> None:
        self.experimental_io_device = experimental_io_device
        _check_device(experimental_io_device)
        _check_defaults("LoadOptions", others, _LOAD_DEFAULTS)


_SAVE_DEFAULTS: Final[dict[str, tuple[Any, ...]]] = {
    "namespace_whitelist": (None, (), []),
    "function_aliases": (None, {}),
    "experimental_debug_stripper": (False,),
    "experimental_variable_policy": (None,),
    "extra_tags": (None, (), []),
    "experimental_image_format": (False,),
    "experimental_skip_saver": (False,),
    "experimental_sharding_callback": (None,),
}
_LOAD_DEFAULTS: Final[dict[str, tuple[Any, ...]]] = {
    "allow_partial_checkpoint": (False,),
    "experimental_skip_checkpoint": (False,),
    "experimental_variable_policy": (None,),
    "experimental_load_function_aliases": (False,),
}


def _check_device(device: str | None) -> None:
    if device not in _LOCAL:
        raise InvalidArgumentError(f"experimental_io_device is the local machine, not {device!r}: omit it.")


def _check_defaults(kind: str, others: dict[str, Any], defaults: dict[str, tuple[Any, ...]]) -> None:
    for name, value in others.items():
        if name not in defaults:
            raise InvalidArgumentError(f"{kind} has no option {name!r}.")
        if value not in defaults[name]:
            raise InvalidArgumentError(
                f"{kind} takes {name}={defaults[name][0]!r} alone: dualflow does not implement {value!r}. "
                "Omit it."
            )
