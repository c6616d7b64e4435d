"""Datasets that choose among others, by indices or at random, and random numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import entries, whole_number
from dualflow.data.choosing import ChooseStage, RandomRows
from dualflow.data.element import leaf_array, single_tensor_layout
from dualflow.data.epochs import Epochs
from dualflow.data.methods.base import DatasetBase
from dualflow.data.sources import RowsStage
from dualflow.data.stage import INFINITE, Stage
from dualflow.function.errors import here

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike

_INTEGERS: Final = single_tensor_layout(TensorSpec([], int64))


class ChoosingMethods(DatasetBase):
    """Constructors of datasets that take their elements from others, and of random numbers."""

    __slots__ = ()

    @classmethod
    @entry
    def random(
        cls, seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Any:
        """An endless dataset of random integers from 0 to 2**32 - 1, the same in each iteration.

        Args:
            seed: selects the stream of numbers, together with :func:`dualflow.random.set_seed`.
            rerandomize_each_iteration: True is not supported; draw with ``df.random`` in a ``map`` instead.
            name: ignored; as in TensorFlow.

        >>> import dualflow as df
        >>> numbers = df.data.Dataset.random(seed=1).take(2)
        >>> [int(x) for x in numbers] == [int(x) for x in numbers]
        True
        """
        if rerandomize_each_iteration:
            raise InvalidArgumentError(
                "Dataset.random has the same numbers in each iteration; for others, draw them with "
                f"df.random.uniform in the function of a map.{here()}"
            )
        rows = RandomRows(_seeds(seed))
        dataset: Self = cls.of(RowsStage(rows=rows, count=INFINITE, elements=_INTEGERS))
        return dataset

    @classmethod
    @entry
    def choose_from_datasets(
        cls, datasets: Sequence[Any], choice_dataset: object, stop_on_empty_dataset: bool = True
    ) -> Any:
        """Elements of several datasets, chosen by the indices of another one.

        Args:
            datasets: datasets whose elements have the same structure and dtypes.
            choice_dataset: int64 scalars, each the index of the dataset to take the next element from.
            stop_on_empty_dataset: whether it ends when a chosen dataset has ended; otherwise that index is
                skipped.

        Raises:
            DTypeError: ``datasets`` is no list of datasets, the elements differ, or the indices are not int64
                scalars.
            InvalidArgumentError: ``datasets`` is empty; during iteration, an index is out of range.

        >>> import dualflow as df
        >>> D = df.data.Dataset
        >>> [int(x) for x in D.choose_from_datasets([D.range(3), D.range(10, 13)], D.range(2).repeat(2))]
        [0, 10, 1, 11]
        """
        if not isinstance(choice_dataset, DatasetBase) or choice_dataset.stage.layout != _INTEGERS:
            raise DTypeError(
                f"choice_dataset must be a dataset of int64 scalars, not {choice_dataset!r}.{here()}"
            )
        parts = entries(datasets, "datasets")
        return cls._choose(parts, choice_dataset.stage, stop_on_empty_dataset)

    @classmethod
    @entry
    def sample_from_datasets(
        cls,
        datasets: Sequence[Any],
        weights: TensorLike | None = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Any:
        """Elements of several datasets, each from a randomly drawn one.

        Args:
            datasets: datasets whose elements have the same structure and dtypes.
            weights: the relative probability of each; equal ones by default. Those of weight 0 are left out.
            seed: selects the stream of random numbers, together with :func:`dualflow.random.set_seed`.
            stop_on_empty_dataset: whether it ends when a drawn dataset has ended; otherwise it goes on
                without that.
            rerandomize_each_iteration: True is not supported: each iteration draws the same numbers.

        Raises:
            DTypeError: ``datasets`` is no list of datasets, the elements differ, or ``weights`` is no list of
                numbers.
            InvalidArgumentError: ``datasets`` is empty, or there isn't one weight for each, or one is
                negative or infinite.

        >>> import dualflow as df
        >>> D = df.data.Dataset
        >>> sorted(int(x) for x in D.sample_from_datasets([D.range(2), D.range(10, 12)], seed=1))
        [0, 1, 10, 11]
        """
        if rerandomize_each_iteration:
            raise InvalidArgumentError(
                "sample_from_datasets draws the same numbers in each iteration; leave out "
                f"rerandomize_each_iteration.{here()}"
            )
        datasets = entries(datasets, "datasets")
        if weights is None:
            weights = [1.0] * len(datasets)
        array = leaf_array(weights)
        if array.ndim != 1 or array.dtype.kind not in "biuf":
            raise DTypeError(f"`weights` must be a list of numbers, not {weights!r}.{here()}")
        probabilities = np.asarray(array, np.float64).tolist()
        if len(probabilities) != len(datasets):
            raise InvalidArgumentError(
                "Invalid `weights`. `weights` should have the same length as `datasets` but got "
                f"`len(weights)={len(probabilities)}` vs. `len(datasets)={len(datasets)}`.{here()}"
            )
        if min(probabilities, default=0) < 0 or not 0 < sum(probabilities) < math.inf:
            raise InvalidArgumentError(
                f"The weights can't be probabilities: {probabilities}; give finite positive numbers.{here()}"
            )
        # without those that are never drawn: the others' end would be waited for forever
        drawn = [d for d, probability in zip(datasets, probabilities, strict=True) if probability]
        rows = RandomRows(_seeds(seed), tuple(filter(None, probabilities)))
        choices = RowsStage(rows=rows, count=INFINITE, elements=_INTEGERS)
        return cls._choose(drawn, choices, stop_on_empty_dataset)

    @classmethod
    def _choose(cls, datasets: Sequence[Any], choices: Stage, stop: bool) -> Any:
        if not datasets:
            raise InvalidArgumentError(f"There is no dataset to choose from: `datasets` is empty.{here()}")
        for dataset in datasets:
            if not isinstance(dataset, DatasetBase):
                raise DTypeError(
                    f"`datasets` must be a list of datasets, and {dataset!r} is not one.{here()}"
                )
        layouts = [d.stage.layout for d in datasets]
        first = layouts[0]
        for other in layouts[1:]:
            if first.structure != other.structure or first.dtypes != other.dtypes:
                raise DTypeError(
                    f"The datasets' elements differ: {first.element_spec} vs. {other.element_spec}; convert "
                    f"them with map.{here()}"
                )
        chosen: Self = cls.of(
            ChooseStage(choices=choices, parts=tuple([d.stage for d in datasets]), stop=bool(stop))
        )
        return chosen


def _seeds(seed: int | None) -> list[int]:
    return Epochs(None if seed is None else whole_number(seed, "seed")).seeds
