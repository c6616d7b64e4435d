"""The files that Numba compiles: one for each kernel, one for each conditional or loop, one for all routines.

What a file calls from another it imports by that file's name, which is the hash of its text. So a file's own
text says all that its code depends on, as Numba's cache needs it.
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
    """What routines call."""
    support = Support()
    support.primitive("plus")
    return support


def function_file(function: FunctionSource, context: ProgramContext) -> str:
    """A file with one function; the modules that it imports must be there when it is."""
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
