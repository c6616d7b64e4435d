"""The named children of an object, and its own state, as a checkpoint saves them.

=====================================  ==================================================================
object                                 children and state
=====================================  ==================================================================
a variable                             its value; also of a variable that an object of another library wraps
with ``_trackable_children()``         what that returns: a mapping of names to objects
a list, tuple or deque                 the elements, by their places
a mapping                              the values, by keys that are strings or integers
with ``get_state`` and ``set_state``   what ``get_state()`` returns, which must be JSON
with ``serialize``, ``deserialize``    as :class:`PythonState` has them, the text that ``serialize()`` returns
any other with a ``__dict__``          its attributes
=====================================  ==================================================================

Optimizers have a method ``_slot_variables()`` as well: it yields triples of a variable, the name of a slot,
and the variable that is the slot. Classes of dualflow, NumPy and Python itself that have no such method,
functions, classes and modules have no children.
"""

from __future__ import annotations

import abc
import json
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, Final

from dualflow.core.dispatch import AbstractTensor, DifferentiableComposite
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.eager.variable import Variable

_PLAIN: Final = frozenset({bool, bytes, complex, float, int, str, type(None)})
"""Types without children that are frequent in lists."""
_OPAQUE_PACKAGES: Final = {"dualflow", "numpy", *sys.stdlib_module_names} - {"__main__"}
"""Packages whose objects have no children, unless they have ``_trackable_children()``."""


class PythonState(abc.ABC):
    """The base of classes whose objects are saved in a checkpoint as text.

    >>> import dualflow as df
    >>> class Counter(df.train.experimental.PythonState):
    ...     count = 0
    ...     def serialize(self):
    ...         return str(self.count)
    ...     def deserialize(self, string_value):
    ...         self.count = int(string_value)
    """

    @abc.abstractmethod
    def serialize(self) -> str:
        """The state as text."""

    @abc.abstractmethod
    def deserialize(self, string_value: str) -> None:
        """Restore the state from text that :meth:`serialize` returned."""


def children_of(obj: Any) -> Mapping[str, Any]:
    """The children of an object, by name.

    Raises:
        InvalidArgumentError: two keys of a dict have the same name.
    """
    if isinstance(obj, Variable | AbstractTensor | ModuleType | type | str | bytes | int | float):
        return {}
    return {name: _wrapped_variable(child) for name, child in _all_children(obj).items()}


def _all_children(obj: Any) -> Mapping[str, Any]:
    """The children, with variables of other libraries as they are."""
    if hasattr(type(obj), "_trackable_children"):
        return dict(obj._trackable_children())
    if isinstance(obj, list | tuple | deque):
        return {str(i): x for i, x in enumerate(obj) if type(x) not in _PLAIN}
    if isinstance(obj, Mapping):
        return _mapping_children(obj)
    return _attribute_children(obj)


def _wrapped_variable(child: Any) -> Any:
    """The variable that a variable of another library wraps; other objects unchanged."""
    if isinstance(child, DifferentiableComposite) and isinstance(getattr(child, "values", None), Variable):
        return child.values
    return child


def slots_of(obj: Any) -> Iterable[tuple[Variable, str, Variable]]:
    """The slots of an optimizer: variable, name and slot."""
    if hasattr(type(obj), "_slot_variables"):
        return list(obj._slot_variables())
    return []


def has_state(obj: Any) -> bool:
    """Whether an object other than a variable has a state of its own."""
    kind = type(obj)
    if isinstance(obj, PythonState):
        return True
    return (
        hasattr(kind, "get_state")
        and hasattr(kind, "set_state")
        and kind.__module__.partition(".")[0] != "numpy"
        and not isinstance(obj, type | Variable)
    )


def state_of(obj: Any) -> Any:
    """The state of an object as JSON.

    Raises:
        DTypeError: its ``get_state`` returns something that is not JSON.
    """
    state = obj.serialize() if isinstance(obj, PythonState) else obj.get_state()
    try:
        return json.loads(json.dumps(state))
    except (TypeError, ValueError, RecursionError) as error:
        raise DTypeError(
            f"{type(obj).__name__}.get_state() returned {state!r}, which is not JSON ({error}): "
            "the state of an object may have numbers, strings, lists and dicts; keep arrays in variables."
        ) from error


def set_state(obj: Any, state: Any) -> None:
    """Restore the state that :func:`state_of` returned."""
    if isinstance(obj, PythonState):
        obj.deserialize(state)
    else:
        obj.set_state(state)


def can_hold_state(obj: Any) -> bool:
    """Whether an object may have children or a state, now or later."""
    if isinstance(obj, Variable | list | tuple | deque | Mapping) or has_state(obj):
        return True
    return hasattr(type(obj), "_trackable_children") or _is_user_object(obj)


def _mapping_children(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    children: dict[str, Any] = {}
    for key, value in mapping.items():
        if not isinstance(key, str | int) or type(value) in _PLAIN:
            continue
        if str(key) in children:
            raise InvalidArgumentError(
                f"A dict has the keys {str(key)!r} and {int(key)}, which are one name in a checkpoint: "
                "change one."
            )
        children[str(key)] = value
    return children


def _attribute_children(obj: Any) -> dict[str, Any]:
    return attributes_of(obj) if _is_user_object(obj) else {}


def attributes_of(obj: Any) -> dict[str, Any]:
    """The attributes of an object that may have a state."""
    return {k: v for k, v in vars(obj).items() if isinstance(k, str) and type(v) not in _PLAIN}


def _is_user_object(obj: Any) -> bool:
    """Whether an object's attributes are its children: it is an instance of a user's class."""
    if not hasattr(obj, "__dict__") or isinstance(obj, type | ModuleType | AbstractTensor):
        return False
    return type(obj).__module__.partition(".")[0] not in _OPAQUE_PACKAGES
