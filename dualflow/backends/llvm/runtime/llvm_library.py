"""LLVM's functions that compile text, in the library that llvmlite brings, called by their names in C.

llvmlite's own classes for them take 25 ms to import, more than most kernels take to compile, and let one
thread into LLVM at a time, whatever it does there. The functions are the same in all versions that
``requirement`` lets in.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

import llvmlite
from llvmlite.utils import get_library_name

from dualflow.core.errors import FailedPreconditionError
from dualflow.core.records import NamedTuple


def _loaded() -> Any:
    path = os.path.join(os.path.dirname(llvmlite.__file__), "binding", get_library_name())
    try:
        return ctypes.CDLL(path)
    except OSError as refusal:
        raise FailedPreconditionError(
            f"llvmlite {llvmlite.__version__} is installed here, but its library can't be loaded: {refusal}. "
            "Install it anew with pip install --force-reinstall llvmlite, or do without: "
            'df.config.set_backend("numpy").'
        ) from None


def _typed(library: Any, result: Any, arguments: Sequence[Any], names: Iterable[str]) -> None:
    for name in names:
        function = getattr(library, f"LLVMPY_{name}")
        function.restype, function.argtypes = result, list(arguments)


_POINTER, _INT, _TEXT, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t
_SAID = ctypes.POINTER(ctypes.c_char_p)

_library: Final = _loaded()
_typed(_library, ctypes.c_uint, (), ["GetVersionInfo"])
_typed(_library, None, (), ["InitializeNativeTarget", "InitializeNativeAsmPrinter"])
_typed(_library, None, (_SAID,), ["GetProcessTriple", "GetHostCPUName"])
_typed(_library, _INT, (_SAID,), ["GetHostCPUFeatures"])
_typed(_library, None, (_POINTER,), ["DisposeString", "DisposeMemoryBuffer"])
_typed(_library, None, (_POINTER,), ["ContextDispose", "DisposeModule"])
_typed(_library, _POINTER, (_TEXT, _SAID), ["GetTargetFromTriple"])
_typed(
    _library,
    _POINTER,
    (_POINTER, _TEXT, _TEXT, _TEXT, _INT, _TEXT, _TEXT, _INT, _INT, _TEXT),
    ["CreateTargetMachine"],
)
_typed(
    _library,
    _POINTER,
    (),
    ["ContextCreate", "CreateNewModulePassManager", "CreatePipelineTuningOptions"],
)
_typed(_library, _POINTER, (_POINTER, _POINTER), ["CreatePassBuilder"])
_typed(_library, None, (_POINTER, _POINTER, _POINTER), ["RunNewModulePassManager"])
_typed(_library, _POINTER, (_POINTER, _TEXT, _SAID), ["ParseAssembly"])
_typed(_library, ctypes.c_bool, (_POINTER, _SAID), ["VerifyModule"])
_typed(_library, None, (_POINTER, _SAID), ["PrintModuleToString"])
_typed(_library, _POINTER, (_POINTER, _POINTER, _INT, _SAID), ["TargetMachineEmitToMemory"])
_typed(_library, _POINTER, (_POINTER,), ["GetBufferStart"])
_typed(_library, _SIZE, (_POINTER,), ["GetBufferSize"])


class _Said:
    """Text that LLVM writes: an argument of a function, and then a string."""

    __slots__ = ("_pointer", "argument")

    def __init__(self) -> None:
        self._pointer = ctypes.c_char_p()
        self.argument = ctypes.byref(self._pointer)

    def take(self) -> str:
        """The text; empty if there is none. Its memory is freed."""
        text = (self._pointer.value or b"").decode(errors="replace")
        if self._pointer:
            _library.LLVMPY_DisposeString(self._pointer)
            self._pointer.value = None
        return text


def version() -> tuple[int, ...]:
    """The version of LLVM that is installed.

    >>> len(version())
    3
    """
    packed = _library.LLVMPY_GetVersionInfo()
    return (packed >> 16 & 0xFF, packed >> 8 & 0xFF, packed & 0xFF)


def initialize() -> None:
    """Make LLVM ready for this processor; more than once does no harm."""
    _library.LLVMPY_InitializeNativeTarget()
    _library.LLVMPY_InitializeNativeAsmPrinter()


def process_triple() -> str:
    """The name of this system and kind of processor, such as ``"x86_64-unknown-linux-gnu"``."""
    said = _Said()
    _library.LLVMPY_GetProcessTriple(said.argument)
    return said.take()


def processor() -> str:
    """LLVM's name of this processor, such as ``"znver4"``."""
    said = _Said()
    _library.LLVMPY_GetHostCPUName(said.argument)
    return said.take()


def processor_features() -> str:
    """The extensions that this processor has (``+avx2``) and has not (``-avx512f``), sorted by name."""
    said = _Said()
    _library.LLVMPY_GetHostCPUFeatures(said.argument)
    return ",".join(sorted(filter(None, said.take().split(",")), key=lambda word: word[1:]))


class Target(NamedTuple):
    """A code generator, for one thread at a time; it is there until the process ends."""

    pointer: int

    @classmethod
    def create(cls, triple: str, cpu: str, features: str, level: int, relocation: str, model: str) -> Self:
        """A generator of code that is linked into this process; ``level`` is how hard it works, 0 to 3."""
        said = _Said()
        target = _library.LLVMPY_GetTargetFromTriple(triple.encode(), said.argument)
        if not target:
            raise RuntimeError(said.take())
        names = triple.encode(), cpu.encode(), features.encode()
        pointer = _library.LLVMPY_CreateTargetMachine(
            target, *names, level, relocation.encode(), model.encode(), False, True, b""
        )
        if not pointer:
            raise RuntimeError(f"no code generator for {triple}, {cpu}")
        return cls(pointer)

    def emit(self, module: ParsedModule, *, assembly: bool = False) -> bytes:
        """The module's object code, or its assembly text. Raises RuntimeError for what LLVM can't compile."""
        said = _Said()
        buffer = _library.LLVMPY_TargetMachineEmitToMemory(
            self.pointer, module.pointer, not assembly, said.argument
        )
        if not buffer:
            raise RuntimeError(said.take() or "no reason is given")
        try:
            size = _library.LLVMPY_GetBufferSize(buffer)
            return ctypes.string_at(_library.LLVMPY_GetBufferStart(buffer), size)
        finally:
            _library.LLVMPY_DisposeMemoryBuffer(buffer)


class Passes(NamedTuple):
    """Passes over a module, in order, for one thread at a time; they are there until the process ends."""

    manager: int
    builder: int

    @classmethod
    def create(cls, target: Target, names: Iterable[str]) -> Self:
        """Those of these names in C, such as ``"SROA"``."""
        manager = _library.LLVMPY_CreateNewModulePassManager()
        for name in names:
            add = getattr(_library, f"LLVMPY_module_Add{name}Pass")
            add.restype, add.argtypes = None, [_POINTER]
            add(manager)
        options = _library.LLVMPY_CreatePipelineTuningOptions()
        return cls(manager, _library.LLVMPY_CreatePassBuilder(target.pointer, options))

    def run(self, module: ParsedModule) -> None:
        """Run them; the module is changed."""
        _library.LLVMPY_RunNewModulePassManager(self.manager, module.pointer, self.builder)


class ParsedModule:
    """A module of IR that LLVM has parsed and found well-formed, until it is closed.

    Raises RuntimeError for text that LLVM refuses.
    """

    __slots__ = ("_context", "pointer")

    def __init__(self, text: str) -> None:
        # A context of its own: the global one would keep every type and constant for ever.
        self._context = _library.LLVMPY_ContextCreate()
        said = _Said()
        self.pointer = _library.LLVMPY_ParseAssembly(self._context, text.encode(), said.argument)
        refused = not self.pointer or _library.LLVMPY_VerifyModule(self.pointer, said.argument)
        reason = said.take()
        if refused:
            self.close()
            raise RuntimeError(reason)

    def close(self) -> None:
        """Free the memory."""
        if self.pointer:
            _library.LLVMPY_DisposeModule(self.pointer)
        if self._context:
            _library.LLVMPY_ContextDispose(self._context)
        self.pointer = self._context = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __str__(self) -> str:
        said = _Said()
        _library.LLVMPY_PrintModuleToString(self.pointer, said.argument)
        return said.take()
