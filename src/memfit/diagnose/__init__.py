"""Stage 3: say what is wrong. Pure functions of a recording."""
