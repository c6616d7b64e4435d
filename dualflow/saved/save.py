"""``save``: writes an object with its functions, variables and files to a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.core.system_errors import system_errors
from dualflow.core.tracebacks import entry
from dualflow.saved.manifest import is_saved_model, write_model
from dualflow.saved.objects import ObjectWriter, members_of
from dualflow.saved.options import SaveOptions
from dualflow.saved.signatures import is_function, signatures_of


@entry
def save(
    obj: object,
    export_dir: str | os.PathLike[str],
    signatures: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None = None,
    options: SaveOptions | None = None,
) -> None:
    """Write an object to a folder, which :func:`load` reads without the object's code.

    Saved are the traces of all traced functions that are attributes or methods of the object and of the
    objects in its attributes; their variables; variables that only traces capture; and plain attributes:
    numbers, strings, and lists and dicts of them. A function with an input signature is traced if it has no
    trace; another one is saved with the traces that it has.

    Args:
        obj: a :class:`dualflow.Module`, an object of a class of yours, or a traced function.
        export_dir: the folder. A saved model in it is replaced, at once, after the new one is complete.
        signatures: a function, or a dict of functions by name, for callers that pass named tensors and take a
            dict of tensors; by default that of a model of Keras, or the object's only function, if it has an
            input signature.
        options: accepted for programs written for TensorFlow.

    Returns:
        None.

    Raises:
        InvalidArgumentError: a function calls Python, or a part of it has no text otherwise; a signature has
            several traces, or none.
        DTypeError: a function takes or returns objects that only their own code could create again.
        FailedPreconditionError: called while a function is traced.
        ResourceExhaustedError, PermissionDeniedError: the folder can't be written.

    >>> import tempfile
    >>> import dualflow as df
    >>> class Line(df.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = df.Variable(2.0)
    ...     @df.function(input_signature=[df.TensorSpec([None], name="x")])
    ...     def __call__(self, x):
    ...         return self.slope * x
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     df.saved_model.save(Line(), folder)
    ...     loaded = df.saved_model.load(folder)
    >>> loaded(df.constant([3.0])).numpy()
    array([6.], dtype=float32)
    >>> loaded.signatures["serving_default"](x=df.constant([4.0]))["output_0"].numpy()
    array([8.], dtype=float32)
    """
    if not dispatch.current().eager:
        raise FailedPreconditionError("A model is saved by eager code, not while a function is traced.")
    if not isinstance(options, SaveOptions | None):
        raise DTypeError(f"options are df.saved_model.SaveOptions, not {options!r}.")
    path = _checked(export_dir)
    writer = ObjectWriter()
    writer.add_root(obj)
    if signatures is None:
        signatures = getattr(obj, "_default_save_signature", None)  # of a model of Keras
    saved_signatures = signatures_of(signatures, {"": obj} if is_function(obj) else members_of(obj))
    numbers = {key: writer.traces.number(trace) for key, trace in saved_signatures.items()}
    content = {
        "objects": writer.entries(),
        "functions": writer.functions,
        "traces": writer.traces.traces,
        "signatures": numbers,
    }
    graphs = "\n\n".join(writer.traces.texts) + "\n"
    arrays = {**writer.arrays, **writer.traces.constants}
    with system_errors(path):
        write_model(path, content, graphs, arrays, writer.files)


@entry
def contains_saved_model(export_dir: str | os.PathLike[str]) -> bool:
    """Whether there is a saved model in a folder.

    Args:
        export_dir: the folder.

    Returns:
        Whether it has the manifest of a saved model, which is not read.

    Raises nothing.

    >>> import tempfile
    >>> import dualflow as df
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     df.saved_model.contains_saved_model(folder)
    False
    """
    try:
        return is_saved_model(Path(export_dir))
    except (OSError, ValueError):
        return False


def _checked(export_dir: Any) -> Path:
    try:
        name = os.fsdecode(export_dir)
    except TypeError:
        raise DTypeError(f"A model is saved to the path of a folder, not to {export_dir!r}.") from None
    if not name or "\0" in name:
        raise InvalidArgumentError(f"A model can't be saved to {name!r}: give the path of a folder.")
    if os.path.isfile(name):
        raise InvalidArgumentError(f"A model can't be saved to {name!r}, a file: give the path of a folder.")
    return Path(name)
