"""Handles: integers that represent datasets and iterators as arguments of traced functions."""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dualflow.core.errors import FailedPreconditionError
from dualflow.core.locks import SharedLock
from dualflow.data.element import ElementLayout
from dualflow.data.stage import UNKNOWN, Stage, StageIterator
from dualflow.eager.tensor import EagerTensor, wrap

_lock: Final = SharedLock()
_numbers: Final = itertools.count(1)
_objects: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()
_handles: Final[weakref.WeakKeyDictionary[Any, EagerTensor]] = weakref.WeakKeyDictionary()


def handle_of(source: Any) -> EagerTensor:
    """The handle of ``source``, a scalar tensor; valid as long as ``source`` lives."""
    with _lock.lock:
        handle = _handles.get(source)
        if handle is None:
            number = next(_numbers)
            handle = _handles[source] = wrap(np.array(number, np.int64))
            _objects[number] = source
        return handle


def source_of_handle(number: int) -> Any:
    """The dataset or iterator that the handle ``number`` represents."""
    source = _objects.get(number)
    if source is None:
        raise FailedPreconditionError(
            "A dataset or an iterator that a traced function reads no longer exists; keep it in a variable "
            "as long as the function is called."
        )
    return source


@dataclass(frozen=True, eq=False, kw_only=True)
class ArgumentStage(Stage):
    """A dataset argument of a traced function.

    Attributes:
        handle: the symbolic tensor of its handle.
        elements: the layout of its elements, the same in all calls.
    """

    handle: Any
    elements: ElementLayout

    @property
    def layout(self) -> ElementLayout:
        return self.elements

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> StageIterator:
        raise FailedPreconditionError(
            "A dataset that is an argument of a traced function can be read only when the function runs: "
            f"loop over it with `for`, or use its methods, such as reduce.{self.where}"
        )


def arguments_in(stage: Stage) -> list[ArgumentStage]:
    """The arguments in a pipeline, each once, in a deterministic order."""
    arguments: dict[int, ArgumentStage] = {}
    pending = [stage]
    while pending:
        current = pending.pop()
        if isinstance(current, ArgumentStage):
            arguments[id(current)] = current
        pending += current.sources
    return list(arguments.values())


def bind_arguments(stage: Stage, bound: dict[int, Stage]) -> Stage:
    """The pipeline with its arguments replaced by the stages ``bound`` to their ids."""
    if id(stage) in bound:
        return bound[id(stage)]
    if not stage.sources:
        return stage
    return stage.with_sources([bind_arguments(source, bound) for source in stage.sources])
