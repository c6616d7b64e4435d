"""The layers as the architecture draws them, read from the source: which room imports which, at what cost."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeGuard

import networkx as nx

import dualflow
from dualflow.ops.families import load_families
from dualflow.ops.record import REGISTRY, Op

ROOT = Path(dualflow.__file__).parents[1]
PACKAGES = ("dualflow", "keras_dualflow")
MAX_LINES = 500

ORDER = [
    ["core"],
    ["scalar"],
    ["ops"],
    ["gradient"],
    ["eager", "graph"],
    ["graph.passes", "graph.draw"],
    ["schedule"],
    ["backends.runtime"],
    ["backends.llvm.text"],
    ["backends.llvm.maths", "backends.llvm.runtime"],
    ["backends.llvm.product"],
    ["backends.c", "backends.llvm", "backends.numba"],
    ["backends"],
    ["function.errors", "function.options", "function.bound_method"],
    ["function.arguments", "function.tracing"],
    ["function.calls", "function.control"],
    ["function.autograph", "function.debugging"],
    ["function.batching"],
    ["function"],
    ["function.inspect", "graph_mode"],
    ["data", "profiler", "summary", "train"],
    ["saved", "rewrites"],
    ["random"],
    ["numpy"],
    ["array_api"],
    ["keras_dualflow.choice", "keras_dualflow.all_or_none"],
    ["keras_dualflow.branches"],
    ["keras_dualflow.patches"],
    ["keras_dualflow.hook"],
    ["keras_dualflow.startup", "keras_dualflow.front", "keras_dualflow.src.core"],
    ["keras_dualflow.src.ops", "keras_dualflow.src.training"],
    ["keras_dualflow.src.random", "keras_dualflow.src.rnn", "keras_dualflow.src.trainer"],
]
"""The rooms from the lowest up, some of which are one file; those in one row don't see each other. All else
is a front: it may import every room. Keras's backend stands on dualflow as its users do, fronts included."""

APART = {
    ("eager", room) for row in ORDER for room in row if room.startswith(("graph.", "schedule", "backends"))
}
"""Rooms that must not see each other though one stands higher."""

ROOMS = [room for row in ORDER for room in row]
BELOW = {
    room: {below for lower in ORDER[:level] for below in lower if not {(room, below), (below, room)} & APART}
    for level, row in enumerate(ORDER)
    for room in row
}
"""Each room, and the rooms it may import from."""

TYPES_ONLY = {
    ("dualflow.core.dispatch", "dualflow.ops.record"): "an engine's methods take an op",
    ("dualflow.core.delegating_engine", "dualflow.ops.record"): "and so do those that hand it on",
    ("dualflow.core.dispatch", "dualflow.ops.tensor"): "and return a tensor, which has all operators",
    ("dualflow.ops.widening", "dualflow.ops.record"): "a record's call hands itself over",
    ("dualflow", "dualflow.compat"): "a program says whether it wants it; a type checker sees it anyway",
}
"""Arrows against the order that only a type checker sees."""

LATE = {
    "llvmlite": "0.1 s and 100 MB: only a compile that the object cache can't answer needs it",
    "ml_dtypes": "0.02 s: only bfloat16 and floats of 8 bits need it",
    "networkx": "0.1 s: only a person's question about a graph needs it",
    "numpy.fft": "5 ms: NumPy imports it at its first use, for which a fork must wait",
    "numpy.random": "10 ms: NumPy imports it at its first use, for which a fork must wait",
    "numba": "0.2 s: only a user's own numba code needs it",
    "scipy": "0.05 s: only the ops that call its LAPACK or its special functions need it",
    "dualflow.function.autograph.compilation": "10 ms: only a function with control flow needs it",
    "dualflow.backends": "imports llvmlite or numba; the first compile needs it",
    "dualflow.schedule.plan": "10 ms: what NumPy runs is planned only where somebody asks about memory",
    "dualflow.function.calls.strict": "only functions that are strict need it",
    "dualflow.function.tracing.deferred_ops": "only what reads sizes that a trace leaves open needs it",
    "dualflow.function.tracing.deferred_calls": "only a call that fails in a trace needs it",
    "dualflow.function.calls.memory_budget": "only functions that have a budget need it",
    "dualflow.function.debugging.debug": "only Function.debug needs it",
    "dualflow.function.debugging.pdb_prompt": "imports pdb, 0.05 s",
    "dualflow.function.calls.c_call": "imports dualflow.backends.llvm",
    "dualflow.function.batching": "only what is mapped over rows needs it",
    "dualflow.graph.analysis": "imports networkx",
    "dualflow.graph.passes.fusion_check": "imports networkx",
    "dualflow.graph.draw.drawing": "only a picture of a graph needs it",
    "dualflow.core.blas": "only products and solutions by NumPy's BLAS need it",
    "dualflow.core.absent": "only a name that is not there needs it",
    "scipy.special": "60 ms: only a special function that is computed needs it",
    "scipy.stats.qmc": "0.5 s: only a point of Sobol's sequence needs it",
    "tensorboardX": "0.1 s, and no dependency: only summaries need it",
    "matplotlib": "0.3 s, and no dependency: only a picture of a graph needs it",
    "PIL": "0.05 s, and no dependency: only files of images need it",
    "dualflow.core.string_arrays": "registers the dtype of strings: only strings need it",
    "keras": "1 to 2 s, and no dependency: only models need it",
    "keras_dualflow.hook": "only a Keras that runs on this backend needs it",
    "dualflow.random": "only keras.utils.set_random_seed needs it",
    "dualflow.summary": "only Keras's callback TensorBoard needs it",
    "dataclasses": "1 ms: only dataclasses of the caller's, and errors about dualflow's own, need it",
    "json": "5 ms at each start of Python: only a settings file of Keras needs it",
}
"""What may be imported inside a function, and the cost that this puts off."""


@dataclass(frozen=True)
class Import:
    """One import statement's module: who imports it, where, and whether for types only."""

    importer: str
    imported: str
    line: int
    typing_only: bool
    late: bool


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for package in PACKAGES for path in sorted(ROOT.glob(f"{package}/**/*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    """Each module's syntax, read when a test asks for it: not where this file is only collected."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def imports_of(name: str) -> Iterator[Import]:
    """Every import in a module, also those in functions and in ``if TYPE_CHECKING`` blocks."""
    pending: list[tuple[ast.AST, bool, bool]] = [(trees()[name], False, False)]
    while pending:
        node, typing_only, late = pending.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(name, alias.name, node.lineno, typing_only, late)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}:{node.lineno}: imports name their module in full"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield Import(name, inner if inner in FILES else node.module, node.lineno, typing_only, late)
        elif (module := computed_import(node)) is not None:
            yield Import(name, module, node.lineno, typing_only, late=True)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            pending += [(child, True, late) for child in node.body]
        else:
            inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            pending += [(child, typing_only, inside) for child in ast.iter_child_nodes(node)]


def computed_import(node: ast.AST) -> str | None:
    """The module that ``import_module("...")`` or ``imported("...")`` names."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in ("import_module", "imported"):
        argument = node.args[0]
        return argument.value if isinstance(argument, ast.Constant) else None
    return None


FAMILIES = {name for name in FILES if name.startswith("dualflow.ops.") and FILES[name].stem == "__init__"}


@cache
def imports() -> list[Import]:
    """Every import of every module."""
    return [found for name in FILES for found in imports_of(name)]


@cache
def room(module: str) -> str | None:
    """The room a module of ours is in, the innermost; None for the fronts."""
    inside = [r for r in ROOMS if f"{module}.".removeprefix("dualflow.").startswith(f"{r}.")]
    return max(inside, key=len, default=None)


def is_ours(module: str) -> bool:
    return module.partition(".")[0] in PACKAGES


def graph_of(imports: list[Import]) -> nx.DiGraph:
    found = nx.DiGraph()
    found.add_nodes_from(FILES)
    found.add_edges_from((i.importer, i.imported) for i in imports if i.imported in FILES)
    return found


def test_every_room_of_the_architecture_exists() -> None:
    assert {room(name) for name in FILES} - {None} == set(BELOW)


def test_the_table_of_the_architecture_has_the_packages_in_their_order() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("## Packages")[2].partition("\n## ")[0]
    names = [
        name
        for row in re.findall(r"^\| ([^|]*) \|", table, re.MULTILINE)
        for name in re.findall(r"\[(.*?)\]", row)
    ]
    levels = {name: level for level, row in reversed([*enumerate(ORDER)]) for name in row}
    ordered = [levels[name] for name in names if name in levels and "." not in name]
    assert len(ordered) > 10
    assert ordered == sorted(ordered)


def test_rooms_import_only_from_rooms_below() -> None:
    wrong = []
    for found in imports():
        here, there = room(found.importer), room(found.imported)
        if here is None or not is_ours(found.imported) or here == there:
            continue
        if there is None and here.startswith("keras_dualflow.") and found.imported.startswith("dualflow"):
            continue  # a front
        if there not in BELOW[here] and not is_excepted(found):
            wrong.append(f"{found.importer}:{found.line} imports {found.imported}")
    assert wrong == []


def test_dualflow_knows_of_keras_backend_what_loads_neither() -> None:
    """``keras_dualflow.src`` imports Keras, which then has chosen its backend."""
    doors = {f"keras_dualflow.{door}" for door in ("choice", "startup", "front")}
    imported = {i.imported for i in imports() if i.importer.startswith("dualflow")}
    assert {name for name in imported if name.startswith("keras_dualflow")} == doors


def is_excepted(found: Import) -> bool:
    """Whether an import is for type checkers alone, and may be against the order.

    All ops return tensors, and the methods of tensors call ops.
    """
    arrow = found.importer, found.imported
    of_ops = room(found.importer) == "ops" and found.imported == "dualflow.ops.tensor"
    return found.typing_only and (arrow in TYPES_ONLY or of_ops)


def test_files_import_each_other_without_circles() -> None:
    """Late imports count, and those that only a type checker sees."""
    graph = graph_of([i for i in imports() if not is_excepted(i)])
    circles = [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
    assert circles == []


def test_passes_ask_nothing_of_the_machine() -> None:
    asking = {"dualflow.core.memory", "os", "platform", "sys", "time"}
    asked = [i for i in imports() if i.importer.startswith("dualflow.graph.passes") and i.imported in asking]
    assert [f"{i.importer}:{i.line} imports {i.imported}" for i in asked] == []


def test_exceptions_are_still_needed() -> None:
    found = {(i.importer, i.imported) for i in imports() if i.typing_only}
    assert set(TYPES_ONLY) - found == set()


def test_every_folder_is_a_package_that_says_what_it_is_for() -> None:
    folders = {module_name(path.parent / "__init__.py") for path in FILES.values()}
    assert [name for name in folders if name not in FILES or ast.get_docstring(trees()[name]) is None] == []


def test_rooms_stand_in_one_order() -> None:
    rooms = nx.DiGraph((i, j) for i, below in BELOW.items() for j in below)
    assert nx.is_directed_acyclic_graph(rooms)
    assert not nx.has_path(rooms, "eager", "graph")
    assert not any(nx.has_path(rooms, room, "eager") for room in ROOMS if room.startswith("backends"))


def test_imports_stand_at_the_top_unless_their_cost_is_declared() -> None:
    def declared(module: str) -> bool:
        return any(module == name or module.startswith(f"{name}.") for name in LATE)

    late = [i for i in imports() if i.late and not i.typing_only]
    assert [f"{i.importer}:{i.line} imports {i.imported}" for i in late if not declared(i.imported)] == []


def test_no_file_is_too_long_to_read() -> None:
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def test_no_room_is_called_after_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [name for name in FILES if vague & set(name.split("."))] == []


def test_each_class_name_is_defined_once() -> None:
    """A name in a traceback or a search says which class is meant; public names may be aliases.

    Keras's convention names some classes of its backend as dualflow's own are named.
    """
    classes = defaultdict(list)
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[name.partition(".")[0], node.name].append(f"{name}:{node.lineno}")
    assert {name: places for name, places in classes.items() if len(places) > 1} == {}


def test_the_base_language_uses_no_family() -> None:
    """What ``import dualflow`` loads of the ops is flat: a family is loaded with the names that show it."""
    base = [i for i in imports() if i.importer.startswith("dualflow.ops.") and i.importer.count(".") == 2]
    families = [f"{i.importer}:{i.line} imports {i.imported}" for i in base if is_of_family(i.imported)]
    assert families == []


def is_of_family(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in FAMILIES)


def test_importing_dualflow_loads_numpy_and_nothing_that_can_wait() -> None:
    program = "import sys, dualflow; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split())
    assert not {*LATE, *FAMILIES, "ml_dtypes"} & loaded - {"dualflow.backends"}
    assert "numpy" in loaded


def test_importing_a_module_of_a_public_package_is_no_missing_name() -> None:
    """The import system looks a name up in the package first; advice on missing names takes 5 ms to load."""
    program = "import sys; from dualflow.numpy import operands; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "dualflow.core.absent" not in ended.stdout.split()


def registry() -> dict[str, Op]:
    """The ops, complete."""
    load_families()
    return dict(REGISTRY)


def test_every_op_can_be_tested() -> None:
    assert [name for name, op in registry().items() if not op.samples and op.effect is None] == []


def knows_ops(module: str) -> bool:
    """Whether a module may name ops: the ops' own room, and rewrites, which are identities of ops."""
    return room(module) == "ops" or module.startswith("dualflow.graph.passes.")


def test_no_list_of_ops_stands_beside_the_registry() -> None:
    """Two names of ops side by side in a display are a list of ops."""
    names = set(registry())
    found = []
    for module, tree in trees().items():
        exported = [statement.value for statement in tree.body if is_export_list(statement)]
        for node in ast.walk(tree):
            if isinstance(node, ast.List | ast.Tuple | ast.Set):
                items = node.elts
            elif isinstance(node, ast.Dict):
                items = [key for key in node.keys if key is not None]
            else:
                continue
            listed = [x.value for x in items if isinstance(x, ast.Constant) and x.value in names]
            if len(listed) > 1 and node not in exported and not knows_ops(module):
                found.append(f"{module}:{node.lineno} lists {listed}")
    assert found == []


def is_export_list(statement: ast.stmt) -> TypeGuard[ast.Assign]:
    """Whether a statement is ``__all__ = [...]``, which repeats the names a module exports."""
    return isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "__all__" for target in statement.targets
    )


def test_no_engine_asks_an_op_for_its_name() -> None:
    """What an op is, its record says: code that compares names is one more place to register an op in."""
    asks = re.compile(r"""\bop\.name\s*(==|!=|in|not in)\s*["'(\[{]""")
    found = [
        f"{module}:{number}"
        for module, path in FILES.items()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if not knows_ops(module) and asks.search(line)
    ]
    assert found == []
