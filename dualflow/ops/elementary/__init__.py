"""More functions of numbers, element by element: quotients, neighbours, angles, polynomials, conversions."""
