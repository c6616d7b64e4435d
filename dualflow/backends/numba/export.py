"""A compiled graph as one file that needs NumPy and Numba only."""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dualflow.backends.llvm.executable import check_error, host_report
from dualflow.backends.numba.executable import NumbaExecutable
from dualflow.backends.numba.program_source import ProgramCheck, ProgramSource
from dualflow.backends.numba.support import HEADER, ROUTINES
from dualflow.core.errors import InvalidArgumentError
from dualflow.graph.ir import Graph

_GUARDS = '''
def given(name, value, shape, dtype):
    """An argument as the program reads it."""
    array = np.ascontiguousarray(value, dtype).reshape(np.shape(value))
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, but the program was compiled for {shape}")
    return array


def updated(name, value, shape, dtype):
    """An argument that the program writes to."""
    fits = isinstance(value, np.ndarray) and value.dtype == dtype and value.shape == shape
    if not fits or not value.flags.carray:
        raise ValueError(f"{name} is updated: it must be a C-contiguous, writeable array of {dtype} {shape}")
    return value


def mark(loop):
    """Which loop runs."""


def fail(number, *values):
    kind, message = FAILURES[number - 1]
    raise kind(message)
'''


def export(compiled: NumbaExecutable, constants: Sequence[np.ndarray[Any, Any]] = ()) -> str:
    """The source of a file with one function of the graph's name, which does what the graph does.

    It takes an array for each argument and variable of the graph, and returns a list of arrays; variables are
    updated in place. ``constants`` are the values of captured tensors, in their order: they are part of the
    file, as are the graph's own.

    Raises:
        InvalidArgumentError: a part of the graph runs through NumPy kernels of dualflow, or in Python.
    """
    source, graph = compiled.source, compiled.graph
    _require_exportable(source, graph.name)
    name = graph.name if graph.name.isidentifier() else "run"
    parts = [
        f'"""{graph.name}, as dualflow compiled it. It needs NumPy and Numba."""\n',
        HEADER,
        ROUTINES,
        _GUARDS,
        _failures(source.checks),
        *_supports(source),
        *_kernels(source),
        source.text("program"),
        _function(compiled, name, constants),
    ]
    return "\n".join(parts)


def _require_exportable(source: ProgramSource, name: str) -> None:
    hosts = dict.fromkeys(f"{r.what} ({r.reason})" for r in map(host_report, source.hosts))
    if hosts:
        raise InvalidArgumentError(
            f"{name} can't be exported, since a part of it runs through dualflow itself: {', '.join(hosts)}. "
            "Compute that outside of the function, and give it the result."
        )


def _supports(source: ProgramSource) -> Iterator[str]:
    """The support functions of all kernels, each once."""
    found: dict[str, None] = {}
    for kernel in source.kernels.values():
        found.update(dict.fromkeys(kernel.support.pieces()))
    yield from found


def _kernels(source: ProgramSource) -> Iterator[str]:
    for name, kernel in source.kernels.items():
        yield kernel.function(name)
        if name in source.shared:
            yield kernel.shared(name)


def _failures(checks: Sequence[ProgramCheck]) -> str:
    """What each number means that the program calls ``fail`` with."""
    rows = []
    for check in checks:
        if check.message is None:
            where = f"\n{check.node.origin}" if check.node.origin else ""
            kind, message = "RuntimeError", f"a check failed{where}"
        else:
            error = check_error(check.node, check.message)
            kind = "IndexError" if isinstance(error, IndexError) else "ValueError"
            message = str(error)
        rows.append(f"    ({kind}, {message!r}),")
    return "\n".join(["", "FAILURES = [", *rows, "]", ""])


def _function(compiled: NumbaExecutable, name: str, constants: Sequence[np.ndarray[Any, Any]]) -> str:
    """The function that users call: arguments are looked at, constants are added."""
    source, graph = compiled.source, compiled.graph
    captured = len(graph.inputs) - len(constants)
    names = source.parameters
    written = {u.input for u in graph.updates}
    lines = ["", *_constants(names[captured:], [*constants, *compiled.plan.constants]), ""]
    lines += [f"def {name}({', '.join(names[:captured])}):", *_docstring(graph, names[:captured])]
    for argument, value in zip(names[:captured], graph.inputs, strict=False):
        guard = "updated" if value in written else "given"
        shape, dtype = tuple(value.spec.shape), value.spec.dtype.name
        lines.append(f"    {argument} = {guard}({argument!r}, {argument}, {shape}, np.dtype({dtype!r}))")
    lines += [f"    return program({', '.join(names)})", ""]
    return "\n".join(lines)


def _docstring(graph: Graph, names: Sequence[str]) -> list[str]:
    taken = ", ".join(f"{n}: {v.spec}" for n, v in zip(names, graph.inputs, strict=False))
    made = ", ".join(str(v.spec) for v in graph.outputs)
    told = textwrap.wrap(f"({taken}) -> [{made}]", 100)
    return ['    """' + told[0], *(f"    {line}" for line in told[1:]), '    """']


def _constants(names: Sequence[str], arrays: Sequence[np.ndarray[Any, Any]]) -> Iterator[str]:
    for name, array in zip(names, arrays, strict=True):
        raw = base64.b85encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
        kind = f"np.dtype({array.dtype.name!r})"
        yield f"{name} = np.frombuffer(base64.b85decode({raw!r}), {kind}).reshape({array.shape}).copy()"
