"""Compiles IR text to object code with LLVM.

The text is vectorized and has no common subexpressions, so few of LLVM's passes are run: its standard
pipelines double the compile time and don't make the code faster. Importing this module loads LLVM, so ``jit``
imports it only if an object is not on disk.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from dualflow.backends.llvm.runtime import llvm_library
from dualflow.backends.llvm.runtime.ir_source import QUICKLY_COMPILED
from dualflow.backends.llvm.runtime.llvm_access import llvm_lock
from dualflow.backends.llvm.runtime.llvm_library import ParsedModule, Passes, Target
from dualflow.backends.llvm.runtime.llvm_version_check import require_llvm
from dualflow.backends.llvm.runtime.parallel_compile import Compile, CompileQueue, ObjectCode, threads_for
from dualflow.core.errors import InternalError

PASSES = (
    "AlwaysInliner",  # element functions into the loops that use them
    "SROA",  # local variables out of memory
    "SimplifyCFG",  # the empty blocks that the other passes leave
)
"""LLVM's passes over the IR, in order."""
CHANGED_BY_PASSES = ("alwaysinline", "alloca ")
"""What the passes change; without it they leave the machine code of a kernel as it is, and take 0.2 ms."""

CODEGEN_LEVEL = 1
"""The optimization level of the code generator, 0 to 3; 0 for modules that are :data:`QUICKLY_COMPILED`.

Level 2 takes 10 % longer: for some processors it schedules instructions once more after register allocation,
and it tests whether 64-bit divisions fit into 32 bits. Neither makes kernels faster.
"""

RELOCATION, CODE_MODEL = "pic", "small"
"""Position-independent code, in sections that are within 2 GB of each other."""


def build(text: str, vector_bits: int) -> ObjectCode:
    """Compile a module of LLVM IR for this processor, with vectors of at most ``vector_bits``.

    Raises InternalError for text that LLVM rejects.
    """
    return build_all([text], vector_bits)[0]


def build_all(texts: Sequence[str], vector_bits: int) -> list[ObjectCode]:
    """Compile modules as :func:`build` does, in parallel."""
    # long texts first, so that no thread ends with one
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    threads = threads_for(len(texts))
    with llvm_lock(), CompileQueue(lambda: compiler_of_thread(vector_bits), threads) as queue:
        for i in order:
            queue.add(texts[i])
        objects = dict(zip(order, queue.results(), strict=True))
    return [objects[i] for i in range(len(texts))]


@contextlib.contextmanager
def compiler_of_thread(vector_bits: int) -> Iterator[Compile]:
    """A function that compiles as :func:`build` does, for one thread, while a thread holds LLVM's lock."""
    with _borrowed(vector_bits) as machine:
        yield partial(_build, machine)


def optimised(text: str, vector_bits: int) -> str:
    """The IR after LLVM's passes."""
    with llvm_lock(), _borrowed(vector_bits) as machine:
        return _optimised(text, machine)


def assembly(text: str, vector_bits: int) -> str:
    """The machine code as assembly text."""
    with llvm_lock(), _borrowed(vector_bits) as machine:
        return _assembly(text, machine)


require_llvm()
llvm_library.initialize()
CPU: str = llvm_library.processor()
FEATURES: str = llvm_library.processor_features()
TRIPLE: str = llvm_library.process_triple()
_free_machines: dict[int, list[_Machine]] = {}


class _Machine:
    """Code generators and the passes for one vector width, for one thread at a time; never freed."""

    def __init__(self, vector_bits: int) -> None:
        self._features = _without_wider(FEATURES, vector_bits)
        self._targets: dict[int, Target] = {}
        self.passes = Passes(self.target(CODEGEN_LEVEL), PASSES)

    def optimise(self, module: ParsedModule, text: str) -> None:
        """Run the passes on a module, if its ``text`` has what they change."""
        if any(word in text for word in CHANGED_BY_PASSES):
            self.passes.run(module)

    def target(self, level: int) -> Target:
        """The code generator for an optimization level."""
        if level not in self._targets:
            self._targets[level] = Target.create(TRIPLE, CPU, self._features, level, RELOCATION, CODE_MODEL)
        return self._targets[level]

    def emit(self, module: ParsedModule, text: str, *, assembly: bool = False) -> bytes:
        """The code of a module, at the level for its ``text``."""
        level = 0 if text.startswith(QUICKLY_COMPILED) else CODEGEN_LEVEL
        return self.target(level).emit(module, assembly=assembly)


@contextlib.contextmanager
def _borrowed(vector_bits: int) -> Iterator[_Machine]:
    """A machine, which no other caller gets until the block ends."""
    free = _free_machines.setdefault(vector_bits, [])
    try:
        machine = free.pop()
    except IndexError:  # other threads borrow meanwhile
        machine = _Machine(vector_bits)
    try:
        yield machine
    finally:
        free.append(machine)


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


def _build(machine: _Machine, text: str) -> ObjectCode:
    start = time.perf_counter()
    with _parse(text) as module:
        parsed = time.perf_counter()
        machine.optimise(module, text)
        optimised = time.perf_counter()
        code = machine.emit(module, text)
    stages = pairwise((start, parsed, optimised, time.perf_counter()))
    return ObjectCode(code, *[1e3 * (end - begin) for begin, end in stages])


def _optimised(text: str, machine: _Machine) -> str:
    with _parse(text) as module:
        machine.optimise(module, text)
        return str(module)


def _assembly(text: str, machine: _Machine) -> str:
    with _parse(text) as module:
        machine.optimise(module, text)
        return machine.emit(module, text, assembly=True).decode()


def _parse(text: str) -> ParsedModule:
    try:
        return ParsedModule(text)
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses this kernel: {error}") from error
