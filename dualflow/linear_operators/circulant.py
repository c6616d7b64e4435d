"""Circulant and block circulant matrices, which are diagonal in the Fourier basis."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from dualflow.core.dtypes import as_dtype, complex64, complex128, finfo, float64
from dualflow.core.shape import Shape
from dualflow.core.tracebacks import entry
from dualflow.function.debugging.assertions import assert_less, assert_positive
from dualflow.linear_operators.checks import assert_no_zeros, assert_real
from dualflow.linear_operators.linear_operator import LinearOperator
from dualflow.linear_operators.parameters import as_parameter, shape_vector
from dualflow.linear_operators.property_hints import Hints, commuting_product, documented_hints, hints_of
from dualflow.ops.arithmetic import abs as absolute
from dualflow.ops.arrangement import matrix_transpose, reshape
from dualflow.ops.broadcasting import reduce_sum
from dualflow.ops.complex_numbers import conj, imag, real
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor, ones
from dualflow.ops.powers import log
from dualflow.ops.reduction import reduce_max, reduce_min, reduce_prod
from dualflow.ops.signal.fourier import fft, fft2d, fft3d, ifft, ifft2d, ifft3d
from dualflow.ops.tensor_sizes import axis_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike
    from dualflow.ops.tensor import Tensor


def as_complex(x: Any) -> Any:
    """``x`` as complex numbers of its precision."""
    return cast(x, complex128 if x.dtype in (float64, complex128) else complex64)


@entry
class CirculantOperator(LinearOperator):
    """The base of circulant matrices: ``A @ x`` is ``ifft(spectrum * fft(x))``."""

    block_depth: ClassVar[int] = 1
    """The number of axes of the spectrum that are transformed."""

    @entry
    def __init__(
        self,
        spectrum: TensorLike,
        input_output_dtype: DTypeLike = complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._spectrum = as_parameter(spectrum, "spectrum", self.block_depth)
        hints = stated.implying("is_square", True, "A circulant matrix is always square.")
        if not self._spectrum.dtype.is_complex:
            reason = "A circulant matrix of a real spectrum is always self-adjoint."
            hints = hints.implying("is_self_adjoint", True, reason)
        name = name or type(self).__name__
        parameters = {"spectrum": spectrum, "input_output_dtype": input_output_dtype, **stated._asdict()}
        parameters["name"] = name
        super().__init__(as_dtype(input_output_dtype), **hints._asdict(), name=name, parameters=parameters)
        self._input_output_dtype = self.dtype

    @property
    def spectrum(self) -> Tensor:
        """The eigenvalues, in the order of frequencies."""
        spectrum: Tensor = self._spectrum
        return spectrum

    @property
    def block_shape(self) -> Shape:
        """The static sizes of the transformed axes."""
        shape: Shape = self._spectrum.shape[-self.block_depth :]
        return shape

    def block_shape_tensor(self) -> Tensor:
        """The sizes of the transformed axes, as an int32 vector."""
        sizes: Tensor = shape_vector(convert_to_tensor(Shape(()), "int32"), *self._block_sizes())
        return sizes

    def _block_sizes(self) -> list[Any]:
        return axis_sizes(convert_to_tensor(self._spectrum))[-self.block_depth :]

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return "spectrum", "input_output_dtype"

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, Any]:
        return {"spectrum": self.block_depth}

    def _shape(self) -> Shape:
        sizes = self.block_shape
        size = None if None in sizes else prod(sizes)  # type: ignore[arg-type]  # static
        return Shape((*self._spectrum.shape[: -self.block_depth], size, size))

    def _shape_tensor(self) -> Any:
        sizes, depth = axis_sizes(convert_to_tensor(self._spectrum)), self.block_depth
        size = prod(sizes[-depth:])
        return convert_to_tensor([*sizes[:-depth], size, size], "int32")

    def _transformed(self, x: Any, *, inverse: bool = False) -> Any:
        transforms = (ifft, ifft2d, ifft3d) if inverse else (fft, fft2d, fft3d)
        return transforms[self.block_depth - 1](as_complex(x))

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """The inverse transform of the spectrum: the first column of each matrix, in blocks."""
        kernel: Tensor = cast(self._transformed(convert_to_tensor(self._spectrum), inverse=True), self.dtype)
        return kernel

    def _filtered(self, x: Any, factors: Any) -> Any:
        """``ifft(factors * fft(x))`` of each column of the matrices ``x``."""
        columns = matrix_transpose(cast(x, factors.dtype))
        *batch, width, rows = axis_sizes(columns)
        blocks = self._block_sizes()
        columns = self._transformed(reshape(columns, [*batch, width, *blocks]))
        new_axis = (..., None, *[slice(None)] * self.block_depth)  # for the columns
        filtered = self._transformed(columns * factors[new_axis], inverse=True)
        flat = reshape(filtered, [*axis_sizes(filtered)[: -self.block_depth], rows])
        return cast(matrix_transpose(flat), self.dtype)

    def _frequencies(self, adjoint: bool) -> Any:
        spectrum = as_complex(convert_to_tensor(self._spectrum))
        return conj(spectrum) if adjoint else spectrum

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = matrix_transpose(x, conjugate=True) if adjoint_arg else x
        return self._filtered(x, self._frequencies(adjoint))

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = matrix_transpose(rhs, conjugate=True) if adjoint_arg else rhs
        return self._filtered(rhs, 1 / self._frequencies(adjoint))

    def _axes(self) -> list[int]:
        return list(range(-self.block_depth, 0))

    def _flat(self) -> Any:
        """The spectrum as a vector for each matrix."""
        spectrum = convert_to_tensor(self._spectrum)
        sizes = axis_sizes(spectrum)
        return reshape(spectrum, [*sizes[: -self.block_depth], prod(sizes[-self.block_depth :])])

    def _determinant(self) -> Any:
        return cast(reduce_prod(self._spectrum, self._axes()), self.dtype)

    def _log_abs_determinant(self) -> Any:
        return cast(reduce_sum(log(absolute(self._spectrum)), self._axes()), self.dtype)

    def _trace(self) -> Any:
        return cast(reduce_sum(self._spectrum, self._axes()), self.dtype)

    def _diag_part(self) -> Any:
        size = self.domain_dimension_tensor()
        mean = self._trace() / cast(size, self.dtype)
        return mean[..., None] * ones(
            [size if self.domain_dimension is None else self.domain_dimension], self.dtype
        )

    def _eigvals(self) -> Any:
        return self._flat()

    def _cond(self) -> Any:
        sizes = absolute(self._flat())
        return reduce_max(sizes, -1) / reduce_min(sizes, -1)

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> Any:
        """Raises an error unless the matrices are real; in a function, when it runs.

        Returns:
            None; in an explicit graph the operation that checks.

        Raises:
            InvalidArgumentError: the convolution kernel has imaginary parts.
        """
        kernel = self._transformed(convert_to_tensor(self._spectrum), inverse=True)
        parts = absolute(imag(kernel))
        largest = cast(self.domain_dimension_tensor(), parts.dtype) * float(finfo(parts.dtype).eps)
        return assert_less(parts, largest, message="The spectrum was not Hermitian.")

    def _assert_non_singular(self) -> Any:
        return assert_no_zeros(self._spectrum, "Singular operator: the spectrum contained zeros.")

    def _assert_positive_definite(self) -> Any:
        message = "Not positive definite: the real part of the spectrum was not all positive."
        return assert_positive(real(self._spectrum), message=message)

    def _assert_self_adjoint(self) -> Any:
        return assert_real(self._spectrum, "Not self-adjoint: the spectrum contained imaginary parts.")

    def _of_spectrum(self, spectrum: Any, hints: Hints) -> Any:
        return type(self)(spectrum, self.dtype, **hints._asdict())

    def _linop_adjoint(self) -> Any:
        return self._of_spectrum(conj(self._spectrum), hints_of(self))

    def _linop_inverse(self) -> Any:
        return self._of_spectrum(1 / self._spectrum, hints_of(self))

    def _linop_matmul(self, left_operator: Any, right_operator: Any) -> Any:
        if type(left_operator) is not type(right_operator):
            return super()._linop_matmul(left_operator, right_operator)
        spectrum = left_operator.spectrum * right_operator.spectrum
        return left_operator._of_spectrum(spectrum, commuting_product(left_operator, right_operator))

    def _linop_solve(self, left_operator: Any, right_operator: Any) -> Any:
        if type(left_operator) is not type(right_operator):
            return super()._linop_solve(left_operator, right_operator)
        spectrum = right_operator.spectrum / left_operator.spectrum
        return left_operator._of_spectrum(spectrum, commuting_product(left_operator, right_operator))


@documented_hints
@entry
class LinearOperatorCirculant(CirculantOperator):
    """Circulant matrices: each column is the one before it, shifted down by one and wrapped around.

    Args:
        spectrum: the transforms of the first columns, of shape ``(..., n)``, real for self-adjoint matrices;
            the leading axes are the batch.
        input_output_dtype: the dtype of arguments and results; complex64 by default. A real dtype drops the
            imaginary parts of results, which are 0 if the spectrum is Hermitian.

    Raises:
        InvalidArgumentError: ``spectrum`` has too few axes; or a hint contradicts the structure.
        DTypeError: ``spectrum`` holds integers.

    >>> import dualflow as df
    >>> spectrum = df.signal.fft(df.cast([1.0, 2.0, 0.0], df.complex64))
    >>> a = df.linalg.LinearOperatorCirculant(spectrum, input_output_dtype=df.float32)
    >>> a.to_dense().numpy().round(4).tolist()
    [[1.0, 0.0, 2.0], [2.0, 1.0, 0.0], [0.0, 2.0, 1.0]]
    """


@documented_hints
@entry
class LinearOperatorCirculant2D(CirculantOperator):
    """Block circulant matrices of circulant blocks.

    Args:
        spectrum: the two-dimensional transforms of the convolution kernels, of shape ``(..., n0, n1)``; the
            matrices have ``n0 * n1`` rows.
        input_output_dtype: the dtype of arguments and results; complex64 by default.

    Raises:
        InvalidArgumentError: ``spectrum`` has too few axes; or a hint contradicts the structure.
        DTypeError: ``spectrum`` holds integers.

    >>> import dualflow as df
    >>> df.linalg.LinearOperatorCirculant2D([[1.0, 2.0], [3.0, 4.0]]).shape
    (4, 4)
    """

    block_depth = 2


@documented_hints
@entry
class LinearOperatorCirculant3D(CirculantOperator):
    """Block circulant matrices, whose blocks are those of :class:`LinearOperatorCirculant2D`.

    Args:
        spectrum: the three-dimensional transforms of the convolution kernels, of shape ``(..., n0, n1,
            n2)``; the matrices have ``n0 * n1 * n2`` rows.
        input_output_dtype: the dtype of arguments and results; complex64 by default.

    Raises:
        InvalidArgumentError: ``spectrum`` has too few axes; or a hint contradicts the structure.
        DTypeError: ``spectrum`` holds integers.

    >>> import dualflow as df
    >>> df.linalg.LinearOperatorCirculant3D(df.ones([2, 2, 3])).shape
    (12, 12)
    """

    block_depth = 3
