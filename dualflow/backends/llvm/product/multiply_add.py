"""The multiply-add of the micro-kernels: of floats, or of groups of four 8-bit integers.

An element of a product of integers is a group: four unsigned bytes of A along K, and four signed bytes of B.
Their products are added to a sum of 32 bits, which wraps. With VNNI that is one instruction. AVX2 and
AVX-512BW multiply pairs of 16-bit integers and add them, exactly: the even and the odd bytes of a group are
two pairs. (``vpmaddubsw``, which takes bytes, would saturate at 16 bits.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dualflow.backends.llvm.runtime import cpu_fingerprint
from dualflow.backends.llvm.text import I16, I32, U16, U32, EmittedValue
from dualflow.core.records import NamedTuple

Parts = Sequence[EmittedValue]
_GROUP: Final = 4
_EVEN: Final = 0x00FF


class MultiplyAdd(NamedTuple):
    """The computation of ``left * right + total`` for elements of A and B.

    Attributes:
        left, right: what is computed once for an element of A, and of B.
        add: the sum, from the results of both.
    """

    left: Callable[[EmittedValue], Parts]
    right: Callable[[EmittedValue], Parts]
    add: Callable[[Parts, Parts, EmittedValue], EmittedValue]


def multiply_add(left: EmittedValue, right: EmittedValue, term: EmittedValue) -> EmittedValue:
    """``left * right + term``: one instruction if the processor has FMA, else two; never a call."""
    if left.type.kind != "f":
        return left * right + term
    return left.emitter.intrinsic("llvm.fmuladd", left, right, term)


def _identity(x: EmittedValue) -> Parts:
    return (x,)


FLOATS: Final = MultiplyAdd(_identity, _identity, lambda x, y, total: multiply_add(x[0], y[0], total))
"""The multiply-add of floats."""


def _vnni(x: Parts, y: Parts, total: EmittedValue) -> EmittedValue:
    name = "llvm.x86.avx512.vpdpbusd"
    return total.emitter.intrinsic(name, total, x[0], y[0], overloads=str(total.type.bits * total.type.lanes))


def _even_and_odd(x: EmittedValue) -> Parts:
    """The unsigned bytes of groups as 16-bit integers: those at even, and at odd positions."""
    pairs = x.bitcast(U16.vector(2 * x.type.lanes))
    return pairs & _EVEN, pairs >> 8


def _signed_even_and_odd(y: EmittedValue) -> Parts:
    """The signed bytes at even and at odd positions, each sign-extended to 16 bits."""
    pairs = y.bitcast(I16.vector(2 * y.type.lanes))
    return (pairs << 8) >> 8, pairs >> 8


def _pairs(x: Parts, y: Parts, total: EmittedValue) -> EmittedValue:
    wide = total.type.lanes == 16
    name, suffix = ("llvm.x86.avx512.pmaddw.d", "512") if wide else ("llvm.x86.avx2.pmadd", "wd")
    for left, right in zip(x, y, strict=True):
        operand = left.bitcast(right.type)
        total += total.emitter.intrinsic(name, operand, right, ret=total.type, overloads=suffix)
    return total


def _bytes(x: EmittedValue) -> Parts:
    """The four unsigned bytes of groups as 32-bit integers."""
    words = x.bitcast(U32.vector(x.type.lanes)) if x.type.lanes > 1 else x.bitcast(U32)
    return [((words >> (8 * i)) & 0xFF).bitcast(x.type) for i in range(_GROUP)]


def _signed_bytes(y: EmittedValue) -> Parts:
    return [(y << (24 - 8 * i)) >> 24 for i in range(_GROUP)]


def _by_bytes(x: Parts, y: Parts, total: EmittedValue) -> EmittedValue:
    for left, right in zip(x, y, strict=True):
        total += left * right
    return total


VNNI: Final = MultiplyAdd(_identity, _identity, _vnni)
PAIRS: Final = MultiplyAdd(_even_and_odd, _signed_even_and_odd, _pairs)
BYTES: Final = MultiplyAdd(_bytes, _signed_bytes, _by_bytes)


def integer_multiply_add(bits: int, extensions: frozenset[str] | None = None) -> MultiplyAdd:
    """The multiply-add of groups for vectors of this width.

    ``extensions`` are those of the processor, by default of this one.
    """
    present = cpu_fingerprint.features() if extensions is None else extensions
    vnni = {"avx512_vnni", "avx512vnni"} if bits == 512 else {"avx_vnni", "avxvnni"}
    if present & vnni:
        return VNNI
    return PAIRS if ("avx512bw" if bits == 512 else "avx2") in present else BYTES


assert I32.bits == 8 * _GROUP
