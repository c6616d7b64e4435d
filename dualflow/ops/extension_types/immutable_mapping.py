"""``ImmutableMapping``: the value of a field of an extension type that is annotated as a Mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class ImmutableMapping(Mapping[Any, Any]):
    """A mapping that can't be modified.

    Args:
        items: a mapping, or pairs of a key and a value.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Any = ()) -> None:
        self._items = dict(items)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __repr__(self) -> str:
        return f"ImmutableDict({self._items!r})"  # TensorFlow's name for it
