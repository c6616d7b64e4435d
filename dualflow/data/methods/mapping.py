"""What functions make of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from dualflow.core.dtypes import bool_
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import callable_function, positive, whole_number
from dualflow.data.element import ElementLayout, leaf_array, leaf_spec, opened
from dualflow.data.functions import ElementFunction
from dualflow.data.mapping import FilterStage, MapStage, ScanStage, TakeWhileStage, WithoutErrorsStage
from dualflow.data.methods.base import StageHolder
from dualflow.data.nesting import InterleaveStage
from dualflow.data.options import options_of
from dualflow.data.parallel_map import ParallelMapStage, cores
from dualflow.data.stage import AUTOTUNE
from dualflow.function.errors import here


@entry
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
        calls = _calls(num_parallel_calls)
        if calls is None:
            return self.then(MapStage(source=self.stage, function=function))
        chosen = options_of(self.stage)
        if calls == AUTOTUNE and chosen.threading.private_threadpool_size:
            calls = chosen.threading.private_threadpool_size
        ordered = (chosen.deterministic if deterministic is None else deterministic) is not False
        return self.then(ParallelMapStage(source=self.stage, function=function, calls=calls, ordered=ordered))

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Self:
        """The elements of the datasets that ``map_func`` gives for each element, one dataset after the other.

        It is tried here with symbols, to see what its datasets hold, and then called in Python for each
        element. Variables that it reads from enclosing scopes and its module have the values of now, as in a
        trace; those that it assigns, and what changes in an object, are the program's own.

        Raises:
            DTypeError: it returns no dataset.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.range(3).flat_map(lambda n: df.data.Dataset.range(n))
        >>> list(dataset.as_numpy_iterator())
        [np.int64(0), np.int64(0), np.int64(1)]
        """
        return self._interleaved(map_func, 1, 1 << 62, 0)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """The elements of the datasets that ``map_func`` gives, of some datasets in turns.

        Args:
            map_func: gives a dataset for each element; it is called as :meth:`flat_map` does.
            cycle_length: how many datasets are read in turns; by default, or with AUTOTUNE, as many as there
                are cores.
            block_length: how many elements of one come in a row, 1 by default.
            num_parallel_calls: where given, each dataset that is read has a thread that makes its next block.
            deterministic: ignored: the order is always the same.
            name: ignored; as in TensorFlow.

        Raises:
            DTypeError: ``map_func`` returns no dataset.
            InvalidArgumentError: a length is not positive.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.range(2).interleave(
        ...     lambda n: df.data.Dataset.from_tensors(n).repeat(3), cycle_length=2, block_length=2
        ... )
        >>> [int(n) for n in dataset]
        [0, 0, 1, 1, 0, 1]
        """
        chosen = AUTOTUNE if cycle_length is None else whole_number(cycle_length, "cycle_length")
        cycle = cores() if chosen == AUTOTUNE else positive(chosen, "cycle_length")
        block = 1 if block_length is None else positive(block_length, "block_length")
        ahead = 0 if _calls(num_parallel_calls) is None else block
        return self._interleaved(map_func, cycle, block, ahead)

    def _interleaved(self, map_func: Callable[..., Any], cycle: int, block: int, ahead: int) -> Self:
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
        """The elements that can be made: those whose making raises an error are left out.

        Such an element costs at most the batch that it would be in.

        Args:
            log_warning: whether there is a warning for each.
            name: ignored; as in TensorFlow.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.from_tensor_slices([1.0, 0.0, 2.0])
        >>> finite = dataset.map(lambda x: df.debugging.check_numerics(1.0 / x, "inf"))
        >>> list(finite.ignore_errors().as_numpy_iterator())
        [np.float32(1.0), np.float32(0.5)]
        """
        return self.then(WithoutErrorsStage(source=self.stage, warn=bool(log_warning)))

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
        if not function.told:
            return function
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
        first, state = state_of(initial_state)
        function = self.function(callable_function(scan_func, "scan_func"), first)
        if not function.told:
            raise DTypeError(
                "scan needs elements whose number of axes is known; say their shapes where they come from, "
                "in "
                f"output_signature.{here()}"
            )
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
        found = callable_function(transformation_func, "transformation_func")(self)
        if not isinstance(found, StageHolder):
            raise DTypeError(
                f"`transformation_func` must return a dataset, not a {type(found).__name__}.{here()}"
            )
        made: Self = found  # type: ignore[assignment]  # the one class of datasets
        return made


def _calls(given: Any) -> int | None:
    """How many calls may run at once; None where no thread is asked for."""
    if given is None:
        return None
    found = whole_number(given, "num_parallel_calls")
    if found != AUTOTUNE and found < 1:
        raise InvalidArgumentError(
            f"num_parallel_calls must be greater than zero, or AUTOTUNE, not {found}.{here()}"
        )
    return found


def dataset_layout(function: ElementFunction) -> ElementLayout:
    """The layout of the elements of the datasets that a function gives."""
    found = function.trial()
    if not isinstance(found, StageHolder):
        raise DTypeError(
            f"{function.name!r} must return a dataset for each element, not {found!r}; map takes functions "
            "that "
            f"return tensors.{here()}"
        )
    return found.stage.layout


def state_of(initial: Any) -> tuple[ElementLayout, tuple[Any, ...]]:
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
