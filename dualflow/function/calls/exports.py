"""Writes the files of an exported trace."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.calls.exported_graph import exported_graph, simplified_graph
from dualflow.function.calls.lazy_backends import c_program, onnx_model, write_c_files, write_onnx_file
from dualflow.graph.ir import Capture, Graph
from dualflow.graph.options import CompileOptions


def write_c(
    graph: Graph, options: CompileOptions, folder: str, to: str, *, cpu: str, force: bool
) -> list[str]:
    """Write the C files of a trace; see :meth:`ConcreteFunction.export`.

    Raises:
        InvalidArgumentError: there is no such target, or an op has no C form.
    """
    if to not in ("c", "library", "wasm", "html"):
        raise InvalidArgumentError(
            f"There is no export to {to!r}: use 'c', 'library', 'wasm', 'html' or 'onnx'."
        )
    graph = exported_graph(graph, options, "c")
    tensors = [array_of(c.source) for c in graph.captures if not c.variable]
    program = c_program(graph, tensors)
    return write_c_files(program, folder, to, cpu=cpu, force=force)


def write_onnx(
    graph: Graph,
    options: CompileOptions,
    results: Any,
    path: str,
    *,
    force: bool,
    names: Mapping[int, str] = MappingProxyType({}),
) -> list[str]:
    """Write the ONNX model of a trace.

    Args:
        graph: what the trace recorded.
        options: how it is compiled.
        results: the structure that it returns.
        path: the file.
        force: whether to replace a file that dualflow has not written.
        names: by the ids of captured variables, names that differ from their own.

    Raises:
        InvalidArgumentError: an op has no ONNX form.
        FailedPreconditionError: the file exists, and dualflow has not written it.
    """
    graph = simplified_graph(graph, options)
    is_named = isinstance(results, Mapping) and len(results) == len(graph.outputs)
    outputs = sorted(results) if is_named else [f"output_{i}" for i in range(len(graph.outputs))]
    captured = [names.get(id(c.source)) or _name(c) for c in graph.captures]
    model = onnx_model(graph, outputs, captured, [array_of(c.source) for c in graph.captures])
    return write_onnx_file(model, path, force=force)


def _name(capture: Capture) -> str:
    """The name of a captured variable; ``captured`` for a tensor."""
    name = capture.source.name if capture.variable else None
    return name.removesuffix(":0") if name else "captured"
