"""Linear operators, which act as matrices without storing their elements: ``df.linalg.LinearOperator``."""
