"""A plain case of every op on the device: results, and memory accesses under a simulator of devices."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from op_cases import check_each
from required_tools import require_module, require_tool

import dualflow as df
from dualflow.eager.engine import EAGER
from dualflow.ops.testing.cases import Case

require_module("pyopencl")

import kernels_of_ops  # noqa: E402  # it imports pyopencl
import pyopencl as cl  # noqa: E402

from dualflow.backends.opencl.devices import current_device  # noqa: E402

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def nan_memory() -> None:
    """Released buffers of all small sizes hold nans: calls get these buffers."""
    device = current_device()
    sizes = [step * n for step in (64, 128, 256, 512, 1024) for n in (4, 5, 6, 7)]
    buffers = [device.memory.allocate(size, "nans") for size in sizes for _ in range(4)]
    for buffer in buffers:
        cl.enqueue_fill_buffer(device.queue, buffer, np.float32(np.nan), 0, buffer.size)
        device.memory.release(buffer)


def check_on_device(case: Case) -> None:
    inputs = case.op.prepare(case.inputs, EAGER)
    call = partial(kernels_of_ops.applied, case)
    results = df.function(call, backend="opencl", autograph=False)(*inputs)
    for result, expected in zip(df.nest.flatten(results), df.nest.flatten(call(*inputs)), strict=True):
        a, b = np.asarray(result), np.asarray(expected)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if b.dtype.kind in "fc":
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("nan_memory")
def test_ops_have_the_results_of_their_kernels_whatever_memory_held_before() -> None:
    check_each(kernels_of_ops.plain_cases(), check_on_device)


def test_kernels_access_their_buffers_without_races(tmp_path: Path) -> None:
    """Oclgrind's check for uninitialised memory is left out: it reports memory that kernels have written."""
    log = tmp_path / "findings"
    command = [
        require_tool("oclgrind"),
        "--data-races",
        "--log",
        str(log),
        "--build-options",
        "-cl-opt-disable",
    ]
    ended = subprocess.run(
        [*command, sys.executable, kernels_of_ops.__file__],
        env={**os.environ, "PYOPENCL_NO_CACHE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    assert log.read_text() == ""
    assert int(ended.stdout.split()[-1]) > 250
