"""Which frame, file and statement is the user's own."""
