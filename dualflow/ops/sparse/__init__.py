"""Tensors that store only some elements, or some slices: ``SparseTensor`` and ``IndexedSlices``."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
