"""``keras.ops.nn``."""
