"""File contents, read and written when the program runs, and the names of files."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.atomic_files import AtomicFile
from dualflow.core.convert import Array
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.core.system_errors import system_errors
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op, register
from dualflow.ops.text.mapping import filled, of_strings

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_ON_DISK: Final = Opaque("files are read and written by Python")


def write_whole(path: str | bytes, contents: bytes) -> None:
    """Replace a file's contents atomically: readers, also after a crash, see the old or the new contents.

    Folders are made where they are missing. The new file has the old one's permissions.
    """
    name = os.fsdecode(path)
    target = os.path.realpath(name)  # a link stays one
    folder = os.path.dirname(target)
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as pipe:  # nothing replaces a device or a pipe; a folder is an error
            pipe.write(contents)
        return
    mode = os.stat(target).st_mode & 0o7777 if os.path.exists(target) else None
    with AtomicFile(target, mode, clean=False) as file:
        file.write(contents)


def _read(filename: Array) -> Array:
    path = filename.item()
    with system_errors(path), open(path, "rb") as file:
        return np.array(file.read(), object)


def _write(filename: Array, contents: Array) -> tuple[()]:
    path = filename.item()
    with system_errors(path):
        write_whole(path, contents.item())
    return ()


def _matching(pattern: Array) -> Array:
    names: set[bytes] = set()
    for each in pattern.ravel().tolist():
        names.update(glob.glob(each, include_hidden=True))
    return filled(sorted(names), (len(names),))


_READ: Final = register(
    Op(
        name="read_file",
        doc="The contents of a file.",
        infer=lambda filename: TensorSpec.of(Shape(), string),
        kernel=_read,
        kind=_ON_DISK,
        effect=Effect.PYTHON,
        strings=True,
    )
)
_WRITE: Final = register(
    Op(
        name="write_file",
        doc="Replaces the contents of a file.",
        infer=lambda filename, contents: (),
        kernel=_write,
        kind=_ON_DISK,
        outputs=None,
        effect=Effect.PYTHON,
        strings=True,
    )
)
_MATCHING: Final = register(
    Op(
        name="matching_files",
        doc="The names of the files that match patterns, sorted.",
        infer=lambda pattern: TensorSpec.of(Shape([None]), string),
        kernel=_matching,
        kind=_ON_DISK,
        effect=Effect.PYTHON,
        strings=True,
    )
)


def read_file(filename: str | bytes | Tensor, name: str | None = None) -> Tensor:
    """The contents of a file as one string; a traced function reads it at each call.

    Args:
        filename: a scalar string.

    Returns:
        A scalar string.

    Raises:
        NotFoundError: the file doesn't exist.
        FailedPreconditionError: it is a folder.
        PermissionDeniedError: it may not be read.
        InvalidArgumentError: ``filename`` is not a scalar.

    >>> import dualflow as df, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "letter.txt")
    >>> df.io.write_file(str(path), "Dear reader")
    >>> df.io.read_file(str(path)).numpy()
    b'Dear reader'
    """
    return dispatch.current().apply(_READ, (_scalar_string(filename, "filename"),), {})


def write_file(filename: str | bytes | Tensor, contents: TensorLike, name: str | None = None) -> Any:
    """Replace the contents of a file atomically, and create its folders.

    An interrupted call leaves the old contents unchanged.

    Args:
        filename: a scalar string.
        contents: a scalar string.

    Returns:
        None; in an explicit graph the operation that writes.

    Raises:
        InvalidArgumentError: ``filename`` or ``contents`` is not a scalar.
        FailedPreconditionError: ``filename`` is a folder.
        PermissionDeniedError: it may not be written.
        ResourceExhaustedError: the disk is full.

    >>> import dualflow as df, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "letter.txt")
    >>> df.io.write_file(str(path), "Dear reader")
    >>> path.read_text()
    'Dear reader'
    """
    inputs = _scalar_string(filename, "filename"), _scalar_string(contents, "contents")
    return dispatch.current().apply(_WRITE, inputs, {}) or None


def matching_files(pattern: TensorLike, name: str | None = None) -> Tensor:
    """The sorted names of the files that match a pattern, or one of several.

    Args:
        pattern: one string or several, in which ``*`` matches any characters, ``?`` one, and ``[ab]`` one of
            these, but no separators of folders.

    Returns:
        A vector of strings.

    Raises:
        DTypeError: ``pattern`` holds numbers.

    >>> import dualflow as df, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> df.io.matching_files(folder + "/*.txt").numpy()
    array([], dtype=object)
    """
    return dispatch.current().apply(_MATCHING, (of_strings(pattern, "matching_files"),), {})


def _scalar_string(x: Any, what: str) -> Any:
    tensor = of_strings(os.fspath(x) if isinstance(x, os.PathLike) else x, f"a {what}")
    if len(tensor.shape):
        raise InvalidArgumentError(f"The {what} is one string, but its shape is {tensor.shape}.")
    return tensor
