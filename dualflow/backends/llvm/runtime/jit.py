"""Compiles LLVM IR text, or loads its object from the cache, and links it into this process.

An object from the cache is linked by ``elf`` without importing LLVM, where that is supported. Otherwise
``compiler`` builds it, and it is stored for the next process.
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
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Protocol

import llvmlite

from dualflow.backends.llvm.runtime import cpu_fingerprint, elf, target
from dualflow.backends.llvm.runtime.ir_source import IrSource
from dualflow.backends.llvm.runtime.object_file import UNDEFINED, UnsupportedObject, read
from dualflow.backends.runtime import object_cache
from dualflow.core.digest import digest
from dualflow.core.errors import InternalError
from dualflow.core.library_functions import function_address
from dualflow.core.locks import imported, unforkable
from dualflow.core.records import NamedTuple
from dualflow.core.spans import logger

if TYPE_CHECKING:
    from dualflow.backends.llvm.runtime.parallel_compile import ObjectCode


class CompileReport(NamedTuple):
    """The times and sizes of one compilation; the times of LLVM are 0 if the object came from the cache."""

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
        """The milliseconds of all stages, without reads and writes of the cache."""
        return self.parse_ms + self.optimise_ms + self.emit_ms + self.link_ms


class Compilation(Protocol):
    """A compilation that is under way."""

    @property
    def absent(self) -> Mapping[IrSource, str]:
        """The keys of its sources, none of which was in the cache."""
        ...

    def results(self) -> Mapping[IrSource, ObjectCode]:
        """Its objects, when it has ended. Raises InternalError for text that LLVM rejects."""


class Library:
    """Machine code in memory, with the addresses of its exported functions.

    The memory is freed with this object, so a user of an address keeps a reference to the library. A forked
    child may call it too.

    Attributes:
        sources: the IR of all its modules; none for a library that :func:`load_library` has loaded.
        report: the cost of its compilation.
        compiled: the sources that were compiled for it, not loaded from the cache.
        fallback: the reason that LLVM's linker was used although ``elf`` is available; else empty.
    """

    __slots__ = ("__weakref__", "_addresses", "compiled", "fallback", "report", "sources")

    def __init__(
        self,
        sources: Sequence[IrSource],
        compiled: Sequence[IrSource],
        loaded: _Loaded,
        report: CompileReport,
        fallback: str,
        exports: Sequence[str] = (),
    ) -> None:
        self.sources, self.compiled = tuple(sources), tuple(compiled)
        self.report = report
        self.fallback = fallback
        names = exports or [name for source in sources for name in source.exports]
        self._addresses = {name: loaded.addresses[name] for name in names}
        # Not unloaded at exit: threads may be running it.
        weakref.finalize(self, loaded.unload).atexit = False

    @property
    def text(self) -> str:
        """The IR of all sources."""
        return "\n".join([source.text for source in self.sources])

    @property
    def exports(self) -> Set[str]:
        """The names of the exported functions."""
        return self._addresses.keys()

    def address(self, name: str) -> int:
        """The address of an exported function."""
        try:
            return self._addresses[name]
        except KeyError:
            exported = ", ".join(sorted(self._addresses)) or "nothing"
            raise InternalError(f"no function {name!r} in this library, which exports {exported}") from None

    def optimised(self) -> str:
        """The IR after LLVM's passes, for reading; each call compiles again."""
        return self._each(_compiler().optimised)

    def assembly(self) -> str:
        """The machine code as assembly text, for reading; each call compiles again."""
        return self._each(_compiler().assembly)

    def _each(self, render: Callable[[str, int], str]) -> str:
        return "\n".join([render(source.text, target.vector_bits()) for source in self.sources])

    def __repr__(self) -> str:
        return f"<Library {self.report.key[:12]}: {', '.join(sorted(self._addresses))}>"


def compile_text(text: str, exports: Sequence[str], symbols: Mapping[str, int]) -> Library:
    """Compile a module of LLVM IR, or load its object from the cache, and link it into this process.

    ``exports`` are the functions of the library. ``symbols`` has the address of each symbol that the text
    declares and does not define; C's maths and memory functions are resolved without it. Raises InternalError
    for text that LLVM rejects and for an unresolved symbol. Thread-safe.

    >>> double = compile_text(
    ...     "define double @twice(double %x) { %y = fadd double %x, %x  ret double %y }", ["twice"], {}
    ... )
    >>> ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(double.address("twice"))(21.0)
    42.0
    """
    return compile_sources([IrSource(text, tuple(exports))], symbols)


def compile_sources(
    sources: Sequence[IrSource], symbols: Mapping[str, int], background: Compilation | None = None
) -> Library:
    """Compile sources as :func:`compile_text` does, and link them as one library; they may call each other.

    Each source is an entry of the cache, shared by all graphs. Their merged object is an entry too: the next
    process reads and links one object for all of them. ``background`` is already compiling some of them.
    """
    absent = {} if background is None else background.absent
    keys = [absent.get(source) or source_key(source) for source in sources]
    key = _merged_key(keys)
    stored = object_cache.load(key)
    if stored is not None:
        # An intact entry that is no object for this process is compiled again, not passed to LLVM's linker.
        with contextlib.suppress(InternalError, UnsupportedObject):
            return _linked(sources, key, [stored], None, symbols)
    is_looked_up = [len(keys) > 1 and source not in absent for source in sources]
    parts = [
        object_cache.load(k) if looked_up else None for k, looked_up in zip(keys, is_looked_up, strict=True)
    ]
    object_codes = {
        i: code for i, code in enumerate(parts) if code is not None and _is_sound(code, sources[i])
    }
    missing = [i for i in range(len(sources)) if i not in object_codes]
    _require_symbols(sources, symbols)
    compiled: dict[IrSource, ObjectCode] = {}
    if missing:
        objects = {} if background is None else dict(background.results())
        remaining = [sources[i] for i in missing if sources[i] not in objects]
        if remaining:
            texts = [source.text for source in remaining]
            objects |= zip(remaining, _compiler().build_all(texts, target.vector_bits()), strict=True)
        _log_compiled(len(missing), len(sources))
        for i in missing:
            code = compiled[sources[i]] = objects[sources[i]]
            object_cache.store(keys[i], code.code)
            object_codes[i] = code.code
    merged, merge_failure = _merged([object_codes[i] for i in range(len(sources))])
    if len(keys) > 1 and len(merged) == 1:
        object_cache.store(key, merged[0])
    return _linked(sources, key, merged, compiled, symbols, merge_failure)


def source_key(source: IrSource) -> str:
    """The key of the object of a module in the cache."""
    return _key(source.text)


def is_stored(library: Library) -> bool:
    """Whether the object of a library is in the cache, so that :func:`load_library` can load it."""
    return not library.fallback and object_cache.has(library.report.key)


def load_library(key: str, exports: Sequence[str], symbols: Mapping[str, int]) -> Library | None:
    """The library of an object in the cache, without its text.

    ``exports`` are functions that it has to export, and ``symbols`` as in :func:`compile_text`. None if the
    cache has no such object, or one that this process can't link. Equal libraries of a process are one
    object.
    """
    with unforkable():
        library = _loaded.get(key)
        if library is not None:
            return library
        code = object_cache.load(key)
        if code is None or elf.unavailable_reason():
            return None
        start = time.perf_counter()
        try:
            image = _load_by_elf(code, exports, symbols)
        except (InternalError, UnsupportedObject):
            return None
        link_ms = 1e3 * (time.perf_counter() - start)
        report = CompileReport(
            key=key,
            from_cache=True,
            text_bytes=0,
            object_bytes=len(code),
            parse_ms=0.0,
            optimise_ms=0.0,
            emit_ms=0.0,
            link_ms=link_ms,
        )
        library = _loaded[key] = Library((), (), image, report, "", tuple(image.addresses))
        return library


def store_merged(sources: Sequence[IrSource]) -> str | None:
    """The key of the merged object of ``sources``, which are in the cache; it is stored if it is not there.

    None if an object is not in the cache, or they can't be merged.
    """
    keys = [source_key(source) for source in sources]
    key = _merged_key(keys)
    if object_cache.has(key):
        return key
    codes = [code for k in keys if (code := object_cache.load(k)) is not None]
    merged, _ = _merged(codes) if len(codes) == len(keys) else ((), "")
    if len(merged) != 1:
        return None
    object_cache.store(key, merged[0])
    return key


def _log_compiled(count: int, total: int) -> None:
    """Log that LLVM has compiled modules of a library, if compiles are logged."""
    log = logger("compile")
    if log is not None:
        others = "" if count == total else "; the others were on disk"
        log.info("LLVM compiled %d of %d modules%s", count, total, others)


def shipped_text(name: str) -> str:
    """The text of a file of this package, such as ``pool.ll``; also from a zip archive."""
    loader: Any = sys.modules[__name__].__spec__.loader  # type: ignore[union-attr]  # an imported module has one
    content: bytes = loader.get_data(os.path.join(os.path.dirname(__file__), name))
    return content.decode()


class _Loaded(Protocol):
    """An object that a linker has loaded into memory."""

    @property
    def addresses(self) -> dict[str, int]: ...

    def unload(self) -> None: ...


_loaded: weakref.WeakValueDictionary[str, Library] = weakref.WeakValueDictionary()
"""The libraries that :func:`load_library` has loaded, by the keys of their objects."""

# Functions that LLVM may call, and that kernels may declare without an address.
_MATHS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs fdim
floor fma fmax fmin fmod frexp hypot ldexp lgamma log log10 log1p log2 modf nearbyint nextafter pow remainder
rint round roundeven sin sincos sinh sqrt tan tanh tgamma trunc
"""
_MEMORY = "memcpy memmove memset realloc free"
_RUNTIME = {name + width for name in _MATHS.split() for width in ("", "f")} | set(_MEMORY.split())

_DECLARED = re.compile(r"^(?:declare [^@\n]*@([\w.$]+)|@([\w.$]+) = external )", re.MULTILINE)


def _key(text: str) -> str:
    return digest((context() + text).encode()).hex()


def _merged_key(keys: Sequence[str]) -> str:
    """The key of the object that is merged from those of ``keys``."""
    return keys[0] if len(keys) == 1 else _key("\n".join(keys))


def context() -> str:
    """What machine code depends on besides its text: LLVM, the vector width, the processor, the settings."""
    return (
        f"llvmlite {llvmlite.__version__}\n{target.vector_bits()} bits\n"
        f"{cpu_fingerprint.fingerprint()}\n{_settings()}\n"
    )


@functools.cache
def _settings() -> str:
    """The source of the compiler module, which contains all its settings; part of the cache key."""
    return shipped_text("compiler.py")


def _compiler() -> Any:
    """The module that imports LLVM, imported at its first use."""
    return imported("dualflow.backends.llvm.runtime.compiler")


def _is_sound(code: bytes, source: IrSource) -> bool:
    """Whether a cached object may be the object of ``source``: it exports and imports the same symbols."""
    if not elf.SUPPORTED:
        return True
    try:
        file = read(code)
    except UnsupportedObject:
        return False
    undefined = file.symbols["section"] == UNDEFINED
    imports = {
        name
        for name, is_undefined in zip(file.names, undefined.tolist(), strict=True)
        if is_undefined and name
    }
    return (
        imports <= _RUNTIME.union(_declared([source]))
        and imports.isdisjoint(source.exports)
        and (set(source.exports) <= set(file.names))
    )


def _merged(codes: Sequence[bytes]) -> tuple[Sequence[bytes], str]:
    """The objects merged into one if possible; otherwise the objects, with the reason."""
    if len(codes) == 1 or not elf.SUPPORTED:
        return codes, ""
    merging = imported("dualflow.backends.llvm.runtime.object_merge")  # not needed for a cached merged object
    try:
        return [merging.merge(codes)], ""
    except UnsupportedObject as reason:
        return codes, str(reason)


def _linked(
    sources: Sequence[IrSource],
    key: str,
    codes: Sequence[bytes],
    compiled: Mapping[IrSource, ObjectCode] | None,
    symbols: Mapping[str, int],
    merge_failure: str = "",
) -> Library:
    """Link objects; ``compiled`` are the new ones, None if all come from the cache.

    ``merge_failure`` is the reason that they could not be merged.
    """
    start = time.perf_counter()
    loaded, fallback = _load(codes, sources, symbols, stored=compiled is None)
    link_ms = 1e3 * (time.perf_counter() - start)
    new = list((compiled or {}).values())
    report = CompileReport(
        key,
        not new,
        sum(len(source.text) for source in sources),
        sum(map(len, codes)),
        sum(code.parse_ms for code in new),
        sum(code.optimise_ms for code in new),
        sum(code.emit_ms for code in new),
        link_ms,
    )
    return Library(sources, tuple(compiled or ()), loaded, report, fallback or merge_failure)


def _load(
    codes: Sequence[bytes], sources: Sequence[IrSource], symbols: Mapping[str, int], *, stored: bool
) -> tuple[_Loaded, str]:
    """Link objects; returns them, and why LLVM's linker had to be used although ``elf`` is available."""
    exports = [name for source in sources for name in source.exports]
    failure = ""
    if not elf.unavailable_reason() and len(codes) == 1:
        try:
            return _load_by_elf(codes[0], exports, symbols), ""
        except UnsupportedObject as reason:
            if stored:
                raise
            failure = str(reason)
    elif stored and elf.SUPPORTED:
        for code in codes:
            read(code)  # LLVM's linker does not check offsets
    imports = {name: _symbol_address(name, symbols) for name in _declared(sources)}
    loaded: _Loaded = imported("dualflow.backends.llvm.runtime.llvm_linker").load(codes, exports, imports)
    return loaded, failure


def _load_by_elf(code: bytes, exports: Sequence[str], symbols: Mapping[str, int]) -> _Loaded:
    image = elf.load(code, lambda name: _symbol_address(name, symbols))
    missing = [name for name in exports if name not in image.addresses]
    if not missing:
        return image
    image.unload()
    raise InternalError(f"a kernel can't be linked: the text does not define {', '.join(missing)}")


def _declared(sources: Sequence[IrSource]) -> list[str]:
    """The external symbols that sources declare and none of them defines."""
    declarations = (match for source in sources for match in _DECLARED.findall(source.text))
    names = {function or variable for function, variable in declarations}
    names.difference_update(name for source in sources for name in source.exports)
    return sorted(name for name in names if not name.startswith("llvm."))


def _require_symbols(sources: Sequence[IrSource], symbols: Mapping[str, int]) -> None:
    for name in _declared(sources):
        _symbol_address(name, symbols)


def _symbol_address(name: str, symbols: Mapping[str, int]) -> int:
    address = symbols.get(name) or (process_symbol(name) if name in _RUNTIME else 0)
    if not address:
        provided = ", ".join(sorted(symbols)) or "none"
        raise InternalError(
            f"a kernel needs the symbol {name!r}, which is not provided; provided: {provided}"
        )
    return address


@functools.cache
def process_symbol(name: str) -> int:
    """The address of a function of the C libraries; 0 if there is none."""
    for library in ("msvcrt",) if sys.platform == "win32" else (None, "libm.so.6"):
        with contextlib.suppress(OSError):
            if address := function_address(ctypes.CDLL(library), name):
                return address
    return 0
