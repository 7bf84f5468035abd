"""Many models in one process, or each in one of its own."""
