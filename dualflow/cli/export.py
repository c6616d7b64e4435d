"""The command ``export``: a function as a program without dualflow, for one of the targets of a table."""

from __future__ import annotations

import os
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any, Final

from dualflow.cli.call import ARGUMENTS, CommandError, add_call_arguments, named_call, trace_of
from dualflow.core.atomic_files import AtomicFile
from dualflow.core.records import NamedTuple
from dualflow.function.concrete import ConcreteFunction

EXPORTED: Final = "# Written by python -m dualflow export, which replaces this file.\n"
"""The first line of an exported Python file, by which it is recognised."""


class ExportTarget(NamedTuple):
    """A target of ``--to``: its description, and the function that writes it.

    Attributes:
        content: what is written, for ``--help``.
        write: writes it, from the trace, the options of the command line and the Python function; returns
            what the command prints.
    """

    content: str
    write: Callable[[ConcreteFunction, Namespace, Any], str]


def add_export_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_call_arguments(parser)
    parser.add_argument("file", metavar="TARGET", help="the file to write, or the folder")
    parser.add_argument("--force", action="store_true", help="replace files that dualflow has not written")
    parser.add_argument("--to", choices=list(TARGETS), default="numba", help="what is written")
    parser.add_argument("--cpu", default="native", help="the library's: native, x86-64-v3, generic, aarch64")


def export(options: Namespace) -> str:
    """Write the function that the options name.

    Raises:
        CommandError: a file can't be written, or would replace one that dualflow has not written.
    """
    called, arguments = named_call(options)
    try:
        return TARGETS[options.to].write(trace_of(called, arguments), options, called)
    except OSError as error:
        raise CommandError(f"{options.file} can't be written: {error.strerror}.") from None


def _write_python(concrete: ConcreteFunction, options: Namespace, called: Any) -> str:
    """Write a Python file for Numba."""
    _check_target(options.file, called, force=options.force)
    text = EXPORTED + concrete.source("numba")
    with AtomicFile(options.file) as file:
        file.write(text.encode())
    return f"{options.file}: {len(text.splitlines())} lines"


def _write_folder(concrete: ConcreteFunction, options: Namespace, called: Any) -> str:
    """Write the files of ``concrete.export`` into a folder."""
    del called
    return "\n".join(concrete.export(options.file, options.to, cpu=options.cpu, force=options.force))


def _write_model(concrete: ConcreteFunction, options: Namespace, called: Any) -> str:
    """Write an ONNX file."""
    del called
    return "\n".join(concrete.export(options.file, "onnx", force=options.force))


def _check_target(path: str, called: Any, *, force: bool) -> None:
    """Raise if ``path`` is the file of ``called``, or exists and was not written by dualflow.

    Raises:
        CommandError: it is the function's file; or without ``force``, it exists and is not an exported file.
    """
    code = getattr(getattr(called, "python_function", called), "__code__", None)
    source = "" if code is None else code.co_filename
    if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
        raise CommandError(f"{path} is the file of the function itself; name another file.")
    if not force and not _is_exported(path):
        raise CommandError(
            f"{path} exists, and dualflow has not written it; name another file, or replace it with --force."
        )


def _is_exported(path: str) -> bool:
    """Whether there is no file at ``path``, or an exported one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline() == EXPORTED
    except FileNotFoundError:
        return True


TARGETS: Final[dict[str, ExportTarget]] = {
    "numba": ExportTarget("one Python file, which needs NumPy and Numba", _write_python),
    "c": ExportTarget("a folder with NAME.c, NAME.h, CMakeLists.txt and an example main.c", _write_folder),
    "library": ExportTarget(
        "the same, and a shared library, by the system's C compiler or the package ziglang", _write_folder
    ),
    "wasm": ExportTarget(
        "a folder with NAME.wasm and NAME.mjs, by clang and lld or the package ziglang", _write_folder
    ),
    "html": ExportTarget("a folder with NAME.html, a page that runs the function", _write_folder),
    "onnx": ExportTarget("an ONNX file, for ONNX Runtime and other programs", _write_model),
}
"""The targets by the word that ``--to`` names them with."""


def _description() -> str:
    """The text of ``--help``."""
    lines = []
    for name, target in TARGETS.items():
        head = f"  --to {name:<8} "
        lines += textwrap.wrap(target.content, 100, initial_indent=head, subsequent_indent=" " * len(head))
    targets = "\n".join(lines)
    return f"""\
Trace a function, compile it, and write the result as a program without dualflow. Nothing of it runs.

{targets}

{ARGUMENTS}

  python -m dualflow export model.py:loss step.py --args "df.TensorSpec([32, 64])"
  python -m dualflow export train:step out/ --to c --args "df.TensorSpec([None, 64])"
"""


EXPORT_DESCRIPTION: Final = _description()
