"""Writes the files of an exported program into a folder: C, a shared library, WebAssembly or a page."""

from __future__ import annotations

import os
import tempfile
from typing import Final

from dualflow.backends.c.compilers import compile_library, compile_webassembly
from dualflow.backends.c.export import ExportedProgram
from dualflow.backends.c.source_lines import MARK
from dualflow.backends.c.web_page import javascript_module, page
from dualflow.core.atomic_files import AtomicFile
from dualflow.core.errors import FailedPreconditionError

_WEBASSEMBLY: Final = b"\0asm"
_ELF: Final = b"\x7fELF"


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
    contents = {os.path.join(folder, name): content for name, content in _contents(program, to, cpu).items()}
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
    return list(contents)


def _contents(program: ExportedProgram, to: str, cpu: str) -> dict[str, bytes]:
    """The content of each file, by name."""
    sources = {name: text.encode() for name, text in program.files.items()}
    if to == "c":
        return sources
    with tempfile.TemporaryDirectory() as folder:
        if to == "library":
            library = compile_library(program, folder, cpu)
            tvm_ffi = {f"{program.name}_tvm_ffi.c": program.tvm_ffi.encode()}
            return {**sources, **tvm_ffi, f"lib{program.name}.so": _marked(library)}
        module = compile_webassembly(program, folder)
    if to == "html":
        return {f"{program.name}.html": page(program, module).encode()}
    return {
        f"{program.name}.wasm": module + _custom_section(MARK),
        f"{program.name}.mjs": javascript_module(program).encode(),
    }


def _marked(library: bytes) -> bytes:
    """A library with the mark after its end, where loaders of ELF files ignore it."""
    return library + MARK.encode() if library.startswith(_ELF) else library


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
    return MARK.encode() in (last if content.startswith((_WEBASSEMBLY, _ELF)) else first)
