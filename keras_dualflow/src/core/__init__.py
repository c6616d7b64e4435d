"""Variables, conversion, shape inference, control flow and slices of tensors."""
