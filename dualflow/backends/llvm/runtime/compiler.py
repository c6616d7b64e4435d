"""Compiles IR text to object code with LLVM.

The text is vectorized and has no common subexpressions, so few of LLVM's passes are run: its standard
pipelines double the compile time and don't make the code faster. Importing this module loads LLVM, so ``jit``
imports it only if an object is not on disk.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from dualflow.backends.llvm.runtime import llvm_library
from dualflow.backends.llvm.runtime.llvm_access import llvm_lock
from dualflow.backends.llvm.runtime.llvm_library import ParsedModule, Passes, Target
from dualflow.backends.llvm.runtime.llvm_version_check import require_llvm
from dualflow.backends.llvm.runtime.parallel_compile import MAX_THREADS, CompileQueue, threads_for
from dualflow.core.errors import InternalError
from dualflow.core.records import NamedTuple

PASSES = (
    "AlwaysInliner",  # element functions into the loops that use them
    "SROA",  # local variables out of memory
    "SimplifyCFG",  # the empty blocks that the other passes leave
)
"""LLVM's passes over the IR, in order."""

CODEGEN_LEVEL = 1
"""The optimization level of the code generator, 0 to 3.

Level 2 takes 10 % longer: for some processors it schedules instructions once more after register allocation,
and it tests whether 64-bit divisions fit into 32 bits. Neither makes kernels faster.
"""

RELOCATION, CODE_MODEL = "pic", "small"
"""Position-independent code, in sections that are within 2 GB of each other."""


class ObjectCode(NamedTuple):
    """Object code, and the milliseconds of each stage."""

    code: bytes
    parse_ms: float
    optimise_ms: float
    emit_ms: float


def build(text: str, vector_bits: int) -> ObjectCode:
    """Compile a module of LLVM IR for this processor, with vectors of at most ``vector_bits``.

    Raises InternalError for text that LLVM rejects.
    """
    return build_all([text], vector_bits)[0]


def build_all(texts: Sequence[str], vector_bits: int) -> list[ObjectCode]:
    """Compile modules as :func:`build` does, in parallel."""
    # long texts first, so that no thread ends with one
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    with compilation(vector_bits, threads_for(len(texts))) as modules:
        for i in order:
            modules.add(texts[i])
        objects = dict(zip(order, modules.results(), strict=True))
    return [objects[i] for i in range(len(texts))]


@contextlib.contextmanager
def compilation(vector_bits: int, threads: int = MAX_THREADS) -> Iterator[Compilation]:
    """A compilation to which modules can be added; holds LLVM's lock until the block ends."""
    with llvm_lock():
        borrowed: list[Target] = []
        free = _free_targets.setdefault(vector_bits, [])

        def target() -> Target:
            borrowed.append(free.pop() if free else _new_target(vector_bits))
            return borrowed[-1]

        try:
            with CompileQueue(target, threads_for(threads)) as queue:
                yield Compilation(_the_machine(vector_bits), queue)
        finally:
            free += borrowed


class Compilation:
    """Modules that are being compiled, in the order in which they were added."""

    def __init__(self, machine: _Machine, queue: CompileQueue) -> None:
        self._machine, self._queue = machine, queue
        self._stages: list[tuple[float, float]] = []

    def add(self, text: str) -> None:
        """Start to compile a module. Raises InternalError for text that LLVM rejects."""
        start = time.perf_counter()
        module = _parse(text)
        parsed = time.perf_counter()
        self._machine.passes.run(module)
        self._stages.append((1e3 * (parsed - start), 1e3 * (time.perf_counter() - parsed)))
        self._queue.put(module)

    def results(self) -> list[ObjectCode]:
        """The code of the modules, in the order in which they were added."""
        objects = self._queue.results()
        return [
            ObjectCode(emitted.code, *before, emitted.milliseconds)
            for before, emitted in zip(self._stages, objects, strict=True)
        ]


def optimised(text: str, vector_bits: int) -> str:
    """The IR after LLVM's passes."""
    with llvm_lock():
        return _optimised(text, _the_machine(vector_bits))


def assembly(text: str, vector_bits: int) -> str:
    """The machine code as assembly text."""
    with llvm_lock():
        return _assembly(text, _the_machine(vector_bits))


require_llvm()
llvm_library.initialize()
CPU: str = llvm_library.processor()
FEATURES: str = llvm_library.processor_features()
TRIPLE: str = llvm_library.process_triple()
_machines: dict[int, _Machine] = {}
_free_targets: dict[int, list[Target]] = {}


class _Machine(NamedTuple):
    """The code generator and the passes for one vector width, created once."""

    target: Target
    passes: Passes


def _the_machine(vector_bits: int) -> _Machine:
    if vector_bits not in _machines:
        target = _new_target(vector_bits)
        _machines[vector_bits] = _Machine(target, Passes(target, PASSES))
    return _machines[vector_bits]


def _new_target(vector_bits: int) -> Target:
    features = _without_wider(FEATURES, vector_bits)
    return Target.create(TRIPLE, CPU, features, CODEGEN_LEVEL, RELOCATION, CODE_MODEL)


_WITH_256_BITS = ("avx", "fma", "f16c", "xop", "vaes", "vpclmulqdq", "sha512", "sm3", "sm4")
_WITH_512_BITS = ("avx512", "avx10", "evex512")


def _without_wider(features: str, bits: int) -> str:
    """LLVM's list of a processor's features, without those that need vectors of more than ``bits``.

    >>> _without_wider("+sse2,+avx,+avx2,+fma,+avx512f,-avx512vbmi", 256)
    '+sse2,+avx,+avx2,+fma,-avx512f,-avx512vbmi'
    >>> _without_wider("+sse2,+avx,+avx2,+fma,+avx512f", 128)
    '+sse2,-avx,-avx2,-fma,-avx512f'
    >>> _without_wider("+avx2,+gfni,+avx512f", 256), _without_wider("+avx2,+gfni", 256)
    ('+avx2,-gfni,-avx512f', '+avx2,+gfni')
    """
    words = [word for word in features.split(",") if word]
    with_widest = _WITH_512_BITS + ("gfni",) * ("+avx512f" in words)
    return ",".join([f"-{w[1:]}" if _bits_of(w[1:], with_widest) > bits else w for w in words])


def _bits_of(feature: str, with_widest: tuple[str, ...]) -> int:
    """The vector width that an extension of x86 introduced or needs; 128 for all others."""
    if feature.startswith(with_widest):
        return 512
    return 256 if feature.startswith(_WITH_256_BITS) else 128


# The functions below run with the lock held, and free all of LLVM's objects that they create.


def _optimised(text: str, machine: _Machine) -> str:
    with _parse(text) as module:
        machine.passes.run(module)
        return str(module)


def _assembly(text: str, machine: _Machine) -> str:
    with _parse(text) as module:
        machine.passes.run(module)
        return machine.target.emit(module, assembly=True).decode()


def _parse(text: str) -> ParsedModule:
    try:
        return ParsedModule(text)
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses this kernel: {error}") from error
