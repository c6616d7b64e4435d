"""Iterators of graphs: each session has a position in the dataset, and each run reads an element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import FailedPreconditionError, OutOfRangeError
from dualflow.core.tracebacks import entry
from dualflow.core.tree import unflatten
from dualflow.data.iterator import Iterator
from dualflow.graph_mode import recording_graph
from dualflow.graph_mode.session_ops import READS_SESSION, session_state
from dualflow.ops.record import Effect, Op

if TYPE_CHECKING:
    from dualflow.data import Dataset
    from dualflow.graph_mode import Operation


class SessionIterator:
    """An iterator of a graph over a dataset, with a position in each session.

    Args:
        dataset: what to iterate over.
        one_shot: whether it begins by itself, and only once.
    """

    def __init__(self, dataset: Dataset[Any], one_shot: bool) -> None:
        self._dataset = dataset
        self._one_shot = one_shot
        self._initializer: Operation | None = None if one_shot else _run(INITIALIZE_ITERATOR, self)

    @property
    def initializer(self) -> Operation:
        """The operation that goes to the beginning of the dataset.

        Raises:
            FailedPreconditionError: it is a one-shot iterator, which begins by itself.
        """
        if self._initializer is None:
            raise FailedPreconditionError(
                "A one-shot iterator has no initializer: it begins by itself. Use "
                "make_initializable_iterator."
            )
        return self._initializer

    def get_next(self, name: str | None = None) -> Any:
        """Symbolic tensors for the next element; a session run that fetches one advances the iterator.

        Running them raises OutOfRangeError at the end of the dataset, and FailedPreconditionError if the
        iterator has not been initialised in the session.
        """
        return unflatten(self._dataset.stage.layout.structure, list(_run(READ_IN_SESSION, self)))

    @property
    def element_spec(self) -> Any:
        """The structure of the elements' specs."""
        return self._dataset.element_spec

    def start(self) -> None:
        """Go to the beginning of the dataset, in the session that runs."""
        session_state("an iterator").iterators[self] = Iterator(self._dataset)

    def read(self) -> tuple[Any, ...]:
        """The leaves of the next element in the session that runs."""
        iterators = session_state("an iterator").iterators
        if self not in iterators:
            if not self._one_shot:
                raise FailedPreconditionError(
                    "The iterator has not been initialized in this session: run iterator.initializer first."
                )
            self.start()
        item = iterators[self].read()
        if item is None:
            raise OutOfRangeError("End of sequence: the dataset has no more elements.")
        return tuple([np.array(x) for x in item])


@entry
def make_initializable_iterator(dataset: Dataset[Any], shared_name: str | None = None) -> SessionIterator:
    """An iterator of the graph, which begins at the dataset's first element when its initializer runs.

    Args:
        dataset: of elements that need no feeds.
        shared_name: TensorFlow's, and ignored.

    Raises:
        FailedPreconditionError: ops run eagerly; loop over the dataset.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     iterator = v1.data.make_initializable_iterator(v1.data.Dataset.range(2))
    ...     doubled = iterator.get_next() * 2
    ...     for _ in range(2):
    ...         session.run(iterator.initializer)
    ...         print(session.run(doubled), session.run(doubled))
    0 2
    0 2
    """
    if recording_graph() is None:
        raise FailedPreconditionError(
            "dataset.make_initializable_iterator is not supported when eager execution is enabled. Use "
            "`for element in dataset` instead."
        )
    return SessionIterator(dataset, one_shot=False)


@entry
def make_one_shot_iterator(dataset: Dataset[Any]) -> Any:
    """An iterator of the graph that begins by itself, once in each session; eagerly ``iter(dataset)``.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     x = v1.data.make_one_shot_iterator(v1.data.Dataset.range(2)).get_next()
    ...     print(session.run(x), session.run(x))
    0 1
    """
    return iter(dataset) if recording_graph() is None else SessionIterator(dataset, one_shot=True)


def _run(op: Op, iterator: SessionIterator) -> Any:
    return dispatch.current().run(op, (), {"iterator": iterator})


def _begin(iterator: SessionIterator) -> tuple[Any, ...]:
    iterator.start()
    return ()


INITIALIZE_ITERATOR: Final = Op(
    name="initialize_iterator",
    doc="Goes to the beginning of a dataset, in the session.",
    infer=lambda iterator: (),
    kernel=_begin,
    kind=READS_SESSION,
    outputs=None,
    effect=Effect.PYTHON,
)

READ_IN_SESSION: Final = Op(
    name="iterator_get_next",
    doc="The leaves of the next element of an iterator, in the session.",
    infer=lambda iterator: tuple(iterator._dataset.stage.layout.specs),
    kernel=lambda iterator: iterator.read(),
    kind=READS_SESSION,
    outputs=None,
    effect=Effect.PYTHON,
)
