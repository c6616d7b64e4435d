"""``keras.ops.image``."""
