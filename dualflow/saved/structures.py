"""The structures of arguments and results as JSON, and back.

=====================================  =============================================
value                                  JSON
=====================================  =============================================
a tensor                               ``{"tensor": "float32[?, 3]", "name": "x"}``
None, bool, int, float, str            ``{"value": 3}``
bytes                                  ``{"bytes": "latin-1 text"}``
dtype                                  ``{"dtype": "float32"}``
list, tuple                            ``{"list": [...]}``, ``{"tuple": [...]}``
dict                                   ``{"dict": [[key, ...], ...]}``
named tuple                            ``{"namedtuple": "Point", "fields": [[name, ...], ...]}``
TensorShape                            ``{"shape": [null, 3]}``; null if the rank is unknown
composite                              as in ``composites.py``
=====================================  =============================================
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.graph.text_lines import read_spec
from dualflow.saved.composites import COMPOSITE_READERS, composite_to_json, read_shape, shape_to_json

_PLAIN: Final = (type(None), bool, int, float, str)
_MAX_DEPTH: Final = 64
_DICTS: Final = (dict, OrderedDict, defaultdict)


def to_json(value: Any, what: str) -> Any:
    """A structure of specs and Python values as JSON; ``what`` is its name in errors.

    Raises:
        DTypeError: it holds an object that only its own code could create again.
    """
    leaves, structure = flatten(value)
    return tree_to_json(structure, leaves, what)


def tree_to_json(structure: Structure, leaves: Sequence[Any], what: str) -> Any:
    """The tree of ``structure`` with these leaves, specs and Python values, as JSON.

    Raises:
        DTypeError: it holds an object that only its own code could create again.
    """
    kind = structure.kind
    if kind is None:
        return _leaf_to_json(leaves[0], what)
    if kind is type(None):
        return {"value": None}
    remaining = iter(leaves)
    parts = [tree_to_json(x, [*islice(remaining, x.leaves)], what) for x in structure.children]
    if kind in (list, tuple):
        return {kind.__name__: parts}
    if hasattr(kind, "_fields"):
        return {"namedtuple": kind.__name__, "fields": _named(structure.keys, parts)}
    if kind in _DICTS and all(type(key) in (str, int) for key in structure.keys):
        return {"dict": _named(structure.keys, parts)}
    composite = composite_to_json(kind, parts, lambda x: to_json(x, what), what)
    if composite is None:
        raise _no_json(unflatten(structure, leaves), what)
    return composite


def _named(keys: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
    """Pairs of a key and a part, in the order of the container."""
    part_of = dict(zip(keys, parts, strict=True))
    return [[key, part_of[key]] for key in getattr(keys, "order", keys)]


def _leaf_to_json(value: Any, what: str) -> Any:
    if isinstance(value, TensorSpec):
        named = {"name": value.name} if isinstance(value.name, str) else {}
        return {"tensor": str(value), **named}
    if type(value) in _PLAIN:
        return {"value": value}
    if type(value) is bytes:
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, Shape):
        return {"shape": shape_to_json(value)}
    raise _no_json(value, what)


def _no_json(value: Any, what: str) -> DTypeError:
    return DTypeError(
        f"{what} is or contains {value!r}: a saved function takes and returns tensors, Python numbers, "
        "strings, extension types, and lists, tuples and dicts of them. Wrap it in a function that does."
    )


def from_json(entry: Any, depth: int = 0) -> Any:
    """Inverse of :func:`to_json`.

    Raises:
        ValueError: the JSON describes none.
    """
    if not isinstance(entry, dict) or depth > _MAX_DEPTH:
        raise ValueError(f"{str(entry)[:40]} is not a structure")
    read = next((reader for key, reader in _READERS.items() if key in entry), None)
    if read is None:
        raise ValueError(f"{str(entry)[:40]} is not a structure")
    return read(entry, depth + 1)


def _tensor(entry: Mapping[str, Any], depth: int) -> TensorSpec:
    name = entry.get("name")
    if not isinstance(entry["tensor"], str) or not isinstance(name, str | None):
        raise ValueError(f"{str(entry)[:40]} is not a tensor")
    try:
        return read_spec(entry["tensor"], name)
    except InvalidArgumentError as error:
        raise ValueError(error.message) from None


def _value(entry: Mapping[str, Any], depth: int) -> Any:
    if type(entry["value"]) not in _PLAIN:
        raise ValueError(f"{str(entry)[:40]} is not a plain value")
    return entry["value"]


def _dtype(entry: Mapping[str, Any], depth: int) -> DType:
    try:
        return as_dtype(str(entry["dtype"]))
    except DTypeError as error:
        raise ValueError(error.message) from None


def _items(entry: Any, depth: int) -> list[Any]:
    if not isinstance(entry, list):
        raise ValueError(f"{str(entry)[:40]} is not a list")
    return [from_json(x, depth) for x in entry]


def _pairs(entry: Any, depth: int) -> dict[Any, Any]:
    pairs = {}
    for pair in entry if isinstance(entry, list) else [entry]:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) not in (str, int):
            raise ValueError(f"{str(pair)[:40]} is not a pair of a key and a value")
        if pair[0] in pairs:
            raise ValueError(f"the key {pair[0]!r} occurs twice")
        pairs[pair[0]] = from_json(pair[1], depth)
    return pairs


def _named_tuple(entry: Mapping[str, Any], depth: int) -> Any:
    fields = _pairs(entry.get("fields"), depth)
    name = str(entry["namedtuple"])
    if not name.isidentifier() or not all(str(field).isidentifier() for field in fields):
        raise ValueError(f"{name!r} is not a named tuple")
    return namedtuple(name, list(map(str, fields)))(*fields.values())


def _reader_of_composite(read: Callable[..., Any]) -> Callable[[Mapping[str, Any], int], Any]:
    return lambda entry, depth: read(entry, lambda part: from_json(part, depth))


_READERS: Final[dict[str, Callable[[Mapping[str, Any], int], Any]]] = {
    "tensor": _tensor,
    "value": _value,
    "bytes": lambda entry, depth: str(entry["bytes"]).encode("latin-1"),
    "dtype": _dtype,
    "list": lambda entry, depth: _items(entry["list"], depth),
    "tuple": lambda entry, depth: tuple(_items(entry["tuple"], depth)),
    "dict": lambda entry, depth: _pairs(entry["dict"], depth),
    "namedtuple": _named_tuple,
    **{key: _reader_of_composite(read) for key, read in COMPOSITE_READERS.items()},
    "shape": lambda entry, depth: read_shape(entry["shape"]),  # the last, as composites have shapes
}


def is_tensor(value: Any) -> bool:
    """Whether ``value`` is a tensor, a variable, or the spec of one."""
    return isinstance(value, (TensorSpec, *TENSORS))
