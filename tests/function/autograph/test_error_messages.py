"""Errors of control flow that has no graph: what, where in the user's file, why, and what to do."""

from __future__ import annotations

import linecache
import re

import pytest

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.function.errors import RecursiveTraceError

BRANCHES = {
    "a dtype that differs": (
        ["if x > 0:  #", "    y = 1", "else:", "    y = 1.5", "return y"],
        DTypeError,
        "'y' has dtype int32 in the main branch, but dtype float32 in the else branch",
        "cast one of them with df.cast",
    ),
    "a shape that differs": (
        ["if x > 0:  #", "    y = df.zeros([1])", "else:", "    y = df.zeros([2, 1])", "return y"],
        InvalidArgumentError,
        "'y' has shape (1,) in the main branch, but shape (2, 1) in the else branch",
        "give both one shape, or use each inside of its branch alone",
    ),
    "a structure that differs": (
        ["if x > 0:  #", "    y = [x]", "else:", "    y = [x, x]", "return y"],
        InvalidArgumentError,
        "'y' has structure [*] in the main branch, but structure [*, *] in the else branch",
        "both must return the same types of lists, tuples and dicts, of the same lengths",
    ),
    "what is no tensor": (
        ["if x > 0:  #", "    y = {1}", "else:", "    y = {2}", "return y"],
        DTypeError,
        "'y' is a set at the end of the main branch and something else at the end of the other",
        "only tensors, numbers and strings can depend on a tensor",
    ),
    "None": (
        ["y = None", "if x > 0:  #", "    y = x", "return y"],
        InvalidArgumentError,
        "'y' is None at the end of the else branch",
        "give it a tensor in both branches, or in none",
    ),
    "a result that is None": (
        ["if x > 0:  #", "    return None", "return x"],
        InvalidArgumentError,
        "return value is None at the end of the main branch",
        "give it a tensor in both branches, or in none",
    ),
    "a name that the main branch leaves unassigned": (
        ["if x > 0:  #", "    z = 1", "else:", "    y, z = x, 2", "return y + z"],
        InvalidArgumentError,
        "'y' must also be initialized in the main branch",
        "assign it in both branches, or before the `if`",
    ),
    "a name that the else branch leaves unassigned": (
        ["if x > 0:  #", "    y = x", "return y"],
        InvalidArgumentError,
        "'y' must also be initialized in the else branch",
        "assign it in both branches, or before the `if`",
    ),
    "a result that is no tensor": (
        ["for i in range(x):", "    if i > 2:  #", "        return {1}", "return x"],
        DTypeError,
        "return value is {1} on some paths only, and which one runs depends on a tensor",
        "Assign it on all paths, or before",
    ),
    "results of other dtypes": (
        ["if x > 0:  #", "    return 1.5", "return x"],
        DTypeError,
        "return value has dtype float32 in the main branch, but dtype int32 in the else branch",
        "cast one of them with df.cast",
    ),
    "an expression of other dtypes": (
        ["return 1 if x > 0 else 1.5  #"],
        DTypeError,
        "has dtype int32 in the main branch, but dtype float32 in the else branch",
        "cast one of them with df.cast",
    ),
    "a missing return": (
        ["y = x + 1", "if y > 0:  #", "    return y"],
        InvalidArgumentError,
        "the else branch must also have a return statement",
        "Return a value of the same shape and dtype on all paths",
    ),
    "a condition that is no scalar": (
        ["x = df.stack([x, x])", "if x > 0:  #", "    x = -x", "return x"],
        InvalidArgumentError,
        "The condition of an if or assert statement has shape (2,), but must be a scalar",
        "use df.reduce_all or df.reduce_any",
    ),
    "an operand of `and` that is no scalar": (
        ["y = df.stack([x, x])", "if y > 0 and x > 0:  #", "    x = -x", "return x"],
        InvalidArgumentError,
        "The condition of `and` has shape (2,), but must be a scalar",
        "use df.reduce_all or df.reduce_any",
    ),
    "a negation of what is no scalar": (
        ["y = df.stack([x, x])", "if not y:  #", "    x = -x", "return x"],
        InvalidArgumentError,
        "The condition of `not` has shape (2,), but must be a scalar",
        "use df.reduce_all or df.reduce_any",
    ),
}

LOOPS = {
    "a shape that changes": (
        ["y = df.zeros([1])", "while x > 0:  #", "    x -= 1", "    y = df.concat([y, y], 0)", "return y"],
        InvalidArgumentError,
        "'y' has shape (1,) before the loop, but shape (2,) after one iteration",
        "give it its final shape before the loop, or make sizes dynamic by df.autograph.experimental",
    ),
    "a dtype that changes": (
        ["y = x", "while x > 0:  #", "    x -= 1", "    y = df.cast(y, df.float32) / 2.0", "return y"],
        DTypeError,
        "'y' has dtype int32 before the loop, but dtype float32 after one iteration",
        "cast it with df.cast, before the loop or in it",
    ),
    "a dtype that never settles": (
        [
            "y = 0",
            "while x > 0:  #",
            "    x -= 1",
            "    y = df.cast(x, df.float32 if df.convert_to_tensor(y).dtype is df.int32 else df.int32)",
            "return y",
        ],
        DTypeError,
        "The dtypes of a loop's variables change in each iteration",
        "cast them with df.cast",
    ),
    "a list that grows": (
        ["out = [x]", "while x > 0:  #", "    x -= 1", "    out = [*out, x]", "return out"],
        InvalidArgumentError,
        "'out' has structure [*] before the loop, but structure [*, *] after one iteration",
        "collect rows in a df.TensorArray, or concatenate them",
    ),
    "a variable that the loop deletes": (
        ["y = x", "while x > 0:  #", "    x -= 1", "    del y", "return x"],
        InvalidArgumentError,
        "'y' has a value before the loop, but none after one iteration",
        "assign it in the loop, or delete it after the loop",
    ),
    "an object that becomes another": (
        ["y = None", "while x > 0:  #", "    x -= 1", "    y = x", "return y"],
        InvalidArgumentError,
        "'y' is None before the loop, but another object after one iteration",
        "Give it a tensor of its final shape and dtype before the loop",
    ),
    "a set that becomes another": (
        ["y = {1}", "while x > 0:  #", "    x -= 1", "    y = {2}", "return y"],
        InvalidArgumentError,
        "'y' is a set before the loop, but another object after one iteration",
        "Give it a tensor of its final shape and dtype before the loop",
    ),
    "a tensor that becomes another object": (
        ["y = x", "while x > 0:  #", "    x -= 1", "    y = {1}", "return y"],
        DTypeError,
        "'y' is a tensor before the loop, but a set after one iteration",
        "Keep it a tensor, or use another name",
    ),
    "a test that is no scalar": (
        ["y = df.stack([x, x])", "while y > 0:  #", "    y = y - 1", "return y"],
        InvalidArgumentError,
        "The condition of a loop has shape (2,), but must be a scalar",
        "use df.reduce_all or df.reduce_any",
    ),
    "a scalar that is iterated": (
        ["for y in x:  #", "    x = y", "return x"],
        DTypeError,
        "is a scalar, which can't be iterated",
        "use range",
    ),
}

FUNCTIONS = {
    "a tensor as the name of a file": (
        ["return open(x).read()  #"],
        DTypeError,
        "open() needs a name, and <tf.Tensor 'x:0'",
        "Read the file with df.io.read_file",
    ),
    "a predicate that is no scalar": (
        ["return df.cond(df.stack([x, x]) > 0, lambda: x, lambda: x)  #"],
        InvalidArgumentError,
        "cond takes a scalar, not a tensor of shape (2,)",
        "use df.where",
    ),
    "branches of other dtypes": (
        ["return df.cond(x > 0, lambda: 1, lambda: 2.0)  #"],
        DTypeError,
        "A result has dtype int32 in one branch, but dtype float32 in another",
        "cast one of them with df.cast",
    ),
    "branches of other shapes": (
        ["return df.cond(x > 0, lambda: df.zeros([1]), lambda: df.zeros([2, 1]))  #"],
        InvalidArgumentError,
        "A result has shape (1,) in one branch, but shape (2, 1) in another",
        "give both one shape",
    ),
    "branches of other structures": (
        ["return df.switch_case(x, [lambda: x, lambda: [x, x]])  #"],
        InvalidArgumentError,
        "The result has structure [*, *] in one branch, but structure * in another",
        "the same types of lists, tuples and dicts",
    ),
    "no branch at all": (
        ["return df.switch_case(x, [])  #"],
        InvalidArgumentError,
        "switch_case takes at least one branch",
        "",
    ),
    "a loop variable of another dtype": (
        ["return df.while_loop(lambda i: i < x, lambda i: [i + 0.5], [df.constant(0)])  #"],
        DTypeError,
        "Loop variable 0 has dtype int32 before the loop, but dtype float32 after one iteration",
        "cast it with df.cast",
    ),
    "a loop variable of another shape": (
        ["return df.while_loop(lambda y: x > 0, lambda y: [df.concat([y, y], 0)], [df.zeros([1])])  #"],
        InvalidArgumentError,
        "Loop variable 0 has shape (1,) before the loop, but shape (2,) after one iteration",
        "give it its final shape before the loop",
    ),
    "a body of another structure": (
        ["return df.while_loop(lambda i, j: i < x, lambda i, j: [i], [0, 1])  #"],
        InvalidArgumentError,
        "loop_vars has structure [*, *] before the loop, but structure [*] after one iteration",
        "collect rows in a df.TensorArray",
    ),
    "a test of a loop that is no scalar": (
        ["return df.while_loop(lambda y: y > x, lambda y: [y], [df.zeros([2], df.int32)])  #"],
        InvalidArgumentError,
        "cond must return a scalar, not shape (2,)",
        "use df.reduce_all or df.reduce_any",
    ),
}


def message(tmp_path, load, lines, kind):
    """The error's words and notes, and the program's lines."""
    program = ["import dualflow as df", "", "def f(x):", *(f"    {line}" for line in lines)]
    f = load(tmp_path, "\n".join(program) + "\n")
    with pytest.raises(kind) as caught:
        df.function(f)(df.constant(1))
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())]), program


CASES = {**BRANCHES, **LOOPS, **FUNCTIONS}


@pytest.mark.parametrize("case", CASES)
def test_an_error_reports_what_is_wrong_where_and_what_to_do(case, tmp_path, load):
    lines, kind, what, remedy = CASES[case]
    said, program = message(tmp_path, load, lines, kind)
    line = next(i for i, text in enumerate(program, 1) if text.endswith("#"))
    assert what in said
    assert remedy in said
    assert f'File "{tmp_path}/program.py", line {line}, in f' in said


def test_the_source_line_is_shown(tmp_path, load):
    said, program = message(tmp_path, load, *BRANCHES["a dtype that differs"][:2])
    assert "in user code:" in said
    assert f"\n    {program[3].strip()}" in said


def test_recursion_over_tensors_is_refused():
    def factorial(n):
        if n <= 1:
            return df.constant(1)
        return n * factorial(n - 1)

    with pytest.raises(RecursiveTraceError, match="Let a Python number count down"):
        df.function(factorial)(df.constant(3))


def fails(x):
    if x > 0:
        x = df.reshape(x, [7, 7])  # this line
    return x


def test_errors_of_ops_name_the_users_line():
    line = fails.__code__.co_firstlineno + 2
    assert "this line" in linecache.getline(__file__, line)
    with pytest.raises(InvalidArgumentError) as caught:
        df.function(lambda x: fails(x))(df.constant(1.0))
    notes = "\n".join(caught.value.__notes__)
    assert "in user code:" in notes
    assert f'File "{__file__}", line {line}, in fails' in notes


def test_a_list_that_a_loop_over_tensors_fills_reports_what_to_take():
    @df.function
    def f(x):
        rows = []
        for row in x:
            rows.append(row * 2.0)  # noqa: PERF401  # what is tested
        return rows

    with pytest.raises(df.errors.InaccessibleTensorError) as caught:
        f(df.ones([3]))
    for words in ("list comprehension", "df.TensorArray", "df.map_fn", "in f"):
        assert words in str(caught.value)
    assert "loop_body" not in str(caught.value)


def multiplied(x, rows):
    for row in rows:
        x = df.matmul(x, row)  # a vector
    return x


@pytest.mark.parametrize(
    "transform", [df.autodiff.grad, df.autodiff.value_and_grad, df.autodiff.hessian, df.recompute_grad]
)
def test_errors_after_a_transform_name_the_users_lines_alone(transform):
    """The functions that transforms return are dualflow's own, and converted, too."""
    first = multiplied.__code__.co_firstlineno
    with pytest.raises(InvalidArgumentError) as caught:
        df.function(transform(multiplied))(df.ones([2]), df.ones([3, 2]))
    notes = "\n".join(caught.value.__notes__)
    assert [int(line) for line in re.findall(r"line (\d+), in", notes)] == [first + 1, first + 2]
    assert f'File "{__file__}", line {first + 2}, in multiplied' in notes


def test_nodes_name_the_users_lines():
    compiled = df.function(fails_never)
    compiled(df.constant(1.0))
    origins = [n.origin for n in compiled.concrete_functions[0].graph.nodes if n.origin]
    assert {(o.file, o.line) for o in origins} == {(__file__, fails_never.__code__.co_firstlineno + 1)}


def fails_never(x):
    if x > 1.0:
        return df.ones_like(x)
    return x
