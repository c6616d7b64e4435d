"""C compilers: those of the system, and that of the package ``ziglang``, which compiles for all machines."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from dualflow.backends.c.export import FLAGS, ExportedProgram
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError

_PROCESSORS: Final = {
    "native": ("-march=native", "-mcpu=native"),
    "x86-64-v3": ("-march=x86-64-v3", "--target=x86_64-linux-gnu -mcpu=x86_64_v3"),
    "generic": ("", "-mcpu=baseline"),
    "aarch64": ("", "--target=aarch64-linux-gnu"),
}
"""The options of GCC and Clang, and of zig, for each processor."""
CROSS_COMPILER: Final = "aarch64-linux-gnu-gcc"

WEB_HEADERS: Final = os.path.join(os.path.dirname(__file__), "web", "include")
WEB_FLAGS: Final = "-msimd128 -mbulk-memory -ffreestanding -nostdlib"
_WEB_LINK: Final = "--no-entry,--strip-all,--gc-sections,-z,stack-size=1048576"


def compile_library(program: ExportedProgram, folder: str, cpu: str) -> bytes:
    """The shared library of ``program``.

    Args:
        program: the program.
        folder: an empty folder for intermediate files.
        cpu: ``"native"``, ``"x86-64-v3"``, ``"generic"`` or ``"aarch64"``.

    Raises:
        InvalidArgumentError: the processor is not supported.
        FailedPreconditionError: there is no C compiler, or it fails.
    """
    if cpu not in _PROCESSORS:
        names = ", ".join(map(repr, _PROCESSORS))
        raise InvalidArgumentError(f"libraries are compiled for the processors {names}, not {cpu!r}.")
    name = program.name
    files = {**program.files, f"{name}_tvm_ffi.c": program.tvm_ffi}
    *sources, _ = _written(files, folder, f"{name}.c", f"{name}_tvm_ffi.c", f"{name}.h")
    path = os.path.join(folder, "library.so")
    flags = [*FLAGS.split(), "-fPIC", "-shared"]
    _run([*_compiler(cpu), *flags, *sources, "-o", path, "-lm"])
    with open(path, "rb") as library:
        return library.read()


def _written(files: Mapping[str, str], folder: str, *names: str) -> list[str]:
    """Write some of the files of a program to ``folder``; returns their paths."""
    paths = [os.path.join(folder, name) for name in names]
    for name, path in zip(names, paths, strict=True):
        with open(path, "w", encoding="utf-8") as file:
            file.write(files[name])
    return paths


def _compiler(cpu: str) -> list[str]:
    """The command of the C compiler, with its options for a processor."""
    own, zig = _PROCESSORS[cpu]
    named = os.environ.get("CC")
    candidates = [CROSS_COMPILER] if cpu == "aarch64" else [named] if named else ["cc", "gcc", "clang"]
    for candidate in candidates:
        words = shlex.split(candidate)
        if shutil.which(words[0]) is not None:
            return [*words, *own.split()]
    if _has_zig():
        return [*_ZIG, *zig.split()]
    raise FailedPreconditionError(
        f"there is no C compiler for {cpu}: none of {', '.join(candidates)} is on the PATH. Install one, or "
        "the package ziglang, which compiles for all processors."
    )


def compile_webassembly(program: ExportedProgram, folder: str) -> bytes:
    """The WebAssembly module of ``program``, which needs no C library.

    Args:
        program: the program.
        folder: an empty folder for intermediate files.

    Raises:
        FailedPreconditionError: there is no compiler for WebAssembly, or it fails.
    """
    source, _ = _written(program.files, folder, f"{program.name}.c", f"{program.name}.h")
    path = os.path.join(folder, "module.wasm")
    exported = [program.name, f"{program.name}_workspace", f"{program.name}_message", "__heap_base"]
    link = ",".join(["-Wl", _WEB_LINK, *(f"--export={name}" for name in exported)])
    flags = [*FLAGS.split(), *WEB_FLAGS.split(), "-isystem", WEB_HEADERS, link]
    _run([*_web_compiler(), *flags, source, "-o", path])
    with open(path, "rb") as module:
        return module.read()


def _web_compiler() -> list[str]:
    """The command of a compiler for WebAssembly."""
    if shutil.which("clang") is not None and shutil.which("wasm-ld") is not None:
        return ["clang", "--target=wasm32"]
    if _has_zig():
        return [*_ZIG, "-target", "wasm32-freestanding"]
    raise FailedPreconditionError(
        "there is no compiler for WebAssembly. Install clang and lld, or the package ziglang."
    )


_ZIG: Final = (sys.executable, "-m", "ziglang", "cc")


def _has_zig() -> bool:
    return importlib.util.find_spec("ziglang") is not None


def _run(command: Sequence[str]) -> None:
    """Run a compiler.

    Raises:
        FailedPreconditionError: it fails.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FailedPreconditionError(f"{shlex.join(command)} failed:\n{done.stderr.strip()}")
