"""A module of LLVM IR with its exported functions: the unit of compilation and caching."""

from __future__ import annotations

from typing import Final

from dualflow.core.digest import digest
from dualflow.core.records import NamedTuple

QUICKLY_COMPILED: Final = "; compiled without optimisations\n"
"""The first line of modules of scalar code that runs once in a call, a step, a task, a parallel loop, a block
of a matrix product, or an allocation of many bytes.

LLVM takes a quarter of the time for them if it doesn't optimise their machine code. Allocations take 20 ns
longer, the sizes of a call at most 30 ns, and the others at most 2 ns.
"""


class IrSource(NamedTuple):
    """A module of IR, and its exported functions.

    Sources that are linked together have different exports: the name of a kernel contains the digest of its
    text.
    """

    text: str
    exports: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the first exported function."""
        return self.exports[0]


def named_by_content(text: str, name: str) -> IrSource:
    """``text`` with its function ``name`` renamed by the digest of the text: equal sources have equal names.

    >>> one, two = (named_by_content(f"define i32 @k() {{ ret i32 {n} }}", "k") for n in (1, 2))
    >>> one.name == two.name, one.name == named_by_content("define i32 @k() { ret i32 1 }", "k").name
    (False, True)
    >>> one.text == f"define i32 @{one.name}() {{ ret i32 1 }}"
    True
    """
    unique = f"{name}_{digest(text.encode()).hex()[:32]}"
    return IrSource(text.replace(f"@{name}(", f"@{unique}("), (unique,))
