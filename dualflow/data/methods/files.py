"""Datasets in files."""

from __future__ import annotations

from typing import Any, Self

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import file_name
from dualflow.data.element import layout_of_spec
from dualflow.data.element_files import FileRows, write_elements
from dualflow.data.methods.base import StageHolder
from dualflow.data.sources import RowsStage
from dualflow.eager.engine import EAGER
from dualflow.function.errors import here


class FileMethods(StageHolder):
    """How datasets get into files and out again."""

    __slots__ = ()

    @entry
    def save(
        self, path: Any, compression: Any = None, shard_func: Any = None, checkpoint_args: Any = None
    ) -> None:
        """Write all elements to a file, from which :meth:`load` reads them.

        Args:
            path: the file's name; it is there once it is complete.
            compression: only None is there; likewise ``shard_func`` and ``checkpoint_args``.

        Raises:
            DTypeError: elements are no numbers, or another argument than ``path`` is given.

        >>> import dualflow as df, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "squares")
        >>> df.data.Dataset.range(4).map(lambda x: x * x).save(path)
        >>> [int(x) for x in df.data.Dataset.load(path).skip(2)]
        [4, 9]
        """
        _only_path(compression, shard_func, checkpoint_args)
        cursor = self.stage.start()
        try:
            with dispatch.using(EAGER):
                write_elements(file_name(path), self.stage.layout, cursor.pull)
        finally:
            cursor.close()

    @classmethod
    @entry
    def load(
        cls,
        path: Any,
        element_spec: Any = None,
        compression: Any = None,
        reader_func: Any = None,
        wait: bool = False,
    ) -> Self:
        """The elements that :meth:`save` wrote, or a cache, read from the file when they are needed.

        Args:
            path: the file's name.
            element_spec: what the elements are, if their structure has namedtuples or objects; the file knows
                tuples and dicts.
            compression: only None is there; likewise ``reader_func``.
            wait: ignored: a file is complete from when it is there.

        Raises:
            NotFoundError: there is no such file.
            DataLossError: it is damaged, or another file.
            DTypeError: ``element_spec`` has other tensors than the file, or another argument is given.
        """
        _only_path(compression, reader_func)
        rows = FileRows(file_name(path))
        layout = rows.layout if element_spec is None else layout_of_spec(element_spec)
        if [s.dtype for s in layout.specs] != [s.dtype for s in rows.layout.specs]:
            raise DTypeError(
                f"The file has elements of {rows.layout.element_spec!r}, not {element_spec!r}.{here()}"
            )
        made: Self = cls.of(RowsStage(rows=rows, count=len(rows), elements=layout))
        return made


def _only_path(*others: Any) -> None:
    if any(x is not None for x in others):
        raise DTypeError(
            "Files of elements are not compressed, and there is one for a dataset; leave the other "
            "arguments out."
            f"{here()}"
        )
