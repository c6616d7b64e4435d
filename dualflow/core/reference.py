"""``Reference``: a key of dicts and sets for a tensor or variable, which have no hash."""

from __future__ import annotations

from typing import Any


class Reference:
    """A hashable reference to a tensor or variable, compared by identity; :meth:`deref` returns it."""

    __slots__ = ("_referent",)

    def __init__(self, referent: Any) -> None:
        self._referent = referent

    def deref(self) -> Any:
        """The tensor or variable itself."""
        return self._referent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._referent is self._referent

    def __hash__(self) -> int:
        return id(self._referent)

    def __repr__(self) -> str:
        return f"<Reference to {self._referent!r}>"
