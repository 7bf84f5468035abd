"""The `memfit.stream` call that replaces code that loads whole files."""
