"""The imports of TensorFlow by Keras's preprocessing layers of words and categories, replaced.

These layers compute with TensorFlow's ops on every backend, and refuse to be created without TensorFlow.
Their imports of it are replaced in their syntax trees by imports of dualflow.
"""

from __future__ import annotations

import ast
from types import CodeType
from typing import Final

from keras_dualflow.branches import structure_error

_OPS: Final = "from keras.src.utils.module_utils import tensorflow as tf"
_BACKEND: Final = "from keras.src.backend import tensorflow as tf_backend"
_REPLACEMENTS: Final = {
    _OPS: "from keras_dualflow.tensorflow_names import tf",
    _BACKEND: "from keras_dualflow import tensorflow as tf_backend",
}
_LAYERS: Final = "keras.src.layers.preprocessing"
TENSORFLOW_IMPORTS: Final = {
    f"{_LAYERS}.hashed_crossing": (_OPS, _BACKEND),
    f"{_LAYERS}.hashing": (_OPS, _BACKEND),
    f"{_LAYERS}.index_lookup": (_OPS, _BACKEND),
    f"{_LAYERS}.integer_lookup": (_OPS,),
    f"{_LAYERS}.string_lookup": (_OPS,),
    f"{_LAYERS}.text_vectorization": (_OPS,),
    "keras.src.utils.tf_utils": (_OPS,),
}
"""The modules whose imports are replaced, and the imports that each has."""


class _ImportReplacer(ast.NodeTransformer):
    """Replaces imports of TensorFlow, and collects those that it replaced."""

    def __init__(self) -> None:
        self.replaced: set[str] = set()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        text = ast.unparse(node)
        if text not in _REPLACEMENTS:
            return node
        self.replaced.add(text)
        replacement = ast.parse(_REPLACEMENTS[text]).body[0]
        for part in ast.walk(replacement):
            ast.copy_location(part, node)
        return replacement


def code_with_replaced_imports(source: bytes, path: str, module: str) -> CodeType:
    """The compiled code of a module of Keras, which imports dualflow in place of TensorFlow.

    Raises:
        ImportError: the module does not import TensorFlow in the expected way.
    """
    replacer = _ImportReplacer()
    tree = replacer.visit(ast.parse(source, path))
    missing = [text for text in TENSORFLOW_IMPORTS[module] if text not in replacer.replaced]
    if missing:
        raise structure_error(module, f"the import `{missing[0]}`", "has none")
    return compile(tree, path, "exec", dont_inherit=True)
