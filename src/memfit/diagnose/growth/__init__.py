"""Does memory grow, and how fast: series, phases, trend."""
