"""Variables, conversion, shape inference, control flow and parts of tensors: what all other ops rest on."""
