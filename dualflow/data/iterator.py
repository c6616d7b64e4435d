"""Iterators over datasets, whose position can be saved and restored."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractSource
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError
from dualflow.core.locks import SignalSafeLock, signal_safe
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spans import WATCHED, span
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.core.tree import flatten, unflatten
from dualflow.data.element import Item, leaf_spec
from dualflow.data.ended_iterators import ClosedIterator, InterruptedIterator
from dualflow.data.epochs import restoring_epochs
from dualflow.data.handles import handle_of
from dualflow.data.optional import Optional
from dualflow.data.stage import Stage, StageIterator, State
from dualflow.data.tracing import (
    IteratorKind,
    is_tracing,
    iterator_reading,
    read_next,
    read_optional,
    reject_python_loop,
)
from dualflow.eager.engine import EAGER
from dualflow.function.autograph.stream_loops import ElementSource
from dualflow.function.errors import here
from dualflow.function.tracing.tracer import tracing_lock
from dualflow.ops.creation import convert_to_tensor

if TYPE_CHECKING:
    from dualflow.data.methods.base import DatasetBase


if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultedTypeVar

    Element = DefaultedTypeVar("Element", covariant=True, default=Any)
else:
    Element = TypeVar("Element", covariant=True)


@entry
class Iterator(AbstractSource, Generic[Element]):
    """An iterator over the elements of a dataset: what ``iter(dataset)`` returns.

    Threads may share it: each element is returned to one of them. An error in computing an element is raised
    in one thread, and the others continue with the elements after it; if the source can't continue, such as a
    generator, they reach the end.

    Its state is a small JSON object, with which an iterator over an equal dataset, also in another process,
    continues with exactly the elements that this one would have returned. Buffered elements (of a shuffle, or
    of a partial batch) are not part of the state: they are recomputed.

    Args:
        dataset: what to iterate over.

    >>> import dualflow as df
    >>> dataset = df.data.Dataset.range(6).shuffle(6, seed=1).batch(2)
    >>> iterator = iter(dataset)
    >>> _, state = next(iterator), iterator.get_state()
    >>> remaining = [batch.numpy().tolist() for batch in iterator]
    >>> again = iter(dataset)
    >>> again.set_state(state)
    >>> [batch.numpy().tolist() for batch in again] == remaining
    True
    """

    def __init__(self, dataset: DatasetBase) -> None:
        stage: Stage = dataset.stage
        self._stage = stage
        self._lock = threading.RLock()
        self._stage_iterator: StageIterator = stage.start()
        self._pack: Callable[[Item], Element] | None = None
        self._ahead: tuple[Sequence[Item], State] | None = None
        self._release = weakref.finalize(self, self._stage_iterator.close)
        _iterators.add(self)

    def __iter__(self) -> Iterator[Element]:
        if is_tracing():
            reject_python_loop()
        return self

    def __next__(self) -> Element:
        try:
            if WATCHED.value is None and dispatch.current() is EAGER:
                with self._lock if _LOCKS_ARE_SIGNAL_SAFE else SignalSafeLock(self._lock):
                    items = self._stage_iterator.next(1) if self._ahead is None else self._next_block()
            elif is_tracing():
                element: Element = read_next(self, (), self._trace_key())
                return element
            else:
                with span("data", "next"), signal_safe(self._lock):
                    items = self._next_block()
            if len(items):
                return self._pack(items[0]) if self._pack is not None else self._pack_first(items[0])
        except Exception as error:
            hide_frames(error)
            raise
        raise StopIteration

    def _next_block(self) -> Sequence[Item]:
        """The next element in a list of one, computed eagerly; empty at the end."""
        if self._ahead is not None:
            (items, _), self._ahead = self._ahead, None
            return items
        with dispatch.using(EAGER):
            return self._stage_iterator.next(1)

    def _peek(self) -> Sequence[Item]:
        """The next element in a list of one, which stays the next one; empty at the end."""
        if self._ahead is None:
            state = self._stage_iterator.get_state()
            self._ahead = self._next_block(), state
        return self._ahead[0]

    def read(self, specs: Sequence[TensorSpec] | None = None) -> Item | None:
        """The leaves of the next element; None at the end.

        Raises:
            InvalidArgumentError: they have other shapes than ``specs``. The element is not consumed.
        """
        with signal_safe(self._lock):
            if specs is not None:
                for leaf, spec in zip(next(iter(self._peek()), ()), specs, strict=False):
                    _check_shape(leaf, spec)
            return next(iter(self._next_block()), None)

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        return self._trace_key(), ("handle",), [handle_of(self)]

    def _trace_key(self) -> IteratorKind:
        """The key of traces that read from the iterator: the layout, with the sizes of the next element.

        The tracing lock is released while that element is computed: the threads of a stage may have to trace.
        """
        layout = self._stage.layout
        if all(spec.shape.is_static for spec in layout.specs):
            return IteratorKind(layout, layout.specs)
        with tracing_lock.released(), signal_safe(self._lock):
            items = self._peek()
        sizes = tuple(map(leaf_spec, items[0])) if len(items) else tuple(map(_smallest, layout.specs))
        return IteratorKind(layout, sizes)

    def reading(self) -> ElementSource:
        """How a traced loop reads the remaining elements."""
        return iterator_reading(self._stage.layout, (), self)

    def traced_iterator(self) -> Iterator[Element]:
        """The iterator itself."""
        return self

    def _pack_first(self, item: Item) -> Element:
        self._pack = self._stage.layout.packer()
        return self._pack(item)

    def get_next(self) -> Element:
        """The next element.

        Raises:
            OutOfRangeError: there are no more elements.
        """
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError(
                "End of sequence: the dataset has no more elements. Loop with `for`, or make a new "
                f"iterator.{here()}"
            ) from None

    def get_next_as_optional(self) -> Optional:
        """The next element, or nothing at the end.

        >>> import dualflow as df
        >>> bool(iter(df.data.Dataset.range(0)).get_next_as_optional().has_value())
        False
        """
        if is_tracing():
            return read_optional(self, (), self._trace_key())
        try:
            return Optional(convert_to_tensor(True), next(self))
        except StopIteration:
            return Optional.empty(self.element_spec)

    def next(self) -> Element:
        """``next(iterator)``, under TensorFlow 1's name."""
        return next(self)

    @property
    def element_spec(self) -> Any:
        """The structure of the elements' specs."""
        return self._stage.layout.element_spec

    def get_state(self) -> dict[str, Any]:
        """The position of the iterator, as an object that ``json`` can serialize."""
        with signal_safe(self._lock):
            place = self._stage_iterator.get_state() if self._ahead is None else self._ahead[1]
            return {"pipeline": self._stage.describe(), "place": _copied(place)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go to the position that an iterator over an equal dataset had when it returned ``state``.

        If this fails, the iterator and its dataset are unchanged.

        Raises:
            InvalidArgumentError: the state is of a dataset with other stages, or damaged.
        """
        pipeline = self._stage.describe()
        if not isinstance(state, dict) or state.get("pipeline") != pipeline:
            other = state.get("pipeline") if isinstance(state, dict) else repr(state)
            raise InvalidArgumentError(
                f"The state is of another dataset: {other}, where this one is {pipeline}. Create the dataset "
                "in the same way as the one whose iterator was saved."
            )
        with signal_safe(self._lock), dispatch.using(EAGER):
            with restoring_epochs():
                iterator = self._stage.start()
                try:
                    iterator.set_state(_copied(state.get("place")))
                except BaseException:
                    iterator.close()
                    raise
            self._replace(iterator)

    def close(self) -> None:
        """End the iterator: it has no more elements, and its prefetching threads end.

        A thread that is waiting for an element still receives it.
        """
        self._replace(ClosedIterator())

    def _replace(self, iterator: StageIterator) -> None:
        old, self._stage_iterator, self._ahead = self._stage_iterator, iterator, None
        self._release.detach()
        self._release = weakref.finalize(self, iterator.close)
        if self._lock.acquire(blocking=False):  # else the reading thread drops it
            try:
                old.close()
            finally:
                self._lock.release()

    def _free_in_child(self) -> None:
        """In a forked child, replace a lock that another thread held; the iterator must then be restored."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()
            self._stage_iterator, self._ahead = InterruptedIterator(), None


_LOCKS_ARE_SIGNAL_SAFE: Final = sys.version_info < (3, 14)
"""Whether ``with lock`` is safe: from Python 3.14 on, a signal handler can raise just before the block."""
_iterators: Final[weakref.WeakSet[Iterator[Any]]] = weakref.WeakSet()


def _free_in_child() -> None:
    for iterator in list(_iterators):
        iterator._free_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_in_child)


class NumpyIterator:
    """An iterator over the elements of a dataset as NumPy arrays and scalars.

    >>> import dualflow as df
    >>> list(df.data.Dataset.range(3).as_numpy_iterator())
    [np.int64(0), np.int64(1), np.int64(2)]
    """

    def __init__(self, dataset: DatasetBase) -> None:
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
            f"as_numpy_iterator() can't convert a dataset that is an element to an array: {leaf!r}. flat_map "
            "it first."
        )
    return leaf.numpy()


def _check_shape(leaf: Any, spec: TensorSpec) -> None:
    if not spec.shape.is_compatible_with(leaf.shape):
        raise InvalidArgumentError(
            f"The next element has shape {leaf.shape}, but this call was traced for {spec.shape}, the shape "
            "of the first element that it reads. Use batch(..., drop_remainder=True), or read one element "
            "per call."
        )


def _copied(state: State) -> State:
    """A deep copy of ``state``."""
    if isinstance(state, dict):
        return {key: _copied(part) for key, part in state.items()}
    return list(map(_copied, state)) if isinstance(state, list | tuple) else state


def _smallest(spec: TensorSpec) -> TensorSpec:
    """``spec`` with 0 for unknown sizes; used at the end, where no element has actual sizes."""
    sizes = [] if spec.shape is UNKNOWN_RANK else [size or 0 for size in spec.shape]
    return TensorSpec(sizes, spec.dtype)
