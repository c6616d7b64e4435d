"""What the methods of datasets share: a dataset is a stage, and its methods put other stages on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from dualflow.data.element import AbstractDataset, ElementLayout
from dualflow.data.functions import ElementFunction
from dualflow.data.stage import Stage


class StageHolder(AbstractDataset):
    """A dataset without methods.

    Attributes:
        stage: what it is.
    """

    __slots__ = ("__weakref__", "stage")
    stage: Stage

    @classmethod
    def of(cls, stage: Stage) -> Any:
        """The dataset of a stage."""
        raise NotImplementedError

    def then(self, stage: Stage) -> Self:
        """The dataset of a stage over this one's."""
        made: Self = self.of(stage)
        return made

    def function(self, function: Callable[..., Any], first: ElementLayout | None = None) -> ElementFunction:
        """A function of this dataset's elements."""
        return ElementFunction(function, lambda: self.stage.layout, self.of, first)
