"""What can be changed so that a training fits; each returns a `Change`."""
