"""What extension types and dispatch refuse: what was wrong, and what to do about it."""

from __future__ import annotations

import typing
from typing import Literal

from error_cases import ErrorCases, Frames

import dualflow as df
from dualflow.core.composite_tensor import CompositeTensor
from dualflow.core.errors import DTypeError, InvalidArgumentError, MissingAttributeError, NotFoundError

experimental = df.experimental


class Point(experimental.ExtensionType):
    x: df.Tensor
    name: str = "p"
    place: df.TensorSpec([2]) = (0.0, 0.0)
    side: Literal["left", "right"] = "left"
    rows: df.RaggedTensorSpec([None, None]) = df.ragged.constant([[1.0]])
    corners: tuple[df.Tensor, ...] = ()
    pair: tuple[int, int] = (0, 0)
    table: dict[str, int] = {}  # noqa: RUF012  # the default of a field
    tags: dict[str, df.Tensor] = {}  # noqa: RUF012
    size: df.TensorShape = None
    nested: df.RaggedTensor | None = None


class Forgetful(experimental.ExtensionType):
    x: df.Tensor
    y: df.Tensor

    def __init__(self, x):
        self.x = x


class Wordy(experimental.ExtensionType):
    x: df.Tensor

    def __init__(self, x):
        self.z = x


class NoSpec(CompositeTensor):
    """A composite that lacks its spec."""


P = Point(1.0)


def declared(**annotations):
    """Define an extension type with these fields."""
    return type("Bad", (experimental.ExtensionType,), {"__annotations__": annotations})


def named(name):
    """Define an extension type with a name for files."""
    return type("Bad", (experimental.ExtensionType,), {"__annotations__": {}, "__name__": name})


def named_twice():
    first = named("tests.Named")
    body = {"__annotations__": {}, "__name__": "tests.Named"}
    return first, type("Other", (experimental.ExtensionType,), body)


def with_default_first():
    return type("Bad", (experimental.ExtensionType,), {"__annotations__": {"a": int, "b": int}, "a": 1})


def registered_twice():
    decorate = experimental.dispatch_for_unary_elementwise_apis(Point)
    handler = decorate(lambda function, x: x)
    try:
        decorate(lambda function, x: x)
    finally:
        experimental.unregister_dispatch_for(handler)


CASES = {
    "a type of a field": (
        lambda: declared(a=list),
        DTypeError,
        "Bad: the field 'a' has the type list",
        "a field is",
    ),
    "a nested type of a field": (lambda: declared(a=tuple[set, ...]), DTypeError, "the type set"),
    "the type of a mapping's values": (lambda: declared(a=dict[str, object]), DTypeError, "the type object"),
    "a tuple without types": (
        lambda: declared(a=typing.Optional[typing.Tuple]),  # noqa: UP006, UP045
        DTypeError,
        "the field 'a' has the type Tuple",
    ),
    "a mapping without types": (lambda: declared(a=typing.Mapping), DTypeError, "the field 'a' has the type"),
    "a reserved name": (lambda: declared(Spec=int), InvalidArgumentError, "'Spec' is reserved", "rename"),
    "a name without a project": (lambda: named("Bad"), InvalidArgumentError, "the form 'project.Bad'"),
    "a name of two classes": (named_twice, InvalidArgumentError, "'tests.Named' of .*Bad", "give it another"),
    "defaults": (with_default_first, InvalidArgumentError, "non-default", "put fields with defaults after"),
    "a field that is missing": (lambda: Point(), DTypeError, "Point: missing .* 'x'", "pass each field"),
    "a field that is not set": (
        lambda: Forgetful(1.0),
        DTypeError,
        "does not set the field 'y'",
        "assign it",
    ),
    "an undeclared field": (lambda: Wordy(1.0), MissingAttributeError, "no field 'z'", "declare it"),
    "a tensor": (lambda: Point(object()), DTypeError, "the field 'x' of type Tensor can't", "annotate"),
    "a class": (lambda: Point(1.0, name=3), DTypeError, "'name' of type str can't hold 3"),
    "a tensor's spec": (lambda: Point(1.0, place=[1.0]), DTypeError, "the field 'place'"),
    "a literal": (lambda: Point(1.0, side="top"), DTypeError, "'side'.*can't hold 'top'"),
    "a composite's spec": (lambda: Point(1.0, rows=3), DTypeError, "'rows'"),
    "a tuple": (lambda: Point(1.0, corners=3), DTypeError, "'corners'.*can't hold 3"),
    "the length of a tuple": (lambda: Point(1.0, pair=(1,)), DTypeError, "it has 1 items"),
    "a mapping": (lambda: Point(1.0, table=[1]), DTypeError, r"'table'.*can't hold \[1\]"),
    "the type of keys": (
        lambda: declared(table=dict[tuple[int, typing.Any], df.Tensor]),
        DTypeError,
        "keys of the type Any",
        "keys are of type int",
    ),
    "tensors as keys": (lambda: declared(table=dict[df.Tensor, int]), DTypeError, "keys of the type Tensor"),
    "keys": (lambda: Point(1.0, table={1: 1}), DTypeError, "it has other keys"),
    "a shape": (lambda: Point(1.0, size="ab"), DTypeError, "'size'"),
    "a tensor in a spec": (lambda: Point.Spec(1.0), DTypeError, "Point.Spec: the field 'x'"),
    "a composite in a spec": (
        lambda: type("T", (experimental.ExtensionType,), {"__annotations__": {"r": df.RaggedTensor}}).Spec(3),
        DTypeError,
        "holds the spec of a field",
    ),
    "an assignment": (
        lambda: setattr(P, "x", 1),
        MissingAttributeError,
        "Cannot mutate attribute 'x'",
        "create",
    ),
    "a deletion": (lambda: delattr(P, "x"), MissingAttributeError, "Cannot mutate attribute 'x'", "create"),
    "an assignment to a spec": (
        lambda: setattr(df.type_spec_from_value(P), "x", 1),
        MissingAttributeError,
        "Point.Spec is immutable",
        "create another",
    ),
    "fields of something else": (
        lambda: experimental.extension_type.as_dict({}),
        DTypeError,
        "takes an instance of an ExtensionType",
    ),
    "a tensor is required": (
        lambda: df.reduce_sum(P),
        DTypeError,
        "A Point was passed where a tensor is required",
        "dispatch_for_api",
    ),
    "a composite without a spec": (
        lambda: df.nest.flatten(NoSpec(), expand_composites=True),
        NotImplementedError,
        "NoSpec defines no _type_spec",
    ),
    "a function that is not dispatched": (
        lambda: experimental.dispatch_for_api(df.cond),
        InvalidArgumentError,
        "cond is no function of tensors",
    ),
    "a parameter that is missing": (
        lambda: experimental.dispatch_for_api(df.stack, {"items": Point})(lambda items: items),
        InvalidArgumentError,
        "no parameter 'items'",
        "'values'",
    ),
    "no composite": (
        lambda: experimental.dispatch_for_api(df.stack, {"values": df.Tensor})(lambda values: values),
        InvalidArgumentError,
        "no type is an ExtensionType",
        "annotate a parameter",
    ),
    "a type of an argument": (
        lambda: experimental.dispatch_for_unary_elementwise_apis(3),
        DTypeError,
        "3 is no type of an argument",
        "give a class",
    ),
    "a second handler": (
        registered_twice,
        InvalidArgumentError,
        "already been registered",
        "unregister_dispatch_for",
    ),
    "an unregistered target": (
        lambda: experimental.unregister_dispatch_for(len),
        NotFoundError,
        "is not registered",
        "decorator",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    frames = Frames.NOT_OF_DUALFLOW  # where a class is defined, Python's own frame of abc is between
    internal = ("a composite without a spec",)
    raised_in = ("ops/extension_types/*.py", "core/api_dispatch.py", "core/composite_tensor.py")
