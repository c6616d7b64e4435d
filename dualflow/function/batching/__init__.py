"""``vmap``: a function of one batch element, evaluated for a whole batch op by op."""
