"""A cache of emitted kernels: equal kernels are emitted once, and are one function."""

from __future__ import annotations

from collections.abc import Hashable

from dualflow.backends.llvm.kernel_table import code_constants
from dualflow.backends.llvm.lower_kernel import KernelEmitter
from dualflow.backends.llvm.runtime.interrupts import ROUTINE
from dualflow.backends.llvm.runtime.ir_source import IrSource, named_by_content
from dualflow.backends.llvm.text import LlvmModule
from dualflow.core.records import dataclass
from dualflow.graph.ir import Node
from dualflow.schedule.access_bounds import AccessBounds, access_bounds
from dualflow.schedule.kernel import Kernel, KernelLaunch
from dualflow.schedule.kernel_statements import BoundsCheck, Compute, Repeat, walk_kernel
from dualflow.schedule.structure import structure

MAX_CACHED = 512
"""The maximum number of kernels in the cache."""
_NAME = "kernel"
_cached: dict[Hashable, KernelText] = {}


@dataclass(frozen=True, slots=True, eq=False)
class KernelText:
    """The text of a kernel, and its checks.

    Attributes:
        source: the module of the kernel, named by its content.
        checks: the message of each check in the order of their numbers, and the index of its statement in the
            order of ``walk``.
        polls_signals: whether it has a loop that polls for signals.
        accesses: the bounds of its accesses.
    """

    source: IrSource
    checks: tuple[tuple[str, int], ...]
    polls_signals: bool
    accesses: AccessBounds

    def messages(self, kernel: Kernel) -> list[tuple[str, Node]]:
        """The message and the node of each check of ``kernel``, which equals the cached kernel."""
        if not self.checks:
            return []
        statements = list(walk_kernel(kernel.body))
        failing = [(message, statements[number]) for message, number in self.checks]
        return [(message, s.node) for message, s in failing if isinstance(s, Compute | BoundsCheck | Repeat)]


def kernel_text(launch: KernelLaunch, lanes: int, bits: int) -> KernelText:
    """The text of the kernel of ``launch``, for vectors of ``bits`` and vector loops of ``lanes`` lanes."""
    kernel_structure = structure(launch.kernel)
    constants = code_constants(launch)
    literals = None if constants is None else tuple([x.tobytes() for x in constants])
    key = kernel_structure, len(launch.partials), literals, lanes, bits
    text = _cached.get(key)
    if text is None:
        text = _emitted(launch, lanes, bits)
        _cache(key, text)
    return text


def _emitted(launch: KernelLaunch, lanes: int, bits: int) -> KernelText:
    emitter = KernelEmitter(LlvmModule(bits), launch, _NAME, lanes)
    emitter.emit()
    indices = (
        {id(statement): i for i, statement in enumerate(walk_kernel(launch.kernel.body))}
        if emitter.checks
        else {}
    )
    checks = tuple([(check.message, indices[id(check.statement)]) for check in emitter.checks])
    source = named_by_content(emitter.module.text(), _NAME)
    return KernelText(source, checks, emitter.module.has(ROUTINE), access_bounds(launch.kernel))


def _cache(key: Hashable, text: KernelText) -> None:
    """Add a text to the cache; evicts the oldest ones when it is full."""
    if len(_cached) >= MAX_CACHED:
        for oldest in list(_cached)[: MAX_CACHED // 8]:
            _cached.pop(oldest, None)
    _cached[key] = text
