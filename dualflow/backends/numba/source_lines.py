"""Scalars as Python source, and the lines that compute them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dualflow.core.dtypes import DType
from dualflow.core.records import NamedTuple
from dualflow.scalar.text_maths import SourceLines, TextValue


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


class Lines(SourceLines):
    """Lines of Python under construction."""

    def definition_head(self, value: TextValue, name: str) -> str:
        return f"{name} = "

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
