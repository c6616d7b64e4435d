"""A compiled graph with checked memory; see :mod:`dualflow.backends.llvm.runtime.checked_memory`.

Each input, constant, output and intermediate has a separate buffer between protected pages, and each
statement separate scratch memory. Inputs and constants are copied to these buffers, read-only but for
variables that the graph updates. The results of a call, and the inputs of host kernels, are copies in
ordinary memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dualflow.backends.llvm.compile_graph import compile_graph
from dualflow.backends.llvm.executable import Executable, NativePart
from dualflow.backends.llvm.host_step import HostStep
from dualflow.backends.llvm.program import Program
from dualflow.backends.llvm.runtime import checked_memory
from dualflow.backends.llvm.runtime.checked_memory import StepTexts
from dualflow.backends.llvm.sized_call import SizedCall
from dualflow.backends.llvm.steps import FUNCTION, StepKind
from dualflow.core.array_address import address_of
from dualflow.graph.effect_log import EffectLog
from dualflow.graph.fused import body_of
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions

Array = np.ndarray[Any, Any]


class CheckedExecutable(Executable):
    """A compiled graph whose calls detect accesses outside of buffers."""

    __slots__ = ("_texts",)

    def __init__(self, graph: Graph, options: CompileOptions) -> None:
        super().__init__(compile_graph(graph, options), options)
        constants = [checked_memory.copied(x, "a constant", frozen=True) for x in self.image.constants]
        self.image = self.image._replace(constants=tuple(constants))
        self._texts = StepTexts.of(_step_texts(graph, self.program))

    def run(self, arrays: Sequence[Array], effect_log: EffectLog | None = None) -> list[Array]:
        inputs = [
            checked_memory.copied(array, f"input {i}", frozen=i not in self.inputs.updated)
            for i, array in enumerate(arrays)
        ]
        try:
            outputs = super().run(inputs, effect_log)
        finally:
            for i in self.inputs.updated:
                np.copyto(arrays[i], inputs[i])
        return [output.copy() for output in outputs]

    def launch(self, call: Callable[..., Any], arrays: Sequence[Array], result: Array, params: Array) -> None:
        inputs = [checked_memory.copied(array, f"input {i}", frozen=True) for i, array in enumerate(arrays)]
        output = checked_memory.empty(result.shape, result.dtype, "the output")
        with checked_memory.native_call(self._texts, address_of(params), self.inputs.name):
            super().launch(call, inputs, output, params)
        np.copyto(result, output)

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        return checked_memory.empty(shape, dtype, "an output or intermediate")

    def host(self, step: HostStep, buffers: list[Array], effect_log: EffectLog | None) -> None:
        table = list(buffers)
        for buffer in {x.layout.buffer for x in step.inputs}:
            table[buffer] = buffers[buffer].copy()
        step.run(table, effect_log)
        for buffer in {x.buffer for x in step.outputs}:
            buffers[buffer] = _result_of(step.node, table[buffer])

    def sized_call(self, params: Array, arrays: Sequence[Array]) -> SizedCall:
        return _CheckedSizedCall(self.image, params, arrays, self._take_arena(0))

    def enter(
        self,
        part: NativePart,
        addresses: Sequence[int],
        status: Array,
        effect_log: EffectLog | None,
        params: Array | None = None,
    ) -> None:
        with checked_memory.native_call(self._texts, addresses[1], self.inputs.name):
            super().enter(part, addresses, status, effect_log, params)

    def _take_arena(self, nbytes: int) -> Array:
        workspace = self.program.workspace
        assert workspace is not None, "memory is checked"
        return workspace.allocated()

    def _give_arena(self, arena: Array) -> None:
        """Drop the arena: it is not reused by later calls."""


class _CheckedSizedCall(SizedCall):
    """A call of a program with dynamic sizes, with checked memory."""

    __slots__ = ()

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        return checked_memory.empty(shape, dtype, "an output or intermediate")

    def input_of_host(self, array: Array) -> Array:
        return array.copy()

    def result_of_host(self, node: Node, array: Array) -> Array:
        return _result_of(node, array)

    def free(self, address: int) -> None:
        checked_memory.free(address)


def _result_of(node: Node, array: Array) -> Array:
    return checked_memory.copied(array, f"the result of {node.op.name}", frozen=False)


def _step_texts(graph: Graph, program: Program) -> list[tuple[int, str]]:
    """The byte offset in the parameter table and a description of each step, for faults."""
    texts = []
    for address, kind, node, parent in program.steps:
        function = program.image.functions.get(
            address + FUNCTION, "an entry" if kind is StepKind.NOTE else kind.name.lower()
        )
        text = f"{function} computes {_described(node)} in graph {graph.name!r}"
        texts.append((8 * address, "\n".join([text, *(_lines(node) or _lines(parent))])))
    return texts


def _described(node: Node) -> str:
    body = body_of(node)
    inner = "" if body is None else f"({', '.join([inside.op.name for inside in body.nodes])})"
    return f"{node.op.name}{inner} -> {', '.join(map(str, node.specs))}"


def _lines(node: Node | None) -> list[str]:
    """The user's source lines of a node."""
    origins = () if node is None else (node.origin, *node.merged_origins)
    return list(dict.fromkeys([str(origin) for origin in origins if origin is not None]))
