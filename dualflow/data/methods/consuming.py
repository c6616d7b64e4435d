"""Methods that read a dataset: iteration, reductions, specs, cardinality, options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.core.tree import unflatten
from dualflow.data.arguments import callable_function
from dualflow.data.created_iterators import created_iterator
from dualflow.data.element import wrapped
from dualflow.data.iterator import Iterator, NumpyIterator
from dualflow.data.mapping import reduced
from dualflow.data.methods.base import DatasetBase
from dualflow.data.methods.mapping import check_state, state_of
from dualflow.data.options import Options, OptionsStage, options_of
from dualflow.data.stage import INFINITE, UNKNOWN
from dualflow.data.tracing import (
    TracedIterator,
    dataset_reading,
    dataset_tree,
    is_tracing,
    reject_python_loop,
    traced_reduction,
)
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.function.autograph.stream_loops import ElementSource
from dualflow.function.errors import here


@entry
class ConsumingMethods(DatasetBase):
    """Methods that iterate over datasets, and their properties."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        if is_tracing():
            reject_python_loop()
        return Iterator(self)

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]]:
        return dataset_tree(self)

    def reading(self) -> ElementSource:
        """How a traced loop reads the dataset."""
        return dataset_reading(self.stage)

    def traced_iterator(self) -> TracedIterator:
        """``iter(dataset)`` in a function that is being traced."""
        return created_iterator(self)

    def __len__(self) -> int:
        count = self.stage.cardinality
        if count == INFINITE:
            raise DTypeError(f"The dataset is infinite.{here()}")
        if count == UNKNOWN:
            raise DTypeError(
                f"The dataset length is unknown; count with reduce, or use assert_cardinality.{here()}"
            )
        return count

    def __bool__(self) -> bool:
        return True

    @property
    def element_spec(self) -> Any:
        """The structure of the elements' specs, known before any element is computed.

        >>> import dualflow as df
        >>> df.data.Dataset.range(3).batch(2).element_spec
        TensorSpec(shape=(None,), dtype=tf.int64, name=None)
        """
        return self.stage.layout.element_spec

    def cardinality(self) -> EagerTensor:
        """The number of elements, an int64 scalar: INFINITE_CARDINALITY or UNKNOWN_CARDINALITY are negative.

        >>> import dualflow as df
        >>> int(df.data.Dataset.range(42).batch(10).cardinality())
        5
        """
        return wrap(np.array(self.stage.cardinality, np.int64))

    def as_numpy_iterator(self) -> NumpyIterator:
        """An iterator over the elements as NumPy arrays and scalars.

        >>> import dualflow as df
        >>> list(df.data.Dataset.range(3).as_numpy_iterator())
        [np.int64(0), np.int64(1), np.int64(2)]
        """
        return NumpyIterator(self)

    def reduce(self, initial_state: object, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        """The final state of ``state = reduce_func(state, element)`` over all elements.

        Args:
            initial_state: a structure of tensors.
            reduce_func: takes a state and an element; returns the next state, of the same structure and
                dtypes.
            name: ignored; as in TensorFlow.

        Raises:
            DTypeError: ``reduce_func`` returns another structure or dtype.

        >>> import dualflow as df
        >>> df.data.Dataset.range(5).reduce(df.constant(0, df.int64), lambda s, x: s + x).numpy()
        np.int64(10)
        """
        first, leaves = state_of(initial_state)
        function = self.function(callable_function(reduce_func, "reduce_func"), first)
        if function.has_layout:
            check_state(function.layout, first)
        if is_tracing():
            return unflatten(first.structure, traced_reduction(self.stage, function, leaves))
        with dispatch.using(EAGER):
            state = reduced(self.stage, function, leaves)
        return unflatten(first.structure, list(map(wrapped, state)))

    def options(self) -> Options:
        """The options set by :meth:`with_options`.

        >>> import dualflow as df
        >>> df.data.Dataset.range(3).options().deterministic
        """
        return options_of(self.stage)

    def with_options(self, options: Options, name: str | None = None) -> Self:
        """The same elements, with options for the transformations that follow.

        Raises:
            DTypeError: ``options`` is not an :class:`Options`.

        >>> import dualflow as df
        >>> dataset = df.data.Dataset.range(3).with_options(df.data.Options(deterministic=False))
        >>> sorted(int(x) for x in dataset.map(lambda x: x + 1, num_parallel_calls=2))
        [1, 2, 3]
        """
        if not isinstance(options, Options):
            raise DTypeError(f"with_options takes a df.data.Options, not {options!r}.{here()}")
        return self.then(OptionsStage(source=self.stage, options=Options().merge(options)))

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element.

        Raises:
            InvalidArgumentError: there are no elements, or more than one.

        >>> import dualflow as df
        >>> df.data.Dataset.from_tensors(7).get_single_element().numpy()
        np.int32(7)
        """
        elements = []
        for element in Iterator(self):
            elements.append(element)
            if len(elements) > 1:
                raise InvalidArgumentError(f"Dataset had more than one element.{here()}")
        if not elements:
            raise InvalidArgumentError(f"Dataset was empty.{here()}")
        return elements[0]
