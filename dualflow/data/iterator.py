"""Iterators over datasets, which can be saved in the middle and go on elsewhere."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractSource
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spans import WATCHED, span
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entries, hide_frames
from dualflow.core.tree import flatten, unflatten
from dualflow.data.element import Item, leaf_spec
from dualflow.data.handles import handle_of
from dualflow.data.stage import Cursor, Stage, State
from dualflow.data.tracing import IteratorKind, is_tracing, iterator_reading, read_next, refuse_python_loop
from dualflow.eager.engine import EAGER
from dualflow.function.autograph.streams import StreamReading
from dualflow.function.errors import here


@entries
class Iterator(AbstractSource):
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
        self._ahead: tuple[Sequence[Item], State] | None = None
        self._release = weakref.finalize(self, self._cursor.close)

    def __iter__(self) -> Iterator:
        if is_tracing():
            refuse_python_loop()
        return self

    def __next__(self) -> Any:
        try:
            if WATCHED.watcher is not None and not is_tracing():
                with span("data", "next"):
                    items = self._pull()
            elif dispatch.current() is EAGER and self._ahead is None:
                items = self._cursor.pull(1)
            elif is_tracing():
                return read_next(self, (), self._kind())
            else:
                items = self._pull()
            if len(items):
                return self._pack(items[0]) if self._pack is not None else self._first(items[0])
        except Exception as error:
            hide_frames(error)
            raise
        raise StopIteration

    def _pull(self) -> Sequence[Item]:
        """The next element, in whatever context; none at the end."""
        if self._ahead is not None:
            (items, _), self._ahead = self._ahead, None
            return items
        with dispatch.using(EAGER):
            return self._cursor.pull(1)

    def read(self) -> Item | None:
        """The leaves of the next element; None at the end."""
        return next(iter(self._pull()), None)

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        return self._kind(), ("handle",), [handle_of(self)]

    def _kind(self) -> IteratorKind:
        """What traces know of it: where sizes are open, those of the next element, which is made ahead."""
        layout = self._stage.layout
        if all(spec.shape.is_static for spec in layout.specs):
            return IteratorKind(layout, layout.specs)
        if self._ahead is None:
            state = self._cursor.get_state()
            with dispatch.using(EAGER):
                self._ahead = self._cursor.pull(1), state
        items = self._ahead[0]
        known = tuple(map(leaf_spec, items[0])) if len(items) else tuple(map(_smallest, layout.specs))
        return IteratorKind(layout, known)

    def reading(self) -> StreamReading:
        """How a traced loop goes on with the iterator."""
        return iterator_reading(self._stage.layout, (), self)

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
        place = self._cursor.get_state() if self._ahead is None else self._ahead[1]
        return {"pipeline": self._stage.describe(), "place": place}

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
        self._ahead = None
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
            leaves, structure = flatten(next(self._iterator), is_leaf=lambda x: isinstance(x, AbstractSource))
            return unflatten(structure, list(map(_as_numpy, leaves)))
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


def _smallest(spec: TensorSpec) -> TensorSpec:
    """A spec without open sizes, for an element that will not come."""
    sizes = [] if spec.shape is UNKNOWN_RANK else [size or 0 for size in spec.shape]
    return TensorSpec(sizes, spec.dtype)
