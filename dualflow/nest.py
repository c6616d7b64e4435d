"""Structures of lists, tuples, dicts and attrs, flattened, mapped and put together again: ``df.nest``.

What is none of these is one leaf: tensors, arrays, strings, sets, None, and SparseTensors unless
``expand_composites`` opens them. A dict's parts come in the order of its sorted keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core import tree
from dualflow.core.dispatch import AbstractComposite, AbstractSource
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import entry

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


@entry
def is_nested(seq: Any) -> bool:
    """Whether ``seq`` is a structure rather than one leaf.

    >>> import dualflow as df
    >>> df.nest.is_nested([1]), df.nest.is_nested({}), df.nest.is_nested("abc"), df.nest.is_nested(None)
    (True, True, False, False)
    """
    return _opened(seq, False)[1].kind is not None


@entry
def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of a structure from left to right.

    Args:
        structure: of any depth; a single leaf is one, too.
        expand_composites: whether a SparseTensor or IndexedSlices is a structure of its tensors.

    >>> import dualflow as df
    >>> df.nest.flatten({"b": [1, 2], "a": (3, None)})
    [3, None, 1, 2]
    """
    return _opened(structure, expand_composites)[0]


@entry
def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """``func`` of the leaves of structures, in the first one's structure.

    Args:
        func: takes one leaf of each structure.
        structure: one structure or several alike.
        kwargs: ``check_types``, whether their kinds must be equal and not the nesting alone, True by default;
            ``expand_composites``, as in :func:`flatten`.

    Raises:
        InvalidArgumentError: there is no structure, they are nested in another way, or another keyword.
        DTypeError: they are of other kinds, or ``func`` can't be called.

    >>> import dualflow as df
    >>> df.nest.map_structure(lambda x, y: x + y, {"a": [1, 2]}, {"a": [10, 20]})
    {'a': [11, 22]}
    """
    if not callable(func):
        raise DTypeError(f"func must be callable, got: {func!r}; give the function first.")
    if not structure:
        raise InvalidArgumentError("Must provide at least one structure, behind the function.")
    others = {*kwargs} - {"check_types", "expand_composites"}
    if others:
        raise InvalidArgumentError(
            f"Only valid keyword arguments are `check_types` and `expand_composites`, not: {sorted(others)}; "
            "give the function its own with functools.partial."
        )
    expand = kwargs.get("expand_composites", False)
    for other in structure[1:]:
        _check_same(structure[0], other, kwargs.get("check_types", True), expand)
    rows = [_opened(x, expand)[0] for x in structure]
    return tree.unflatten(_opened(structure[0], expand)[1], [func(*row) for row in zip(*rows, strict=True)])


@entry
def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False) -> Any:
    """The values of ``flat_sequence`` in the structure of ``structure``.

    Raises:
        InvalidArgumentError: there are more or fewer of them than leaves.
        DTypeError: they are no list or tuple.

    >>> import dualflow as df
    >>> df.nest.pack_sequence_as({"b": [0, 0], "a": 0}, [1, 2, 3])
    {'b': [2, 3], 'a': 1}
    """
    values = flat_sequence
    if not is_nested(values) or isinstance(values, dict):
        raise DTypeError(f"The values for a structure are in a list or a tuple, not {values!r}.")
    leaves, found = _opened(structure, expand_composites)
    if len(leaves) != len(values):
        raise InvalidArgumentError(
            f"Could not pack sequence. Structure had {len(leaves)} atoms, but flat_sequence had "
            f"{len(values)} items. Structure: {structure!r}, flat_sequence: {values!r}."
        )
    return tree.unflatten(found, list(values))


@entry
def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raise unless two structures are nested in the same way.

    Args:
        nest1: a structure.
        nest2: a structure.
        check_types: whether their kinds must be equal too, such as list and tuple; dicts are alike.
        expand_composites: as in :func:`flatten`.

    Raises:
        InvalidArgumentError: they are nested in another way, or dicts have other keys.
        DTypeError: they are of other kinds.

    >>> import dualflow as df
    >>> df.nest.assert_same_structure([1, (2, 3)], [4, (5, 6)])
    """
    _check_same(nest1, nest2, check_types, expand_composites)


def _opened(structure: Any, expand: bool) -> tuple[list[Any], tree.Structure]:
    """The leaves and the structure."""

    def is_leaf(value: Any) -> bool:
        own = dataclasses.is_dataclass(value) and not hasattr(type(value), "__attrs_attrs__")
        closed = isinstance(value, AbstractSource) or (not expand and isinstance(value, AbstractComposite))
        return value is None or own or closed

    return tree.flatten(list(structure) if _is_view(structure) else structure, is_leaf)


def _is_view(value: Any) -> bool:
    """Whether a value is a range, or the keys, values or items of a dict: a sequence by another name."""
    return isinstance(value, range | type({}.keys()) | type({}.values()) | type({}.items()))


def _check_same(first: Any, second: Any, check_types: bool, expand: bool) -> None:
    _compare(_opened(first, expand)[1], _opened(second, expand)[1], check_types, (first, second))


def _compare(a: tree.Structure, b: tree.Structure, check_types: bool, whole: tuple[Any, Any]) -> None:
    mappings = isinstance(a.keys, tree.Keys), isinstance(b.keys, tree.Keys)
    other_kind = a.kind is not b.kind and not all(mappings)
    if (a.kind is None) != (b.kind is None):
        raise InvalidArgumentError(_differ(whole, "one has a structure where the other has a single value"))
    if check_types and other_kind:
        raise DTypeError(_differ(whole, f"{_name(a)} stands beside {_name(b)}; check_types=False allows it"))
    if all(mappings) and tuple(a.keys) != tuple(b.keys):
        raise InvalidArgumentError(_differ(whole, f"the keys {tuple(a.keys)} and {tuple(b.keys)}"))
    if len(a.children) != len(b.children):
        raise InvalidArgumentError(_differ(whole, f"{len(a.children)} and {len(b.children)} parts"))
    for x, y in zip(a.children, b.children, strict=True):
        _compare(x, y, check_types, whole)


def _name(structure: tree.Structure) -> str:
    return str(getattr(structure.kind, "__name__", structure.kind))


def _differ(whole: tuple[Any, Any], how: str) -> str:
    return (
        f"The two structures don't have the same nested structure: {how}. First structure: {whole[0]!r}. "
        f"Second structure: {whole[1]!r}."
    )


_publish(globals())
