"""The objects of a saved model, as JSON.

=============  =======================================================================================
kind           members of the entry
=============  =======================================================================================
object         ``class``; ``children``: numbers by name; ``values``: plain attributes by name
list, tuple    ``items``: for each ``{"node": number}``, or a plain value as in ``structures.py``
dict           ``items``: pairs of a key and such an item
variable       ``name``, ``trainable``, ``array``; ``spec`` if its shape has dynamic sizes
tensor         ``array``
composite      ``value``: as in ``composites.py``; ``tensors``: the numbers of its tensors
function       ``function``: its number
trace          ``trace``: its number
asset          ``path``: the number of its path
path           ``asset``: the number of its file
=============  =======================================================================================
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dualflow.core.dispatch import AbstractTensor
from dualflow.core.errors import DTypeError, FailedPreconditionError
from dualflow.core.records import dataclass, field
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import flatten
from dualflow.eager.module import Module
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.updates import value_of
from dualflow.eager.variable import Variable
from dualflow.function.bound_method import BoundFunction
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.traced_function import Function
from dualflow.saved.assets import Asset
from dualflow.saved.composites import is_composite
from dualflow.saved.signatures import is_function
from dualflow.saved.structures import to_json, tree_to_json
from dualflow.saved.traces import TraceWriter
from dualflow.train.encoding import Array
from dualflow.train.reachability import ancestors_of, parents_of
from dualflow.train.trackable import children_of

_CONTAINERS = (list, tuple, deque, Mapping)
_SAVED = (Variable, EagerTensor, Function, ConcreteFunction, Asset, Module)


def members_of(thing: Any) -> dict[str, Any]:
    """The attributes or elements of an object that may be saved, by name, with its traced methods."""
    if isinstance(thing, (*_SAVED[:-1], BoundFunction)):
        return {}
    if is_composite(thing):
        return {str(i): tensor for i, tensor in enumerate(flatten(thing)[0])}
    members = dict(children_of(thing))
    if isinstance(thing, _CONTAINERS) or type(thing).__module__ == "builtins":
        return members
    for name in dir(type(thing)):
        if isinstance(inspect.getattr_static(type(thing), name, None), Function):
            members.setdefault(name, getattr(thing, name))
    return members


@dataclass(slots=True)
class ObjectWriter:
    """Collects the objects of a save, each once.

    Attributes:
        things: the objects; the first one is the root.
        arrays: the arrays of variables and tensors, by name.
        files: the files of assets.
        functions: a description of each function, as JSON.
        traces: collects the traces of functions.
    """

    things: list[Any] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    functions: list[Any] = field(default_factory=list)
    traces: TraceWriter = field(init=False)
    _numbers: dict[int, int] = field(default_factory=dict)
    _members: dict[int, dict[str, Any]] = field(default_factory=dict)
    _is_saved: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.traces = TraceWriter(self.number)

    def add_root(self, root: Any) -> None:
        """Add the objects reachable from ``root`` that are saved, or lead to such objects."""
        if isinstance(root, (Variable, AbstractTensor, Asset, *_CONTAINERS)) or not _may_contain_saved(root):
            raise DTypeError(
                f"A saved model is an object with functions and variables as attributes, not {root!r}: "
                "assign it to an attribute of a df.Module, and save that."
            )
        things, numbers = [_unbound(root)], {id(_unbound(root)): 0}
        members: list[dict[str, Any]] = []
        for thing in things:  # the loop appends to this list
            named = {name: _unbound(x) for name, x in members_of(thing).items()}
            members.append({name: x for name, x in named.items() if _may_contain_saved(x)})
            for child in members[-1].values():
                if id(child) not in numbers:
                    numbers[id(child)] = len(things)
                    things.append(child)
        parents = parents_of([numbers[id(child)] for child in named.values()] for named in members)
        own = {i for i, thing in enumerate(things) if isinstance(thing, _SAVED)}
        for i in sorted(own | ancestors_of(own, parents) | {0}):
            self._is_saved.add(id(things[i]))
            self._members[id(things[i])] = members[i]
            self.number(things[i])

    def number(self, thing: Any) -> int:
        """The index of an object, which is added if it is new."""
        thing = _unbound(thing)
        if id(thing) not in self._numbers:
            self._numbers[id(thing)] = len(self.things)
            self.things.append(thing)
            if isinstance(thing, Asset):
                self.number(thing.variable)
        return self._numbers[id(thing)]

    def entries(self) -> list[Any]:
        """The objects as JSON, with those that traces capture."""
        paths = {id(x.variable): x for x in self.things if isinstance(x, Asset)}
        entries = []
        for i, thing in enumerate(self.things):  # functions add what they capture
            asset = paths.get(id(thing))
            entries.append(self._path(asset) if asset is not None else self._entry(i, thing))
        return entries

    def _entry(self, i: int, thing: Any) -> dict[str, Any]:
        if isinstance(thing, Variable):
            name = thing.name.removesuffix(":0")
            array = self._array(f"variables/{i}", value_of(thing), name)
            entry = {"kind": "variable", "name": name, "trainable": thing.trainable, "array": array}
            return entry if thing.shape.is_static else {**entry, "spec": str(thing.spec)}
        if isinstance(thing, AbstractTensor):
            return {"kind": "tensor", "array": self._array(f"tensors/{i}", thing, "a tensor")}
        if isinstance(thing, ConcreteFunction):
            return {"kind": "trace", "trace": self.traces.number(thing)}
        if isinstance(thing, Function):
            return {"kind": "function", "function": self._function(thing)}
        if isinstance(thing, Asset):
            return {"kind": "asset", "path": self.number(thing.variable)}
        if is_composite(thing):
            return self._composite(thing)
        if isinstance(thing, list | deque):
            return {"kind": "list", "items": self._items(thing)}
        if isinstance(thing, tuple):
            return {"kind": "tuple", "items": self._items(thing)}
        if isinstance(thing, Mapping):
            members = self._members.get(id(thing), {})
            keys = [key for key in thing if type(key) in (str, int)]
            items = [[key, self._item(members.get(str(key), thing[key]))] for key in keys]
            return {"kind": "dict", "items": items}
        return self._object(thing)

    def _composite(self, thing: Any) -> dict[str, Any]:
        tensors, structure = flatten(thing)
        specs = [TensorSpec.from_tensor(x) for x in tensors]
        value = tree_to_json(structure, specs, "an attribute")
        return {"kind": "composite", "value": value, "tensors": [self.number(x) for x in tensors]}

    def _object(self, thing: Any) -> dict[str, Any]:
        members = self._members.get(id(thing), {})
        children = {name: self.number(x) for name, x in members.items() if id(x) in self._is_saved}
        values = {}
        for name, x in getattr(thing, "__dict__", {}).items():
            if name not in children and isinstance(name, str):
                try:
                    values[name] = to_json(x, name)
                except DTypeError:
                    continue  # as in TensorFlow, other attributes are not part of a saved model
        return {"kind": "object", "class": type(thing).__name__, "children": children, "values": values}

    def _items(self, things: Iterable[Any]) -> list[Any]:
        members = self._members.get(id(things), {})
        return [self._item(members.get(str(i), x)) for i, x in enumerate(things)]

    def _item(self, item: Any) -> Any:
        item = _unbound(item)
        if id(item) in self._is_saved:
            return {"node": self.number(item)}
        try:
            return to_json(item, "an element")
        except DTypeError:
            return {"node": self.number(item)}

    def _path(self, asset: Asset) -> dict[str, Any]:
        self.files.append(asset.path)
        return {"kind": "path", "asset": len(self.files) - 1}

    def _array(self, key: str, tensor: Any, name: str) -> str:
        if not isinstance(tensor, EagerTensor):
            raise FailedPreconditionError(
                f"{name} has no value to save: it belongs to an explicit graph or to another trace. Save "
                "objects whose variables are created eagerly."
            )
        self.arrays[key] = tensor._array
        return key

    def _function(self, function: Function[..., Any]) -> int:
        if function.input_signature is not None and not function.concrete_functions:
            function.get_concrete_function()
        specs = function.input_signature
        self.functions.append(
            {
                "name": function.name,
                "input_signature": None if specs is None else to_json(specs, "the input signature"),
                "traces": [self.traces.number(trace) for trace in function.traces_without_guards],
            }
        )
        return len(self.functions) - 1


def _unbound(thing: Any) -> Any:
    """The function of a bound method; other objects unchanged."""
    return thing.__wrapped__ if isinstance(thing, BoundFunction) else thing


def _may_contain_saved(thing: Any) -> bool:
    """Whether an object may be saved, or contain objects that are."""
    if is_function(thing) or isinstance(thing, (*_SAVED, *_CONTAINERS)):
        return True
    return bool(children_of(thing)) or bool(members_of(thing))
