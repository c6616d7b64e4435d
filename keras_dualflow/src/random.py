"""``keras.random``."""
