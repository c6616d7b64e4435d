"""Compiling n equal steps takes a number of Python calls that is linear in n, and few kernel texts."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest

import dualflow as df
from benchmarks.growth import STEPS, program
from dualflow.backends.llvm.compile_graph import planned
from dualflow.backends.llvm.program import write
from dualflow.graph.options import CompileOptions
from dualflow.schedule.lower import lower
from dualflow.schedule.plan import plan
from dualflow.schedule.program_statements import nests_of, statements, walk_program
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.schedule.structure import structure

T = TypeVar("T")
SPEC = df.TensorSpec([64, 8])
FEW, MANY = 64, 128
ALWAYS_RUN = {"normalise"}
MAX_TEXTS = 24
"""The most kernels that differ, those of the first and the last steps included."""


def shifted_differences(n: int) -> Callable[..., object]:
    """A function of a vector of any size, with ``n`` steps that each have another size."""

    @df.function(input_signature=[df.TensorSpec([None])])
    def differences(x: df.Tensor) -> df.Tensor:
        for _ in range(n):
            x = x[1:] - x[:-1]
        return x

    return lambda: differences(df.range(n + 3.0) ** 2.0)


def nested_conds(n: int) -> Callable[..., object]:
    """A function of ``n`` nested conditionals."""

    def branch(depth: int, x: df.Tensor, p: df.Tensor) -> df.Tensor:
        if depth == n:
            return x
        return df.cond(p[depth] > 0, lambda: branch(depth + 1, x * 1.5, p), lambda: x + 1.0)

    function = df.function(lambda x, p: branch(0, x, p))
    return lambda: function(df.ones([8]), df.ones([n]))


def loops_in_a_row(n: int) -> Callable[[df.Tensor, df.Tensor], df.Tensor]:
    """A function of ``n`` loops, one after the other, with a check after half of them."""

    def loops(x: df.Tensor, count: df.Tensor) -> df.Tensor:
        for i in range(n):
            x = df.while_loop(lambda k, _: k < count, lambda k, x: (k + 1, x * 1.01), (0, x))[1]
            if i == n // 2:
                df.debugging.assert_less(x, 100.0)
        return x

    return loops


def kernel_count(name: str, n: int, gradient: bool) -> int:
    """Trace, optimise and plan a program of ``n`` steps; returns the number of its kernels that differ."""
    concrete = df.function(program(name, n, gradient=gradient)).get_concrete_function(SPEC)
    calls = statements(plan(concrete.optimised_graph))
    runs = [kernel_launch(lower(*launch), 16) for s in walk_program(calls) for launch in nests_of(s)]
    return len({structure(run.kernel) for run in runs})


def calls_and_kernels(name: str, n: int, gradient: bool) -> tuple[int, int]:
    """The Python calls that compiling takes, and the number of kernels that differ."""
    return counted(lambda: kernel_count(name, n, gradient))


def counted(run: Callable[[], T]) -> tuple[int, T]:
    """The number of Python calls that ``run()`` takes, and its result."""
    profile = cProfile.Profile()
    profile.enable()
    result = run()
    profile.disable()
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]  # typeshed lacks it
    return calls, result


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=() if x in ALWAYS_RUN else pytest.mark.exhaustive) for x in STEPS]
)
@pytest.mark.parametrize("gradient", [False, True])
def test_compile_calls_grow_linearly(name: str, gradient: bool) -> None:
    kernel_count(name, 8, gradient)  # imports, and what is kept for shapes
    few, _ = calls_and_kernels(name, FEW, gradient)
    many, kernels = calls_and_kernels(name, MANY, gradient)
    assert many <= 1.05 * MANY / FEW * few  # an exponent of at most 1.07
    assert kernels <= MAX_TEXTS


def test_functions_of_machine_code_have_a_limited_length() -> None:
    """LLVM's time grows faster than the length of a function."""

    def longest(n: int) -> int:
        signature = [df.TensorSpec([8]), df.TensorSpec([], df.int32)]
        concrete = df.function(loops_in_a_row(n)).get_concrete_function(*signature)
        options = CompileOptions("llvm")
        sources = write(planned(concrete.optimised_graph, options), options).sources
        return max(len(text) for source in sources for text in source.text.split("\ndefine "))

    assert longest(100) <= 1.1 * longest(50)


def test_a_failed_check_ends_a_program_of_many_loops() -> None:
    loops = df.function(loops_in_a_row(50))
    np.testing.assert_allclose(loops(df.ones([8]), df.constant(2)), 1.01**100, rtol=1e-4)
    with pytest.raises(df.errors.InvalidArgumentError):
        loops(df.fill([8], 90.0), df.constant(2))


@pytest.mark.parametrize("program_of", [shifted_differences, nested_conds])
def test_first_calls_grow_linearly(program_of: Callable[[int], Callable[..., object]]) -> None:
    program_of(3)()
    few, _ = counted(program_of(20))
    many, _ = counted(program_of(40))
    assert many <= 2.1 * few
