"""``keras.ops.linalg``."""
