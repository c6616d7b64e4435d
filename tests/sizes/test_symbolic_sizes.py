"""Symbolic sizes evaluate to what the same expression of their bound numbers gives."""

from __future__ import annotations

import operator
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualflow.core.shape import Shape, broadcast
from dualflow.sizes.size_functions import (
    broadcast_size,
    inferred_size,
    is_at_most,
    largest,
    normalized_index,
    slice_bounds,
    smallest,
    substitute,
)
from dualflow.sizes.symbolic_sizes import (
    SIZE_DECISIONS,
    SymInt,
    UndecidedSize,
    bind_sizes,
    bounds,
    evaluate_size,
    size_function,
    size_variable,
    size_variables,
    typical,
    variable_of,
)

N, M = size_variable(least=0), size_variable(least=0)
SIGNED = size_variable()
VARIABLES = {name: variable_of(x) for name, x in (("n", N), ("m", M), ("s", SIGNED))}
NUMBERS = st.fixed_dictionaries({"n": st.integers(0, 20), "m": st.integers(0, 20), "s": st.integers(-20, 20)})


def run(size, sizes):
    return evaluate_size(size, {VARIABLES[name]: value for name, value in sizes.items()})


LEAVES = st.one_of(
    st.integers(-5, 5).map(lambda k: (k, lambda v: k)),
    st.sampled_from([(N, lambda v: v["n"]), (M, lambda v: v["m"]), (SIGNED, lambda v: v["s"])]),
)


def joined(pair):
    (x, fx), (y, fy), op = pair
    operators = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "largest": largest,
        "smallest": smallest,
    }
    plain = {**operators, "largest": max, "smallest": min}
    return operators[op](x, y), lambda v: plain[op](fx(v), fy(v))


EXPRESSIONS = st.recursive(
    LEAVES,
    lambda parts: st.tuples(parts, parts, st.sampled_from(["+", "-", "*", "largest", "smallest"])).map(
        joined
    ),
    max_leaves=6,
)


@given(EXPRESSIONS, NUMBERS)
def test_expressions_have_the_value_of_the_same_expression_of_numbers(expression, sizes):
    size, value = expression
    assert run(size, sizes) == value(sizes)


@given(EXPRESSIONS, EXPRESSIONS, st.sampled_from(["largest", "smallest"]), NUMBERS)
def test_sizes_that_bounds_order_are_ordered_in_every_run(first, second, kind, sizes):
    x, y = first[0], second[0]
    extreme = largest(x, y) if kind == "largest" else smallest(x, y)
    for smaller, larger in ((x, extreme), (extreme, x), (x, y), (x * 2, extreme * 2), (x, extreme * N)):
        if is_at_most(smaller, larger):
            assert run(smaller, sizes) <= run(larger, sizes)


def test_extremes_are_compared_by_their_operands():
    shorter, longer = (largest(N - count, 0) * 4 * M for count in (2, 1))
    assert is_at_most(shorter, longer)
    assert not is_at_most(longer, shorter)


@given(EXPRESSIONS, st.integers(1, 7), NUMBERS)
def test_quotients_and_remainders_round_down(expression, divisor, sizes):
    size, value = expression
    assert run(size // divisor, sizes) == value(sizes) // divisor
    assert run(size % divisor, sizes) == value(sizes) % divisor


@given(EXPRESSIONS, NUMBERS)
def test_values_are_within_their_bounds(expression, sizes):
    size, value = expression
    low, high = bounds(size)
    assert low is None or low <= value(sizes)
    assert high is None or value(sizes) <= high


@given(EXPRESSIONS, EXPRESSIONS, NUMBERS)
def test_decided_comparisons_hold_in_every_run(first, second, sizes):
    (x, fx), (y, fy) = first, second
    if x == y:
        assert fx(sizes) == fy(sizes)
    try:
        less = x < y
    except UndecidedSize:
        return
    assert less == (fx(sizes) < fy(sizes))


ENDS = st.none() | st.integers(-9, 9)


@given(ENDS, ENDS, st.sampled_from([-3, -2, -1, 1, 2, 3]), NUMBERS)
def test_slices_of_any_size_are_pythons(start, stop, step, sizes):
    begin, count = slice_bounds(start, stop, step, N)
    taken = range(*slice(start, stop, step).indices(sizes["n"]))
    assert run(count, sizes) == len(taken)
    if len(taken):
        assert run(begin, sizes) == taken[0]


@given(st.sampled_from([-2, -1, 1, 2]), NUMBERS)
def test_slices_between_any_ends_are_pythons(step, sizes):
    begin, count = slice_bounds(SIGNED, M, step, N)
    taken = range(*slice(sizes["s"], sizes["m"], step).indices(sizes["n"]))
    assert run(count, sizes) == len(taken)
    if len(taken):
        assert run(begin, sizes) == taken[0]


@given(NUMBERS)
def test_sizes_broadcast_and_are_inferred(sizes):
    assert run(broadcast_size(N, M), sizes) == (sizes["m"] if sizes["n"] == 1 else sizes["n"])
    assert run(inferred_size(SIGNED, M), sizes) == (sizes["m"] if sizes["s"] == -1 else sizes["s"])
    assert run(normalized_index(SIGNED, N), sizes) == sizes["s"] + (sizes["n"] if sizes["s"] < 0 else 0)


AXES = [size_variable(least=0) for _ in range(3)]
TREES = st.recursive(st.integers(0, 2), lambda trees: st.tuples(trees, trees))


@given(TREES, st.integers(0, 20), st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_a_size_that_is_broadcast_with_an_operand_again_is_the_same(tree, count, is_one):
    operands = set()

    def broadcast(tree):
        if isinstance(tree, tuple):
            return broadcast_size(*map(broadcast, tree))
        operands.add(tree)
        return AXES[tree]

    size = broadcast(tree)
    numbers = [1 if one else count for one in is_one]
    bound = {variable_of(axis): number for axis, number in zip(AXES, numbers, strict=True)}
    assert evaluate_size(size, bound) == next((numbers[i] for i in operands if numbers[i] != 1), 1)
    again = [broadcast_size(*pair) for i in operands for pair in ((size, AXES[i]), (AXES[i], size))]
    assert set(again) == {size}


def test_slices_without_the_first_and_the_last_element_have_one_size():
    size = N
    for count in range(1, 4):
        first, last = (slice_bounds(*ends, 1, size)[1] for ends in ((1, None), (None, -1)))
        assert first == last == largest(N - count, 0)
        size = first


def test_slices_that_leave_out_as_many_elements_have_one_size():
    counts = [slice_bounds(*ends, 1, N)[1] for ends in ((2, None), (1, -1), (None, -2), (0, -2))]
    assert counts == [largest(N - 2, 0)] * 4


def test_operands_that_expressions_share_are_computed_once_at_any_depth():
    def nested():
        size = N
        for _ in range(2000):
            size = size_function("broadcast_size", size, size + M)
        return size

    size = nested()
    assert size == nested()
    assert len(repr(size)) < 1000
    assert size_variables(size) == {VARIABLES["n"], VARIABLES["m"]}
    assert bounds(size) == (0, None)
    assert run(size, {"n": 1, "m": 3}) == run(substitute(size, {VARIABLES["m"]: 3}), {"n": 1}) == 4


def test_equal_polynomials_are_equal_and_no_number_is():
    assert (N + M) * 2 == M + N + M + N
    assert hash(N + 1) == hash(1 + N)
    assert (N * 6 + M * 3) // 3 == 2 * N + M
    assert (N * M) // N == M
    assert N - N == 0
    assert N != 3
    assert N != M


def test_numbers_are_refused():
    for asks in (int, range, bool, float):
        with pytest.raises(UndecidedSize):
            asks(N)
    with pytest.raises(UndecidedSize):
        sorted([N, M])
    with pytest.raises(TypeError):
        N + 0.5  # an operation is what is refused


def test_variables_are_substituted_and_bound():
    assert substitute(N * 2 + 1, {VARIABLES["n"]: M}) == 2 * M + 1
    assert size_variables({"shape": (N, (M, 3))}) == {VARIABLES["n"], VARIABLES["m"]}
    assert bind_sizes((N, 2, (M + 1,)), {VARIABLES["n"]: 4, VARIABLES["m"]: 5}) == (4, 2, (6,))
    assert typical(N * 0 + 7) == 7
    assert typical(N) > 1


def test_pickled_symbolic_sizes_are_equal():
    loaded = pickle.loads(pickle.dumps(largest(N, SIGNED) + M * 2))
    assert isinstance(loaded, SymInt)
    assert loaded == largest(N, SIGNED) + M * 2


def test_estimates_of_a_size_depend_on_the_assumed_variable_alone():
    size = largest(N, M) * 2 + 1
    assert [typical(size, n) for n in (8, 1024, 8)] == [17, 2049, 17]


@given(EXPRESSIONS, EXPRESSIONS)
def test_an_operator_computes_the_result_of_two_operands_once(first, second):
    x, y = first[0] + N * N, second[0] + M * M
    for apply in (operator.add, operator.sub, operator.mul, operator.floordiv):
        assert apply(x, y) is apply(x, y)
        assert apply(x, 3) is apply(x, 3)


class _NoComparisons:
    def equal(self, x: int, y: int) -> bool:
        raise AssertionError(f"{x} == {y}")

    less = equal


def test_arithmetic_compares_no_sizes_of_a_call():
    token = SIZE_DECISIONS.set(_NoComparisons())
    try:
        results = [M + (-N), M + (-2 * N), M * (N - 1), M * (N - 2)]
    finally:
        SIZE_DECISIONS.reset(token)
    numbers = dict(zip([*size_variables(N), *size_variables(M)], (5, 7), strict=True))
    assert [evaluate_size(x, numbers) for x in results] == [2, -3, 28, 21]


def test_an_operator_refuses_numbers_that_equal_an_int_with_a_kept_result():
    assert (N + 1) * 2 == 2 * N + 2
    for equal_to_one in (1.0, True):
        with pytest.raises(TypeError):
            N + equal_to_one
        with pytest.raises(TypeError):
            (N + 1) * (equal_to_one + 1.0)


def test_sizes_that_broadcast_to_one_of_them_in_every_run_are_not_compared():
    token = SIZE_DECISIONS.set(_NoComparisons())
    try:
        result = broadcast([Shape([N, 1, M]), Shape([1, 3, M]), Shape([3, M])])
    finally:
        SIZE_DECISIONS.reset(token)
    assert list(result) == [N, 3, M]
