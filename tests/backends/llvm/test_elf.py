"""The ELF linker: same results as LLVM's, protected pages, and errors for unsupported objects."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dualflow.backends.llvm.runtime import compiler, elf, jit, llvm_linker
from dualflow.backends.llvm.runtime.object_file import UnsupportedObject
from dualflow.core.errors import InternalError

pytestmark = pytest.mark.skipif(not elf.SUPPORTED, reason="the linker is for 64-bit Linux on x86-64")

UNARY = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
SOURCE_ROOT = Path(jit.__file__).parents[4]

# Each way in which code refers to something: constants, a table of jumps, pointers within data,
# data that changes, functions elsewhere, variables elsewhere, functions of its own.
EVERYTHING = """
declare double @outside(double)
@elsewhere = external global double
@count = internal global i64 0
@pointers = internal constant [2 x ptr] [ptr @minus, ptr @count]
@zeros = internal global [5000 x i64] zeroinitializer

define double @minus(double %x) noinline { %y = fneg double %x  ret double %y }

define double @everything(double %x) {
  %near = call double @minus(double %x)
  %far = call double @outside(double %near)
  %from.afar = load double, ptr @elsewhere
  %n = load i64, ptr @count
  %n.next = add i64 %n, 1
  store i64 %n.next, ptr @count
  %which = and i64 %n, 0
  %pointer.at = getelementptr [2 x ptr], ptr @pointers, i64 0, i64 %which
  %function = load ptr, ptr %pointer.at
  %back = call double %function(double %far)
  %zero.at = getelementptr [5000 x i64], ptr @zeros, i64 0, i64 %n
  %zero = load i64, ptr %zero.at
  %counted = add i64 %n.next, %zero
  %counted.f = sitofp i64 %counted to double
  %scaled = fmul double %back, 0.125
  %shifted = fadd double %scaled, %from.afar
  %y = fadd double %shifted, %counted.f
  ret double %y
}

define i64 @choose(i64 %i) {
entry:
  switch i64 %i, label %other [
    i64 0, label %a
    i64 1, label %b
    i64 2, label %c
    i64 3, label %d
    i64 4, label %e
  ]
a:
  %av = call i64 @big(i64 11)
  ret i64 %av
b:
  ret i64 22
c:
  %cv = call i64 @big(i64 33)
  ret i64 %cv
d:
  ret i64 44
e:
  ret i64 55
other:
  ret i64 -1
}

define i64 @big(i64 %i) noinline { %y = mul i64 %i, 1000000007  ret i64 %y }
"""


def loaded(text: str, **symbols: int) -> elf.Image:
    return elf.load(compiler.build(text, 128).code, lambda name: symbols[name])


def address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # a ctypes function


def access(place: int) -> str:
    """The access rights of the page at an address, as in ``r-x``; empty if nothing is there."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights = line.split()[:2]
        start, end = (int(bound, 16) for bound in span.split("-"))
        if start <= place < end:
            return rights[:3]
    return ""


def test_every_kind_of_reference_is_resolved() -> None:
    outside, elsewhere = UNARY(lambda x: 3 * x), ctypes.c_double(1000.0)
    image = loaded(EVERYTHING, outside=address(outside), elsewhere=ctypes.addressof(elsewhere))
    everything = UNARY(image.addresses["everything"])
    assert [everything(8.0) for _ in range(3)] == [1004.0, 1005.0, 1006.0]
    elsewhere.value = 0.0
    assert everything(8.0) == 7.0
    choose = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(image.addresses["choose"])
    assert [choose(i) for i in range(6)] == [11000000077, 22, 33000000231, 44, 55, -1]


def test_it_agrees_with_llvms_linker() -> None:
    outside, elsewhere = UNARY(math.cos), ctypes.c_double(2.5)
    symbols = {"outside": address(outside), "elsewhere": ctypes.addressof(elsewhere)}
    code = compiler.build(EVERYTHING, 128).code
    ours = elf.load(code, symbols.__getitem__)
    theirs = llvm_linker.load([code], ["everything"], symbols)
    points = [0.1 * i for i in range(50)]
    assert [UNARY(ours.addresses["everything"])(x) for x in points] == [
        UNARY(theirs.addresses["everything"])(x) for x in points
    ]


def test_global_names_have_addresses_and_internal_ones_have_not() -> None:
    image = loaded(EVERYTHING, outside=8, elsewhere=8)
    assert sorted(image.addresses) == ["big", "choose", "everything", "minus"]


def test_code_and_constants_are_protected_and_data_is_not() -> None:
    text = """
        @constant = constant [2 x i64] [i64 1, i64 2]
        @data = global i64 1
        define i64 @code() { %x = load i64, ptr @data  ret i64 %x }"""
    addresses = loaded(text).addresses
    assert (access(addresses["code"]), access(addresses["constant"]), access(addresses["data"])) == (
        "r-x",
        "r--",
        "rw-",
    )


def test_alignment_is_kept() -> None:
    text = "".join(f"@v{n} = global i8 1, align {n}\n" for n in (1, 64, 4096, 2, 512))
    addresses = loaded(text).addresses
    assert all(addresses[f"v{n}"] % n == 0 for n in (1, 64, 4096, 2, 512))


def test_unloading_gives_the_memory_back() -> None:
    image = loaded("define void @f() { ret void }")
    assert access(image.addresses["f"]) == "r-x"
    image.unload()
    assert access(image.addresses["f"]) == ""


def test_a_symbol_that_is_not_found_stops_the_load() -> None:
    with pytest.raises(KeyError, match="outside"):
        loaded(EVERYTHING, elsewhere=8)


def test_a_failed_load_leaves_no_memory() -> None:
    far = 1 << 46  # a relative address can't reach it

    def mapped_pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0])

    def growth() -> int:
        before = mapped_pages()
        for _ in range(100):
            with pytest.raises(UnsupportedObject, match="beyond 2 GiB"):
                elf.load(code, lambda _: far)
        return mapped_pages() - before

    text = "@far = external hidden global i64\ndefine i64 @f() { %x = load i64, ptr @far  ret i64 %x }"
    code = compiler.build(text, 128).code
    assert min(growth() for _ in range(3)) < 100  # now and then Python maps memory of its own


@pytest.mark.parametrize("content", [b"", b"text", bytes(64), b"\x7fELF\x01\x01\x01" + bytes(100)])
def test_data_that_is_no_object_file_is_refused(content: bytes) -> None:
    with pytest.raises(UnsupportedObject):
        elf.load(content, lambda _: 8)


def test_an_object_cut_short_is_refused() -> None:
    code = compiler.build("define double @f(double %x) { %y = fadd double %x, 1.5  ret double %y }", 128).code
    for size in range(0, len(code), 7):
        with pytest.raises(UnsupportedObject):
            elf.load(code[:size], lambda _: 8)


def test_thread_local_variables_are_refused() -> None:
    with pytest.raises(UnsupportedObject, match="thread-local"):
        loaded("@v = thread_local global i64 1\ndefine i64 @f() { %x = load i64, ptr @v  ret i64 %x }")


def test_objects_that_the_linker_refuses_are_linked_by_llvm() -> None:
    text = """
        @shared = common global double 0.0
        declare double @sin(double)
        define double @f(double %x) {
          %y = call double @sin(double %x)
          store double %y, ptr @shared
          %z = load volatile double, ptr @shared
          ret double %z
        }"""
    with pytest.raises(UnsupportedObject, match="common"):
        elf.load(compiler.build(text, 128).code, lambda _: 8)
    library = jit.compile_text(text, ["f"], {})
    assert UNARY(library.address("f"))(0.5) == math.sin(0.5)
    assert "common" in library.fallback
    with pytest.raises(InternalError, match="absent"):
        jit.compile_text(text, ["absent"], {})


def test_a_warm_process_does_not_import_llvm(tmp_path: Path) -> None:
    program = """
import sys
from dualflow.backends.llvm.runtime import jit
library = jit.compile_text("define void @warm() { ret void }", ["warm"], {})
print(library.report.from_cache, "dualflow.backends.llvm.runtime.llvm_library" in sys.modules)
"""
    printed = []
    for _ in range(2):
        environment = os.environ | {"PYTHONPATH": str(SOURCE_ROOT), "DUALFLOW_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", program]
        printed.append(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        )
    assert [line.split() for line in printed] == [["False", "True"], ["True", "False"]]
