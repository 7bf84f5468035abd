"""The part that lives inside the training process, in `memfit run` and in `MemoryMonitor`."""
