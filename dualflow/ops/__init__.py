"""What an op is: one record each, and the functions that users call.

``record`` defines the record and the registry, ``forms`` how a graph compiles an op, ``samples`` where it
may be tested; most other modules define ops of the base language. Sub-packages are ``families`` of more ops,
which are loaded when they are first used.
"""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
