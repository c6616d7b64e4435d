"""Files and their contents: bytes, tables and images."""
