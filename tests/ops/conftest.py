"""The registry, complete: every module of the ops room, whether or not the front page imports it."""

import importlib
import pkgutil

import dualflow.ops

for _module in pkgutil.iter_modules(dualflow.ops.__path__):
    importlib.import_module(f"dualflow.ops.{_module.name}")
