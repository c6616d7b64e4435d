"""Exported C programs that tests compile with a real compiler and call through ctypes."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dualflow.backends.c.export import FLAGS, ExportedProgram
from dualflow.core.records import replace
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.calls.exported_graph import exported_graph
from dualflow.function.calls.lazy_backends import c_program
from dualflow.sizes.size_maths import NUMBERS

WARNINGS = "-Wall -Wextra -Werror"
Array = np.ndarray[Any, Any]


class CheckFailed(Exception):
    """A call returned the number of a check; the message is that of the check."""


def program_of(concrete: Any, name: str | None = None) -> ExportedProgram:
    """The C program of a trace, under another name if there is one."""
    graph = exported_graph(concrete.graph, concrete.options, "c")
    if name is not None:
        graph = replace(graph, name=name)
    program: ExportedProgram = c_program(
        graph, [array_of(c.source) for c in graph.captures if not c.variable]
    )
    return program


def compiled(
    programs: Sequence[ExportedProgram],
    folder: Path,
    compiler: str = "gcc",
    options: str = f"{WARNINGS} -march=native",
    libraries: str = "",
) -> ctypes.CDLL:
    """A shared library of programs with different names."""
    for program in programs:
        for name in (f"{program.name}.c", f"{program.name}.h"):
            (folder / name).write_text(program.files[name])
    flags = [*FLAGS.split(), *options.split(), "-fPIC"]
    sources = [f"{program.name}.c" for program in programs]
    for first in range(0, len(sources), 40):
        run([compiler, *flags, "-c", *sources[first : first + 40]], folder)
    library = folder / "programs.so"
    linked = [*[f"{p.name}.o" for p in programs], *libraries.split(), "-lm"]
    run([compiler, *flags, "-shared", *linked, "-o", str(library)], folder)
    return ctypes.CDLL(str(library))


def compiled_together(
    programs: Sequence[ExportedProgram],
    folder: Path,
    compiler: str = "gcc",
    options: str = "-O1 -march=native",
) -> ctypes.CDLL:
    """The same for many small programs, in one file: that takes a tenth of the time."""
    (folder / "programs.c").write_text(one_file(programs))
    library = folder / "programs.so"
    flags = [*FLAGS.split(), *WARNINGS.split(), *options.split(), "-fPIC", "-shared"]
    run([compiler, *flags, "programs.c", "-o", str(library), "-lm"], folder)
    return ctypes.CDLL(str(library))


def one_file(programs: Sequence[ExportedProgram]) -> str:
    """The text of one file with all programs.

    Functions that the programs have in common occur once; names that are private to a program get its
    number.
    """
    pieces: dict[str, None] = {}
    for number, program in enumerate(programs):
        text = re.sub(r"\b(?:k\d+_\w+|const\d+\w*)\b", rf"\g<0>_of{number}", program.source)
        text = text.replace(f'#include "{program.name}.h"', "")
        pieces.update(dict.fromkeys([program.header, *text.split("\n\n")]))
    return "\n\n".join(pieces)


def run(command: Sequence[str], folder: Path) -> str:
    """The output of a command, which must succeed without a word on stderr."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[:4000]
    assert done.stderr == "", done.stderr[:3000]
    return done.stdout


def call(library: ctypes.CDLL, program: ExportedProgram, arrays: Sequence[Array]) -> list[Array]:
    """The outputs of a call. Arrays of variables are updated in place.

    Raises:
        CheckFailed: the function returned another number than 0.
    """
    arrays = [np.require(array, requirements="CA") for array in arrays]
    sizes, results = _sizes_and_results(program, arrays)
    workspace_bytes = getattr(library, f"{program.name}_workspace")
    workspace_bytes.restype = ctypes.c_size_t
    numbers = [ctypes.c_int64(size) for size in sizes.values()]
    workspace = np.empty(workspace_bytes(*numbers), np.uint8)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, *results, workspace)]
    before, after = pointers[: len(arrays)], pointers[len(arrays) :]
    status = getattr(library, program.name)(*before, *numbers, *after)
    if status:
        message = getattr(library, f"{program.name}_message")
        message.restype = ctypes.c_char_p
        raise CheckFailed(message(status).decode())
    return results


def call_process(command: Sequence[str], program: ExportedProgram, arrays: Sequence[Array]) -> list[Array]:
    """The outputs of a call by a process of :func:`main_program`."""
    sizes, results = _sizes_and_results(program, arrays)
    words = [*command, *[str(n) for n in (*sizes.values(), *[x.nbytes for x in (*arrays, *results)])]]
    data = b"".join(np.ascontiguousarray(x).tobytes() for x in arrays)
    done = subprocess.run(words, input=data, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    ends = np.cumsum([0, *(x.nbytes for x in results)])
    return [
        np.frombuffer(done.stdout[a:b], x.dtype).reshape(x.shape)
        for a, b, x in zip(ends, ends[1:], results, strict=False)
    ]


def main_program(program: ExportedProgram) -> str:
    """A C program that reads the inputs from its standard input, and writes the outputs.

    Its arguments are the dynamic sizes, then the bytes of each tensor.
    """
    name = program.name
    sizes = [p.name for p in program.parameters if p.role == "size"]
    tensors = [p for p in program.parameters if p.spec is not None]
    numbers = {p.name: f"atoll(argv[{i}])" for i, p in enumerate([*_named(program, "size"), *tensors], 1)}
    lines = [f"    const int64_t {size} = {numbers[size]};" for size in sizes]
    for p in tensors:
        lines.append(f"    void *{p.name} = malloc((size_t){numbers[p.name]} + 1);")
        if p.role != "output":
            lines.append(f"    if (fread({p.name}, 1, (size_t){numbers[p.name]}, stdin) == 0) return 1;")
    lines.append(f"    void *workspace = malloc({name}_workspace({', '.join(sizes)}) + 1);")
    lines.append(
        f"    const int status = {name}({', '.join([p.name for p in program.parameters])}, workspace);"
    )
    lines.append(f'    if (status != 0) return fprintf(stderr, "%s", {name}_message(status)), 1;')
    lines += [
        f"    fwrite({p.name}, 1, (size_t){numbers[p.name]}, stdout);" for p in tensors if p.role == "output"
    ]
    lines += [f"    free({p});" for p in [*[p.name for p in tensors], "workspace"]]
    includes = [f'#include "{name}.h"', "#include <stdio.h>", "#include <stdlib.h>"]
    return "\n".join([*includes, "int main(int argc, char **argv)", "{", "    (void)argc;", *lines, "}", ""])


def _named(program: ExportedProgram, role: str) -> list[Any]:
    return [p for p in program.parameters if p.role == role]


def _sizes_and_results(
    program: ExportedProgram, arrays: Sequence[Array]
) -> tuple[dict[str, int], list[Array]]:
    """The dynamic sizes of a call by name, and arrays for its outputs."""
    inputs = [p for p in program.parameters if p.role in ("argument", "variable")]
    sizes = {p.name: _size(p.name, inputs, arrays) for p in _named(program, "size")}
    functions = {name: getattr(NUMBERS, name) for name in dir(NUMBERS) if not name.startswith("_")}
    numbers: dict[str, Any] = dict(sizes)
    for name, text in program.sizes:
        numbers[name] = eval(text, functions, numbers)
    outputs = _named(program, "output")
    return sizes, [np.empty(eval(p.shape, functions, numbers), p.spec.dtype.dtype) for p in outputs]


def _size(name: str, inputs: Sequence[Any], arrays: Sequence[Array]) -> int:
    """The size that a parameter such as ``x_size0`` is."""
    tensor, _, axis = name.rpartition("_size")
    (array,) = [a for p, a in zip(inputs, arrays, strict=True) if p.name == tensor]
    return int(array.shape[int(axis)])


def bits(array: Any) -> bytes:
    """The bytes of an array, in which all NaNs are equal."""
    plain = np.atleast_1d(np.ascontiguousarray(array))
    if plain.dtype.kind in "fc":
        plain = plain.view(plain.real.dtype)
        plain = np.where(np.isnan(plain), np.array(np.nan, plain.dtype), plain)
    return plain.tobytes()
