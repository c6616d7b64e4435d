"""The loops over epochs and batches."""
