"""Detects random numbers that Python or NumPy draws while a function is traced: the trace compiles them in.

Draws change the state of a generator, so the states before and after a trace are compared. A warning names
the line at which the code of the function, or of a function that it calls, reads the generator's name.
"""

from __future__ import annotations

import ctypes
import datetime
import pickle
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from types import BuiltinMethodType, ClassMethodDescriptorType, FrameType, FunctionType, MethodType
from typing import Any, Final

import numpy as np

from dualflow.core.records import NamedTuple
from dualflow.core.warning import warn_at
from dualflow.function.errors import FrozenDrawWarning
from dualflow.function.tracing.captured_values import CapturedValues
from dualflow.graph.ir import Origin

_MAX_CALL_DEPTH: Final = 3
"""The depth of calls up to which the line is searched."""

_REMEDY: Final = (
    "Draw with df.random, pass the numbers as arguments, or draw in a df.numpy_function at each call"
)


_MT19937_BYTES: Final = 4 * 625
"""The size of the state of NumPy's shared generator: 624 words and a position, 623 before the first draw."""

_UNDRAWN: Final = (623).to_bytes(4, sys.byteorder)
_PYTHON_UNDRAWN: Final = 624
"""The position in the state of one of Python's generators before its first draw since it was seeded."""

_CLOCKS: Final = frozenset(
    f"{clock}{unit}"
    for clock in ("time", "monotonic", "perf_counter", "process_time")
    for unit in ("", "_ns")
)
_DATES: Final = frozenset({"now", "today", "utcnow"})


class FrozenRead(NamedTuple):
    """A generator or clock that a function read while it was traced, and the user's line."""

    name: str
    origin: Origin | None

    def __str__(self) -> str:
        return self.name if self.origin is None else f"{self.name}, {self.origin}"


class PythonDraws:
    """Detects random draws during the traces of one function, and warns of them once.

    Args:
        name: the name of the function.
        captured: the values that the function's code reads from outside.
    """

    __slots__ = ("_captured", "_name", "_warned")

    warnings = 0
    """The number of warnings for all functions: an enclosing trace doesn't repeat that of a nested one."""

    def __init__(self, name: str, captured: CapturedValues) -> None:
        self._name = name
        self._captured = captured
        self._warned = False

    def states(self) -> GeneratorStates:
        """The states of Python's and NumPy's shared generators, and of generators that the code names."""
        return GeneratorStates([value for _, value in self._captured.named_objects() if _is_generator(value)])

    def drawn_since(self, before: GeneratorStates) -> list[FrozenRead]:
        """The generators that have been drawn from since ``before``, each with the line that reads it.

        If no line reads a generator, another thread may have drawn. Then it is reported only if there is one
        thread.
        """
        advanced = before.advanced()
        if not advanced:
            return []
        lines: dict[int, FrozenRead] = {}
        for generator, read in _reads(self._captured, _MAX_CALL_DEPTH, _generator_of):
            lines.setdefault(id(generator), read)
        alone = threading.active_count() == 1
        unplaced = [FrozenRead(_shown(g), self._captured.first_line) for g in advanced if id(g) not in lines]
        return [*(lines[id(g)] for g in advanced if id(g) in lines), *(unplaced if alone else [])]

    def clocks(self, called: Collection[str]) -> list[FrozenRead]:
        """The clocks in ``called`` that the function's code reads by name."""
        reads = _reads(self._captured, _MAX_CALL_DEPTH, _clock_of) if called else ()
        return list(dict.fromkeys(read for clock, read in reads if clock in called))

    def warn(self, reads: Sequence[FrozenRead]) -> None:
        """Warn of ``reads`` at the line of the first, unless this function has been warned of."""
        if self._warned or not reads:
            return
        self._warned = True
        PythonDraws.warnings += 1
        names = " and ".join(read.name for read in reads)
        origin = reads[0].origin
        warn_at(
            f"{self._name} drew random numbers from {names} while it was traced: the trace keeps them, and "
            f"every call uses the same. {_REMEDY}.",
            None if origin is None else (origin.file, origin.line),
            FrozenDrawWarning,
        )


class GeneratorStates:
    """A snapshot of the states of the shared generators of loaded modules, and of others.

    Args:
        named: the other generators.
    """

    __slots__ = ("_named", "_numpy", "_python")

    def __init__(self, named: Sequence[Any]) -> None:
        others = {id(g): g for g in named if g is not _shared_python()}
        self._named = [(g, _state(g)) for g in others.values()]
        self._python = _python_state()
        self._numpy = _numpy_state()

    def advanced(self) -> list[Any]:
        """The generators whose states have changed since the snapshot."""
        python = [_shared_python()] if self._python != _python_state() else []
        named = [generator for generator, state in self._named if _state(generator) != state]
        numpy = [_owner(np.random.rand)] if self._numpy != _numpy_state() else []
        return [*python, *named, *numpy]


class recorded_clocks:
    """``with recorded_clocks() as called:`` adds the names of clocks that the block reads to ``called``.

    It uses the thread's profile function, and replaces one that is set during the block.
    """

    __slots__ = ("_called", "_outer")

    def __enter__(self) -> set[str]:
        self._called: set[str] = set()
        self._outer = sys.getprofile()
        sys.setprofile(self._on_event)
        return self._called

    def __exit__(self, *exc: object) -> None:
        sys.setprofile(self._outer)

    def _on_event(self, frame: FrameType, event: str, arg: Any) -> None:
        clock = _clock_of(arg) if event == "c_call" else None
        if clock is not None:
            self._called.add(clock)


def _reads(
    captured: CapturedValues, depth: int, accept: Callable[[Any], Any]
) -> Iterator[tuple[Any, FrozenRead]]:
    """The random generators and clocks that a function names, then those of functions that it names.

    ``accept`` returns the generator or clock of a value, or None.
    """
    named: list[FunctionType] = []
    for outside, value in sorted(captured.named_objects(), key=lambda pair: pair[0].line):
        accepted = accept(value)
        if accepted is not None:
            yield accepted, FrozenRead(outside.name, captured.origin(outside.line))
        elif isinstance(value, FunctionType):
            named.append(value)
    for function in named if depth else ():
        yield from _reads(CapturedValues(function.__qualname__, function), depth - 1, accept)


def _shared_python() -> Any:
    """The generator of the functions of ``random``; None if the module isn't loaded."""
    module = sys.modules.get("random")
    return None if module is None else _owner(module.random)


def _python_state() -> Any:
    """The state of the generator of ``random``; None before its first draw since it was loaded or seeded."""
    shared = _shared_python()
    state = None if shared is None else shared.getstate()
    return None if state is None or state[1][-1] == _PYTHON_UNDRAWN else state


def _numpy_state() -> bytes:
    """The state words of the generator of ``np.random``'s functions; empty before the first draw.

    They are read from memory, since NumPy takes 0.1 ms to return the state, which is too long for each trace.
    """
    if "numpy.random" not in sys.modules:
        return b""
    bits = np.random.mtrand.get_bit_generator()
    if not isinstance(bits, np.random.MT19937):
        return pickle.dumps(bits.state)
    words = ctypes.string_at(bits.ctypes.state_address, _MT19937_BYTES)
    return b"" if words[-4:] == _UNDRAWN else words


def _is_generator(value: Any) -> bool:
    module = sys.modules.get("random")
    if module is not None and isinstance(value, module.Random):
        return not isinstance(value, module.SystemRandom)  # it has no state
    return "numpy.random" in sys.modules and isinstance(value, np.random.RandomState | np.random.Generator)


def _is_python(generator: Any) -> bool:
    module = sys.modules.get("random")
    return module is not None and isinstance(generator, module.Random)


def _generator_of(value: Any) -> Any:
    """The generator that ``value`` is, or is a method of; None for anything else."""
    generator = value if _is_generator(value) else _owner(value)
    return generator if _is_generator(generator) else None


def _owner(method: Any) -> Any:
    """The object that a bound method belongs to; None for anything else."""
    return method.__self__ if isinstance(method, BuiltinMethodType | MethodType) else None


def _state(generator: Any) -> Any:
    if _is_python(generator):
        return generator.getstate()
    is_new = isinstance(generator, np.random.Generator)
    return pickle.dumps(generator.bit_generator.state if is_new else generator.get_state(legacy=False))


def _clock_of(value: Any) -> str | None:
    """The name of the clock that ``value`` reads; None for anything else."""
    if not isinstance(value, BuiltinMethodType | ClassMethodDescriptorType):
        return None
    name = value.__name__
    if value is getattr(time, name, None):
        return f"time.{name}" if name in _CLOCKS else None
    owner = value.__objclass__ if isinstance(value, ClassMethodDescriptorType) else value.__self__
    is_date = isinstance(owner, type) and issubclass(owner, datetime.date) and name in _DATES
    return f"datetime.{name}" if is_date else None


def _shown(generator: Any) -> str:
    return "Python's random" if _is_python(generator) else "np.random"
