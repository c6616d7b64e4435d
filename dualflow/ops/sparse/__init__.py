"""Tensors of which only some elements, or some slices, are stored: ``SparseTensor`` and ``IndexedSlices``."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
