"""Listings: a graph's program as one Python file, with comments, which needs NumPy and Numba only.

It is the code that runs: support functions, kernels, branches and loops, and the function that calls them in
order.
"""

from __future__ import annotations

import base64
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dualflow.backends.numba.call_source import ProgramCheck
from dualflow.backends.numba.files import routine_support
from dualflow.backends.numba.kernel_source import KernelSource
from dualflow.backends.numba.line_comments import commented, ops_comment
from dualflow.backends.numba.numpy_kernels import kernel_source
from dualflow.backends.numba.parameters import dtype_name
from dualflow.backends.numba.program_source import ProgramSource, is_free, program
from dualflow.backends.numba.routines import ROUTINES
from dualflow.backends.numba.support import HEADER
from dualflow.core.dtypes import as_dtype
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.schedule.call_reports import check_error, host_report

MAX_LISTED_ELEMENTS = 32
"""The largest number of elements of an array that is listed."""
_MARK = '''
def mark(loop):
    """Called with the number of the loop that runs; -1 for none."""
'''
_FAIL = '''
def fail(number, *values):
    """Raise the error of a check."""
    kind, message = FAILURES[number - 1]
    raise kind(message)
'''
_ROWS_WITHIN = '''
def rows_within(nbytes):
    """The number of rows of nbytes that a loop may stack: as many as fit into memory."""
    return 2**62 // nbytes
'''


def listing(graph: Graph) -> str:
    """The program of ``graph``, whose passes have run.

    Its function takes an array for each input of the graph.
    """
    program_source = program(graph, CompileOptions())
    return file_text(
        [*definitions(program_source, graph), program_source.text(function_name(graph), docstring(graph))]
    )


def listed_kernels(graph: Graph) -> dict[Node, str]:
    """The name that the kernel of each node has in the listing; equal kernels have one name."""
    calls = program(graph, CompileOptions()).context.kernel_calls
    return {node: name for name, nodes in calls for node in nodes}


def file_text(pieces: Sequence[str]) -> str:
    """The text of a file from pieces, with at most two empty lines between them."""
    return re.sub(r"\n{3,}", "\n\n\n", "\n".join(pieces)).rstrip("\n") + "\n"


def function_name(graph: Graph) -> str:
    """The graph's name if it is a valid function name, or else ``program``."""
    name = graph.name
    return name if is_free(name) else "program"


def definitions(source: ProgramSource, graph: Graph) -> Iterator[str]:
    """The definitions that the program's function calls, in an order in which Python can execute them."""
    yield f'"""{graph.name}, as dualflow compiled it. It needs NumPy and Numba."""\n'
    yield HEADER
    functions = [part for function in source.functions for part in function.walk()]
    routines = source.routines.union(*(f.routines for f in functions))
    supports = [k.support for k in source.context.kernels.values()] + [f.support for f in functions]
    if "product" in routines:
        supports.append(routine_support())
    yield from dict.fromkeys(piece for support in supports for piece in support.pieces())
    yield from (ROUTINES[name] for name in ROUTINES if name in routines)
    for name, kernel in source.context.kernels.items():
        nodes = next((nodes for n, nodes in source.context.kernel_calls if n == name), ())
        yield "\n".join(["", *_kernel(name, kernel, nodes)])
        if name in source.parallel_kernels:
            yield kernel.shared(name)
    yield from (f"\n{function.text(comments=True)}" for function in functions)
    yield from (_host(number, call.node) for number, call in enumerate(source.host_calls))
    if source.checks:
        yield _failures(source.checks)
        yield _FAIL
    if source.marked_loops:
        yield _MARK
    if "rows_within(" in source.text(""):
        yield _ROWS_WITHIN
    yield from source.context.sizes.functions.values()
    yield from ("", *(f"{name} = {array_source(array)}" for name, array in source.constants.items()))
    yield ""


def docstring(graph: Graph) -> list[str]:
    """The function's docstring: the specs of its arguments and results."""
    inputs = ", ".join(f"{v.spec}" for v in graph.inputs)
    outputs = ", ".join(str(v.spec) for v in graph.outputs)
    lines = textwrap.wrap(f"({inputs}) -> [{outputs}]", 100)
    if len(lines) == 1:
        return [f'    """{lines[0]}"""']
    return ['    """' + lines[0], *(f"    {line}" for line in lines[1:]), '    """']


def array_source(array: np.ndarray[Any, Any]) -> str:
    """An array as source: its elements or, if there are many, its bytes.

    >>> array_source(np.array([1.5, 2.0], np.float32)), array_source(np.zeros((0, 3), np.int32))
    ('np.array([1.5, 2.0], f32)', 'np.array([], i32).reshape((0, 3))')
    """
    shape = "" if array.ndim == 1 else f".reshape({array.shape})"
    flat = np.ascontiguousarray(array).reshape(-1)
    if array.size <= MAX_LISTED_ELEMENTS and array.dtype.kind in "biuf":
        return f"np.array({flat.tolist()}, {dtype_name(as_dtype(array.dtype))}){shape}"
    raw = base64.b85encode(flat.tobytes()).decode("ascii")
    kind = f"np.dtype({array.dtype.name!r})"
    return f"np.frombuffer(base64.b85decode({raw!r}), {kind}).copy(){shape}"


def _kernel(name: str, kernel: KernelSource, nodes: Sequence[Node]) -> Iterator[str]:
    """The source of a kernel, with a comment at the beginning of each node's code."""
    at: dict[int, dict[Node, None]] = {}
    for place, node in kernel.nodes:
        at.setdefault(place, {})[node] = None
    head, signature, *_ = kernel.function(name).splitlines()
    yield from textwrap.wrap(ops_comment(nodes), 100, initial_indent="# ", subsequent_indent="# ")
    yield from (head, signature)
    current = ""
    for i, line in enumerate(kernel.lines):
        comment = ops_comment(tuple(at[i])) if i in at else current
        yield line if comment == current else commented(line, comment)
        current = comment
    yield ""


def _host(number: int, node: Node) -> str:
    """The source of a host call: the op's NumPy code, or a function that raises if that needs dualflow."""
    kernel = kernel_source(node)
    if kernel is not None:
        return f"\n{kernel.function(f'host{number}')}"
    report = host_report(node)
    message = f"{report.what} runs in dualflow only: {report.reason}"
    return f"\ndef host{number}(*arrays):\n    raise NotImplementedError({message!r})\n"


def _failures(checks: Sequence[ProgramCheck]) -> str:
    """The source of ``fail``, which raises the error of a check's number."""
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
