"""Writes the files of an exported program into a folder: C, a shared library, WebAssembly or a page."""

from __future__ import annotations

import os
import tempfile

from dualflow.backends.c.compilers import compile_library, compile_webassembly
from dualflow.backends.c.export import ExportedProgram
from dualflow.backends.c.values import MARK
from dualflow.backends.c.web_page import javascript_module, page
from dualflow.core.atomic_files import AtomicFile
from dualflow.core.errors import FailedPreconditionError


def write_files(program: ExportedProgram, folder: str, to: str, *, cpu: str, force: bool) -> list[str]:
    """Write the files of ``program`` for a target; returns their paths.

    Args:
        program: the program.
        folder: where they are written; it is created if it doesn't exist.
        to: ``"c"``, ``"library"``, ``"wasm"`` or ``"html"``.
        cpu: the processor of a library.
        force: whether to replace files that dualflow has not written.

    Raises:
        FailedPreconditionError: without ``force``, a file exists that dualflow has not written; or no
            compiler compiles the program.
        OSError: a file can't be written.
    """
    contents = {os.path.join(folder, name): content for name, content in _contents(program, to).items()}
    for path in contents:
        if not force and not _is_exported(path):
            raise FailedPreconditionError(
                f"{path} exists, and dualflow has not written it; name another folder, or replace it with "
                "force."
            )
    os.makedirs(folder, exist_ok=True)
    for path, content in contents.items():
        with AtomicFile(path) as file:
            file.write(content)
    return [*contents, compile_library(program, folder, cpu)] if to == "library" else list(contents)


def _contents(program: ExportedProgram, to: str) -> dict[str, bytes]:
    """The content of each file, by name."""
    if to in ("c", "library"):
        files = program.files
        if to == "library":
            files[f"{program.name}_tvm_ffi.c"] = program.tvm_ffi
        return {name: text.encode() for name, text in files.items()}
    with tempfile.TemporaryDirectory() as folder:
        module = compile_webassembly(program, folder)
    if to == "html":
        return {f"{program.name}.html": page(program, module).encode()}
    return {
        f"{program.name}.wasm": module + _custom_section(MARK),
        f"{program.name}.mjs": javascript_module(program).encode(),
    }


def _custom_section(name: str) -> bytes:
    """An empty custom section of a WebAssembly module, of less than 127 bytes."""
    content = bytes([len(name)]) + name.encode()
    return bytes([0, len(content)]) + content


def _is_exported(path: str) -> bool:
    """Whether there is no file at ``path``, or an exported one: it has the mark in its first or last line."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return True
    first, last = content.partition(b"\n")[0], content[-len(MARK) :]
    return MARK.encode() in (last if content.startswith(b"\0asm") else first)
