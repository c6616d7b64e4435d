"""The files that Numba compiles: one for each kernel, one for each branch or loop, one for all routines.

A file imports from other files by their names, which are hashes of their texts. So the text of a file
determines all that its code depends on, as Numba's cache requires.
"""

from __future__ import annotations

import functools

from dualflow.backends.numba.call_source import ProgramContext
from dualflow.backends.numba.function_source import FunctionSource
from dualflow.backends.numba.kernel_source import KernelSource
from dualflow.backends.numba.routines import ROUTINES
from dualflow.backends.numba.source_files import module_name
from dualflow.backends.numba.support import HEADER, Support


def kernel_file(kernel: KernelSource) -> str:
    """A file with one kernel, ``kernel``."""
    return kernel.file("kernel")


@functools.cache
def routine_file() -> str:
    """A file with all routines."""
    return "\n".join([HEADER, *routine_support().pieces(), *ROUTINES.values()])


def routine_support() -> Support:
    """The support functions that routines call."""
    support = Support()
    support.primitive("plus")
    return support


def function_file(function: FunctionSource, context: ProgramContext) -> str:
    """A file with one function. The modules that it imports must be loaded first."""
    imports = [
        f"from {module_name(kernel_file(kernel))} import kernel as {name}"
        for name, kernel in context.kernels.items()
        if name in function.kernels
    ]
    imports += [
        f"from {module_name(function_file(part, context))} import {part.name}" for part in function.parts
    ]
    if function.routines:
        imports.append(f"from {module_name(routine_file())} import {', '.join(sorted(function.routines))}")
    return "\n".join([HEADER, *imports, *function.support.pieces(), "", function.text()])
