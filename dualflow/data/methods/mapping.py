"""Methods that apply functions to elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from dualflow.core.dtypes import bool_
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import callable_function, positive, whole_number
from dualflow.data.element import ElementLayout, flatten_element, leaf_array, leaf_spec
from dualflow.data.functions import ElementFunction
from dualflow.data.mapping import FilterStage, IgnoreErrorsStage, MapStage, ScanStage, TakeWhileStage
from dualflow.data.methods.base import DatasetBase
from dualflow.data.nesting import InterleaveStage
from dualflow.data.options import options_of
from dualflow.data.parallel_map import ParallelMapStage, cores
from dualflow.data.stage import AUTOTUNE
from dualflow.function.errors import here

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike


@entry
class MappingMethods(DatasetBase):
    """Transformations by functions of elements, which are traced and compiled."""

    __slots__ = ()

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: IntLike | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Any:
        """The results of ``map_func`` for each element.

        The function is traced once, here, and compiled at the first element: side effects in Python happen
        once. Wrap code that must run in Python for each element in :func:`dualflow.py_function` or
        :func:`dualflow.numpy_function`.

        Args:
            map_func: takes the parts of a tuple as separate arguments, any other element as one; returns a
                structure of tensors, in which a list counts as a tuple.
            num_parallel_calls: how many calls may run in threads at the same time, or ``AUTOTUNE``.
            deterministic: False allows results in the order in which they are ready.
            synchronous, use_unbounded_threadpool, name: ignored; as in TensorFlow.

        Raises:
            DTypeError: ``map_func`` is not callable, or returns something other than tensors.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(3).map(lambda x: x * x).as_numpy_iterator())
        [np.int64(0), np.int64(1), np.int64(4)]
        """
        function = self.function(callable_function(map_func, "map_func"))
        calls = _calls(num_parallel_calls)
        if calls is None or self.stage.runs_collectives:  # workers would read unequal numbers ahead
            return self.then(MapStage(source=self.stage, function=function))
        options = options_of(self.stage)
        if calls == AUTOTUNE and options.threading.private_threadpool_size:
            calls = options.threading.private_threadpool_size
        ordered = (options.deterministic if deterministic is None else deterministic) is not False
        return self.then(ParallelMapStage(source=self.stage, function=function, calls=calls, ordered=ordered))

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Any:
        """The concatenated datasets that ``map_func`` returns for the elements.

        The function is called here with symbolic tensors, to find the layout of its datasets, and then in
        Python for each element. Variables that it reads from enclosing scopes and its module keep their
        present values, as in a trace; variables that it assigns, and the contents of objects, are shared with
        the program.

        Raises:
            DTypeError: ``map_func`` doesn't return a dataset.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.range(3).flat_map(lambda n: df.data.Dataset.range(n))
        >>> list(dataset.as_numpy_iterator())
        [np.int64(0), np.int64(0), np.int64(1)]
        """
        return self._interleaved(map_func, 1, 1 << 62, 0)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: IntLike | None = None,
        block_length: IntLike | None = None,
        num_parallel_calls: IntLike | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Any:
        """The elements of the datasets that ``map_func`` returns, read from several datasets cyclically.

        Args:
            map_func: returns a dataset for each element; it is called as in :meth:`flat_map`.
            cycle_length: how many datasets are open at a time; by default, or with AUTOTUNE, the number of
                cores.
            block_length: how many consecutive elements are read from one, 1 by default.
            num_parallel_calls: unless None, each open dataset has a thread that prefetches its next block.
            deterministic: ignored: the order is always the same.
            name: ignored; as in TensorFlow.

        Raises:
            DTypeError: ``map_func`` doesn't return a dataset.
            InvalidArgumentError: a length is not positive.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.range(2).interleave(
        ...     lambda n: df.data.Dataset.from_tensors(n).repeat(3), cycle_length=2, block_length=2
        ... )
        >>> [int(n) for n in dataset]
        [0, 0, 1, 1, 0, 1]
        """
        length = AUTOTUNE if cycle_length is None else whole_number(cycle_length, "cycle_length")
        cycle = cores() if length == AUTOTUNE else positive(length, "cycle_length")
        block = 1 if block_length is None else positive(block_length, "block_length")
        ahead = 0 if _calls(num_parallel_calls) is None else block
        return self._interleaved(map_func, cycle, block, ahead)

    def _interleaved(self, map_func: Callable[..., Any], cycle: int, block: int, ahead: int) -> Any:
        function = ElementFunction(
            callable_function(map_func, "map_func"), lambda: self.stage.layout, self.of, datasets=True
        )
        layout = dataset_layout(function)
        return self.then(
            InterleaveStage(
                source=self.stage, function=function, elements=layout, cycle=cycle, block=block, ahead=ahead
            )
        )

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Self:
        """The same elements without those whose computation raises an error.

        After a ``batch``, the whole batch of such an element is skipped.

        Args:
            log_warning: whether to warn of each skipped element.
            name: ignored; as in TensorFlow.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.from_tensor_slices([1.0, 0.0, 2.0])
        >>> finite = dataset.map(lambda x: df.debugging.check_numerics(1.0 / x, "inf"))
        >>> list(finite.ignore_errors().as_numpy_iterator())
        [np.float32(1.0), np.float32(0.5)]
        """
        return self.then(IgnoreErrorsStage(source=self.stage, warn=bool(log_warning)))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """The elements for which ``predicate`` returns True.

        Raises:
            InvalidArgumentError: ``predicate`` returns something other than a scalar bool.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(5).filter(lambda x: x % 2 == 1).as_numpy_iterator())
        [np.int64(1), np.int64(3)]
        """
        return self.then(FilterStage(source=self.stage, predicate=self._predicate(predicate)))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """The elements before the first one for which ``predicate`` returns False.

        Raises:
            InvalidArgumentError: ``predicate`` returns something other than a scalar bool.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(5).take_while(lambda x: x < 2).as_numpy_iterator())
        [np.int64(0), np.int64(1)]
        """
        return self.then(TakeWhileStage(source=self.stage, predicate=self._predicate(predicate)))

    def _predicate(self, predicate: Callable[..., Any]) -> ElementFunction:
        function = self.function(callable_function(predicate, "predicate"))
        if not function.has_layout:
            return function
        specs = function.layout.specs
        if len(specs) != 1 or specs[0].dtype is not bool_ or specs[0].shape:
            raise InvalidArgumentError(
                "Invalid `predicate`: it must return a scalar of dtype bool, but it returns "
                f"{function.layout.element_spec!r}.{here()}"
            )
        return function

    def scan(self, initial_state: object, scan_func: Callable[..., Any], name: str | None = None) -> Any:
        """The outputs of ``state, output = scan_func(state, element)`` for each element.

        Args:
            initial_state: the first state, a structure of tensors.
            scan_func: takes a state and an element; returns the next state, of the same structure and dtypes,
                and an element of the new dataset.
            name: ignored; as in TensorFlow.

        Raises:
            DTypeError: ``scan_func`` returns no such pair.

        >>> import dualflow as df
        >>> sums = df.data.Dataset.range(4).scan(df.constant(0, df.int64), lambda s, x: (s + x, s + x))
        >>> list(sums.as_numpy_iterator())
        [np.int64(0), np.int64(1), np.int64(3), np.int64(6)]
        """
        first, state = state_of(initial_state)
        function = self.function(callable_function(scan_func, "scan_func"), first)
        if not function.has_layout:
            raise DTypeError(
                "scan needs elements whose number of axes is known; declare their shapes in the "
                f"output_signature of their source.{here()}"
            )
        layout = function.layout
        if layout.structure.kind is not tuple or len(layout.structure.children) != 2:
            raise DTypeError(
                "scan_func must return a pair of the new state and a result, not "
                f"{layout.element_spec!r}.{here()}"
            )
        next_state = ElementLayout(
            layout.structure.children[0], layout.specs[: layout.structure.children[0].leaves]
        )
        check_state(next_state, first)
        return self.then(ScanStage(source=self.stage, function=function, first=state))

    def apply(self, transformation_func: Callable[[Self], Any]) -> Any:
        """``transformation_func(dataset)``, which is a dataset.

        Raises:
            DTypeError: ``transformation_func`` returns something else.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(3).apply(lambda d: d.skip(1)).as_numpy_iterator())
        [np.int64(1), np.int64(2)]
        """
        result = callable_function(transformation_func, "transformation_func")(self)
        if not isinstance(result, DatasetBase):
            raise DTypeError(
                f"`transformation_func` must return a dataset, not a {type(result).__name__}.{here()}"
            )
        dataset: Self = result  # type: ignore[assignment]  # the one class of datasets
        return dataset


def _calls(value: Any) -> int | None:
    """The number of parallel calls; None for calls in the thread that iterates."""
    if value is None:
        return None
    count = whole_number(value, "num_parallel_calls")
    if count != AUTOTUNE and count < 1:
        raise InvalidArgumentError(
            f"num_parallel_calls must be greater than zero, or AUTOTUNE, not {count}.{here()}"
        )
    return count


def dataset_layout(function: ElementFunction) -> ElementLayout:
    """The layout of the elements of the datasets that a function returns."""
    result = function.trace_for_result()
    if not isinstance(result, DatasetBase):
        raise DTypeError(
            f"{function.name!r} must return a dataset for each element, not {result!r}; map takes functions "
            f"that return tensors.{here()}"
        )
    return result.stage.layout


def state_of(initial: Any) -> tuple[ElementLayout, tuple[Any, ...]]:
    """The layout and the leaves of an initial state."""
    leaves, structure = flatten_element(initial)
    arrays = tuple(map(leaf_array, leaves))
    return ElementLayout(structure, tuple(map(leaf_spec, arrays))), arrays


def check_state(returned: ElementLayout, first: ElementLayout) -> None:
    """Raise if the state that a function returns differs from the initial one in structure or dtypes."""
    if returned.structure != first.structure:
        raise DTypeError(
            f"The function returned a state of another structure, {returned.element_spec!r}, than it was "
            f"given, {first.element_spec!r}.{here()}"
        )
    for new, old in zip(returned.specs, first.specs, strict=True):
        if new.dtype is not old.dtype:
            raise DTypeError(
                f"The function returned a state of dtype {new.dtype.name} for one of {old.dtype.name}; cast "
                f"the initial state, or the result, with df.cast.{here()}"
            )
