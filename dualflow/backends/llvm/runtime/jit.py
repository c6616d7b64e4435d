"""LLVM IR text in, callable addresses out.

An object that an earlier process compiled comes from disk and is linked without LLVM being imported at all,
where ``elf`` can do it; otherwise ``compiler`` builds it and keeps it for the next process.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import llvmlite

from dualflow.backends.llvm.runtime import cpu_fingerprint, elf, object_cache, target
from dualflow.backends.llvm.runtime.digest import digest
from dualflow.backends.llvm.runtime.object_file import UnsupportedObject, read
from dualflow.core.errors import InternalError
from dualflow.core.locks import imported

if TYPE_CHECKING:
    from dualflow.backends.llvm.runtime.compiler import ObjectCode


class CompileReport(NamedTuple):
    """What one compilation cost, in milliseconds; building stages are 0 when the object came from disk."""

    key: str
    from_cache: bool
    text_bytes: int
    object_bytes: int
    parse_ms: float
    optimise_ms: float
    emit_ms: float
    link_ms: float

    @property
    def total_ms(self) -> float:
        """Everything but the disk."""
        return self.parse_ms + self.optimise_ms + self.emit_ms + self.link_ms


class Library:
    """Machine code in memory, with the addresses of its exported functions.

    The memory lives as long as this object; whoever keeps an address keeps the library too. A forked child
    may go on calling.

    Attributes:
        text: the IR.
        report: what it cost.
        detour: why LLVM's linker was needed where ours runs; else empty.
    """

    __slots__ = ("__weakref__", "_addresses", "detour", "report", "text")

    def __init__(
        self, text: str, loaded: _Loaded, exports: Sequence[str], report: CompileReport, detour: str
    ) -> None:
        self.text = text
        self.report = report
        self.detour = detour
        self._addresses = {name: loaded.addresses[name] for name in exports}
        # At exit the code stays: threads may be running it.
        weakref.finalize(self, loaded.unload).atexit = False

    def address(self, name: str) -> int:
        """The address of an exported function."""
        try:
            return self._addresses[name]
        except KeyError:
            known = ", ".join(sorted(self._addresses)) or "nothing"
            raise InternalError(f"no function {name!r} in this library, which exports {known}") from None

    def optimised(self) -> str:
        """The IR after LLVM's passes, for reading (made anew on each call)."""
        return str(_compiler().optimised(self.text, target.vector_bits()))

    def assembly(self) -> str:
        """The machine code as assembly text, for reading (made anew on each call)."""
        return str(_compiler().assembly(self.text, target.vector_bits()))

    def __repr__(self) -> str:
        return f"<Library {self.report.key[:12]}: {', '.join(sorted(self._addresses))}>"


def compile_text(text: str, exports: Sequence[str], symbols: Mapping[str, int]) -> Library:
    """Compile a module of LLVM IR, or fetch its object from disk, and link it into this process.

    ``exports`` are the functions whose addresses are wanted. ``symbols`` gives the address of everything that
    the text declares and does not define; C's maths and memory functions need not be named. Raises
    InternalError for text that LLVM refuses and for a symbol that nobody provides. Safe from any thread.

    >>> double = compile_text(
    ...     "define double @twice(double %x) { %y = fadd double %x, %x  ret double %y }", ["twice"], {}
    ... )
    >>> ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(double.address("twice"))(21.0)
    42.0
    """
    key = _key(text)
    stored = object_cache.load(key)
    if stored is not None:
        # A whole entry that is no object for this process is built anew: LLVM's linker doesn't get to see it.
        with contextlib.suppress(InternalError, UnsupportedObject):
            return _finish(text, key, stored, None, exports, symbols)
    _refuse_unknown_symbols(text, symbols)
    compiled: ObjectCode = _compiler().build(text, target.vector_bits())
    object_cache.store(key, compiled.code)
    return _finish(text, key, compiled.code, compiled, exports, symbols)


def shipped_text(name: str) -> str:
    """One of the files of this package, such as ``pool.ll``; the package may be in a zip archive."""
    loader: Any = sys.modules[__name__].__spec__.loader  # type: ignore[union-attr]  # an imported module has one
    content: bytes = loader.get_data(os.path.join(os.path.dirname(__file__), name))
    return content.decode()


class _Loaded(Protocol):
    """An object in memory, however it got there."""

    @property
    def addresses(self) -> dict[str, int]: ...

    def unload(self) -> None: ...


# What LLVM may call on its own account, and what kernels may declare without giving an address.
_MATHS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs fdim
floor fma fmax fmin fmod frexp hypot ldexp lgamma log log10 log1p log2 modf nearbyint nextafter pow remainder
rint round roundeven sin sincos sinh sqrt tan tanh tgamma trunc
"""
_MEMORY = "memcpy memmove memset realloc free"
_RUNTIME = {name + width for name in _MATHS.split() for width in ("", "f")} | set(_MEMORY.split())

_DECLARED = re.compile(r"^(?:declare [^@\n]*@([\w.$]+)|@([\w.$]+) = external )", re.MULTILINE)


def _key(text: str) -> str:
    context = f"llvmlite {llvmlite.__version__}\n{target.vector_bits()} bits\n"
    context += f"{cpu_fingerprint.fingerprint()}\n{_settings()}\n"
    return digest((context + text).encode()).hex()


@functools.cache
def _settings() -> str:
    """The compiler's own source: whatever it asks of LLVM is in it."""
    return shipped_text("compiler.py")


def _compiler() -> Any:
    """The module that imports LLVM, imported when first needed."""
    return imported("dualflow.backends.llvm.runtime.compiler")


def _finish(
    text: str,
    key: str,
    code: bytes,
    compiled: ObjectCode | None,
    exports: Sequence[str],
    symbols: Mapping[str, int],
) -> Library:
    """Link an object, which was ``compiled`` just now or else came from disk."""
    start = time.perf_counter()
    loaded, detour = _load(code, text, exports, symbols, stored=compiled is None)
    link_ms = 1e3 * (time.perf_counter() - start)
    stages = (compiled.parse_ms, compiled.optimise_ms, compiled.emit_ms) if compiled else (0.0, 0.0, 0.0)
    report = CompileReport(key, compiled is None, len(text), len(code), *stages, link_ms)
    return Library(text, loaded, exports, report, detour)


def _load(
    code: bytes, text: str, exports: Sequence[str], symbols: Mapping[str, int], *, stored: bool
) -> tuple[_Loaded, str]:
    """The object in memory, and why LLVM's linker put it there if ours could have been used."""
    refusal = ""
    if not elf.obstacle():
        try:
            return _load_ourselves(code, exports, symbols), ""
        except UnsupportedObject as reason:
            if stored:
                raise
            refusal = str(reason)
    elif stored and elf.SUPPORTED:
        read(code)  # LLVM's linker trusts every offset
    imports = {name: _find(name, symbols) for name in _declared(text)}
    loaded: _Loaded = _compiler().load(code, exports, imports)
    return loaded, refusal


def _load_ourselves(code: bytes, exports: Sequence[str], symbols: Mapping[str, int]) -> _Loaded:
    image = elf.load(code, lambda name: _find(name, symbols))
    missing = [name for name in exports if name not in image.addresses]
    if not missing:
        return image
    image.unload()
    raise InternalError(f"a kernel can't be linked: the text does not define {', '.join(missing)}")


def _declared(text: str) -> list[str]:
    """The outside symbols that the text declares."""
    names = {function or variable for function, variable in _DECLARED.findall(text)}
    return sorted(name for name in names if not name.startswith("llvm."))


def _refuse_unknown_symbols(text: str, symbols: Mapping[str, int]) -> None:
    for name in _declared(text):
        _find(name, symbols)


def _find(name: str, symbols: Mapping[str, int]) -> int:
    address = symbols.get(name) or (process_symbol(name) if name in _RUNTIME else 0)
    if not address:
        known = ", ".join(sorted(symbols)) or "none"
        raise InternalError(f"a kernel needs the symbol {name!r}, which nobody provides; given: {known}")
    return address


@functools.cache
def process_symbol(name: str) -> int:
    """The address of a function of C's libraries; 0 where there is none."""
    for library in ("msvcrt",) if sys.platform == "win32" else (None, "libm.so.6"):
        try:
            return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value or 0
        except (OSError, AttributeError):
            continue
    return 0
