"""``set_loop_options``: loops of the graph whose variables grow, or whose iterations are bounded."""

import numpy as np
import pytest

import dualflow as df

options = df.autograph.experimental.set_loop_options


@pytest.mark.parametrize("iterations", [0, 1, 5])
def test_a_variable_grows_by_a_row_in_each_iteration(iterations):
    @df.function
    def f(n):
        x = df.zeros([0, 3])
        for i in df.range(n):
            options(shape_invariants=[(x, df.TensorShape([None, 3]))])
            x = df.concat([x, df.fill([1, 3], df.cast(i, df.float32))], 0)
        return x

    result = f(df.constant(iterations))
    np.testing.assert_array_equal(
        result, np.repeat(np.arange(iterations, dtype=np.float32), 3).reshape(iterations, 3)
    )


@pytest.mark.llvm  # the one backend that compiles data-dependent sizes
def test_a_growing_loop_is_machine_code():
    @df.function
    def f(n):
        x = df.zeros([1])
        while df.size(x) < n:
            options(shape_invariants=[(x, [None])])
            x = df.concat([x, x + 1.0], 0)
        return df.reduce_sum(x)

    assert f(df.constant(4)).numpy() == 0 + 1 + 1 + 2
    assert f(df.constant(1)).numpy() == 0
    assert "numpy:" not in str(f.status())


def test_of_several_variables_those_that_are_named_grow():
    @df.function
    def f(n):
        x, count, y = df.ones([1]), 0, df.ones([2, 2])
        for _ in df.range(n):
            options(shape_invariants=[(y, [None, 2]), (x, [None])])
            x, y, count = df.concat([x, [2.0]], 0), df.concat([y, y], 0), count + 1
        return x, y, count

    x, y, count = f(df.constant(3))
    assert (x.shape, y.shape, count.numpy()) == ((4,), (16, 2), 3)


def test_a_ragged_tensor_grows_beside_a_tensor_array():
    @df.function
    def f(x, n):
        rows = df.TensorArray(df.float32, n, element_shape=[])
        for i in df.range(n):
            options(shape_invariants=[(x, [None, None]), (rows, df.TensorShape(None))])
            x, rows = df.concat([x, x[:1]], 0), rows.write(i, df.reduce_sum(x.values))
        return x, rows.stack()

    x, sums = f(df.ragged.constant([[1.0, 2.0], [3.0]]), df.constant(2))
    assert x.to_list() == [[1.0, 2.0], [3.0], [1.0, 2.0], [1.0, 2.0]]
    assert sums.numpy().tolist() == [6.0, 9.0]


def test_the_iterations_are_bounded():
    @df.function
    def f(n):
        count = 0
        for _ in df.range(n):
            options(maximum_iterations=3)
            count += 1
        while count < 100:
            options(maximum_iterations=2)
            count += 10
        return count

    assert [f(df.constant(n)).numpy() for n in (0, 2, 3, 9)] == [20, 22, 23, 23]


def test_a_loop_inside_of_another_has_its_own_options():
    @df.function
    def f(n):
        total = 0
        for _ in df.range(n):
            options(maximum_iterations=2)
            for _ in df.range(n):
                options(maximum_iterations=3)
                total += 1
        return total

    assert f(df.constant(9)).numpy() == 6


def test_strings_are_collected():
    @df.function
    def f(words):
        result = df.zeros([0], df.string)
        for word in words:
            options(shape_invariants=[(result, [None])])
            if df.strings.length(word) > 1:
                result = df.concat([result, [word]], 0)
        return result

    assert f(df.constant(["ab", "c", "def"])).numpy().tolist() == [b"ab", b"def"]


def test_python_loops_ignore_loop_options():
    def f(x, n):
        for _ in range(2):
            options(
                shape_invariants=[(x, [1])], maximum_iterations=1, parallel_iterations=1, swap_memory=True
            )
            x = df.concat([x, x], 0)
        for _ in df.range(n):
            for _ in range(2):
                options(shape_invariants=[(x, [1])], maximum_iterations=1)
                x = x + 1.0
        return x

    for function in (f, df.function(f)):
        assert function(df.ones([1]), df.constant(3)).numpy().tolist() == [7.0] * 4


def refused(body, match):
    with pytest.raises(df.errors.InvalidArgumentError, match=match) as caught:
        df.function(body)(df.constant(3))
    assert "test_loop_options.py" in str(caught.value)


def test_a_shape_that_a_variable_has_not_before_the_loop_is_refused():
    def f(n):
        x = df.zeros([1])
        for _ in df.range(n):
            options(shape_invariants=[(x, [2])])
            x = x + 1.0
        return x

    refused(
        f, r"'x' has shape \(1,\) before the loop, which does not conform with the shape invariant \(2,\)"
    )


def test_a_shape_that_a_variable_has_not_after_an_iteration_is_refused():
    def f(n):
        x = df.zeros([1])
        for _ in df.range(n):
            options(shape_invariants=[(x, df.TensorShape(None))])
            x = df.expand_dims(x, 0)
        return x

    refused(f, r"'x' has shape \(1, 1\) after one iteration.* invariant \(None,\)")


def test_a_shape_of_what_the_loop_does_not_carry_is_refused():
    def late(n):
        x = df.zeros([1])
        for _ in df.range(n):
            x = df.concat([x, x], 0)
            options(shape_invariants=[(x, [None])])
        return x

    refused(late, "call it first in the body")


def test_without_options_the_error_names_them():
    def f(n):
        x = df.zeros([1])
        for _ in df.range(n):
            x = df.concat([x, x], 0)
        return x

    refused(f, r"set_loop_options\(shape_invariants=\[\(x, shape\)\]\)")


def test_the_iterations_over_data_are_bounded_by_the_data():
    def f(n):
        for _ in df.data.Dataset.range(5):
            options(maximum_iterations=2)
            n = n + 1
        return n

    refused(f, r"loop over dataset\.take\(2\)")
