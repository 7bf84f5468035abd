"""Data larger than memory: rows from disk, in a random order, within a budget of bytes."""
