"""``load``: returns the objects and functions of a saved model."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.core.records import dataclass, field
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.tree import flatten, unflatten
from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.eager.variable import Variable
from dualflow.function.concrete import ConcreteFunction
from dualflow.graph.ir import Graph
from dualflow.graph.parser import parse_all
from dualflow.graph.text_lines import Resolver, read_spec
from dualflow.saved.assets import Asset
from dualflow.saved.loaded import LoadedCallable, LoadedFunction, LoadedObject, LoadedTrace
from dualflow.saved.manifest import ModelFolder, damaged, open_model
from dualflow.saved.options import LoadOptions
from dualflow.saved.structures import from_json
from dualflow.train.encoding import Array

_ACCEPTED_TAGS: Final[tuple[Any, ...]] = (None, "serve", ["serve"], ("serve",), {"serve"}, [], ())
_KINDS: Final = {
    kind.name: kind
    for kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    )
}
_MAX_DEPTH: Final = 64


@entry
def load(
    export_dir: str | os.PathLike[str],
    tags: str | Sequence[str] | None = None,
    options: LoadOptions | None = None,
) -> Any:
    """Load what :func:`save` has written.

    The code of the saved objects is not needed, and no code of the folder is executed: it has graphs as text,
    numbers, and names.

    Args:
        export_dir: the folder.
        tags: "serve", the only set of tags that is saved.
        options: accepted for programs written for TensorFlow.

    Returns:
        An object with the attributes of the saved one: variables, lists and dicts, plain values, other
        objects, and functions. Functions can be called, differentiated, traced into other functions and saved
        again; variables can be trained and restored from checkpoints. Its ``signatures`` are the functions of
        named tensors. For a function that was saved itself, that function.

    Raises:
        NotFoundError: there is no saved model in the folder.
        DataLossError: a file is damaged.
        InvalidArgumentError: a graph is invalid, or the format is that of a later version.
        FailedPreconditionError: called while a function is traced.

    >>> import tempfile
    >>> import dualflow as df
    >>> model = df.Module()
    >>> model.weight = df.Variable([1.0, 2.0])
    >>> model.scale = df.function(lambda x: x * model.weight)
    >>> _ = model.scale.get_concrete_function(df.TensorSpec([2]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     df.saved_model.save(model, folder)
    ...     loaded = df.saved_model.load(folder)
    >>> with df.GradientTape() as tape:
    ...     y = loaded.scale(df.constant([3.0, 4.0]))
    >>> tape.gradient(y, loaded.weight).numpy()
    array([3., 4.], dtype=float32)
    """
    if not dispatch.current().eager:
        raise FailedPreconditionError("A model is loaded by eager code, not while a function is traced.")
    if not isinstance(options, LoadOptions | None):
        raise DTypeError(f"options are df.saved_model.LoadOptions, not {options!r}.")
    if tags not in _ACCEPTED_TAGS:
        raise InvalidArgumentError(f"A saved model has the tag 'serve' alone, not {tags!r}; omit tags.")
    return Loader(open_model(_path(export_dir))).root()


def _path(export_dir: Any) -> Path:
    try:
        return Path(os.fsdecode(export_dir))
    except TypeError:
        raise DTypeError(f"A model is loaded from the path of a folder, not {export_dir!r}.") from None


@dataclass(slots=True)
class Loader:
    """Creates the objects of an open saved model.

    Attributes:
        folder: the saved model.
        objects: the objects by their numbers; None until they are created.
        assets: the assets, by the numbers of their paths.
        graphs: the graph of each trace.
        functions: the functions by their numbers, and those of single traces.
    """

    folder: ModelFolder
    objects: list[Any] = field(default_factory=list)
    assets: dict[int, Asset] = field(default_factory=dict)
    graphs: list[Graph] = field(default_factory=list)
    functions: dict[tuple[str, int], LoadedFunction] = field(default_factory=dict)
    _under_construction: set[int] = field(default_factory=set)

    def root(self) -> Any:
        """The saved object, with its signatures."""
        entries = self._list(self.folder.content, "objects")
        self.objects = [None] * len(entries)
        for number, item in enumerate(entries):
            self.objects[number] = self._allocate(number, item)
        resolver = Resolver(self.folder.graphs_name, self._source, self._constant)
        self.graphs = parse_all(self.folder.graphs, resolver)
        if len(self.graphs) != len(self._list(self.folder.content, "traces")):
            self.fail("the numbers of graphs and traces differ")
        for number, item in enumerate(entries):
            self._assign_children(number, item)
        root = self.object_at(0)
        if isinstance(root, ConcreteFunction):
            root = self._create_function(entries[0]["trace"])
        if not isinstance(root, LoadedObject | LoadedFunction):
            self.fail("its first object is neither an object with attributes nor a function")
        root.signatures = self._signatures()
        return root

    def fail(self, what: str) -> NoReturn:
        """Raise the error for a damaged manifest."""
        raise damaged(self.folder.path, what)

    # parts of the manifest, checked

    def _list(self, item: Any, name: str) -> list[Any]:
        value: list[Any] = self._member(item, name, list)
        return value

    def _member(self, item: Any, name: str, kind: type) -> Any:
        value = item.get(name) if isinstance(item, Mapping) else None
        if type(value) is not kind:
            self.fail(f"{name} is {str(value)[:40]!r}, where a {kind.__name__} belongs")
        return value

    def _checked_index(self, values: Sequence[Any], number: Any, what: str) -> Any:
        if type(number) is not int or not 0 <= number < len(values):
            self.fail(f"there is no {what} {str(number)[:40]}")
        return values[number]

    def _structure(self, item: Any) -> Any:
        try:
            return from_json(item)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{self.folder.path}: {error.message}") from None
        except (ValueError, LookupError, TypeError) as error:
            self.fail(str(error))

    # objects

    def _allocate(self, number: int, item: Any) -> Any:
        """The object of an entry, without its children; None for kinds that need their children first."""
        kind = self._member(item, "kind", str)
        if kind == "object":
            cls = LoadedCallable if "__call__" in self._member(item, "children", dict) else LoadedObject
            return cls(self._member(item, "class", str))
        if kind == "list":
            return []
        if kind == "dict":
            return {}
        if kind == "variable":
            return self._variable(item)
        if kind == "tensor":
            return wrap(self.folder.read(item.get("array")))
        if kind == "path":
            asset = Asset(self._checked_index(self.folder.assets, item.get("asset"), "asset"))
            self.assets[number] = asset
            return asset.variable
        if kind not in ("tuple", "function", "trace", "asset", "composite"):
            self.fail(f"there are no objects of the kind {kind[:40]!r}")
        return None

    def _variable(self, item: Any) -> Variable:
        name, trainable = self._member(item, "name", str), self._member(item, "trainable", bool)
        value = self.folder.read(item.get("array"))
        try:
            shape = value.shape if "spec" not in item else read_spec(str(item["spec"])).shape
            return Variable(value, trainable=trainable, name=name, shape=shape)
        except InvalidArgumentError as error:
            self.fail(f"the variable {name[:40]!r} does not have its shape: {error}")

    def _assign_children(self, number: int, item: Any) -> None:
        """Assign the children of an object to its attributes or elements."""
        kind, object_at = item["kind"], self.object_at(number)
        if kind == "object":
            attributes = vars(object_at)
            for name, value in self._member(item, "values", dict).items():
                attributes[name] = self._structure(value)
            for name, child in item["children"].items():
                attributes[name] = self.object_at(child)
        elif kind == "list":
            object_at += [self._item(x) for x in self._list(item, "items")]
        elif kind == "dict":
            for pair in self._list(item, "items"):
                if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) not in (str, int):
                    self.fail("an item of a dict has no key")
                object_at[pair[0]] = self._item(pair[1])

    def object_at(self, number: Any) -> Any:
        """The object with an index, created when first needed."""
        item = self._checked_index(self.folder.content["objects"], number, "object")
        if self.objects[number] is None:
            if number in self._under_construction or len(self._under_construction) > _MAX_DEPTH:
                self.fail(f"the tuple {number} contains itself, or is nested too deeply")
            self._under_construction.add(number)
            self.objects[number] = self._construct(item)
            self._under_construction.remove(number)
        return self.objects[number]

    def _construct(self, item: Any) -> Any:
        """The object of an entry whose children are arguments of its constructor."""
        kind = item["kind"]
        if kind == "tuple":
            return tuple([self._item(x) for x in self._list(item, "items")])
        if kind == "composite":
            return self._composite(item)
        if kind == "function":
            return self._function(item.get("function"))
        if kind == "trace":
            (trace,) = self._create_function(item.get("trace")).concrete_functions
            return trace
        path = item.get("path")
        if type(path) is not int or path not in self.assets:
            self.fail("an asset has no path")
        return self.assets[path]

    def _composite(self, item: Any) -> Any:
        specs, structure = flatten(self._structure(item.get("value")))
        tensors = [self.object_at(number) for number in self._list(item, "tensors")]
        if specs != [TensorSpec.of(x.shape, x.dtype) for x in tensors if isinstance(x, EagerTensor)]:
            self.fail("a composite does not have its tensors")
        return unflatten(structure, tensors)

    def _item(self, item: Any) -> Any:
        if isinstance(item, Mapping) and "node" in item:
            return self.object_at(item["node"])
        return self._structure(item)

    # functions

    def _function(self, number: Any) -> LoadedFunction:
        item = self._checked_index(self._list(self.folder.content, "functions"), number, "function")
        if ("function", number) not in self.functions:
            name, specs = self._member(item, "name", str), item.get("input_signature")
            traces = [self._trace(n) for n in self._list(item, "traces")]
            signature = None if specs is None else self._input_signature(specs)
            self.functions["function", number] = self._traced(name, traces, signature)
        return self.functions["function", number]

    def _input_signature(self, item: Any) -> Any:
        """An input signature, in which composites of specs are replaced by their type specs."""
        specs, structure = flatten(self._structure(item))
        return unflatten(structure, specs)

    def _create_function(self, number: Any) -> LoadedFunction:
        """The saved trace ``number`` as a function of its own."""
        trace = self._trace(number)
        if ("trace", number) not in self.functions:
            self.functions["trace", number] = self._traced(trace.name, [trace], None)
        return self.functions["trace", number]

    def _traced(self, name: str, traces: Sequence[LoadedTrace], signature: Any) -> LoadedFunction:
        try:
            return LoadedFunction(name, traces, signature)
        except (
            Exception
        ) as error:  # rules of ops don't check attributes, so those of a file can raise any error
            raise InvalidArgumentError(
                f"{self.folder.path / self.folder.graphs_name}: the function {name} can't be traced again "
                f"({type(error).__name__}: {error})."
            ) from error

    def _trace(self, number: Any) -> LoadedTrace:
        item = self._checked_index(self._list(self.folder.content, "traces"), number, "trace")
        graph = self.graphs[number]
        parameters = tuple([self._parameter(p) for p in self._list(item, "parameters")])
        arguments = self._structure(item.get("arguments"))
        leaves, results = flatten(self._structure(item.get("results")))
        specs = [x for x in flatten(arguments)[0] if isinstance(x, TensorSpec)]
        if type(arguments) is not tuple or len(arguments) != len(parameters):
            self.fail(f"the graph {graph.name} has another number of arguments than its trace has parameters")
        if specs != [v.spec for v in graph.arguments] or leaves != [v.spec for v in graph.outputs]:
            self.fail(f"the arguments or results of the graph {graph.name} differ from those of its trace")
        try:
            inspect.Signature(parameters)
        except ValueError as error:
            self.fail(f"the parameters of {graph.name} are invalid: {error}")
        return LoadedTrace(self._member(item, "name", str), graph, parameters, arguments, results)

    def _parameter(self, item: Any) -> inspect.Parameter:
        kind = _KINDS.get(str(item[1])) if isinstance(item, list) and len(item) in (2, 3) else None
        if kind is None or not isinstance(item[0], str) or not item[0].isidentifier():
            self.fail(f"{str(item)[:40]} is not a parameter")
        default = self._structure(item[2]) if len(item) == 3 else inspect.Parameter.empty
        try:
            return inspect.Parameter(item[0], kind, default=default)
        except ValueError as error:
            self.fail(f"{str(item)[:40]} is not a parameter: {error}")

    def _signatures(self) -> Mapping[str, ConcreteFunction]:
        numbers = self._member(self.folder.content, "signatures", dict)
        traces = {key: self._create_function(number).concrete_functions[0] for key, number in numbers.items()}
        return MappingProxyType(traces)

    # references of graphs

    def _source(self, name: str, spec: TensorSpec, variable: bool, reference: str | None) -> Any:
        kind: Any = Variable if variable else EagerTensor
        number = int(reference) if reference is not None and reference.isdecimal() else -1
        source: Any = self.objects[number] if 0 <= number < len(self.objects) else None
        if not isinstance(source, kind):
            raise InvalidArgumentError(
                f"the input %{name} refers to {reference}, which is not a {kind.__name__}"
            )
        if source.shape != spec.shape or source.dtype is not spec.dtype:
            raise InvalidArgumentError(f"the input %{name} refers to {reference}, which is not a {spec}")
        return source

    def _constant(self, reference: str, spec: TensorSpec) -> Array:
        return self.folder.read(reference)
