"""Whole programs on disk, by the graph before the passes.

An entry is the image of a program (``program_image.py``), and the keys of its machine code, which are entries
of the same cache. A process that has both runs no passes, plans nothing and writes no text; the modules that
do this are not even imported. What errors, ``status()`` and pictures read of them is computed when they are
read.

The key is a digest of everything that the passes, the plan and the code depend on:

==================  ========================================================================================
part                why
==================  ========================================================================================
graph               :func:`~dualflow.graph.encoding.encoded_graph`: ops, attributes, constants, sizes, guards,
                    the order of effects, which values are one
options             all of :class:`~dualflow.graph.options.CompileOptions`, with capabilities and cost model;
                    of the memory only :attr:`stack_budget`, all that passes read
backend             capabilities on this machine, the largest number of threads, ``DUALFLOW_DISABLE``
machine code        what the key of an object contains: vector width, processor, LLVM, its settings
source of dualflow  version; name, size and time of each file of the packages that compile, as Python compares
                    them to reuse bytecode; the content of a file without a time, as reproducible builds
                    install it. A process that has imported dualflow before a change loads and stores
                    nothing: it may run the former code
Python and NumPy    versions, NumPy's instruction sets, the settings of its BLAS, and the floating-point mode
                    of the thread: constants are folded by NumPy
==================  ========================================================================================

A program has no entry if its image is no plain data, or holds for this process alone: with host calls,
rewrites of users, addresses of BLAS or MPI, a memory budget, checks of passes or of memory, large folded
constants. ``DUALFLOW_LOG=cache`` logs the reason.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.backends.llvm.capabilities import capabilities
from dualflow.backends.llvm.executable import Executable
from dualflow.backends.llvm.linked_program import LinkedProgram, Lowered
from dualflow.backends.llvm.program_image import ProgramImage, ProgramPart
from dualflow.backends.llvm.runtime import elf, jit, python_symbols, threads
from dualflow.backends.runtime import object_cache, switches, thread_count
from dualflow.core.digest import digest
from dualflow.core.dtypes import as_dtype
from dualflow.core.import_time import IMPORTED_AT
from dualflow.core.locks import imported
from dualflow.core.records import compared_fields
from dualflow.core.shape import Shape
from dualflow.core.spans import logger
from dualflow.core.spec import TensorSpec
from dualflow.graph.compiled import GraphInputs
from dualflow.graph.encoding import NotEncodable, encoded_graph, encoded_value
from dualflow.graph.ir import Graph
from dualflow.graph.options import CompileOptions
from dualflow.version import DUALFLOW

Array = np.ndarray[Any, Any]
MAX_FOLDED_BYTES: Final = 1 << 20
"""The largest number of bytes of constants in an entry, besides those of the graph."""

MAX_OBJECTS: Final = 4
"""The largest number of objects of a program: each is read and linked."""

_VERSION: Final = 2
_PACKAGE: Final = os.path.dirname(sys.modules["dualflow.core"].__path__[0])
_COMPILING: Final = (
    "core",
    "sizes",
    "scalar",
    "ops",
    "graph",
    "schedule",
    "backends/llvm",
    "backends/runtime",
)
"""The packages whose code computes the program of a graph."""
_FIRST_TIME: Final = 315_705_600 * 10**9
"""The third of January 1980, in nanoseconds. Reproducible builds give all files an earlier time: 0, 1, or the
first that an archive can have."""
_BLAS_SETTINGS: Final = ("OPENBLAS_CORETYPE", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS")
"""The environment variables that change the last bits of products of NumPy."""
_SMALLEST_NORMAL: Final = sys.float_info.min
_DENORMAL: Final = 5e-324
_BY_MEMORY: Final = ("memory", "kept_by_loops")


class ProgramEntry:
    """The entry of one graph: the graph before the passes, the options, and the key."""

    __slots__ = ("_lowered", "graph", "key", "options")

    def __init__(self, graph: Graph, options: CompileOptions, key: str) -> None:
        self.graph, self.options, self.key = graph, options, key
        self._lowered: Lowered | None = None

    def load(self) -> Executable | None:
        """The executable of the entry; None if it is absent, or its machine code is."""
        payload = object_cache.load(self.key)
        if payload is None:
            return None
        with contextlib.suppress(ValueError, TypeError, EOFError):  # damaged, with an intact digest
            return self._linked(marshal.loads(payload))
        return None

    def _linked(self, record: tuple[Any, ...]) -> Executable | None:
        (objects, captured, updated), fields = record
        functions: dict[str, int] = {}
        libraries = []
        for object_key, exports in objects:
            library = jit.load_library(object_key, exports, _symbols())
            if library is None:
                return None
            libraries.append(library)
            functions |= {name: library.address(name) for name in exports}
        image = _image(self.graph, self.options.memory, fields)
        linked = LinkedProgram(
            image,
            _inputs(self.graph, captured, updated),
            functions,
            tuple(libraries),
            libraries[-1],
            threads.pool() if image.uses_pool else None,
            loaded=True,
            lower=self.lowered,
        )
        return Executable(linked, self.options)

    def lowered(self) -> Lowered:
        """What the program was compiled from, computed at the first call; concurrent calls may each."""
        if self._lowered is None:
            graph: Graph = imported("dualflow.graph.passes.pipeline").optimise(self.graph, self.options)
            lowered: Lowered = imported("dualflow.backends.llvm.compile_graph").lowered(graph, self.options)
            self._lowered = self._lowered or lowered
        return self._lowered

    def store(self, executable: Executable) -> None:
        """Store the program of ``executable``, which this process has compiled for the graph."""
        reason = _reason_not_stored(executable)
        constants = _constants(self.graph, executable.image.constants)
        if constants is None:
            reason = reason or f"constants of more than {MAX_FOLDED_BYTES} bytes were folded"
        objects = () if reason else _objects(executable)
        if not objects:
            _log(self.graph, reason or "its objects can't be merged")
            return
        captures = {id(c.source): i for i, c in enumerate(self.graph.captures)}
        captured = tuple([captures[id(c.source)] for c in executable.inputs.captures])
        record = (
            (objects, captured, executable.inputs.updated),
            _fields(executable.image, constants or ()),
        )
        object_cache.store(self.key, marshal.dumps(record))


def unavailable_reason() -> str:
    """The reason that no program comes from the disk in this process; the empty string if programs do."""
    return (
        switches.off("programs")
        or object_cache.unavailable_reason()
        or elf.unavailable_reason()
        or _checked_reason()
        or _source_reason()
    )


def _checked_reason() -> str:
    side = switches.checked_side()
    return f"{switches.CHECK_MEMORY}={side}: each process plans anew" if side else ""


@functools.cache
def _source_reason() -> str:
    """The reason that the source of dualflow can't be in keys; the empty string if it can."""
    times = [time for _, _, time in _source_times()]
    if not times:
        return "the source of dualflow is in no folder, where its files have times"
    return "the source of dualflow has changed since it was imported" if max(times) >= IMPORTED_AT else ""


def program_entry(graph: Graph, options: CompileOptions) -> ProgramEntry | None:
    """The entry of ``graph``, whose passes have not run; None if its program can't have one."""
    if unavailable_reason():
        return None
    if options.checking or options.rewrites or options.memory_budget is not None:
        _log(graph, "checks, rewrites or a memory budget are not part of the key")
        return None
    try:
        content = encoded_graph(graph)
    except NotEncodable as reason:
        _log(graph, str(reason))
        return None
    key = digest(_context() + encoded_value(floating_point_mode()) + _options(options) + content)
    return ProgramEntry(graph, options, key.hex())


def _log(graph: Graph, reason: str) -> None:
    log = logger("cache")
    if log is not None:
        log.info("the program of %s is not stored: %s", graph.name, reason)


@functools.cache
def _context() -> bytes:
    """The parts of a key that are equal for all graphs of a process."""
    return encoded_value(
        (
            *("program", _VERSION, DUALFLOW, jit.context(), _encoded_times(), _undated_source()),
            *(sys.version, np.__version__, _instruction_sets(), _blas_settings()),
            *(capabilities(), thread_count.max_threads(), tuple(sorted(switches.named() - {"programs"}))),
        )
    )


def _instruction_sets() -> tuple[str, ...]:
    """The optional instruction sets that NumPy uses here; an environment variable can switch some off."""
    features: dict[str, bool] = sys.modules["numpy._core._multiarray_umath"].__cpu_features__
    return tuple(sorted(name for name, is_used in features.items() if is_used))


def _blas_settings() -> tuple[str | None, ...]:
    return tuple([os.environ.get(name) for name in _BLAS_SETTINGS])


def floating_point_mode() -> tuple[bool, ...]:
    """Whether this thread takes denormal results for zero, and operands, and three bits of how it rounds.

    Libraries compiled with ``-ffast-math`` change it when they are loaded.

    >>> floating_point_mode()
    (False, False, False, False, False)
    """
    return (
        _SMALLEST_NORMAL * 0.5 == 0.0,
        _DENORMAL * 2.0**60 == 0.0,
        1.0 + _SMALLEST_NORMAL > 1.0,
        1.0 - _SMALLEST_NORMAL < 1.0,
        -1.0 - _SMALLEST_NORMAL < -1.0,
    )


def _options(options: CompileOptions) -> bytes:
    names = [name for name in compared_fields(CompileOptions) or () if name not in _BY_MEMORY]
    return encoded_value((options.stack_budget, tuple([(name, getattr(options, name)) for name in names])))


def _encoded_times() -> bytes:
    """:func:`_source_times`, in a format in which equal values have equal bytes."""
    return marshal.dumps(_source_times(), 0)  # six times as fast as encoded_value


def _undated_source() -> bytes:
    """A digest of the source files without a time of their own; empty if each has one."""
    undated = [name for name, _, time in _source_times() if time < _FIRST_TIME]
    return digest(b"".join([_content_digest(_PACKAGE + name) for name in undated])) if undated else b""


def _content_digest(path: str) -> bytes:
    with open(path, "rb") as file:  # pathlib takes 3 ms to import
        return digest(file.read())


@functools.cache
def _source_times() -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of each source file of the packages that compile; none for an archive."""
    times: list[tuple[str, int, int]] = []
    folders = [os.path.join(_PACKAGE, name) for name in _COMPILING] if os.path.isdir(_PACKAGE) else []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".ll")):
                    status = entry.stat()
                    times.append((entry.path[len(_PACKAGE) :], status.st_size, status.st_mtime_ns))
                elif entry.is_dir() and entry.name != "__pycache__":
                    folders.append(entry.path)
    return tuple(sorted(times))


def _reason_not_stored(executable: Executable) -> str:
    """The reason that the image of a program is for this process alone; the empty string for none."""
    image, program = executable.image, executable.program
    if any(part.host is not None for part in image.parts):
        return "it has host calls"
    if program.depends_on_memory:
        return "it depends on the memory of the process"
    others = sorted(program.addresses.keys() - {"sched_yield"})
    if others or image.collectives:
        return f"it calls {', '.join(others)}"
    return ""


def _objects(executable: Executable) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The objects on disk with the code of a program, each with the functions that the program calls.

    Those of its libraries, which other programs share, if they are few, and the program calls half of each;
    else one that is merged from the objects of all sources; none if they can't be merged.
    """
    sources, libraries = executable.program.sources, executable.libraries
    names = [name for source in sources for name in source.exports]
    if len(libraries) <= MAX_OBJECTS:
        called = [tuple([name for name in names if name in x.exports]) for x in libraries]
        pairs = list(zip(libraries, called, strict=True))
        if all(2 * len(own) >= len(x.exports) and jit.is_stored(x) for x, own in pairs):
            return tuple([(x.report.key, own) for x, own in pairs])
    merged = jit.store_merged(sources)
    return () if merged is None else ((merged, tuple(names)),)


def _symbols() -> dict[str, int]:
    """The functions of the process that stored programs call, besides those of C's maths and memory."""
    return {**python_symbols.addresses(), "sched_yield": jit.process_symbol("sched_yield")}


def _inputs(graph: Graph, captured: Sequence[int], updated: tuple[int, ...]) -> GraphInputs:
    """The inputs of ``graph`` after the passes, which leave out captures that nothing reads."""
    inputs = GraphInputs.of(graph)
    captures = tuple([inputs.captures[i] for i in captured])
    specs = tuple([inputs.capture_specs[i] for i in captured])
    return inputs._replace(captures=captures, capture_specs=specs, updated=updated)


def _constants(graph: Graph, constants: Sequence[Array]) -> tuple[Any, ...] | None:
    """A record for each constant: the attribute of the graph that it is, else its bytes.

    None if the others are too large.
    """
    attributes = {
        id(value): (i, name)
        for i, node in enumerate(graph.nodes)
        for name, value in node.attrs.items()
        if isinstance(value, np.ndarray)
    }
    if sum(x.nbytes for x in constants if id(x) not in attributes) > MAX_FOLDED_BYTES:
        return None
    return tuple([attributes.get(id(x)) or (as_dtype(x.dtype).name, x.shape, x.tobytes()) for x in constants])


def _constant(graph: Graph, record: tuple[Any, ...]) -> Array:
    if len(record) == 2:
        index, name = record
        array: Array = graph.nodes[index].attrs[name]
        return array
    dtype, shape, content = record
    return np.frombuffer(content, as_dtype(dtype).dtype).reshape(shape).copy()


def _fields(image: ProgramImage, constants: tuple[Any, ...]) -> dict[str, Any]:
    """The fields of an image as plain data."""
    return image._asdict() | {
        "constants": constants,
        "outputs": tuple(map(_spec_record, image.outputs)),
        "temporaries": tuple(map(_spec_record, image.temporaries)),
        "parts": tuple([(part.entry, part.at) for part in image.parts]),
        "params": image.params.tobytes(),
        "size_code": None if image.size_code is None else image.size_code.tobytes(),
        "functions": dict(image.functions),
        "arena_bytes": image.arena_bytes if image.arena_param is None else 0,
        "size_params": {},
        "input_sizes": dict(image.input_sizes),
        "block_sizes": dict(image.block_sizes),
        "memory_params": dict(image.memory_params),
    }


def _image(graph: Graph, memory: int, fields: Mapping[str, Any]) -> ProgramImage:
    """The image whose fields :func:`_fields` has written, with the memory of this process."""
    read: dict[str, Any] = {
        "constants": tuple([_constant(graph, record) for record in fields["constants"]]),
        "outputs": tuple([_spec(record) for record in fields["outputs"]]),
        "temporaries": tuple([_spec(record) for record in fields["temporaries"]]),
        "parts": tuple([ProgramPart(entry, at) for entry, at in fields["parts"]]),
        "params": np.frombuffer(fields["params"], np.int64).copy(),
    }
    if fields["size_code"] is not None:
        read["size_code"] = np.frombuffer(fields["size_code"], np.int64)
    for index, divisor in fields["memory_params"].items():
        read["params"][index] = memory // divisor
    return ProgramImage(**{**fields, **read})


def _spec_record(spec: TensorSpec) -> tuple[str, tuple[int | None, ...]]:
    """Dtype and shape; a symbolic size is None: calls read it from the parameter table."""
    return spec.dtype.name, tuple([d if type(d) is int else None for d in spec.shape])


def _spec(record: tuple[str, tuple[int | None, ...]]) -> TensorSpec:
    name, shape = record
    return TensorSpec.of(Shape(shape), as_dtype(name))
