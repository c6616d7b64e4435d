"""Matrix products, tensordot and einsum are NumPy's; so are their gradients."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.ops.contraction_order import contraction_order

EQUATIONS = [
    "ij,jk->ik",
    "ij,kj->ki",
    "bij,bjk->bik",
    "ij,ij->",
    "i,j->ij",
    "ij,j",
    "ijk,jl->lik",
    "abc,cd,bd->a",
    "ij->ji",
    "ij->j",
    "i,i,i->i",
    "abcd,bcde->ae",
]
SIZES = dict(zip("abcdeijkl", (2, 3, 4, 2, 3, 3, 4, 2, 5), strict=True))


def operands(equation):
    rng = np.random.default_rng(0)
    return [rng.normal(size=[SIZES[c] for c in group]) for group in equation.split("->")[0].split(",")]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation):
    inputs = operands(equation)
    np.testing.assert_allclose(
        df.einsum(equation, *inputs), np.einsum(equation, *inputs), rtol=1e-12, atol=1e-12
    )


AXES = {
    "ii->i": [(3, 3)],
    "ii": [(3, 3)],
    "iij->j": [(2, 2, 3)],
    "ijji->ij": [(2, 3, 3, 2)],
    "iii->i": [(3, 3, 3)],
    "ii,i->i": [(3, 3), (3,)],
    "ii->": [(0, 0)],
    "...ij": [(2, 3, 4)],
    "...": [(2, 3)],
    "ba": [(2, 3)],
    "...ii->...i": [(2, 3, 3)],
    "i...i->...": [(3, 2, 3)],
    "i...j->j...i": [(2, 3, 4)],
    "...i->...": [(2, 3)],
    "...ij,...jk->...ik": [(5, 2, 3), (5, 3, 4)],
    "...ij,jk->...ik": [(7, 5, 2, 3), (3, 4)],
    "ij...,jk...->ik...": [(2, 3, 5), (3, 4, 5)],
    "...,...->...": [(7, 1, 3), (5, 1)],
    "...ij,...jk": [(7, 1, 2, 3), (5, 3, 4)],
    "...,i->i...": [(1, 2), (3,)],
    " i j , j k -> i k ": [(2, 3), (3, 4)],
    ",->": [(), ()],
}


@pytest.mark.parametrize("equation", AXES)
def test_einsum_of_diagonals_and_further_axes(mode, equation):
    inputs = [np.random.default_rng(i).normal(size=s) for i, s in enumerate(AXES[equation])]
    result = mode(lambda *xs: df.einsum(equation, *xs))(*map(df.constant, inputs)).numpy()
    np.testing.assert_allclose(result, np.einsum(equation, *inputs), rtol=1e-12, atol=1e-12, strict=True)


@pytest.mark.parametrize("equation", AXES)
def test_the_gradient_of_einsum_of_diagonals_and_further_axes(equation):
    """The result is linear in each input, so a step of one element changes it by the gradient."""
    inputs = [df.constant(np.random.default_rng(i).normal(size=s)) for i, s in enumerate(AXES[equation])]
    weights = np.random.default_rng(9).normal(size=df.einsum(equation, *inputs).shape)

    def loss(*xs):
        return df.reduce_sum(df.einsum(equation, *xs) * weights)

    with df.GradientTape() as tape:
        tape.watch(inputs)
        y = loss(*inputs)
    for i, g in enumerate(tape.gradient(y, inputs)):
        for place in np.ndindex(*inputs[i].shape):
            step = np.zeros(inputs[i].shape)
            step[place] = 1
            moved = [x + step if j == i else x for j, x in enumerate(inputs)]
            np.testing.assert_allclose(loss(*moved) - y, df.reduce_sum(g * step), atol=1e-9)


@pytest.mark.parametrize("equation", ["bij,bjk->bik", "ijk,jl->lik", "i,i,i->i"])
def test_the_gradient_of_einsum_is_einsum(equation):
    inputs = [df.constant(x) for x in operands(equation)]
    with df.GradientTape() as tape:
        tape.watch(inputs)
        y = df.einsum(equation, *inputs)
    groups, result = equation.split("->")[0].split(","), equation.split("->")[1]
    g = np.random.default_rng(1).normal(size=y.shape)
    gradients = tape.gradient(y, inputs, output_gradients=df.constant(g))
    for i, (gradient, group) in enumerate(zip(gradients, groups, strict=True)):
        others = [np.asarray(x) for j, x in enumerate(inputs) if j != i]
        letters = [x for j, x in enumerate(groups) if j != i]
        expected = np.einsum(f"{','.join([result, *letters])}->{group}", g, *others)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("axes", "a", "b"),
    [
        (1, (2, 3), (3, 4)),
        (2, (2, 3, 4), (3, 4, 5)),
        (0, (2,), (3,)),
        ([[0, 2], [1, 0]], (3, 2, 4), (4, 3, 5)),
        (np.array([[0, 2], [1, 0]]), (3, 2, 4), (4, 3, 5)),
    ],
)
def test_tensordot(axes, a, b):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=a), rng.normal(size=b)
    np.testing.assert_allclose(df.tensordot(x, y, axes), np.tensordot(x, y, axes), rtol=1e-12)


@given(
    st.booleans(), st.booleans(), st.sampled_from([((), ()), ((2,), (2,)), ((3, 1), (2,)), ((1,), (3, 2))])
)
@settings(deadline=None)
def test_matmul_broadcasts_and_transposes(transpose_a, transpose_b, batches):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(*batches[0], *((4, 3) if transpose_a else (3, 4))))
    b = rng.normal(size=(*batches[1], *((2, 4) if transpose_b else (4, 2))))
    expected = np.matmul(a.swapaxes(-1, -2) if transpose_a else a, b.swapaxes(-1, -2) if transpose_b else b)
    np.testing.assert_allclose(df.matmul(a, b, transpose_a, transpose_b), expected, rtol=1e-12)


def test_matvec():
    a, v = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    np.testing.assert_array_equal(df.linalg.matvec(a, v), a @ v)
    np.testing.assert_array_equal(df.linalg.matvec(a, [1.0, 2.0], transpose_a=True), a.T @ [1.0, 2.0])


@pytest.mark.parametrize("batch", [(5,), (2, 5), (0,), (1,)])
@pytest.mark.parametrize("transposed", [False, True])
def test_one_matrix_times_many_vectors(batch, transposed):
    rng = np.random.default_rng(0)
    a, v = rng.integers(-9, 9, (3, 4)).astype(float), rng.integers(-9, 9, (*batch, 4)).astype(float)
    result = df.linalg.matvec(a.T if transposed else a, v, transpose_a=transposed)
    np.testing.assert_array_equal(result, np.einsum("nk,...k->...n", a, v))


def test_one_adjoint_matrix_times_many_vectors():
    rng = np.random.default_rng(0)
    a, v = (rng.integers(-9, 9, (2, *shape)) for shape in ((4, 3), (5, 4)))
    a, v = a[0] + 1j * a[1], v[0] + 1j * v[1]
    np.testing.assert_array_equal(df.linalg.matvec(a, v, adjoint_a=True), v @ a.conj())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: df.matmul(df.ones([2, 3]), df.ones([2, 3])), r"inner sizes 3 and 2 .*transpose_"),
        (lambda: df.matmul(df.ones([3]), df.ones([3, 2])), r"matvec"),
        (lambda: df.matmul(df.ones([2, 2, 3]), df.ones([3, 3, 2])), r"broadcast"),
        (lambda: df.einsum("ii->i", df.ones([2, 3])), r"'i' is both 2 and 3"),
        (lambda: df.einsum("ij->i", df.ones([2])), r"each axis as one letter"),
        (lambda: df.einsum("ij,jk->ik", df.ones([2, 3]), df.ones([4, 2])), r"'j' is both 3 and 4"),
        (lambda: df.einsum("ij,jk->ik", df.ones([2, 3])), r"one group"),
        (lambda: df.einsum("...i->i", df.ones([2, 3])), r"must stay"),
        (lambda: df.einsum("......i->i", df.ones([2, 3])), r"at most one"),
        (lambda: df.einsum("i->ii", df.ones([2])), r"or one twice"),
        (lambda: df.einsum("i->j", df.ones([2])), r"no input has"),
    ],
)
def test_incompatible_arguments_are_refused_with_a_remedy(call, words):
    with pytest.raises(df.errors.InvalidArgumentError, match=words):
        call()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_an_adjoint_is_the_conjugate_of_the_transpose(mode, dtype):
    rng = np.random.default_rng(0)
    a, b = (
        df.cast(df.complex(rng.normal(size=s), rng.normal(size=s)), dtype) for s in ((2, 4, 3), (2, 5, 4))
    )
    result = mode(lambda a, b: df.matmul(a, b, adjoint_a=True, adjoint_b=True))(a, b)
    left, right = (df.math.conj(x).numpy().swapaxes(1, 2) for x in (a, b))
    np.testing.assert_allclose(result.numpy(), left @ right, rtol=1e-5, atol=1e-5)
    v = mode(lambda a, v: df.linalg.matvec(a, v, adjoint_a=True))(a[0], b[0, 0])
    np.testing.assert_allclose(v.numpy(), left[0] @ b[0, 0].numpy(), rtol=1e-5, atol=1e-5)


def test_a_matrix_is_either_transposed_or_adjoint():
    for side in ("a", "b"):
        with pytest.raises(ValueError, match="either transpose or adjoint"):
            df.matmul(
                df.ones([2, 2]), df.ones([2, 2]), **{f"transpose_{side}": True, f"adjoint_{side}": True}
            )


def test_small_integers_may_be_multiplied_in_a_wider_dtype(mode):
    x = df.constant([[100]], df.int8)
    result = mode(lambda x: df.matmul(x, x, output_type=df.int32))(x)
    assert result.dtype is df.int32
    assert int(result) == 10_000


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
@pytest.mark.parametrize(
    ("left", "right"), [((3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 1)), ((70, 40), (40, 50)), ((3, 0), (0, 2))]
)
def test_products_of_integer_matrices_wrap_as_numpys_do(dtype, left, right):
    rng, limits = np.random.default_rng(0), np.iinfo(dtype)
    a, b = (rng.integers(limits.min, limits.max, shape, dtype, endpoint=True) for shape in (left, right))
    a_t, b_t = a.swapaxes(-1, -2).copy(), b.swapaxes(-1, -2).copy()

    @df.function
    def products(a, b, a_t, b_t):
        return (
            df.matmul(a, b),
            df.matmul(a_t, b, transpose_a=True),
            df.matmul(a, b_t, transpose_b=True),
            df.matmul(a_t, b_t, transpose_a=True, transpose_b=True),
        )

    for product in products(a, b, a_t, b_t):
        np.testing.assert_array_equal(product, np.matmul(a, b), strict=True)


@pytest.mark.llvm
def test_products_of_integer_matrices_are_native_for_any_size():
    product = df.function(lambda a: a @ a, input_signature=[df.TensorSpec([None, None], df.int32)])
    for size in (3, 50):
        x = np.arange(size * size, dtype=np.int32).reshape(size, size)
        np.testing.assert_array_equal(product(x), x @ x)
    assert "numpy" not in product.status()


def multiplications(equation, path):
    """The number of multiplications of an order, whose products join the end of the list."""
    groups, result = equation.split("->")
    remaining, total = [set(group) for group in groups.split(",")], 0
    for pair in path:
        labels = set().union(*[remaining.pop(i) for i in sorted(pair, reverse=True)])
        total += np.prod([SIZES[c] for c in labels])
        remaining.append(labels & set(result).union(*remaining))
    return total


@given(
    st.lists(
        st.text("abcde", min_size=1, max_size=3).filter(lambda t: len(set(t)) == len(t)),
        min_size=3,
        max_size=4,
    )
)
@settings(max_examples=60)
def test_several_inputs_are_multiplied_in_the_cheapest_order(groups):
    result = "".join(sorted(set("".join(groups)))[:2])
    equation = f"{','.join(groups)}->{result}"
    order = contraction_order(groups, result, SIZES)
    assert len(order) == len(groups) - 1
    numpys = np.einsum_path(equation, *operands(equation), optimize="optimal")[0][1:]
    pairs = numpys if all(len(step) == 2 for step in numpys) else order
    assert multiplications(equation, order) <= multiplications(equation, pairs)
    np.testing.assert_allclose(
        df.einsum(equation, *operands(equation)), np.einsum(equation, *operands(equation)), atol=1e-12
    )


def test_many_inputs_are_multiplied_in_an_order_that_follows_the_chain():
    matrices = [np.random.default_rng(i).normal(size=(3, 3)) for i in range(8)]
    equation = "ab,bc,cd,de,ef,fg,gh,hi->ai"
    np.testing.assert_allclose(df.einsum(equation, *matrices), np.linalg.multi_dot(matrices), rtol=1e-12)


@pytest.mark.parametrize("static", [1, 3])
@pytest.mark.parametrize("position", [0, 1])
def test_shared_axes_of_dynamic_size_do_not_broadcast(static, position):
    signature = [df.TensorSpec([static]), df.TensorSpec([None])]
    values = [np.arange(1.0, static + 1), np.arange(4 - static, dtype=float)]
    if position:
        signature, values = signature[::-1], values[::-1]
    product = df.function(lambda x, y: df.einsum("i,i->i", x, y), input_signature=signature)
    with pytest.raises(df.errors.InvalidArgumentError, match=r"'i' is both [13] and [13]"):
        product(*[value.astype(np.float32) for value in values])
    same = np.ones(static, np.float32)
    np.testing.assert_array_equal(product(same, same), same)


def test_a_product_without_a_sum_is_elementwise():
    @df.function
    def weighted(x, y, weights):
        return df.einsum("ijk,ij,j->ijk", df.exp(x), y, weights) + 1.0

    arguments = [df.ones(shape) for shape in ([2, 3, 4], [2, 3], [3])]
    graph = str(weighted.get_concrete_function(*arguments).optimised_graph)
    assert "matmul" not in graph
    assert "fused(" in graph
    np.testing.assert_allclose(weighted(*arguments), np.e + 1, rtol=1e-6)


def test_whatever_order_einsum_is_requested_the_sums_are_the_same():
    inputs = operands("abc,cd,bd->a")
    plain, ordered = df.einsum("abc,cd,bd->a", *inputs), df.einsum("abc,cd,bd->a", *inputs, optimize="greedy")
    np.testing.assert_array_equal(plain.numpy(), ordered.numpy())


ATTENTION = ("aecd,abcd->acbe", "acbe,aecd->abcd", "abc,cde->abde", "abcd,cde->abe", "bic,jbc->ij", "ac,bc->")


@pytest.mark.parametrize("equation", ATTENTION)
def test_products_of_dynamic_sizes_are_numpys_and_can_be_saved(equation, tmp_path):
    sizes = dict(zip("abcdeij", (2, 3, 4, 5, 2, 3, 4), strict=True))
    groups = equation.partition("->")[0].split(",")
    x, y = (np.random.default_rng(0).standard_normal([sizes[c] for c in g]) for g in groups)
    model = df.Module()
    signature = [df.TensorSpec([None] * len(g), df.float64) for g in groups]
    model.product = df.function(lambda x, y: df.einsum(equation, x, y), input_signature=signature)
    df.saved_model.save(model, tmp_path / "model")
    loaded = df.saved_model.load(tmp_path / "model")
    for call in (model.product, loaded.product):
        np.testing.assert_allclose(call(x, y), np.einsum(equation, x, y), rtol=1e-12, atol=1e-12)


def test_a_shared_axis_of_a_matrix_product_does_not_broadcast():
    signature = [df.TensorSpec([None, 2, None]), df.TensorSpec([None, None, 2])]
    product = df.function(lambda x, y: df.einsum("bij,bji->bi", x, y), input_signature=signature)
    with pytest.raises(df.errors.InvalidArgumentError, match="elements"):
        product(df.ones([1, 2, 3]), df.ones([3, 3, 2]))


@pytest.mark.parametrize("rows", [(4, 1), (1, 4), (4, 4)])
def test_further_axes_of_dynamic_size_broadcast(rows):
    x, y = (np.random.default_rng(n).standard_normal((n, 3)) for n in rows)
    signature = [df.TensorSpec([None, 3], df.float64)] * 2
    product = df.function(lambda x, y: df.einsum("...i,...i->...", x, y), input_signature=signature)
    np.testing.assert_allclose(product(x, y), np.einsum("...i,...i->...", x, y), rtol=1e-12)
