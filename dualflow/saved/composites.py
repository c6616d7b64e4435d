"""Composites in structures as JSON, and back: ragged and sparse tensors, indexed slices, extension types.

=====================================  =============================================
composite                              JSON
=====================================  =============================================
RaggedTensor                           ``{"ragged": [values, row splits], "uniform_row_length": null}``
SparseTensor                           ``{"sparse": [indices, values], "shape": [3, 4]}``
IndexedSlices                          ``{"slices": [values, indices], "shape": null}``
extension type                         ``{"extension_type": "project.Name", "fields": [[name, part], ...]}``
mapping in a field of one              ``{"mapping": [[key, part], ...]}``
=====================================  =============================================

A sparse tensor or slices whose shape has dynamic sizes have it as a third tensor. The name of an extension
type is null if the class was not available when its saved model was loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.type_spec import SpecStructure
from dualflow.core.warning import warn_user
from dualflow.ops.extension_types.anonymous_type import AnonymousExtensionType
from dualflow.ops.extension_types.extension_spec import (
    ExtensionTypeSpec,
    fields_with_components,
    from_fields,
    spec_of_part,
)
from dualflow.ops.extension_types.extension_type import ExtensionType
from dualflow.ops.extension_types.fields import declaration_of
from dualflow.ops.extension_types.immutable_mapping import ImmutableMapping
from dualflow.ops.extension_types.registered_names import registered_name, registered_type
from dualflow.ops.ragged.ragged_rows import RaggedRows
from dualflow.ops.ragged.ragged_spec import RaggedStructure, from_parts
from dualflow.ops.sparse.indexed_slices import IndexedSlices, SlicesStructure
from dualflow.ops.sparse.sparse_tensor import SparseStructure, SparseTensor, sparse_from_parts

Read = Callable[[Any], Any]
"""Reads the JSON of a part of a structure."""


def is_composite(value: Any) -> bool:
    """Whether a saved model may have a value as a composite: that of an extension type needs its name."""
    if isinstance(value, ExtensionType):
        return type(value) is AnonymousExtensionType or registered_name(type(value)) is not None
    return isinstance(value, RaggedRows | SparseTensor | IndexedSlices)


class Component(NamedTuple):
    """The JSON of a tensor or composite in a field of an extension type."""

    entry: Any


def composite_to_json(
    structure: Any, components: Sequence[Any], to_json: Callable[[Any], Any], what: str
) -> dict[str, Any] | None:
    """A composite as JSON; None if ``structure``, the kind of a branch of a tree, is that of none.

    Args:
        structure: the kind of the branch.
        components: the JSON of its children.
        to_json: writes the Python values in fields.
        what: the name of the whole in errors.

    Raises:
        DTypeError: an extension type has no name.
    """
    if isinstance(structure, RaggedStructure):
        return {"ragged": [*components], "uniform_row_length": structure.uniform_row_length}
    if isinstance(structure, SparseStructure):
        return {"sparse": [*components], "shape": shape_to_json(structure.shape)}
    if isinstance(structure, SlicesStructure):
        shape = None if structure.shape is None else shape_to_json(structure.shape)
        return {"slices": [*components], "shape": shape}
    if isinstance(structure, SpecStructure) and isinstance(structure.spec, ExtensionTypeSpec):
        fields = fields_with_components(structure.spec, map(Component, components)).items()
        parts = [[name, _part_to_json(part, to_json)] for name, part in fields]
        return {"extension_type": _name_of(structure.spec.value_type, what), "fields": parts}
    return None


def _name_of(kind: Any, what: str) -> str | None:
    """The name of an extension type in files.

    Raises:
        DTypeError: it has none.
    """
    if kind is AnonymousExtensionType:
        return None
    name: str | None = registered_name(kind)
    if name is None:
        raise DTypeError(
            f"{what} is or contains a {kind.__name__}, an extension type without a name for files: give the "
            f'class the attribute __name__ = "project.{kind.__name__}", by which a load finds it.'
        )
    return name


def _part_to_json(part: Any, to_json: Callable[[Any], Any]) -> Any:
    if isinstance(part, Component):
        return part.entry
    if isinstance(part, ImmutableMapping):
        return {"mapping": [[to_json(key), _part_to_json(x, to_json)] for key, x in part.items()]}
    if type(part) is tuple:
        return {"tuple": [_part_to_json(x, to_json) for x in part]}
    return to_json(part)


def shape_to_json(shape: Shape) -> list[int | None] | None:
    """The sizes of a shape; None if its rank is unknown."""
    return None if shape == Shape(None) else list(shape)


def read_shape(sizes: Any) -> Shape:
    """Inverse of :func:`shape_to_json`.

    Raises:
        ValueError: the JSON describes no shape.
    """
    if sizes is None:
        return Shape(None)
    if not isinstance(sizes, list) or not all(x is None or (type(x) is int and x >= 0) for x in sizes):
        raise ValueError(f"{str(sizes)[:40]} is not a shape")
    return Shape(sizes)


def _read_ragged(entry: Mapping[str, Any], read: Read) -> Any:
    """A ragged tensor whose tensors are specs."""
    values, splits = _parts(entry["ragged"], read, 2)
    length = entry.get("uniform_row_length")
    if not (length is None or (type(length) is int and length >= 0)):
        raise ValueError(f"{str(length)[:40]} is not the length of rows")
    if not isinstance(values, TensorSpec | RaggedRows) or not isinstance(splits, TensorSpec):
        raise ValueError("a ragged tensor consists of values and row splits")
    return from_parts(values, splits, length)


def _read_sparse(entry: Mapping[str, Any], read: Read) -> Any:
    """A sparse tensor whose tensors are specs."""
    shape = read_shape(entry.get("shape"))
    indices, values, *dense_shape = _specs(entry["sparse"], read, is_static=shape.is_static)
    return sparse_from_parts(indices, values, shape, *dense_shape)


def _read_slices(entry: Mapping[str, Any], read: Read) -> Any:
    """Indexed slices whose tensors are specs."""
    shape = None if entry.get("shape") is None else read_shape(entry["shape"])
    is_static = shape is None or shape.is_static
    return SlicesStructure(shape)(*_specs(entry["slices"], read, is_static=is_static))


def _read_mapping(entry: Mapping[str, Any], read: Read) -> ImmutableMapping:
    """A mapping in a field of an extension type."""
    pairs = [_parts(pair, read, 2) for pair in _list(entry["mapping"])]
    return ImmutableMapping(pairs)


def _read_extension_type(entry: Mapping[str, Any], read: Read) -> Any:
    """The spec of an extension type."""
    name = entry["extension_type"]
    if not isinstance(name, str | None):
        raise ValueError(f"{str(name)[:40]} is not the name of an extension type")
    fields = {}
    for pair in _list(entry.get("fields")):
        if not isinstance(pair, list) or len(pair) != 2 or not str(pair[0]).isidentifier():
            raise ValueError(f"{str(pair)[:40]} is not a field")
        fields[str(pair[0])] = read(pair[1])
    kind = None if name is None else registered_type(name)
    if kind is None:
        if name is not None:
            _warn_of_missing(name)
        return from_fields(AnonymousExtensionType.Spec, fields)
    return _checked_spec(kind, fields)


def _warn_of_missing(name: str) -> None:
    warn_user(
        f"The extension type {name} is not available: import the module that defines it before a saved model "
        "is loaded. Its values have the fields of the original, without its methods."
    )


def _checked_spec(kind: Any, fields: dict[str, Any]) -> Any:
    """The spec of an extension type whose class is available, of fields that it declares.

    Raises:
        InvalidArgumentError: the class declares other fields.
    """
    declared = declaration_of(kind).spec_fields
    try:
        if [field.name for field in declared] != [*fields]:
            raise DTypeError(f"it declares {[field.name for field in declared]}, not {[*fields]}.")
        for field in declared:
            field.convert(spec_of_part(fields[field.name]))
    except DTypeError as error:
        raise InvalidArgumentError(
            f"The extension type {registered_name(kind)} is not the one that was saved: {error.message} Load "
            "the model with the class of its time, or give the new class another name."
        ) from None
    return from_fields(kind.Spec, fields)


def _list(entry: Any) -> list[Any]:
    if not isinstance(entry, list):
        raise ValueError(f"{str(entry)[:40]} is not a list")
    return entry


def _parts(entry: Any, read: Read, count: int) -> list[Any]:
    """The parts of a composite."""
    parts = [read(part) for part in _list(entry)]
    if len(parts) != count:
        raise ValueError(f"{str(entry)[:40]} has {len(parts)} parts")
    return parts


def _specs(entry: Any, read: Read, *, is_static: bool) -> list[Any]:
    """The specs of the two tensors of a sparse value, and of its shape if that is not static."""
    specs = _parts(entry, read, 2 if is_static else 3)
    if not all(isinstance(spec, TensorSpec) for spec in specs):
        raise ValueError(f"{str(entry)[:40]} are not tensors")
    return specs


COMPOSITE_READERS: Final[dict[str, Callable[[Mapping[str, Any], Read], Any]]] = {
    "ragged": _read_ragged,
    "sparse": _read_sparse,
    "slices": _read_slices,
    "mapping": _read_mapping,
    "extension_type": _read_extension_type,
}
"""Reads each kind of composite, whose tensors are specs: a value that is flattened as those of the trace."""
