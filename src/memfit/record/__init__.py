"""Stage 2: keep it. A run is a folder of append-only JSON lines, one file a process."""
