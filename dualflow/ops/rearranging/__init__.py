"""Elements moved between axes and within sequences, and shapes as values."""
