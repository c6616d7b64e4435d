"""Symbolic sizes compute as the numbers that their variables are bound to."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualflow.sizes.size_functions import (
    broadcast_size,
    inferred_size,
    largest,
    normalized_index,
    slice_bounds,
    smallest,
    substitute,
)
from dualflow.sizes.symbolic_sizes import (
    SymInt,
    UndecidedSize,
    bind_sizes,
    bounds,
    evaluate_size,
    size_variable,
    size_variables,
    typical,
    variable_of,
)

N, M = size_variable(least=0), size_variable(least=0)
SIGNED = size_variable()
VARIABLES = {name: variable_of(x) for name, x in (("n", N), ("m", M), ("s", SIGNED))}
NUMBERS = st.fixed_dictionaries({"n": st.integers(0, 20), "m": st.integers(0, 20), "s": st.integers(-20, 20)})


def run(found, given):
    return evaluate_size(found, {VARIABLES[name]: value for name, value in given.items()})


LEAVES = st.one_of(
    st.integers(-5, 5).map(lambda k: (k, lambda v: k)),
    st.sampled_from([(N, lambda v: v["n"]), (M, lambda v: v["m"]), (SIGNED, lambda v: v["s"])]),
)


def joined(pair):
    (x, fx), (y, fy), op = pair
    known = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "largest": largest,
        "smallest": smallest,
    }
    plain = {**known, "largest": max, "smallest": min}
    return known[op](x, y), lambda v: plain[op](fx(v), fy(v))


EXPRESSIONS = st.recursive(
    LEAVES,
    lambda parts: st.tuples(parts, parts, st.sampled_from(["+", "-", "*", "largest", "smallest"])).map(
        joined
    ),
    max_leaves=6,
)


@given(EXPRESSIONS, NUMBERS)
def test_expressions_have_the_value_of_the_same_expression_of_numbers(expression, given):
    found, value = expression
    assert run(found, given) == value(given)


@given(EXPRESSIONS, st.integers(1, 7), NUMBERS)
def test_quotients_and_remainders_round_down(expression, divisor, given):
    found, value = expression
    assert run(found // divisor, given) == value(given) // divisor
    assert run(found % divisor, given) == value(given) % divisor


@given(EXPRESSIONS, NUMBERS)
def test_values_are_within_their_bounds(expression, given):
    found, value = expression
    low, high = bounds(found)
    assert low is None or low <= value(given)
    assert high is None or value(given) <= high


@given(EXPRESSIONS, EXPRESSIONS, NUMBERS)
def test_decided_comparisons_hold_in_every_run(first, second, given):
    (x, fx), (y, fy) = first, second
    if x == y:
        assert fx(given) == fy(given)
    try:
        less = x < y
    except UndecidedSize:
        return
    assert less == (fx(given) < fy(given))


ENDS = st.none() | st.integers(-9, 9)


@given(ENDS, ENDS, st.sampled_from([-3, -2, -1, 1, 2, 3]), NUMBERS)
def test_slices_of_any_size_are_pythons(start, stop, step, given):
    begin, count = slice_bounds(start, stop, step, N)
    taken = range(*slice(start, stop, step).indices(given["n"]))
    assert run(count, given) == len(taken)
    if len(taken):
        assert run(begin, given) == taken[0]


@given(st.sampled_from([-2, -1, 1, 2]), NUMBERS)
def test_slices_between_any_ends_are_pythons(step, given):
    begin, count = slice_bounds(SIGNED, M, step, N)
    taken = range(*slice(given["s"], given["m"], step).indices(given["n"]))
    assert run(count, given) == len(taken)
    if len(taken):
        assert run(begin, given) == taken[0]


@given(NUMBERS)
def test_sizes_broadcast_and_are_inferred(given):
    assert run(broadcast_size(N, M), given) == (given["m"] if given["n"] == 1 else given["n"])
    assert run(inferred_size(SIGNED, M), given) == (given["m"] if given["s"] == -1 else given["s"])
    assert run(normalized_index(SIGNED, N), given) == given["s"] + (given["n"] if given["s"] < 0 else 0)


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
    found = pickle.loads(pickle.dumps(largest(N, SIGNED) + M * 2))
    assert isinstance(found, SymInt)
    assert found == largest(N, SIGNED) + M * 2
