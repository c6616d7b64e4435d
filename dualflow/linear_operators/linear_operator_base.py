"""The shape, dtype and hints of a linear operator, and its place in structures of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from dualflow.core.composite_rules import CompositeError
from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.dispatch import DifferentiableComposite
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Dim, Shape
from dualflow.core.status_errors import UnimplementedError
from dualflow.core.tracebacks import entry
from dualflow.core.tree import flatten, leaves, unflatten
from dualflow.eager.module import Module
from dualflow.function.debugging.assertions import assert_equal
from dualflow.linear_operators.operator_structure import OperatorSpec, branch_of, spec_of
from dualflow.linear_operators.property_hints import Hints
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.tensor_sizes import sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike
    from dualflow.ops.record import Op
    from dualflow.ops.tensor import Tensor


@entry
class LinearOperatorBase(Module, CompositeTensor, DifferentiableComposite):
    """The base of :class:`LinearOperator`: shape, dtype, hints, and the conversion to a tree of tensors.

    A subclass defines ``_shape()``, and ``_shape_tensor()`` if sizes may be dynamic. It names in
    ``_composite_tensor_fields`` the arguments of its constructor that hold tensors, operators, or what else a
    copy needs; then functions, loops and structures take it apart and rebuild it. In
    ``_composite_tensor_prefer_static_fields`` it names those that are sizes.
    """

    @entry
    def __init__(
        self,
        dtype: DTypeLike | None,
        graph_parents: Sequence[Any] | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(name or type(self).__name__)
        hints = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square).completed()
        self._dtype: DType = dtype if dtype is None else as_dtype(dtype)  # type: ignore[assignment]  # set later
        self._graph_parents = list(graph_parents or ())
        self._is_non_singular, self._is_self_adjoint, self._is_positive_definite, self._is_square = hints
        self._parameters = self._no_dependency(parameters or {})

    # What a subclass defines

    def _shape(self) -> Shape:
        raise UnimplementedError(f"{type(self).__name__} defines no _shape(); define it in the class.")

    def _shape_tensor(self) -> Any:
        raise UnimplementedError(
            f"{type(self).__name__} defines no _shape_tensor(); define it for dynamic sizes."
        )

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return ()

    @property
    def _composite_tensor_prefer_static_fields(self) -> tuple[str, ...]:
        return ()

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        """For each argument with tensors, the number of its last axes that belong to the matrix."""
        return {}

    # Hints

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return dict(self._parameters)

    @property
    def graph_parents(self) -> list[Any]:
        """The tensors that a subclass has named as ``graph_parents``."""
        return self._graph_parents

    @property
    def is_non_singular(self) -> bool | None:
        """Whether the matrices are invertible; None if that is unknown."""
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        """Whether the matrices equal their conjugate transposes; None if that is unknown."""
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        """Whether the matrices are positive definite; None if that is unknown."""
        return self._is_positive_definite

    @property
    @entry
    def is_square(self) -> bool | None:
        """Whether the matrices are square; None if that is unknown.

        Raises:
            InvalidArgumentError: the hint contradicts the static shape.
        """
        rows, columns = self.range_dimension, self.domain_dimension
        is_square = None if rows is None or columns is None else bool(rows == columns)
        if None not in (is_square, self._is_square) and is_square is not self._is_square:
            raise InvalidArgumentError(
                f"The hints of {self.name} state or imply is_square={self._is_square}, but its shape is "
                f"{self.shape}; leave the hint out."
            )
        return is_square if self._is_square is None else self._is_square

    # Shape

    @property
    def dtype(self) -> DType:
        """The dtype of the elements, and of the tensors that the methods take."""
        return self._dtype

    @property
    @entry
    def shape(self) -> Shape:
        """The static shape of the matrices, with the axes of the batch first."""
        return self._shape()

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape of the matrices, as an int32 vector."""
        shape = self.shape
        tensor: Tensor = (
            convert_to_tensor(shape, "int32") if shape.is_fully_defined() else self._shape_tensor()
        )
        return tensor

    @property
    @entry
    def batch_shape(self) -> Shape:
        """The static shape without the last two axes."""
        shape = self.shape
        return shape if shape is UNKNOWN_RANK else shape[:-2]

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape without the last two axes, as an int32 vector."""
        shape: Tensor = self._batch_shape_tensor()
        return shape

    def _batch_shape_tensor(self, shape: Any = None) -> Any:
        static = self.batch_shape
        if static.is_fully_defined():
            return convert_to_tensor(static, "int32")
        return (self.shape_tensor() if shape is None else shape)[:-2]

    @property
    @entry
    def tensor_rank(self) -> int | None:
        """The number of axes, those of the batch included."""
        return self.shape.rank

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """The number of axes, as an int32 scalar."""
        return convert_to_tensor(len(self.shape), "int32")

    @property
    @entry
    def domain_dimension(self) -> Dim:
        """The number of columns; None if it is dynamic."""
        return _size(self.shape, -1)

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """The number of columns, as an int32 scalar."""
        size: Tensor = self._domain_dimension_tensor()
        return size

    def _domain_dimension_tensor(self, shape: Any = None) -> Any:
        return self._dimension_tensor(-1, shape)

    @property
    @entry
    def range_dimension(self) -> Dim:
        """The number of rows; None if it is dynamic."""
        return _size(self.shape, -2)

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """The number of rows, as an int32 scalar."""
        size: Tensor = self._range_dimension_tensor()
        return size

    def _range_dimension_tensor(self, shape: Any = None) -> Any:
        return self._dimension_tensor(-2, shape)

    def _dimension_tensor(self, axis: int, shape: Any) -> Any:
        static = _size(self.shape, axis)
        if static is not None:
            return convert_to_tensor(static, "int32")
        return (self.shape_tensor() if shape is None else shape)[axis]

    # Checks of sizes

    _products_check_sizes: ClassVar[bool] = True
    """Whether products and solutions fail for an argument of another size, as those of a tensor do."""

    def _check_size(self, own_axis: int, x: Any, axis: int, name: str) -> None:
        """Raise an error unless an axis of the argument has the size of an axis of the matrices.

        Dynamic sizes are checked when the function runs: by the ops of the product if they do, else here.
        """
        size = self.range_dimension if own_axis == -2 else self.domain_dimension
        if len(x.shape) < -axis:
            raise InvalidArgumentError(
                f"{name} has {-axis} axes or more, but its shape is {x.shape}; add axes."
            )
        actual = x.shape[axis]
        if size is not None and actual is not None and size != actual:
            raise InvalidArgumentError(
                f"{self.name} of shape {self.shape} takes {name} with {size} elements along axis {axis}, but "
                f"its shape is {x.shape}; reshape or transpose it."
            )
        if None in (size, actual) and not self._products_check_sizes:
            own = self.range_dimension_tensor() if own_axis == -2 else self.domain_dimension_tensor()
            assert_equal(
                sizes_of(x)[axis], own, message=f"Axis {axis} of {name} doesn't fit {self.name}: reshape it."
            )

    def _require_square(self, what: str) -> None:
        if self.is_square is False:
            raise UnimplementedError(
                f"{what} needs square matrices, but the shape of {self.name} is {self.shape}."
            )

    # Structures of values

    def __tree__(self) -> tuple[Any, tuple[str, ...], list[Any]] | None:  # type: ignore[override]  # a leaf if it can not be rebuilt
        return branch_of(self)

    @property
    def _type_spec(self) -> OperatorSpec:
        spec: OperatorSpec = spec_of(self)
        return spec

    def __as_tensor__(self) -> NoReturn:
        """Raises an error: the conversion to a dense matrix must be explicit.

        Raises:
            CompositeError: always.
        """
        raise CompositeError(
            f"The linear operator {self.name} was passed where a tensor is required. Its method to_dense() "
            "returns its matrix; matmul, solve, adjoint, cholesky, det, inv, logdet, diag_part and trace of "
            "df.linalg take operators.",
            self,
        )

    def __map_elements__(self, op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> NoReturn:
        """Raises the error of :meth:`__as_tensor__`: an operator is no structure of its elements.

        Args:
            op: an elementwise op.
            inputs: its inputs.
            attrs: its attributes.

        Raises:
            CompositeError: always.
        """
        self.__as_tensor__()

    def differentiable_parts(self) -> list[Any]:
        """The tensors and variables of which the operator consists."""
        return leaves(self)

    def with_gradients(self, gradients: Sequence[Any]) -> Any:
        """The operator of the gradients of the parts, with zeros for None; None if all are None.

        Integers, such as those of a permutation, have no gradients and stay as they are.

        Args:
            gradients: one for each of :meth:`differentiable_parts`, or None.
        """
        parts, structure = flatten(self)
        if all(gradient is None for gradient in gradients):
            return None
        return unflatten(structure, list(map(_gradient_part, parts, gradients)))

    def __repr__(self) -> str:
        hints = [
            f"{name}={value}" for name in Hints._fields if (value := getattr(self, f"_{name}")) is not None
        ]
        described = [f"shape={self.shape}", f"dtype={self.dtype.name}", *hints]
        return f"<{type(self).__name__} {self.name!r} {' '.join(described)}>"


def _gradient_part(part: Any, gradient: Any) -> Any:
    """The part of an operator of gradients in place of ``part``."""
    if not part.dtype.is_inexact:
        return part
    return zeros_like(part) if gradient is None else gradient


def _size(shape: Shape, axis: int) -> Dim:
    size: Dim = None if shape is UNKNOWN_RANK else shape[axis]
    return size
