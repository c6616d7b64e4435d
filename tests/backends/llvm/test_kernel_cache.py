"""The kernel cache: no graph compiles a kernel that another one has compiled, whatever entries are lost."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.runtime import elf, jit
from dualflow.backends.llvm.runtime.background_compile import BackgroundCompilation
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.runtime import object_cache

UNARY = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
LINKED = pytest.mark.skipif(not elf.SUPPORTED, reason="the objects of other platforms are not joined")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "cache"
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(where))
    return where


def times(factor: int) -> IrSource:
    name = f"times{factor}"
    return IrSource(
        f"define double @{name}(double %x) {{\n  %y = fmul double %x, {factor}.0\n  ret double %y\n}}\n",
        (name,),
    )


def loaded(*factors: int) -> jit.Library:
    """A library of functions, each of which is right."""
    library = jit.compile_sources([times(factor) for factor in factors], {})
    for factor in factors:
        assert UNARY(library.address(f"times{factor}"))(3.0) == 3.0 * factor
    return library


def key(factor: int) -> str:
    return loaded(factor).report.key


# Sources


def test_sources_together_are_one_library_with_the_functions_of_all() -> None:
    library = loaded(2, 3, 5)
    assert len({library.address(f"times{factor}") for factor in (2, 3, 5)}) == 3


def test_kernels_compiled_together_are_cached_one_by_one() -> None:
    assert not loaded(2, 3, 5).report.from_cache
    assert all(loaded(*some).report.from_cache for some in ((2,), (5, 3), (3, 2, 5), (2, 3, 5)))


def test_a_source_that_was_begun_ahead_is_compiled_once_and_stored() -> None:
    sources = [times(2), times(3)]
    with BackgroundCompilation() as ahead:
        ahead.begin(sources[0])
        ahead.begin(sources[0])
        library = jit.compile_sources(sources, {}, ahead)
    assert library.compiled == tuple(sources)
    assert UNARY(library.address("times2"))(3.0) == 6.0
    assert loaded(2).report.from_cache


def test_sources_that_were_begun_ahead_may_become_several_libraries() -> None:
    with BackgroundCompilation() as ahead:
        for factor in (2, 3):
            ahead.begin(times(factor))
        two, three = (jit.compile_sources([times(factor)], {}, ahead) for factor in (2, 3))
    assert UNARY(two.address("times2"))(3.0) == 6.0
    assert UNARY(three.address("times3"))(3.0) == 9.0


def test_nothing_is_begun_ahead_that_is_stored() -> None:
    loaded(2)
    with BackgroundCompilation() as ahead:
        ahead.begin(times(2))
        assert ahead.results() == {}


def test_a_damaged_object_that_was_not_begun_ahead_is_compiled_after_all(folder: Path) -> None:
    key(2)
    with BackgroundCompilation() as ahead:
        ahead.begin(times(2))
        for entry in folder.iterdir():
            entry.write_bytes(b"damaged")
        library = jit.compile_sources([times(2), times(3)], {}, ahead)
    assert set(library.compiled) == {times(2), times(3)}


def test_only_what_is_new_is_compiled() -> None:
    loaded(2, 3)
    cached, new = loaded(5).report, loaded(2, 3, 7).report
    assert not new.from_cache
    assert new.text_bytes > 2 * cached.text_bytes
    assert loaded(7).report.from_cache


@LINKED
def test_the_second_time_one_entry_is_read_for_all(folder: Path) -> None:
    together = loaded(2, 3, 5).report.key
    for entry in folder.iterdir():
        if entry.stem != together:
            entry.unlink()
    assert loaded(2, 3, 5).report.from_cache


def test_sources_call_each_other() -> None:
    caller = IrSource(
        "declare double @times2(double)\ndeclare double @times3(double)\n"
        "define double @both(double %x) {\n  %y = call double @times2(double %x)\n"
        "  %z = call double @times3(double %y)\n  ret double %z\n}\n",
        ("both",),
    )
    for _ in range(2):
        library = jit.compile_sources([caller, times(2), times(3)], {})
        assert UNARY(library.address("both"))(1.0) == 6.0


# Damage


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut short": lambda content: content[: len(content) // 2],
    "a bit flipped": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "foreign": lambda content: b"not ours at all",
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("which", ["all", "kernels", "together"])
def test_damaged_entries_are_made_again(folder: Path, damage: str, which: str) -> None:
    together = loaded(2, 3).report.key
    for entry in folder.iterdir():
        if which == "all" or (entry.stem == together) == (which == "together"):
            entry.write_bytes(DAMAGES[damage](entry.read_bytes()))
    loaded(2, 3)
    for factor in (2, 3):
        loaded(factor)
    assert all(loaded(*some).report.from_cache for some in ((2, 3), (2,), (3,)))


@LINKED
def test_where_what_is_read_together_is_damaged_nothing_is_compiled(folder: Path) -> None:
    together = loaded(2, 3).report.key
    (folder / f"{together}.dfo").write_bytes(b"")
    assert loaded(2, 3).report.from_cache
    assert object_cache.load(together) is not None


@LINKED
@pytest.mark.parametrize("content", [b"whole, but no object", None])
def test_a_valid_entry_of_another_kernel_is_recompiled(content: bytes | None) -> None:
    """Also if the entry is another kernel's object, which is valid in itself."""
    other = object_cache.load(key(11))
    assert other is not None
    object_cache.store(key(2), other if content is None else content)
    assert not loaded(2, 3).report.from_cache
    assert loaded(2).report.from_cache


def test_a_folder_that_can_not_be_written_to_is_done_without(folder: Path) -> None:
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file in the folder's place")
    assert not loaded(2, 3).report.from_cache
    assert not loaded(2, 3).report.from_cache


def test_racing_threads_find_whole_entries(folder: Path) -> None:
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for shift in range(5):
                loaded(*[2 + (first + shift + i) % 7 for i in range(4)])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {entry.suffix for entry in folder.iterdir()} == {".dfo"}


# Graphs


PROGRAM = """
import sys
import numpy as np
import dualflow as df

f = df.function(eval(sys.argv[1]))
f(df.constant(np.linspace(-1, 1, 40, dtype=np.float32).reshape(5, 8)))
(concrete,) = f.concrete_functions
print(all(library.report.from_cache for library in concrete.compiled.executable.libraries))
"""


def test_another_process_compiles_nothing_for_another_graph_of_known_kernels() -> None:
    def from_cache(text: str) -> bool:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, text], capture_output=True, text=True, check=True
        )
        return done.stdout.strip() == "True"

    assert not from_cache("lambda x: df.nn.softmax(x @ df.transpose(x)) @ x")
    assert from_cache("lambda x: df.nn.softmax(df.nn.softmax(x @ df.transpose(x)) @ x @ df.transpose(x)) @ x")


def executable(f: Callable[..., Any], *arrays: Any) -> Any:
    traced = df.function(f, sizes="exact")
    traced(*map(df.constant, arrays))
    (concrete,) = traced.concrete_functions
    return concrete.compiled.executable


def kernels(compiled: Any) -> set[str]:
    return {name for name in compiled.image.functions.values() if name.startswith("kernel")}


def test_a_graph_takes_the_kernels_that_another_one_has_in_memory() -> None:
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    # A kernel serves any length and other tests of this process keep theirs: no other test has these factors.
    one = executable(lambda x: df.tanh(x) * 1.28125, x)
    two = executable(lambda x: df.sinh((df.tanh(x) * 1.28125) @ df.transpose(x)) * 1.34375, x)
    (shared,) = kernels(one)
    assert shared in kernels(two)
    assert two.new_library is not None
    assert shared not in {source.name for source in two.new_library.sources}
    assert two.entry(shared) == one.entry(shared)


def test_kernels_outlive_the_graph_that_brought_them() -> None:
    x = df.constant(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
    first = df.function(lambda x: df.sinh(x) * 1.25)
    second = df.function(lambda x: df.cosh((df.sinh(x) * 1.25) @ df.transpose(x)))
    first(x)
    expected = second(x).numpy()
    del first
    gc.collect()
    np.testing.assert_array_equal(second(x), expected)
    np.testing.assert_allclose(expected, np.cosh(np.sinh(x) * 1.25 @ np.transpose(x)), rtol=1e-5)
