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
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import llvmlite

from dualflow.backends.llvm.runtime import cpu_fingerprint, elf, target
from dualflow.backends.llvm.runtime.object_file import UNDEFINED, UnsupportedObject, read
from dualflow.backends.llvm.runtime.source import IrSource
from dualflow.backends.runtime import object_cache
from dualflow.backends.runtime.digest import digest
from dualflow.core.errors import InternalError
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple

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
        sources: the IR that it is made of.
        report: what it cost.
        compiled: those of the sources that were compiled for it.
        fallback: why LLVM's linker was needed where ours runs; else empty.
    """

    __slots__ = ("__weakref__", "_addresses", "compiled", "fallback", "report", "sources")

    def __init__(
        self,
        sources: Sequence[IrSource],
        compiled: Sequence[IrSource],
        loaded: _Loaded,
        report: CompileReport,
        fallback: str,
    ) -> None:
        self.sources, self.compiled = tuple(sources), tuple(compiled)
        self.report = report
        self.fallback = fallback
        self._addresses = {name: loaded.addresses[name] for source in sources for name in source.exports}
        # At exit the code stays: threads may be running it.
        weakref.finalize(self, loaded.unload).atexit = False

    @property
    def text(self) -> str:
        """The IR of all sources."""
        return "\n".join([source.text for source in self.sources])

    def address(self, name: str) -> int:
        """The address of an exported function."""
        try:
            return self._addresses[name]
        except KeyError:
            known = ", ".join(sorted(self._addresses)) or "nothing"
            raise InternalError(f"no function {name!r} in this library, which exports {known}") from None

    def optimised(self) -> str:
        """The IR after LLVM's passes, for reading (made anew on each call)."""
        return self._each(_compiler().optimised)

    def assembly(self) -> str:
        """The machine code as assembly text, for reading (made anew on each call)."""
        return self._each(_compiler().assembly)

    def _each(self, made: Callable[[str, int], str]) -> str:
        return "\n".join([made(source.text, target.vector_bits()) for source in self.sources])

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
    return compile_sources([IrSource(text, tuple(exports))], symbols)


def compile_sources(
    sources: Sequence[IrSource], symbols: Mapping[str, int], ahead: Ahead | None = None
) -> Library:
    """Compile sources as :func:`compile_text` does, and link them as one library; they may call each other.

    Each is an entry of the cache, so one that any graph has compiled is not compiled again. What they are
    linked from is an entry too: the next process reads and links one object for all of them. ``ahead`` has
    begun with some of them.
    """
    keys = [_key(source.text) for source in sources]
    key = keys[0] if len(keys) == 1 else _key("\n".join(keys))
    stored = object_cache.load(key)
    if stored is not None:
        # A whole entry that is no object for this process is built anew: LLVM's linker doesn't get to see it.
        with contextlib.suppress(InternalError, UnsupportedObject):
            return _linked(sources, key, [stored], None, symbols)
    parts = [object_cache.load(k) if len(keys) > 1 else None for k in keys]
    codes = {i: code for i, code in enumerate(parts) if code is not None and _is_sound(code, sources[i])}
    missing = [i for i in range(len(sources)) if i not in codes]
    _refuse_unknown_symbols(sources, symbols)
    compiled: dict[IrSource, ObjectCode] = {}
    if missing:
        begun = {} if ahead is None else ahead.results()
        rest = [sources[i] for i in missing if sources[i] not in begun]
        if rest:
            texts = [source.text for source in rest]
            begun |= zip(rest, _compiler().build_all(texts, target.vector_bits()), strict=True)
        for i in missing:
            made = compiled[sources[i]] = begun[sources[i]]
            object_cache.store(keys[i], made.code)
            codes[i] = made.code
    together, refusal = _together([codes[i] for i in range(len(sources))])
    if len(keys) > 1 and len(together) == 1:
        object_cache.store(key, together[0])
    return _linked(sources, key, together, compiled, symbols, refusal)


class Ahead:
    """Compiles sources while more of them are written, in a ``with`` block; those on disk it leaves alone."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._sources: dict[IrSource, bool] = {}
        self._begun: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: Any) -> None:
        self._open.close()

    def begin(self, source: IrSource) -> None:
        """Begin with a source, unless that was done or its object is stored.

        Raises InternalError for text that LLVM refuses.
        """
        if source in self._sources:
            return
        self._sources[source] = missing = not object_cache.has(_key(source.text))
        if missing:
            if self._begun is None:
                self._begun = self._open.enter_context(_compiler().compilation(target.vector_bits()))
            self._begun.add(source.text)

    def results(self) -> dict[IrSource, ObjectCode]:
        """What has been compiled; no more can begin."""
        if self._begun is None:
            return {}
        begun = [source for source, missing in self._sources.items() if missing]
        return dict(zip(begun, self._begun.results(), strict=True))


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


def _is_sound(code: bytes, source: IrSource) -> bool:
    """Whether stored code is an object that may have been made of ``source``."""
    if not elf.SUPPORTED:
        return True
    try:
        file = read(code)
    except UnsupportedObject:
        return False
    undefined = file.symbols["section"] == UNDEFINED
    outside = {name for name, out in zip(file.names, undefined.tolist(), strict=True) if out and name}
    return (
        outside <= _RUNTIME.union(_declared([source]))
        and outside.isdisjoint(source.exports)
        and (set(source.exports) <= set(file.names))
    )


def _together(codes: Sequence[bytes]) -> tuple[Sequence[bytes], str]:
    """The objects as one, where they can be joined; else why not."""
    if len(codes) == 1 or not elf.SUPPORTED:
        return codes, ""
    merging = imported("dualflow.backends.llvm.runtime.object_merge")  # what is stored needs none
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
    refusal: str = "",
) -> Library:
    """Link objects; ``compiled`` are those that were built just now, None where all come as stored.

    ``refusal`` is why they could not be joined.
    """
    start = time.perf_counter()
    loaded, fallback = _load(codes, sources, symbols, stored=compiled is None)
    link_ms = 1e3 * (time.perf_counter() - start)
    made = list((compiled or {}).values())
    report = CompileReport(
        key,
        not made,
        sum(len(source.text) for source in sources),
        sum(map(len, codes)),
        sum(code.parse_ms for code in made),
        sum(code.optimise_ms for code in made),
        sum(code.emit_ms for code in made),
        link_ms,
    )
    return Library(sources, tuple(compiled or ()), loaded, report, fallback or refusal)


def _load(
    codes: Sequence[bytes], sources: Sequence[IrSource], symbols: Mapping[str, int], *, stored: bool
) -> tuple[_Loaded, str]:
    """The objects in memory, and why LLVM's linker put them there if ours could have been used."""
    exports = [name for source in sources for name in source.exports]
    refusal = ""
    if not elf.unavailable_reason() and len(codes) == 1:
        try:
            return _load_ourselves(codes[0], exports, symbols), ""
        except UnsupportedObject as reason:
            if stored:
                raise
            refusal = str(reason)
    elif stored and elf.SUPPORTED:
        for code in codes:
            read(code)  # LLVM's linker trusts every offset
    imports = {name: _find(name, symbols) for name in _declared(sources)}
    loaded: _Loaded = imported("dualflow.backends.llvm.runtime.llvm_linker").load(codes, exports, imports)
    return loaded, refusal


def _load_ourselves(code: bytes, exports: Sequence[str], symbols: Mapping[str, int]) -> _Loaded:
    image = elf.load(code, lambda name: _find(name, symbols))
    missing = [name for name in exports if name not in image.addresses]
    if not missing:
        return image
    image.unload()
    raise InternalError(f"a kernel can't be linked: the text does not define {', '.join(missing)}")


def _declared(sources: Sequence[IrSource]) -> list[str]:
    """The outside symbols that sources declare and none of them defines."""
    found = (match for source in sources for match in _DECLARED.findall(source.text))
    names = {function or variable for function, variable in found}
    names.difference_update(name for source in sources for name in source.exports)
    return sorted(name for name in names if not name.startswith("llvm."))


def _refuse_unknown_symbols(sources: Sequence[IrSource], symbols: Mapping[str, int]) -> None:
    for name in _declared(sources):
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
