"""Reading of datasets and iterators in traced functions, whose arguments or closures they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dispatch import AbstractSource
from dualflow.core.dtypes import bool_
from dualflow.core.errors import OperatorNotAllowedInGraphError, OutOfRangeError
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import LEAF, unflatten
from dualflow.data.element import ElementLayout, Item, wrapped
from dualflow.data.functions import ElementFunction
from dualflow.data.handles import ArgumentStage, arguments_in, bind_arguments, handle_of, source_of_handle
from dualflow.data.optional import Optional, empty_leaf
from dualflow.data.stage import Stage
from dualflow.eager.tensor import EagerTensor
from dualflow.function.autograph.stream_loops import ElementSource, Read, stream_node
from dualflow.function.control.trace_bodies import Body, inner_tracer
from dualflow.function.errors import here
from dualflow.function.tracing.tracer import tracing, values
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op

Specs = tuple[TensorSpec, ...]


def is_tracing() -> bool:
    """Whether ops are recorded rather than run."""
    return not dispatch.current().innermost.eager


def reject_python_loop() -> NoReturn:
    """Raise the error for a Python loop over a dataset while a function is traced."""
    raise OperatorNotAllowedInGraphError(
        "Iterating over a dataset is not allowed while a function is traced: its elements exist only when "
        "the function runs. Write `for x in dataset` in the function, with autograph on, so that the loop is "
        f"compiled; or loop outside of the function.{here()}"
    )


@dataclass(frozen=True, slots=True)
class DatasetKind:
    """The trace key of a dataset argument: the layout of its elements."""

    elements: ElementLayout
    make: Callable[[Stage], Any] = field(compare=False)

    @property
    def __name__(self) -> str:
        return f"Dataset of {self.elements.element_spec!r}"

    def __call__(self, handle: Any) -> Any:
        """The dataset of a handle; a placeholder if the handle is symbolic."""
        if isinstance(handle, EagerTensor):
            return source_of_handle(int(handle))
        return self.make(ArgumentStage(handle=handle, elements=self.elements))


def dataset_tree(dataset: Any) -> tuple[Any, tuple[str, ...], list[Any]]:
    """A dataset as a tree whose one leaf is its handle, for arguments of traced functions."""
    stage = dataset.stage
    handle = stage.handle if isinstance(stage, ArgumentStage) else handle_of(dataset)
    return DatasetKind(stage.layout, dataset.of), ("handle",), [handle]


def dataset_reading(stage: Stage) -> ElementSource:
    """How a traced loop reads a dataset from its beginning."""
    arguments, layout = arguments_in(stage), stage.layout

    @contextmanager
    def begin(numbers: Sequence[int]) -> Iterator[Read]:
        bound = {id(a): source_of_handle(n).stage for a, n in zip(arguments, numbers, strict=True)}
        iterator = bind_arguments(stage, bound).start()
        try:
            yield lambda: next(iter(iterator.next(1)), None)
        finally:
            iterator.close()

    return ElementSource(layout.structure, layout.specs, tuple([a.handle for a in arguments]), begin)


def traced_reduction(stage: Stage, function: ElementFunction, first: Item) -> list[Any]:
    """The final state of a reduction over all elements, as a loop of the graph."""
    engine, layout = dispatch.current(), stage.layout
    initial = [convert_to_tensor(True), *[engine.lift(wrapped(x)) for x in first]]
    tracer = inner_tracer(function.name)
    arguments = [tracer.argument(x.spec) for x in initial]
    element = [tracer.argument(spec) for spec in layout.specs]
    with tracing(tracer):
        results = [convert_to_tensor(True), *function.traced(*arguments[1:], *element)]
        outputs = values([tracer.lift(x) for x in results])
    body = Body(tracer, tuple(values([*arguments, *element])), LEAF, tuple(outputs))
    return stream_node(dataset_reading(stage), body, initial)[1:]


@dataclass(frozen=True, slots=True)
class IteratorKind:
    """The trace key of an iterator argument: its layout, and the specs of its next element."""

    elements: ElementLayout
    specs: Specs

    @property
    def __name__(self) -> str:
        return f"Iterator over {self.elements.element_spec!r}, next {', '.join(map(str, self.specs))}"

    def __call__(self, handle: Any) -> Any:
        """The iterator of a handle; a placeholder if the handle is symbolic."""
        return (
            source_of_handle(int(handle)) if isinstance(handle, EagerTensor) else TracedIterator(handle, self)
        )


class TracedIterator(AbstractSource):
    """An iterator argument of a function that is being traced.

    Args:
        handle: the symbolic tensor of its handle.
        kind: its trace key.
    """

    __slots__ = ("_handle", "_kind")

    def __init__(self, handle: Any, kind: IteratorKind) -> None:
        self._handle = handle
        self._kind = kind

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        return self._kind, ("handle",), [self._handle]

    def __iter__(self) -> NoReturn:
        reject_python_loop()

    def __next__(self) -> Any:
        return read_next(None, (self._handle,), self._kind)

    get_next = __next__
    next = __next__

    def get_next_as_optional(self) -> Optional:
        """The next element, or nothing at the end."""
        return read_optional(None, (self._handle,), self._kind)

    @property
    def element_spec(self) -> Any:
        """The structure of the elements' specs."""
        return self._kind.elements.element_spec

    def traced_iterator(self) -> TracedIterator:
        """The iterator itself."""
        return self

    def reading(self) -> ElementSource:
        """How a traced loop reads the remaining elements."""
        return iterator_reading(self._kind.elements, (self._handle,), None)


def iterator_reading(layout: ElementLayout, handles: tuple[Any, ...], iterator: Any) -> ElementSource:
    """How a traced loop reads the remaining elements of ``iterator``, or of a handle's iterator."""

    @contextmanager
    def begin(numbers: Sequence[int]) -> Iterator[Read]:
        yield (source_of_handle(numbers[0]) if numbers else iterator).read

    return ElementSource(layout.structure, layout.specs, handles, begin)


def read_next(iterator: Any, handles: tuple[Any, ...], kind: IteratorKind) -> Any:
    """The next element, read by an op that a trace records."""
    attrs = {"iterator": iterator, "specs": kind.specs}
    leaves = dispatch.current().apply(READ_ELEMENT, handles, attrs)
    return unflatten(kind.elements.structure, list(leaves))


def _infer(*handles: TensorSpec, iterator: Any, specs: Specs) -> Specs:
    return specs


def _read(*handles: Array, iterator: Any, specs: Specs) -> Item:
    source = source_of_handle(int(handles[0])) if handles else iterator
    item: Item | None = source.read(specs)
    if item is None:
        raise OutOfRangeError("End of sequence: the iterator has no more elements; make a new one.")
    return tuple([np.array(x) for x in item])


def read_optional(iterator: Any, handles: tuple[Any, ...], kind: IteratorKind) -> Optional:
    """The next element or nothing, read by an op that a trace records; sizes may differ between elements."""
    layout = kind.elements
    has_rank = all(spec.shape is not UNKNOWN_RANK for spec in layout.specs)
    attrs = {"iterator": iterator, "specs": layout.specs if has_rank else kind.specs}
    present, *leaves = dispatch.current().apply(READ_OPTIONAL, handles, attrs)
    return Optional(present, unflatten(layout.structure, leaves))


def _read_optional(*handles: Array, iterator: Any, specs: Specs) -> Item:
    source = source_of_handle(int(handles[0])) if handles else iterator
    item: Item | None = source.read()
    leaves = map(empty_leaf, specs) if item is None else map(np.array, item)
    return np.array(item is not None), *leaves


READ_OPTIONAL: Final = Op(
    name="read_optional",
    doc="Whether an iterator has a next element, and its leaves.",
    infer=lambda *handles, iterator, specs: (TensorSpec([], bool_), *specs),
    kernel=_read_optional,
    kind=Opaque("it reads an element in Python"),
    outputs=None,
    effect=Effect.PYTHON,
)
READ_ELEMENT: Final = Op(
    name="read_element",
    doc="The leaves of the next element of an iterator.",
    infer=_infer,
    kernel=_read,
    kind=Opaque("it reads an element in Python"),
    outputs=None,
    effect=Effect.PYTHON,
)
