"""``df.test.TestCase``: unit tests that compare tensors, eagerly and in sessions."""
