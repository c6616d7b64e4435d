"""A module of LLVM IR with the functions that others call: compiled, cached and shared as a whole."""

from __future__ import annotations

from dualflow.backends.runtime.digest import digest
from dualflow.core.records import NamedTuple


class IrSource(NamedTuple):
    """IR, and the functions in it whose addresses are wanted.

    Sources that are loaded together have different exports: a kernel's name says what is in it.
    """

    text: str
    exports: tuple[str, ...]

    @property
    def name(self) -> str:
        """The first function."""
        return self.exports[0]


def named_by_content(text: str, name: str) -> IrSource:
    """``text`` with its function ``name`` called by the hash of the text: equal sources have equal names.

    >>> one, two = (named_by_content(f"define i32 @k() {{ ret i32 {n} }}", "k") for n in (1, 2))
    >>> one.name == two.name, one.name == named_by_content("define i32 @k() { ret i32 1 }", "k").name
    (False, True)
    >>> one.text == f"define i32 @{one.name}() {{ ret i32 1 }}"
    True
    """
    unique = f"{name}_{digest(text.encode()).hex()[:32]}"
    return IrSource(text.replace(f"@{name}(", f"@{unique}("), (unique,))
