"""Running of programs like ``python``: a file, a folder or archive with a ``__main__``, or a module."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any, cast

from dualflow.cli.call import CommandError
from dualflow.core.tracebacks import hide_frames


@dataclass(frozen=True, slots=True)
class MainModule:
    """A program to run as ``__main__``.

    Attributes:
        load: returns the code.
        names: the module's names before its code runs.
    """

    load: Callable[[], CodeType]
    names: dict[str, Any]

    def run(self) -> None:
        """Run the code as ``__main__``; an error's traceback shows the program's own frames."""
        main = ModuleType("__main__")
        vars(main).update(self.names)
        sys.modules["__main__"] = main
        code = None
        try:
            code = self.load()
            exec(code, vars(main))
        except BaseException:
            sys.excepthook = _without_callers(code, sys.excepthook)
            raise


def add_program_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that name a program: a file, or ``-m`` and a module."""
    program = parser.add_mutually_exclusive_group(required=True)
    program.add_argument("file", metavar="FILE", nargs="?", help="the program, followed by its arguments")
    program.add_argument("-m", dest="module", metavar="MODULE", help="a module to run in its place")


def program_of_path(path: str, arguments: Sequence[str]) -> MainModule:
    """The program at ``path``; sets ``sys.argv`` and ``sys.path`` for it.

    Raises:
        CommandError: there is nothing at ``path``, or a folder without a ``__main__``.
    """
    if not os.path.exists(path):
        raise CommandError(f"there is no file {path!r} in {os.getcwd()}.")
    sys.argv = [path, *arguments]
    place = os.path.abspath(path)
    finder = pkgutil.get_importer(place)
    if finder is not None:  # a folder, or an archive
        _search_first(place)
        spec = finder.find_spec("__main__", None)
        if spec is None:
            raise CommandError(f"{path} has no __main__.py.")
        return _program_of_spec(spec)
    _search_first(os.path.dirname(os.path.realpath(path)))
    loader = SourceFileLoader("__main__", place)
    names = {"__file__": place, "__loader__": loader, "__package__": None, "__cached__": None}
    return MainModule(lambda: loader.source_to_code(loader.get_data(place), place), names)


def program_of_module(name: str, arguments: Sequence[str]) -> MainModule:
    """The module, or package with a ``__main__``, of that name; sets ``sys.argv`` for it.

    Raises:
        CommandError: there is no such module.
    """
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None:
        raise CommandError(f"there is no module {name!r} that can be run, in {os.getcwd()} or installed.")
    sys.argv = [spec.origin or name, *arguments]
    return _program_of_spec(spec)


def _program_of_spec(spec: ModuleSpec) -> MainModule:
    names = {
        "__file__": spec.origin,
        "__loader__": spec.loader,
        "__package__": spec.parent,
        "__cached__": spec.cached,
        "__spec__": spec,
    }
    loader = cast(InspectLoader, spec.loader)
    return MainModule(lambda: cast(CodeType, loader.get_code(spec.name)), names)


def _search_first(folder: str) -> None:
    """Replace the first entry of ``sys.path``, which ``python -m`` has set, by ``folder``."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


def _without_callers(code: CodeType | None, show: Hook) -> Hook:
    """An exception hook that shows frames from that of ``code`` on, without dualflow's."""

    def show_program(kind: type[BaseException], error: BaseException, entry: TracebackType | None) -> None:
        while entry is not None and entry.tb_frame.f_code is not code:
            entry = entry.tb_next
        error.__traceback__ = entry
        if isinstance(error, Exception):
            hide_frames(error)
        show(kind, error, error.__traceback__)

    return show_program
