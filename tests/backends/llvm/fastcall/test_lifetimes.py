"""Lifetimes in the C fast call: no leaks, no dangling pointers, thread safety."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualflow.backends.llvm.runtime import jit
from dualflow.backends.llvm.runtime.call_memory import CallMemory
from dualflow.backends.llvm.runtime.fastcall import ArraySpec

# Freeing.


class WeaklyReferenced:
    """A callable whose lifetime a weak reference observes; used as fallback, pack and on_error."""

    def __call__(self, *_: object) -> None:
        """Do nothing."""


def test_a_dropped_function_frees_what_it_held(fast: Any) -> None:
    parts = {
        "fallback": WeaklyReferenced(),
        "on_error": WeaklyReferenced(),
        "pack": WeaklyReferenced(),
        "keep": WeaklyReferenced(),
    }
    watched = [weakref.ref(part) for part in parts.values()]
    call = fast.function(
        "nothing", parts["fallback"], on_error=parts["on_error"], pack=parts["pack"], keep=(parts["keep"],)
    )
    parts.clear()
    gc.collect()
    assert all(reference() is not None for reference in watched)
    del call
    gc.collect()
    assert all(reference() is None for reference in watched)


def test_a_cycle_through_the_fallback_is_collected(fast: Any) -> None:
    class Owner:
        """Holds the function whose fallback is its own method."""

        def __init__(self) -> None:
            self.call = fast.function("nothing", self.run)

        def run(self, *_: object) -> object:
            return self

    owner = Owner()
    watched = weakref.ref(owner)
    assert owner.call(1) is owner
    del owner
    gc.collect()
    assert watched() is None


def test_no_references_leak_over_many_calls(fast: Any, heavy: bool) -> None:
    variable, constant, x = fast.variable(3), fast.vector(2), fast.tensor()
    two: dict[str, Any] = {"outputs": [fast.vector_spec] * 2, "result": "tuple", "heavy": heavy}
    none: dict[str, Any] = {"outputs": [], "result": "none", "heavy": heavy}
    calls = [
        fast.function("plus_one", heavy=heavy),
        fast.function("multiply", constants=[constant], **two),
        fast.function("multiply", variables=[fast.reads(variable)], arena_bytes=1 << 15, **two),
        fast.function("descend", variables=[fast.updates(variable)], **none),
        fast.function("plus_one", result="packed", pack=lambda tensors: tensors, heavy=heavy),
        fast.function("fail", params=[fast.n, 1], on_error=lambda status, params, x: None, heavy=heavy),
    ]
    assert [call(3) for call in calls] == [("fallback", (3,))] * len(calls)
    assert ("fallback", (x,)) not in [call(x) for call in calls]
    watched = [
        None,
        fast.Tensor,
        np.ndarray,
        fast.vector_spec.dtype,
        x,
        x._array,
        constant,
        variable,
        (),
        *calls,
    ]

    def rounds(count: int) -> None:
        for _ in range(count):
            for call in calls:
                call(x)
                call(3)

    rounds(10)
    gc.collect()
    before = [sys.getrefcount(thing) for thing in watched]
    rounds(10_000)
    gc.collect()
    after = [sys.getrefcount(thing) for thing in watched]
    assert max(abs(now - then) for now, then in zip(after, before, strict=True)) <= 20


def test_no_reference_to_a_variables_value_leaks(fast: Any, heavy: bool) -> None:
    variable = fast.variable()
    call = fast.function("nothing", variables=[fast.reads(variable)], heavy=heavy)
    watched = variable._tensor, variable._tensor._array
    before = [sys.getrefcount(thing) for thing in watched]
    for _ in range(100):
        call(fast.tensor())
    assert [sys.getrefcount(thing) for thing in watched] == before


def test_an_allocation_failure_frees_the_other_outputs(fast: Any) -> None:
    huge = ArraySpec(np.dtype(np.float64), (1 << 40, 1 << 10))
    call = fast.function("plus_one", outputs=[fast.vector_spec, huge], result="tuple")
    dtype = fast.vector_spec.dtype
    gc.collect()  # arrays of that dtype that others have left
    before = sys.getrefcount(dtype)
    for _ in range(1000):
        assert call(fast.tensor())[0] == "fallback"
    assert abs(sys.getrefcount(dtype) - before) <= 20


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_memory_leaks_over_many_calls(fast: Any) -> None:
    def resident_kilobytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4

    size = 1 << 14
    spec = ArraySpec(np.dtype(np.float64), (size,))
    call = fast.function(
        "nothing", inputs=[spec], outputs=[spec] * 3, result="packed", pack=len, arena_bytes=size
    )
    x = fast.Tensor(np.zeros(size))
    assert call(x) == 3

    def growth() -> int:
        before = resident_kilobytes()
        for _ in range(1000):
            call(x)
        return resident_kilobytes() - before

    growth()
    assert min(growth() for _ in range(2)) < 2000


# Calls within calls, and threads.


def test_a_call_within_a_call_has_an_arena_of_its_own(fast: Any) -> None:
    depth: list[int] = []

    def on_error(status: int, params: int, x: object) -> object:
        depth.append(status)
        return call(fast.tensor()) if len(depth) < 5 else "deep"

    call = fast.function("fail", params=[fast.n, 3], arena_bytes=1 << 20, on_error=on_error)
    assert call(fast.tensor()) == "deep"
    assert depth == [3] * 5


def test_functions_that_share_an_arena_may_call_each_other(fast: Any) -> None:
    arena = CallMemory(1 << 16)
    inner = fast.function("through_arena", params=[fast.n, arena.nbytes], arena=arena)

    def on_error(status: int, params: int, x: Any) -> object:
        return inner(x)

    outer = fast.function("fail", params=[fast.n, 3], arena=arena, on_error=on_error)
    for start in range(3):
        x = fast.tensor(start)
        assert (outer(x)._array == x._array).all()
        assert (inner(x)._array == x._array).all()


def test_threads_share_one_function(fast: Any, heavy: bool) -> None:
    arena_bytes = 1 << 16
    call = fast.function("through_arena", params=[fast.n, arena_bytes], arena_bytes=arena_bytes, heavy=heavy)
    wrong: list[float] = []

    def work(start: float) -> None:
        x = fast.tensor(start)
        wrong.extend(start for _ in range(3000) if not (call(x)._array == x._array).all())

    users = [threading.Thread(target=work, args=(10.0 * i,)) for i in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert wrong == []


def test_a_heavy_kernel_releases_the_gil_and_holds_its_variables(fast: Any) -> None:
    """While the kernel waits for this thread, this thread replaces the value of the variable it reads."""
    flag = ctypes.c_int64(0)
    variable = fast.variable()
    call = fast.function(
        "wait", params=[ctypes.addressof(flag)], variables=[fast.reads(variable)], heavy=True
    )
    results: list[object] = []
    runner = threading.Thread(target=lambda: results.append(call(fast.tensor())))
    runner.start()
    while flag.value != 1:
        pass
    array = weakref.ref(variable._tensor._array)
    variable._tensor = fast.tensor(1)
    held_meanwhile = array() is not None
    flag.value = 2
    runner.join()
    assert type(results[0]) is fast.Tensor
    assert (held_meanwhile, array()) == (True, None)


def test_a_process_may_end_with_functions_alive(fast: Any) -> None:
    program = """
import numpy as np
from dualflow.backends.llvm.runtime import fastcall, jit
from dualflow.backends.llvm.runtime.call_memory import CallMemory

class Tensor:
    __slots__ = ("_array",)

nothing = jit.compile_text("define void @nothing(ptr %b, ptr %p, ptr %s) { ret void }", ["nothing"], {})
spec = fastcall.ArraySpec(np.dtype(np.float32), (3,))
descriptor = fastcall.Descriptor(
    "nothing", nothing.address("nothing"), [], [], [], [spec], [], CallMemory(0), False, "tensor", print,
    keep=(nothing,),
)
call = fastcall.builtin(fastcall.probe(Tensor), descriptor, print)
print(call()._array.shape)
"""
    environment = os.environ | {"PYTHONPATH": str(Path(jit.__file__).parents[4])}
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "(3,)", "")
