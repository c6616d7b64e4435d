"""A variable first assigned by a loop over tensors: if no iteration has run, reading it is Python's error."""

import pytest

import dualflow as df
from dualflow.core.errors import InvalidArgumentError, UnassignedError

ROWS = df.TensorSpec([None], df.float32)
NONE, SOME = df.zeros([0]), df.constant([3.0, 5.0])


def last_of(rows):
    for x in rows:
        last = x
    return last


def counted(n):
    i = df.constant(0)
    while i < n:
        double = i * 2
        i += 1
    return double


def scaled(x, n):
    i = df.constant(0)
    while i < n:
        double = x * 2.0
        i += 1
    return double


def unused(rows):
    total = 0.0
    for x in rows:
        last = x
        total += last
    return total


def last_or_default(rows):
    for x in rows:
        last = x
    if df.size(rows) == 0:
        last = -1.0
    return last


def read_under_a_condition(rows):
    for x in rows:
        last = x
    if df.size(rows) > 0:
        return last * 2.0
    return df.constant(7.0)


def pair_of(rows):
    for x in rows:
        last = [x, x + 1.0]
    return last[1]


def nested(rows, columns):
    for x in rows:
        for y in columns:
            product = x * y
    return product


def nested_and_read_in_the_iteration(rows, columns):
    for x in rows:
        for y in columns:
            product = x * y
        double = product * 2.0
    return double


def continued(rows, columns):
    for x in rows:
        last = x
    for y in columns:
        last = last + y
    return last


def replaced(rows, columns):
    for x in rows:
        last = x
    for y in columns:
        last = y
    return last


def carried_on_and_not_read(rows, columns):
    for x in rows:
        last = x
    for y in columns:
        last = y + 1.0
    if df.size(columns) > 0:
        return last
    return df.constant(7.0)


def assigned_in_the_second_iteration(t):
    for i in range(3):
        if i == 1:
            second = t + 1.0
        if df.cast(i, df.float32) > t:
            break
    return second


def halved(x):
    while df.reduce_sum(x) > 10.0:
        y = x * 0.5
        x = y
    return y + x


def prefix(n):
    i = 0
    while i < n:
        v = df.range(i)
        i += 1
    return v


def drawn_sizes(n):
    i = 0
    while i < n:
        size = df.random.uniform((), i, i + 1, df.int32)
        v = [df.zeros([1, size]), df.ones([size, 2])]
        i += 1
    return df.concat([df.reshape(v[0], [-1]), df.reshape(v[1], [-1])], 0)


def first_prefix(n):
    for i in df.range(n):
        if i * i > 7:
            return df.range(i)
    return df.range(n)


def compiled(f):
    return df.function(f, input_signature=[ROWS] * f.__code__.co_argcount)


@pytest.mark.parametrize("f", [last_of, pair_of])
@pytest.mark.parametrize("make", [df.function, compiled])
def test_reading_a_variable_that_no_iteration_assigned_is_an_error(f, make):
    with pytest.raises(UnassignedError, match="'last' has no value"):
        make(f)(NONE)


def test_so_it_is_in_python():
    with pytest.raises(UnboundLocalError):
        last_of([])


def test_the_error_is_pythons_and_tensorflows_and_names_the_line():
    with pytest.raises(UnboundLocalError, match=r"test_unassigned\.py.*in last_of") as caught:
        df.function(last_of)(NONE)
    assert isinstance(caught.value, InvalidArgumentError)


@pytest.mark.parametrize("f", [last_of, pair_of, last_or_default, read_under_a_condition, unused])
@pytest.mark.parametrize("make", [df.function, compiled])
def test_after_an_iteration_it_has_its_value(f, make):
    assert float(make(f)(SOME)) == float(f(SOME))


@pytest.mark.parametrize("f", [last_or_default, read_under_a_condition, unused])
@pytest.mark.parametrize("make", [df.function, compiled])
def test_where_it_is_not_read_nothing_fails(f, make):
    assert float(make(f)(NONE)) == float(f(NONE))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_while_loop(n):
    if n:
        assert int(df.function(counted)(df.constant(n))) == 2 * (n - 1)
    else:
        with pytest.raises(UnassignedError, match="'double'"):
            df.function(counted)(df.constant(n))


@pytest.mark.parametrize(
    "f", [nested, nested_and_read_in_the_iteration, continued, replaced, carried_on_and_not_read]
)
@pytest.mark.parametrize("rows", [NONE, SOME], ids=["no rows", "rows"])
@pytest.mark.parametrize("columns", [NONE, SOME], ids=["no columns", "columns"])
def test_two_loops_do_what_python_does(f, rows, columns):
    try:
        expected = float(f(rows, columns))
    except UnboundLocalError:
        with pytest.raises(UnassignedError):
            compiled(f)(rows, columns)
    else:
        assert float(compiled(f)(rows, columns)) == expected


@pytest.mark.parametrize("f", [prefix, drawn_sizes, first_prefix])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_its_sizes_may_be_dynamic(f, n):
    try:
        expected = f(df.constant(n)).numpy().tolist()
    except UnboundLocalError:
        with pytest.raises(UnassignedError, match="the loop must iterate at least once to initialize v"):
            df.function(f)(df.constant(n))
    else:
        assert df.function(f)(df.constant(n)).numpy().tolist() == expected


@pytest.mark.parametrize("size", [1, 2, 33])
def test_its_sizes_may_be_those_of_an_argument(size):
    f = compiled(halved)
    x = df.fill([size], 30.0)
    assert f(x).numpy().tolist() == halved(x).numpy().tolist()
    with pytest.raises(UnassignedError, match="'y' has no value"):
        f(x * 0.0)


def test_an_iteration_that_runs_only_if_a_tensor_is_true():
    f = df.function(assigned_in_the_second_iteration)
    assert float(f(df.constant(1.5))) == 2.5
    with pytest.raises(UnassignedError, match="'second'"):
        f(df.constant(-0.5))


def test_its_gradient_is_an_error_too():
    @df.function
    def slope(x, n):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = scaled(x, n)
        return tape.gradient(y, x)

    x = df.constant(3.0)
    assert float(slope(x, df.constant(4))) == 2.0
    with pytest.raises(UnassignedError, match="'double'"):
        slope(x, df.constant(0))
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.function(scaled)(x, df.constant(4))
    assert float(tape.gradient(y, x)) == 2.0


def test_the_check_is_machine_code():
    f = df.function(last_of)
    f(SOME)
    assert "numpy" not in str(f.status())
    assert "native" in str(f.status())


def read_in_a_branch(x, flag):
    if flag:
        value = x
    if not flag:
        x = x + value
    return x


def closure_read_in_a_branch(x, flag):
    def add(y):
        if flag:
            y = y + value
        return y

    y = add(x)
    value = x
    return y + value


@pytest.mark.parametrize(("f", "flag"), [(read_in_a_branch, False), (closure_read_in_a_branch, True)])
def test_a_branch_that_reads_an_unassigned_variable_raises_pythons_error(f, flag):
    with pytest.raises(NameError) as expected:
        f(1.0, flag)
    with pytest.raises(NameError) as caught:
        df.function(f)(df.constant(1.0), flag)
    assert type(caught.value) is type(expected.value)
    assert str(caught.value) == str(expected.value)
    lines = [
        [frame.lineno for frame in error.traceback if str(frame.path) == __file__]
        for error in (expected, caught)
    ]
    assert lines[0][-1] == lines[1][-1]
