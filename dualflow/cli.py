"""The command line: ``python -m dualflow compare MODULE:FUNCTION`` and ``python -m dualflow info``."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

import numpy as np

import dualflow
from dualflow.core.errors import DualflowError
from dualflow.function.comparison import size

_COMPARE = """\
Run a function eagerly and as a compiled graph, and print what each takes: time, memory, ops and
kernels, what was fused, and the number of calls after which compiling has paid.

The arguments come from --args, else from the function's attribute example_args, else from its
module's example_args: a tuple, or a function that answers one.

  python -m dualflow compare train:step
  python -m dualflow compare model.py:loss --args "df.ones([32, 64]), rate=0.5"
  python -m dualflow compare package.losses:focal --args "df.ones([8])" "df.zeros([8])" --json
"""


class CommandError(Exception):
    """What the command line asks for can't be done; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call."""

    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, *args: Any, **kwargs: Any) -> Arguments:
        return cls(args, tuple(kwargs.items()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; answers the exit status: 0, or 2 with a message on stderr for what can't be done.

    Args:
        argv: the words after the program's name; those of the process by default.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        print(options.run(options))
    except (CommandError, DualflowError) as error:
        print(f"{parser.prog} {options.command}: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dualflow",
        description="Eager operations on NumPy, and the same Python compiled as a graph.",
    )
    parser.add_argument("--version", action="version", version=f"dualflow {dualflow.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    compare = commands.add_parser(
        "compare",
        help="a function run eagerly beside its compiled graph",
        description=_COMPARE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument(
        "function",
        metavar="MODULE:FUNCTION",
        help="where the function is: a module's name or a file's, and a name in it",
    )
    compare.add_argument(
        "--args",
        nargs="+",
        metavar="EXPR",
        help="Python expressions; the module's names, df and np can be used",
    )
    compare.add_argument("--json", action="store_true", help="print the figures as JSON")
    compare.set_defaults(run=_compare)
    info = commands.add_parser(
        "info",
        help="versions, processor, threads, BLAS and the object cache",
        description="What dualflow runs on: versions, processor, threads, BLAS, object cache.",
    )
    info.set_defaults(run=_info)
    return parser


# compare


def _compare(options: argparse.Namespace) -> str:
    place, _, name = options.function.rpartition(":")
    if not place or not name:
        raise CommandError(
            f"{options.function!r} is not MODULE:FUNCTION, such as train:step or train.py:step."
        )
    module = _module(place)
    function = _attribute(module, name)
    arguments = _arguments(module, function, name, options.args)
    report = dualflow.compare(function, *arguments.args, **dict(arguments.kwargs))
    return json.dumps(report.as_dict(), indent=2) if options.json else str(report)


def _module(place: str) -> ModuleType:
    """The module of that name, or in that file."""
    if place.endswith(".py"):
        return _file(place)
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        missing = error.name or place
        if place != missing and not place.startswith(f"{missing}."):
            raise CommandError(
                f"{place} can't be imported: it needs the module {missing}, which is not found."
            ) from None
        hint = f"; did you mean {place}.py, as a file?" if os.path.exists(f"{place}.py") else ""
        raise CommandError(
            f"there is no module {missing!r} in {os.getcwd()} or among the installed ones{hint}."
        ) from None
    except Exception as error:
        raise CommandError(f"{place} can't be imported: {_told(error)}") from error


def _file(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise CommandError(f"there is no file {path!r} in {os.getcwd()}.")
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CommandError(f"{path} can't be imported: {_told(error)}") from error
    return module


def _attribute(module: ModuleType, name: str) -> Any:
    """The function of that name; dots lead into classes and objects."""
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            holder = (
                module.__name__
                if found is module
                else f"{module.__name__}:{getattr(found, '__name__', part)}"
            )
            raise CommandError(f"{holder} has no {part!r}; its functions are {_callables(found)}.")
        found = getattr(found, part)
    if not callable(found):
        raise CommandError(f"{module.__name__}:{name} is {found!r}, which can't be called.")
    return found


def _callables(holder: Any) -> str:
    names = [name for name, value in vars(holder).items() if callable(value) and not name.startswith("_")]
    return ", ".join(names) or "none"


def _arguments(module: ModuleType, function: Any, name: str, expressions: Sequence[str] | None) -> Arguments:
    if expressions is not None:
        return _evaluated(", ".join(expressions), module)
    python = getattr(function, "python_function", None)
    for holder in (function, python, module):
        example = getattr(holder, "example_args", None)
        if example is not None:
            found = example() if callable(example) else example
            return Arguments(found if isinstance(found, tuple) else (found,))
    needed = _needed(python if python is not None else function)
    if needed:
        raise CommandError(
            f"{name} takes {', '.join(needed)}: give its arguments, as in "
            f'--args "df.ones([4, 4]), 2.0", or let {module.__name__} define example_args, a function that '
            "answers a tuple of them."
        )
    return Arguments()


def _evaluated(expression: str, module: ModuleType) -> Arguments:
    names = {"df": dualflow, "np": np, **vars(module), "_call": Arguments.of}
    try:
        found: Arguments = eval(f"_call({expression})", names)
    except Exception as error:
        raise CommandError(f"--args {expression!r} can't be evaluated: {_told(error)}") from error
    return found


def _needed(function: Callable[..., Any]) -> list[str]:
    """The parameters that a call must give."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# info


def _info(options: argparse.Namespace) -> str:
    from dualflow.native import blas, object_cache, target, threads

    multiplies = blas.find()
    rows = [
        ("dualflow", f"{dualflow.__version__} in {os.path.dirname(dualflow.__file__)}"),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.system()})"),
        *((name, _version(name.lower())) for name in ("NumPy", "Numba", "llvmlite", "networkx")),
        ("processor", f"{_processor()}, {os.cpu_count()} logical"),
        ("vectors", f"{target.vector_bits()} bits"),
        ("threads", _threads(threads.max_threads() if threads.available() else 1)),
        (
            "BLAS",
            f"{multiplies.name}, {multiplies.int_bits}-bit integers" if multiplies else "none that is known",
        ),
        ("object cache", _cache(object_cache.folder())),
    ]
    return "\n".join(f"{name:<14}{value}" for name, value in rows)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The processor's own name where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            found = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        found = []
    return found[0] if found else platform.processor() or platform.machine()


def _threads(most: int) -> str:
    return f"up to {most} for a kernel (DUALFLOW_NUM_THREADS sets it)" if most > 1 else "1 for a kernel"


def _cache(folder: str | None) -> str:
    if folder is None:
        return "off"
    try:
        with os.scandir(folder) as entries:
            sizes = [entry.stat().st_size for entry in entries if entry.name.endswith(".dfo")]
    except OSError:
        return f"{folder} (empty)"
    return f"{folder} ({len(sizes)} objects, {size(sum(sizes))})"
