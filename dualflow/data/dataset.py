"""Datasets: descriptions of sequences of elements and of the transformations applied to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dualflow.core.errors import DTypeError, MissingAttributeError
from dualflow.core.locks import imported
from dualflow.data.methods.choosing import ChoosingMethods
from dualflow.data.methods.consuming import ConsumingMethods
from dualflow.data.methods.creating import CreationMethods
from dualflow.data.methods.files import FileMethods
from dualflow.data.methods.grouping import GroupingMethods
from dualflow.data.methods.mapping import MappingMethods
from dualflow.data.methods.ordering import OrderingMethods
from dualflow.data.methods.windows import WindowMethods
from dualflow.data.stage import Stage
from dualflow.graph.origin import caller


class _DatasetNames(type):
    """Raises an error with an alternative for names that datasets lack, as namespaces do."""

    def __getattr__(cls, name: str) -> Any:
        raise _missing(name)


class Dataset(
    CreationMethods,
    ChoosingMethods,
    FileMethods,
    OrderingMethods,
    MappingMethods,
    GroupingMethods,
    WindowMethods,
    ConsumingMethods,
    metaclass=_DatasetNames,
):
    """A sequence of elements, such as training examples, and the transformations applied to it.

    A dataset is immutable and lazy: methods return new datasets, and nothing is read or computed before
    iteration begins. Elements are structures of tensors: tuples, dicts, named tuples, dataclasses. Each
    ``for x in dataset`` iterates from the start; ``iter(dataset)`` is an :class:`Iterator`, whose state can
    be saved.

    >>> import dualflow as df
    >>> dataset = df.data.Dataset.from_tensor_slices(([1.0, 2.0, 3.0], [0, 1, 0]))
    >>> for x, label in dataset.shuffle(3, seed=0).batch(2):
    ...     print(x.shape, label.shape)
    (2,) (2,)
    (1,) (1,)
    """

    __slots__ = ()

    @classmethod
    def of(cls, stage: Stage) -> Any:
        """The dataset of a stage, as the methods return it."""
        dataset = object.__new__(Dataset)
        dataset.stage = stage if stage.origin is not None else replace(stage, origin=caller())
        return dataset

    def __getattr__(self, name: str) -> Any:
        raise _missing(name)

    def __repr__(self) -> str:
        kind = type(self.stage).__name__.removesuffix("Stage")
        try:
            return f"<{kind}Dataset element_spec={self.element_spec!r}>"
        except DTypeError:  # the specs are known only from the first element
            return f"<{kind}Dataset>"


def _missing(name: str) -> Exception:
    """The error for an attribute that datasets lack."""
    if name.startswith("_"):
        return AttributeError(f"'Dataset' object has no attribute {name!r}")
    public = [x for x in dir(Dataset) if not x.startswith("_")]
    return MissingAttributeError(
        imported("dualflow.core.absent").explain("dualflow.data.Dataset", name, public), name=name
    )
