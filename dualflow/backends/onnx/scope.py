"""An ONNX graph under construction: its nodes, with unique names, and the constants of the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dualflow.backends.onnx.element_types import INT64, element_type, runtime_dtype
from dualflow.core.dtypes import DType, as_dtype, bool_
from dualflow.core.records import NamedTuple

Array = np.ndarray[Any, Any]

OPSET: Final = 20
"""The opset version of models; a later one if they have an op of ``_MIN_OPSETS``."""
_MIN_OPSETS: Final = {"BitCast": 26}
"""Ops that later opsets added, with the opset."""


class Operand(NamedTuple):
    """A tensor of the ONNX graph: its name, unique in the model, and its dtype."""

    name: str
    dtype: DType


class ModelScope:
    """The state that all scopes of a model share: names, initializers, and the opset version."""

    def __init__(self) -> None:
        self.initializers: list[onnx.TensorProto] = []
        self.opset = OPSET
        self._numbers: dict[str, int] = {}
        self._names: set[str] = set()
        self._constants: dict[tuple[Any, ...], Operand] = {}

    def unique(self, base: str) -> str:
        """``base``, or with a number if it is in use."""
        name = base
        while name in self._names or not name:
            number = self._numbers[base] = self._numbers.get(base, 0) + 1
            name = f"{base}_{number}"
        self._names.add(name)
        return name

    def constant(self, array: Array, name: str = "") -> Operand:
        """An initializer with the elements of ``array``; equal arrays share it, except with a ``name``."""
        dtype = as_dtype(array.dtype)
        content = tuple(array.reshape(-1).tolist()) if dtype.is_string else array.tobytes()
        key = dtype.name, array.shape, content
        if not name and key in self._constants:
            return self._constants[key]
        operand = Operand(self.unique(name or _constant_name(array)), dtype)
        self.initializers.append(tensor_proto(array, operand.name, dtype))
        if not name:
            self._constants[key] = operand
        return operand


def _constant_name(array: Array) -> str:
    """A name that shows the number, if it is one."""
    if array.ndim == 0 and array.dtype.kind in "iufb":
        return f"const_{array.item()!r}".replace("-", "minus_").replace(".0", "")
    return "const"


def tensor_proto(array: Array, name: str, dtype: DType) -> onnx.TensorProto:
    """``array`` as ONNX stores it."""
    if dtype.is_string:
        strings: Any = [bytes(x) for x in array.reshape(-1)]
        return helper.make_tensor(name, onnx.TensorProto.STRING, list(array.shape), strings)
    proto: onnx.TensorProto = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
    return proto


class OnnxScope:
    """The nodes of a graph: the model's, or the body of a branch or loop inside of another scope.

    Attributes:
        shared: what all scopes of the model share.
        nodes: the nodes, in order.
        checks: scalar bools that must hold, each with the message of its error.
        label: the user's line and the op that are being written, which new nodes are named after.
    """

    def __init__(self, outer: OnnxScope | None = None) -> None:
        self.shared: ModelScope = ModelScope() if outer is None else outer.shared
        self.outer = outer
        self.nodes: list[onnx.NodeProto] = []
        self.checks: list[tuple[Operand, str]] = []
        self.label = ("", "")
        self._computed: set[str] = set()

    def computes(self, operand: Operand) -> bool:
        """Whether a node of this scope computes ``operand``."""
        return operand.name in self._computed

    def add_node(
        self,
        op_type: str,
        inputs: Sequence[Operand | None],
        results: Sequence[DType],
        names: Sequence[str] = (),
        **attrs: Any,
    ) -> list[Operand]:
        """Add a node; returns its results, which have the dtypes ``results``.

        Args:
            op_type: the name of the ONNX op.
            inputs: its inputs; None for one that is left out.
            results: the dtype of each result.
            names: the names of the results, if they matter.
            attrs: the attributes of the node.
        """
        line, op_name = self.label
        bases = names or [op_type.lower()] * len(results)
        outputs = [
            Operand(self.shared.unique(base), dtype) for base, dtype in zip(bases, results, strict=True)
        ]
        node = helper.make_node(
            op_type,
            ["" if x is None else x.name for x in inputs],
            [x.name for x in outputs],
            name=outputs[0].name if outputs else "",
            doc_string=f"{op_name}, {line}" if line else op_name,
            **attrs,
        )
        self.nodes.append(node)
        self._computed.update(x.name for x in outputs)
        self.shared.opset = max(self.shared.opset, _MIN_OPSETS.get(op_type, OPSET))
        return outputs

    def add(
        self, op_type: str, *inputs: Operand | None, dtype: DType | None = None, name: str = "", **attrs: Any
    ) -> Operand:
        """Add a node with one result, of ``dtype`` or by default the dtype of the first input."""
        first = inputs[0] if inputs else None
        result = dtype if dtype is not None else first.dtype if first is not None else INT64
        (operand,) = self.add_node(op_type, inputs, [result], [name] if name else (), **attrs)
        return operand

    def add_with_casts(
        self,
        op_type: str,
        *inputs: Operand,
        others: Sequence[Operand] = (),
        dtype: DType | None = None,
        **attrs: Any,
    ) -> Operand:
        """Add a node in a dtype that the runtime computes, with casts around it if that is a wider one.

        Args:
            op_type: the name of the ONNX op.
            inputs: inputs of one dtype.
            others: further inputs, such as axes.
            dtype: the dtype of the result; None for that of ``inputs``.
            attrs: the attributes of the node.
        """
        dtype_of_inputs = inputs[0].dtype
        computed_dtype = runtime_dtype(op_type, dtype_of_inputs)
        operands = [self.cast(x, computed_dtype) for x in inputs]
        result = self.add(op_type, *operands, *others, dtype=dtype or computed_dtype, **attrs)
        return result if dtype is not None else self.cast(result, dtype_of_inputs)

    def cast(self, x: Operand, dtype: DType) -> Operand:
        """``x`` in another dtype."""
        return x if x.dtype is dtype else self.add("Cast", x, dtype=dtype, to=element_type(dtype))

    def constant(self, value: Any, dtype: DType) -> Operand:
        """A constant of the model."""
        return self.shared.constant(np.asarray(value, dtype.dtype))

    def ints(self, *values: int) -> Operand:
        """A constant vector of int64."""
        return self.shared.constant(np.array(values, np.int64))

    def where(self, condition: Operand, x: Operand, y: Operand) -> Operand:
        """``x`` where the condition holds, ``y`` elsewhere."""
        dtype = x.dtype
        computed_dtype = runtime_dtype("Where", dtype)
        selected = self.add(
            "Where",
            condition,
            self.cast(x, computed_dtype),
            self.cast(y, computed_dtype),
            dtype=computed_dtype,
        )
        return self.cast(selected, dtype)

    def require(self, ok: Operand, message: str) -> None:
        """Make the graph fail with ``message`` unless all elements of ``ok``, bools, are true."""
        everywhere = self.add_with_casts("ReduceMin", ok, keepdims=0)
        self.checks.append((everywhere, message))

    def after_checks(self, x: Operand) -> Operand:
        """``x`` after the checks: the runtime computes it only if they hold.

        ONNX has no op that raises an error. A Gather raises one for an index outside of its axis, here 1 for
        a check that fails; the node's name, which the runtime's error has, is the message.
        """
        for ok, message in self.checks:
            failed = self.cast(self.add("Not", ok, dtype=bool_), INT64)
            single = self.add("Unsqueeze", x, self.ints(0))
            x = self.add("Gather", single, failed, axis=0)
            self.nodes[-1].name = self.shared.unique(f"check failed: {message}")
        self.checks.clear()
        return x


def live_nodes(nodes: Sequence[onnx.NodeProto], results: Iterable[str]) -> list[onnx.NodeProto]:
    """The nodes on which ``results`` depend, in order."""
    needed, live = set(results), list[onnx.NodeProto]()
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            needed.update(names_read([node]))
            live.append(node)
    return live[::-1]


def names_read(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """The tensors that nodes, and the graphs inside of them, read."""
    names, pending = set[str](), list(nodes)
    while pending:
        node = pending.pop()
        names.update(node.input)
        pending += [inner for attribute in node.attribute for inner in attribute.g.node]
    return names
