"""Stage 5: do it. So far: start a script and watch it from outside."""
