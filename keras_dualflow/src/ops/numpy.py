"""``keras.ops.numpy``."""
