"""The base class of the mixins with the methods of datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from dualflow.data.element import AbstractDataset, ElementLayout
from dualflow.data.functions import ElementFunction
from dualflow.data.stage import Stage


class DatasetBase(AbstractDataset):
    """The base class of the mixins with the methods of datasets: it wraps the last stage of a pipeline.

    Programs may set attributes of their own, as Keras's loaders set ``class_names``; datasets that are made
    from this one don't have them.

    Attributes:
        stage: the last stage of its pipeline.
    """

    __slots__ = ("__dict__", "__weakref__", "stage")
    stage: Stage

    @classmethod
    def of(cls, stage: Stage) -> Any:
        """The dataset of a stage."""
        raise NotImplementedError

    def then(self, stage: Stage) -> Self:
        """A dataset with one more stage, ``stage``, which reads this dataset's elements."""
        dataset: Self = self.of(stage)
        return dataset

    def function(self, function: Callable[..., Any], first: ElementLayout | None = None) -> ElementFunction:
        """A function of this dataset's elements."""
        return ElementFunction(function, lambda: self.stage.layout, self.of, first)
