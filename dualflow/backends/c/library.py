"""Compiles exported C files to a shared library, with the system's C compiler or that of ``ziglang``."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from typing import Final

from dualflow.backends.c.export import FLAGS
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError

_PROCESSORS: Final = {
    "native": ("-march=native", "-mcpu=native"),
    "x86-64-v3": ("-march=x86-64-v3", "--target=x86_64-linux-gnu -mcpu=x86_64_v3"),
    "generic": ("", "-mcpu=baseline"),
    "aarch64": ("", "--target=aarch64-linux-gnu"),
}
"""The options of GCC and Clang, and of zig, for each processor."""
CROSS_COMPILER: Final = "aarch64-linux-gnu-gcc"


def compile_library(folder: str, name: str, cpu: str) -> str:
    """Compile ``NAME.c`` in ``folder`` to a shared library; returns its path.

    Args:
        folder: the folder of the files.
        name: the name of the program.
        cpu: ``"native"``, ``"x86-64-v3"``, ``"generic"`` or ``"aarch64"``.

    Raises:
        InvalidArgumentError: another processor.
        FailedPreconditionError: there is no C compiler, or it fails.
    """
    if cpu not in _PROCESSORS:
        names = ", ".join(map(repr, _PROCESSORS))
        raise InvalidArgumentError(f"libraries are compiled for the processors {names}, not {cpu!r}.")
    path = os.path.join(folder, f"lib{name}.so")
    sources = [os.path.join(folder, f"{name}.c")]
    command = [*_compiler(cpu), *FLAGS.split(), "-fPIC", "-shared", "-I", folder, *sources, "-o", path, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FailedPreconditionError(f"{shlex.join(command)} failed:\n{done.stderr.strip()}")
    return path


def _compiler(cpu: str) -> list[str]:
    """The command of the C compiler, with its options for a processor."""
    own, zig = _PROCESSORS[cpu]
    named = os.environ.get("CC")
    candidates = [CROSS_COMPILER] if cpu == "aarch64" else [named] if named else ["cc", "gcc", "clang"]
    for candidate in candidates:
        words = shlex.split(candidate)
        if shutil.which(words[0]) is not None:
            return [*words, *own.split()]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc", *zig.split()]
    raise FailedPreconditionError(
        f"there is no C compiler for {cpu}: none of {', '.join(candidates)} is on the PATH. Install one, or "
        "the package ziglang, which compiles for all processors."
    )
