"""Everything that needs LLVM: IR text to object code, and a portable way to load objects.

The text is vector code already, clean and free of repetition, so few of LLVM's passes are run: its standard
pipelines double the compile time, and what they find to do makes the code no faster. Importing this module
loads LLVM, so ``jit`` does it only when an object is not on disk.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from dualflow.backends.llvm.runtime.emission import emit_all, threads_for
from dualflow.backends.llvm.runtime.requirement import require_llvm
from dualflow.core.errors import InternalError
from dualflow.core.locks import unforkable

PASSES = (
    "always_inliner",  # element functions into the loops that use them
    "sroa",  # local variables out of memory
    "simplify_cfg",  # the empty blocks that both leave
)
"""LLVM's passes over the IR, in order."""

CODEGEN_LEVEL = 2
"""How hard its code generator works, 0 to 3."""


class ObjectCode(NamedTuple):
    """Object code, and the milliseconds that its stages took."""

    code: bytes
    parse_ms: float
    optimise_ms: float
    emit_ms: float


def build(text: str, vector_bits: int) -> ObjectCode:
    """Compile a module of LLVM IR for this processor, as if its vectors had so many bits at most.

    Raises InternalError for text that LLVM refuses.
    """
    return build_all([text], vector_bits)[0]


def build_all(texts: Sequence[str], vector_bits: int) -> list[ObjectCode]:
    """Compile modules as :func:`build` does, on as many threads as are of use."""
    with _llvm_to_ourselves():
        return _build_all(texts, vector_bits)


def optimised(text: str, vector_bits: int) -> str:
    """The IR after LLVM's passes."""
    with _llvm_to_ourselves():
        return _optimised(text, _the_machine(vector_bits))


def assembly(text: str, vector_bits: int) -> str:
    """The machine code as assembly text."""
    with _llvm_to_ourselves():
        return _assembly(text, _the_machine(vector_bits))


class Loaded:
    """An object that LLVM has put into memory."""

    def __init__(self, addresses: Mapping[str, int], tracker: llvm.ResourceTracker) -> None:
        self.addresses = dict(addresses)
        self._tracker = tracker

    def unload(self) -> None:
        """Free the memory."""
        with _llvm_to_ourselves():
            self._tracker.close()


def load(codes: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int]) -> Loaded:
    """Put objects into memory, on any platform that LLVM knows; C's functions are found in the process.

    Each call has an LLJIT of its own: a shared one would keep a dead library's tables for ever.
    """
    with _llvm_to_ourselves():
        return _load(codes, exports, imports)


require_llvm()
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
CPU: str = llvm.get_host_cpu_name()
FEATURES: str = llvm.get_host_cpu_features().flatten()
TRIPLE: str = llvm.get_process_triple()
_machines: dict[int, _Machine] = {}
_more_targets: dict[int, list[llvm.TargetMachine]] = {}


@contextlib.contextmanager
def _llvm_to_ourselves() -> Iterator[None]:
    """Every use of LLVM, freeing included, is within this: one at a time, and none is cut in half by a fork.

    Signals wait: raised at the wrong place, a handler's error would leave llvmlite's own lock taken for ever,
    or have it free an object twice.
    """
    with unforkable():
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {int(n): h for n in signal.valid_signals() if callable(h := signal.getsignal(n))}
        arrived: dict[int, FrameType | None] = {}
        with _blocked(handlers):
            try:
                for number in handlers:  # another thread may take a signal that this one blocks
                    signal.signal(number, arrived.__setitem__)
                yield
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        _handle(handlers, arrived)


@contextlib.contextmanager
def _blocked(numbers: Iterable[int]) -> Iterator[None]:
    """This thread gets none of these signals before the end, where the system can hold them back."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _handle(handlers: Mapping[int, Callable[..., Any]], arrived: dict[int, FrameType | None]) -> None:
    """Call the handlers of signals that have waited, each once; the others too where one raises."""
    while arrived:
        number, frame = arrived.popitem()
        try:
            handlers[number](number, frame)
        finally:
            _handle(handlers, arrived)


class _Machine(NamedTuple):
    """What LLVM compiles with; made once for a width: not all of a pass builder is freed with it."""

    target: llvm.TargetMachine
    passes: llvm.ModulePassManager
    builder: llvm.PassBuilder


def _the_machine(vector_bits: int) -> _Machine:
    if vector_bits not in _machines:
        target = _new_target(vector_bits)
        passes = llvm.create_new_module_pass_manager()
        for name in PASSES:
            getattr(passes, f"add_{name}_pass")()
        builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(0))
        _machines[vector_bits] = _Machine(target, passes, builder)
    return _machines[vector_bits]


def _new_target(vector_bits: int) -> llvm.TargetMachine:
    features = _without_wider(FEATURES, vector_bits)
    return llvm.Target.from_triple(TRIPLE).create_target_machine(
        CPU, features, CODEGEN_LEVEL, reloc="pic", codemodel="small", jit=True
    )


def _targets(vector_bits: int, count: int) -> list[llvm.TargetMachine]:
    """So many code generators, made once: threads can't share one."""
    more = _more_targets.setdefault(vector_bits, [])
    while len(more) < count - 1:
        more.append(_new_target(vector_bits))
    return [_the_machine(vector_bits).target, *more[: count - 1]]


_WITH_256_BITS = ("avx", "fma", "f16c", "xop", "vaes", "vpclmulqdq", "sha512", "sm3", "sm4")
_WITH_512_BITS = ("avx512", "avx10", "evex512")
_ANY_WIDTH = 512


def _without_wider(features: str, bits: int) -> str:
    """LLVM's list of a processor's features, less those that came with vectors of more than ``bits``.

    >>> _without_wider("+sse2,+avx,+avx2,+fma,+avx512f,-avx512vbmi", 256)
    '+sse2,+avx,+avx2,+fma,-avx512f,-avx512vbmi'
    >>> _without_wider("+sse2,+avx,+avx2,+fma,+avx512f", 128)
    '+sse2,-avx,-avx2,-fma,-avx512f'
    """
    words = [word for word in features.split(",") if word]
    return ",".join([f"-{w[1:]}" if _bits_of(w[1:]) > bits else w for w in words])


def _bits_of(feature: str) -> int:
    """The width of the vectors that an extension of x86 came with or needs; 128 for all others."""
    if feature.startswith(_WITH_512_BITS):
        return 512
    return 256 if feature.startswith(_WITH_256_BITS) else 128


# The functions below run with the lock held; all of LLVM's objects that they make are gone when they return.


def _build_all(texts: Sequence[str], vector_bits: int) -> list[ObjectCode]:
    machine = _the_machine(vector_bits)
    stages: list[tuple[float, float]] = []

    def modules() -> Iterator[llvm.ModuleRef]:
        for i in order:
            start = time.perf_counter()
            module = _parse(texts[i])
            parsed = time.perf_counter()
            machine.passes.run(module, machine.builder)
            stages.append((1e3 * (parsed - start), 1e3 * (time.perf_counter() - parsed)))
            yield module

    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))  # no thread is left with a long one
    made = emit_all(modules(), _targets(vector_bits, threads_for(len(texts))))
    found = {
        i: ObjectCode(emitted.code, *before, emitted.milliseconds)
        for i, before, emitted in zip(order, stages, made, strict=True)
    }
    return [found[i] for i in range(len(texts))]


def _optimised(text: str, machine: _Machine) -> str:
    module = _parse(text)
    machine.passes.run(module, machine.builder)
    return str(module)


def _assembly(text: str, machine: _Machine) -> str:
    module = _parse(text)
    machine.passes.run(module, machine.builder)
    return str(machine.target.emit_assembly(module))


def _load(codes: Sequence[bytes], exports: Sequence[str], imports: Mapping[str, int]) -> Loaded:
    linker = llvm.create_lljit_compiler(
        _the_machine(_ANY_WIDTH).target, use_jit_link=_use_jit_link(), suppress_errors=True
    )
    builder = llvm.JITLibraryBuilder()
    for code in codes:
        builder.add_object_img(code)
    for name, address in imports.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    try:
        tracker = builder.link(linker, "kernels")
    except RuntimeError as refusal:
        raise InternalError(f"a kernel can't be linked: {refusal}") from refusal.with_traceback(None)
    return Loaded({name: tracker[name] for name in exports}, tracker)


def _parse(text: str) -> llvm.ModuleRef:
    try:
        # A context of its own: the global one would keep every type and constant for ever.
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as refusal:
        # Without its traceback, whose frames would hold LLVM's objects beyond the lock.
        raise InternalError(f"LLVM refuses this kernel: {refusal}") from refusal.with_traceback(None)
    return module


def _use_jit_link() -> bool:
    # One slab per library keeps code within reach of its constants; JITLink has no COFF support to rely on.
    return sys.platform != "win32"
