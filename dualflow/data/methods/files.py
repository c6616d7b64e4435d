"""Datasets of file names, and datasets saved to files."""

from __future__ import annotations

import glob
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dtypes import as_dtype
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import file_name, whole_number
from dualflow.data.element import layout_of_spec, leaf_array, single_tensor_layout
from dualflow.data.element_files import FileRows, write_elements
from dualflow.data.epochs import Epochs
from dualflow.data.methods.base import DatasetBase
from dualflow.data.rows import ArrayRows
from dualflow.data.shuffling import ShuffleStage
from dualflow.data.sources import RowsStage
from dualflow.data.stage import Stage
from dualflow.eager.engine import EAGER
from dualflow.function.errors import here

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualflow.core.argument_types import TensorLike


class FileMethods(DatasetBase):
    """Saves and loads datasets, and lists files."""

    __slots__ = ()

    @classmethod
    @entry
    def list_files(
        cls,
        file_pattern: TensorLike,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Any:
        """The names of the files that match a pattern, as scalar strings.

        Args:
            file_pattern: a pattern with ``*``, ``?`` and ``[...]``, or several.
            shuffle: whether they come in another random order in each iteration (the default), or sorted.
            seed: as in :meth:`shuffle`.
            name: ignored; as in TensorFlow.

        Raises:
            InvalidArgumentError: no file matches.

        >>> import dualflow as df, os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> for name in ("b.txt", "a.txt"):
        ...     open(os.path.join(folder, name), "w").close()
        >>> files = df.data.Dataset.list_files(folder + "/*.txt", shuffle=False)
        >>> [os.path.basename(x) for x in files.as_numpy_iterator()]
        [b'a.txt', b'b.txt']
        """
        patterns = np.atleast_1d(leaf_array(file_pattern)).tolist()
        names = sorted({path.encode() for pattern in patterns for path in glob.glob(file_name(pattern))})
        if not names:
            raise InvalidArgumentError(
                f"No files matched pattern: {', '.join(map(file_name, patterns))}.{here()}"
            )
        rows = np.array(names, object)
        layout = single_tensor_layout(TensorSpec([], as_dtype("string")))
        stage: Stage = RowsStage(rows=ArrayRows((rows,)), count=len(names), elements=layout)
        if shuffle is not False:
            epochs = Epochs(None if seed is None else whole_number(seed, "seed"))
            stage = ShuffleStage(source=stage, size=len(names), reshuffle=True, epochs=epochs)
        dataset: Self = cls.of(stage)
        return dataset

    @entry
    def save(
        self,
        path: str,
        compression: object = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: object = None,
    ) -> None:
        """Write all elements to a file for :meth:`load`.

        Args:
            path: the file's name; the file appears once it is complete.
            compression: only None is supported, also for ``shard_func`` and ``checkpoint_args``.

        Raises:
            DTypeError: elements are not numbers, or another argument than ``path`` is given.

        >>> import dualflow as df, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "squares")
        >>> df.data.Dataset.range(4).map(lambda x: x * x).save(path)
        >>> [int(x) for x in df.data.Dataset.load(path).skip(2)]
        [4, 9]
        """
        _reject_options(compression, shard_func, checkpoint_args)
        iterator = self.stage.start()
        try:
            with dispatch.using(EAGER):
                write_elements(file_name(path), self.stage.layout, iterator.next)
        finally:
            iterator.close()

    @classmethod
    @entry
    def load(
        cls,
        path: str,
        element_spec: object = None,
        compression: object = None,
        reader_func: Callable[..., Any] | None = None,
        wait: bool = False,
    ) -> Self:
        """The elements that :meth:`save`, or a cache, wrote, read from the file on demand.

        Args:
            path: the file's name.
            element_spec: the structure of the elements' specs, if it has namedtuples or objects; the file
                stores only tuples and dicts.
            compression: only None is supported, also for ``reader_func``.
            wait: ignored: a file that exists is complete.

        Raises:
            NotFoundError: the file does not exist.
            DataLossError: the file is damaged (also during iteration), or of another kind.
            InvalidArgumentError: another version of dualflow wrote it.
            DTypeError: ``element_spec`` has other dtypes or shapes than the file, or another argument is
                given.
        """
        _reject_options(compression, reader_func)
        rows = FileRows(file_name(path))
        layout = rows.layout if element_spec is None else layout_of_spec(element_spec)
        if not rows.has_elements_of(layout):
            raise DTypeError(
                f"The file has elements of {rows.layout.element_spec!r}, not of {element_spec!r}.{here()}"
            )
        dataset: Self = cls.of(RowsStage(rows=rows, count=len(rows), elements=layout))
        return dataset


def _reject_options(*others: Any) -> None:
    if any(x is not None for x in others):
        raise DTypeError(
            "Files of elements are not compressed, and a dataset has one file; leave out the other arguments."
            f"{here()}"
        )
