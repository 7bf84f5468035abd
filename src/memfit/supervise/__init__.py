"""`memfit run` from outside: child process, signals, sampling, live status."""
