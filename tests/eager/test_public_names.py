"""``import dualflow``: the modules it loads, and its public names."""

import subprocess
import sys

import pytest

import dualflow as df


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_loads_no_compiler():
    heavy = "numba llvmlite networkx scipy pandas"
    output = run(f"import sys, dualflow; print([m for m in {heavy.split()!r} if m in sys.modules])")
    assert output == "[]"


@pytest.mark.parametrize(
    "program",
    [
        "import dualflow as df, dualflow.function.tracing.tracer",
        "import dualflow.function.decorator; import dualflow as df",
        "from dualflow.function.tracing.tracer import Tracer; import dualflow as df",
    ],
)
def test_function_is_the_decorator_whatever_was_imported(program):
    assert run(f"{program}; print(df.function(lambda x: x + 1)(df.constant(1)).numpy())") == "2"


def test_submodules_are_reached_by_attribute():
    assert df.math.add is df.add
    assert df.compat.v1.train.Optimizer
    assert df.eager.GradientTape is df.GradientTape
    assert df.errors.InvalidArgumentError
    assert df.random.normal([1]).shape == (1,)


def test_dtypes_have_tensorflows_names():
    assert df.constant(True).dtype is df.bool
    assert (df.double, df.half) == (df.float64, df.float16)
    assert df.TensorShape([None, 2]) == (None, 2)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'dualflow' has no attribute 'nonsense'"):
        df.nonsense  # noqa: B018  # the access is the test


def test_dir_lists_what_is_loaded_later():
    assert "compat" in dir(df)
