"""Programs and packages that some tests need: without one, the test skips, or fails in ``.ci/run``.

``python tests/harness/required_tools.py`` prints the Debian packages of the programs that are missing.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NoReturn

DEBIAN = {
    "gcc": "gcc",
    "clang": "clang",
    "wasm-ld": "lld",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "qemu-aarch64": "qemu-user",
    "node": "nodejs",
    "chromium": "chromium",
    "cmake": "cmake",
    "oclgrind": "oclgrind",
}
"""The programs that tests run, and the Debian package of each."""
SANITIZERS = {"gcc": "libasan.so", "clang": "libclang_rt.asan-x86_64.a"}
"""The library of AddressSanitizer in each compiler."""
LIBRARIES = {
    ("gcc", "libasan.so"): "libgcc-12-dev",
    ("gcc", "libopenblas.so"): "libopenblas-dev",
    ("clang", "libclang_rt.asan-x86_64.a"): "libclang-rt-14-dev",
    ("aarch64-linux-gnu-gcc", "libm.so"): "libc6-dev-arm64-cross",
}
"""The libraries that tests link with each compiler, and their packages; libm comes with C's headers."""
DRIVERS = {"opencl": (Path("/etc/OpenCL/vendors"), "pocl-opencl-icd")}
"""The folder in which drivers are registered, and the Debian package of one that needs no device."""
PIP_INSTALL = "pip install 'dualflow[exhaustive]'"
"""The command that installs the Python packages of the tests."""
MUST_EXIST = "DUALFLOW_TESTS_REQUIRE_TOOLS"
"""The environment variable by which ``.ci/run`` makes a missing program or package a failure."""


def require_tool(name: str) -> str:
    """The path of a program; without it, the test skips or fails.

    Call it inside of tests or fixtures if the file has other tests.
    """
    return shutil.which(name) or missing(name, f"apt-get install {DEBIAN[name]}")


def require_module(name: str) -> ModuleType:
    """The imported module of an optional package; without it, the test skips or fails.

    Called at the top of a file, it decides for all tests of the file.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        missing(name, PIP_INSTALL)


def require_installed(name: str) -> None:
    """Skip or fail the test without a top-level package, which only processes that the test starts import."""
    if find_spec(name) is None:
        missing(name, PIP_INSTALL)


def require_sanitizer(compiler: str) -> str:
    """The path of AddressSanitizer's library of ``gcc`` or ``clang``; without it, the test skips or fails."""
    return require_library(compiler, SANITIZERS[compiler])


def require_library(compiler: str, file: str) -> str:
    """The path of a library that a compiler links; without it, the test skips or fails."""
    require_tool(compiler)
    package = LIBRARIES[compiler, file]
    return library_of(compiler, file) or missing(f"{compiler}'s {file}", f"apt-get install {package}")


def missing(what: str, remedy: str) -> NoReturn:
    """Skip the test because something is missing, or fail it if everything must exist."""
    import pytest  # .ci/run prints the packages with a Python that has none

    reason = f"{what} is not installed: {remedy}"
    if os.environ.get(MUST_EXIST):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def library_of(compiler: str, file: str) -> str | None:
    """The path of a library of a compiler; None if the compiler prints the name only, having none."""
    command = [compiler, f"-print-file-name={file}"]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return path if os.path.isabs(path) else None


def missing_packages() -> list[str]:
    """The Debian packages of the programs and libraries that are missing."""
    packages = [package for program, package in DEBIAN.items() if not shutil.which(program)]
    for (compiler, file), package in LIBRARIES.items():
        if not shutil.which(compiler) or not library_of(compiler, file):
            packages.append(package)
    packages += [package for folder, package in DRIVERS.values() if not any(folder.glob("*.icd"))]
    return packages


if __name__ == "__main__":
    print(*missing_packages())
