"""Wrong calls of loaded models, and files that are invalid, damaged or hostile."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from error_cases import ErrorCases, Frames
from onnx_models import onnx

import dualflow as df
from dualflow.core.errors import DTypeError, DualflowError, InvalidArgumentError, ResourceExhaustedError
from dualflow.core.status_errors import DataLossError, UnimplementedError

TORCH = Path(__file__).parent / "torch_models" / "torch_conv.onnx"
FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
make = onnx.helper


def tensor(name: str, *shape: Any, kind: int = FLOAT) -> Any:
    return make.make_tensor_value_info(name, kind, shape)


def graph(*nodes: Any, constants: Any = (), inputs: Any = None, outputs: Any = None) -> Any:
    return make.make_graph(
        list(nodes), "g", inputs or [tensor("x", 2)], outputs or [tensor("y", None)], list(constants)
    )


def node(kind: str, *inputs: str, **attrs: Any) -> Any:
    return make.make_node(kind, inputs or ["x"], ["y"], **attrs)


def load(
    graph: Any, opset: int = 20, change: Callable[[Any], Any] | None = None, traced: bool = False
) -> Callable[[], Any]:
    """Loads a model with ``graph``, after a change, and calls it with zeros."""

    def call() -> Any:
        model = make.make_model(graph, opset_imports=[make.make_opsetid("", opset)], ir_version=9)
        if change is not None:
            change(model)
        return load_bytes(model.SerializeToString(), traced)()

    return call


def load_bytes(data: bytes, traced: bool = False) -> Callable[[], Any]:
    def call() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(data)
            model = df.onnx.load(path)
        return (df.function(model) if traced else model)(np.zeros(2, np.float32))

    return call


def constant(*shape: int, raw: bytes | None = None, kind: int = FLOAT, **fields: Any) -> Any:
    proto = onnx.TensorProto(name="c", data_type=kind, dims=shape, **fields)
    if raw is not None:
        proto.raw_data = raw
    return proto


def external(location: str) -> Any:
    proto = constant(2)
    proto.data_location = onnx.TensorProto.EXTERNAL
    proto.external_data.add(key="location", value=location)
    return proto


def cycle() -> Any:
    return graph(
        make.make_node("Add", ["x", "b"], ["a"]), make.make_node("Neg", ["a"], ["b"]), node("Neg", "a")
    )


def looping(body: Any) -> Any:
    """A loop of two iterations."""
    count = make.make_tensor("c", INT64, [], [2])
    return graph(make.make_node("Loop", ["c", "", "x"], ["y"], body=body), constants=[count])


def model() -> Any:
    return df.onnx.load(TORCH.with_name("torch_mlp.onnx"))


def with_function(proto: Any) -> None:
    proto.functions.append(
        make.make_function("own", "F", ["x"], ["y"], [node("Neg")], [make.make_opsetid("", 20)])
    )


class TestErrors(ErrorCases):
    frames: ClassVar[Frames] = Frames.ANY
    raised_in = ("onnx/reading.py", "onnx/model.py", "onnx/calls.py", "onnx/evaluation.py")
    cases: ClassVar = {
        "no model": (load_bytes(b"no model at all"), DataLossError, "is no model of ONNX, or is damaged"),
        "an empty file": (
            load_bytes(b""),
            DataLossError,
            "is no model of ONNX, or is damaged: it has no graph",
        ),
        "a truncated file": (
            load_bytes(TORCH.read_bytes()[:900]),
            (DataLossError, InvalidArgumentError),
            "model.onnx",
        ),
        "an old opset": (
            load(graph(node("Neg")), opset=9),
            InvalidArgumentError,
            "has opset 9; models of opset 13 to 28 can be loaded",
            "version_converter",
        ),
        "unknown ops": (
            load(graph(node("NonMaxSuppression"))),
            UnimplementedError,
            "has ops that dualflow has no form of: NonMaxSuppression",
        ),
        "ops of another domain": (
            load(graph(node("Neg", domain="com.other"))),
            UnimplementedError,
            "no form of: com.other.Neg",
        ),
        "functions": (
            load(graph(node("Neg")), change=with_function),
            UnimplementedError,
            "defines functions of its own, which can't be loaded: F",
        ),
        "sparse constants": (
            load(graph(node("Neg")), change=lambda m: m.graph.sparse_initializer.add()),
            UnimplementedError,
            "has sparse constants",
        ),
        "a cycle": (load(cycle()), InvalidArgumentError, "(?s)is no valid model of ONNX: .*topologically"),
        "a missing tensor": (
            load(graph(node("Neg", "z"))),
            InvalidArgumentError,
            "is no valid model of ONNX",
        ),
        "a constant of an unknown dtype": (
            load(graph(node("Add", "x", "c"), constants=[constant(2, kind=onnx.TensorProto.COMPLEX64)])),
            InvalidArgumentError,
            "the constant 'c' has no dtype of dualflow",
        ),
        "a constant with fewer bytes": (
            load(graph(node("Add", "x", "c"), constants=[constant(2, raw=b"1234")])),
            InvalidArgumentError,
            r"the constant 'c' has 4 bytes, and its shape \[2\] has 8",
        ),
        "a constant of a huge shape": (
            load(graph(node("Add", "x", "c"), constants=[constant(1 << 40, 1 << 40)])),
            InvalidArgumentError,
            "the constant 'c' has 0 elements, and its shape",
        ),
        "a constant of a negative shape": (
            load(graph(node("Add", "x", "c"), constants=[constant(-2, raw=b"")])),
            InvalidArgumentError,
            "the constant 'c' has a negative size",
        ),
        "data in another folder": (
            load(graph(node("Add", "x", "c"), constants=[external("../secret")])),
            InvalidArgumentError,
            "the constant 'c' is in '../secret', outside of its folder",
        ),
        "data at an absolute path": (
            load(graph(node("Add", "x", "c"), constants=[external("/etc/passwd")])),
            InvalidArgumentError,
            "the constant 'c' is in '/etc/passwd', outside of its folder",
        ),
        "data that is not there": (
            load(graph(node("Add", "x", "c"), constants=[external("weights")])),
            InvalidArgumentError,
            "its external data can't be read",
        ),
        "an input without a dtype": (
            load(graph(node("Neg"), inputs=[tensor("x", 2, kind=onnx.TensorProto.COMPLEX64)])),
            InvalidArgumentError,
            "the input x of the ONNX model is no tensor of a known dtype".replace("the", "The", 1),
        ),
        "a dtype that differs": (
            lambda: model()(df.zeros([1, 4], df.float64)),
            DTypeError,
            "The input x has dtype float32, not float64",
            "df.cast",
        ),
        "a shape that differs": (
            lambda: model()(df.zeros([1, 5])),
            InvalidArgumentError,
            r"The input x has shape \(None, 4\), not \(1, 5\)",
        ),
        "too many inputs": (
            lambda: model()(df.zeros([1, 4]), 1.0),
            InvalidArgumentError,
            r"The model takes 1 inputs, \['x'\], not 2",
        ),
        "an unknown input": (
            lambda: model()(z=df.zeros([1, 4])),
            InvalidArgumentError,
            r"The model has the inputs \['x'\]: \['x'\] missing, \['z'\] unknown",
        ),
        "axes that the graph computes": (
            load(
                graph(
                    make.make_node("Cast", ["x"], ["axes"], to=INT64),
                    make.make_node("ReduceSum", ["x", "axes"], ["y"]),
                ),
                traced=True,
            ),
            InvalidArgumentError,
            "ReduceSum of the ONNX model can't be computed: sizes, axes or bounds that it reads are known",
        ),
        "a body with other inputs": (
            load(looping(graph(node("Neg")))),
            InvalidArgumentError,
            "Loop of the ONNX model can't be computed",
        ),
        "more memory than there is": (
            load(
                graph(node("ConstantOfShape", "c"), constants=[make.make_tensor("c", INT64, [1], [1 << 40])])
            ),
            ResourceExhaustedError,
            "ConstantOfShape of the ONNX model needs more memory than there is",
        ),
        "an option without a form": (
            load(graph(node("ArgMax", axis=0, select_last_index=1), outputs=[tensor("y", None, kind=INT64)])),
            InvalidArgumentError,
            r"ArgMax of the ONNX model can't be computed: it selects the last position",
        ),
    }


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_errors_of_dualflow(seed: int, tmp_path: Path) -> None:
    """Bytes that are changed, removed or repeated: an error of dualflow, or a model that can be called."""
    rng, data = random.Random(seed), TORCH.read_bytes()
    path = tmp_path / "model.onnx"
    for _ in range(100):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            place, length = rng.randrange(len(damaged)), rng.randint(1, 8)
            choice = rng.random()
            if choice < 0.6:
                damaged[place : place + length] = rng.randbytes(min(length, len(damaged) - place))
            elif choice < 0.8:
                del damaged[place : place + length]
            else:
                damaged[place:place] = damaged[place : place + length]
        path.write_bytes(damaged)
        try:
            loaded = df.onnx.load(path)
            loaded(
                *[
                    np.zeros([1 if n is None else min(n, 20) for n in s.shape], s.dtype.dtype)
                    for s in loaded.inputs
                ]
            )
        except DualflowError:
            pass
