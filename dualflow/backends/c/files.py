"""Writes the files of an exported program into a folder."""

from __future__ import annotations

import os

from dualflow.backends.c.export import MARK, ExportedProgram
from dualflow.backends.c.library import compile_library
from dualflow.core.atomic_files import AtomicFile
from dualflow.core.errors import FailedPreconditionError


def write_files(program: ExportedProgram, folder: str, *, library: bool, cpu: str, force: bool) -> list[str]:
    """Write the files of ``program``, and compile a shared library if ``library``; returns their paths.

    Raises:
        FailedPreconditionError: without ``force``, a file exists that dualflow has not written; or no C
            compiler compiles the library.
        OSError: a file can't be written.
    """
    os.makedirs(folder, exist_ok=True)
    paths = {os.path.join(folder, name): text for name, text in program.files.items()}
    for path in paths:
        if not force and not _is_exported(path):
            raise FailedPreconditionError(
                f"{path} exists, and dualflow has not written it; name another folder, or replace it with "
                "force."
            )
    for path, text in paths.items():
        with AtomicFile(path) as file:
            file.write(text.encode())
    return [*paths, compile_library(folder, program.name, cpu)] if library else list(paths)


def _is_exported(path: str) -> bool:
    """Whether there is no file at ``path``, or an exported one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return MARK in file.readline()
    except FileNotFoundError:
        return True
