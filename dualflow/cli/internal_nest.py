"""The functions of TensorFlow's internal module ``nest`` that ``df.nest`` lacks: up to a depth, with paths.

A shallow tree is a structure whose leaves stand for whole structures of a deeper tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dualflow import nest
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tree import open_branch

Path = tuple[Any, ...]


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """Raise an error unless ``shallow_tree`` is the upper part of ``input_tree``.

    Raises:
        InvalidArgumentError: a container has other keys or another length.
        DTypeError: a leaf is where the shallow tree has a container, or the types of containers differ.
    """
    for _ in _pairs(shallow_tree, input_tree, check_types):
        pass


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[Any]:
    """The parts of ``input_tree`` at the leaves of ``shallow_tree``."""
    return [part for _, part in _pairs(shallow_tree, input_tree, check_types)]


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[tuple[Path, Any]]:
    """The parts of ``input_tree`` at the leaves of ``shallow_tree``, each after its path."""
    return list(_pairs(shallow_tree, input_tree, check_types))


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple[Path, Any]]:
    """The leaves of a structure, each after its path: the keys and indices that lead to it."""
    return list(_pairs(structure, structure, True))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """The leaves of a structure, each after its path as text."""
    return [(separator.join(map(str, path)), x) for path, x in flatten_with_tuple_paths(structure)]


def yield_flat_paths(structure: Any, expand_composites: bool = False) -> Iterator[Path]:
    """The paths of the leaves."""
    return (path for path, _ in flatten_with_tuple_paths(structure))


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any) -> Any:
    """The results of ``func`` for the parts of the inputs, in the structure of ``shallow_tree``."""

    def without_path(_: Path, *parts: Any, **options: Any) -> Any:
        return func(*parts, **options)

    return map_structure_with_tuple_paths_up_to(shallow_tree, without_path, *inputs, **kwargs)


def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any
) -> Any:
    """As :func:`map_structure_up_to`, with the path as the first argument of ``func``."""
    if not inputs:
        raise InvalidArgumentError("Cannot map over no sequences; give an input after the function.")
    check_types = kwargs.pop("check_types", True)
    kwargs.pop("expand_composites", None)
    columns = [_pairs(shallow_tree, x, check_types) for x in inputs]
    results = [
        func(pairs[0][0], *[part for _, part in pairs], **kwargs) for pairs in zip(*columns, strict=True)
    ]
    return nest.pack_sequence_as(shallow_tree, results)


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """The results of ``func(path, *leaves)`` in the structure of the first argument."""
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **kwargs)


def map_structure_with_path_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any
) -> Any:
    """As :func:`map_structure_with_tuple_paths_up_to`, with the path as text."""

    def with_text(path: Path, *parts: Any, **options: Any) -> Any:
        return func("/".join(map(str, path)), *parts, **options)

    return map_structure_with_tuple_paths_up_to(shallow_tree, with_text, *inputs, **kwargs)


def get_traverse_shallow_structure(
    traverse_fn: Callable[[Any], Any], structure: Any, expand_composites: bool = False
) -> Any:
    """A shallow tree of ``structure``: with False for each part that ``traverse_fn`` doesn't enter.

    Raises:
        DTypeError: ``traverse_fn`` returns something else than a bool or a structure of bools.
    """
    enters = traverse_fn(structure)
    if not nest.is_nested(structure) or enters is False:
        return bool(enters)
    if enters is not True and not nest.is_nested(enters):
        raise DTypeError(f"traverse_fn returns bools, or a structure of them, not {enters!r}.")
    level = [part for _, part in _children(structure)]
    chosen = [True] * len(level) if enters is True else [flag for _, flag in _children(enters)]
    parts = [
        get_traverse_shallow_structure(traverse_fn, part) if flag else False
        for part, flag in zip(level, chosen, strict=True)
    ]
    return _rebuilt(structure, parts)


def is_mapping(value: Any) -> bool:
    """Whether a value is a dict or another mapping."""
    return isinstance(value, Mapping)


def _is_namedtuple(instance: Any, strict: bool = False) -> bool:
    """Whether a value is a named tuple."""
    return isinstance(instance, tuple) and hasattr(instance, "_fields")


def _yield_value(iterable: Any) -> Iterator[Any]:
    """The parts of a container."""
    return (part for _, part in _children(iterable))


def _yield_sorted_items(iterable: Any) -> Iterator[tuple[Any, Any]]:
    """The pairs of key, name or index and part of a container."""
    return iter(_children(iterable))


def _pairs(shallow: Any, tree: Any, check_types: bool, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The path and the part of ``tree`` at each leaf of ``shallow``."""
    if not nest.is_nested(shallow):
        yield path, tree
        return
    if not nest.is_nested(tree):
        raise DTypeError(
            "If shallow structure is a sequence, input must also be a sequence. Input has type: "
            f"{type(tree)}."
        )
    expected, parts = _children(shallow), _children(tree)
    mappings = isinstance(shallow, Mapping) and isinstance(tree, Mapping)
    if check_types and not mappings and type(shallow) is not type(tree):
        raise DTypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(tree)}, while shallow structure has type {type(shallow)}."
        )
    if [key for key, _ in expected] != [key for key, _ in parts]:
        raise InvalidArgumentError(
            f"The two structures don't have the same keys or length: {[key for key, _ in parts]} in the "
            f"input, {[key for key, _ in expected]} in the shallow structure."
        )
    for (key, upper), (_, lower) in zip(expected, parts, strict=True):
        yield from _pairs(upper, lower, check_types, (*path, key))


def _children(structure: Any) -> list[tuple[Any, Any]]:
    """The ``(key, child)`` pairs of a container; a key is a dict's (sorted), a field's name or an index."""
    opened = open_branch(list(structure) if isinstance(structure, range) else structure)
    assert opened is not None, "it is nested"
    _, keys, parts = opened
    return list(zip(keys or range(len(parts)), parts, strict=True))


def _rebuilt(structure: Any, parts: list[Any]) -> Any:
    """The container of ``structure`` with other parts."""
    opened = open_branch(structure)
    assert opened is not None, "it is nested"
    kind, keys, _ = opened
    if isinstance(structure, Mapping):
        return kind(dict(zip(keys, parts, strict=True)))
    return kind(*parts) if keys else kind(parts)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    function.__name__: function
    for function in (
        _is_namedtuple,
        _yield_sorted_items,
        _yield_value,
        assert_shallow_structure,
        flatten_up_to,
        flatten_with_joined_string_paths,
        flatten_with_tuple_paths,
        flatten_with_tuple_paths_up_to,
        get_traverse_shallow_structure,
        is_mapping,
        map_structure_up_to,
        map_structure_with_path_up_to,
        map_structure_with_tuple_paths,
        map_structure_with_tuple_paths_up_to,
        yield_flat_paths,
    )
} | {"_sequence_like": _rebuilt}
