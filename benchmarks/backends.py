"""Compares the Numba backend with the default one: calls after compilation, and first calls."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import dualflow as df
from benchmarks import first_call
from benchmarks.first_call import CompileStats
from benchmarks.steady import Subject, fastest
from benchmarks.workloads import gelu, layernorm
from dualflow.core.tree import leaves

BACKENDS: Final = {"default": "llvm", "Numba": "numba"}
FIRST: Final = ("gelu", "MLP step")
"""The first calls that are compared."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Seconds of a call on each backend, in the fastest block."""

    name: str
    default: float
    numba: float


def installed() -> bool:
    """Whether Numba is installed."""
    return importlib.util.find_spec("numba") is not None


def compare(words: Sequence[str], quick: bool, rounds: int, block: float) -> list[Compared]:
    """The times of the rows whose names contain one of ``words`` on both backends; results must agree."""
    rows = []
    for name, function, inputs in _cases(quick):
        if not any(word in name for word in words):
            continue
        tensors = tuple(map(df.constant, inputs))
        subjects = {
            name: Subject(df.function(function, backend=backend), tensors)
            for name, backend in BACKENDS.items()
        }
        results = [leaves(subject()) for subject in subjects.values()]
        for x, y in zip(*results, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4, err_msg=name)
        seconds = fastest(subjects, rounds, block)
        rows.append(Compared(name, seconds["default"], seconds["Numba"]))
    return rows


def first_calls(
    default: dict[str, dict[str, CompileStats]], rounds: int, quick: bool = False
) -> dict[str, dict[str, dict[str, CompileStats]]]:
    """First calls by backend, case and state; ``default`` are those of the default backend.

    See :func:`benchmarks.first_call.first_calls`.
    """
    cases = FIRST[:1] if quick else FIRST
    numba = first_call.first_calls(rounds, cases, BACKENDS["Numba"], quick)
    return {"default": {case: default[case] for case in cases}, "Numba": numba}


def _cases(quick: bool) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Kernels of each kind: elementwise, reductions over rows, columns and all axes, gathers."""
    rng = np.random.default_rng(0)
    rows, columns = (64, 128) if quick else (4096, 1024)
    matrix = rng.standard_normal((rows, columns)).astype(np.float32)
    flat = matrix.reshape(-1)
    indices = rng.integers(0, rows, 5 * rows).astype(np.int32)
    yield "add, 100 floats", lambda x: x + x, (flat[:100],)
    yield "add, 4M", lambda x: x + x, (flat,)
    yield "gelu, 4M", gelu, (flat,)
    yield "sin, 4M", df.sin, (flat,)
    yield "sum of squares, 4M", lambda x: df.reduce_sum(x * x), (flat,)
    yield "maximum of rows, 4096x1024", lambda x: df.reduce_max(x, 1), (matrix,)
    yield "place of the maximum, 4096x1024", lambda x: df.argmax(x, 1), (matrix,)
    yield "sum of columns, 4096x1024", lambda x: df.reduce_sum(x, 0), (matrix,)
    yield "softmax, 4096x1024", df.nn.softmax, (matrix,)
    yield "layernorm, 4096x1024", layernorm, (matrix,)
    yield "transposed sum, 4096x1024", lambda x: df.transpose(x) + 1.0, (matrix,)
    yield "gather of rows, 20480x1024", lambda x, i: df.gather(x, i) * 2.0, (matrix, indices)
