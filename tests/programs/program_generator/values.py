"""Types of the values in a random program: a dtype, and sizes that are numbers or known only at run time."""

from __future__ import annotations

from dataclasses import dataclass

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
DTYPES = (*FLOATS, *INTEGERS, *COMPLEX, "bool")


@dataclass(frozen=True)
class DynamicSize:
    """A size that is known only at run time; sizes of one name are equal.

    Attributes:
        name: unique in the program.
        maximum: no call has a larger one.
    """

    name: str
    maximum: int


Size = int | DynamicSize


def max_size_of(size: Size) -> int:
    """The largest number that a size can be."""
    return size if isinstance(size, int) else size.maximum


@dataclass(frozen=True)
class Value:
    """A name in the program's source, and the type of what it holds."""

    name: str
    dtype: str
    sizes: tuple[Size, ...]

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def max_elements(self) -> int:
        """The largest number of elements that it can have."""
        count = 1
        for size in self.sizes:
            count *= max_size_of(size)
        return count

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_integer(self) -> bool:
        return self.dtype in INTEGERS

    @property
    def is_signed(self) -> bool:
        return self.is_float or self.dtype.startswith("int")

    @property
    def is_real(self) -> bool:
        """Whether its elements are numbers that have an order."""
        return self.is_float or self.is_integer


def broadcasts_to(sizes: tuple[Size, ...], target: tuple[Size, ...]) -> bool:
    """Whether a value of these sizes surely broadcasts to the target without changing it."""
    if len(sizes) > len(target):
        return False
    return all(mine in (1, theirs) for mine, theirs in zip(sizes[::-1], target[::-1], strict=False))
