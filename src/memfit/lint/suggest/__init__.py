"""The `memfit.stream` call that replaces code that loads files into memory."""
