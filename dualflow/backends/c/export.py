"""Export of a graph as C: a source file and its header, a build file, and an example program."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dualflow.backends.c.parameters import CParameter, parameters_of, shown_definitions
from dualflow.backends.c.program_source import ALIGNMENT, CProgram
from dualflow.backends.c.sizes import Sizes
from dualflow.backends.c.source_lines import MARK, c_string, c_type, literal
from dualflow.backends.c.tvm_ffi import tvm_ffi_source
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.graph.ir import Graph
from dualflow.schedule.call_reports import check_error
from dualflow.sizes.symbolic_sizes import SymInt, UndecidedSize

FLAGS = "-std=c11 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing"
"""The flags with which results have the bits of the default backend, and loops are vectorised."""

_HEAD = """\
#include "{name}.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#ifdef DF_CBLAS
#include <cblas.h>
#endif

/* Before a loop whose iterations are independent of each other, and the loops of a tile of a matrix. */
#if defined(__clang__)
#define DF_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define DF_UNROLL_ROWS _Pragma("clang loop unroll(full)")
#define DF_UNROLL_COLUMNS _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define DF_INDEPENDENT _Pragma("GCC ivdep")
#define DF_UNROLL_ROWS _Pragma("GCC unroll 6")
#define DF_UNROLL_COLUMNS _Pragma("GCC unroll 1")
#else
#define DF_INDEPENDENT
#define DF_UNROLL_ROWS
#define DF_UNROLL_COLUMNS
#endif

/* Threaded jumps turn selections, which loops of vectors have as one instruction, into several. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-thread-jumps")
#endif
"""


class ExportedProgram(NamedTuple):
    """A graph exported as C: the source of its function, and the files around it.

    Attributes:
        name: the name of the function.
        parameters: its parameters but the last one, the workspace.
        sizes: pairs of a name in the parameters' shapes that is no parameter, and its expression.
        header, source, build, example: the text of the files.
        tvm_ffi: the text of the function that TVM-FFI calls.
    """

    name: str
    parameters: tuple[CParameter, ...]
    sizes: tuple[tuple[str, str], ...]
    header: str
    source: str
    build: str
    example: str
    tvm_ffi: str

    @property
    def files(self) -> dict[str, str]:
        """The text of each file, by name."""
        return {
            f"{self.name}.h": self.header,
            f"{self.name}.c": self.source,
            "CMakeLists.txt": self.build,
            "main.c": self.example,
        }


def exported(graph: Graph, constants: Sequence[np.ndarray[Any, Any]] = ()) -> ExportedProgram:
    """The C files of ``graph``, which is optimised already.

    Args:
        graph: the graph; its sizes are static, or follow from those of its arguments.
        constants: the values of captured tensors, in their order: they are part of the file.

    Raises:
        InvalidArgumentError: a part of the graph has no C form.
    """
    try:
        program = CProgram(graph)
    except UndecidedSize as error:
        raise InvalidArgumentError(f"{graph.name} can't be exported as C for all sizes: {error}.") from None
    parameters = tuple(parameters_of(program, len(constants)))
    source = "\n".join(_source(program, parameters, constants))
    return ExportedProgram(
        program.name,
        parameters,
        tuple(shown_definitions(program).items()),
        _header(program, parameters),
        source,
        _build(program.name),
        _example(program, parameters),
        tvm_ffi_source(program, parameters),
    )


def _prototype(program: CProgram, parameters: Sequence[CParameter]) -> str:
    declared = ", ".join([*(p.declaration for p in parameters), "void *workspace"])
    text = f"int {program.name}({declared})"
    indent = " " * (len(program.name) + 5)
    return "\n".join(textwrap.wrap(text, 110, subsequent_indent=indent))


def _workspace_prototype(program: CProgram) -> str:
    names = [f"int64_t {name}" for name in program.sizes.names.values()]
    return f"size_t {program.name}_workspace({', '.join(names) or 'void'})"


def _header(program: CProgram, parameters: Sequence[CParameter]) -> str:
    guard = f"DF_{program.name.upper()}_H"
    return "\n".join(
        [
            f"/* {program.name}, {MARK}. */",
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            "#include <stdbool.h>",
            "#include <stddef.h>",
            "#include <stdint.h>",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            "/* Computes the function; returns 0, or the number of the check that failed.",
            " *",
            *_parameter_comments(program, parameters),
            " *",
            " * Tensors are contiguous, in row-major order. One call at a time uses the workspace, of",
            f" * {program.name}_workspace() bytes; if these are 0, it may be NULL. */",
            f"{_prototype(program, parameters)};",
            "",
            "/* The bytes of the workspace. */",
            f"{_workspace_prototype(program)};",
            "",
            "/* What a result other than 0 means. */",
            f"const char *{program.name}_message(int status);",
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif",
            "",
        ]
    )


def _parameter_comments(program: CProgram, parameters: Sequence[CParameter]) -> Iterator[str]:
    """A line for each tensor, then one for each size that their shapes name."""
    roles = {"argument": "read", "variable": "read and updated", "output": "written"}
    for p in parameters:
        if p.spec is not None:
            yield f" *     {p.name}: {p.spec.dtype.name}{p.shape}, {roles[p.role]}"
    for name, text in shown_definitions(program).items():
        yield f" *     {name} = {text}"


def _source(
    program: CProgram, parameters: Sequence[CParameter], constants: Sequence[np.ndarray[Any, Any]]
) -> Iterator[str]:
    body = list(_body(program, parameters))
    text = "\n".join(body)
    workspace = list(_workspace(program))  # before the functions of sizes that it calls are written
    yield f"/* {program.name}, {MARK}. Compile with\n * {FLAGS}. */"
    yield _HEAD.format(name=program.name)
    embedded = program.inputs[len(program.inputs) - len(constants) :]
    arrays = dict(zip(embedded, constants, strict=True))
    arrays |= {f"const{i}": array for i, array in enumerate(program.plan.constants)}
    yield from program.support.pieces()
    yield from program.sizes.functions.values()
    yield from (array_text(name, array) for name, array in arrays.items() if name in text)
    yield from program.routines.values()
    yield from program.kernels.values()
    yield text
    yield from workspace
    yield from _messages(program)


def _workspace(program: CProgram) -> Iterator[str]:
    """The C text of the function that returns the bytes of the workspace."""
    yield f"{_workspace_prototype(program)}\n{{"
    nbytes = program.workspace_bytes
    extra = "" if type(nbytes) is int and not nbytes else f" + {ALIGNMENT - 1}"
    sizes = program.sizes.of_another_function()
    text = f"    return (size_t)({sizes.text(nbytes)}{extra});\n}}\n"
    definitions = sizes.definition_lines(text)
    body = "\n".join([*definitions, text])
    yield from (f"    (void){name};" for name in sizes.names.values() if not _mentions(body, name))
    yield body


def _body(program: CProgram, parameters: Sequence[CParameter]) -> Iterator[str]:
    """The C text of the exported function."""
    yield f"{_prototype(program, parameters)}\n{{"
    lines = [*program.checked_sizes, *program.lines.text]
    lines = [*program.sizes.definition_lines("\n".join(lines)), *lines]
    text = "\n".join(lines)
    for name in [*(p.name for p in parameters), "workspace"]:
        if not _mentions(text, "arena" if name == "workspace" else name):
            yield f"    (void){name};"
    if _mentions(text, "arena"):
        mask = f"~(uintptr_t){ALIGNMENT - 1}"
        yield f"    char *const arena = (char *)(((uintptr_t)workspace + {ALIGNMENT - 1}) & {mask});"
    if _mentions(text, "status"):
        yield "    int status;"
    for buffer, dtype in program.rows.items():
        yield f"    {c_type(dtype)} *{program.buffer_name(buffer)};"
    for i in range(program.plan.loops):
        if _mentions(text, f"iteration{i}"):
            yield f"    int64_t iteration{i} = 0;"
    yield from lines
    yield "    return 0;\n}\n"


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def _messages(program: CProgram) -> Iterator[str]:
    """The C text of the function that returns the message of a check."""
    yield f"const char *{program.name}_message(int status)\n{{\n    switch (status) {{"
    yield '    case 0: return "";'
    for number, check in enumerate(program.checks, 1):
        yield f"    case {number}: return {c_string(str(check_error(check.node, check.message)))};"
    yield '    default: return "an unknown status";\n    }\n}\n'


def array_text(name: str, array: np.ndarray[Any, Any]) -> str:
    """An array as a constant of a C file."""
    dtype, flat = as_dtype(array.dtype), np.ascontiguousarray(array).reshape(-1)
    if dtype.is_complex:
        part = as_dtype(flat.real.dtype)
        numbers = [literal(x.item(), part) for x in flat.view(part.dtype)]
        head = f"static const {c_type(part)} {name}_parts[{max(1, len(numbers))}]"
        define = f"#define {name} ((const {c_type(dtype)} *){name}_parts)\n"
    else:
        numbers = [literal(x.item(), dtype) for x in flat]
        head, define = f"static const {c_type(dtype)} {name}[{max(1, len(numbers))}]", ""
    lines = textwrap.wrap(", ".join(numbers or ["0"]), 110, initial_indent="    ", subsequent_indent="    ")
    return "\n".join([f"{head} = {{", *lines, "};", define])


def _build(name: str) -> str:
    return f"""\
# {name}, {MARK}.
cmake_minimum_required(VERSION 3.10)
project({name} C)

set(CMAKE_C_STANDARD 11)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()

add_library({name} {name}.c)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
target_compile_options({name} PRIVATE -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math
                       -fno-strict-aliasing)
target_link_libraries({name} PUBLIC m)

option(DF_CBLAS "Compute matrix products by the CBLAS library that is found" OFF)
if(DF_CBLAS)
    find_package(BLAS REQUIRED)
    target_compile_definitions({name} PRIVATE DF_CBLAS)
    target_link_libraries({name} PUBLIC ${{BLAS_LIBRARIES}})
endif()

add_executable({name}_main main.c)
target_link_libraries({name}_main PRIVATE {name})
"""


def _example(program: CProgram, parameters: Sequence[CParameter]) -> str:
    """The C text of a program that calls the function with zeros, and prints the first results."""
    name = program.name
    lines: list[str] = []
    writer = Sizes(program.sizes.names)
    for p in parameters:
        if p.spec is not None:
            count = " * ".join(_factor(writer, size) for size in p.spec.shape) or "1"
            c = c_type(p.spec.dtype)
            lines.append(f"    {c} *{p.name} = calloc((size_t)({count}) + 1, sizeof({c}));")
    size_lines = [f"    const int64_t {p.name} = 4;" for p in parameters if p.spec is None]
    lines = [*size_lines, *writer.definition_lines("\n".join(lines)), *lines]
    sizes = ", ".join(program.sizes.names.values())
    arguments = ", ".join([*(p.name for p in parameters), "workspace"])
    tensors = [p.name for p in parameters if p.spec is not None]
    lines.append(f"    void *workspace = malloc({name}_workspace({sizes}) + 1);")
    lines.append(f"    const int status = {name}({arguments});")
    lines.append(f'    if (status != 0) fprintf(stderr, "%s\\n", {name}_message(status));')
    real = [p.name for p in parameters if p.role == "output" and p.spec and not p.spec.dtype.is_complex]
    lines += [f'    printf("{output}[0] = %g\\n", (double){output}[0]);' for output in real]
    lines += [f"    free({tensor});" for tensor in [*tensors, "workspace"]]
    return "\n".join(
        [
            f"/* Calls {name} with zeros; {MARK}. */",
            f'#include "{name}.h"',
            "",
            "#include <stdio.h>",
            "#include <stdlib.h>",
            "",
            *writer.functions.values(),
            "int main(void)",
            "{",
            *lines,
            "    return status;",
            "}",
            "",
        ]
    )


def _factor(sizes: Sizes, size: int | None) -> str:
    assert size is not None, "all sizes are computed before the program runs"
    return sizes.factor(size) if isinstance(size, SymInt) else str(size)
