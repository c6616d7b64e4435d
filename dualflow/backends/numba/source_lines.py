"""Scalars as Python source, and the lines that compute them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple


def type_name(dtype: DType) -> str:
    """The name of a numeric dtype in source: ``f32``, ``u8``, ``b1``.

    >>> from dualflow.core.dtypes import bool_, float32
    >>> type_name(float32), type_name(bool_)
    ('f32', 'b1')
    """
    return "b1" if dtype.is_bool else f"{dtype.kind}{8 * dtype.size}"


class SourceValue(NamedTuple):
    """A name or a constant of a dtype.

    Attributes:
        reorderable: whether lanes of a loop carry it, so that sums and products may be reordered.
    """

    text: str
    dtype: DType
    reorderable: bool = False


class Lines:
    """Source lines under construction, and the names used so far."""

    def __init__(self, depth: int = 1) -> None:
        self.text: list[str] = []
        self.depth = depth
        self._count = 0

    def add(self, line: str) -> None:
        self.text.append("    " * self.depth + line)

    def rename(self, old: str, new: str) -> bool:
        """Rename ``old`` to ``new`` in the last line, if it assigns that; returns whether it does."""
        head = "    " * self.depth + f"{old} = "
        if not old.startswith("t") or not self.text or not self.text[-1].startswith(head):
            return False
        self.text[-1] = "    " * self.depth + f"{new} = {self.text[-1][len(head) :]}"
        return True

    def name(self) -> str:
        """A new name of a temporary."""
        self._count += 1
        return f"t{self._count}"

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A context that adds ``head``, and indents the lines inside."""
        self.add(head)
        self.depth += 1
        length = len(self.text)
        yield
        if len(self.text) == length:
            self.add("pass")
        self.depth -= 1
