"""The steps of AutoGraph's conversion, and that Python's own tools see the user's code in what it makes."""
# The statements are what is tested, not what they could be shortened to.
# ruff: noqa: SIM108, RET505

from __future__ import annotations

import ast
import gc
import importlib
import linecache
import subprocess
import sys
import textwrap
import traceback

import pytest

import dualflow as df
from dualflow.function.autograph.builtins import OVERLOADS
from dualflow.function.autograph.jumps import without_jumps
from dualflow.function.autograph.liveness import Liveness
from dualflow.function.autograph.parsing import parsed
from dualflow.function.autograph.plain_functions import is_plain
from dualflow.function.autograph.python_values import OVERLOADED
from dualflow.function.autograph.scope_analysis import Namer, ScopeNames, free_names


def body_of(source: str) -> list[ast.stmt]:
    return ast.parse(textwrap.dedent(source)).body


def names_of(source: str) -> ScopeNames:
    return ScopeNames.of(body_of(source))


# scope analysis


@pytest.mark.parametrize(
    ("source", "reads", "binds"),
    [
        ("x = y + x", {"x", "y"}, {"x"}),
        ("x += 1", {"x"}, {"x"}),
        ("x = 1; y = x", set(), {"x", "y"}),
        ("a, (b, *c) = z", {"z"}, {"a", "b", "c"}),
        ("del x", {"x"}, {"x"}),
        ("(y := f(x)) + y", {"f", "x"}, {"y"}),
        ("[v + k for v in x if v]", {"x", "k"}, set()),
        ("[z := v for v in x]", {"x"}, {"z"}),
        ("import a.b, c as d", set(), {"a", "d"}),
        ("f = lambda v, k=j: v + w", {"j", "w"}, {"f"}),
        ("def f(v):\n  u = v + w\n  return u", {"w"}, {"f"}),
        ("class C(B):\n  k = m", {"B", "m"}, {"C"}),
        ("try:\n  f()\nexcept E as e:\n  pass", {"f", "E"}, {"e"}),
        ("for i, j in x:\n  y = i", {"x"}, {"i", "j", "y"}),
        ("with a as b:\n  pass", {"a"}, {"b"}),
        ("x: T = y", {"y"}, {"x"}),
    ],
)
def test_names_that_statements_read_and_bind(source, reads, binds):
    names = names_of(source)
    assert (names.reads, names.binds) == (reads, binds)


def test_places_are_names_attributes_and_items():
    names = names_of("a.b = 1; a.b['c'] = 2; a[i] = 3; f().x = 4; a[i + 1] = 5")
    assert set(names.targets) == {"a.b", "a.b['c']", "a[i]"}


def test_free_names_of_functions_inside():
    (function,) = body_of(
        """
        def f(a):
            nonlocal n
            global g
            n = g = a
            def inner():
                return a + outside
            return inner
        """
    )
    assert free_names(function) == {"n", "outside"}


# jumps and liveness


def jumpless(source: str) -> str:
    body = body_of(source)
    (function,) = [n for n in body if isinstance(n, ast.FunctionDef)]
    function.body = without_jumps(function.body, Namer(function))
    return ast.unparse(ast.fix_missing_locations(function))


def test_a_return_at_the_end_stays():
    source = "def f(x):\n    with a:\n        return x"
    assert jumpless(source) == source


def test_code_after_a_returning_branch_becomes_the_other_branch():
    assert jumpless("def f(x):\n    if x:\n        return 1\n    y = 2\n    return y") == textwrap.dedent(
        """\
        def f(x):
            do_return = False
            retval_ = ag__.UNRETURNED
            if x:
                retval_ = 1
                do_return = True
            else:
                y = 2
                retval_ = y
                do_return = True
            return ag__.returned(retval_, do_return)"""
    )


def test_a_break_is_a_part_of_the_loops_test():
    assert jumpless(
        "def f(x):\n    while x:\n        if a:\n            break\n        x = b"
    ) == textwrap.dedent(
        """\
        def f(x):
            break_ = False
            while not break_ and x:
                if a:
                    break_ = True
                else:
                    x = b"""
    )


def test_flags_have_names_that_are_not_in_use():
    assert "break__1 = True" in jumpless("def f(break_):\n    while x:\n        if a:\n            break")


def live_after(source: str, kind: type[ast.stmt]) -> set[str]:
    body = body_of(source)
    liveness = Liveness(body, frozenset())
    (node,) = [n for s in body for n in ast.walk(s) if isinstance(n, kind)]
    return set(liveness.after[node])


@pytest.mark.parametrize(
    ("source", "kind", "live"),
    [
        ("if a:\n  x = 1\nx = 2\ny = x", ast.If, set()),
        ("if a:\n  x = 1\ny = x", ast.If, {"x"}),
        ("if a:\n  x = 1\nx += 2", ast.If, {"x"}),
        ("while a:\n  t = x\n  x = t\nreturn x", ast.While, {"a", "x"}),
        ("for i in r:\n  x = y\n  y = i", ast.For, {"y"}),
        ("for i in r:\n  if i:\n    x = 1\n  y = x", ast.If, {"x"}),
        ("def g():\n  return x\nif a:\n  x = 1\ng()", ast.If, {"g", "x"}),
        ("try:\n  if a:\n    x = 1\n  x = f()\nexcept E:\n  y = x", ast.If, {"f", "x", "E"} - {"E"}),
    ],
)
def test_names_that_are_read_later(source, kind, live):
    assert live_after(source, kind) == live


# the source of one function


def load_module(path, name, text):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCES = """
import functools
class C:
    @functools.lru_cache(
        maxsize=None
    )
    def method(self, x):
        text = '''
left of everything
'''
        if x:
            return text

    other = [lambda x: (x + 1), lambda y: (y, (
        y
    )), lambda z: (lambda z: z)][2]
def one_line(x): return x
def after(): pass
"""


def test_only_the_functions_own_lines_are_parsed(tmp_path):
    module = load_module(tmp_path / "sources.py", "sources", SOURCES)
    method = parsed(module.C.method.__wrapped__)
    assert (method.name, method.lineno, method.body[1].lineno, method.body[1].col_offset) == (
        "method",
        7,
        11,
        8,
    )
    assert ast.unparse(parsed(module.one_line)) == "def one_line(x):\n    return x"
    assert ast.unparse(parsed(module.C.other)) == "lambda z: lambda z: z"
    inner = module.C.other(1)
    assert ast.unparse(parsed(inner)) == "lambda z: z"
    assert parsed(inner).lineno == 16


def test_a_file_that_has_changed_is_refused(tmp_path):
    path = tmp_path / "changed.py"
    module = load_module(path, "changed", "def f(x):\n    return x if x > 0 else -x\n")
    path.write_text("def g(x):\n    return x\n")
    linecache.checkcache(str(path))
    with pytest.raises(df.errors.InvalidArgumentError, match="the file has changed"):
        df.autograph.to_code(module.f)


# what Python's tools see


def failing(x):
    if x > 0:
        for _ in range(x):
            y = df.reshape(x, [7])  # this line
    return y


def test_tracebacks_have_the_users_file_lines_and_function():
    with pytest.raises(df.errors.InvalidArgumentError) as caught:
        df.function(failing)(df.constant(1))
    frames = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.name == "failing"]
    first = failing.__code__.co_firstlineno
    assert [f.lineno - first for f in frames] == [1, 2, 3]
    assert {f.filename for f in frames} == {__file__}
    assert "this line" in frames[-1].line


def traced_lines(function, *args):
    lines = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename == __file__ and event == "line" and frame.f_code.co_name == "stepped":
            lines.append(frame.f_lineno - stepped.__code__.co_firstlineno)
        return trace

    sys.settrace(trace)
    try:
        function(*args)
    finally:
        sys.settrace(None)
    return lines


def stepped(x):
    y = x
    if x > 0:
        y = x * 2
    else:
        y = -x
    return y


def test_debuggers_and_coverage_see_the_users_lines():
    lines = traced_lines(df.function(stepped), df.constant(1))
    assert set(lines) == {1, 2, 3, 5, 6}
    assert lines[0] == 1
    assert lines[-1] == 6


EQUAL = "def f(x):\n    g = lambda v: v + 1\n    return g(x) if x > 0 else g(-x)\n"


def test_equal_code_of_two_files_names_each_its_own(tmp_path):
    """Equal code objects are of two files, and one of them may die first."""
    for name in ("first", "second"):
        module = load_module(tmp_path / f"{name}.py", name, EQUAL)
        compiled = df.function(module.f)
        assert [int(compiled(df.constant(x))) for x in (3, -3)] == [4, 4]
        origins = [n.origin for n in compiled.concrete_functions[0].graph.nodes if n.origin]
        assert {o.file for o in origins} == {str(tmp_path / f"{name}.py")}
        del module, compiled
        gc.collect()


def test_functions_inside_are_converted_once():
    def outer(x):
        def inner(y):
            return y if y > 0 else -y

        return df.function(inner)(x) + df.map_fn(inner, df.stack([x, x]))[0]

    assert int(df.function(outer)(df.constant(-2))) == 4


# names of the scope around


def countdown(n, x):
    if n == 0 or x > 100:
        return x
    return countdown(n - 1, x * 2)


class Named:
    __limit = 10

    def clipped(self, x):
        __least = x * 0
        if x > self.__limit:
            __least = x * 0 + Named.__limit
        else:
            __least = __least + x
        return __least


class Child(Named):
    def clipped(self, x):
        if x > 3:
            return super().clipped(x) + 1
        else:
            return super().clipped(x)


def test_a_function_of_the_module_calls_itself():
    countdown_compiled = df.function(lambda x: countdown(3, x))
    assert [int(countdown_compiled(df.constant(x))) for x in (1, 60)] == [8, 120]


def test_private_names_and_their_class():
    f = df.function(Named().clipped)
    assert [int(f(df.constant(x))) for x in (5, 50)] == [5, 10]


def test_super_in_a_branch():
    f = df.function(Child().clipped)
    assert [int(f(df.constant(x))) for x in (2, 5, 50)] == [2, 6, 11]


def test_variables_are_shared_with_closures_made_before_a_branch():
    def f(x):
        y = x
        read = lambda: y * 2  # noqa: E731
        if x > 0:
            y = x + 1
        return read()

    compiled = df.function(f)
    assert [int(compiled(df.constant(x))) for x in (1, -1)] == [4, -2]


@pytest.mark.parametrize("kind", [int, df.constant])
def test_eval_and_locals_read_the_functions_variables(kind):
    def f(x):
        z = 3
        if x > 0:
            x = x + eval("z + 1")
            x = x + len(locals()) + eval("q", {"q": 1}) + ("z" in dir())
        return x

    compiled = df.function(f)
    assert int(compiled(kind(1))) == int(f(1)) == 9


def test_a_chained_comparison_evaluates_its_operands_once():
    evaluated = []

    def noted(x):
        evaluated.append(x)
        return x

    def f(x):
        return x if 0 < noted(x) < 10 else -x

    compiled = df.function(f)
    assert int(compiled(df.constant(5))) == 5
    assert len(evaluated) == 1


def test_annotations_of_variables_in_branches():
    def f(x):
        y: int = 3
        if x > 0:
            y: int = x
        return y

    compiled = df.function(f)
    assert [int(compiled(df.constant(x))) for x in (5, -5)] == [5, 3]


def test_an_assignment_in_the_test_of_a_loop_with_else():
    def f(n):
        total = n * 0
        while (n := n - 1) > 0:
            total = total + n
        else:
            total = -total
        return total

    compiled = df.function(f)
    assert [int(compiled(df.constant(x))) for x in (4, 0)] == [-6, 0]


def test_variables_of_an_iteration_keep_no_tensors_of_the_loop():
    def f(n):
        t = 7
        total = 0
        for i in range(n):
            t = i * 2
            total = total + t
        t = 1
        return total + t

    assert int(df.function(f)(df.constant(4))) == 13


def test_the_docstring_and_defaults_of_inner_functions_stay():
    def f(x):
        def inner(y, scale=x * 2):
            """Scaled."""
            if y > 0:
                return y * scale
            return y

        assert inner.__doc__ == "Scaled."
        return inner(x)

    compiled = df.function(f)
    assert [int(compiled(df.constant(x))) for x in (3, -3)] == [18, -3]


# functions without control flow


def halved(x):
    return x / 2.0


table = {"halved": halved}

PLAIN = {
    "one-liner": (lambda x: df.nn.gelu(x) * 2.0, True),
    "a name of a module": (lambda x: df.math.xlogy(x, df.constant(1.0)), True),
    "a call of the user's": (lambda x: halved(x), False),
    "a method": (lambda x: x.sum(), False),
    "what is called by control flow": (lambda x: df.map_fn(halved, x), False),
    "what a call returns": (lambda x: df.recompute_grad(halved)(x), False),
    "an item": (lambda x: table["halved"](x), False),
    "a condition": (lambda x: x if x > 0 else -x, False),
    "a chain": (lambda x: 0 < x < 1, False),
    "a comprehension": (lambda x: df.add_n([v * 2 for v in (x, x)]), False),
    "a star": (lambda x: df.stack([*x]), False),
    "a lambda": (lambda x: df.cond(x > 0, lambda: x, lambda: -x), False),
    "a negation": (lambda x: not x, False),
}


@pytest.mark.parametrize("case", PLAIN)
def test_which_functions_need_no_conversion(case):
    function, expected = PLAIN[case]
    assert is_plain(function) is expected


replaced = df.tanh


def test_names_are_looked_up_at_each_conversion(monkeypatch):
    """What a function calls is kept by its code, of which a test makes many functions."""
    functions = [lambda x: replaced(x) for _ in range(2)]
    assert [is_plain(f) for f in functions] == [True, True]
    monkeypatch.setitem(globals(), "replaced", halved)
    assert [is_plain(f) for f in functions] == [False, False]


def test_a_parameter_hides_the_modules_name():
    def f(df, x):
        return df.add(x, 1)

    assert not is_plain(f)


def test_a_free_variable_names_a_function_only_if_it_is_a_module():
    """Another one may be assigned a function with control flow before a later trace."""

    def plain(tf, tanh):
        functions = [lambda x: tf.tanh(x), lambda x: tanh(x), lambda x: later.tanh(x)]
        answers = [is_plain(f) for f in functions]
        later = df
        return [*answers, is_plain(functions[-1])]

    assert plain(df, df.tanh) == [True, False, False, True]
    assert plain(table, halved) == [False, False, False, True]


def test_unpacking_is_converted():
    def f(x):
        a, b = df.unstack(x)
        return a + b

    assert not is_plain(f)


# plain Python values


def test_the_overloaded_functions_are_listed():
    assert frozenset(OVERLOADS) == OVERLOADED


def test_control_flow_over_pythons_values_imports_nothing_for_tensors(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PYTHONS, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "24.0 []\n"


PYTHONS = """
import sys
import dualflow as df

def layer(x, n=None):
    if n is None or len(range(n)) > 3 and not n == 5:
        return x
    return x * float(n)

@df.function
def f(x):
    for i, w in enumerate([1.0, 2.0, 4.0]):
        x = layer(x, i + 1 if i < 9 else None) if w else x
    a, b = [x * 2.0, x * 2.0]
    return a + b

heavy = [f"dualflow.function.autograph.{name}" for name in ("branches", "loops", "builtins", "unpacking")]
print(f(df.constant(1.0)).numpy(), [name for name in heavy if name in sys.modules])
"""
