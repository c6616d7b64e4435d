"""Datasets: descriptions of sequences of elements and of the transformations applied to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol, overload

    from typing_extensions import TypeVar as DefaultedTypeVar

    from dualflow.core.argument_types import DTypeLike, IntLike, SupportsArray, TensorLike
    from dualflow.data.iterator import Iterator
    from dualflow.ops.tensor import Tensor

    class NamedTupleLike(Protocol):
        """A named tuple, whose fields keep their names in elements."""

        def _asdict(self) -> dict[str, Any]: ...

    Element = DefaultedTypeVar("Element", covariant=True, default=Any)
    Other = TypeVar("Other")
    Second = TypeVar("Second")
    Third = TypeVar("Third")
    Result = TypeVar(
        "Result", Tensor, tuple[Tensor, Tensor], tuple[Tensor, Tensor, Tensor], dict[str, Tensor]
    )
    Array = SupportsArray | Tensor | list[Any]
else:
    Element = TypeVar("Element", covariant=True)


class _DatasetNames(type):
    """Raises an error with an alternative for names that datasets lack, as namespaces do."""

    def __getattr__(cls, name: str) -> Any:
        raise _missing_name_error(name)


class Dataset(
    CreationMethods,
    ChoosingMethods,
    FileMethods,
    OrderingMethods,
    MappingMethods,
    GroupingMethods,
    WindowMethods,
    ConsumingMethods,
    Generic[Element],
    metaclass=_DatasetNames,
):
    """A sequence of elements, such as training examples, and the transformations applied to it.

    A dataset is immutable and lazy: methods return new datasets, and nothing is read or computed before
    iteration begins. Elements are structures of tensors: tuples, dicts, named tuples, dataclasses. Each
    ``for x in dataset`` iterates from the start; ``iter(dataset)`` is an :class:`Iterator`, whose state can
    be saved.

    ``Dataset[T]`` is the type of a dataset with elements of type ``T``, for annotations.

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
        raise _missing_name_error(name)

    if TYPE_CHECKING:  # methods whose elements have a type of their own

        def __iter__(self) -> Iterator[Element]: ...
        def get_single_element(self, name: str | None = None) -> Element: ...

        @overload
        @classmethod
        def from_tensor_slices(cls, tensors: NamedTupleLike, name: str | None = None) -> Dataset[Any]: ...
        @overload
        @classmethod
        def from_tensor_slices(
            cls, tensors: tuple[Array, Array], name: str | None = None
        ) -> Dataset[tuple[Tensor, Tensor]]: ...
        @overload
        @classmethod
        def from_tensor_slices(
            cls, tensors: tuple[Array, Array, Array], name: str | None = None
        ) -> Dataset[tuple[Tensor, Tensor, Tensor]]: ...
        @overload
        @classmethod
        def from_tensor_slices(cls, tensors: tuple[Any, ...], name: str | None = None) -> Dataset[Any]: ...
        @overload
        @classmethod
        def from_tensor_slices(
            cls, tensors: dict[str, Array], name: str | None = None
        ) -> Dataset[dict[str, Tensor]]: ...
        @overload
        @classmethod
        def from_tensor_slices(cls, tensors: Array, name: str | None = None) -> Dataset[Tensor]: ...
        @overload
        @classmethod
        def from_tensor_slices(cls, tensors: object, name: str | None = None) -> Dataset[Any]: ...
        @classmethod
        def from_tensor_slices(cls, tensors: object, name: str | None = None) -> Dataset[Any]: ...
        @classmethod
        def range(
            cls, *args: Any, output_type: DTypeLike = ..., name: str | None = None
        ) -> Dataset[Tensor]: ...
        @classmethod
        def counter(
            cls, start: IntLike = 0, step: IntLike = 1, dtype: DTypeLike = ..., name: str | None = None
        ) -> Dataset[Tensor]: ...
        @classmethod
        def random(
            cls,
            seed: int | None = None,
            rerandomize_each_iteration: bool | None = None,
            name: str | None = None,
        ) -> Dataset[Tensor]: ...
        @classmethod
        def list_files(
            cls,
            file_pattern: TensorLike,
            shuffle: bool | None = None,
            seed: int | None = None,
            name: str | None = None,
        ) -> Dataset[Tensor]: ...
        @classmethod
        def choose_from_datasets(
            cls,
            datasets: Sequence[Dataset[Other]],
            choice_dataset: object,
            stop_on_empty_dataset: bool = True,
        ) -> Dataset[Other]: ...
        @classmethod
        def sample_from_datasets(
            cls,
            datasets: Sequence[Dataset[Other]],
            weights: TensorLike | None = None,
            seed: int | None = None,
            stop_on_empty_dataset: bool = False,
            rerandomize_each_iteration: bool | None = None,
        ) -> Dataset[Other]: ...

        @overload
        @classmethod
        def zip(
            cls, first: Dataset[Other], second: Dataset[Second], /, *, name: str | None = None
        ) -> Dataset[tuple[Other, Second]]: ...
        @overload
        @classmethod
        def zip(
            cls,
            first: Dataset[Other],
            second: Dataset[Second],
            third: Dataset[Third],
            /,
            *,
            name: str | None = None,
        ) -> Dataset[tuple[Other, Second, Third]]: ...
        @overload
        @classmethod
        def zip(
            cls, datasets: tuple[Dataset[Other], Dataset[Second]], /, *, name: str | None = None
        ) -> Dataset[tuple[Other, Second]]: ...
        @overload
        @classmethod
        def zip(cls, *args: Any, datasets: object = None, name: str | None = None) -> Dataset[Any]: ...
        @classmethod
        def zip(cls, *args: Any, datasets: object = None, name: str | None = None) -> Dataset[Any]: ...

        @overload
        def map(
            self,
            map_func: Callable[..., NamedTupleLike],
            num_parallel_calls: IntLike | None = None,
            deterministic: bool | None = None,
            synchronous: bool | None = None,
            use_unbounded_threadpool: bool = False,
            name: str | None = None,
        ) -> Dataset[Any]: ...
        @overload
        def map(
            self,
            map_func: Callable[..., Result],
            num_parallel_calls: IntLike | None = None,
            deterministic: bool | None = None,
            synchronous: bool | None = None,
            use_unbounded_threadpool: bool = False,
            name: str | None = None,
        ) -> Dataset[Result]: ...
        @overload
        def map(
            self,
            map_func: Callable[..., Any],
            num_parallel_calls: IntLike | None = None,
            deterministic: bool | None = None,
            synchronous: bool | None = None,
            use_unbounded_threadpool: bool = False,
            name: str | None = None,
        ) -> Dataset[Any]: ...
        def map(self, map_func: Callable[..., Any], *args: Any, **kwargs: Any) -> Dataset[Any]: ...
        def flat_map(
            self, map_func: Callable[..., Dataset[Other]], name: str | None = None
        ) -> Dataset[Other]: ...
        def interleave(
            self,
            map_func: Callable[..., Dataset[Other]],
            cycle_length: IntLike | None = None,
            block_length: IntLike | None = None,
            num_parallel_calls: IntLike | None = None,
            deterministic: bool | None = None,
            name: str | None = None,
        ) -> Dataset[Other]: ...
        def scan(
            self, initial_state: object, scan_func: Callable[..., Any], name: str | None = None
        ) -> Dataset[Any]: ...
        def window(
            self,
            size: IntLike,
            shift: IntLike | None = None,
            stride: IntLike = 1,
            drop_remainder: bool = False,
            name: str | None = None,
        ) -> Dataset[Any]: ...
        def group_by_window(
            self,
            key_func: Callable[..., Any],
            reduce_func: Callable[[Any, Dataset[Element]], Dataset[Other]],
            window_size: IntLike | None = None,
            window_size_func: Callable[[Any], Any] | None = None,
            name: str | None = None,
        ) -> Dataset[Other]: ...
        def apply(
            self, transformation_func: Callable[[Dataset[Element]], Dataset[Other]]
        ) -> Dataset[Other]: ...
        def enumerate(
            self, start: IntLike = 0, name: str | None = None
        ) -> Dataset[tuple[Tensor, Element]]: ...

    def __repr__(self) -> str:
        kind = type(self.stage).__name__.removesuffix("Stage")
        try:
            return f"<{kind}Dataset element_spec={self.element_spec!r}>"
        except DTypeError:  # the specs are known only from the first element
            return f"<{kind}Dataset>"

    def _repr_html_(self) -> str:
        html: str = imported("dualflow.data.notebook").dataset_html(repr(self), self.stage)
        return html


def _missing_name_error(name: str) -> Exception:
    """The error for an attribute that datasets lack."""
    if name.startswith("_"):
        return AttributeError(f"'Dataset' object has no attribute {name!r}")
    public = [x for x in dir(Dataset) if not x.startswith("_")]
    return MissingAttributeError(
        imported("dualflow.core.absent").explain("dualflow.data.Dataset", name, public), name=name
    )
