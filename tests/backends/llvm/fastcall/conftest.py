"""Fixtures for tests of the C fast call: classes with its memory layout, and functions over kernels."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualflow.backends.llvm.runtime import fastcall, jit
from dualflow.backends.llvm.runtime.call_memory import CallMemory

Array = np.ndarray[Any, Any]
KeptBytes = Callable[[Callable[[], None]], int]

EXPORTS = ["plus_one", "multiply", "descend", "through_arena", "fail", "nothing", "sizes", "wait"]


class Tensor:
    """What an eager tensor is to the fast call: an object with an array in a slot."""

    __slots__ = ("__weakref__", "_array")

    def __init__(self, array: Any) -> None:
        self._array = array


class Variable:
    """What a variable is to the fast call: an object with a slot for its tensor, and two for a call."""

    __slots__ = ("_borrower", "_name", "_substitute", "_tensor")

    def __init__(self, array: Array) -> None:
        self._name = "v"
        self._tensor: Any = Tensor(array)


class KernelFailed(Exception):
    """What on_error raises in these tests."""


def raise_failed(status: int, params: int, *args: object) -> object:
    raise KernelFailed(status, *args)


def fallback(*args: object) -> tuple[str, tuple[object, ...]]:
    return ("fallback", args)


@dataclass(frozen=True)
class Fast:
    """The fast call over vectors of ``n`` doubles, as the tests use it."""

    layout: fastcall.InterpreterLayout
    library: jit.Library

    n = 7
    vector_spec = fastcall.ArraySpec(np.dtype(np.float64), (7,))
    Tensor = Tensor
    Variable = Variable
    KernelFailed = KernelFailed
    fallback = staticmethod(fallback)

    def vector(self, start: float = 0.0) -> Array:
        """start, start + 1, ..."""
        return np.arange(self.n, dtype=np.float64) + start

    def tensor(self, start: float = 0.0) -> Any:
        """A tensor of such a vector."""
        return Tensor(self.vector(start))

    def variable(self, start: float = 0.0) -> Any:
        """A variable of such a vector, whose value has no other reference."""
        return Variable(self.vector(start))

    def reads(self, variable: object) -> fastcall.VariableUse:
        """A variable that the kernel reads."""
        return fastcall.VariableUse(variable, self.vector_spec)

    def updates(self, variable: object) -> fastcall.VariableUse:
        """A variable that the kernel writes."""
        return fastcall.VariableUse(variable, self.vector_spec, updated=True)

    def function(
        self, name: str, otherwise: Callable[..., Any] = fallback, arena_bytes: int = 0, **fields: Any
    ) -> Any:
        """The built-in function of kernel ``name``: one vector in and one out, unless ``fields`` differs."""
        descriptor = fastcall.Descriptor(
            name=name,
            kernel=self.library.address(name),
            inputs=[self.vector_spec],
            variables=[],
            constants=[],
            outputs=[self.vector_spec],
            params=[self.n, 0],
            arena=CallMemory(arena_bytes),
            heavy=False,
            result="tensor",
            on_error=raise_failed,
            slots=fastcall.variable_slots(Variable),
            keep=(self.library,),
        )
        return fastcall.builtin(self.layout, replace(descriptor, **fields), otherwise)


@pytest.fixture(scope="session")
def fast() -> Fast:
    """The fast call of this process; where there is none, there is nothing to test."""
    layout = fastcall.probe(Tensor)
    if layout is None:
        pytest.skip("this Python or NumPy has another layout: graphs are called by portable means")
    text = Path(__file__).with_name("kernels.ll").read_text(encoding="ascii")
    return Fast(layout, jit.compile_text(text, EXPORTS, {}))


@pytest.fixture
def kept_bytes() -> KeptBytes:
    """Returns the bytes that the second run of a function leaves allocated."""

    def measure(use: Callable[[], None]) -> int:
        use()
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            use()
            gc.collect()
            return tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()

    return measure


@pytest.fixture(params=[False, True], ids=["light", "heavy"])
def heavy(request: pytest.FixtureRequest) -> bool:
    """Whether the GIL is released around the kernel."""
    return bool(request.param)
