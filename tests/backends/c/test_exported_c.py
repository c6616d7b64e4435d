"""Functions exported as C: they compile without warnings in GCC and Clang, and return dualflow's results."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from required_tools import require_library, require_tool

import dualflow as df
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from tests.harness.c_programs import CheckFailed, bits, call, compiled, program_of

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + df.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def softmax(x: Any) -> Any:
    return df.nn.softmax(x)


def layer_norm(x: Any) -> Any:
    centred = x - df.reduce_mean(x, -1, keepdims=True)
    return centred * df.math.rsqrt(df.reduce_mean(centred * centred, -1, keepdims=True) + 1e-5)


def sums(x: Any) -> Any:
    return df.reduce_sum(x), df.reduce_sum(x, 0), df.reduce_max(x, 1), df.argmax(x, 1), df.cumsum(x, 1)


def assembled(x: Any) -> Any:
    return df.concat([x[:, ::-1], df.transpose(df.transpose(x) * 2.0)], 0), df.gather(x, [2, 0, 2])


def waves(x: Any) -> Any:
    return df.sin(x * 1000.0) + df.cos(x), df.math.erf(x), df.cast(x * 100.0, df.int8)


def repeated(x: Any) -> Any:
    """Each size has the one before in both operands of a function."""
    for i in range(4):
        x = df.concat([x, x[: df.shape(x)[0] // (3 + i)]], 0) * 2.0
    return x


FUNCTIONS: list[tuple[Callable[..., Any], list[np.ndarray]]] = [
    (gelu, [normal(1024)]),
    (softmax, [normal(7, 300)]),
    (layer_norm, [normal(33, 100)]),
    (sums, [normal(300, 70)]),
    (assembled, [normal(5, 6)]),
    (waves, [normal(1000)]),
    (repeated, [normal(37)]),
]


def results_of(function: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
    result = function(*[df.constant(x) for x in arrays])
    return [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize(
    ("compiler", "dynamic_sizes"),
    [
        pytest.param("gcc", True, id="gcc-dynamic"),
        pytest.param("clang", False, id="clang-static"),
        pytest.param("gcc", False, id="gcc-static", marks=pytest.mark.exhaustive),
        pytest.param("clang", True, id="clang-dynamic", marks=pytest.mark.exhaustive),
    ],
)
def test_a_compiled_function_has_the_bits_of_the_default_backend(
    tmp_path: Path, compiler: str, dynamic_sizes: bool
) -> None:
    programs, expected = [], []
    for function, arrays in FUNCTIONS:
        traced = df.function(function)
        shapes = [[None] * x.ndim if dynamic_sizes else list(x.shape) for x in arrays]
        specs = [df.TensorSpec(shape, x.dtype) for shape, x in zip(shapes, arrays, strict=True)]
        concrete = traced.get_concrete_function(*specs)
        programs.append(program_of(concrete))
        expected.append(results_of(concrete, arrays))
    library = compiled(programs, tmp_path, require_tool(compiler))
    for program, (_, arrays), results in zip(programs, FUNCTIONS, expected, strict=True):
        for a, b in zip(call(library, program, arrays), results, strict=True):
            assert a.shape == b.shape, program.name
            assert bits(a) == bits(b), program.name


@pytest.mark.parametrize("cblas", [False, True], ids=["tiles", "CBLAS"])
def test_matrix_products_agree_to_rounding(tmp_path: Path, cblas: bool) -> None:
    if cblas:
        require_library("gcc", "libopenblas.so")

    @df.function
    def products(x: Any, y: Any, z: Any) -> Any:
        return (
            df.matmul(x, y),
            df.matmul(x, z, transpose_b=True),
            df.matmul(y, x, transpose_a=True, transpose_b=True),
            df.matmul(x[:, ::2], y[:, :, ::3]),
            df.matmul(x[0], y) + 1.0,
        )

    arrays = [normal(3, 19, 300), normal(3, 300, 37), normal(3, 5, 300)]
    program = program_of(products.get_concrete_function(*[df.TensorSpec(x.shape) for x in arrays]))
    options = "-Wall -Wextra -Werror -march=native" + " -DDF_CBLAS" * cblas
    library = compiled([program], tmp_path, options=options, libraries="-lopenblas" * cblas)
    x, y, z = (a.astype(np.float64) for a in arrays)
    expected = (x @ y, x @ z.mT, y.mT @ x.mT, x[:, ::2] @ y[:, :, ::3], x[0] @ y + 1)
    for a, b in zip(call(library, program, arrays), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_a_step_updates_the_variables_of_the_caller(tmp_path: Path) -> None:
    weights = df.Variable(normal(4, 3), name="weights")

    @df.function
    def step(x: Any, y: Any) -> Any:
        with df.GradientTape() as tape:
            loss = df.reduce_mean((df.matmul(x, weights) - y) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    x, y, own = normal(8, 4), normal(8, 3), np.array(weights)
    program = program_of(step.get_concrete_function(df.TensorSpec([None, 4]), df.TensorSpec([None, 3])))
    assert [p.name for p in program.parameters if p.role == "variable"] == ["weights"]
    library = compiled([program], tmp_path)
    for _ in range(3):
        (loss,) = call(library, program, [x, y, own])
        np.testing.assert_allclose(loss, np.asarray(step(x, y)), rtol=1e-5)
        np.testing.assert_allclose(own, np.asarray(weights), rtol=1e-5, atol=1e-6)


def test_a_failed_check_returns_its_number_and_message(tmp_path: Path) -> None:
    @df.function
    def picked(x: Any, i: Any) -> Any:
        return df.gather(x, i)

    concrete = picked.get_concrete_function(df.TensorSpec([5]), df.TensorSpec([2], "int32"))
    program = program_of(concrete)
    library = compiled([program], tmp_path)
    x = normal(5)
    (inside,) = call(library, program, [x, np.array([4, 0], np.int32)])
    np.testing.assert_array_equal(inside, x[[4, 0]])
    with pytest.raises(CheckFailed, match=r"(?s)gather: an index is out of range.*return df.gather\(x, i\)"):
        call(library, program, [x, np.array([5, 0], np.int32)])


def test_sizes_that_do_not_fit_are_refused_by_the_program(tmp_path: Path) -> None:
    program = program_of(
        df.function(lambda x, y: x + y, name="added").get_concrete_function(
            df.TensorSpec([None]), df.TensorSpec([None])
        )
    )
    library = compiled([program], tmp_path)
    np.testing.assert_array_equal(call(library, program, [np.ones(3, "f"), np.ones(3, "f")])[0], [2, 2, 2])
    with pytest.raises(CheckFailed, match="must be equal or 1"):
        call(library, program, [np.ones(3, "f"), np.ones(4, "f")])


def test_rows_of_dynamic_sizes_are_sorted_and_searched(tmp_path: Path) -> None:
    @df.function
    def ranked(x: Any) -> Any:
        values, places = df.math.top_k(x[:, ::2], 2)
        return values, places, df.argsort(x, 0, direction="DESCENDING"), df.searchsorted(df.sort(x), x)

    concrete = ranked.get_concrete_function(df.TensorSpec([None, 9]))
    program = program_of(concrete)
    x = np.round(normal(5, 9))
    x[1, 2] = np.nan
    results = call(compiled([program], tmp_path), program, [x])
    for a, b in zip(results, concrete(df.constant(x)), strict=True):
        np.testing.assert_array_equal(a, np.asarray(b))


def test_a_position_out_of_a_row_is_an_error_of_the_program(tmp_path: Path) -> None:
    concrete = df.function(lambda x, i: df.experimental.numpy.take_along_axis(x, i, 1), name="taken")
    specs = df.TensorSpec([2, 3]), df.TensorSpec([2, 1], "int32")
    program = program_of(concrete.get_concrete_function(*specs))
    library = compiled([program], tmp_path)
    with pytest.raises(CheckFailed, match="an index is out of range"):
        call(library, program, [normal(2, 3), np.array([[0], [3]], np.int32)])


def test_an_op_without_a_c_form_is_refused_by_name_and_line() -> None:
    concrete = df.function(lambda x: df.linalg.qr(x)).get_concrete_function(df.TensorSpec([4, 4]))
    with pytest.raises(
        InvalidArgumentError, match=r"qr can't be exported as C: LAPACK decomposes(?s:.*)df.linalg.qr\(x\)"
    ):
        program_of(concrete)


def test_export_writes_a_program_that_its_build_file_names(tmp_path: Path) -> None:
    concrete = df.function(gelu).get_concrete_function(df.TensorSpec([None], name="x"))
    paths = concrete.export(tmp_path, "library")
    names = ["gelu.h", "gelu.c", "CMakeLists.txt", "main.c", "gelu_tvm_ffi.c", "libgelu.so"]
    assert [Path(p).name for p in paths] == names
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "main.c", "gelu.c", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    assert done.stdout == "out0[0] = 0\n"


def test_export_replaces_only_files_of_its_own(tmp_path: Path) -> None:
    concrete = df.function(gelu).get_concrete_function(df.TensorSpec([3]))
    concrete.export(tmp_path)
    concrete.export(tmp_path)
    (tmp_path / "main.c").write_text("int main(void) { return 1; }\n")
    with pytest.raises(FailedPreconditionError, match=r"main\.c exists, and dualflow has not written it"):
        concrete.export(tmp_path)
    assert (tmp_path / "main.c").read_text() == "int main(void) { return 1; }\n"
    concrete.export(tmp_path, force=True)
    assert "Calls gelu" in (tmp_path / "main.c").read_text()


def test_the_command_line_exports_c(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import dualflow as df\n\ndef twice(x):\n    return x * 2\n")
    words = ["export", "model.py:twice", "out", "--to", "c", "--args", "df.TensorSpec([3])"]
    done = subprocess.run(
        [sys.executable, "-m", "dualflow", *words], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert (
        "int twice(const float *x, float *out0, void *workspace);" in (tmp_path / "out/twice.h").read_text()
    )


def test_the_example_of_results_with_computed_sizes_compiles_and_runs(tmp_path: Path) -> None:
    concrete = df.function(repeated).get_concrete_function(df.TensorSpec([None], name="x"))
    folder = tmp_path / "exported"
    concrete.export(folder)
    sources, binary = [folder / "repeated.c", folder / "main.c"], tmp_path / "example"
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-o", binary, *sources, "-lm"]
    subprocess.run([require_tool("gcc"), *options], check=True, capture_output=True, text=True)
    assert "out0[0] = 0" in subprocess.run([binary], check=True, capture_output=True, text=True).stdout
