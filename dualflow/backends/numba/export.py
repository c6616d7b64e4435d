"""Export of a graph as one file: its listing, its captures, and a function that checks its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dualflow.backends.numba.listing import array_source, definitions, docstring, file_text, function_name
from dualflow.backends.numba.numpy_kernels import kernel_source
from dualflow.backends.numba.program_source import ProgramSource, program
from dualflow.core.errors import InvalidArgumentError
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.graph.symbolic_size_ops import computes_sizes
from dualflow.schedule.call_reports import host_report
from dualflow.sizes.symbolic_sizes import UndecidedSize

_GUARDS = '''
def checked(name, value, shape, dtype):
    """An argument as a C-contiguous array of the right shape."""
    array = np.ascontiguousarray(value, dtype).reshape(np.shape(value))
    if not fits(array.shape, shape):
        raise ValueError(f"{name} has shape {array.shape}, but the program was compiled for {shape}")
    return array


def fits(shape, compiled):
    """Whether the program was compiled for a shape; it has None for sizes of any number."""
    return len(shape) == len(compiled) and all(m in (n, None) for n, m in zip(shape, compiled))


def updated(name, value, shape, dtype):
    """An argument that the program writes to, which must be a suitable array."""
    suits = isinstance(value, np.ndarray) and value.dtype == dtype and fits(value.shape, shape)
    if not suits or not value.flags.carray:
        raise ValueError(f"{name} is updated: it must be a C-contiguous, writeable array of {dtype} {shape}")
    return value


def run(*arrays):
    """Run the program; if a signal's handler ends it, raise its error."""
    try:
        return _program(*arrays)
    except SystemError as error:
        if error.__cause__ is None:
            raise
        raise error.__cause__ from None
'''


def export(graph: Graph, constants: Sequence[np.ndarray[Any, Any]] = ()) -> str:
    """The source of a file with a function of the graph's name that computes the graph.

    It takes an array for each argument and variable of the graph, and returns a list of arrays; variables are
    updated in place. Symbolic sizes are read from the shapes of arguments, and passed to kernels as numbers.
    ``constants`` are the values of captured tensors, in their order: they are part of the
    file, as are the graph's own.

    Raises:
        InvalidArgumentError: a part of the graph runs through code of dualflow, or in Python; or sizes are
            symbolic, and one depends on data.
    """
    if computes_sizes(graph):
        raise InvalidArgumentError(
            f"{graph.name} can't be exported for all sizes: the size of a tensor depends on data. Trace it "
            "for tensors of one shape."
        )
    try:
        source = program(graph, CompileOptions())
    except UndecidedSize as error:
        raise InvalidArgumentError(f"{graph.name} can't be exported for all sizes: {error}.") from None
    _require_exportable(source, graph.name)
    pieces = [
        *definitions(source, graph),
        source.text("_program"),
        _GUARDS,
        *_function(source, graph, constants),
    ]
    return file_text(pieces)


def _require_exportable(source: ProgramSource, name: str) -> None:
    inside = [host_report(call.node) for call in source.host_calls if kernel_source(call.node) is None]
    hosts = dict.fromkeys(f"{r.what} ({r.reason})" for r in inside)
    if hosts:
        raise InvalidArgumentError(
            f"{name} can't be exported, since a part of it runs through dualflow itself: {', '.join(hosts)}. "
            "Compute that outside of the function, and pass it the result."
        )


def _function(
    source: ProgramSource, graph: Graph, constants: Sequence[np.ndarray[Any, Any]]
) -> Iterator[str]:
    """The function that users call: it checks arguments and adds captured tensors."""
    num_arguments = len(graph.inputs) - len(constants)
    names, written = source.inputs, {u.input for u in graph.updates}
    for name, array in zip(names[num_arguments:], constants, strict=True):
        yield f"{name} = {array_source(array)}"
    parameters = ", ".join(names[:num_arguments])
    yield "\n".join(["", f"\ndef {function_name(graph)}({parameters}):", *docstring(graph)])
    for argument, value in zip(names[:num_arguments], graph.inputs, strict=False):
        guard = "updated" if value in written else "checked"
        shape = tuple([size if type(size) is int else None for size in value.spec.shape])
        dtype = value.spec.dtype.name
        yield f"    {argument} = {guard}({argument!r}, {argument}, {shape}, np.dtype({dtype!r}))"
    yield f"    return run({', '.join(names)})\n"
