"""Saved models: ``df.saved_model``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.saved.assets import Asset as Asset
    from dualflow.saved.load import load as load
    from dualflow.saved.options import LoadOptions as LoadOptions
    from dualflow.saved.options import SaveOptions as SaveOptions
    from dualflow.saved.save import contains_saved_model as contains_saved_model
    from dualflow.saved.save import save as save

DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
"""The name of the default signature."""
SERVING = "serve"
"""The tag of saved models."""

_publish(
    globals(),
    lazy={
        "dualflow.saved.assets": "Asset",
        "dualflow.saved.load": "load",
        "dualflow.saved.options": "LoadOptions SaveOptions",
        "dualflow.saved.save": "contains_saved_model save",
    },
)
