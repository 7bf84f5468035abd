"""One module a family of rules."""
