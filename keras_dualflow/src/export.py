"""Export of models to files of other libraries, which is not implemented."""

from typing import Any, NoReturn


class SavedModelExportArchive:
    """TensorFlow's SavedModel, which only TensorFlow can write; each method raises an error."""

    def track(self, resource: Any) -> NoReturn:
        """Raise NotImplementedError."""
        _refuse()

    def add_endpoint(self, name: str, fn: Any, input_signature: Any = None, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError."""
        _refuse()

    def track_and_add_endpoint(
        self, name: str, resource: Any, input_signature: Any, **kwargs: Any
    ) -> NoReturn:
        """Raise NotImplementedError."""
        _refuse()


def _refuse() -> NoReturn:
    raise NotImplementedError(
        "`export_saved_model` only currently supports the tensorflow, jax and torch backends. Save the model "
        "with model.save('model.keras'), load it with KERAS_BACKEND=tensorflow, and export it there."
    )
