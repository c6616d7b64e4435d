"""What ``concrete.kernels`` prints: a file that runs with NumPy and Numba alone, and computes the same."""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df

pytestmark = pytest.mark.exhaustive

BACKENDS = ("llvm", "numba", "numpy")
_serial = itertools.count()


def saved(folder: Path, text: str, name: str) -> Any:
    """The function ``name`` of a file with that text."""
    path = folder / f"saved{next(_serial)}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


def softmax(x: Any, w: Any) -> Any:
    return df.nn.softmax(x @ w)


def straight(x: Any, w: Any) -> Any:
    moved = df.sort(df.gather(w, [2, 0, 1]), direction="DESCENDING")
    return softmax(x, w), df.reduce_mean((x - df.reduce_mean(x)) ** 2), df.transpose(x) @ df.cumsum(moved, 1)


def recurrent(x: Any, w: Any) -> Any:
    with df.GradientTape() as tape:
        tape.watch(w)
        h = x
        while df.reduce_sum(h * h) > 1e-3:
            h = df.tanh(h @ df.gather(w, [1, 1, 0])) * 0.1
        y = df.reduce_sum(h)
    return y, tape.gradient(y, w), df.cond(y > 0.0, lambda: x @ w, lambda: df.exp(x))


def complex_product(x: Any, w: Any) -> Any:
    z = df.complex(x, w) * df.complex(w, x + 1.0)
    return df.real(z), df.abs(z)


@pytest.mark.parametrize("program", [straight, recurrent, complex_product], ids=lambda f: f.__name__)
def test_the_printed_file_computes_what_the_function_does(
    program: Callable[..., Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(3, 3)).astype(np.float32) for _ in range(2)]
    text = df.function(program).get_concrete_function(*map(df.constant, inputs)).kernels
    result = saved(tmp_path, text, program.__name__)(*inputs)
    for a, b in zip(result, program(*map(df.constant, inputs)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_variables_are_parameters_that_it_writes_to(tmp_path: Path) -> None:
    v = df.Variable([1.0, 2.0], name="total")
    concrete = df.function(lambda x: v.assign_add(x), name="add_up").get_concrete_function(df.TensorSpec([2]))
    total = np.array(v)
    saved(tmp_path, concrete.kernels, "add_up")(np.ones(2, np.float32), total)
    assert total.tolist() == [2.0, 3.0]
    assert v.numpy().tolist() == [1.0, 2.0]


def test_a_check_of_the_printed_file_names_the_users_line(tmp_path: Path) -> None:
    concrete = df.function(lambda x, i: df.gather(x, i), name="pick").get_concrete_function(
        df.TensorSpec([3]), df.TensorSpec([1], df.int32)
    )
    pick = saved(tmp_path, concrete.kernels, "pick")
    with pytest.raises(IndexError, match=r"gather: an index is out of range(.|\n)*test_listing.py"):
        pick(np.zeros(3, np.float32), np.array([7], np.int32))


def test_every_backend_prints_the_same() -> None:
    texts = {
        df.function(softmax, backend=backend).get_concrete_function(*[df.TensorSpec([3, 3])] * 2).kernels
        for backend in BACKENDS
    }
    assert len(texts) == 1


def test_comments_report_what_is_computed_and_where_it_was_requested() -> None:
    text = df.function(softmax).get_concrete_function(*[df.TensorSpec([3, 3])] * 2).kernels
    line = softmax.__code__.co_firstlineno + 1
    assert f"# reduce_max, subtract, exp, reduce_sum, divide (test_listing.py:{line})" in text
    assert f"# matmul (test_listing.py:{line})" in text


def test_ops_without_export_are_placeholders_with_the_reason(tmp_path: Path) -> None:
    f = df.function(lambda x: x + df.random.normal([2]), name="noisy")
    noisy = saved(tmp_path, f.get_concrete_function(df.TensorSpec([2])).kernels, "noisy")
    with pytest.raises(NotImplementedError, match="random numbers come from NumPy's generators"):
        noisy(np.ones(2, np.float32))


@pytest.mark.parametrize("name", ["<lambda>", "np", "k0", "status", "n3", "class"])
def test_a_name_that_the_file_uses_itself_is_not_the_functions(name: str) -> None:
    concrete = df.function(lambda x: x + 1.0, name=name).get_concrete_function(df.TensorSpec([2]))
    assert "\ndef program(" in concrete.kernels


def test_arguments_whose_names_the_file_uses_itself_get_others(tmp_path: Path) -> None:
    f = df.function(lambda np, k0, out0: np - k0 * out0, name="f")
    run = saved(tmp_path, f.get_concrete_function(*[df.TensorSpec([2])] * 3).kernels, "f")
    result = run(*[np.full(2, x, np.float32) for x in (7, 2, 3)])
    assert result[0].tolist() == [1.0, 1.0]


def test_an_argument_with_the_name_of_a_compiled_branch_gets_another(tmp_path: Path) -> None:
    def program(cond0: df.Tensor) -> df.Tensor:
        return df.cond(df.reduce_sum(cond0) > 0, lambda: cond0 + 1, lambda: cond0 - 1)

    f = df.function(program, name="f")
    run = saved(tmp_path, f.get_concrete_function(df.TensorSpec([2])).kernels, "f")
    (result,) = run(np.float32([2, 1]))
    assert result.tolist() == [3.0, 2.0]


def test_printing_loads_neither_numba_nor_llvmlite() -> None:
    program = (
        "import sys, dualflow as df\n"
        "concrete = df.function(lambda x: df.exp(x)).get_concrete_function(df.TensorSpec([3]))\n"
        "assert 'exp_f32' in concrete.kernels\n"
        "concrete.source()\n"
        "assert not {'numba', 'llvmlite'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
