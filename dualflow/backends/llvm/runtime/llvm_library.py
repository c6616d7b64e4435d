"""Bindings to the C functions of llvmlite's library that parse, optimise and compile IR.

llvmlite's own classes for them take 25 ms to import, more than most kernels take to compile, and hold a lock
around each call of LLVM. The functions are the same in all versions that ``requirement`` accepts.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

import llvmlite
from llvmlite.utils import get_library_name

from dualflow.core.errors import FailedPreconditionError
from dualflow.core.records import NamedTuple

_PATH: Final = os.path.join(os.path.dirname(llvmlite.__file__), "binding", get_library_name())


def _load_without_python_lock() -> None:
    """Load the library while other threads run: it takes 5 ms, in which ``ctypes.CDLL`` holds Python's lock.

    Failures are left to ``ctypes.CDLL``.
    """
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # libraries of C without it
            load = ctypes.CDLL(None).dlopen
            load.restype, load.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]
            load(os.fsencode(_PATH), os.RTLD_NOW | os.RTLD_LOCAL)


def _loaded(kind: type[ctypes.CDLL]) -> Any:
    try:
        return kind(_PATH)
    except OSError as error:
        raise FailedPreconditionError(
            f"llvmlite {llvmlite.__version__} is installed here, but its library can't be loaded: {error}. "
            "Reinstall it with pip install --force-reinstall llvmlite, or use another backend: "
            'df.config.set_backend("numpy").'
        ) from None


def _typed(library: Any, result: Any, arguments: Sequence[Any], names: Iterable[str]) -> None:
    for name in names:
        function = getattr(library, f"LLVMPY_{name}")
        function.restype, function.argtypes = result, list(arguments)


_POINTER, _INT, _TEXT, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t
_OUT_STRING = ctypes.POINTER(ctypes.c_char_p)

_RUNS_OF_A_BUILDER: Final = 64

_load_without_python_lock()
_library: Final = _loaded(ctypes.CDLL)
"""The functions that take long: other threads run meanwhile."""
_typed(_library, _POINTER, (_POINTER, _TEXT, _OUT_STRING), ["ParseAssembly"])
_typed(_library, None, (_POINTER, _POINTER, _POINTER), ["RunNewModulePassManager"])
_typed(_library, None, (_POINTER, _OUT_STRING), ["PrintModuleToString"])
_typed(_library, _POINTER, (_POINTER, _POINTER, _INT, _OUT_STRING), ["TargetMachineEmitToMemory"])

_short: Final = _loaded(ctypes.PyDLL)
"""Functions that keep Python's lock: after each of them, a thread would wait for another to release it."""
_typed(_short, ctypes.c_uint, (), ["GetVersionInfo"])
_typed(_short, None, (), ["InitializeNativeTarget", "InitializeNativeAsmPrinter"])
_typed(_short, None, (_OUT_STRING,), ["GetProcessTriple", "GetHostCPUName"])
_typed(_short, _INT, (_OUT_STRING,), ["GetHostCPUFeatures"])
_typed(_short, None, (_POINTER,), ["DisposeString", "DisposeMemoryBuffer"])
_typed(_short, None, (_POINTER,), ["ContextDispose", "DisposeModule"])
_typed(_short, _POINTER, (_TEXT, _OUT_STRING), ["GetTargetFromTriple"])
_typed(
    _short,
    _POINTER,
    (_POINTER, _TEXT, _TEXT, _TEXT, _INT, _TEXT, _TEXT, _INT, _INT, _TEXT),
    ["CreateTargetMachine"],
)
_typed(
    _short,
    _POINTER,
    (),
    ["ContextCreate", "CreateNewModulePassManager", "CreatePipelineTuningOptions"],
)
_typed(_short, _POINTER, (_POINTER, _POINTER), ["CreatePassBuilder"])
_typed(_short, None, (_POINTER,), ["DisposePassBuilder"])
_typed(_short, ctypes.c_bool, (_POINTER, _OUT_STRING), ["VerifyModule"])
_typed(_short, _POINTER, (_POINTER,), ["GetBufferStart"])
_typed(_short, _SIZE, (_POINTER,), ["GetBufferSize"])


class _OutString:
    """An output argument of type ``char **``, whose text is freed when it is read."""

    __slots__ = ("_pointer", "argument")

    def __init__(self) -> None:
        self._pointer = ctypes.c_char_p()
        self.argument = ctypes.byref(self._pointer)

    def take(self) -> str:
        """The text, which is freed; empty if there is none."""
        text = (self._pointer.value or b"").decode(errors="replace")
        if self._pointer:
            _short.LLVMPY_DisposeString(self._pointer)
            self._pointer.value = None
        return text


def version() -> tuple[int, ...]:
    """The installed version of LLVM.

    >>> len(version())
    3
    """
    packed = _short.LLVMPY_GetVersionInfo()
    return (packed >> 16 & 0xFF, packed >> 8 & 0xFF, packed & 0xFF)


def initialize() -> None:
    """Initialize LLVM for this processor; idempotent."""
    _short.LLVMPY_InitializeNativeTarget()
    _short.LLVMPY_InitializeNativeAsmPrinter()


def process_triple() -> str:
    """The name of this system and kind of processor, such as ``"x86_64-unknown-linux-gnu"``."""
    message = _OutString()
    _short.LLVMPY_GetProcessTriple(message.argument)
    return message.take()


def processor() -> str:
    """LLVM's name of this processor, such as ``"znver4"``."""
    message = _OutString()
    _short.LLVMPY_GetHostCPUName(message.argument)
    return message.take()


def processor_features() -> str:
    """The extensions that this processor has (``+avx2``) and lacks (``-avx512f``), sorted by name."""
    message = _OutString()
    _short.LLVMPY_GetHostCPUFeatures(message.argument)
    return ",".join(sorted(filter(None, message.take().split(",")), key=lambda word: word[1:]))


class Target(NamedTuple):
    """A code generator, for one thread at a time; never freed."""

    pointer: int

    @classmethod
    def create(cls, triple: str, cpu: str, features: str, level: int, relocation: str, model: str) -> Self:
        """A generator of code for this process; ``level`` is its optimization level, 0 to 3."""
        message = _OutString()
        target = _short.LLVMPY_GetTargetFromTriple(triple.encode(), message.argument)
        if not target:
            raise RuntimeError(message.take())
        names = triple.encode(), cpu.encode(), features.encode()
        pointer = _short.LLVMPY_CreateTargetMachine(
            target, *names, level, relocation.encode(), model.encode(), False, True, b""
        )
        if not pointer:
            raise RuntimeError(f"no code generator for {triple}, {cpu}")
        return cls(pointer)

    def emit(self, module: ParsedModule, *, assembly: bool = False) -> bytes:
        """The module's object code, or its assembly text. Raises RuntimeError if LLVM can't compile it."""
        message = _OutString()
        buffer = _library.LLVMPY_TargetMachineEmitToMemory(
            self.pointer, module.pointer, not assembly, message.argument
        )
        if not buffer:
            raise RuntimeError(message.take() or "no reason was reported")
        try:
            size = _short.LLVMPY_GetBufferSize(buffer)
            return ctypes.string_at(_short.LLVMPY_GetBufferStart(buffer), size)
        finally:
            _short.LLVMPY_DisposeMemoryBuffer(buffer)


class Passes:
    """A pass manager, for one thread at a time; never freed.

    A run adds callbacks to its builder that every later run with it calls. They make that run slower, so a
    builder serves a limited number of modules; each leaves 1.5 kB when it is freed. For a function with
    ``optnone`` they read the stack of a thread that may have ended: no module has such functions.

    Args:
        target: the target.
        names: the names of the passes in C, such as ``"SROA"``.
    """

    __slots__ = ("_builder", "_manager", "_options", "_runs", "_target")

    def __init__(self, target: Target, names: Iterable[str]) -> None:
        self._target = target
        self._manager = _short.LLVMPY_CreateNewModulePassManager()
        for name in names:
            add = getattr(_short, f"LLVMPY_module_Add{name}Pass")
            add.restype, add.argtypes = None, [_POINTER]
            add(self._manager)
        self._options = _short.LLVMPY_CreatePipelineTuningOptions()
        self._builder: int | None = None
        self._runs = 0

    def run(self, module: ParsedModule) -> None:
        """Run the passes on a module in place."""
        if self._builder is None or self._runs == _RUNS_OF_A_BUILDER:
            self._replace_builder()
        self._runs += 1
        _library.LLVMPY_RunNewModulePassManager(self._manager, module.pointer, self._builder)

    def _replace_builder(self) -> None:
        previous, self._runs = self._builder, 0
        self._builder = _short.LLVMPY_CreatePassBuilder(self._target.pointer, self._options)
        if previous is not None:
            _short.LLVMPY_DisposePassBuilder(previous)


class ParsedModule:
    """A module of IR that LLVM has parsed and verified, until it is closed.

    Raises RuntimeError for text that LLVM rejects.
    """

    __slots__ = ("_context", "pointer")

    def __init__(self, text: str) -> None:
        # A separate context: the global one would never free types and constants.
        self._context = _short.LLVMPY_ContextCreate()
        message = _OutString()
        self.pointer = _library.LLVMPY_ParseAssembly(self._context, text.encode(), message.argument)
        invalid = not self.pointer or _short.LLVMPY_VerifyModule(self.pointer, message.argument)
        reason = message.take()
        if invalid:
            self.close()
            raise RuntimeError(reason)

    def close(self) -> None:
        """Free the memory."""
        if self.pointer:
            _short.LLVMPY_DisposeModule(self.pointer)
        if self._context:
            _short.LLVMPY_ContextDispose(self._context)
        self.pointer = self._context = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __str__(self) -> str:
        message = _OutString()
        _library.LLVMPY_PrintModuleToString(self.pointer, message.argument)
        return message.take()
