"""What functions make of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from dualflow.core.dtypes import bool_
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entries
from dualflow.data.arguments import callable_function
from dualflow.data.element import ElementLayout, leaf_array, leaf_spec, opened
from dualflow.data.functions import ElementFunction
from dualflow.data.mapping import FilterStage, MapStage, ScanStage, TakeWhileStage
from dualflow.data.methods.base import StageHolder
from dualflow.function.errors import here


@entries
class MappingMethods(StageHolder):
    """Transformations with functions of elements, which are traced and compiled."""

    __slots__ = ()

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Self:
        """What ``map_func`` gives for each element.

        It is traced here, once, and compiled when the first element comes: Python's side effects happen once.
        Wrap what must run in Python for each element in :func:`dualflow.py_function` or
        :func:`dualflow.numpy_function`.

        Args:
            map_func: takes the parts of an element that is a tuple as arguments, any other as one; returns a
                structure of tensors, in which a list counts as a tuple.
            num_parallel_calls: how many calls may run in threads at the same time, or ``AUTOTUNE``.
            deterministic: False lets what is ready first come first.
            synchronous, use_unbounded_threadpool, name: ignored; as in TensorFlow.

        Raises:
            DTypeError: ``map_func`` can't be called, or returns something else than tensors.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(3).map(lambda x: x * x).as_numpy_iterator())
        [np.int64(0), np.int64(1), np.int64(4)]
        """
        function = self.function(callable_function(map_func, "map_func"))
        return self.then(MapStage(source=self.stage, function=function))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """The elements for which ``predicate`` gives True.

        Raises:
            InvalidArgumentError: it returns something else than one bool.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(5).filter(lambda x: x % 2 == 1).as_numpy_iterator())
        [np.int64(1), np.int64(3)]
        """
        return self.then(FilterStage(source=self.stage, predicate=self._predicate(predicate)))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """The elements before the first one for which ``predicate`` gives False.

        Raises:
            InvalidArgumentError: it returns something else than one bool.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(5).take_while(lambda x: x < 2).as_numpy_iterator())
        [np.int64(0), np.int64(1)]
        """
        return self.then(TakeWhileStage(source=self.stage, predicate=self._predicate(predicate)))

    def _predicate(self, predicate: Callable[..., Any]) -> ElementFunction:
        function = self.function(callable_function(predicate, "predicate"))
        specs = function.layout.specs
        if len(specs) != 1 or specs[0].dtype is not bool_ or specs[0].shape:
            raise InvalidArgumentError(
                "Invalid `predicate`: it must return a scalar of dtype bool, but it returns "
                f"{function.layout.element_spec!r}.{here()}"
            )
        return function

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None) -> Self:
        """What ``scan_func`` gives for a state and each element, which is also given the next state.

        Args:
            initial_state: a structure of tensors, given with the first element.
            scan_func: takes a state and an element; returns a pair of the next state, like the first, and of
                an element of the new dataset.
            name: ignored; as in TensorFlow.

        Raises:
            DTypeError: it returns no such pair.

        >>> import dualflow as df
        >>> sums = df.data.Dataset.range(4).scan(df.constant(0, df.int64), lambda s, x: (s + x, s + x))
        >>> list(sums.as_numpy_iterator())
        [np.int64(0), np.int64(1), np.int64(3), np.int64(6)]
        """
        first, state = _state(initial_state)
        function = self.function(callable_function(scan_func, "scan_func"), first)
        found = function.layout
        if found.structure.kind is not tuple or len(found.structure.children) != 2:
            raise DTypeError(
                f"scan_func returns a pair of the new state and a result, not {found.element_spec!r}.{here()}"
            )
        kept = ElementLayout(found.structure.children[0], found.specs[: found.structure.children[0].leaves])
        check_state(kept, first)
        return self.then(ScanStage(source=self.stage, function=function, first=state))

    def apply(self, transformation_func: Callable[[Self], Any]) -> Self:
        """``transformation_func(dataset)``, which is a dataset.

        Raises:
            DTypeError: it returns something else.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(3).apply(lambda d: d.skip(1)).as_numpy_iterator())
        [np.int64(1), np.int64(2)]
        """
        found = transformation_func(self)
        if not isinstance(found, StageHolder):
            raise DTypeError(
                f"`transformation_func` must return a dataset, not a {type(found).__name__}.{here()}"
            )
        made: Self = found  # type: ignore[assignment]  # the one class of datasets
        return made


def _state(initial: Any) -> tuple[ElementLayout, tuple[Any, ...]]:
    """The layout of a state, and its leaves."""
    leaves, structure = opened(initial)
    arrays = tuple(map(leaf_array, leaves))
    return ElementLayout(structure, tuple(map(leaf_spec, arrays))), arrays


def check_state(found: ElementLayout, first: ElementLayout) -> None:
    """Refuse a function whose new state is unlike the first one."""
    if found.structure != first.structure:
        raise DTypeError(
            f"The function returned a state of another structure, {found.element_spec!r}, than it was given, "
            f"{first.element_spec!r}.{here()}"
        )
    for new, old in zip(found.specs, first.specs, strict=True):
        if new.dtype is not old.dtype:
            raise DTypeError(
                f"The function returned a state of dtype {new.dtype.name} where it was given "
                f"{old.dtype.name}; "
                f"cast the initial state, or the result, with df.cast.{here()}"
            )
