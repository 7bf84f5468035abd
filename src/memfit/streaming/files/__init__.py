"""Bytes on disk or elsewhere: local, remote, `.npy`, and the packages that read them."""
