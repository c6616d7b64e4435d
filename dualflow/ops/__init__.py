"""What an op is: one record each, and the functions that users call.

``record`` defines the record and the registry, ``forms`` how a graph compiles an op, ``samples`` where it
may be tested and ``cases`` with what; most other modules define a family of ops.
"""

from importlib import import_module
from pkgutil import iter_modules

from dualflow.core.tracebacks import make_entries

for _module in [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]:
    make_entries(_module)  # after all of them are there: among themselves they call the functions as they are
