"""Batches: windows of rows read ahead, `map`, position and state."""
