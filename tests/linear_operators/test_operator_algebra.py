"""Hints, products of operators, functions of df.linalg, gradients, and operators in structures of values."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import dualflow as df

L = df.linalg
A = np.array([[4.0, 1.0], [1.0, 3.0]])
HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")


def hints(operator: Any) -> tuple[bool | None, ...]:
    return tuple(getattr(operator, name) for name in HINTS)


def operators() -> dict[str, Any]:
    return {
        "Diag": L.LinearOperatorDiag([2.0, 3.0], is_non_singular=True),
        "FullMatrix": L.LinearOperatorFullMatrix(A.astype(np.float32)),
        "LowerTriangular": L.LinearOperatorLowerTriangular([[2.0, 0.0], [1.0, 4.0]], is_non_singular=True),
        "Identity": L.LinearOperatorIdentity(2),
        "ScaledIdentity": L.LinearOperatorScaledIdentity(2, [3.0, 4.0]),
        "BlockDiag": L.LinearOperatorBlockDiag([L.LinearOperatorDiag([2.0]), L.LinearOperatorDiag([3.0])]),
        "Inversion": L.LinearOperatorInversion(L.LinearOperatorFullMatrix(A.astype(np.float32))),
    }


PRODUCTS = {
    ("Diag", "Diag"): "Diag",
    ("Diag", "ScaledIdentity"): "Diag",
    ("ScaledIdentity", "Diag"): "Diag",
    ("ScaledIdentity", "ScaledIdentity"): "ScaledIdentity",
    ("Diag", "LowerTriangular"): "LowerTriangular",
    ("LowerTriangular", "Diag"): "LowerTriangular",
    ("BlockDiag", "BlockDiag"): "BlockDiag",
}
"""The class of a product; else it is the other one's for an identity, or a composition."""


@pytest.mark.parametrize("right", operators())
@pytest.mark.parametrize("left", operators())
def test_products_and_solutions_keep_the_structure(left: str, right: str) -> None:
    a, b = operators()[left], operators()[right]
    product, solution = a @ b, a.solve(b)
    dense, other = a.to_dense().numpy(), b.to_dense().numpy()
    np.testing.assert_allclose(product.to_dense(), dense @ other, rtol=1e-5)
    np.testing.assert_allclose(solution.to_dense(), np.linalg.inv(dense) @ other, rtol=1e-5, atol=1e-6)
    expected = PRODUCTS.get((left, right), "Composition")
    if "Identity" in (left, right):
        expected = right if left == "Identity" else left
    assert type(product).__name__ == f"LinearOperator{expected}"


def test_products_of_circulants_are_circulant() -> None:
    a, b = (L.LinearOperatorCirculant(df.cast(x, df.complex64)) for x in ([3.0, 1.0, 2.0], [2.0, 1j, -1j]))
    for operator in (a @ b, a.solve(b), a.inverse(), b.adjoint()):
        assert isinstance(operator, L.LinearOperatorCirculant)
    np.testing.assert_allclose((a @ b).to_dense(), a.to_dense().numpy() @ b.to_dense().numpy(), atol=1e-5)
    np.testing.assert_allclose(a.matmul(a.solve(b).to_dense()), b.to_dense(), atol=1e-5)
    assert (a.block_shape, a.block_shape_tensor().numpy().tolist()) == ((3,), [3])
    np.testing.assert_allclose(a.convolution_kernel(), a.to_dense()[:, 0], atol=1e-6)
    b.assert_hermitian_spectrum()
    assert isinstance(a @ L.LinearOperatorIdentity(3, dtype=df.complex64), L.LinearOperatorCirculant)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 2), (2, 3)])
def test_a_product_with_zeros_is_zeros_of_its_shape(shape: tuple[int, ...]) -> None:
    zeros, matrix = L.LinearOperatorZeros(2), L.LinearOperatorFullMatrix(np.ones(shape, np.float32))
    for product, expected in ((zeros @ matrix, shape), (matrix.H @ zeros, (*shape[:-2], shape[-1], 2))):
        assert isinstance(product, L.LinearOperatorZeros)
        assert product.to_dense().shape == product.shape == expected
        assert product.is_square == (shape[-1] == 2)


@pytest.mark.parametrize("batch", [[], [1], [3], [4, 1]])
def test_a_product_with_identities_has_the_batch_of_both(batch: list[int]) -> None:
    a = L.LinearOperatorFullMatrix(np.stack([A] * 3), is_positive_definite=True)
    eye = L.LinearOperatorIdentity(2, batch, df.float64)
    expected = np.broadcast_shapes((3,), tuple(batch))
    for operator, matrix in (
        (eye @ a, A),
        (a @ eye, A),
        (eye.solve(a), A),
        (a.solve(eye), np.linalg.inv(A)),
    ):
        assert operator.batch_shape == expected
        assert operator.is_positive_definite
        np.testing.assert_allclose(operator.to_dense(), np.broadcast_to(matrix, (*expected, 2, 2)))


def test_the_inverse_of_an_inverse_and_the_adjoint_of_an_adjoint_are_the_operator() -> None:
    a = L.LinearOperatorFullMatrix(A)
    assert a.inverse().inverse() is a
    assert a.adjoint().adjoint() is a
    assert a.H.operator is a
    assert a.inverse().solve(L.LinearOperatorDiag(A[0])).operators[0] is a


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (L.LinearOperatorFullMatrix(A), (None, None, None, True)),
        (L.LinearOperatorFullMatrix(A[:1]), (None, None, None, False)),
        (L.LinearOperatorFullMatrix(A, is_positive_definite=True), (True, None, True, True)),
        (L.LinearOperatorFullMatrix(A, is_self_adjoint=True), (None, True, None, True)),
        (L.LinearOperatorFullMatrix(A, is_non_singular=False), (False, None, None, True)),
        (L.LinearOperatorDiag(A[0]), (None, True, None, True)),
        (L.LinearOperatorDiag(A[0] * 1j), (None, None, None, True)),
        (L.LinearOperatorIdentity(2), (True, True, True, True)),
        (L.LinearOperatorZeros(2), (False, True, False, True)),
        (L.LinearOperatorHouseholder(A[0]), (None, True, False, True)),
        (L.LinearOperatorLowerTriangular(A), (None, None, None, True)),
    ],
    ids=repr,
)
def test_hints_follow_from_the_structure_and_from_each_other(operator: Any, expected: Any) -> None:
    assert hints(operator) == expected


def test_hints_of_derived_operators() -> None:
    spd = L.LinearOperatorFullMatrix(A, is_self_adjoint=True, is_positive_definite=True)
    plain, diagonal = L.LinearOperatorFullMatrix(A), L.LinearOperatorDiag(A[0], is_positive_definite=True)
    regular = L.LinearOperatorFullMatrix(A, is_non_singular=True)
    assert hints(spd.inverse()) == (True, True, True, True)
    assert hints(plain.adjoint()) == (None, None, None, True)
    assert hints(spd.cholesky()) == (True, False, None, True)
    assert hints(diagonal @ diagonal) == (True, True, True, True)
    assert hints(regular @ diagonal) == (True, None, None, True)
    assert hints(regular @ regular.H) == (True, True, True, True)
    assert hints(plain @ L.LinearOperatorFullMatrix(A[:, :1])) == (False, False, False, False)
    assert hints(L.LinearOperatorBlockDiag([spd, diagonal])) == (True, True, True, True)
    assert hints(L.LinearOperatorKronecker([spd, plain])) == (None, None, None, True)
    assert hints(L.LinearOperatorLowRankUpdate(spd, A)) == (True, True, True, True)
    assert hints(L.LinearOperatorLowRankUpdate(spd, A, v=A + 1)) == (None, None, None, True)


def test_parameters_are_the_arguments_of_the_constructor() -> None:
    diagonal = [1.0, 2.0]
    operator = L.LinearOperatorDiag(diagonal, is_non_singular=True, name="scale")
    assert operator.parameters["diag"] is diagonal
    assert (operator.parameters["is_non_singular"], operator.parameters["is_square"]) == (True, None)
    assert (operator.name, (operator @ L.LinearOperatorFullMatrix(np.float32(A))).name) == (
        "scale",
        "scale_o_LinearOperatorFullMatrix",
    )


def test_checks_hold_or_raise_in_functions_too() -> None:
    @df.function(input_signature=[df.TensorSpec([2], df.float64)])
    def checked(diagonal: Any) -> Any:
        operator = L.LinearOperatorDiag(diagonal)
        operator.assert_non_singular()
        operator.assert_positive_definite()
        operator.assert_self_adjoint()
        return operator.determinant()

    assert float(checked([2.0, 3.0])) == 6
    with pytest.raises(df.errors.InvalidArgumentError, match="contained zeros"):
        checked([2.0, 0.0])
    with pytest.raises(df.errors.InvalidArgumentError, match="not positive definite"):
        checked([2.0, -1.0])


@pytest.mark.parametrize(
    "operator",
    [
        L.LinearOperatorFullMatrix(A * [[1, 1], [0, 0]]),
        L.LinearOperatorFullMatrix(A * 0, is_self_adjoint=True, is_positive_definite=True),
        L.LinearOperatorLowerTriangular([[1.0, 0.0], [1.0, 0.0]]),
        L.LinearOperatorScaledIdentity(2, 0.0),
        L.LinearOperatorZeros(2),
        L.LinearOperatorKronecker([L.LinearOperatorDiag([0.0])]),
        L.LinearOperatorComposition([L.LinearOperatorDiag([0.0])]),
        L.LinearOperatorBlockDiag([L.LinearOperatorDiag([0.0])]),
    ],
    ids=repr,
)
def test_singular_matrices_are_found(operator: Any) -> None:
    with pytest.raises(df.errors.InvalidArgumentError):
        operator.assert_non_singular()


def test_a_check_of_several_operators_is_one_operation_of_an_explicit_graph() -> None:
    v1 = df.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        first, second = v1.placeholder(df.float32, [1]), v1.placeholder(df.float32, [1])
        blocks = [L.LinearOperatorDiag(first), L.LinearOperatorIdentity(1), L.LinearOperatorDiag(second)]
        check = L.LinearOperatorBlockDiag(blocks).assert_non_singular()
        session.run(check, {first: [1.0], second: [2.0]})
        for values in ([0.0], [2.0]), ([1.0], [0.0]):
            with pytest.raises(df.errors.InvalidArgumentError, match="contained zeros"):
                session.run(check, dict(zip((first, second), values, strict=True)))


# Functions of df.linalg


def test_functions_of_linalg_take_operators() -> None:
    a = L.LinearOperatorFullMatrix(A, is_self_adjoint=True, is_positive_definite=True)
    x = df.constant(A) + 1
    np.testing.assert_allclose(df.matmul(a, x), A @ x.numpy())
    np.testing.assert_allclose(df.matmul(x, a, adjoint_a=True), x.numpy().T @ A)
    np.testing.assert_allclose(x @ a, x.numpy() @ A)
    np.testing.assert_allclose(df.linalg.solve(a, x, adjoint=True), np.linalg.solve(A.T, x))
    np.testing.assert_allclose(df.linalg.diag_part(a), np.diag(A))
    for function in (df.linalg.det, df.linalg.trace, df.linalg.logdet):
        np.testing.assert_allclose(function(a), function(df.constant(A)))
    for function in (df.linalg.inv, df.linalg.adjoint, df.linalg.cholesky):
        np.testing.assert_allclose(function(a).to_dense(), function(df.constant(A)), atol=1e-12)


# Gradients and structures


def loss(operator: Any, x: Any) -> Any:
    return df.reduce_sum(operator.solvevec(x) ** 2) + operator.log_abs_determinant()


def test_gradients_flow_to_the_tensors_and_variables() -> None:
    matrix, x = df.Variable(A), df.constant([1.0, 2.0], df.float64)
    operator = L.LinearOperatorFullMatrix(matrix)
    with df.GradientTape() as tape:
        value = loss(operator, x)
    with df.GradientTape() as dense:
        expected = df.reduce_sum(df.linalg.solve(matrix, x[:, None]) ** 2) + df.linalg.slogdet(matrix)[1]
    np.testing.assert_allclose(tape.gradient(value, matrix), dense.gradient(expected, matrix))
    assert operator.trainable_variables == (matrix,)


def test_the_gradient_of_an_operator_is_an_operator() -> None:
    base = L.LinearOperatorDiag([2.0, 3.0], is_positive_definite=True)
    operator = L.LinearOperatorLowRankUpdate(base, df.constant([[1.0], [0.5]]), df.constant([2.0]))
    with df.GradientTape() as tape:
        tape.watch(operator)
        value = df.reduce_sum(operator.matvec([1.0, 2.0]))
    gradient = tape.gradient(value, [operator])[0]
    assert isinstance(gradient, L.LinearOperatorLowRankUpdate)
    assert gradient.base_operator.diag.numpy().tolist() == [1.0, 2.0]
    assert gradient.diag_update.numpy().tolist() == [3.0]
    with df.GradientTape() as tape:
        tape.watch(operator)
        value = df.constant(1.0)
    assert tape.gradient(value, operator) is None


def test_an_operator_is_a_target_and_the_cotangent_of_one() -> None:
    x, y = df.Variable([2.0, 3.0]), df.Variable([5.0, 7.0])
    weights = L.LinearOperatorComposition(
        [L.LinearOperatorDiag([1.0, 2.0]), L.LinearOperatorDiag([3.0, 4.0])]
    )

    def gradients(wrapped: bool) -> Any:
        with df.GradientTape() as tape:
            factors = [L.LinearOperatorDiag(x * x), L.LinearOperatorDiag(x * y)]
            operator = L.LinearOperatorComposition(factors)
        if wrapped:
            return tape.gradient([operator], [x, y], output_gradients=[weights])
        return tape.gradient(operator, [x, y], output_gradients=weights)

    for wrapped in (False, True):
        by_x, by_y = gradients(wrapped)
        assert by_x.numpy().tolist() == [2 * 2 * 1 + 5 * 3, 2 * 3 * 2 + 7 * 4]
        assert by_y.numpy().tolist() == [2 * 3, 3 * 4]


def test_the_jacobian_of_an_operator_of_one_tensor_is_that_of_the_tensor() -> None:
    x = df.Variable([2.0, 3.0])
    with df.GradientTape() as tape:
        operator = L.LinearOperatorDiag(x * x)
    assert tape.jacobian(operator, x).numpy().tolist() == [[4.0, 0.0], [0.0, 6.0]]


@pytest.mark.parametrize("unconnected", ["none", "zero"])
def test_a_permutation_in_a_gradient_stays_as_it_is(unconnected: str) -> None:
    factors = [L.LinearOperatorPermutation([1, 0]), L.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])]
    operator = L.LinearOperatorComposition(factors)
    with df.GradientTape() as tape:
        tape.watch(operator)
        value = df.reduce_sum(operator.matvec([5.0, 6.0]) * [1.0, 10.0])
    permutation, matrix = tape.gradient(value, operator, unconnected_gradients=unconnected).operators
    assert permutation.perm.numpy().tolist() == [1, 0]
    assert matrix.to_dense().numpy().tolist() == [[50.0, 60.0], [5.0, 6.0]]


def test_operators_without_tensors_are_equal_structures() -> None:
    traces = []

    @df.function
    def dense(operator: Any) -> Any:
        traces.append(operator)
        return operator.to_dense()

    for sizes in ((2, 3), (2, 3), (3, 2)):
        dense(L.LinearOperatorKronecker([L.LinearOperatorIdentity(n) for n in sizes]))
        zeros = L.LinearOperatorZeros(*sizes, is_square=False, is_self_adjoint=False)
        dense(L.LinearOperatorAdjoint(zeros))
    assert len(traces) == 4


def test_functions_take_capture_and_return_operators_with_one_trace() -> None:
    captured = L.LinearOperatorDiag([10.0, 20.0])
    traces = []

    @df.function
    def combined(operator: Any) -> Any:
        traces.append(operator)
        return operator @ captured, captured.solve(operator)

    for factor in (1.0, 2.0):
        product, solution = combined(L.LinearOperatorDiag([factor, 3.0]))
        assert product.to_dense().numpy().tolist() == [[10 * factor, 0], [0, 60]]
        np.testing.assert_allclose(solution.diag, [factor / 10, 3 / 20], rtol=1e-6)
    assert len(traces) == 1
    combined(L.LinearOperatorDiag([1.0, 3.0], is_non_singular=True))
    assert len(traces) == 2


def test_loops_and_branches_carry_operators() -> None:
    @df.function
    def powers(operator: Any, count: Any) -> Any:
        result = operator
        for _ in df.range(count):
            result = result @ operator
        if count > 1:  # noqa: SIM108  # a branch over operators
            result = result.inverse()
        else:
            result = result @ result
        return result.diag

    assert powers(L.LinearOperatorDiag([2.0, 4.0]), df.constant(2)).numpy().tolist() == [1 / 8, 1 / 64]
    assert powers(L.LinearOperatorDiag([2.0, 4.0]), df.constant(1)).numpy().tolist() == [16, 256]


def test_operators_are_structures_of_their_tensors() -> None:
    operator = L.LinearOperatorKronecker([L.LinearOperatorIdentity(2), L.LinearOperatorDiag([1.0, 2.0])])
    assert df.nest.flatten([operator]) == [operator]
    (diagonal,) = df.nest.flatten(operator, expand_composites=True)
    rebuilt = df.nest.pack_sequence_as(operator, [diagonal * 2], expand_composites=True)
    assert rebuilt.operators[1].diag.numpy().tolist() == [2, 4]
    spec = operator._type_spec
    assert spec == rebuilt._type_spec
    assert hash(spec) == hash(rebuilt._type_spec)
    assert spec.value_type is L.LinearOperatorKronecker
    assert spec != L.LinearOperatorKronecker([L.LinearOperatorDiag([1.0, 2.0])])._type_spec
    assert "KroneckerSpec(operators=[" in repr(spec)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_operators_are_copied(copied: Any) -> None:
    operator = L.LinearOperatorFullMatrix(A, is_non_singular=True)
    twin = copied(operator)
    assert hints(twin) == hints(operator)
    np.testing.assert_array_equal(twin.to_dense(), A)


def test_modules_own_the_variables_of_their_operators(tmp_path: Any) -> None:
    class Model(df.Module):
        def __init__(self, value: float) -> None:
            super().__init__()
            self.scale = df.Variable([value, value])
            self.operator = L.LinearOperatorDiag(self.scale)

    model, other = Model(2.0), Model(5.0)
    assert model.trainable_variables == (model.scale,)
    path = df.train.Checkpoint(model=model).save(str(tmp_path / "c"))
    df.train.Checkpoint(model=other).restore(path)
    assert other.operator.matvec([1.0, 1.0]).numpy().tolist() == [2, 2]


# Operators of users


class Shift(df.linalg.LinearOperator):
    """Adds a multiple of the next element to each, and wraps around."""

    def __init__(
        self, weight: Any, size: int, is_square: bool | None = None, name: str = "shift", **hints: Any
    ) -> None:
        parameters = {"weight": weight, "size": size, "name": name}
        self._weight, self._size = df.convert_to_tensor(weight), size
        super().__init__(self._weight.dtype, is_square=True, name=name, parameters=parameters, **hints)

    @property
    def weight(self) -> Any:
        return self._weight

    def _shape(self) -> Any:
        return df.TensorShape([*self._weight.shape, self._size, self._size])

    def _shape_tensor(self) -> Any:
        return df.concat([df.shape(self._weight), [self._size, self._size]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = df.linalg.adjoint(x) if adjoint_arg else x
        return x + self._weight[..., None, None] * df.roll(x, 1 if adjoint else -1, -2)

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return "weight", "size"

    @property
    def _experimental_parameter_ndims_to_matrix_ndims(self) -> dict[str, int]:
        return {"weight": 0}


def test_a_subclass_has_all_methods_by_its_product() -> None:
    dense = np.eye(3) + 0.5 * np.roll(np.eye(3), 1, 1)
    shift = Shift(np.float64(0.5), 3)
    np.testing.assert_allclose(shift.to_dense(), dense)
    np.testing.assert_allclose(shift.solvevec([1.0, 2.0, 3.0]), np.linalg.solve(dense, [1, 2, 3]))
    np.testing.assert_allclose(shift.determinant(), np.linalg.det(dense))
    np.testing.assert_allclose((shift @ shift.H).to_dense(), dense @ dense.T)
    np.testing.assert_allclose(Shift(np.array([0.5, 1.0]), 3)[0].to_dense(), dense)
    np.testing.assert_allclose(df.function(lambda a, x: a.matvec(x))(shift, np.ones(3)), dense.sum(1))


class Compensated(df.linalg.LinearOperatorLowerTriangular):
    """Sums the logarithms of its diagonal in float64, as TensorFlow Probability does with another sum."""

    def _log_abs_determinant(self) -> Any:
        return df.reduce_sum(df.cast(df.math.log(df.abs(self._get_diag())), df.float64), -1)


def test_a_subclass_reads_the_diagonal_of_a_triangle() -> None:
    logarithm = Compensated(df.constant([[2.0, 9.0], [1.0, -3.0]])).log_abs_determinant()
    assert logarithm.dtype == df.float64
    np.testing.assert_allclose(logarithm, np.log(6.0), rtol=1e-6)
