"""Datasets of several others, by numbers or by chance, and of chance alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from dualflow.core.dtypes import int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.data.arguments import whole_number
from dualflow.data.choosing import ChooseStage, DrawnRows
from dualflow.data.element import leaf_array, single
from dualflow.data.epochs import Epochs
from dualflow.data.methods.base import StageHolder
from dualflow.data.sources import RowsStage
from dualflow.data.stage import INFINITE, Stage
from dualflow.function.errors import here


class ChoosingMethods(StageHolder):
    """Datasets that take their elements from others."""

    __slots__ = ()

    @classmethod
    @entry
    def random(
        cls, seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Self:
        """Random integers from 0 to 2**32, without end, the same in each run.

        Args:
            seed: makes them those of a stream of its own, with :func:`dualflow.random.set_seed`.
            rerandomize_each_iteration: True is refused; let a ``map`` draw with ``df.random`` for that.
            name: ignored; as in TensorFlow.

        >>> import dualflow as df
        >>> numbers = df.data.Dataset.random(seed=1).take(2)
        >>> [int(x) for x in numbers] == [int(x) for x in numbers]
        True
        """
        if rerandomize_each_iteration:
            raise InvalidArgumentError(
                "Dataset.random gives the same numbers in each run; for others, draw them with "
                "df.random.uniform in "
                f"the function of a map.{here()}"
            )
        rows = DrawnRows(_seeds(seed))
        made: Self = cls.of(RowsStage(rows=rows, count=INFINITE, elements=single(TensorSpec([], int64))))
        return made

    @classmethod
    @entry
    def choose_from_datasets(
        cls, datasets: Sequence[Any], choice_dataset: Any, stop_on_empty_dataset: bool = True
    ) -> Self:
        """Elements of several datasets, by the numbers of another one.

        Args:
            datasets: their elements are alike.
            choice_dataset: int64 scalars, each the number of the dataset that gives the next element.
            stop_on_empty_dataset: whether it ends when a chosen dataset has; else that number is passed over.

        Raises:
            DTypeError: the elements differ, or the numbers are no int64 scalars.
            InvalidArgumentError: there is no dataset; or in the loop, a number is out of range.

        >>> import dualflow as df
        >>> D = df.data.Dataset
        >>> [int(x) for x in D.choose_from_datasets([D.range(3), D.range(10, 13)], D.range(2).repeat(2))]
        [0, 10, 1, 11]
        """
        if not isinstance(choice_dataset, StageHolder) or choice_dataset.stage.layout != single(
            TensorSpec([], int64)
        ):
            raise DTypeError(f"choice_dataset is a dataset of int64 scalars, not {choice_dataset!r}.{here()}")
        return cls._chosen(datasets, choice_dataset.stage, stop_on_empty_dataset)

    @classmethod
    @entry
    def sample_from_datasets(
        cls,
        datasets: Sequence[Any],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Self:
        """Elements of several datasets, each of one that is drawn.

        Args:
            datasets: their elements are alike.
            weights: the chance of each, up to a factor; equal ones by default.
            seed: makes the numbers those of a stream of its own, with :func:`dualflow.random.set_seed`.
            stop_on_empty_dataset: whether it ends when a drawn dataset has; else it goes on without that.
            rerandomize_each_iteration: True is refused: each run draws the same numbers.

        Raises:
            DTypeError: the elements differ.
            InvalidArgumentError: there is no dataset, or not one weight for each, or a negative one.

        >>> import dualflow as df
        >>> D = df.data.Dataset
        >>> sorted(int(x) for x in D.sample_from_datasets([D.range(2), D.range(10, 12)], seed=1))
        [0, 1, 10, 11]
        """
        if rerandomize_each_iteration:
            raise InvalidArgumentError(
                "sample_from_datasets draws the same numbers in each run; leave rerandomize_each_iteration "
                "out."
                f"{here()}"
            )
        if weights is None:
            weights = [1.0] * len(datasets)
        shares = np.asarray(leaf_array(weights), np.float64).tolist()
        if len(shares) != len(datasets):
            raise InvalidArgumentError(
                "Invalid `weights`. `weights` should have the same length as `datasets` but got "
                f"`len(weights)={len(shares)}` vs. `len(datasets)={len(datasets)}`.{here()}"
            )
        if min(shares, default=0) < 0 or not sum(shares) > 0:
            raise InvalidArgumentError(
                f"The weights are no chances: {shares}; give positive numbers.{here()}"
            )
        rows = DrawnRows(_seeds(seed), tuple(shares))
        choices = RowsStage(rows=rows, count=INFINITE, elements=single(TensorSpec([], int64)))
        return cls._chosen(datasets, choices, stop_on_empty_dataset)

    @classmethod
    def _chosen(cls, datasets: Sequence[Any], choices: Stage, stop: bool) -> Self:
        if not datasets:
            raise InvalidArgumentError(f"There is no dataset to choose from.{here()}")
        for dataset in datasets:
            if not isinstance(dataset, StageHolder):
                raise DTypeError(f"datasets is a list of datasets, and {dataset!r} is none.{here()}")
        layouts = [d.stage.layout for d in datasets]
        first = layouts[0]
        for other in layouts[1:]:
            if first.structure != other.structure or [s.dtype for s in first.specs] != [
                s.dtype for s in other.specs
            ]:
                raise DTypeError(
                    f"The datasets' elements differ: {first.element_spec} vs. {other.element_spec}; make "
                    "them alike "
                    f"with map.{here()}"
                )
        made: Self = cls.of(
            ChooseStage(choices=choices, parts=tuple([d.stage for d in datasets]), stop=bool(stop))
        )
        return made


def _seeds(seed: int | None) -> list[int]:
    return Epochs(None if seed is None else whole_number(seed, "seed")).seeds
