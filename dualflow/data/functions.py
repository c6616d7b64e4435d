"""Users' functions of elements: traced once for the elements' specs, and compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final

from dualflow.core.errors import DTypeError
from dualflow.core.shape import UNKNOWN_RANK
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure, unflatten
from dualflow.data.captured import captured
from dualflow.data.element import (
    AbstractDataset,
    DatasetSpec,
    ElementLayout,
    Item,
    flatten_element,
    layout_of_spec,
    leaf_array,
    leaf_spec,
    wrapped,
)
from dualflow.data.sources import UnknownStage
from dualflow.data.stage import Stage
from dualflow.eager.device_tensor import tensor_of
from dualflow.function.arguments.signature import Signature
from dualflow.function.autograph.conversion import converted
from dualflow.function.errors import here
from dualflow.function.traced_function import Function
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.ops.creation import convert_to_tensor

_in_python: Final[ContextVar[bool]] = ContextVar("dualflow_data_in_python", default=False)
_tracing_layout: Final[ContextVar[bool]] = ContextVar("dualflow_data_tracing_layout", default=False)


class DebugMode:
    """Whether functions of elements run in Python, without tracing."""

    on = False


def is_tracing_layout() -> bool:
    """Whether a function of elements is being traced only to find the layout of its results."""
    return _tracing_layout.get()


class _ElementSignature(Signature):
    """The parameters of a function of elements, whose lists and dicts are its own: it may change them."""

    def check_unmodified(self, values: Sequence[Any], structure: Structure, leaves: Sequence[Any]) -> None:
        pass


class ElementFunction:
    """A user's function of a transformation such as ``map``: traced once, called for each element.

    It is traced now, and compiled by its first call. It runs in Python instead, on eager tensors, if datasets
    are among the elements or results, in debug mode, and if it was created by a function that itself runs for
    each element: compiling it each time would cost more. Variables that it reads from enclosing scopes and
    its module are captured now, as by a trace, except in debug mode.

    Args:
        function: takes the parts of a tuple as separate arguments, any other element as one.
        source: returns the layout of the elements.
        dataset_of: creates the dataset of a stage.
        first: the layout of an argument before the element, such as the state of ``scan``.
        datasets: whether its results are datasets.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        source: Callable[[], ElementLayout],
        dataset_of: Callable[[Stage], Any],
        first: ElementLayout | None = None,
        datasets: bool = False,
    ) -> None:
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._source = source
        self._dataset_of = dataset_of
        self._first = first
        self._result_layout: ElementLayout | None = None
        self._compiled: Function[..., Any] | None = None
        if not DebugMode.on:
            if not datasets and not _in_python.get():
                self._trace()
            if self._compiled is None:
                self._function = captured(function)

    @property
    def has_layout(self) -> bool:
        """Whether the layout of the results is known, which requires known ranks of the elements' leaves."""
        specs = self._specs()
        has_unknown_rank = any(isinstance(s, TensorSpec) and s.shape is UNKNOWN_RANK for s in specs)
        return self._result_layout is not None or not has_unknown_rank

    @property
    def layout(self) -> ElementLayout:
        """The layout of the results.

        Raises:
            DTypeError: it is unknown until the function has run once.
        """
        if self._result_layout is None:
            result = self.trace_for_result()
            leaves, structure = flatten_result(result)
            self._result_layout = ElementLayout(structure, tuple(map(_spec_of, leaves)))
        return self._result_layout

    def trace_for_result(self) -> Any:
        """The function's result for symbolic tensors of the elements' specs; the trace is discarded."""
        leaves = list(self._specs())
        if any(isinstance(s, TensorSpec) and s.shape is UNKNOWN_RANK for s in leaves):
            raise DTypeError(
                f"The result of {self.name!r} is unknown, since its elements have an unknown number of axes; "
                "declare their shapes in the output_signature of their source."
            )
        return self._trace_for_layout(converted(self._function), leaves)

    def __call__(self, *items: Any) -> Item:
        """The leaves of the result for the leaves of an element."""
        if self._compiled is None:
            return self._in_python(items)
        outputs = self._compiled(*map(tensor_of, items))
        return tuple([x._array for x in outputs])

    def result(self, *items: Any) -> Any:
        """The function's result for one element, given by its leaves; runs as Python."""
        token = _in_python.set(True)
        try:
            return self._called(self._function, [wrapped(x) for x in items])
        finally:
            _in_python.reset(token)

    def traced(self, *leaves: Any) -> list[Any]:
        """The leaves of the result for symbolic tensors, in the current trace."""
        inner = self._as_function(self._function)
        return [convert_to_tensor(x) for x in flatten_result(self._called(inner, list(leaves)))[0]]

    def _as_function(self, function: Callable[..., Any]) -> Function[..., Any]:
        if isinstance(function, Function):
            return function
        return Function(function, name=self.name, signature=_ElementSignature(function, None))

    def _specs(self) -> tuple[Any, ...]:
        return (() if self._first is None else self._first.specs) + self._source().specs

    def _called(self, function: Callable[..., Any], leaves: list[Any]) -> Any:
        layout, first = self._source(), self._first
        count = 0 if first is None else len(first.specs)
        state = [] if first is None else [unflatten(first.structure, leaves[:count])]
        element = unflatten(layout.structure, leaves[count:])
        return function(*state, *element) if self._spreads(layout) else function(*state, element)

    def _in_python(self, items: tuple[Any, ...]) -> Item:
        leaves, structure = flatten_result(self.result(*items))
        arrays = tuple([x if isinstance(x, AbstractDataset) else leaf_array(x) for x in leaves])
        if self._result_layout is None:
            self._result_layout = ElementLayout(structure, tuple(map(_spec_of, arrays)))
        return arrays

    def _check_parameters(self) -> None:
        """Raise a DTypeError unless the function can be called with an element."""
        layout = self._source()
        spreads = self._spreads(layout)
        count = (len(layout.structure.children) if spreads else 1) + (self._first is not None)
        try:
            signature = inspect.signature(self._function)
        except (TypeError, ValueError):  # such as a function of C
            return
        try:
            signature.bind(*[None] * count)
        except TypeError as error:
            arguments = "the parts of an element" if spreads else "an element"
            if self._first is not None:
                arguments = f"a state and {arguments}"
            raise DTypeError(
                f"{self.name!r} can't be called with {arguments}, {count} in number: {error}. Change its "
                f"parameters.{here()}"
            ) from None

    def _spreads(self, layout: ElementLayout) -> bool:
        """Whether the parts of an element of this layout are separate arguments."""
        return layout.unpacked and self._first is None

    def _trace(self) -> None:
        self._check_parameters()
        specs = self._specs()
        if any(isinstance(s, DatasetSpec) for s in specs):
            return
        has_unknown_rank = any(s.shape is UNKNOWN_RANK for s in specs)
        inner = captured(self._function) if has_unknown_rank else self._function
        inner = self._as_function(inner)

        def flat(*leaves: Any) -> Any:
            results, structure = flatten_result(self._called(inner, list(leaves)))
            tensors = [convert_to_tensor(x) for x in results]
            self._result_layout = ElementLayout(structure, tuple(map(leaf_spec, tensors)))
            return tuple(tensors)

        compiled = Function(flat, autograph=False, name=self.name)
        if has_unknown_rank:
            self._compiled = compiled  # traced at the first element of each shape
            return
        try:
            compiled.get_concrete_function(*specs)
        except Exception:
            if not self._returns_datasets():
                raise
            return
        self._compiled = compiled

    def _returns_datasets(self) -> bool:
        try:
            return any(isinstance(x, AbstractDataset) for x in flatten_result(self.trace_for_result())[0])
        except Exception:
            return False

    def _trace_for_layout(self, function: Callable[..., Any], specs: list[Any]) -> Any:
        self._check_parameters()
        tracer = Tracer(self.name)
        leaves = [
            self._dataset_of(UnknownStage(elements=layout_of_spec(spec.element_spec)))
            if isinstance(spec, DatasetSpec)
            else tracer.argument(spec)
            for spec in specs
        ]
        token = _tracing_layout.set(True)
        try:
            with tracing(tracer):
                return self._called(function, leaves)
        finally:
            _tracing_layout.reset(token)


def flatten_result(result: Any) -> tuple[list[Any], Structure]:
    """The leaves of a function's result, and its structure.

    A list is a tuple, and a list inside of the result is a leaf, which becomes a tensor.
    """
    return flatten_element(tuple(result) if isinstance(result, list) else result)


def _spec_of(leaf: Any) -> Any:
    if isinstance(leaf, AbstractDataset):
        return DatasetSpec(leaf.element_spec)
    return leaf_spec(leaf if hasattr(leaf, "dtype") else leaf_array(leaf))
