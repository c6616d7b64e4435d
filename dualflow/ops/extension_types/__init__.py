"""Classes of programs that hold tensors: extension types, their specs, and batches of them."""
