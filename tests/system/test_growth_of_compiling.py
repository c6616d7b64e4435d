"""Compiling n equal steps takes a number of Python calls that is linear in n, and few kernel texts."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from typing import TypeVar

import pytest

import dualflow as df
from benchmarks.growth import STEPS, program
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


@pytest.mark.parametrize("program_of", [shifted_differences, nested_conds])
def test_first_calls_grow_linearly(program_of: Callable[[int], Callable[..., object]]) -> None:
    program_of(3)()
    few, _ = counted(program_of(20))
    many, _ = counted(program_of(40))
    assert many <= 2.1 * few
