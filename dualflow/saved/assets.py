"""Asset files: files that a model reads, which are saved with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dualflow.core import dispatch
from dualflow.core.errors import NotFoundError
from dualflow.core.tracebacks import entry
from dualflow.eager.variable import Variable


@entry
class Asset:
    """A file that belongs to a model: ``save`` copies it, and in the loaded model it has its new path.

    Assign it to an attribute of the saved object, and read :attr:`asset_path` in its functions.

    Args:
        path: the path of an existing file.

    Raises:
        NotFoundError: there is no such file.

    >>> import os, tempfile
    >>> import dualflow as df
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "vocabulary.txt")
    ...     _ = open(path, "w").write("one two")
    ...     df.io.read_file(df.saved_model.Asset(path).asset_path).numpy()
    b'one two'
    """

    @entry
    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fsdecode(path)
        if not os.path.isfile(name):
            raise NotFoundError(f"An asset is an existing file, and there is none at {name!r}.")
        self.variable = Variable(os.path.abspath(name), trainable=False, name="asset_path")

    @property
    def asset_path(self) -> Any:
        """The current path of the file, a string tensor."""
        return dispatch.current().read(self.variable)

    @property
    def path(self) -> Path:
        """The current path of the file."""
        return Path(os.fsdecode(self.variable.numpy()))

    def __repr__(self) -> str:
        return f"<Asset {str(self.path)!r}>"
