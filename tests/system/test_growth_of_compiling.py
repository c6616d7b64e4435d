"""Compiling n equal steps takes a number of Python calls that is linear in n, and few kernel texts."""

from __future__ import annotations

import cProfile
import pstats

import pytest

import dualflow as df
from benchmarks.growth import STEPS, program
from dualflow.schedule.lower import lower
from dualflow.schedule.plan import plan
from dualflow.schedule.program_statements import nests_of, statements, walk_program
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.schedule.structure import structure

SPEC = df.TensorSpec([64, 8])
FEW, MANY = 64, 128
ALWAYS_RUN = {"normalise"}
MAX_TEXTS = 24
"""The most kernels that differ, those of the first and the last steps included."""


def kernel_count(name: str, n: int, gradient: bool) -> int:
    """Trace, optimise and plan a program of ``n`` steps; returns the number of its kernels that differ."""
    concrete = df.function(program(name, n, gradient=gradient)).get_concrete_function(SPEC)
    calls = statements(plan(concrete.optimised_graph))
    runs = [kernel_launch(lower(*launch), 16) for s in walk_program(calls) for launch in nests_of(s)]
    return len({structure(run.kernel) for run in runs})


def calls_and_kernels(name: str, n: int, gradient: bool) -> tuple[int, int]:
    """The Python calls that compiling takes, and the number of kernels that differ."""
    profile = cProfile.Profile()
    profile.enable()
    kernels = kernel_count(name, n, gradient)
    profile.disable()
    calls: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]  # typeshed lacks it
    return calls, kernels


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
