"""A graph that runs through Numba: source files in the cache folder, compiled by Numba, called in order."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numba
import numpy as np
from numpy.lib.stride_tricks import as_strided

from dualflow.backends.numba.program_source import Check, ProgramSource, program
from dualflow.backends.numba.support import HEADER
from dualflow.core.errors import InvalidArgumentError, OutOfRangeError, ResourceExhaustedError
from dualflow.graph.interpret import run_node
from dualflow.graph.ir import Graph
from dualflow.native.plan import Plan, plan
from dualflow.native.settle import settled
from dualflow.ops.forms import Scatter, Take

Array = np.ndarray[Any, Any]
_modules: dict[str, ModuleType] = {}


def folder() -> Path:
    import os, tempfile

    made = Path(os.environ.get("DUALFLOW_CACHE_DIR", tempfile.gettempdir())) / "numba"
    made.mkdir(parents=True, exist_ok=True)
    return made


def load(text: str) -> ModuleType:
    """The module whose source is ``text``, from a file of its own in the cache folder."""
    name = f"dualflow_{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    found = _modules.get(name)
    if found is not None:
        return found
    path = folder() / f"{name}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    _modules[name] = module
    return module


class NumbaExecutable:
    """A compiled graph; see :class:`dualflow.native.executable.Executable`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.plan: Plan = plan(settled(graph))
        names = [v.spec.name or f"in{i}" for i, v in enumerate(graph.inputs)]
        self.source: ProgramSource = program(self.plan, names)
        self.kept: dict[int, Array] = {}
        self.results: dict[str, Array] = {}
        scope: dict[str, Any] = {
            "np": np, "array": _array, "row": _row, "kept": self.kept, "results": self.results,
        }
        exec(HEADER.replace("from llvmlite import ir\n", ""), scope)
        for name, kernel in self.source.kernels.items():
            module = load(kernel.file("kernel"))
            scope[name], scope[f"{name}_parallel"] = module.kernel, module.kernel_parallel
        scope["scatter_add"], scope["scatter_put"] = _scatter(True), _scatter(False)
        for i, call in enumerate(self.source.hosts):
            scope[f"host{i}"] = _host(call)
        exec(compile(self.source.text("main"), "<program>", "exec"), scope)
        self._main: Callable[..., int] = scope["main"]

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        layout = self.plan
        outputs = [np.empty([d or 0 for d in s.shape], s.dtype.dtype) for s in layout.outputs]
        temporaries = [np.empty([d or 0 for d in s.shape], s.dtype.dtype) for s in layout.temporaries]
        arena = np.empty(-(-layout.arena_bytes // 64) * 64, np.uint8)
        self.results.clear()
        buffers = [*arrays, *layout.constants, *outputs, *temporaries]
        number = self._main(*[b.reshape(-1) for b in buffers], arena)
        if number:
            raise self.failure(int(number))
        first = layout.first_output
        return [
            self.results.get(self.source.names[first + i], made).reshape(np.shape(made) if None not in s.shape else -1)
            for i, (made, s) in enumerate(zip(outputs, layout.outputs, strict=True))
        ]

    def failure(self, number: int) -> Exception:
        check: Check = self.source.checks[number - 1]
        node = check.node
        if check.message is None:
            made: Exception = node.attrs["error"]([self.kept[i] for i in range(len(node.inputs) - 1)])
            return made
        error = OutOfRangeError if isinstance(node.op.form, Take | Scatter) else InvalidArgumentError
        where = f"\n{node.origin}" if node.origin else ""
        return error(f"{node.op.name}: {check.message}{where}")


def _array(flat: Array, offset: int, shape: Sequence[int], strides: Sequence[int]) -> Array:
    return as_strided(flat[offset:], shape, [s * flat.itemsize for s in strides])


def _row(stack: Array, start: int, count: int, itemsize: int) -> Array:
    raw = stack.view(np.uint8)
    return raw[start * itemsize : (start + count) * itemsize]


def _host(call: Any) -> Callable[..., tuple[Array, ...]]:
    node = call.node

    def run(*given: Array) -> tuple[Array, ...]:
        made = []
        for value, result in zip(node.outputs, run_node(node, given), strict=True):
            array = np.ascontiguousarray(result, value.spec.dtype.dtype).reshape(np.shape(result))
            if any(np.may_share_memory(array, x) for x in given):
                array = array.copy()
            made.append(array.reshape(-1) if value.spec.shape.is_static else array)
        return tuple(made)

    return run


def _scatter(add: bool) -> Any:
    @numba.njit(error_model="numpy")
    def scatter(out: Any, indices: Any, rows: Any, sizes: Any) -> int:
        failed = 0
        for turn in range(rows.shape[0]):
            for i in range(indices.shape[0]):
                place, inside = 0, True
                for d in range(indices.shape[1]):
                    at = np.int64(indices[i, d])
                    inside = inside and 0 <= at < sizes[d]
                    place = place * sizes[d] + at
                if not inside:
                    failed = 1
                    continue
                for j in range(rows.shape[2]):
                    if add:
                        out[turn, place, j] += rows[turn, i, j]
                    else:
                        out[turn, place, j] = rows[turn, i, j]
        return failed

    return scatter


_ERRORS: Final = (ResourceExhaustedError,)
