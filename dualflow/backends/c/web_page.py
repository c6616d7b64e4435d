"""Exported programs for the web: a JavaScript module around a WebAssembly module, and a page that runs it."""

from __future__ import annotations

import base64
import json
import math
import re
from typing import Any, Final

from dualflow.backends.c.export import ExportedProgram
from dualflow.backends.c.parameters import CParameter
from dualflow.backends.c.source_lines import MARK
from dualflow.core.own_files import own_text

_FOLDER: Final = ("backends", "c", "web")
_SIZE_FUNCTIONS: Final = {
    "quotient": "(x, y) => (y === 0 ? 0 : Math.floor(x / y))",
    "remainder": "(x, y) => (y === 0 ? 0 : x - y * Math.floor(x / y))",
    "largest": "Math.max",
    "smallest": "Math.min",
    "normalized_index": "(x, size) => (x < 0 ? x + size : x)",
    "inferred_size": "(x, inferred) => (x === -1 ? inferred : x)",
    "broadcast_size": "(x, y) => (x === 1 ? y : x)",
}
"""The functions of sizes in JavaScript; see :mod:`dualflow.backends.c.sizes`."""


def javascript_module(program: ExportedProgram) -> str:
    """The JavaScript module that loads the WebAssembly module of ``program``, and calls it."""
    sizes = [p.name for p in program.parameters if p.role == "size"]
    tensors = [p for p in program.parameters if p.spec is not None]
    outputs = [p for p in tensors if p.role == "output"]
    description = {
        "name": program.name,
        "inputs": [_input(p) for p in tensors if p.role != "output"],
        "sizes": sizes,
        "outputs": [{"name": p.name, "dtype": _dtype(p), "shape": p.shape} for p in outputs],
    }
    shapes = f"[{', '.join(p.shape for p in outputs)}]"
    definitions = "".join([f"const {name} = {text}; " for name, text in program.sizes])
    functions = [
        f"const {name} = {text};"
        for name, text in _SIZE_FUNCTIONS.items()
        if re.search(rf"\b{name}\(", definitions + shapes)
    ]
    body = f"{{ {definitions}return {shapes}; }}" if definitions else shapes
    return "\n".join(
        [
            f"// {program.name}, {MARK}.",
            f"const DESCRIPTION = {json.dumps(description, indent=2)};",
            *functions,
            f"const outputShapes = ({', '.join(sizes)}) => {body};",
            own_text(*_FOLDER, "model.mjs"),
        ]
    )


def _input(parameter: CParameter) -> dict[str, Any]:
    """An input; names in its shape are dynamic sizes."""
    sizes = parameter.shape[1:-1].split(", ") if parameter.shape != "[]" else []
    return {
        "name": parameter.name,
        "dtype": _dtype(parameter),
        "shape": [int(size) if size.isdecimal() else size for size in sizes],
        "updated": parameter.role == "variable",
    }


def _dtype(parameter: CParameter) -> str:
    assert parameter.spec is not None
    return parameter.spec.dtype.name


def page(program: ExportedProgram, module: bytes) -> str:
    """A page that runs the WebAssembly ``module`` of ``program``, and loads nothing else."""
    pieces = {
        "MARK": f"{program.name}, {MARK}",
        "NAME": program.name,
        "STYLE": own_text(*_FOLDER, "page.css"),
        "MODEL": javascript_module(program),
        "MODULE": base64.b64encode(module).decode(),
        "IMAGE": json.dumps(image_of(program)),
        "PAGE": own_text(*_FOLDER, "page.mjs"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda name: pieces[name[1]], own_text(*_FOLDER, "page.html"))


def image_of(program: ExportedProgram) -> dict[str, Any] | None:
    """The image that can be drawn on the page, if the program maps images to class scores; else None.

    Such a program has one float input, whose examples are square images of one channel (as rows and columns,
    or flat), and one float output, with a score for each of 2 to 100 classes.
    """
    tensors = [p for p in program.parameters if p.spec is not None]
    sizes = [p for p in program.parameters if p.role == "size"]
    if len(tensors) != 2 or tensors[1].role != "output" or len(sizes) > 1:
        return None
    (shape, scores) = [[n if type(n) is int else None for n in p.spec.shape] for p in tensors if p.spec]
    floats = all(p.spec is not None and p.spec.dtype.is_floating for p in tensors)
    if not floats or len(scores) != 2 or scores[0] not in (1, None) or not 2 <= (scores[1] or 0) <= 100:
        return None
    if len(shape) < 2 or shape[0] not in (1, None) or None in shape[1:]:
        return None
    pixels = math.prod(n for n in shape[1:] if n is not None)
    side = math.isqrt(pixels)
    flat_shape = [n for n in shape[1:] if n != 1]
    if side < 8 or side * side != pixels or flat_shape not in ([side, side], [pixels]):
        return None
    example = [1, *shape[1:]]
    return {"input": tensors[0].name, "output": tensors[1].name, "shape": example, "side": side}
