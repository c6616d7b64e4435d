"""``keras.ops.math``."""
