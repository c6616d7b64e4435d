"""Iterators that a traced function creates: ``iter(dataset)`` in it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spec import TensorSpec
from dualflow.data.handles import arguments_in, bind_arguments, handle_of, source_of_handle
from dualflow.data.iterator import Iterator
from dualflow.data.methods.base import DatasetBase
from dualflow.data.tracing import IteratorKind, TracedIterator
from dualflow.function.errors import here
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op


class _LatestIterator(threading.local):
    """The iterator that each thread created last, which a handle alone would not keep alive."""

    iterator: Iterator[Any] | None = None


@dataclass(frozen=True, eq=False)
class IteratorCreation:
    """A place in a traced function that creates an iterator, the attribute of a ``create_iterator`` node.

    Attributes:
        dataset: what the iterator reads. Its arguments are bound by their handles at run time.
    """

    dataset: DatasetBase
    _latest: _LatestIterator = field(default_factory=_LatestIterator, repr=False)

    def create(self, handles: Sequence[Array]) -> Array:
        """The handle of a new iterator, which lives until this thread creates the next one here."""
        stage = self.dataset.stage
        arguments = zip(arguments_in(stage), handles, strict=True)
        bound = {id(a): source_of_handle(int(handle)).stage for a, handle in arguments}
        self._latest.iterator = Iterator(self.dataset.of(bind_arguments(stage, bound)))
        return handle_of(self._latest.iterator)._array


def created_iterator(dataset: DatasetBase) -> TracedIterator:
    """A new iterator over ``dataset`` in each run of the function that is being traced.

    Raises:
        InvalidArgumentError: the rank of an element's leaf is unknown.
    """
    layout = dataset.stage.layout
    if any(spec.shape is UNKNOWN_RANK for spec in layout.specs):
        raise InvalidArgumentError(
            "iter(dataset) in a function requires elements of known rank, but they are "
            f"{layout.element_spec}; write `for x in dataset`, which reads their shapes when the function "
            f"runs.{here()}"
        )
    handles = tuple([a.handle for a in arguments_in(dataset.stage)])
    attrs = {"creation": IteratorCreation(dataset)}
    handle = dispatch.current().apply(CREATE_ITERATOR, handles, attrs)
    return TracedIterator(handle, IteratorKind(layout, layout.specs))


def _infer(*handles: TensorSpec, creation: IteratorCreation) -> TensorSpec:
    return TensorSpec([], int64)


def _create(*handles: Array, creation: IteratorCreation) -> Array:
    return np.array(creation.create(handles))


CREATE_ITERATOR: Final = Op(
    name="create_iterator",
    doc="The handle of a new iterator over a dataset.",
    infer=_infer,
    kernel=_create,
    kind=Opaque("it begins to read a dataset in Python"),
    effect=Effect.PYTHON,
)
