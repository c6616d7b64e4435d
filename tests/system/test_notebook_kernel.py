"""A Jupyter kernel with dualflow in place of TensorFlow, started as docs/from_tensorflow_2.md states."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dualflow as df
from tests.harness.required_tools import require_module

pytestmark = pytest.mark.exhaustive

ROOT = Path(df.__file__).parents[1]
ABSOLUTE = """
@tf.function
def absolute(x):
    if tf.reduce_sum(x) > 0:
        return x
    return -x
"""
WRONG_SHAPES = """
@tf.function
def product(x):
    return tf.matmul(x, x)
product(tf.ones([2, 3]))
"""
MANY_OPS = """
@tf.function
def many_ops(x):
    for i in range(20_000):
        x = tf.sin(x) * float(i + 2)
    return x
print("begin")
many_ops(tf.ones([3]))
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The client of a running kernel whose command is ``python -m dualflow run -m ipykernel_launcher``."""
    manager_module = require_module("jupyter_client.manager")
    folder = tmp_path_factory.mktemp("jupyter")
    command = [sys.executable, "-m", "dualflow", "run", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = folder / "kernels" / "dualflow" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": command, "display_name": "dualflow", "language": "python"}))
    spec_module = require_module("jupyter_client.kernelspec")
    specs = spec_module.KernelSpecManager(kernel_dirs=[str(folder / "kernels")])
    manager = manager_module.KernelManager(kernel_name="dualflow", kernel_spec_manager=specs)
    manager.start_kernel(env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=str(folder))
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    client.manager = manager
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


Hook = Callable[[str], None]


def run(kernel: Any, code: str, on_text: Hook | None = None, reply: str = "") -> tuple[str, list[str]]:
    """What a cell prints and shows, and the lines of its traceback, which are none unless it fails.

    Args:
        kernel: the client of the kernel.
        code: the cell.
        on_text: called with each text that the cell prints.
        reply: the answer to a prompt.
    """
    texts: list[str] = []
    traceback: list[str] = []

    def collect(message: Any) -> None:
        content = message["content"]
        if message["msg_type"] == "stream":
            texts.append(content["text"])
            if on_text is not None:
                on_text(content["text"])
        elif message["msg_type"] == "execute_result":
            texts.append(content["data"]["text/plain"])
        elif message["msg_type"] == "error":
            traceback.extend(re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(content["traceback"])).splitlines())

    kernel.execute_interactive(
        code, timeout=300, output_hook=collect, stdin_hook=lambda message: kernel.input(reply)
    )
    return "".join(texts), traceback


def test_tensorflow_is_dualflow_and_functions_of_cells_are_converted(kernel: Any) -> None:
    assert "dualflow" in run(kernel, "import tensorflow as tf\ntf.__name__")[0]
    shown, traceback = run(kernel, ABSOLUTE + "absolute(tf.constant([-3.0, 1.0])).numpy().tolist()")
    assert (shown, traceback) == ("[3.0, -1.0]", [])


def test_the_traceback_of_an_error_has_the_frames_of_cells_only(kernel: Any) -> None:
    _, traceback = run(kernel, "import tensorflow as tf" + WRONG_SHAPES)
    assert traceback[-1].startswith("InvalidArgumentError: matmul(")
    assert any(re.match(r"-+> 4 +return tf.matmul", line) for line in traceback)
    assert not [line for line in traceback if line.startswith("File ")]


def test_an_interrupt_ends_a_long_cell_and_the_kernel_goes_on(kernel: Any) -> None:
    def interrupt(text: str) -> None:
        if "begin" in text:
            kernel.manager.interrupt_kernel()

    _, traceback = run(kernel, "import tensorflow as tf" + MANY_OPS, interrupt)
    assert traceback[-1].startswith("KeyboardInterrupt")
    assert run(kernel, "int(tf.function(lambda x: x + 1)(2))") == ("3", [])


def test_a_function_is_debugged_at_the_prompt_of_the_notebook(kernel: Any) -> None:
    run(kernel, "import tensorflow as tf" + ABSOLUTE)
    shown, traceback = run(kernel, "absolute.debug(tf.constant([-1.0])).numpy().tolist()", reply="c")
    assert (shown[-5:], traceback) == ("[1.0]", [])
