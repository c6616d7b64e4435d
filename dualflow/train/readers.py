"""Reading of a checkpoint's arrays by name, without objects."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from dualflow.core.dtypes import DType
from dualflow.core.errors import NotFoundError
from dualflow.core.tracebacks import entry
from dualflow.train.folder import Folder, is_checkpoint, open_folder
from dualflow.train.state_file import latest_checkpoint

_LONGEST_PAUSE: Final = 0.5


@entry
class CheckpointReader:
    """The arrays of a checkpoint, which :func:`load_checkpoint` returns."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def get_tensor(self, name: str) -> Any:
        """A NumPy array or scalar by its name.

        Raises:
            NotFoundError: there is no array of that name.
            DataLossError: the array is damaged.
        """
        if name not in self._folder.entries:
            first_names = ", ".join(sorted(self._folder.entries)[:5])
            raise NotFoundError(
                f"Key {name} not found in checkpoint {self._folder.path}, whose first names are "
                f"{first_names}; df.train.list_variables has all."
            )
        return self._folder.read(name)[()]

    def has_tensor(self, name: str) -> bool:
        """Whether there is an array of that name."""
        return name in self._folder.entries

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shape of each array."""
        return {name: list(entry.shape) for name, entry in self._folder.entries.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtype of each array."""
        return {name: entry.dtype for name, entry in self._folder.entries.items()}

    def debug_string(self) -> str:
        """A text with a line for each array: name, dtype and shape."""
        return "".join(
            f"{name} ({entry.dtype.name}) {list(entry.shape)}\n"
            for name, entry in sorted(self._folder.entries.items())
        )


@entry
def load_checkpoint(ckpt_dir_or_file: str | os.PathLike[str]) -> CheckpointReader:
    """A reader of a checkpoint, or of the last one in a folder of checkpoints.

    Raises:
        NotFoundError: there is no checkpoint.
        DataLossError: it is damaged.

    >>> import tempfile
    >>> import dualflow as df
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = df.train.Checkpoint(v=df.Variable([1.0, 2.0])).write(f"{folder}/v")
    ...     df.train.load_checkpoint(path).get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE")
    array([1., 2.], dtype=float32)
    """
    path = Path(ckpt_dir_or_file)
    if not is_checkpoint(path):
        path = Path(latest_checkpoint(path) or path)
    return CheckpointReader(open_folder(path))


@entry
def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """The names and shapes of a checkpoint's arrays, sorted; see :func:`load_checkpoint`.

    >>> import tempfile
    >>> import dualflow as df
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = df.train.Checkpoint(v=df.Variable([1.0, 2.0])).write(f"{folder}/v")
    ...     df.train.list_variables(path)
    [('v/.ATTRIBUTES/VARIABLE_VALUE', [2])]
    """
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


@entry
def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> Any:
    """The array ``name`` of a checkpoint; see :func:`load_checkpoint`.

    Raises:
        NotFoundError: there is no checkpoint, or no array of that name in it.
        DataLossError: it is damaged.

    >>> import tempfile
    >>> import dualflow as df
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = df.train.Checkpoint(v=df.Variable(3)).write(f"{folder}/v")
    ...     df.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE")
    np.int32(3)
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


@entry
def checkpoints_iterator(
    checkpoint_dir: str | os.PathLike[str],
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], Any] | None = None,
) -> Iterator[str]:
    """Yields the path of each new checkpoint in a folder, and waits for the next; for continuous evaluation.

    Args:
        checkpoint_dir: the folder, into which another program saves.
        min_interval_secs: the minimum time between two checkpoints.
        timeout: how many seconds to wait for the next one; None for no limit.
        timeout_fn: called after a timeout; if it returns True, or is missing, the iteration ends.

    Raises:
        DataLossError: the folder's state file is damaged.

    >>> import tempfile
    >>> import dualflow as df
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = df.train.Checkpoint(v=df.Variable(3)).save(f"{folder}/v")
    ...     list(df.train.checkpoints_iterator(folder, timeout=0)) == [path]
    True
    """
    last = None
    while True:
        path = _next_checkpoint(checkpoint_dir, last, timeout)
        if path is None:
            if timeout_fn is None or timeout_fn():
                return
            continue
        start = time.monotonic()
        last = path
        yield path
        time.sleep(max(0.0, start + min_interval_secs - time.monotonic()))


def _next_checkpoint(folder: Any, last: str | None, timeout: float | None) -> str | None:
    """Wait for another last checkpoint, and return its path; None after the timeout."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        path = latest_checkpoint(folder)
        if path is not None and path != last:
            return path
        remaining = _LONGEST_PAUSE if end is None else end - time.monotonic()
        if remaining <= 0:
            return None
        time.sleep(min(remaining, _LONGEST_PAUSE))
