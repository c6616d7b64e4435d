"""Python's built-in functions over tensors in a traced function: as over Python's numbers and lists."""
# The calls are what is tested, not what they could be shortened to.

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import DTypeError, OperatorNotAllowedInGraphError

VECTOR = np.array([3, 1, 2])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("len(x)", 3),
        ("abs(-x[0])", 3),
        ("int(x[0] + 0.5)", 3),
        ("float(x[0]) / 2", 1.5),
        ("bool(x[0])", True),
        ("sum(x)", 6),
        ("sum([x[0], x[1]], 10)", 14),
        ("min(x)", 1),
        ("max(x)", 3),
        ("min(x[0], 2)", 2),
        ("max(x[0], x[1], 7)", 7),
        ("min([x[0], x[1]], key=lambda v: -v)", 3),
        ("max(x, key=lambda v: -v)", 1),
        ("max([], default=4)", 4),
        ("any(x > 2)", True),
        ("all(x > 2)", False),
        ("any([x[0] > 5, x[1] > 0])", True),
        ("all(v > 0 for v in x)", True),
        ("any([False, x[0] > 5])", False),
        ("sorted(x)", [1, 2, 3]),
        ("sorted(x, reverse=True)", [3, 2, 1]),
        ("sorted(x, key=lambda v: (v - 2) * (v - 2))", [2, 3, 1]),
        ("sorted([3, 1], key=lambda v: -v)", [3, 1]),
        ("list(x)", [3, 1, 2]),
        ("list(tuple(x))", [3, 1, 2]),
        ("list(map(lambda v, w: v * w, x, [1, 2, 3]))", [3, 2, 6]),
        ("list(filter(None, [0, 1]))", [1]),
        ("list(filter(lambda v: v > 1, [1, 2, 3]))", [2, 3]),
        ("functools.reduce(lambda v, w: v * 10 + w, list(x))", 312),
        ("list(reversed([x[0], x[1]]))", [1, 3]),
        ("pow(x[0], 2)", 9),
        ("[a * b for a, b in zip(x, x, strict=True)]", [9, 1, 4]),
        ("[i * v for i, v in enumerate(x, 1)]", [3, 2, 6]),
        ("list(dict(enumerate(x), y=x[0]).values())", [3, 1, 2, 3]),
    ],
)
def test_built_in_functions_return_what_python_s_do(call, expected, tmp_path, load):
    head = "import functools\n\ndef f(x):\n    if x[0] > 100:\n        x = x * 0\n"
    f = load(tmp_path, f"{head}    return {call}\n")
    compiled = df.function(f)
    for result in (compiled(df.constant(VECTOR)), f(df.constant(VECTOR))):
        plain = [int(x) for x in result] if isinstance(result, list | tuple) else np.asarray(result).tolist()
        assert plain == expected


def assert_matches_eager(f, *numbers):
    """Whether ``f`` compiled once gives what Python gives for each of the numbers."""
    compiled = df.function(f)
    for x in numbers:
        assert int(compiled(df.constant(x))) == int(f(df.constant(x)))
    assert len(compiled.concrete_functions) == 1


@pytest.mark.parametrize("limits", ["n", "2, n", "2, n, 3", "n, 0, -2"])
def test_a_range_is_reversed(limits, tmp_path, load):
    lines = ["def f(n):", "    total = 0", f"    for i in reversed(range({limits})):"]
    f = load(tmp_path, "\n".join([*lines, "        total = total * 10 + i", "    return total"]))
    assert_matches_eager(f, 7, 8, 0)


def test_a_tensor_is_reversed():
    def f(n):
        total = 0
        for i in reversed(df.constant([1, 2, 3]) * n):
            total = total * 10 + i
        return total

    assert_matches_eager(f, 1, 2)


def test_range_enumerate_and_zip_count_together():
    def f(n):
        total = 0
        for i, (a, b) in enumerate(zip(range(n), [10, 20, 30], strict=False), 5):
            total += i * a + b
        return total

    assert_matches_eager(f, 0, 2, 9)


def test_python_functions_are_used_where_nothing_is_a_tensor():
    @df.function
    def f(x, names):
        if x > 0:
            x = x + len(names) + max(map(len, names)) + sum(i for i, _ in enumerate(sorted(names)))
        return x

    assert int(f(df.constant(1), ("a", "abc"))) == 1 + 2 + 3 + 1


def test_print_prints_while_tracing(capsys):
    @df.function
    def f(x):
        print("tracing")
        if x > 0:
            x = x + 1
        return x

    f(df.constant(1))
    f(df.constant(2))
    assert capsys.readouterr().out == "tracing\n"


# errors


def error(f, *arguments):
    with pytest.raises((DTypeError, OperatorNotAllowedInGraphError)) as caught:
        df.function(f)(*arguments)
    assert f'File "{__file__}", line ' in "\n".join([str(caught.value), *caught.value.__notes__])
    return str(caught.value)


def test_filter_by_a_tensor_is_refused():
    def f(x):
        return list(filter(lambda v: v > 1, x))

    assert "filter() needs the truth value of a tensor" in error(f, df.constant([1, 2]))
    assert "use df.boolean_mask" in error(f, df.constant([1, 2]))


def test_a_scalar_has_no_length():
    def f(x):
        if x > 0:
            return len(x)
        return 0

    assert "A tensor without axes has no len(); df.size(x)" in error(f, df.constant(1))


def test_a_tensor_is_no_index_of_a_list():
    def f(x):
        if x > 0:
            x = [10, 20, 30][x]
        return x

    assert "df.gather instead of list[i]" in error(f, df.constant(1))


def test_the_truth_of_a_vector_is_not_guessed():
    def f(x):
        if x[0] > 0:
            return bool(x)
        return False

    with pytest.raises(ValueError, match=r"The condition of bool\(\) has shape \(2,\), but must be a scalar"):
        df.function(f)(df.constant([1, 2]))
