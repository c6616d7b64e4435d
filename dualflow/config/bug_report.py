"""``df.bug_report``: what a maintainer needs to repeat a problem, in one zip file."""

from __future__ import annotations

import io
import os
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from dualflow.config.report import configuration, table
from dualflow.core.atomic_files import write_atomically
from dualflow.core.dispatch import AbstractTensor, AbstractVariable
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError, DualflowError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.function.bound_method import BoundFunction
from dualflow.function.decorator import function
from dualflow.function.traced_function import Function
from dualflow.saved.save import save

_REPLAY: Final = '''\
"""Repeats the call of a bug report, eagerly and compiled: python replay.py, in this folder."""

from math import inf, nan

import numpy as np

import dualflow as df

f = df.saved_model.load("model")
inputs = {{name: df.constant(x) for name, x in np.load("inputs.npz").items()}}
print(df.verify(f, *{args!r}, **{kwargs!r}))
'''
_ARRAYS: Final = (AbstractTensor, AbstractVariable, np.ndarray)
_PLAIN: Final = (bool, int, float, complex, str, type(None))


@entry
def bug_report(
    path: str | os.PathLike[str], f: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any
) -> str:
    """Write a zip file to attach to an issue: configuration, traces, kernels, and a program for one call.

    It has the versions, the processor, the settings and which fast paths work (``config.txt``). With a
    function it also has its traces, graphs and kernels, how its parts run, and a program that repeats the
    call ``f(*args, **kwargs)`` without the function's source: ``replay.py``, with the arguments and the
    values of variables. Leave out the function if these are secret. The call itself does not run. If it
    can't be traced or compiled, the file has the error (``error.txt``).

    Args:
        path: the file, which ends with .zip.
        f: a :func:`dualflow.function`, or a plain function, which is converted to one; by default none.
        args: the positional arguments of ``f``.
        kwargs: the keyword arguments of ``f``.

    Returns:
        The path. ``replay.txt`` in the file has the reason if the call can't be repeated from files, because
        the function calls Python, for example.

    Raises:
        InvalidArgumentError: the file extension is unknown.
        DTypeError: ``f`` is not callable.
        OSError: the file can't be written.

    >>> import os, tempfile, zipfile
    >>> import dualflow as df
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = df.bug_report(os.path.join(folder, "report.zip"), lambda x: x * 2.0, df.ones([3]))
    ...     names = zipfile.ZipFile(path).namelist()
    >>> [name for name in names if not name.startswith("model/")]
    ['config.txt', 'explain.txt', 'status.txt', 'graph.txt', 'optimised.txt', 'kernels.txt', 'inputs.npz',
     'replay.py']
    """
    target = os.fspath(path)
    if not target.lower().endswith(".zip"):
        raise InvalidArgumentError(f"A bug report is a zip file: {target!r} doesn't end with .zip.")
    if f is not None and not callable(f):
        raise DTypeError(f"bug_report takes a function and its arguments; {f!r} can't be called.")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.txt", table(configuration()))
        if f is not None:
            traced = f if isinstance(f, Function | BoundFunction) else function(f)
            for name, text in _call_files(traced, args, kwargs):
                archive.writestr(name, text)
    write_atomically(target, content.getbuffer())
    return target


def _call_files(traced: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and content of each file about the call."""
    try:
        concrete = traced.get_concrete_function(*args, **kwargs)
        yield "explain.txt", traced.explain()
        yield "status.txt", traced.status()
        yield "graph.txt", str(concrete.graph)
        yield "optimised.txt", str(concrete.optimised_graph)
        yield "kernels.txt", concrete.kernels
    except Exception:  # the error is what the report is for: it goes into error.txt
        yield "error.txt", traceback.format_exc()
        return
    leaves, structure = flatten((args, kwargs))
    reason = next(filter(None, map(_reason_not_serializable, leaves)), None)
    if reason is not None:
        yield "replay.txt", f"The call can't be repeated from files: {reason}."
        return
    try:
        yield from _replay(traced, leaves, structure)
    except DualflowError as error:
        yield "replay.txt", f"The call can't be repeated from files: {error}"


def _reason_not_serializable(leaf: Any) -> str | None:
    """Why an argument can't be saved with the program that repeats a call; None if it can."""
    if not isinstance(leaf, (*_ARRAYS, *_PLAIN)):
        return f"an argument is a {type(leaf).__name__}"
    if isinstance(leaf, _ARRAYS) and np.asarray(leaf).dtype.kind in "OV":  # strings, and floats of few bits
        return f"an npz file has no {as_dtype(leaf.dtype).name}"
    return None


def _replay(traced: Any, leaves: Sequence[Any], structure: Structure) -> Iterator[tuple[str, Any]]:
    """The saved function, the arguments, and the program that repeats the call."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    shown_args, shown_kwargs = unflatten(structure, [_replace_array(leaf, arrays) for leaf in leaves])
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model")
        save(traced, model)
        for parent, _, names in sorted(os.walk(model)):
            for name in sorted(names):
                file = os.path.join(parent, name)
                with open(file, "rb") as opened:
                    yield os.path.relpath(file, folder).replace(os.sep, "/"), opened.read()
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]  # its stub has no arrays by name
    yield "inputs.npz", content.getvalue()
    yield "replay.py", _REPLAY.format(args=shown_args, kwargs=shown_kwargs)


class _Input:
    """An argument in the program: its ``repr`` reads the array."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"inputs[{self._name!r}]"


def _replace_array(leaf: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """``leaf``, or for an array a placeholder whose repr reads it from the npz file."""
    if not isinstance(leaf, _ARRAYS):
        return leaf
    name = f"input{len(arrays)}"
    arrays[name] = np.asarray(leaf)
    return _Input(name)
