"""Export of models to files of other libraries, which this backend has none of."""

from typing import Any


class SavedModelExportArchive:
    """TensorFlow's SavedModel, which takes TensorFlow to write."""

    def track(self, resource: Any) -> None:
        """Refuse."""
        raise NotImplementedError(_WHAT_TO_DO)

    def add_endpoint(self, name: str, fn: Any, input_signature: Any = None, **kwargs: Any) -> None:
        """Refuse."""
        raise NotImplementedError(_WHAT_TO_DO)


_WHAT_TO_DO = (
    "A SavedModel is a TensorFlow program. Save the model with model.save('model.keras'), and export it from "
    "there with KERAS_BACKEND=tensorflow."
)
