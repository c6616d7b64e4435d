"""Iterators over datasets, which can be saved in the middle and go on elsewhere."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from dualflow.core.tracebacks import entries, hide_frames
from dualflow.core.tree import map_structure
from dualflow.data.element import Item
from dualflow.data.stage import Cursor, Stage
from dualflow.eager.engine import EAGER
from dualflow.function.errors import here


@entries
class Iterator:
    """An iterator over the elements of a dataset: what ``iter(dataset)`` returns.

    Its place is a small JSON object, with which an iterator over an equal dataset, also in another process,
    goes on with exactly the elements that this one would have given. What a stage keeps (a shuffle's buffer,
    a batch under way) is not part of it: it is made again.

    Args:
        dataset: what to iterate over.

    >>> import dualflow as df
    >>> dataset = df.data.Dataset.range(6).shuffle(6, seed=1).batch(2)
    >>> iterator = iter(dataset)
    >>> _, state = next(iterator), iterator.get_state()
    >>> rest = [batch.numpy().tolist() for batch in iterator]
    >>> again = iter(dataset)
    >>> again.set_state(state)
    >>> [batch.numpy().tolist() for batch in again] == rest
    True
    """

    def __init__(self, dataset: Any) -> None:
        stage: Stage = dataset.stage
        self._stage = stage
        self._cursor: Cursor = stage.start()
        self._pack: Callable[[Item], Any] | None = None
        self._release = weakref.finalize(self, self._cursor.close)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        try:
            if dispatch.current() is EAGER:
                items = self._cursor.pull(1)
            else:
                _refuse_trace()
                with dispatch.using(EAGER):
                    items = self._cursor.pull(1)
            if items:
                return self._pack(items[0]) if self._pack is not None else self._first(items[0])
        except Exception as error:
            hide_frames(error)
            raise
        raise StopIteration

    def _first(self, item: Item) -> Any:
        self._pack = self._stage.layout.packer()
        return self._pack(item)

    def get_next(self) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: there is none.
        """
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError(
                "End of sequence: the dataset has no more elements. Loop with `for`, or make a new "
                f"iterator.{here()}"
            ) from None

    def next(self) -> Any:
        """The next element, or ``StopIteration``: the name of the time before ``next(iterator)``."""
        return next(self)

    @property
    def element_spec(self) -> Any:
        """The specs of the elements, in their structure."""
        return self._stage.layout.element_spec

    def get_state(self) -> dict[str, Any]:
        """Where the iterator is: what ``json`` writes and reads."""
        return {"pipeline": self._stage.describe(), "place": self._cursor.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go to where an iterator over an equal dataset was when it gave ``state``.

        Raises:
            InvalidArgumentError: the state is of a dataset made in another way.
        """
        if not isinstance(state, dict) or state.get("pipeline") != self._stage.describe():
            known = state.get("pipeline") if isinstance(state, dict) else repr(state)
            raise InvalidArgumentError(
                f"The state is of another dataset: {known}, where this one is {self._stage.describe()}. "
                "Make the "
                "dataset in the same way as the one whose iterator was saved."
            )
        with dispatch.using(EAGER):
            self._cursor.set_state(state["place"])

    def close(self) -> None:
        """Let threads go that work ahead; the iterator is not used after."""
        self._release()


class NumpyIterator:
    """An iterator over the elements of a dataset as NumPy arrays and scalars.

    >>> import dualflow as df
    >>> list(df.data.Dataset.range(3).as_numpy_iterator())
    [np.int64(0), np.int64(1), np.int64(2)]
    """

    def __init__(self, dataset: Any) -> None:
        self._iterator = Iterator(dataset)

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        try:
            return map_structure(_as_numpy, next(self._iterator))
        except Exception as error:
            hide_frames(error)
            raise


def _as_numpy(leaf: Any) -> Any:
    if not hasattr(leaf, "numpy"):
        raise DTypeError(
            "as_numpy_iterator() has no arrays for datasets that are elements; flat_map them first: "
            f"{leaf!r}."
        )
    found = leaf.numpy()
    return found.copy() if isinstance(found, np.ndarray) else found


def _refuse_trace() -> None:
    """Refuse to hand a traced function elements that its compiled form would never change."""
    if not dispatch.current().unrecorded.eager:
        raise FailedPreconditionError(
            "A dataset is iterated while a function is traced: its elements would become constants. Write "
            "`for "
            "x in dataset` with autograph on, so that the loop is compiled, or loop outside of the function."
            f"{here()}"
        )
