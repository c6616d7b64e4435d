"""Graphs of independent parts: each row has the same result eagerly, and runs concurrently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df
from benchmarks.branches import branch_rows
from benchmarks.peers import of_dualflow
from dualflow.backends.llvm.compile_graph import planned
from dualflow.graph.capabilities import Capabilities
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise

ROWS = range(3)


def row(number: int, *, quick: bool) -> tuple[str, tuple[Any, ...], Any]:
    return list(branch_rows(np.random.default_rng(0), quick))[number]


@pytest.mark.parametrize("number", ROWS)
def test_a_row_has_the_same_result_eagerly(number: int) -> None:
    _, inputs, body = row(number, quick=True)
    tensors = [df.constant(x) for x in inputs]
    compiled = df.function(lambda *tensors: body(of_dualflow(), *tensors))(*tensors)
    np.testing.assert_allclose(compiled.numpy(), body(of_dualflow(), *tensors).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("number", ROWS)
def test_a_row_runs_concurrently_on_two_threads(number: int) -> None:
    _, inputs, body = row(number, quick=False)
    specs = [df.TensorSpec(x.shape) for x in inputs]
    traced = df.function(lambda *tensors: body(of_dualflow(), *tensors)).get_concrete_function(*specs)
    options = CompileOptions(capabilities=Capabilities(concurrent_calls=2))
    regions = planned(optimise(traced.graph, options), options).regions
    assert [region.threads for region in regions] == [2]
