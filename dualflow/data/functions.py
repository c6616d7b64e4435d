"""Users' functions of elements: traced once for the specs of the elements, and compiled."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from dualflow.core.errors import DTypeError, OperatorNotAllowedInGraphError
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.data.captured import captured
from dualflow.data.element import (
    AbstractDataset,
    DatasetSpec,
    ElementLayout,
    Item,
    layout_of_spec,
    leaf_array,
    leaf_spec,
    wrapped,
)
from dualflow.data.sources import UnknownStage
from dualflow.data.stage import Stage
from dualflow.eager.tensor import wrap
from dualflow.function.autograph.conversion import converted
from dualflow.function.decorator import Function
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.ops.creation import convert_to_tensor

_in_python: Final[ContextVar[bool]] = ContextVar("dualflow_data_in_python", default=False)
_on_trial: Final[ContextVar[bool]] = ContextVar("dualflow_data_on_trial", default=False)


class DebugMode:
    """Whether functions of elements run in Python, as they are written."""

    on = False


def on_trial() -> bool:
    """Whether a function of elements runs on symbols now, to see what it returns."""
    return _on_trial.get()


class ElementFunction:
    """A function of the elements of a stage, whose results are elements again.

    It is traced now and compiled by its first call. It runs in Python instead, on tensors that have their
    values, where datasets are among the elements or results, in debug mode, and where it was made by a
    function that itself runs for each element: compiling it each time would cost more. What it reads from
    enclosing scopes and its module is captured now, as a trace does, but in debug mode.

    Args:
        function: takes the parts of an element that is a tuple one by one, any other element as it is.
        source: the layout of the elements.
        nest: makes the dataset of a stage.
        first: the layout of what the function takes before the element, as the state of ``scan``.
        datasets: whether its results are datasets.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        source: Callable[[], ElementLayout],
        nest: Callable[[Stage], Any],
        first: ElementLayout | None = None,
        datasets: bool = False,
    ) -> None:
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._source = source
        self._nest = nest
        self._first = first
        self._found: ElementLayout | None = None
        self._compiled: Function[..., Any] | None = None
        if not DebugMode.on:
            if not datasets and not _in_python.get():
                self._trace()
            if self._compiled is None:
                self._function = captured(function)

    @property
    def told(self) -> bool:
        """Whether the layout of the results can be told: that of the elements has all numbers of axes."""
        specs = self._specs()
        open_ranks = [s for s in specs if isinstance(s, TensorSpec) and s.shape is UNKNOWN_RANK]
        return self._found is not None or not open_ranks

    @property
    def layout(self) -> ElementLayout:
        """Of the results.

        Raises:
            DTypeError: it can't be told before the function has run once.
        """
        if self._found is None:
            result = self.trial()
            leaves, structure = opened_result(result)
            self._found = ElementLayout(structure, tuple(map(_spec_of, leaves)))
        return self._found

    def trial(self) -> Any:
        """What the function returns for symbols of the elements' specs."""
        leaves = list(self._specs())
        if any(isinstance(s, TensorSpec) and s.shape is UNKNOWN_RANK for s in leaves):
            raise DTypeError(
                f"What {self.name!r} returns can't be told, since elements of an unknown number of axes are "
                "given to it; say their shapes where they come from, in output_signature."
            )
        try:
            return self._tried(self._function, leaves)
        except OperatorNotAllowedInGraphError as error:
            return self._tried(converted(self._function, error), leaves)

    def __call__(self, *items: Any) -> Item:
        """The leaves of the result for the leaves of an element."""
        if self._compiled is None:
            return self._in_python(items)
        found = self._compiled(*[wrap(x) for x in items])
        return tuple([x._array for x in found])

    def result(self, *items: Any) -> Any:
        """What the function returns when it runs in Python."""
        token = _in_python.set(True)
        try:
            return self._called(self._function, [wrapped(x) for x in items])
        finally:
            _in_python.reset(token)

    def traced(self, *leaves: Any) -> list[Any]:
        """The leaves of the result for symbols, in a trace under way."""
        function = self._function
        inner = function if isinstance(function, Function) else Function(function, name=self.name)
        return [convert_to_tensor(x) for x in opened_result(self._called(inner, list(leaves)))[0]]

    def _specs(self) -> tuple[Any, ...]:
        return (() if self._first is None else self._first.specs) + self._source().specs

    def _called(self, function: Callable[..., Any], leaves: list[Any]) -> Any:
        layout, first = self._source(), self._first
        before = 0 if first is None else len(first.specs)
        state = [] if first is None else [unflatten(first.structure, leaves[:before])]
        element = unflatten(layout.structure, leaves[before:])
        spread = layout.unpacked and first is None
        return function(*state, *element) if spread else function(*state, element)

    def _in_python(self, items: tuple[Any, ...]) -> Item:
        leaves, structure = opened_result(self.result(*items))
        arrays = tuple([x if isinstance(x, AbstractDataset) else leaf_array(x) for x in leaves])
        if self._found is None:
            self._found = ElementLayout(structure, tuple(map(_spec_of, arrays)))
        return arrays

    def _trace(self) -> None:
        specs = self._specs()
        if any(isinstance(s, DatasetSpec) for s in specs):
            return
        is_late = any(s.shape is UNKNOWN_RANK for s in specs)
        inner = captured(self._function) if is_late else self._function
        if not isinstance(inner, Function):
            inner = Function(inner, name=self.name)

        def flat(*leaves: Any) -> Any:
            found, structure = opened_result(self._called(inner, list(leaves)))
            tensors = [convert_to_tensor(x) for x in found]
            self._found = ElementLayout(structure, tuple(map(leaf_spec, tensors)))
            return tuple(tensors)

        compiled = Function(flat, autograph=False, name=self.name)
        if is_late:
            self._compiled = compiled  # each shape is traced when it comes
            return
        try:
            compiled.get_concrete_function(*specs)
        except Exception:
            if not self._gives_datasets():
                raise
            return
        self._compiled = compiled

    def _gives_datasets(self) -> bool:
        try:
            return any(isinstance(x, AbstractDataset) for x in opened_result(self.trial())[0])
        except Exception:
            return False

    def _tried(self, function: Callable[..., Any], specs: list[Any]) -> Any:
        tracer = Tracer(self.name)
        leaves = [
            self._nest(UnknownStage(elements=layout_of_spec(spec.element_spec)))
            if isinstance(spec, DatasetSpec)
            else tracer.argument(spec)
            for spec in specs
        ]
        token = _on_trial.set(True)
        try:
            with tracing(tracer):
                return self._called(function, leaves)
        finally:
            _on_trial.reset(token)


def opened_result(result: Any) -> tuple[list[Any], Structure]:
    """The leaves of what a function of elements returned, and their structure, in which lists are tuples."""
    leaves, structure = flatten(result, is_leaf=lambda x: isinstance(x, AbstractDataset))
    return leaves, _without_lists(structure)


def _without_lists(structure: Structure) -> Structure:
    kind = tuple if structure.kind is list else structure.kind
    return Structure(kind, structure.keys, tuple(map(_without_lists, structure.children)))


def _spec_of(leaf: Any) -> Any:
    if isinstance(leaf, AbstractDataset):
        return DatasetSpec(leaf.element_spec)
    return leaf_spec(leaf if hasattr(leaf, "dtype") else leaf_array(leaf))
