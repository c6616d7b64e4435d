"""Files, and what stands in them: bytes, tables, images, tensors."""
