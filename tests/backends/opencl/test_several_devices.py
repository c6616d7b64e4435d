"""Two devices of one process: PoCL offers them. A process uses one, which it may select."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from required_tools import require_module

require_module("pyopencl")

from dualflow.backends.opencl.devices import current_device  # noqa: E402  # it imports pyopencl

PROGRAM = """
import dualflow as df

def show(call):
    try:
        print(call())
    except Exception as error:
        print(f"{type(error).__name__}: {error}")

from dualflow.backends.opencl.devices import current_device
gpus = df.config.list_physical_devices("GPU")
print([gpu.name for gpu in gpus], [gpu.name for gpu in df.config.list_logical_devices("GPU")])
df.config.set_visible_devices(gpus[1], "GPU")
x = df.constant([1.0, 2.0]).gpu()
print(x.device, current_device().name.partition("-")[0], (x + x).numpy())
show(lambda: x.gpu(1))
with df.device("/GPU:1"):
    print(df.constant(1.0).device)
df.config.set_visible_devices(gpus[0], "GPU")
show(lambda: df.constant(1.0).gpu())
print(x.numpy())
"""


def test_a_process_uses_the_device_that_it_makes_visible_first() -> None:
    if "Portable" not in current_device().device.platform.name:
        pytest.skip("the driver is not PoCL, which takes its devices from a variable")
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "POCL_DEVICES": "basic pthread"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    listed, used, copied, block, changed, value = ended.stdout.splitlines()
    assert listed == "['/physical_device:GPU:0', '/physical_device:GPU:1'] ['/device:GPU:0']"
    assert used == "/job:localhost/replica:0/task:0/device:GPU:0 pthread [2. 4.]"
    assert copied.startswith("FailedPreconditionError: GPU:1 unknown device: a process uses one GPU")
    assert block.endswith("CPU:0")
    assert "'/GPU:1' is not available" in ended.stderr
    assert changed.startswith("FailedPreconditionError: This process uses GPU 1, pthread")
    assert "Call df.config.set_visible_devices before the GPU is used" in changed
    assert value == "[1. 2.]"
