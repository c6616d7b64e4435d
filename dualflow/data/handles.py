"""Datasets and iterators as arguments of traced functions: a number stands for each, which runs look up."""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dualflow.core.errors import FailedPreconditionError
from dualflow.core.locks import SharedLock
from dualflow.data.element import ElementLayout
from dualflow.data.stage import UNKNOWN, Cursor, Stage
from dualflow.eager.tensor import EagerTensor, wrap

_lock: Final = SharedLock()
_numbers: Final = itertools.count(1)
_objects: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()
_handles: Final[weakref.WeakKeyDictionary[Any, EagerTensor]] = weakref.WeakKeyDictionary()


def handle_of(source: Any) -> EagerTensor:
    """A scalar that stands for ``source`` for as long as that lives."""
    with _lock.lock:
        found = _handles.get(source)
        if found is None:
            number = next(_numbers)
            found = _handles[source] = wrap(np.array(number, np.int64))
            _objects[number] = source
        return found


def held(number: int) -> Any:
    """What a handle stands for."""
    found = _objects.get(number)
    if found is None:
        raise FailedPreconditionError(
            "A dataset or an iterator that a traced function is to read is gone; keep it in a variable for "
            "as "
            "long as the function is called."
        )
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class ArgumentStage(Stage):
    """The dataset that an argument of a traced function stands for.

    Attributes:
        handle: the symbol of its handle.
        elements: the layout that it has in all calls.
    """

    handle: Any
    elements: ElementLayout

    @property
    def layout(self) -> ElementLayout:
        return self.elements

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start(self) -> Cursor:
        raise FailedPreconditionError(
            "A dataset that is an argument of a traced function can be read only when the function runs: "
            "loop "
            f"over it with `for`, or use its methods, such as reduce.{self.where}"
        )


def arguments_in(stage: Stage) -> list[ArgumentStage]:
    """The arguments that a pipeline is made of, each once, in a fixed order."""
    found: dict[int, ArgumentStage] = {}
    pending = [stage]
    while pending:
        one = pending.pop()
        if isinstance(one, ArgumentStage):
            found[id(one)] = one
        pending += one.sources
    return list(found.values())


def filled(stage: Stage, given: dict[int, Stage]) -> Stage:
    """The pipeline with stages in the place of its arguments, by their ids."""
    if id(stage) in given:
        return given[id(stage)]
    if not stage.sources:
        return stage
    return stage.over([filled(source, given) for source in stage.sources])
