"""IR types: kind, width and lanes of a register, and its literals."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

import numpy as np

from dualflow.core.dtypes import late_dtype
from dualflow.core.errors import DTypeError

_SCALARS = {("f", 16): "half", ("f", 32): "float", ("f", 64): "double", ("p", 64): "ptr", ("v", 0): "void"}


class Type:
    """An interned IR type: equal types are the same object.

    ``kind`` is 'f' float, 'i' signed, 'u' unsigned, 'b' boolean, 'p' pointer, 'v' void, 'w' bfloat16, whose
    bits are an integer in registers too, 'c' complex: two floats for each lane; a scalar has 1 lane. LLVM's
    integers have no sign: a value's kind selects between, for example, ``sdiv`` and ``udiv``.

    >>> str(Type("f", 32, 16)), str(I64), Type("f", 32).as_int is I32, F32.vector(8).suffix
    ('<16 x float>', 'i64', True, 'v8f32')
    """

    __slots__ = ("_vectors", "align", "bits", "kind", "lanes", "memory", "nbytes", "scalar", "suffix", "text")
    _interned: ClassVar[dict[tuple[str, int, int], Type]] = {}
    kind: str
    bits: int
    lanes: int
    text: str
    suffix: str
    scalar: Type
    """The element type."""
    memory: Type
    """The type in memory: a boolean is a byte there."""
    nbytes: int
    """Bytes of one element in memory."""
    align: int
    """The alignment of an element in memory, in bytes."""
    _vectors: dict[int, Type]

    def __new__(cls, kind: str, bits: int, lanes: int = 1) -> Type:
        interned = cls._interned.get((kind, bits, lanes))
        return interned or cls._interned.setdefault((kind, bits, lanes), cls._create(kind, bits, lanes))

    @classmethod
    def _create(cls, kind: str, bits: int, lanes: int) -> Type:
        self = object.__new__(cls)
        self.kind, self.bits, self.lanes = kind, bits, lanes
        scalar = _SCALARS.get((kind, bits)) or f"i{bits}"
        short = "p0" if kind == "p" else f"{'f' if kind == 'f' else 'i'}{bits}"
        self.text = scalar if lanes == 1 else f"<{lanes} x {scalar}>"
        self.suffix = short if lanes == 1 else f"v{lanes}{short}"
        self.nbytes = self.align = max(bits // 8, 1)
        if kind == "c":
            both = cls("f", bits // 2, 2 * lanes)
            self.text, self.suffix, self.align = both.text, both.suffix, both.nbytes
        self.scalar = self if lanes == 1 else Type(kind, bits)
        self.memory = Type("u", 8, lanes) if kind == "b" else self
        self._vectors = {}
        return self

    @staticmethod
    def of_dtype(dtype: np.dtype[Any] | type, lanes: int = 1) -> Type:
        """The type that holds one element of a NumPy dtype (bool, any int, float16/32/64, bfloat16, complex).

        >>> str(Type.of_dtype(np.float64, 4)), Type.of_dtype(np.bool_) is BOOL
        ('<4 x double>', True)
        """
        dtype = np.dtype(dtype)
        if dtype.kind == "V" and dtype.name == "bfloat16":
            return Type("w", 16, lanes)
        if dtype.kind not in "fiubc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
            raise DTypeError(f"no machine type for dtype {dtype}: only numbers of up to 64 bits have one")
        return Type(dtype.kind, 1 if dtype.kind == "b" else 8 * dtype.itemsize, lanes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of one element."""
        if self.kind == "w":
            brain: np.dtype[Any] = late_dtype("bfloat16").dtype
            return brain
        if self.kind not in "fiubc":
            raise DTypeError(f"no dtype holds a {self}")
        return np.dtype("?" if self.kind == "b" else f"{self.kind}{self.nbytes}")

    def vector(self, lanes: int) -> Type:
        """The vector type of this element type with ``lanes`` lanes."""
        vector = self._vectors.get(lanes)
        if vector is None:
            vector = self._vectors[lanes] = Type(self.kind, self.bits, lanes)
        return vector

    @property
    def as_int(self) -> Type:
        """The signed integer type of the same width and lanes."""
        return Type("i", self.bits, self.lanes)

    @property
    def part(self) -> Type:
        """The float type of a complex type's parts, with as many lanes."""
        return Type("f", self.bits // 2, self.lanes)

    def literal(self, number: complex) -> str:
        """A Python number as a constant of this type: floats round to nearest, integers wrap.

        >>> F32.literal(0.1), I8.literal(-1), BOOL.vector(2).literal(True), Type("f", 16).literal(1)
        ('0x3FB99999A0000000', '255', 'splat (i1 true)', '0xH3C00')
        """
        if self.kind == "c":
            part = self.part.scalar
            both = [f"{part} {part.literal(x)}" for x in (number.real, number.imag)]
            return f"<{', '.join(both * self.lanes)}>"
        assert not isinstance(number, complex)
        if self.kind == "f":
            text = _float_literal(self.bits, float(number))
        elif self.kind == "b":
            text = "true" if number else "false"
        elif self.kind == "w":
            text = str(int(np.array(number, self.dtype).view(np.uint16)))
        elif number == int(number):
            text = str(int(number) & ((1 << self.bits) - 1))
        else:
            raise DTypeError(f"{number} is not an integer: cast the {self} value to a float type first")
        return text if self.lanes == 1 else f"splat ({self.scalar.text} {text})"

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def _float_literal(bits: int, number: float) -> str:
    """The literal of a float: LLVM writes float and double as the bits of a double, half as its own bits."""
    if bits != 64:
        form = "<f" if bits == 32 else "<e"
        try:
            (number,) = struct.unpack(form, struct.pack(form, number))
        except OverflowError:
            number = float("inf") if number > 0 else float("-inf")
        if bits == 16:
            return f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}"
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


F16, F32, F64 = Type("f", 16), Type("f", 32), Type("f", 64)
I8, I16, I32, I64 = Type("i", 8), Type("i", 16), Type("i", 32), Type("i", 64)
U8, U16, U32, U64 = Type("u", 8), Type("u", 16), Type("u", 32), Type("u", 64)
BOOL, PTR, VOID = Type("b", 1), Type("p", 64), Type("v", 0)
