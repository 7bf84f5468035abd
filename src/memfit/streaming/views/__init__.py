"""Sources made of sources: concatenated, zipped, chosen columns or rows, oversampled."""
