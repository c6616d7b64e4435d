"""``python -m dualflow show``: lists what a saved model has, and runs a signature on a file of arrays."""

from __future__ import annotations

import io
from argparse import ArgumentParser, Namespace
from typing import Any, Final

import numpy as np

import dualflow
from dualflow.cli.call import CommandError
from dualflow.core.atomic_files import AtomicFile
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import leaves
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.traced_function import Function

DESCRIPTION: Final = """\
List the signatures, functions and variables of a saved model with their shapes and sizes, or run one of
its signatures on the arrays of an .npz file, by the names of its inputs.

  python -m dualflow show model/
  python -m dualflow show model/ --run serving_default --inputs x.npz --outputs y.npz
"""


def add_show_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument("folder", metavar="FOLDER", help="the folder of the saved model")
    parser.add_argument("--run", metavar="SIGNATURE", dest="signature", help="the signature to run")
    parser.add_argument("--inputs", metavar="FILE.npz", help="arrays for the inputs of the signature")
    parser.add_argument("--outputs", metavar="FILE.npz", help="write the results to this file")


def show(options: Namespace) -> str:
    """The text that the command prints.

    Raises:
        CommandError: there is no such signature, or its inputs are missing.
    """
    loaded = dualflow.saved_model.load(options.folder)
    if options.signature is None:
        if options.inputs or options.outputs:
            raise CommandError("--inputs and --outputs belong to a signature: name it with --run.")
        return contents(loaded)
    if options.signature not in loaded.signatures:
        names = ", ".join(loaded.signatures) or "none"
        raise CommandError(f"there is no signature {options.signature!r}; the model has {names}.")
    results = _run(loaded.signatures[options.signature], options)
    arrays = {name: x.numpy() for name, x in results.items()}
    if options.outputs is not None:
        _write(options.outputs, arrays)
    return "\n".join(f"{name}: {x.spec}\n{x.numpy()}" for name, x in results.items())


def contents(loaded: Any) -> str:
    """A report of the signatures, functions and variables of a loaded model."""
    functions: dict[str, Function[..., Any]] = {}
    variables: dict[int, tuple[str, Any]] = {}
    pending: list[tuple[str, Any]] = [("", loaded)]
    visited = set()
    while pending:
        name, thing = pending.pop(0)
        if id(thing) in visited:
            continue
        visited.add(id(thing))
        if isinstance(thing, Function):
            functions[name or thing.name] = thing
            for trace in thing.concrete_functions:
                pending += [(v.name.removesuffix(":0"), v) for v in trace.variables]
        elif isinstance(thing, dualflow.Variable):
            variables[id(thing)] = name, thing
        elif isinstance(thing, dualflow.Module):
            pending += [(_path(name, key), x) for key, x in thing._trackable_children().items()]
        elif isinstance(thing, dict):
            pending += [(_path(name, key), x) for key, x in thing.items()]
        elif isinstance(thing, list | tuple):
            pending += [(_path(name, i), x) for i, x in enumerate(thing)]
    lines = ["signatures"]
    lines += [f"    {name}{_signature(trace)}" for name, trace in loaded.signatures.items()] or ["    none"]
    lines.append("functions")
    for name, function in functions.items():
        lines += [f"    {name}{_signature(trace)}" for trace in function.concrete_functions]
    sizes = [v.spec.nbytes for _, v in variables.values()]
    lines.append(f"variables: {len(sizes)}, {sum(sizes):,} bytes")
    for name, v in variables.values():
        own = v.name.removesuffix(":0")
        shown = name if name == own or name.endswith(f".{own}") else f"{name} ({own})"
        trainable = ", trainable" if v.trainable else ""
        lines.append(f"    {shown}: {v.spec}, {v.spec.nbytes:,} bytes{trainable}")
    return "\n".join(lines)


def _path(name: str, key: object) -> str:
    return f"{name}.{key}" if name else str(key)


def _signature(trace: ConcreteFunction) -> str:
    """The arguments and results of a trace."""
    shown = ", ".join(f"{n}: {leaf}" for n, leaf in zip(trace.leaf_names, trace.key[1], strict=True))
    results = trace.structured_outputs
    if isinstance(results, dict):
        returned = "{" + ", ".join(f"{name}: {spec}" for name, spec in results.items()) + "}"
    else:
        returned = ", ".join(str(x) for x in leaves(results) if isinstance(x, TensorSpec)) or "nothing"
    return f"({shown}) -> {returned}"


def _run(signature: ConcreteFunction, options: Namespace) -> dict[str, Any]:
    _, specs = signature.structured_input_signature
    arrays: dict[str, Any] = {}
    if options.inputs is not None:
        try:
            with np.load(options.inputs, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError) as error:
            raise CommandError(f"{options.inputs} can't be read as an .npz file: {error}") from None
    if arrays.keys() != specs.keys():
        needed = ", ".join(f"{name}: {spec}" for name, spec in specs.items()) or "none"
        raise CommandError(
            f"{options.inputs or 'no file'} has the arrays {', '.join(arrays) or 'none'}, and the signature "
            f"takes {needed}. Write them with np.savez."
        )
    results: dict[str, Any] = signature(**{name: dualflow.constant(x) for name, x in arrays.items()})
    return results


def _write(path: str, arrays: dict[str, Any]) -> None:
    content = io.BytesIO()
    np.savez(content, **arrays)
    try:
        with AtomicFile(path) as file:
            file.write(content.getvalue())
    except OSError as error:
        raise CommandError(f"{path} can't be written: {error.strerror}.") from None
