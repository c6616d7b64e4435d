"""The imports of TensorFlow by Keras's preprocessing layers and dataset loaders, replaced.

They compute with TensorFlow's ops on every backend, and raise an error without TensorFlow. The modules that
they import these ops from are replaced in their code objects, whose bytecode Python has cached.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import Final

from keras_dualflow.branches import structure_error

_OPS: Final = "keras.src.utils.module_utils"
_BACKEND: Final = "keras.src.backend"
_REPLACEMENTS: Final = {_OPS: "keras_dualflow.tensorflow_names", _BACKEND: "keras_dualflow"}
"""The modules that a module of Keras imports ``tensorflow`` from, and those that replace them."""

_IMPORTED: Final = ("tensorflow",)
"""The names of such an import, as bytecode has them."""

_LAYERS: Final = "keras.src.layers.preprocessing"
_UTILS: Final = "keras.src.utils"
TENSORFLOW_IMPORTS: Final = {
    f"{_LAYERS}.discretization": (_OPS,),
    f"{_LAYERS}.feature_space": (_OPS,),
    f"{_LAYERS}.hashed_crossing": (_OPS, _BACKEND),
    f"{_LAYERS}.hashing": (_OPS, _BACKEND),
    f"{_LAYERS}.index_lookup": (_OPS, _BACKEND),
    f"{_LAYERS}.integer_lookup": (_OPS,),
    f"{_LAYERS}.normalization": (_OPS,),
    f"{_LAYERS}.string_lookup": (_OPS,),
    f"{_LAYERS}.text_vectorization": (_OPS,),
    f"{_UTILS}.audio_dataset_utils": (_OPS,),
    f"{_UTILS}.dataset_utils": (_OPS,),
    f"{_UTILS}.image_dataset_utils": (_OPS, _BACKEND),
    f"{_UTILS}.text_dataset_utils": (_OPS,),
    f"{_UTILS}.tf_utils": (_OPS,),
    f"{_UTILS}.timeseries_dataset_utils": (_OPS,),
}
"""The modules whose imports are replaced, and the modules from which each imports ``tensorflow``."""


def code_with_replaced_imports(code: CodeType, module: str) -> CodeType:
    """The code of a module of Keras, which imports dualflow in place of TensorFlow.

    Args:
        code: of the module, as compiled from its file.
        module: its name.

    Raises:
        ImportError: the module does not import TensorFlow in the expected way.
    """
    imported_from = set(_imported_from(code))
    missing = [name for name in TENSORFLOW_IMPORTS[module] if name not in imported_from]
    if missing:
        raise structure_error(module, f"the import `from {missing[0]} import tensorflow`", "has none")
    return _replaced(code)


def _imported_from(code: CodeType) -> Iterator[str]:
    """The modules of ``_REPLACEMENTS`` that the code, or a function in it, imports ``tensorflow`` from."""
    if _IMPORTED in code.co_consts:
        yield from (name for name in code.co_names if name in _REPLACEMENTS)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imported_from(constant)


def _replaced(code: CodeType) -> CodeType:
    """The code with other module names in its imports.

    A name with dots occurs in ``co_names`` only as the module of an import.
    """
    constants = tuple(_replaced(x) if isinstance(x, CodeType) else x for x in code.co_consts)
    if _IMPORTED not in code.co_consts:
        return code.replace(co_consts=constants)
    names = tuple(_REPLACEMENTS.get(name, name) for name in code.co_names)
    return code.replace(co_consts=constants, co_names=names)
