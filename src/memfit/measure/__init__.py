"""Stage 1: read the world. Every reading is a frozen value; `None` means unknown."""
