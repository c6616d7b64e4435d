"""Public functions and methods document their arguments, result, errors and an example."""

import inspect
import re
import types
from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest

import dualflow as df

NAMESPACES = {
    "df": df,
    "df.array_api": df.array_api,
    "df.array_api.fft": df.array_api.fft,
    "df.array_api.linalg": df.array_api.linalg,
    "df.audio": df.audio,
    "df.autodiff": df.autodiff,
    "df.bitwise": df.bitwise,
    "df.distribute": df.distribute,
    "df.distribute.cluster_resolver": df.distribute.cluster_resolver,
    "df.distribute.experimental": df.distribute.experimental,
    "df.image": df.image,
    "df.initializers": df.initializers,
    "df.io": df.io,
    "df.io.gfile": df.io.gfile,
    "df.linalg": df.linalg,
    "df.math": df.math,
    "df.math.special": df.math.special,
    "df.lookup": df.lookup,
    "df.lookup.experimental": df.lookup.experimental,
    "df.nn": df.nn,
    "df.nn.experimental": df.nn.experimental,
    "df.numpy": df.numpy,
    "df.numpy.fft": df.numpy.fft,
    "df.numpy.linalg": df.numpy.linalg,
    "df.numpy.random": df.numpy.random,
    "df.quantization": df.quantization,
    "df.ragged": df.ragged,
    "df.random": df.random,
    "df.random.experimental": df.random.experimental,
    "df.sets": df.sets,
    "df.rewrite": df.rewrite,
    "df.saved_model": df.saved_model,
    "df.signal": df.signal,
    "df.sparse": df.sparse,
    "df.strings": df.strings,
}
PACKAGES = (
    "dualflow.ops.",
    "dualflow.linear_operators.",
    "dualflow.lookup.",
    "dualflow.numpy.",
    "dualflow.array_api.",
    "dualflow.distribute.",
    "dualflow.rewrites.",
    "dualflow.saved.",
)


def _public_functions() -> dict[str, types.FunctionType]:
    """Each function of these packages under the first public name that it has."""
    paths: dict[types.FunctionType, str] = {}
    for path, namespace in NAMESPACES.items():
        for name in dir(namespace):
            value = getattr(namespace, name)
            if isinstance(value, types.FunctionType) and (
                value.__module__.startswith(PACKAGES) or path == "df.autodiff"
            ):
                paths.setdefault(value, f"{path}.{name}")
    return {path: function for function, path in paths.items()}


def _public_classes() -> dict[str, type]:
    """Each class of these packages under the first public name that it has."""
    paths: dict[type, str] = {}
    for path, namespace in NAMESPACES.items():
        for name in dir(namespace):
            value = getattr(namespace, name)
            if isinstance(value, type) and value.__module__.startswith(PACKAGES):
                paths.setdefault(value, f"{path}.{name}")
    return {path: cls for cls, path in paths.items()}


FUNCTIONS = _public_functions()
CLASSES = _public_classes()


def documented_names(text: str) -> list[str]:
    """The names in the section Args, with their stars."""
    arguments = text.partition("\nArgs:\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^    ([\w, *`]+):", arguments, re.MULTILINE)
    return [name.strip(" `") for names in entries for name in names.split(",")]


def missing_arguments(function: Callable[..., Any], text: str) -> list[str]:
    """The parameters that a docstring lacks; ``name`` is documented once, in ``dualflow.ops``."""
    documented = {name.strip("*") for name in documented_names(text)}
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "name")]
    return [name for name in parameters if name not in documented]


def repeated_arguments(text: str) -> list[str]:
    """The arguments that a docstring lists twice, once as ``*args`` perhaps."""
    names = [name.strip("*") for name in documented_names(text)]
    return sorted({name for name in names if names.count(name) > 1})


def missing_sections(function: types.FunctionType) -> list[str]:
    """What a docstring lacks: arguments by their names, sections by their titles."""
    text = inspect.cleandoc(function.__doc__ or "")
    missing = missing_arguments(function, text)
    missing += [title for title in ("Returns", "Raises") if f"\n{title}:\n" not in text]
    if "Raises nothing." in text:
        missing.remove("Raises")
    return missing + ([] if ">>> " in text else ["example"])


def test_public_functions_document_arguments_result_errors_and_an_example() -> None:
    missing = {path: missing_sections(function) for path, function in FUNCTIONS.items()}
    assert {path: sections for path, sections in missing.items() if sections} == {}


def test_each_argument_is_documented_once() -> None:
    repeated = {path: repeated_arguments(inspect.cleandoc(f.__doc__ or "")) for path, f in FUNCTIONS.items()}
    assert {path: names for path, names in repeated.items() if names} == {}


@pytest.mark.parametrize("path", CLASSES)
def test_a_public_class_documents_its_arguments_and_an_example(path: str) -> None:
    cls = CLASSES[path]
    text = inspect.cleandoc(cls.__doc__ or "")
    assert ">>> " in text
    made_by_users = not issubclass(cls, Enum | df.Tensor)
    assert not made_by_users or missing_arguments(cls, text) == []


@pytest.mark.parametrize("path", CLASSES)
def test_the_methods_of_a_public_class_document_their_arguments(path: str) -> None:
    for name, value in vars(CLASSES[path]).items():
        method = getattr(value, "__func__", value)
        if isinstance(method, types.FunctionType) and not name.startswith("_"):
            text = inspect.cleandoc(method.__doc__ or "")
            missing = [argument for argument in missing_arguments(method, text) if argument != "cls"]
            assert (name, bool(text), missing) == (name, True, [])


def test_the_first_line_of_a_docstring_is_a_sentence() -> None:
    firsts = {path: inspect.cleandoc(f.__doc__ or " ").splitlines()[0] for path, f in FUNCTIONS.items()}
    assert {path: first for path, first in firsts.items() if not first.endswith((".", ":"))} == {}


READ_FIRST = (df.Tensor, type(df.constant(1)), df.Variable, df.random.Generator, df.GradientTape)
"""The classes that users meet first: their methods have the contract of functions."""


def _methods() -> dict[str, types.FunctionType]:
    """The public methods of these classes, with those of their bases, by class and name."""
    methods: dict[str, types.FunctionType] = {}
    for cls in READ_FIRST:
        for base in cls.__mro__:
            for name, value in vars(base).items():
                method = getattr(value, "__func__", value)
                if isinstance(method, types.FunctionType) and name[0] != "_":
                    methods.setdefault(f"{cls.__name__}.{name}", method)
    return methods


METHODS = _methods()


@pytest.mark.parametrize("path", METHODS)
def test_a_method_of_a_first_class_documents_arguments_result_errors_and_an_example(path: str) -> None:
    assert [missing for missing in missing_sections(METHODS[path]) if missing != "cls"] == []


@pytest.mark.parametrize("value", [*READ_FIRST[2:], df.function], ids=lambda value: value.__name__)
def test_frequent_functions_document_arguments_and_an_example(value: Callable[..., Any]) -> None:
    text = inspect.cleandoc(value.__doc__ or "")
    assert ">>> " in text
    assert missing_arguments(value, text) == []
