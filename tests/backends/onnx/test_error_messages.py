"""Errors of the ONNX export: the op without an ONNX form and the user's line; and the written files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from error_cases import ErrorCases, Frames
from onnx_models import exported, onnx

import dualflow as df
from dualflow.backends.onnx.files import write_model
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError


def export(function: Callable[..., Any], *specs: Any, to: str = "onnx") -> Callable[[], Any]:
    def call() -> Any:
        concrete = df.function(function).get_concrete_function(*specs)
        with tempfile.TemporaryDirectory() as folder:
            return concrete.export(Path(folder) / "model.onnx", to=to)

    return call


def spec(*shape: int | None, dtype: Any = df.float32) -> df.TensorSpec:
    return df.TensorSpec(shape, dtype)


def over_another_file() -> None:
    concrete = df.function(df.exp).get_concrete_function(spec(2))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(b"the user's own")
        concrete.export(path, to="onnx")


def too_large() -> None:
    concrete = df.function(lambda x: x + np.ones(1000, np.float32)).get_concrete_function(spec(1000))
    with tempfile.TemporaryDirectory() as folder:
        write_model(exported(concrete, Path(folder)), folder + "/large.onnx", force=False, largest=4000)


REFUSED = InvalidArgumentError
REMEDY = "Compute it outside of the function"


class TestErrors(ErrorCases):
    frames: ClassVar[Frames] = Frames.ANY
    raised_in = ("backends/onnx/*.py", "function/calls/exports.py")
    tested_elsewhere: ClassVar = {
        "backends/onnx/__init__.py": "test_without_the_package_the_error_names_the_command"
    }
    cases: ClassVar = {
        "an op that ONNX lacks": (
            export(lambda x: df.linalg.inv(x), spec(3, 3)),
            REFUSED,
            r"(?s)inv can't be exported as ONNX: ONNX has no such op.*test_error_messages.*linalg.inv\(x\)",
            REMEDY,
        ),
        "complex numbers": (
            export(lambda x: df.abs(df.complex(x, x)), spec(3)),
            REFUSED,
            "complex can't be exported as ONNX: ONNX has no ops on complex64",
            REMEDY,
        ),
        "bits of another size": (
            export(lambda x: df.bitcast(x, df.uint8), spec(3)),
            REFUSED,
            "bitcast can't be exported as ONNX: ONNX reads bits as numbers of the same size only",
        ),
        "a logarithm of a determinant": (
            export(lambda x: df.linalg.slogdet(x), spec(3, 3)),
            REFUSED,
            "determinant can't be exported as ONNX: ONNX Runtime has determinants of float32",
        ),
        "a maximum of unsigned numbers": (
            export(lambda x: df.reduce_max(x), spec(3, dtype=df.uint64)),
            REFUSED,
            "reduce_max can't be exported as ONNX: ONNX Runtime compares uint64 as int64",
        ),
        "an order of unsigned numbers": (
            export(lambda x: df.sort(x), spec(3, dtype=df.uint64)),
            REFUSED,
            "sort can't be exported as ONNX: ONNX Runtime compares uint64 as int64",
        ),
        "positions without axes": (
            export(lambda i, x: df.scatter_nd(i, x, [2]), spec(4, 0, dtype=df.int32), spec(4, 2)),
            REFUSED,
            "scatter_nd can't be exported as ONNX: its index vectors are empty",
        ),
        "Python in the graph": (
            export(lambda x: df.numpy_function(np.sort, [x], df.float32), spec(3)),
            REFUSED,
            "can't be exported",
        ),
        "another target": (
            export(lambda x: x, spec(3), to="onyx"),
            InvalidArgumentError,
            "There is no export to 'onyx': use 'c', 'library', 'wasm', 'html' or 'onnx'",
        ),
        "a file of the user": (over_another_file, FailedPreconditionError, "model.onnx exists", "force"),
        "more bytes than a file holds": (too_large, InvalidArgumentError, "of which a file holds 4000"),
    }


def test_an_exported_file_is_replaced(tmp_path: Path) -> None:
    concrete = df.function(df.exp).get_concrete_function(spec(2))
    exported(concrete, tmp_path)
    assert [node.op_type for node in exported(concrete, tmp_path).graph.node] == ["Exp"]


def test_without_the_package_the_error_names_the_command() -> None:
    program = (
        "import sys; sys.modules['onnx'] = None\n"
        "import dualflow as df\n"
        "df.function(df.exp).get_concrete_function(df.TensorSpec([2])).export('never.onnx', to='onnx')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert NotFoundError.__name__ in ended.stderr
    assert "pip install 'dualflow[onnx]'" in ended.stderr


def test_nodes_name_the_op_and_the_line(tmp_path: Path) -> None:
    model = exported(df.function(lambda x: df.tanh(x)).get_concrete_function(spec(2)), tmp_path)
    assert model.graph.node[0].doc_string.startswith("tanh, test_error_messages.py:")
    assert model.producer_name == "dualflow"


def test_the_command_line_writes_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import dualflow as df\ndef f(x):\n    return df.exp(x)\n")
    command = [sys.executable, "-m", "dualflow", "export", "model.py:f", "f.onnx", "--to", "onnx"]
    command += ["--args", "df.TensorSpec([None], name='x')"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (0, "f.onnx"), ended.stderr
    onnx.checker.check_model(onnx.load(tmp_path / "f.onnx"), full_check=True)
