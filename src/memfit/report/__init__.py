"""Stage 6: show it. The same value as terminal text, JSON and an HTML page."""
