"""The scalar ops over emitted values, of any number of lanes.

``Maths`` is the namespace that lowers scalar functions. Ops of one or a few instructions are in
``instructions``; those that have a definition (``dualflow.scalar.maths``) become functions of the module.
"""

from dualflow.backends.llvm.maths.vector_maths import Maths

__all__ = ["Maths"]
