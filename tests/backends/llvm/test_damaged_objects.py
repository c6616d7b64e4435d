"""Objects with a valid digest that no compiler wrote: refused or linked, without exception or crash.

Bounds find what reaches outside of the object. They can't find a changed instruction, or a relocation that
was moved within its section: that is what the cache's digest is for, so nothing that was linked here is run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dualflow.backends.llvm.runtime import compiler, elf, jit, object_file
from dualflow.backends.runtime import object_cache

pytestmark = pytest.mark.skipif(not elf.SUPPORTED, reason="the linker is for 64-bit Linux on x86-64")

SOURCE_ROOT = Path(jit.__file__).parents[4]
MUTATIONS = 5000

TEXT = """
declare double @sin(double)
@count = internal global i64 0
@pointers = internal constant [2 x ptr] [ptr @minus, ptr @count]
@zeros = internal global [50 x i64] zeroinitializer
define double @minus(double %x) noinline { %y = fneg double %x  ret double %y }
define double @f(double %x) {
  %near = call double @minus(double %x)
  %far = call double @sin(double %near)
  %n = load i64, ptr @count
  %at = getelementptr [2 x ptr], ptr @pointers, i64 0, i64 %n
  %function = load ptr, ptr %at
  %back = call double %function(double %far)
  %zero.at = getelementptr [50 x i64], ptr @zeros, i64 0, i64 %n
  %zero = load i64, ptr %zero.at
  %zero.f = sitofp i64 %zero to double
  %scaled = fmul double %back, 0.125
  %y = fadd double %scaled, %zero.f
  ret double %y
}
"""

# The mutations are drawn and linked in a process of their own, so that a crash is seen.
FUZZ = """
import json, random, struct, sys
from dualflow.backends.llvm.runtime import elf, object_file

whole = open(sys.argv[1], "rb").read()
drawn = random.Random(7)
extremes = [0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 40]
extremes += [1 << 62, 1 << 63, (1 << 63) - 1, (1 << 64) - 1, (1 << 64) - 4096, len(whole), len(whole) - 1]
at, count = struct.unpack_from("<Q", whole, 40)[0], struct.unpack_from("<H", whole, 60)[0]
tables = [(0, 64), (at, 64 * count)]  # the header, the headers of sections, symbols, relocations, names
for i in range(count):
    kind, offset, size = struct.unpack_from("<I16xQQ", whole, at + 64 * i + 4)
    tables += [(offset, size)] * (3 if kind == 4 else 1 if kind in (2, 3) and size else 0)

def flipped(code):
    for _ in range(drawn.randint(1, 8)):
        code[drawn.randrange(len(code))] ^= 1 << drawn.randrange(8)

def set_bytes(code):
    for _ in range(drawn.randint(1, 8)):
        code[drawn.randrange(len(code))] = drawn.randrange(256)

def cut(code):
    del code[drawn.randrange(len(code)):]

def extreme(code):
    start, size = drawn.choice(tables)
    width = drawn.choice([1, 2, 4, 8])
    place = start + drawn.randrange(max(1, size // width)) * width
    code[place:place + width] = (drawn.choice(extremes) & ((1 << 8 * width) - 1)).to_bytes(width, "little")

def moved(code):
    start, size = drawn.choice(tables)
    length = min(size, drawn.choice([8, 24, 64]))
    source = drawn.randrange(len(code) - length)
    code[start:start + length] = code[source:source + length]

def find(name):
    if name != "sin":
        raise KeyError(name)
    return 1 << 46

counts = {"linked": 0, "refused": 0}
for mutation in range(int(sys.argv[2])):
    code = bytearray(whole)
    drawn.choice([flipped, set_bytes, cut, extreme, extreme, moved])(code)
    try:
        elf.load(bytes(code), find).unload()
        counts["linked"] += 1
    except (object_file.UnsupportedObject, KeyError):
        counts["refused"] += 1
print(json.dumps(counts))
"""


@pytest.fixture(scope="module")
def code() -> bytes:
    return compiler.build(TEXT, 128).code


def test_no_mutation_raises_or_crashes(code: bytes, tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(code)
    command = [sys.executable, "-X", "faulthandler", "-c", FUZZ, str(path), str(MUTATIONS)]
    environment = os.environ | {"PYTHONPATH": str(SOURCE_ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert sum(counts.values()) == MUTATIONS
    assert counts["refused"] > MUTATIONS // 4  # most of an object is code, whose bytes may be any


def section_headers(code: bytes) -> list[int]:
    """Where each section's header is."""
    at, count = int.from_bytes(code[40:48], "little"), int.from_bytes(code[60:62], "little")
    return [at + 64 * i for i in range(count)]


def field(code: bytes, at: int, width: int) -> int:
    return int.from_bytes(code[at : at + width], "little")


def with_field(code: bytes, at: int, width: int, value: int) -> bytes:
    return code[:at] + value.to_bytes(width, "little") + code[at + width :]


def of_type(code: bytes, kind: int) -> int:
    """The header of the first section of a type that has content."""
    headers = (
        at for at in section_headers(code) if field(code, at + 4, 4) == kind and field(code, at + 32, 8)
    )
    return next(headers)


@pytest.mark.parametrize("offset", [1 << 12, (1 << 32) - 3, 1 << 62, (1 << 64) - 8])
def test_a_relocation_beyond_its_section_is_refused(code: bytes, offset: int) -> None:
    rows = field(code, of_type(code, object_file.RELOCATIONS) + 24, 8)
    with pytest.raises(object_file.UnsupportedObject, match="a relocation beyond its section"):
        elf.load(with_field(code, rows, 8, offset), lambda _: 8)


def test_a_relocation_at_the_very_end_of_its_section_is_refused(code: bytes) -> None:
    header = of_type(code, object_file.RELOCATIONS)
    target = section_headers(code)[field(code, header + 44, 4)]
    size = field(code, target + 32, 8)
    damaged = with_field(code, field(code, header + 24, 8), 8, size - 3)
    with pytest.raises(object_file.UnsupportedObject, match="a relocation beyond its section"):
        elf.load(damaged, lambda _: 8)


def damaged_header(code: bytes, kind: int, offset: int, width: int, value: int) -> bytes:
    return with_field(code, of_type(code, kind) + offset, width, value)


@pytest.mark.parametrize(
    ("kind", "offset", "width", "value", "refusal"),
    [
        (object_file.PROGBITS, 32, 8, 1 << 40, "a section of 1099511627776 bytes"),
        (object_file.ZEROS, 32, 8, 1 << 30, "a section of 1073741824 bytes"),
        (object_file.PROGBITS, 24, 8, (1 << 64) - 8, "a section beyond its end"),
        (object_file.PROGBITS, 48, 8, 3, "alignment 3"),
        (object_file.PROGBITS, 48, 8, 1 << 40, "alignment 1099511627776"),
        (object_file.PROGBITS, 8, 8, 7, "code that may be written to"),
        (object_file.PROGBITS, 4, 4, 99, "a section of type 99"),
        (object_file.SYMBOLS, 40, 4, 999, "strings in section 999"),
        (object_file.SYMBOLS, 32, 8, 25, "symbols in 25 bytes"),
        (object_file.SYMBOLS, 4, 4, 3, "0 tables of symbols"),
        (object_file.RELOCATIONS, 40, 4, 0, "relocations by another table"),
        (object_file.RELOCATIONS, 32, 8, 23, "relocations in 23 bytes"),
    ],
)
def test_a_section_that_makes_no_sense_is_refused(
    code: bytes, kind: int, offset: int, width: int, value: int, refusal: str
) -> None:
    with pytest.raises(object_file.UnsupportedObject, match=refusal):
        elf.load(damaged_header(code, kind, offset, width, value), lambda _: 8)


@pytest.mark.parametrize(
    ("offset", "width", "value", "refusal"),
    [
        (0, 4, 1 << 31, "a name beyond the strings"),
        (8, 8, 1 << 63, "beyond its section"),
        (4, 1, 6, "thread-local"),
    ],
)
def test_a_symbol_that_makes_no_sense_is_refused(
    code: bytes, offset: int, width: int, value: int, refusal: str
) -> None:
    last = field(code, of_type(code, object_file.SYMBOLS) + 24, 8)
    last += field(code, of_type(code, object_file.SYMBOLS) + 32, 8) - 24
    while field(code, last + 6, 2) == 0:  # one that is defined
        last -= 24
    with pytest.raises(object_file.UnsupportedObject, match=refusal):
        elf.load(with_field(code, last + offset, width, value), lambda _: 8)


@pytest.mark.parametrize(("offset", "value"), [(12, 1 << 20), (12, 0), (8, 77)])
def test_a_relocation_that_makes_no_sense_is_refused(code: bytes, offset: int, value: int) -> None:
    rows = field(code, of_type(code, object_file.RELOCATIONS) + 24, 8)
    with pytest.raises(object_file.UnsupportedObject, match="relocation"):
        elf.load(with_field(code, rows + offset, 4, value), lambda _: 8)


def test_a_refused_entry_is_recompiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(tmp_path / "cache"))
    first = jit.compile_text(TEXT, ["f"], {})
    (entry,) = (tmp_path / "cache").iterdir()
    stored = object_cache.load(first.report.key)
    assert stored is not None
    rows = field(stored, of_type(stored, object_file.RELOCATIONS) + 24, 8)
    object_cache.store(first.report.key, with_field(stored, rows, 8, 1 << 40))
    again = jit.compile_text(TEXT, ["f"], {})
    assert not again.report.from_cache
    assert object_cache.load(first.report.key) == stored
    assert entry.exists()
