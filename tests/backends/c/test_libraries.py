"""Exported shared libraries: built by the system compiler and ziglang, cross-compiled, and for TVM-FFI."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from required_tools import require_library, require_module, require_tool

import dualflow as df
from dualflow.core.errors import FailedPreconditionError, InvalidArgumentError
from tests.backends.c.test_exported_c import gelu, normal
from tests.harness.c_programs import (
    WARNINGS,
    ExportedProgram,
    bits,
    call,
    call_process,
    main_program,
    program_of,
    run,
)
from tests.harness.digits_model import digits, digits_classifier

Array = np.ndarray[Any, Any]
CROSS = "aarch64-linux-gnu-gcc"


def several(x: Any) -> Any:
    """Maths, a product, sums and a gather."""
    y = gelu(x)
    return y, df.matmul(y, x, transpose_b=True), df.reduce_sum(y, 1), df.gather(df.sin(x), [2, 0], axis=1)


def library_of(
    folder: Path, function: Callable[..., Any], *specs: df.TensorSpec, cpu: str = "native"
) -> tuple[ExportedProgram, Path, Any]:
    """The program of a function, its library, and its trace."""
    concrete = df.function(function).get_concrete_function(*specs)
    *_, path = concrete.export(folder, "library", cpu=cpu)
    return program_of(concrete), Path(path), concrete


def without_c_compilers(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let no C compiler be on the PATH."""
    patch.setenv("PATH", str(folder))
    patch.delenv("CC", raising=False)


@pytest.mark.parametrize("cpu", ["native", "generic"])
@pytest.mark.parametrize("compiler", ["cc", pytest.param("zig", marks=pytest.mark.exhaustive)])
def test_a_library_has_the_bits_of_the_default_backend(
    tmp_path: Path, compiler: str, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiler == "zig":
        require_module("ziglang")
        without_c_compilers(tmp_path, monkeypatch)
    program, path, concrete = library_of(tmp_path, gelu, df.TensorSpec([None], name="x"), cpu=cpu)
    x = normal(1000)
    (result,) = call(ctypes.CDLL(str(path)), program, [x])
    assert bits(result) == bits(concrete(df.constant(x)))


@pytest.mark.parametrize("compiler", [CROSS, pytest.param("zig", marks=pytest.mark.exhaustive)])
def test_a_library_for_aarch64_has_the_same_bits(
    tmp_path: Path, compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator, cross = require_tool("qemu-aarch64"), require_tool(CROSS)
    require_library(CROSS, "libm.so")
    with monkeypatch.context() as patch:
        if compiler == "zig":
            require_module("ziglang")
            without_c_compilers(tmp_path, patch)
        program, path, concrete = library_of(
            tmp_path, several, df.TensorSpec([None, 7], name="x"), cpu="aarch64"
        )
    (tmp_path / "run.c").write_text(main_program(program))
    run([CROSS, "-std=c11", "run.c", path.name, "-o", "run", "-Wl,-rpath,$ORIGIN"], tmp_path)
    x = normal(50, 7)
    root = os.path.dirname(os.path.dirname(cross)) + "/aarch64-linux-gnu"
    results = call_process([emulator, "-L", root, str(tmp_path / "run")], program, [x])
    for a, b in zip(results, concrete(df.constant(x)), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-5, atol=1e-5)
    assert bits(results[0]) == bits(concrete(df.constant(x))[0])


def test_a_library_replaces_an_exported_one_alone(tmp_path: Path) -> None:
    _, path, _ = library_of(tmp_path, gelu, df.TensorSpec([3], name="x"))
    exported = path.read_bytes()
    assert library_of(tmp_path, gelu, df.TensorSpec([4], name="x"))[1] == path
    assert path.read_bytes() != exported
    path.write_bytes(b"\x7fELF of another program")
    with pytest.raises(
        FailedPreconditionError, match=rf"{path.name} exists, and dualflow has not written it"
    ):
        library_of(tmp_path, gelu, df.TensorSpec([3], name="x"))
    assert path.read_bytes() == b"\x7fELF of another program"


def test_a_failed_compile_leaves_the_exported_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library_of(tmp_path, gelu, df.TensorSpec([3], name="x"))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setenv("CC", f"{shutil.which('false')}")
    with pytest.raises(FailedPreconditionError, match=r"false .* failed"):
        library_of(tmp_path, gelu, df.TensorSpec([4], name="x"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_errors_name_the_processor_and_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidArgumentError, match="not 'sparc'"):
        library_of(tmp_path, gelu, df.TensorSpec([3]), cpu="sparc")
    monkeypatch.setenv("CC", f"{shutil.which('false')}")
    with pytest.raises(FailedPreconditionError, match=r"false .* failed"):
        library_of(tmp_path, gelu, df.TensorSpec([3]))
    without_c_compilers(tmp_path, monkeypatch)
    monkeypatch.setitem(__import__("sys").modules, "ziglang", None)
    with pytest.raises(FailedPreconditionError, match="Install one, or the package ziglang"):
        library_of(tmp_path, gelu, df.TensorSpec([3]))


def test_a_c_program_classifies_digits_as_python_does(tmp_path: Path) -> None:
    concrete = digits_classifier().get_concrete_function(df.TensorSpec([None, 8, 8], name="image"))
    concrete.export(tmp_path)
    program = program_of(concrete)
    (tmp_path / "digits.c").write_text(main_program(program))
    run(
        ["gcc", "-std=c11", *WARNINGS.split(), "-O2", "digits.c", "classify.c", "-o", "digits", "-lm"],
        tmp_path,
    )
    images, labels = digits()
    (probabilities,) = call_process([str(tmp_path / "digits")], program, [images])
    expected = np.asarray(concrete(df.constant(images)))
    np.testing.assert_allclose(probabilities, expected, rtol=1e-3, atol=1e-5)
    classes = np.argmax(probabilities, 1)
    np.testing.assert_array_equal(classes, np.argmax(expected, 1))
    assert np.mean(classes == labels) > 0.97


def test_cmake_builds_the_library_and_the_example(tmp_path: Path) -> None:
    require_tool("cmake")
    df.function(gelu).get_concrete_function(df.TensorSpec([None], name="x")).export(tmp_path)
    subprocess.run(["cmake", "-S", ".", "-B", "build"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", "build"], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([tmp_path / "build" / "gelu_main"], capture_output=True, text=True, check=True)
    assert done.stdout == "out0[0] = 0\n"


class DLTensor(ctypes.Structure):
    """DLPack's tensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class TaggedValue(ctypes.Structure):
    """TVM-FFI's value."""

    _fields_ = (("type_index", ctypes.c_int32), ("padding", ctypes.c_uint32), ("pointer", ctypes.c_void_p))


def tensor_value(array: Array) -> TaggedValue:
    """A float32 array as a tagged pointer of a DLPack tensor."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    strides = (ctypes.c_int64 * array.ndim)(*(n // array.itemsize for n in array.strides))
    tensor = DLTensor(array.ctypes.data, (1, 0), array.ndim, 2, 8 * array.itemsize, 1, shape, strides, 0)
    value = TaggedValue(7, 0, ctypes.addressof(tensor))
    value.tensor = tensor
    return value


def test_the_symbol_of_tvm_ffi_takes_dlpack_tensors(tmp_path: Path) -> None:
    _, path, concrete = library_of(tmp_path, gelu, df.TensorSpec([None, 3], name="x"))
    function = getattr(ctypes.CDLL(str(path)), "__tvm_ffi_gelu")

    def status(*arrays: Array) -> int:
        own = [tensor_value(a) for a in arrays]
        values = (TaggedValue * len(own))(*own)
        result = TaggedValue(1, 0, 1)
        code: int = function(None, values, len(own), ctypes.byref(result))
        assert code or (result.type_index, result.pointer) == (0, None)
        return code

    x, out = normal(5, 3), np.zeros((5, 3), np.float32)
    assert status(x, out) == 0
    assert bits(out) == bits(concrete(df.constant(x)))
    refused = [(x,), (x, out, out), (x, out[:4]), (x.T, out), (x.astype(np.float64), out), (x[:, ::-1], out)]
    assert [status(*arrays) for arrays in refused] == [-1] * 6
    empty = np.zeros((0, 3), np.float32)
    assert status(empty, empty) == 0


def test_tvm_ffi_itself_calls_a_library_and_raises_its_errors(tmp_path: Path) -> None:
    tvm_ffi: Any = require_module("tvm_ffi")

    def root(x: Any) -> Any:
        df.debugging.assert_non_negative(x, message="no roots of negative numbers")
        return df.sqrt(x)

    _, path, _ = library_of(tmp_path, root, df.TensorSpec([None], name="x"))
    module = tvm_ffi.load_module(str(path))
    x, out = np.float32([4, 9]), np.zeros(2, np.float32)
    module.root(*map(tvm_ffi.from_dlpack, (x, out)))
    np.testing.assert_array_equal(out, [2, 3])
    with pytest.raises(RuntimeError, match="no roots of negative numbers"):
        module.root(*map(tvm_ffi.from_dlpack, (-x, out)))
    with pytest.raises(ValueError, match="out0 must be a contiguous tensor float32"):
        module.root(*map(tvm_ffi.from_dlpack, (x, out[:1].copy())))
    with pytest.raises(TypeError, match="root takes 2 tensors: x, out0"):
        module.root(tvm_ffi.from_dlpack(x))
