"""Special functions of mathematics, and products that vanish with one factor."""
