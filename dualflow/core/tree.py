"""Trees of values (lists, tuples, dicts, namedtuples, dataclasses, attrs): flattening and rebuilding."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from dualflow.core.dispatch import TENSORS
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.core.trace_type import traced_tree


class Structure(NamedTuple):
    """The structure of a tree: the node's kind, its keys, and its children; a leaf has no kind.

    Structures are equal if their kinds and keys are, recursively; the order of a dict is ignored, but
    restored when it is rebuilt.
    """

    kind: Any = None
    keys: tuple[Any, ...] = ()
    children: tuple[Structure, ...] = ()

    @property
    def leaves(self) -> int:
        return 1 if self.kind is None else sum(c.leaves for c in self.children)

    def batched(self, size: int | None) -> Structure:
        """The structure of a batch of ``size`` such trees; None for any size."""
        return self._with_kinds(lambda kind: kind.batched(size))

    def unbatched(self) -> Structure:
        """The structure of an element of a batch of this structure."""
        return self._with_kinds(lambda kind: kind.unbatched())

    def _with_kinds(self, function: Callable[[Any], Any]) -> Structure:
        """The structure with the results of ``function`` for the kinds that depend on the batch."""
        children = tuple([child._with_kinds(function) for child in self.children])
        kind = function(self.kind) if hasattr(self.kind, "unbatched") else self.kind
        return Structure(kind, self.keys, children)

    @property
    def orders(self) -> tuple[Any, ...]:
        """The order of the keys of each dict; equal structures may have different orders."""
        own = self.keys.order if isinstance(self.keys, Keys) else ()
        return own, *[c.orders for c in self.children]


class Keys(tuple[Any, ...]):
    """The keys of a dict, sorted if they are comparable, so that they don't depend on the dict's order.

    Attributes:
        order: the keys in the dict's order.
        make: creates such a dict from pairs; None for its class.
    """

    order: tuple[Any, ...]
    make: Callable[[Any], Mapping[Any, Any]] | None = None


LEAF: Final = Structure()
_END: Final = object()


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def open_branch(value: Any) -> tuple[Any, tuple[Any, ...], list[Any]] | None:
    """``(kind, keys, children)`` of a branch; None for a leaf. ``None`` is a branch without children.

    An object is a branch by its method ``__tree__``: ``kind(**dict(zip(keys, children)))`` rebuilds it. So is
    one with TensorFlow's method ``__tf_tracing_type__`` (:mod:`dualflow.core.trace_type`).
    """
    if value is None:
        return type(None), (), []
    if type(value) in (list, tuple):
        return type(value), (), list(value)
    if _is_namedtuple(value):
        return type(value), tuple(value._fields), list(value)
    if isinstance(value, Mapping):
        keys = _keys(value)
        return type(value), keys, [value[k] for k in keys]
    if hasattr(type(value), "__dataclass_fields__"):
        names = tuple(f.name for f in imported("dataclasses").fields(value) if f.init)
        return type(value), names, [getattr(value, n) for n in names]
    fields = getattr(type(value), "__attrs_attrs__", None)
    if fields is not None:
        names = tuple(f.name for f in fields if f.init)
        return type(value), names, [getattr(value, n) for n in names]
    flatten_method = getattr(type(value), "__tree__", None)
    if flatten_method is not None:
        branch: tuple[Any, tuple[Any, ...], list[Any]] = flatten_method(value)
        return branch
    if hasattr(type(value), "__tf_tracing_type__"):
        return traced_tree(value)
    return None


def _keys(mapping: Mapping[Any, Any]) -> tuple[Any, ...]:
    """The keys of a mapping in the order of its leaves."""
    own = tuple(mapping)
    try:
        keys = Keys(sorted(own))
    except TypeError:
        keys = Keys(own)
    keys.order = own
    if type(mapping) is defaultdict:
        keys.make = functools.partial(defaultdict, mapping.default_factory)
    return keys


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Structure]:
    """The leaves of ``tree`` from left to right (a dict's by sorted key), and its structure.

    ``is_leaf`` marks additional leaves; tensors and values of other types always are leaves.

    >>> leaves, structure = flatten({"b": [1, 2], "a": (3, None)})
    >>> leaves, unflatten(structure, [30, 10, 20])
    ([3, 1, 2], {'b': [10, 20], 'a': (30, None)})
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> Structure:
    is_tensor = isinstance(tree, TENSORS) or (is_leaf is not None and is_leaf(tree))
    opened = None if is_tensor else open_branch(tree)
    if opened is None:
        leaves.append(tree)
        return LEAF
    kind, keys, children = opened
    return Structure(kind, keys, tuple([_flatten(c, leaves, is_leaf) for c in children]))


def consists_of(tree: Any, structure: Structure, leaves: Iterator[Any]) -> bool:
    """Whether ``tree`` has this structure and the same leaf objects, by identity; it may be cyclic."""
    opened = None if isinstance(tree, TENSORS) else open_branch(tree)
    if opened is None:
        return structure.kind is None and next(leaves, _END) is tree
    kind, keys, children = opened
    if getattr(kind, "is_immutable", False):  # its constructor may have converted the leaves
        return len([*itertools.islice(leaves, structure.leaves)]) == structure.leaves
    return (kind, keys, len(children)) == (structure.kind, structure.keys, len(structure.children)) and all(
        consists_of(c, s, leaves) for c, s in zip(children, structure.children, strict=True)
    )


def leaves(tree: Any) -> list[Any]:
    """The leaves of ``tree`` from left to right."""
    return flatten(tree)[0]


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """The tree of ``structure`` whose leaves are ``leaves``."""
    remaining = iter(leaves)
    try:
        built = _build(structure, remaining)
        if next(remaining, _END) is _END:
            return built
    except StopIteration:
        pass
    raise InvalidArgumentError(
        f"a structure of {structure.leaves} leaves was given {len(leaves)}; give one value for each"
    )


def _build(structure: Structure, leaves: Iterator[Any]) -> Any:
    if structure.kind is None:
        return next(leaves)
    return _maker(structure)([_build(c, leaves) for c in structure.children])


def rebuilder(structure: Structure) -> Callable[[Sequence[Any]], Any]:
    """A fast :func:`unflatten` for one structure, for calls with the right number of leaves.

    >>> rebuild = rebuilder(flatten({"b": [1, 2], "a": (3, None)})[1])
    >>> rebuild((30, 10, 20))
    {'b': [10, 20], 'a': (30, None)}
    """
    if structure.kind is None:
        return operator.itemgetter(0)
    make = _maker(structure)
    if all(child.kind is None for child in structure.children):
        return make
    parts: list[tuple[int, int, Callable[[Sequence[Any]], Any] | None]] = []
    end = 0
    for child in structure.children:
        start, end = end, end + child.leaves
        parts.append((start, end, None if child.kind is None else rebuilder(child)))

    def rebuild(leaves: Sequence[Any]) -> Any:
        return make([leaves[i] if part is None else part(leaves[i:j]) for i, j, part in parts])

    return rebuild


def _maker(structure: Structure) -> Callable[[Sequence[Any]], Any]:
    """A function that creates the container of ``structure`` from its children."""
    kind = structure.kind
    if kind in (list, tuple):
        make: Callable[[Sequence[Any]], Any] = kind
        return make
    if kind is type(None):
        return lambda children: None
    if hasattr(kind, "_fields"):
        return lambda children: kind(*children)
    if isinstance(structure.keys, Keys):
        place = {key: i for i, key in enumerate(structure.keys)}
        order = [(key, place[key]) for key in structure.keys.order]
        constructor = structure.keys.make or kind
        return lambda children: _mapping(constructor, [(key, children[i]) for key, i in order])
    fields = getattr(kind, "__attrs_attrs__", ())
    alias = {
        f.name: getattr(f, "alias", None) or f.name.lstrip("_") for f in fields
    }  # the names of __init__'s parameters
    names = [alias.get(key, key) for key in structure.keys]
    return lambda children: kind(**dict(zip(names, children, strict=True)))


def _mapping(kind: Any, items: Any) -> Any:
    try:
        return kind(items)
    except TypeError:
        return dict(items)


def map_structure(function: Callable[..., Any], *trees: Any) -> Any:
    """``function`` applied to the leaves of ``trees``, which have the same structure; returns such a tree.

    Raises:
        DTypeError: the structures differ.

    >>> map_structure(lambda x, y: x + y, {"a": [1, 2]}, {"a": [10, 20]})
    {'a': [11, 22]}
    """
    flat, structure = flatten(trees[0])
    rows = [flat]
    for tree in trees[1:]:
        other, other_structure = flatten(tree)
        if other_structure != structure:
            raise DTypeError(
                f"The structures differ: {trees[0]!r} and {tree!r}. Give trees of one structure."
            )
        rows.append(other)
    return unflatten(structure, [function(*row) for row in zip(*rows, strict=True)])
