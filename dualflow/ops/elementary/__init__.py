"""More elementwise functions: quotients, neighbouring floats, angles, polynomials, conversions."""
