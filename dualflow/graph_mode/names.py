"""The names in an explicit graph: unique, and in scopes, by TensorFlow's rules.

Names that differ in case only are equal. The second ``x`` is ``x_1``; in the scope ``a`` it would be ``a/x``.
A name that ends in ``/`` is used unchanged, so that the full name of a scope enters it again.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Final, Generic, TypeVar

from dualflow.core.errors import InvalidArgumentError, NotFoundError

Element = TypeVar("Element", bound=Hashable)
_FIRST: Final = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
_INNER: Final = re.compile(r"[A-Za-z0-9_.\\/>-]*")


class UnknownNameError(NotFoundError, KeyError):
    """A graph has no element of the requested name."""

    __str__ = Exception.__str__  # a KeyError shows its message in quotes


class UniqueNames(Generic[Element]):
    """The elements of a graph by name, in the order in which they were added.

    Attributes:
        scope: the prefix of new names: empty, or scopes that each end in ``/``.
    """

    def __init__(self) -> None:
        self.scope = ""
        self._taken: dict[str, int] = {}
        self._elements: dict[str, Element] = {}
        self._names: dict[Element, str] = {}

    def __iter__(self) -> Iterator[Element]:
        return iter(self._elements.values())

    def __len__(self) -> int:
        return len(self._elements)

    def of(self, element: Element) -> str:
        """The name of an element."""
        return self._names[element]

    def find(self, name: str) -> Element | None:
        """The element of that name, if there is one."""
        return self._elements.get(name)

    def suggestion(self, name: str) -> str:
        """A suggestion of a similar name for errors; empty if there is none."""
        similar = get_close_matches(name, self._elements, 1)
        return f" Did you mean {similar[0]!r}?" if similar else ""

    def add(self, element: Element, base: str) -> str:
        """Add an element, named after ``base`` in the current scope; returns its name."""
        name = self.unique(base)
        self._elements[name] = element
        self._names[element] = name
        return name

    def rename(self, element: Element, name: str) -> None:
        """Set the name of an element to one that :meth:`unique` has returned."""
        del self._elements[self._names[element]]
        self._elements[name] = element
        self._names[element] = name

    def unique(self, base: str) -> str:
        """Reserve and return a name: ``base`` in the current scope, with a number if it is taken."""
        full, is_unchanged = self._full(base)
        if is_unchanged:
            self._taken.setdefault(full.lower(), 1)
            return full
        return self.numbered(full)

    def next_unique(self, base: str) -> str:
        """The name that :meth:`unique` would return, which is not reserved."""
        full, is_unchanged = self._full(base)
        return full if is_unchanged else _with_number(full, self._next_number(full))

    def numbered(self, full: str) -> str:
        """Reserve and return the full name ``full``, with a number if it is taken."""
        number = self._next_number(full)
        name = _with_number(full, number)
        self._taken[name.lower()] = 1
        self._taken[full.lower()] = number + 1
        return name

    def _full(self, base: str) -> tuple[str, bool]:
        """The full name of ``base``, and whether it is used without a number, as that of a scope."""
        if not base.endswith("/"):
            return f"{self.scope}{base}", False
        full = base[:-1]
        return full, full not in self._elements

    def _next_number(self, full: str) -> int:
        """The number that makes a full name unique; 0 for the name without a number."""
        key = full.lower()
        number = self._taken.get(key, 0)
        while number and f"{key}_{number}" in self._taken:
            number += 1
        return number

    @contextmanager
    def scoped(self, name: str | None) -> Iterator[str]:
        """A context whose names are in the scope ``name``: a new one, or an old one if it ends in ``/``.

        ``as`` binds the scope's full name with its ``/``. None and ``""`` leave all scopes.
        """
        before = self.scope
        inner = name or ""
        if inner and not inner.endswith("/"):
            inner = f"{self.unique(check_name(inner, before))}/"
        self.scope = inner
        try:
            yield inner
        finally:
            self.scope = before


def check_name(name: str, scope: str = "") -> str:
    """``name``, if it is valid in ``scope``.

    Raises:
        InvalidArgumentError: it has characters that names may not have.
    """
    form = _INNER if scope else _FIRST
    if not isinstance(name, str) or not form.fullmatch(name):
        raise InvalidArgumentError(
            f"{name!r} is not a valid scope or op name. Names are letters, digits and the characters _ . \\ "
            "/ > -, and begin with a letter, a digit or a dot."
        )
    return name


def _with_number(full: str, number: int) -> str:
    return f"{full}_{number}" if number else full
