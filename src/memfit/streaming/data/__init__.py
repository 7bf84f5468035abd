"""What every source has: columns, rows, ragged values, layout."""
