"""Which functions are converted, where their source is read from, and how often code runs while tracing."""
# The statements are what is tested, not what they could be shortened to.

from __future__ import annotations

import functools
import linecache
import subprocess
import sys

import pytest

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError, OperatorNotAllowedInGraphError

SOURCE = "def f(x):\n    if x > 0:\n        return x * 2\n    return -x\n"


def defined(filename):
    names = {}
    exec(compile(SOURCE, filename, "exec"), names)
    return names["f"]


def test_code_of_a_notebooks_cell_is_converted():
    """As IPython does, which registers each cell's source under a name of its own."""
    name = "<ipython-input-1-0123456789ab>"
    linecache.cache[name] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), name)
    try:
        f = df.function(defined(name))
        assert [int(f(df.constant(x))) for x in (3, -3)] == [6, 3]
    finally:
        del linecache.cache[name]


@pytest.mark.parametrize("name", ["<string>", "<stdin>"])
def test_code_without_source_reports_it_and_what_to_do(name):
    with pytest.raises(OperatorNotAllowedInGraphError) as caught:
        df.function(defined(name))(df.constant(1))
    (note,) = [n for n in caught.value.__notes__ if "not converted" in n]
    assert "f can't be converted: its source is not available, as for code from exec, " in note
    assert f'(File "{name}", line 1)' in note
    assert "Define it in a file, or choose with df.cond and df.where and loop with df.while_loop." in note


def test_code_without_source_that_tests_no_tensor_needs_none():
    names = {}
    exec("def f(x, flag):\n    return x * 2 if flag else x\n", names)
    assert int(names["f"](df.constant(3), True)) == 6
    assert int(df.function(names["f"])(df.constant(3), True)) == 6


def test_a_called_function_without_source_is_named():
    g = defined("<string>")

    @df.function
    def f(x):
        if x > 100:
            return x
        return g(x)

    with pytest.raises(OperatorNotAllowedInGraphError) as caught:
        f(df.constant(1))
    assert any("f can't be converted" in n and '"<string>", line 1' in n for n in caught.value.__notes__)


KEPT = sys.version_info >= (3, 13)
"""Whether Python keeps the source of ``python -c``."""

COND = (
    "import dualflow as df\nf = df.function(lambda x: x if x > 0 else -x)\nprint(int(f(df.constant(-7))))\n"
)


def test_python_c_is_converted_where_python_keeps_its_source():
    done = subprocess.run([sys.executable, "-c", COND], capture_output=True, text=True, check=False)
    if KEPT:
        assert done.stdout == "7\n"
    else:
        assert done.returncode == 1
        assert "OperatorNotAllowedInGraphError" in done.stderr
        assert "The function was not converted" in done.stderr
        assert "Define it in a file" in done.stderr


def test_code_from_exec_is_not_taken_for_that_of_python_c():
    """Both are called <string>, and begin at line 1."""
    code = "def f(x): return x if x > 0 else -x\n"
    other = "def f(x): return x if x < 0 else -x\n"
    program = f"{code}names = {{}}\nexec({other!r}, names)\n"
    program += "import dualflow as df\ndf.function(names['f'])(df.constant(2))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "its source is not available" in done.stderr


def test_a_script_is_converted(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(f"import dualflow as df\n\n@df.function\n{SOURCE}\nprint(int(f(df.constant(-7))))\n")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "7\n"


def test_lambdas_that_share_a_line():
    first, second = df.function(lambda x: x if x > 0 else -x), df.function(lambda y: y if y < 0 else -y)
    assert (int(first(df.constant(-2))), int(second(df.constant(2)))) == (2, -2)


# which functions


def test_do_not_convert_leaves_what_it_decorates():
    @df.autograph.do_not_convert
    def g(x):
        return x if x > 0 else -x

    @df.autograph.experimental.do_not_convert()
    def h(x):
        return x if x > 0 else -x

    for leave in (g, h):
        with pytest.raises(OperatorNotAllowedInGraphError, match="bool"):
            df.function(lambda x, leave=leave: leave(x) if x < 100 else x)(df.constant(1))


def test_functions_of_other_packages_run_as_they_are_written():
    @df.function
    def f(x):
        if x > 0:
            x = x + functools.reduce(max, (1, 2))
        return x

    assert int(f(df.constant(1))) == 3


def test_a_wrapper_and_what_it_wraps_are_converted():
    def checked(function):
        @functools.wraps(function)
        def inner(x):
            if x < 0:
                x = x * 0
            return function(x)

        return inner

    @df.function
    @checked
    def f(x):
        if x > 5:
            x = x * 10
        return x

    assert [int(f(df.constant(x))) for x in (-1, 3, 7)] == [0, 3, 70]


def test_static_and_class_methods_are_converted():
    class Model:
        low = 2

        @staticmethod
        def double(x):
            return x * 2 if x > 0 else x

        @classmethod
        def clipped(cls, x):
            return cls.double(x) if x > cls.low else x

    f = df.function(lambda x: Model.clipped(x) if x < 100 else x)
    assert [int(f(df.constant(x))) for x in (1, 3, -3, 200)] == [1, 6, -3, 200]


def test_properties_are_converted_where_they_are_methods():
    class Model:
        def __init__(self):
            self.layers = [self.first, functools.partial(self.second, scale=3)]

        def first(self, x):
            return x if x > 0 else -x

        def second(self, x, *, scale):
            return x * scale if x < 10 else x

        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    f = df.function(Model())
    assert [int(f(df.constant(x))) for x in (-2, 3, 20)] == [6, 9, 20]


def test_to_code_shows_the_source_and_raises_where_there_is_none():
    assert "ag__.if_stmt" in df.autograph.to_code(df.function(SHOWN))
    with pytest.raises(InvalidArgumentError, match="can't be converted"):
        df.autograph.to_code(defined("<string>"))


def SHOWN(x):
    if x > 0:
        x = -x
    return x


# functions that are given to functions


def halved_below(x):
    if x < 10.0:
        x = x / 2.0
    return x


def grown(total, x):
    if x > 1.0:
        total = total + x
    return total


CALLERS = {
    "map_fn": lambda x: df.map_fn(halved_below, x),
    "vectorized_map": lambda x: df.vectorized_map(lambda v: df.where(v < 10.0, v / 2.0, v), x),
    "foldl": lambda x: df.foldl(grown, x),
    "foldr": lambda x: df.foldr(grown, x, initializer=df.constant(0.0)),
    "scan": lambda x: df.scan(grown, x),
    "while_loop": lambda x: df.while_loop(
        lambda i, v: i < 2, lambda i, v: (i + 1, grown(v, x[i])), (0, x[0])
    )[1],
    "cond": lambda x: df.cond(x[0] > 0.0, lambda: halved_below(x[1]), lambda: x[0]),
    "switch_case": lambda x: df.switch_case(
        df.cast(x[0], df.int32), [lambda: x[0], lambda: halved_below(x[2])]
    ),
    "case": lambda x: df.case([(x[0] > 5.0, lambda: x[0])], default=lambda: halved_below(x[2])),
    "partial": lambda x: functools.partial(grown, x[0])(x[2]),
    "sorted": lambda x: sorted([3.0, 1.0], key=lambda v: -v)[0] * halved_below(x[0]),
    "map": lambda x: sum(map(halved_below, list(x))),
    "reduce": lambda x: functools.reduce(grown, [x[0], x[1], x[2]]),
}


@pytest.mark.parametrize("name", CALLERS)
@pytest.mark.parametrize("converted", [False, True], ids=["at once", "in converted code"])
def test_functions_given_to_functions_are_converted(name, converted):
    call = CALLERS[name]

    def f(x):
        if converted and x[0] > 1000.0:
            x = x * 0.0
        return call(x)

    x = df.constant([1.0, 12.0, 4.0])
    assert df.function(f)(x).numpy().tolist() == f(x).numpy().tolist()


def test_a_custom_gradients_functions_are_converted():
    @df.custom_gradient
    def clipped(x):
        def grad(g):
            if g > 1.0:
                g = g * 10.0
            return g

        y = x if x < 5.0 else x * 0.0 + 5.0
        return y, grad

    def slope(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = clipped(x) * x
        return tape.gradient(y, x)

    for number in (0.5, 3.0, 7.0):
        x = df.constant(number)
        assert df.function(slope)(x).numpy() == slope(x).numpy()


NO_SOURCE = """
import dualflow as df
@df.function
def f(x):
    if x > 0.0:
        return x
    return -x
f(df.constant(1.0))
"""


@pytest.mark.parametrize(
    ("words", "typed", "kept"),
    [
        (["-c", NO_SOURCE], None, KEPT),
        (["-c", f"exec({NO_SOURCE!r})"], None, False),
        (["-"], NO_SOURCE, False),
    ],
    ids=["python -c", "exec", "standard input"],
)
def test_code_without_source_is_refused_in_one_traceback(words, typed, kept):
    done = subprocess.run([sys.executable, *words], input=typed, capture_output=True, text=True, check=False)
    if kept:
        assert (done.returncode, done.stderr) == (0, "")
        return
    assert done.stderr.count("Traceback") == 1
    assert "its source is not available" in done.stderr


# how often Python runs


def test_a_function_with_a_tensor_condition_is_traced_once(capsys):
    traces = []

    @df.function
    def f(x):
        traces.append(1)
        print("tracing")
        y = x * 2
        if y > 0:
            y = y + 1
        return y

    f(df.constant(1))
    assert len(traces) == 1
    assert capsys.readouterr().out == "tracing\n"


def test_closures_of_one_code_are_read_apart():
    def caller(function):
        def call(x):
            return function(x)

        return call

    def double(x):
        return x * 2

    def absolute(x):
        traces.append(1)
        return x if x > 0 else -x

    traces = []
    twice, size = caller(double), caller(absolute)
    for order in (lambda x: twice(x) + size(x), lambda x: size(x) + twice(x)):
        traces.clear()
        assert df.function(order)(df.constant(-3)).numpy() == -3
        assert len(traces) == 1


def test_a_caller_of_a_function_with_a_tensor_condition_is_traced_once():
    traces = []

    def g(x, *, limit):
        return x if x > limit else -x

    class Model:
        def call(self, x):
            traces.append(2)
            for _ in range(2):
                x = g(x, limit=3)
            return x

    model = Model()

    @df.function
    def f(x):
        traces.append(1)
        return model.call(x + 1)

    f(df.constant(1))
    assert traces == [1, 2]


PYTHONS_TESTS = """
import dualflow as df

def f(x, n):
    {body}

x = df.constant([1.0, 2.0])
print(df.convert_to_tensor(df.function(f)(x, 3) == f(x, 3)).numpy().all())
"""
BODIES = [
    "return x * 2.0 if n else x",
    "return [x][0] if n in (1, 2) else x",
    "if x.shape[0] > 1 and x.dtype == df.float32:\n        x = x + 1.0\n    return x",
    "for w in [x, x]:\n        x = x * w\n    return x",
    "if x is None or len(x) == 5 or isinstance(x, int):\n        return n\n    return x",
    "y = df.reduce_sum(x)\n    for i in range(n):\n        y = y + i\n    return y",
    "return sum([w * 2.0 for w in (x, x)], 0.0)",
    "assert n, 'n'\n    return x",
]
EACH_IN_A_CHILD = """
import os, runpy, sys
import dualflow

for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        runpy.run_path(path)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, path
"""


def test_code_whose_tests_are_pythons_gives_what_python_gives(tmp_path):
    """Each program runs in a child of a process that has converted nothing."""
    paths = [tmp_path / f"program{number}.py" for number in range(len(BODIES))]
    for path, body in zip(paths, BODIES, strict=True):
        path.write_text(PYTHONS_TESTS.format(body=body), encoding="utf-8")
    command = [sys.executable, "-c", EACH_IN_A_CHILD, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n" * len(BODIES)


TABLE = {"larger": lambda x: x if x > 0 else -x, "smaller": lambda x: x if x < 0 else -x}
LATER = [(lambda x: x if x > 1 else
          x * 0), (lambda x, y=3: y if x > 1 else x), (lambda x, y=5: y if x > 1 else x)]  # fmt: skip


def test_lambdas_with_the_same_parameters_may_share_a_line():
    """Python 3.11 keeps the columns of code, which distinguish them."""
    for f in (*TABLE.values(), *LATER):
        for number in (3, -3):
            assert int(df.function(f)(df.constant(number))) == int(f(df.constant(number)))


def test_errors_in_a_lambda_name_its_line(tmp_path, load):
    f = load(tmp_path, "import dualflow as df\n\nfirst, f = lambda x: x, lambda x: 1 if x > 0 else 1.5\n")
    with pytest.raises(DTypeError, match="cast one of them") as caught:
        df.function(f)(df.constant(1))
    assert f'File "{tmp_path}/program.py", line 3' in str(caught.value)
