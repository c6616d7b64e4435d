"""LLVM IR text in, callable addresses out: the one place that talks to LLVM.

The text is vector code already, so LLVM is asked to clean up, allocate registers and schedule, and not to
look for vectors of its own. Each library is linked by an LLJIT of its own: dropping the library returns all
its memory. This module imports llvmlite; nothing imports this module before the first compile.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType

import llvmlite
import llvmlite.binding as llvm

from dualflow.core.errors import InternalError
from dualflow.native import object_cache


@dataclass(frozen=True, slots=True)
class PassSettings:
    """How hard LLVM works: its IR pipeline level and its code generation level, each 0 to 3."""

    speed_level: int = 1
    codegen_level: int = 2


@dataclass(frozen=True, slots=True)
class CompileReport:
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
    """

    __slots__ = ("__weakref__", "_addresses", "report", "text")

    def __init__(
        self, text: str, addresses: Mapping[str, int], tracker: llvm.ResourceTracker, report: CompileReport
    ) -> None:
        self.text = text
        self.report = report
        self._addresses = dict(addresses)
        # At exit the code stays: threads may be running it.
        weakref.finalize(self, _unload, tracker).atexit = False

    def address(self, name: str) -> int:
        """The address of an exported function."""
        try:
            return self._addresses[name]
        except KeyError:
            known = ", ".join(sorted(self._addresses)) or "nothing"
            raise InternalError(f"no function {name!r} in this library, which exports {known}") from None

    def optimised(self) -> str:
        """The IR after LLVM's passes, for reading (made anew on each call)."""
        with _llvm_to_ourselves():
            return str(_optimised_module(self.text, _target_machine(), PassSettings())[0])

    def assembly(self) -> str:
        """The machine code as assembly text, for reading (made anew on each call)."""
        with _llvm_to_ourselves():
            machine = _target_machine()
            return str(machine.emit_assembly(_optimised_module(self.text, machine, PassSettings())[0]))

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
    settings = PassSettings()
    imports = _resolve(text, symbols)
    key = _key(text, settings)
    with _llvm_to_ourselves():
        code = object_cache.load(key)
        if code is not None:
            # A whole entry that is no object for this process is built anew.
            with contextlib.suppress(InternalError):
                return _finish(text, key, code, exports, imports, None)
        code, stages = _build(text, settings)
        object_cache.store(key, code)
        return _finish(text, key, code, exports, imports, stages)


def shipped_text(name: str) -> str:
    """One of the ``.ll`` files of this package, such as ``pool.ll``."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="ascii") as file:
        return file.read()


# Every use of LLVM, freeing included, holds this lock; a fork waits for it, so that a child never inherits
# LLVM, or llvmlite's own lock, half way through.
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
_CPU = llvm.get_host_cpu_name()
_FEATURES = llvm.get_host_cpu_features().flatten()
_TRIPLE = llvm.get_process_triple()
_VERSIONS = f"llvmlite {llvmlite.__version__} llvm {llvm.llvm_version_info}"

# What LLVM may call on its own account, and what kernels may declare without giving an address.
_MATHS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs fdim
floor fma fmax fmin fmod frexp hypot ldexp lgamma log log10 log1p log2 modf nearbyint nextafter pow remainder
rint round roundeven sin sincos sinh sqrt tan tanh tgamma trunc
"""
_RUNTIME = {name + width for name in _MATHS.split() for width in ("", "f")} | {"memcpy", "memmove", "memset"}

_DECLARED = re.compile(r"^(?:declare [^@\n]*@([\w.$]+)|@([\w.$]+) = external )", re.MULTILINE)
_target: list[llvm.TargetMachine] = []


@contextlib.contextmanager
def _llvm_to_ourselves() -> Iterator[None]:
    """The lock; and Ctrl-C waits: raised at the wrong place it would leave llvmlite's lock taken for ever."""
    with _lock:
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler) or threading.current_thread() is not threading.main_thread():
            yield
            return
        arrived: list[tuple[int, FrameType | None]] = []
        signal.signal(signal.SIGINT, lambda number, frame: arrived.append((number, frame)))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, handler)
            if arrived:
                handler(*arrived[0])


def _unload(tracker: llvm.ResourceTracker) -> None:
    with _llvm_to_ourselves():
        tracker.close()


def _resolve(text: str, symbols: Mapping[str, int]) -> dict[str, int]:
    """The address of every outside symbol that the text declares."""
    names = {function or variable for function, variable in _DECLARED.findall(text)}
    found: dict[str, int] = {}
    for name in names:
        if name.startswith("llvm."):
            continue
        address = symbols.get(name) or (_process_symbol(name) if name in _RUNTIME else 0)
        if not address:
            known = ", ".join(sorted(symbols)) or "none"
            raise InternalError(f"a kernel needs the symbol {name!r}, which nobody provides; given: {known}")
        found[name] = address
    return found


def _process_symbol(name: str) -> int:
    for library in ("msvcrt",) if sys.platform == "win32" else (None, "libm.so.6"):
        try:
            return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value or 0
        except (OSError, AttributeError):
            continue
    return 0


def _key(text: str, settings: PassSettings) -> str:
    context = f"{_VERSIONS}\n{_TRIPLE}\n{_CPU}\n{_FEATURES}\n{settings}\n"
    return hashlib.sha256((context + text).encode()).hexdigest()


def _target_machine() -> llvm.TargetMachine:
    if not _target:
        target = llvm.Target.from_triple(_TRIPLE)
        level = PassSettings().codegen_level
        _target.append(
            target.create_target_machine(_CPU, _FEATURES, level, reloc="pic", codemodel="small", jit=True)
        )
    return _target[0]


def _build(text: str, settings: PassSettings) -> tuple[bytes, tuple[float, float, float]]:
    """The object code and the milliseconds of parsing, passes and emission."""
    machine = _target_machine()
    module, parse_ms, optimise_ms = _optimised_module(text, machine, settings)
    start = time.perf_counter()
    code = machine.emit_object(module)
    return code, (parse_ms, optimise_ms, 1e3 * (time.perf_counter() - start))


def _optimised_module(
    text: str, machine: llvm.TargetMachine, settings: PassSettings
) -> tuple[llvm.ModuleRef, float, float]:
    start = time.perf_counter()
    try:
        # A context of its own: the global one would keep every type and constant for ever.
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as refusal:
        # Without its traceback, whose frames would hold LLVM's objects beyond the lock.
        raise InternalError(f"LLVM refuses this kernel: {refusal}") from refusal.with_traceback(None)
    parsed = time.perf_counter()
    options = llvm.create_pipeline_tuning_options(settings.speed_level)
    options.loop_vectorization = options.slp_vectorization = False
    options.loop_interleaving = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module, 1e3 * (parsed - start), 1e3 * (time.perf_counter() - parsed)


def _finish(
    text: str,
    key: str,
    code: bytes,
    exports: Sequence[str],
    imports: Mapping[str, int],
    stages: tuple[float, float, float] | None,
) -> Library:
    """Link an object; ``stages`` are the milliseconds that building it took, None when it came from disk."""
    start = time.perf_counter()
    tracker = _link(code, exports, imports)
    link_ms = 1e3 * (time.perf_counter() - start)
    report = CompileReport(key, stages is None, len(text), len(code), *(stages or (0.0, 0.0, 0.0)), link_ms)
    return Library(text, {name: tracker[name] for name in exports}, tracker, report)


def _link(code: bytes, exports: Sequence[str], imports: Mapping[str, int]) -> llvm.ResourceTracker:
    """Load an object in an LLJIT of its own: a shared one would keep a dead library's tables for ever."""
    linker = llvm.create_lljit_compiler(_target_machine(), use_jit_link=_use_jit_link(), suppress_errors=True)
    builder = llvm.JITLibraryBuilder().add_object_img(code)
    for name, address in imports.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    try:
        return builder.link(linker, "kernels")
    except RuntimeError as refusal:
        raise InternalError(f"a kernel can't be linked: {refusal}") from refusal.with_traceback(None)


def _use_jit_link() -> bool:
    # One slab per library keeps code within reach of its constants; JITLink has no COFF support to rely on.
    return sys.platform != "win32"
