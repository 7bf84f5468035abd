"""Rewrites one statement of user code, as a tree. Pure."""
