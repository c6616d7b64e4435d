"""``df.nest``: flattens, maps and packs structures of lists, tuples, dicts and attrs classes.

Any other value is a leaf: tensors, arrays, strings, sets, None, and SparseTensors unless
``expand_composites`` is true. The parts of a dict are in the order of its sorted keys.
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
from dualflow.core.type_spec import TypeSpec

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


@entry
def is_nested(seq: object) -> bool:
    """Whether ``seq`` is a structure rather than one leaf.

    >>> import dualflow as df
    >>> df.nest.is_nested([1]), df.nest.is_nested({}), df.nest.is_nested("abc"), df.nest.is_nested(None)
    (True, True, False, False)
    """
    return _flattened(seq, False)[1].kind is not None


@entry
def flatten(structure: object, expand_composites: bool = False) -> list[Any]:
    """The leaves of a structure from left to right.

    Args:
        structure: of any depth; a single leaf is a structure too.
        expand_composites: whether a composite, such as a RaggedTensor, is a structure of its tensors, and
            its spec one of their specs.

    >>> import dualflow as df
    >>> df.nest.flatten({"b": [1, 2], "a": (3, None)})
    [3, None, 1, 2]
    """
    return _flattened(structure, expand_composites)[0]


@entry
def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """The results of ``func`` for corresponding leaves, in the structure of the first argument.

    Args:
        func: a function of one leaf of each structure.
        structure: one or more structures with the same nesting.
        kwargs: ``check_types``, whether the types of containers must be equal too, True by default;
            ``expand_composites``, as in :func:`flatten`.

    Raises:
        InvalidArgumentError: there is no structure, the nesting differs, or there is another keyword.
        DTypeError: the types of containers differ, or ``func`` is not callable.

    >>> import dualflow as df
    >>> df.nest.map_structure(lambda x, y: x + y, {"a": [1, 2]}, {"a": [10, 20]})
    {'a': [11, 22]}
    """
    if not callable(func):
        raise DTypeError(f"func must be callable, got: {func!r}; give the function first.")
    if not structure:
        raise InvalidArgumentError("Must provide at least one structure, after the function.")
    others = {*kwargs} - {"check_types", "expand_composites"}
    if others:
        raise InvalidArgumentError(
            f"Only valid keyword arguments are `check_types` and `expand_composites`, not: {sorted(others)}; "
            "give the function its own with functools.partial."
        )
    expand = kwargs.get("expand_composites", False)
    for other in structure[1:]:
        _check_same(structure[0], other, kwargs.get("check_types", True), expand)
    leaves = [_flattened(x, expand)[0] for x in structure]
    results = [func(*group) for group in zip(*leaves, strict=True)]
    return tree.unflatten(_flattened(structure[0], expand)[1], results)


@entry
def pack_sequence_as(structure: object, flat_sequence: Sequence[Any], expand_composites: bool = False) -> Any:
    """The values of ``flat_sequence`` in the structure of ``structure``.

    Raises:
        InvalidArgumentError: the number of values is not the number of leaves.
        DTypeError: ``flat_sequence`` is no list or tuple.

    >>> import dualflow as df
    >>> df.nest.pack_sequence_as({"b": [0, 0], "a": 0}, [1, 2, 3])
    {'b': [2, 3], 'a': 1}
    """
    values = flat_sequence
    if not is_nested(values) or isinstance(values, dict):
        raise DTypeError(f"The values for a structure must be a list or a tuple, not {values!r}.")
    leaves, packed = _flattened(structure, expand_composites)
    if len(leaves) != len(values):
        raise InvalidArgumentError(
            f"Could not pack sequence. Structure had {len(leaves)} atoms, but flat_sequence had "
            f"{len(values)} items. Structure: {structure!r}, flat_sequence: {values!r}."
        )
    return tree.unflatten(packed, list(values))


@entry
def assert_same_structure(
    nest1: object, nest2: object, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raise an error if the nesting of two structures differs.

    Args:
        nest1: a structure.
        nest2: a structure.
        check_types: whether the types of containers must be equal too; all dict types are equal.
        expand_composites: as in :func:`flatten`.

    Raises:
        InvalidArgumentError: the nesting or the keys of dicts differ.
        DTypeError: the types of containers differ.

    >>> import dualflow as df
    >>> df.nest.assert_same_structure([1, (2, 3)], [4, (5, 6)])
    """
    _check_same(nest1, nest2, check_types, expand_composites)


def _flattened(structure: Any, expand: bool) -> tuple[list[Any], tree.Structure]:
    """The leaves and the structure."""

    def is_leaf(value: Any) -> bool:
        is_dataclass = dataclasses.is_dataclass(value) and not hasattr(type(value), "__attrs_attrs__")
        is_tensor = isinstance(value, AbstractSource) or (
            not expand and isinstance(value, AbstractComposite | TypeSpec)
        )
        is_traced = hasattr(type(value), "__tf_tracing_type__") and not hasattr(type(value), "__tree__")
        return value is None or is_dataclass or is_tensor or is_traced

    return tree.flatten(list(structure) if _is_view(structure) else structure, is_leaf)


def _is_view(value: Any) -> bool:
    """Whether a value is a range, or the keys, values or items of a dict, which are nested as lists."""
    return isinstance(value, range | type({}.keys()) | type({}.values()) | type({}.items()))


def _check_same(first: Any, second: Any, check_types: bool, expand: bool) -> None:
    _compare(_flattened(first, expand)[1], _flattened(second, expand)[1], check_types, (first, second))


def _compare(a: tree.Structure, b: tree.Structure, check_types: bool, roots: tuple[Any, Any]) -> None:
    mappings = isinstance(a.keys, tree.Keys), isinstance(b.keys, tree.Keys)
    other_kind = not _is_same_kind(a.kind, b.kind) and not all(mappings)
    if (a.kind is None) != (b.kind is None):
        raise InvalidArgumentError(_differ(roots, "one has a container where the other has a leaf"))
    if check_types and other_kind:
        raise DTypeError(_differ(roots, f"{_name(a)} and {_name(b)} differ; check_types=False allows it"))
    if all(mappings) and tuple(a.keys) != tuple(b.keys):
        raise InvalidArgumentError(_differ(roots, f"the keys {tuple(a.keys)} and {tuple(b.keys)} differ"))
    if len(a.children) != len(b.children):
        raise InvalidArgumentError(_differ(roots, f"{len(a.children)} and {len(b.children)} elements"))
    for x, y in zip(a.children, b.children, strict=True):
        _compare(x, y, check_types, roots)


def _is_same_kind(a: Any, b: Any) -> bool:
    """Whether two containers, or two composites of any static shape, are of one class."""
    return a is b or (dataclasses.is_dataclass(a) and not isinstance(a, type) and type(a) is type(b))


def _name(structure: tree.Structure) -> str:
    return str(getattr(structure.kind, "__name__", structure.kind))


def _differ(roots: tuple[Any, Any], difference: str) -> str:
    return (
        f"The two structures don't have the same nested structure: {difference}. "
        f"First structure: {roots[0]!r}. Second structure: {roots[1]!r}."
    )


_publish(globals())
