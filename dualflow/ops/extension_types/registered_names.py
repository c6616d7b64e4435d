"""Names of extension types in files: saved models refer to a class by them."""

from __future__ import annotations

import re
from typing import Any, Final
from weakref import WeakValueDictionary

from dualflow.core.errors import InvalidArgumentError

_registered: Final[WeakValueDictionary[str, type]] = WeakValueDictionary()
"""The extension types whose class body sets ``__name__``, by this name."""


def register(kind: type) -> None:
    """Register a new extension type, if its class has an attribute ``__name__``.

    A class that is defined again, as by a cell of a notebook, replaces the former one.

    Raises:
        InvalidArgumentError: the name has no project, or another class has it.
    """
    name = registered_name(kind)
    if name is None:
        return
    if not isinstance(name, str) or not re.fullmatch(r"(\w+\.)+\w+", name):
        raise InvalidArgumentError(
            f"{kind.__qualname__} has the __name__ {name!r}; it has the form 'project.{kind.__qualname__}', "
            "so that the classes of several projects differ."
        )
    other = _registered.get(name)
    if other is not None and (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InvalidArgumentError(
            f"{kind.__qualname__} has the __name__ {name!r} of {other.__module__}.{other.__qualname__}; give "
            "it another."
        )
    _registered[name] = kind


def registered_name(kind: type) -> Any:
    """The name of an extension type in files; None if the class has none."""
    return vars(kind).get("__name__")


def registered_type(name: str) -> Any:
    """The extension type of a name; None if it is not defined in this process."""
    return _registered.get(name)
