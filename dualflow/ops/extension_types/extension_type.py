"""``ExtensionType``: the base of classes of programs that hold tensors in declared fields."""

from __future__ import annotations

from typing import Any, ClassVar

from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.errors import DTypeError, MissingAttributeError
from dualflow.core.tracebacks import entry
from dualflow.core.tree import flatten
from dualflow.ops.comparison import equal, logical_not
from dualflow.ops.extension_types.extension_spec import CompletingMeta, ExtensionTypeSpec, from_fields
from dualflow.ops.extension_types.fields import (
    construct,
    convert_fields,
    declaration_of,
    declare,
    freeze,
    is_frozen,
)
from dualflow.ops.joining import stack
from dualflow.ops.reduction import reduce_all


class ExtensionType(CompositeTensor, metaclass=CompletingMeta):
    """The base of immutable classes that hold tensors, which all of dualflow takes as structures of tensors.

    A subclass declares its fields by annotations, as a dataclass does. The constructor takes the fields,
    converts each to its type, and calls ``__validate__``, which a subclass may define. Instances are
    compared, printed, pickled, and passed to and returned from traced functions, branches, loops and
    datasets. A class in the class with the name ``Spec`` is the base of its specs. Functions of tensors take
    instances where :func:`~dualflow.experimental.dispatch_for_api` and its like define what they compute.

    A field is annotated as a Tensor, a TensorSpec, an extension type, a ragged or sparse tensor, int, float,
    bool, str, bytes, None, TensorShape, DType, or Tuple, Mapping, Union, Optional or Literal of these.

    Args:
        args, kwargs: the fields, in the order of their declaration or by name.

    Raises:
        DTypeError: a field is missing, or can't be converted to its type.

    >>> import dualflow as df
    >>> class MaskedTensor(df.experimental.ExtensionType):
    ...     values: df.Tensor
    ...     mask: df.Tensor
    ...     def __validate__(self):
    ...         self.values.shape.assert_is_compatible_with(self.mask.shape)
    >>> @df.function
    ... def doubled(x):
    ...     return MaskedTensor(x.values * 2, x.mask)
    >>> doubled(MaskedTensor([1, 2], [True, False])).values.numpy().tolist()
    [2, 4]
    """

    __slots__ = ("_tf_extension_type_frozen",)
    Spec: ClassVar[Any]
    _tf_extension_type_root = True
    _is_batchable = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        construct(self, type(self), args, kwargs)

    @entry
    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own_spec = vars(cls).get("Spec")
        bases = (ExtensionTypeSpec,) if own_spec is None else (own_spec, ExtensionTypeSpec)
        names = {"value_type": cls, "__module__": cls.__module__, "__qualname__": f"{cls.__qualname__}.Spec"}
        cls.Spec = CompletingMeta("Spec", bases, names)
        declare(cls)

    def _complete(self) -> None:
        convert_fields(self, declaration_of(type(self)).fields)
        self.__validate__()
        freeze(self)

    def __validate__(self) -> None:
        """Check the fields of a new instance: nothing, unless a subclass overrides it."""

    @property
    def _type_spec(self) -> Any:
        return type(self).Spec.from_value(self)

    def __eq__(self, other: object) -> Any:
        if type(self) is not type(other) or self._type_spec != other._type_spec:
            return False
        pairs = zip(flatten(self)[0], flatten(other)[0], strict=True)
        equalities = [reduce_all(equal(x, y)) for x, y in pairs]
        return reduce_all(stack(equalities)) if equalities else True

    def __ne__(self, other: object) -> Any:
        is_equal = self == other
        return not is_equal if isinstance(is_equal, bool) else logical_not(is_equal)

    __hash__ = None  # type: ignore[assignment]  # as tensors have none

    @entry
    def __setattr__(self, name: str, value: Any) -> None:
        if is_frozen(self):
            raise _immutable(self, name)
        if not any(field.name == name for field in declaration_of(type(self)).fields):
            raise MissingAttributeError(
                f"{type(self).__name__} has no field {name!r}; declare it with its type in the class.",
                name=name,
            )
        super().__setattr__(name, value)

    @entry
    def __delattr__(self, name: str) -> None:
        raise _immutable(self, name)

    def __copy__(self) -> Any:
        return self

    def __reduce__(self) -> Any:
        return from_fields, (type(self), dict(vars(self)))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={part!r}" for name, part in vars(self).items())
        return f"{type(self).__name__}({fields})"


def _immutable(value: Any, name: str) -> MissingAttributeError:
    return MissingAttributeError(
        f"Cannot mutate attribute {name!r} of {type(value).__name__} outside the custom constructor of "
        "ExtensionType: create another instance.",
        name=name,
    )


class BatchableExtensionType(ExtensionType):
    """An extension type whose batches are instances too: of tensors with one more axis.

    Datasets batch and unbatch its instances, and ``map_fn`` takes them. A TensorShape in a field gets and
    loses the first axis with the tensors.

    Args:
        args, kwargs: the fields.

    >>> import dualflow as df
    >>> class Edge(df.experimental.BatchableExtensionType):
    ...     ends: df.Tensor
    ...     length: df.Tensor
    >>> edges = df.data.Dataset.from_tensor_slices(Edge([[0, 1], [1, 2]], [0.5, 2.0]))
    >>> [float(edge.length) for edge in edges], next(iter(edges.batch(2))).ends.shape
    ([0.5, 2.0], (2, 2))
    """

    _is_batchable = True


@entry
def as_dict(value: ExtensionType) -> dict[str, Any]:
    """The fields of an extension type by name, as a new dict.

    Args:
        value: an instance of an extension type; its fields are not copied.

    Raises:
        DTypeError: ``value`` is something else.

    >>> import dualflow as df
    >>> class Range(df.experimental.ExtensionType):
    ...     low: int
    ...     high: int
    >>> df.experimental.extension_type.as_dict(Range(2, 3))
    {'low': 2, 'high': 3}
    """
    if not isinstance(value, ExtensionType):
        raise DTypeError(f"as_dict takes an instance of an ExtensionType, not {value!r}.")
    return dict(vars(value))
