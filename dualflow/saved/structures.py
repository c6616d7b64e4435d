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
=====================================  =============================================
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any, Final

from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.graph.text_lines import read_spec

_PLAIN: Final = (type(None), bool, int, float, str)
_MAX_DEPTH: Final = 64
_DICTS: Final = (dict, OrderedDict, defaultdict)


def to_json(value: Any, what: str) -> Any:
    """A structure of specs and Python values as JSON; ``what`` is its name in errors.

    Raises:
        DTypeError: it holds an object that only its own code could create again.
    """
    if isinstance(value, TensorSpec):
        named = {"name": value.name} if isinstance(value.name, str) else {}
        return {"tensor": str(value), **named}
    kind = type(value)
    if kind in _PLAIN:
        return {"value": value}
    if kind is bytes:
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if kind in (list, tuple):
        return {kind.__name__: [to_json(x, what) for x in value]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = zip(value._fields, value, strict=True)
        return {"namedtuple": kind.__name__, "fields": [[n, to_json(x, what)] for n, x in fields]}
    if kind in _DICTS and all(type(key) in (str, int) for key in value):
        return {"dict": [[key, to_json(x, what)] for key, x in value.items()]}
    raise DTypeError(
        f"{what} is or contains {value!r}: a saved function takes and returns tensors, Python numbers, "
        "strings, and lists, tuples and dicts of them. Wrap it in a function that does."
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


_READERS: Final[dict[str, Callable[[Mapping[str, Any], int], Any]]] = {
    "tensor": _tensor,
    "value": _value,
    "bytes": lambda entry, depth: str(entry["bytes"]).encode("latin-1"),
    "dtype": _dtype,
    "list": lambda entry, depth: _items(entry["list"], depth),
    "tuple": lambda entry, depth: tuple(_items(entry["tuple"], depth)),
    "dict": lambda entry, depth: _pairs(entry["dict"], depth),
    "namedtuple": _named_tuple,
}


def is_tensor(value: Any) -> bool:
    """Whether ``value`` is a tensor, a variable, or the spec of one."""
    return isinstance(value, (TensorSpec, *TENSORS))
