"""Merged objects define the symbols of all their inputs, and both linkers accept them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import pytest

from dualflow.backends.llvm.runtime import compiler, elf, jit, llvm_linker
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.runtime.object_file import UnsupportedObject, read
from dualflow.backends.llvm.runtime.object_merge import merge

pytestmark = pytest.mark.skipif(not elf.SUPPORTED, reason="the objects of other platforms are not joined")
UNARY = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)

TABLE = """
    @table = private constant [2 x double] [double {0}.0, double {1}.0]
    @calls = internal global i64 0
    define internal double @entry_of_table(i64 %n) noinline {{
      %at = getelementptr [2 x double], ptr @table, i64 0, i64 %n
      %entry = load double, ptr %at
      ret double %entry
    }}
    define double @{2}(double %x) {{
      %n = load i64, ptr @calls
      %next = xor i64 %n, 1
      store i64 %next, ptr @calls
      %y = call double @entry_of_table(i64 %n)
      ret double %y
    }}
"""
"""A function that alternately returns the two numbers, with data of each kind and local symbols."""
CALLER = """
    declare double @first(double)
    declare double @second(double)
    declare double @cbrt(double)
    define double @sum(double %x) {
      %a = call double @first(double %x)
      %b = call double @second(double %x)
      %c = call double @cbrt(double %x)
      %ab = fadd double %a, %b
      %y = fadd double %ab, %c
      ret double %y
    }
"""


def objects(*texts: str) -> list[bytes]:
    return [code.code for code in compiler.build_all(texts, 128)]


def tables() -> tuple[str, str]:
    return TABLE.format(2, 3, "first"), TABLE.format(50, 70, "second")


def by_our_linker(code: bytes, exports: Sequence[str]) -> tuple[object, Callable[[str], int]]:
    image = elf.load(code, jit.process_symbol)
    assert set(image.addresses) == set(exports)
    return image, image.addresses.__getitem__


def by_llvms_linker(code: bytes, exports: Sequence[str]) -> tuple[object, Callable[[str], int]]:
    loaded = llvm_linker.load([code], exports, {"cbrt": jit.process_symbol("cbrt")})
    return loaded, loaded.addresses.__getitem__


LINKERS = pytest.mark.parametrize("load", [by_our_linker, by_llvms_linker])


@LINKERS
def test_each_object_keeps_its_own_data_and_functions(
    load: Callable[..., tuple[object, Callable[[str], int]]],
):
    _kept, address = load(merge(objects(*tables())), ["first", "second"])
    first, second = UNARY(address("first")), UNARY(address("second"))
    assert [first(0.0), second(0.0), second(0.0), first(0.0), first(0.0)] == [2.0, 50.0, 70.0, 3.0, 2.0]


@LINKERS
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_objects_call_each_other_and_what_is_outside(
    load: Callable[..., tuple[object, Callable[[str], int]]], order: tuple[int, ...]
) -> None:
    codes = objects(*tables(), CALLER)
    _kept, address = load(merge([codes[i] for i in order]), ["first", "second", "sum"])
    assert UNARY(address("sum"))(8.0) == 2.0 + 50.0 + 2.0


def test_a_merged_object_can_be_merged_again() -> None:
    first, second, caller = objects(*tables(), CALLER)
    _kept, address = by_our_linker(merge([merge([first, second]), caller]), ["first", "second", "sum"])
    assert UNARY(address("sum"))(27.0) == 2.0 + 50.0 + 3.0


def test_names_that_only_an_object_has_are_not_in_what_is_merged() -> None:
    assert {name for name in read(merge(objects(*tables()))).names if name} == {"first", "second"}


def test_symbols_defined_twice_are_refused() -> None:
    with pytest.raises(UnsupportedObject, match="first is defined twice"):
        merge(objects(tables()[0], tables()[0]))


@pytest.mark.parametrize("keep", [0, 30, 200, -1])
def test_a_part_that_is_cut_short_is_refused(keep: int) -> None:
    whole, cut = objects(*tables())
    with pytest.raises(UnsupportedObject):
        merge([whole, cut[:keep]])


def test_constants_keep_their_alignment() -> None:
    vector = "<16 x float>"
    text = f"@row = private constant {vector} splat (float 1.5), align 64\n"
    text += f"define double @{{}}(double %x) {{{{ %v = load {vector}, ptr @row, align 64\n"
    text += f"%e = extractelement {vector} %v, i32 3\n %y = fpext float %e to double\n ret double %y }}}}"
    byte = "@one = private constant i8 7\n define double @b(double %x) { %n = load i8, ptr @one\n"
    byte += "%y = uitofp i8 %n to double\n ret double %y }"
    _kept, address = by_our_linker(merge(objects(byte, text.format("v"))), ["b", "v"])
    assert (UNARY(address("b"))(0.0), UNARY(address("v"))(0.0)) == (7.0, 1.5)


def test_sources_that_can_not_be_joined_are_loaded_by_llvm() -> None:
    """The object reader rejects common symbols."""
    text = "@shared = common global double 0.0\ndefine double @f(double %x) {\n"
    text += "  store double %x, ptr @shared\n  %y = load volatile double, ptr @shared\n  ret double %y\n}\n"
    library = jit.compile_sources([IrSource(text, ("f",)), IrSource(tables()[0], ("first",))], {})
    assert "common" in library.fallback
    assert (UNARY(library.address("f"))(0.5), UNARY(library.address("first"))(0.0)) == (0.5, 2.0)
