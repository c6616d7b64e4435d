"""The command line, ``dualflow COMMAND`` or ``python -m dualflow COMMAND``.

The commands are run, launch, compare, verify, explain, graph, export, show, keras, cache and info.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Final

import dualflow
from dualflow.cli.cache import CACHE_DESCRIPTION, add_cache_arguments, cache
from dualflow.cli.call import (
    ARGUMENTS,
    CommandError,
    add_call_arguments,
    as_function,
    named_call,
    trace_of,
    user_lines,
)
from dualflow.cli.export import EXPORT_DESCRIPTION, add_export_arguments, export
from dualflow.cli.keras_startup import ACTIONS, run_action
from dualflow.cli.launch import DESCRIPTION as LAUNCH_DESCRIPTION
from dualflow.cli.launch import add_launch_arguments, count_of_words, launch, prepare_worker
from dualflow.cli.program import MainModule, add_program_arguments, program_of_module, program_of_path
from dualflow.cli.program_version import name_of_version_1
from dualflow.cli.show import DESCRIPTION, add_show_arguments, show
from dualflow.cli.stand_in import stand_in_for_tensorflow
from dualflow.config.report import configuration, table
from dualflow.core.errors import DualflowError
from dualflow.core.records import dataclass
from dualflow.function.inspect.verify_report import Verification

_RUN = """\
Run a program that was written for TensorFlow, with Keras or without: in its process, and in those that
multiprocessing starts for it, `import tensorflow` gives dualflow, and `import keras` takes dualflow as its
backend. Otherwise the program runs as `python PROGRAM` runs it.

With --v1 it is TensorFlow 1: `import tensorflow` gives dualflow.compat.v1, and ops build graphs unless the
program enables eager execution. A file that uses a name of TensorFlow 1 only, such as tf.placeholder, is run
so by itself, with a line on stderr.

  python -m dualflow run train.py --epochs 3
  python -m dualflow run --v1 -m package.train
  python -m dualflow run -m package.train --epochs 3
  python -m dualflow run -m pdb train.py
"""

_COMPARE = f"""\
Run a function eagerly and as a compiled graph, and print what each takes: time, memory, ops and
kernels, what was fused, and the number of calls after which compiling has paid. A TensorSpec among the
arguments stands for a tensor of random numbers, with 32 for dynamic sizes.

{ARGUMENTS}

  python -m dualflow compare train:step
  python -m dualflow compare model.py:loss --args "df.ones([32, 64]), rate=0.5"
  python -m dualflow compare package.losses:focal --args "df.ones([8])" "df.zeros([8])" --json
  python -m dualflow compare train:step --html report.html
"""

_VERIFY = f"""\
Run a function eagerly and as a compiled graph, and print whether their results agree, else the first op
that differs and its line. The exit status is 1 if they differ. A TensorSpec among the arguments stands for
a tensor of random numbers, with 32 for dynamic sizes.

{ARGUMENTS}

  python -m dualflow verify train:step
  python -m dualflow verify model.py:loss --args "df.ones([32, 64]), rate=0.5"
"""

_EXPLAIN = f"""\
Trace and compile a function, and print the traces, the Python values that they have compiled in, and how
each part runs: natively, by NumPy or in Python, and why. Nothing of it runs.

{ARGUMENTS}

  python -m dualflow explain train:step
  python -m dualflow explain model.py:loss --args "df.TensorSpec([32, 64])"
"""

_GRAPH = f"""\
Trace a function and print its graph: what each line of it does to tensors of these shapes. Nothing
of it runs.

{ARGUMENTS}

  python -m dualflow graph train:step
  python -m dualflow graph model.py:loss --args "df.TensorSpec([32, 64])" --optimised
  python -m dualflow graph train:step --draw step.svg
"""

_KERAS = """\
Let a plain `import keras` take dualflow as its backend, with KERAS_BACKEND=dualflow or Keras's settings
file: enable writes a file into this environment's site-packages that Python reads when it starts, disable
removes it, and status prints which it is. `import dualflow` before keras needs no such file, and neither
does `python -m dualflow run`.

  python -m dualflow keras enable
  KERAS_BACKEND=dualflow python train.py
"""

_INFO = "What dualflow runs on, as df.show_config() prints it."


def console() -> int:
    """Run the console command ``dualflow``, which imports modules from the current folder.

    ``python -m dualflow`` does so too; for a script, Python sets the first entry of ``sys.path`` to the
    folder of the script.
    """
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()
    return main(program="dualflow")


def main(argv: Sequence[str] | None = None, program: str = "python -m dualflow") -> int:
    """Run a command and return the exit status.

    It is 0; or 1 if ``verify`` has found a difference; or that of ``mpiexec`` after ``launch``; or 2 after an
    error, with a message on stderr.

    Args:
        argv: the arguments after the program's name; those of the process by default.
        program: the program's name in messages.
    """
    parser = _parser(program)
    words, following = _split(sys.argv[1:] if argv is None else list(argv))
    options = parser.parse_args(words, argparse.Namespace(following=following))
    try:
        result = options.run(options)
    except (CommandError, DualflowError) as error:
        print("\n".join([f"{parser.prog} {options.command}: {error}", *user_lines(error)]), file=sys.stderr)
        return 2
    if isinstance(result, MainModule):
        result.run()
        return 0
    if isinstance(result, int):
        return result
    try:
        print(result, flush=True)
    except BrokenPipeError:  # the reader ended, as `head` does; Python flushes once more when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(isinstance(result, Verification) and not result.agrees)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The arguments of the command, and those of the program to run, which follow its name."""
    count = len(words)
    if words[:1] == ["run"]:
        options = 2 if words[1:2] == ["--v1"] else 1
        count = options + (2 if words[options : options + 1] == ["-m"] else 1)
    elif words[:1] == ["launch"]:
        count = count_of_words(words)
    return words[:count], words[count:]


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=name,
        description="Eager operations on NumPy, and the same Python compiled as a graph.",
    )
    parser.add_argument("--version", action="version", version=f"dualflow {dualflow.version.DUALFLOW}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for word, command in _COMMANDS.items():
        subparser = subparsers.add_parser(
            word,
            help=command.help,
            usage=None if command.usage is None else f"{parser.prog} {word} {command.usage}",
            description=command.description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--v1", action="store_true", help="the program was written for TensorFlow 1")
    add_program_arguments(parser)


def _run(options: argparse.Namespace) -> MainModule:
    name = None if options.v1 or options.module is not None else name_of_version_1(options.file)
    stand_in_for_tensorflow(version=1 if options.v1 or name else 2)
    if name is not None:
        print(f"{options.file} uses {name} of TensorFlow 1: it runs as with --v1.", file=sys.stderr)
    prepare_worker()
    if options.module is not None:
        return program_of_module(options.module, options.following)
    return program_of_path(options.file, options.following)


def _add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    add_call_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--html", metavar="FILE", help="write a page with timelines, charts and graphs too")
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="NAME",
        help="measure on a device too, such as /GPU:0",
    )


def _compare(options: argparse.Namespace) -> str:
    called, arguments = named_call(options)
    arguments = arguments.with_tensors()
    report = dualflow.compare(called, *arguments.args, devices=options.device, **dict(arguments.kwargs))
    if options.html is not None:
        try:
            report.save(options.html)
        except OSError as error:
            raise CommandError(f"{options.html} can't be written: {error.strerror}.") from None
    return json.dumps(report.as_dict(), indent=2) if options.json else str(report)


def _verify(options: argparse.Namespace) -> Verification:
    called, arguments = named_call(options)
    arguments = arguments.with_tensors()
    return dualflow.verify(called, *arguments.args, **dict(arguments.kwargs))


def _explain(options: argparse.Namespace) -> str:
    called, arguments = named_call(options)
    function = as_function(called)
    trace_of(function, arguments)
    return f"{function.explain()}\n\n{function.status()}"


def _add_graph_arguments(parser: argparse.ArgumentParser) -> None:
    add_call_arguments(parser)
    parser.add_argument("--optimised", action="store_true", help="the graph as it runs, after all passes")
    parser.add_argument("--draw", metavar="FILE", help="write a picture too: .svg, .png or .pdf")


def _graph(options: argparse.Namespace) -> str:
    concrete = trace_of(*named_call(options))
    graph = concrete.optimised_graph if options.optimised else concrete.graph
    if options.draw is not None:
        try:
            graph.draw(options.draw)
        except OSError as error:
            raise CommandError(f"{options.draw} can't be written: {error.strerror}.") from None
    return str(graph)


def _add_keras_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS)


def _keras(options: argparse.Namespace) -> str:
    return run_action(options.action)


def _add_info_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the same as JSON")


def _info(options: argparse.Namespace) -> str:
    report = configuration()
    return json.dumps(report, indent=2) if options.json else table(report)


@dataclass(frozen=True, slots=True)
class _Command:
    """A command of the command line.

    Attributes:
        help: its line in the list of commands.
        description: its own help.
        add_arguments: adds its arguments to a parser.
        run: returns what it prints, or the program to run, or the exit status.
        usage: its arguments in the usage line; None for those that the parser writes.
    """

    help: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], str | Verification | MainModule | int]
    usage: str | None = None


_COMMANDS: Final = {
    "run": _Command(
        "a program for TensorFlow, with dualflow in its place",
        _RUN,
        _add_run_arguments,
        _run,
        usage="[--v1] (FILE | -m MODULE) [ARGUMENT ...]",
    ),
    "launch": _Command(
        "a program in several workers, which df.distribute joins",
        LAUNCH_DESCRIPTION,
        add_launch_arguments,
        launch,
        usage="[-n N] [--dry-run] (FILE | -m MODULE) [ARGUMENT ...]",
    ),
    "compare": _Command(
        "a function run eagerly compared with its compiled graph", _COMPARE, _add_compare_arguments, _compare
    ),
    "verify": _Command(
        "whether a function's eager and compiled results agree", _VERIFY, add_call_arguments, _verify
    ),
    "explain": _Command(
        "a function's traces, and how each part runs", _EXPLAIN, add_call_arguments, _explain
    ),
    "graph": _Command("a function's graph as text, and as a picture", _GRAPH, _add_graph_arguments, _graph),
    "export": _Command(
        "a function as a program without dualflow", EXPORT_DESCRIPTION, add_export_arguments, export
    ),
    "show": _Command(
        "what a saved model has, and the results of its signatures", DESCRIPTION, add_show_arguments, show
    ),
    "keras": _Command(
        "let a plain import of Keras take dualflow as its backend", _KERAS, _add_keras_arguments, _keras
    ),
    "cache": _Command(
        "the size of the compiled code on disk, and its removal",
        CACHE_DESCRIPTION,
        add_cache_arguments,
        cache,
    ),
    "info": _Command("versions, processor, fast parts and cache", _INFO, _add_info_arguments, _info),
}
