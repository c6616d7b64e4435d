"""The op records, one for each op, and the functions that users call.

``record`` defines the record and the registry, ``forms`` how a graph compiles an op, ``samples`` the inputs
it is tested with; most other modules define ops of the base language. Sub-packages are ``families`` of more
ops, which are loaded when they are first used.

Every function for users takes ``name=None``, for programs written for TensorFlow, and ignores it.
"""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
