"""The base class of Keras's layers that this backend provides."""


class BackendLayer:
    """An empty base class."""
