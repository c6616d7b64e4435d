"""Sets: the rows of tensors, whose order and repetitions don't count."""
